//! The memory of keys by the engine's own account, and refusals when none is left.

use super::client::{Client, Reply};
use super::data::{FILTERS, add};
use super::server::{Engine, PANIC_IN_A_COMMAND, Server, engines};
use umbel::Keyed;
use umbel_module::bloom::Growth;
use umbel_module::own::{Blocked, OwnBloom, OwnCuckoo};

fn used(client: &mut Client) -> i64 {
    let info = client.ask("INFO memory");
    let text = String::from_utf8_lossy(info.bytes()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|line| line.trim().parse().ok()).expect("INFO tells used_memory")
}

/// Filters of four megabytes or more, because client buffers vary by some ten kilobytes.
const LARGE: [(&str, &str); 8] = [
    ("plain", "BF.RESERVE plain 0.01 4000000"),
    ("grown", "BF.RESERVE grown 0.01 1000 EXPANSION 4000"),
    ("keyed", "BF.RESERVE keyed 0.001 3000000 KEYED"),
    ("blocked", "BF.RESERVE blocked 0.01 4000000 BLOCKED"),
    ("window", "BF.RESERVE window 0.01 3000000 WINDOW 3000000"),
    ("cuckoo", "CF.RESERVE cuckoo 4000000"),
    ("buckets", "CF.RESERVE buckets 4000000 BUCKETSIZE 4"),
    ("rated", "CF.RESERVE rated 2000000 ERROR 0.0001"),
];

#[test]
fn memory_usage_is_what_used_memory_says() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        // The first filter includes memory that the engine needs for its first replies, so it is not checked.
        for (number, (name, make)) in LARGE[..1].iter().chain(&LARGE).enumerate() {
            let usage = |client: &mut Client| client.say(&format!("MEMORY USAGE {name}"));
            // After a first call, the command needs no new memory.
            usage(&mut client);
            settle(&mut client);
            let before = used(&mut client);
            // On a separate connection, whose buffers are freed with it.
            let mut writer = server.client();
            writer.ask(make);
            add_to(&mut writer, name);
            drop(writer);
            let usage = usage(&mut client).integer();
            settle(&mut client);
            let taken = used(&mut client) - before;
            let off = (usage - taken).abs() as f64 / taken as f64;
            assert!(
                off < 0.02 || number == 0,
                "{engine:?} {name}: MEMORY USAGE {usage}, used_memory {taken}"
            );
            client.ask(&format!("DEL {name}"));
            settle(&mut client);
            let left = used(&mut client) - before;
            assert!(
                left.abs() < taken / 50 || number == 0,
                "{engine:?} {name}: {left} bytes are left behind"
            );
        }
    }
}

fn add_to(client: &mut Client, name: &str) {
    for start in (0..20_000).step_by(10_000) {
        add(client, name, start..start + 10_000);
    }
}

/// Lets the engine shrink the buffers of its clients.
fn settle(client: &mut Client) {
    let mut last = used(client);
    for _ in 0..40 {
        std::thread::sleep(std::time::Duration::from_millis(60));
        let next = used(client);
        if next == last {
            return;
        }
        last = next;
    }
}

#[test]
fn after_loading_the_account_is_the_same() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        for (name, make) in FILTERS {
            client.ask(make);
            add(&mut client, name, 0..1_000);
            let before = client.ask(&format!("MEMORY USAGE {name}")).integer();
            let payload = client.ask(&format!("DUMP {name}")).bytes().to_vec();
            client.call(&[b"RESTORE", name.as_bytes(), b"0", &payload, b"REPLACE"]);
            let after = client.ask(&format!("MEMORY USAGE {name}")).integer();
            let copy = client.ask(&format!("COPY {name} copy REPLACE")).integer();
            let of_copy = client.ask("MEMORY USAGE copy").integer();
            assert_eq!(copy, 1);
            for other in [after, of_copy] {
                // Vectors that grew may have more capacity than those that were read.
                assert!(
                    (other - before).abs() <= before / 5 + 128,
                    "{engine:?} {name}: {before}, {other}"
                );
            }
        }
    }
}

#[test]
fn writes_are_refused_when_there_is_no_memory_left_and_removals_are_not() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("BF.RESERVE a 0.01 1000");
        client.ask("CF.RESERVE c 1000");
        client.ask("CF.ADD c 1");
        client.ask("CONFIG SET maxmemory 1");
        for line in [
            "BF.ADD a 1",
            "BF.MADD a 1",
            "BF.RESERVE b 0.01 10",
            "CF.ADD c 2",
            "CF.RESERVE d 10",
            "BF.MERGE a a",
        ] {
            let reply = client.say(line);
            assert!(
                matches!(&reply, Reply::Error(text) if text.starts_with("OOM")),
                "{engine:?} {line}: {reply:?}"
            );
        }
        assert_eq!(client.ask("BF.EXISTS a 1").integer(), 0);
        assert_eq!(client.ask("CF.DEL c 1").integer(), 1);
        client.ask("CONFIG SET maxmemory 0");
        assert_eq!(client.ask("BF.ADD a 1").integer(), 1);
    }
}

#[test]
fn requests_that_are_too_large_are_errors_and_take_nothing() {
    for engine in engines() {
        let mut server = Server::start(engine);
        let mut client = server.client();
        let before = used(&mut client);
        let lines = [
            "BF.RESERVE a 1e-300 1073741824",
            "BF.RESERVE a 1e-300 1073741824 NONSCALING",
            "BF.RESERVE a 1e-9 1000000000000000000",
            "BF.INSERT a CAPACITY 1073741824 ERROR 1e-300 ITEMS x",
            "BF.RESERVE a 1e-300 1073741824 KEYED",
            "BF.RESERVE a 1e-300 1073741824 BLOCKED",
            "CF.RESERVE a 1000000000000000000",
        ];
        for line in lines {
            let reply = client.say(line);
            assert!(reply.is_error(), "{engine:?} {line}: {reply:?}");
            assert_eq!(client.ask("EXISTS a").integer(), 0, "{line}");
        }
        client.ask("CONFIG SET maxmemory 50mb");
        for line in [
            "BF.RESERVE a 0.01 100000000",
            "BF.RESERVE a 0.01 100000000 BLOCKED",
            "CF.RESERVE a 100000000",
        ] {
            let reply = client.say(line);
            let expected = "ERR Insufficient memory to create filter".to_owned();
            assert_eq!(reply, Reply::Error(expected), "{engine:?} {line}");
        }
        // A chain that would exceed all memory returns an error, and keeps its items.
        client.ask("BF.RESERVE a 0.25 1000 EXPANSION 32768");
        client.ask("CONFIG SET maxmemory 0");
        assert!(used(&mut client) < before + (4 << 20));
        assert!(server.is_alive());
    }
}

#[test]
fn requests_are_judged_together() {
    let machine = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = machine.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let Some(total) = kilobytes("MemTotal:").map(|kilobytes| kilobytes * 1024) else {
        eprintln!("no /proc/meminfo here, and therefore not tested");
        return;
    };
    // 3.9 GB each, of which no page is touched.
    let each = 3_858_000_000;
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let (mut accepted, mut refused) = (0, 0);
        for number in 0..total / each + 2 {
            match client.say(&format!("BF.RESERVE k:{number} 0.000001 1073741824 NONSCALING")) {
                Reply::Error(text) => {
                    assert_eq!(text, "ERR Insufficient memory to create filter", "{engine:?}");
                    refused += 1;
                }
                _ => accepted += 1,
            }
        }
        assert!(accepted * each <= total, "{engine:?}: {accepted} of {} bytes", each);
        assert!(refused >= 2, "{engine:?}: {accepted} accepted");
        // Freed memory can be allocated again.
        if accepted > 0 {
            client.ask("DEL k:0");
            // Some engines free in the background.
            let again = (0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                !client.say("BF.RESERVE k:0 0.000001 1073741824 NONSCALING").is_error()
            });
            assert!(again, "{engine:?}: {accepted} accepted");
        }
    }
}

/// `MemTotal` in `/proc/meminfo`, if the file exists.
fn memory_of_the_machine() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = machine.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Reserves the whole memory of the machine, without touching a page of it.
fn promise_everything(client: &mut Client) {
    let mut number = 0;
    for capacity in (21..=30).rev().map(|bits| 1_u64 << bits) {
        loop {
            number += 1;
            let line = format!("BF.RESERVE promised:{number} 0.000001 {capacity} NONSCALING");
            if client.say(&line).is_error() {
                break;
            }
        }
    }
    // The smallest requests that are checked individually.
    loop {
        number += 1;
        let line = format!("BF.RESERVE promised:{number} 0.000001 1170000 NONSCALING");
        if client.say(&line).is_error() {
            break;
        }
    }
}

#[test]
fn commands_are_served_when_all_memory_is_promised() {
    if memory_of_the_machine().is_none() {
        eprintln!("no /proc/meminfo here, and therefore not tested");
        return;
    }
    for engine in engines() {
        let mut server = Server::start(engine);
        let mut client = server.client();
        client.ask("BF.RESERVE blocked 0.01 10000000 BLOCKED");
        client.ask("CF.RESERVE c 1000000");
        promise_everything(&mut client);
        // More than 4 MiB for the list of items alone.
        let items: Vec<Vec<u8>> =
            (0..300_000_u32).map(|item| format!("{item:x}").into_bytes()).collect();
        for head in [&["BF.MADD", "b"][..], &["BF.MEXISTS", "b"], &["CF.INSERT", "c", "ITEMS"]] {
            let words: Vec<&[u8]> = head
                .iter()
                .map(|word| word.as_bytes())
                .chain(items.iter().map(Vec::as_slice))
                .collect();
            let reply = client.try_call(&words);
            assert!(reply.is_ok_and(|reply| !reply.is_error()), "{engine:?}: {head:?}");
        }
        // A chunk of 12 MB.
        assert_eq!(client.ask("BF.SCANDUMP blocked 1").array().len(), 2, "{engine:?}");
        let reply = client.say("BF.MERGE merged blocked");
        let expected = Reply::Error("ERR Insufficient memory to create filter".to_owned());
        assert!(!reply.is_error() || reply == expected, "{engine:?}: {reply:?}");
        assert!(server.is_alive(), "{engine:?}");
    }
}

/// The largest capacity whose filter has at most this many bytes.
fn capacity_for(bytes: u64, of: impl Fn(u64) -> u64) -> u64 {
    let (mut least, mut most) = (1, bytes);
    while least + 1 < most {
        let middle = least.midpoint(most);
        if of(middle) <= bytes { least = middle } else { most = middle }
    }
    least
}

/// Copies are made when the allocator refuses: the client reads an error, and there is no panic. The sizes are
/// those from which on requests are checked: 1 MiB where an engine has no allocation that may fail, otherwise 4
/// MiB.
#[test]
fn copies_for_which_there_is_no_memory_are_errors() {
    if memory_of_the_machine().is_none() {
        eprintln!("no /proc/meminfo here, and therefore not tested");
        return;
    }
    let bytes = |own: Result<OwnBloom, _>| own.expect("a filter").bytes();
    let keyed = Keyed::new([7; 16]);
    let mut makes = Vec::new();
    for size in [3 << 19, 4 << 20, 5 << 20] {
        let plain =
            capacity_for(size, |items| bytes(OwnBloom::keyed(items, 0.01, Growth::None, keyed)));
        let blocked = capacity_for(size, |items| {
            Blocked::new(items, 0.01, Growth::None, None).expect("a filter").bytes()
        });
        let window = capacity_for(size, |items| bytes(OwnBloom::window(items, 0.01, None)));
        let rated =
            capacity_for(size, |items| OwnCuckoo::new(items, 0.001).expect("a filter").bytes());
        makes.extend([
            format!("BF.RESERVE {{plain:{size}}} 0.01 {plain} NONSCALING"),
            format!("BF.RESERVE {{keyed:{size}}} 0.01 {plain} NONSCALING KEYED"),
            format!("BF.RESERVE {{blocked:{size}}} 0.01 {blocked} NONSCALING BLOCKED"),
            format!("BF.RESERVE {{window:{size}}} 0.01 {window} WINDOW {window}"),
            format!("CF.RESERVE {{cuckoo:{size}}} {size}"),
            format!("CF.RESERVE {{rated:{size}}} {rated} ERROR 0.001"),
        ]);
    }
    for engine in engines() {
        let mut server = Server::start(engine);
        let mut client = server.client();
        makes.iter().for_each(|make| _ = client.ask(make));
        promise_everything(&mut client);
        let refused = |client: &mut Client, line: &str| {
            let reply = client.try_call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            match reply.unwrap_or_else(|_| panic!("{engine:?}: {line} ended the server")) {
                Reply::Error(text) => {
                    assert!(!text.contains("bug"), "{engine:?}: {line}: {text}");
                    true
                }
                _ => false,
            }
        };
        let mut merges_refused = 0;
        for make in &makes {
            let name = make.split(' ').nth(1).expect("a key");
            refused(&mut client, &format!("COPY {name} {name}:copy"));
            if make.starts_with("CF") || name.contains("window") {
                continue;
            }
            // Other programs may free memory at any time.
            for number in 0..10 {
                if refused(&mut client, &format!("BF.MERGE {name}:{number} {name}")) {
                    merges_refused += 1;
                    break;
                }
                promise_everything(&mut client);
            }
        }
        assert!(merges_refused > 0, "{engine:?}: all merges were made");
        assert!(server.is_alive() && !server.log().contains("a bug of the module"), "{engine:?}");
    }
}

/// A panic ends in an error reply and one line in the log, even without memory for a backtrace.
#[test]
fn a_panic_without_memory_left_is_an_error_and_a_line_in_the_log() {
    if memory_of_the_machine().is_none() {
        eprintln!("no /proc/meminfo here, and therefore not tested");
        return;
    }
    for engine in engines() {
        let mut server = Server::with(engine, &["--save", "", PANIC_IN_A_COMMAND]);
        let mut client = server.client();
        promise_everything(&mut client);
        for _ in 0..3 {
            let reply = client.try_call(&[b"BF.DEBUG", b"promised:1"]);
            let text = "ERR this is a bug of the module; the key may have changed";
            assert_eq!(reply.ok(), Some(Reply::Error(text.to_owned())), "{engine:?}");
        }
        assert!(server.is_alive(), "{engine:?}");
        let log = server.log();
        let lines: Vec<_> =
            log.lines().filter(|line| line.contains("a test wants this panic")).collect();
        assert_eq!(lines.len(), 3, "{engine:?}: {log}");
        for part in ["a bug of the module", "crates/umbel-module/src/engine/command.rs:"] {
            assert!(lines.iter().all(|line| line.contains(part)), "{engine:?}: {lines:?}");
        }
        assert!(!log.contains("backtrace"), "{engine:?}: {log}");
    }
}

#[test]
fn headers_of_many_parts_are_judged_together() {
    let Some(total) = memory_of_the_machine() else {
        eprintln!("no /proc/meminfo here, and therefore not tested");
        return;
    };
    // Parts of up to 4 MiB, a thousand in each header.
    let parts = 1_000_u32;
    for engine in engines() {
        for family in ["BF", "CF"] {
            let server = Server::start(engine);
            let mut client = server.client();
            client.ask("BF.RESERVE BF 0.01 3000000");
            client.ask("CF.RESERVE CF 4194304");
            client.ask("CF.ADD CF x");
            let mut header =
                client.ask(&format!("{family}.SCANDUMP {family} 0")).array()[1].bytes().to_vec();
            let each = if family == "BF" {
                let link = header.split_off(20);
                header[8..12].copy_from_slice(&parts.to_le_bytes());
                header.extend(link.repeat(parts as usize));
                u64::from_le_bytes(*link.first_chunk().expect("a length"))
            } else {
                header[24..28].copy_from_slice(&parts.to_le_bytes());
                4 << 20
            };
            let each = each * u64::from(parts);
            let load = format!("{family}.LOADCHUNK");
            let mut accepted = 0;
            for number in 0..total / each + 2 {
                let name = format!("k:{number}");
                let words = [load.as_bytes(), name.as_bytes(), b"1", &header];
                accepted += u64::from(!client.call(&words).is_error());
            }
            assert!(accepted * each <= total, "{engine:?} {family}: {accepted} of {each} bytes");
        }
    }
}

#[test]
fn many_small_filters_are_judged_together() {
    let Some(total) = memory_of_the_machine() else {
        eprintln!("no /proc/meminfo here, and therefore not tested");
        return;
    };
    // 3.6 MB each, of which no page is touched.
    let each = 3_594_000;
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let (mut accepted, mut number) = (0, 0);
        while number < total / each + 100 {
            let lines: Vec<_> = (number..number + 500)
                .map(|number| format!("BF.RESERVE k:{number} 0.01 3000000 NONSCALING"))
                .collect();
            number += 500;
            let bytes: Vec<u8> = lines
                .iter()
                .flat_map(|line| {
                    super::client::command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
                })
                .collect();
            client.send(&bytes).expect("it is sent");
            for _ in &lines {
                accepted += u64::from(!client.reply().expect("a reply").is_error());
            }
        }
        assert!(accepted * each <= total, "{engine:?}: {accepted} of {each} bytes");
    }
}

#[test]
fn requests_are_judged_by_what_is_left_of_maxmemory() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("CONFIG SET maxmemory 95mb");
        // 33 MB each: three of them are 99.7 MB, and the limit is 99.6 MB.
        let make = |client: &mut Client, line: &str| client.say(line).is_error();
        assert!(!make(&mut client, "BF.RESERVE a 0.01 24000000"), "{engine:?}");
        assert!(!make(&mut client, "CF.RESERVE b 33000000"), "{engine:?}");
        for line in [
            "BF.RESERVE c 0.01 24000000",
            "BF.RESERVE c 0.01 24000000 BLOCKED",
            "BF.INSERT c CAPACITY 24000000 ITEMS x",
            "CF.RESERVE c 33000000",
            "CF.RESERVE c 24000000 ERROR 0.0001",
        ] {
            let reply = client.say(line);
            let expected = "ERR Insufficient memory to create filter".to_owned();
            assert_eq!(reply, Reply::Error(expected), "{engine:?} {line}");
        }
        let header = client.ask("BF.SCANDUMP a 0").array()[1].bytes().to_vec();
        assert!(client.call(&[b"BF.LOADCHUNK", b"c", b"1", &header]).is_error(), "{engine:?}");
        // An engine that evicts keys makes room.
        client.ask("CONFIG SET maxmemory-policy allkeys-lru");
        assert!(!make(&mut client, "BF.RESERVE c 0.01 24000000"), "{engine:?}");
    }
}

#[test]
fn memory_limits_of_the_process_are_errors_too() {
    // 3 GiB of address space: the memory of the machine is then irrelevant.
    let server = Server::start(Engine::Redis70);
    let pid = server.pid().to_string();
    let limited =
        std::process::Command::new("prlimit").args(["--pid", &pid, "--as=3221225472"]).status();
    if !limited.is_ok_and(|status| status.success()) {
        eprintln!("no prlimit here, and therefore not tested");
        return;
    }
    let mut client = server.client();
    let reply = client.say("BF.RESERVE a 0.000001 1073741824 NONSCALING");
    assert_eq!(reply, Reply::Error("ERR Insufficient memory to create filter".to_owned()));
    assert_eq!(client.ask("BF.ADD b 1").integer(), 1);
}

#[test]
fn active_defragmentation_moves_filters_and_loses_nothing() {
    // The only engine with an allocator that reports this.
    let server = Server::start(Engine::Redis62);
    let mut client = server.client();
    for (name, make) in FILTERS {
        client.ask(make);
        add(&mut client, name, 0..1_000);
    }
    for number in 0..20_000 {
        client.ask(&format!("BF.RESERVE small:{number} 0.01 10"));
    }
    for number in (0..20_000).filter(|number| number % 5 > 0) {
        client.ask(&format!("DEL small:{number}"));
    }
    for option in [
        "active-defrag-ignore-bytes 1",
        "active-defrag-threshold-lower 1",
        "active-defrag-cycle-min 50",
    ] {
        client.ask(&format!("CONFIG SET {option}"));
    }
    client.ask("CONFIG SET activedefrag yes");
    let hits = |client: &mut Client| {
        let info = client.ask("INFO stats");
        let text = String::from_utf8_lossy(info.bytes()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("active_defrag_hits:"));
        line.and_then(|line| line.trim().parse::<i64>().ok()).unwrap_or(0)
    };
    let moved = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        hits(&mut client) > 1_000
    });
    assert!(moved, "nothing was moved");
    super::data::check_all(&mut client);
    for number in (0..20_000).step_by(5) {
        assert_eq!(client.ask(&format!("BF.ADD small:{number} x")).integer(), 1);
    }
}

/// The ratio of the allocator's pages to its allocated bytes.
fn fragmentation(client: &mut Client) -> f64 {
    let info = client.ask("INFO memory");
    let text = String::from_utf8_lossy(info.bytes()).into_owned();
    let field = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().parse().ok()).expect("a field of INFO")
    };
    field("allocator_active:") / field("allocator_allocated:")
}

#[test]
fn active_defragmentation_brings_memory_together() {
    let kinds = ["", " NONSCALING", " KEYED", " BLOCKED", " WINDOW"];
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        if client.say("CONFIG SET activedefrag yes").is_error() {
            eprintln!("{engine:?} has an allocator that cannot tell, and is therefore not tested");
            continue;
        }
        client.ask("CONFIG SET activedefrag no");
        client.ask("CONFIG SET lazyfree-lazy-user-del no");
        // A sixth of 250 MB remains: the engine's own memory is small beside that.
        let count = 40_000;
        let mut batch = Vec::new();
        for number in 0..count {
            let kind = kinds[number % kinds.len()];
            let size = 2_000 + number % 7 * 700;
            let kind = if kind == " WINDOW" { format!(" WINDOW {size}") } else { kind.to_owned() };
            let line = match number % 11 {
                0 => format!("CF.RESERVE k:{number} {size}"),
                1 => format!("CF.RESERVE k:{number} {size} ERROR 0.01"),
                _ => format!("BF.RESERVE k:{number} 0.01 {size}{kind}"),
            };
            batch.push(line);
        }
        pipelined(&mut client, &batch);
        let deleted = (0..count).filter(|number| number % 6 > 0);
        pipelined(
            &mut client,
            &deleted.map(|number| format!("DEL k:{number}")).collect::<Vec<_>>(),
        );
        client.ask("CONFIG SET active-defrag-ignore-bytes 1");
        client.ask("CONFIG SET active-defrag-threshold-lower 1");
        client.ask("CONFIG SET active-defrag-cycle-min 60");
        client.ask("CONFIG SET active-defrag-cycle-max 80");
        // Engines check their allocator ten times a second.
        let mut before = 1.0;
        for _ in 0..100 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            before = fragmentation(&mut client);
            if before > 1.5 {
                break;
            }
        }
        assert!(before > 1.5, "{engine:?}: {before} before");
        client.ask("CONFIG SET activedefrag yes");
        let mut after = before;
        for _ in 0..600 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            after = fragmentation(&mut client);
            if after < 1.1 {
                break;
            }
        }
        eprintln!("{engine:?}: {before:.3} before, {after:.3} after");
        assert!(after < 1.1, "{engine:?}: {before} before, {after} after");
        for number in (0..count).step_by(6) {
            let family = if number % 11 < 2 { "CF" } else { "BF" };
            assert_eq!(client.ask(&format!("{family}.ADD k:{number} x")).integer(), 1);
            assert_eq!(client.ask(&format!("{family}.EXISTS k:{number} x")).integer(), 1);
        }
    }
}

/// Sends commands that succeed, in pipelines.
fn pipelined(client: &mut Client, lines: &[String]) {
    for lines in lines.chunks(1_000) {
        let words = |line: &String| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            super::client::command(&words)
        };
        client.send(&lines.iter().map(words).collect::<Vec<_>>().concat()).expect("it is sent");
        for line in lines {
            let reply = client.reply().expect("an answer");
            assert!(!reply.is_error(), "{line}: {reply:?}");
        }
    }
}
