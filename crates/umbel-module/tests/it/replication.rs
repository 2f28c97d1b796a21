//! A replica has the data of its primary, and after a failover no item is missing.

use super::client::{Client, Reply};
use super::data::{FILTERS, add, check_all, digests, make_all};
use super::server::{Engine, Server, engines};
use std::time::{Duration, Instant};

fn replica_of(primary: &Server, options: &[&str]) -> Server {
    let replica = Server::with(primary.engine, options);
    replica.client().ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    replica
}

/// Makes `replica` a replica of `primary`, and waits until it has all data.
pub(crate) fn follow(primary: &Server, replica: &Server) {
    replica.client().ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    wait_for(&mut primary.client(), &mut replica.client());
}

/// Waits until the replica has received all writes of the primary.
fn wait_for(primary: &mut Client, replica: &mut Client) {
    let start = Instant::now();
    primary.ask("SET marker 0");
    let marker = format!("{:?}", start);
    primary.call(&[b"SET", b"marker", marker.as_bytes()]);
    while !matches!(replica.say("GET marker"), super::client::Reply::Text(text) if text == marker.as_bytes())
    {
        assert!(start.elapsed() < Duration::from_secs(60), "the replica does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) const PRIMARY: [&str; 6] =
    ["--save", "", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"];

#[test]
fn a_replica_has_what_the_primary_has_from_the_file_and_from_the_stream() {
    for engine in engines() {
        let primary = Server::with(engine, &PRIMARY);
        let mut client = primary.client();
        // Half of the items come with the file ...
        for (name, make) in FILTERS {
            client.ask(make);
            add(&mut client, name, 0..500);
        }
        // ... to a replica with other settings.
        let replica = match engine {
            Engine::Redis62 => Server::loading(
                engine,
                &PRIMARY,
                &["bf-initial-size", "7", "cf-initial-size", "16"],
            ),
            _ => Server::loading(engine, &PRIMARY, &["INITIAL_SIZE", "7", "bf-error-rate", "0.2"]),
        };
        let mut second = replica.client();
        second.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for(&mut client, &mut second);
        // ... the rest as commands.
        for (name, _) in FILTERS {
            add(&mut client, name, 500..1_000);
        }
        client.ask("BF.ADD new 1");
        client.ask("BF.INSERT inserted CAPACITY 300 ERROR 0.05 ITEMS 1 2 3");
        client.ask("CF.ADD cnew 1");
        client.ask("CF.INSERTNX cinserted CAPACITY 77 ITEMS 1 2 2");
        client.ask("BF.MERGE merged plain fixed");
        client.ask("BF.RESERVE hidden 0.01 100 KEYED");
        client.ask("BF.MADD hidden 1 2 3");
        wait_for(&mut client, &mut second);
        assert_eq!(digests(&mut client), digests(&mut second), "{engine:?}");
        for name in ["new", "inserted", "cnew", "cinserted", "merged", "hidden"] {
            let dump = client.ask(&format!("DUMP {name}"));
            assert_eq!(dump, second.ask(&format!("DUMP {name}")), "{engine:?} {name}");
        }
        check_all(&mut second);
        assert!(second.say("BF.ADD plain x").is_error(), "replicas are read-only");
    }
}

#[test]
fn nothing_is_lost_on_failover_in_the_middle_of_loading_chunks() {
    for engine in engines() {
        let mut primary = Server::with(engine, &PRIMARY);
        let mut client = primary.client();
        make_all(&mut client);
        // This replica keeps its old data set while it loads the new one, and answers in the meantime.
        let replica =
            replica_of(&primary, &[&PRIMARY[..], &["--repl-diskless-load", "swapdb"]].concat());
        let mut second = replica.client();
        wait_for(&mut client, &mut second);
        for (name, family) in
            [("plain", "BF"), ("blocked", "BF"), ("cuckoo", "CF"), ("rated", "CF")]
        {
            let mut number = 0;
            loop {
                let reply = client.ask(&format!("{family}.SCANDUMP {name} {number}"));
                number = reply.array()[0].integer();
                if number == 0 {
                    break;
                }
                let (load, copy, number) =
                    (format!("{family}.LOADCHUNK"), format!("{name}-copy"), number.to_string());
                let words =
                    [load.as_bytes(), copy.as_bytes(), number.as_bytes(), reply.array()[1].bytes()];
                assert!(!client.call(&words).is_error());
            }
        }
        wait_for(&mut client, &mut second);
        drop(client);
        assert!(primary.is_alive());
        drop(primary);
        second.ask("REPLICAOF NO ONE");
        check_all(&mut second);
        for (name, family) in
            [("plain", "BF"), ("blocked", "BF"), ("cuckoo", "CF"), ("rated", "CF")]
        {
            assert_eq!(
                second.ask(&format!("DUMP {name}")),
                second.ask(&format!("DUMP {name}-copy")),
                "{engine:?}"
            );
            second.ask(&format!("{family}.ADD {name}-copy after"));
            assert_eq!(second.ask(&format!("{family}.EXISTS {name}-copy after")).integer(), 1);
        }
    }
}

#[test]
fn a_secret_goes_to_replicas_and_nowhere_else() {
    let server = Server::with(
        Engine::Redis70,
        &["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
    );
    let mut client = server.client();
    let secret = "000102030405060708090a0b0c0d0e0f";
    client.ask(&format!("BF.RESERVE told 0.01 100 KEYED SECRET {secret}"));
    client.ask("BF.RESERVE drawn 0.01 100 KEYED");
    client.ask("BF.RESERVE drawn2 0.01 100 KEYED");
    client.ask("BF.MADD told a b");
    client.ask("BF.MADD drawn a b");
    client.ask("BF.MADD drawn2 a b");
    let payload = |client: &mut Client, name: &str| client.ask(&format!("DUMP {name}"));
    assert_ne!(
        payload(&mut client, "drawn"),
        payload(&mut client, "drawn2"),
        "every filter draws its own"
    );
    assert!(client.say("BF.SCANDUMP told 1").is_error());
    let replies = ["BF.INFO told", "BF.INFO told ALL", "BF.DEBUG told"]
        .map(|line| format!("{:?}", client.ask(line)));
    assert!(replies.iter().all(|reply| !reply.contains(secret)));
    // The replicated command has the secret: without it a replica would have another filter.
    let folder = server.folder().join("appendonlydir");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|file| std::fs::read(file.path()).unwrap());
    let aof = String::from_utf8_lossy(&files.collect::<Vec<_>>().concat()).into_owned();
    assert_eq!(aof.matches("SECRET").count(), 3);
}

/// Sends every chunk of a dump, until the first error.
fn scan(client: &mut Client, name: &str) -> Result<Vec<(i64, Vec<u8>)>, String> {
    let (mut chunks, mut number) = (Vec::new(), 0);
    loop {
        let reply = client.say(&format!("BF.SCANDUMP {name} {number}"));
        if let Reply::Error(text) = reply {
            return Err(text);
        }
        number = reply.array()[0].integer();
        if number == 0 {
            return Ok(chunks);
        }
        chunks.push((number, reply.array()[1].bytes().to_vec()));
    }
}

#[test]
fn a_filter_with_a_secret_is_not_dumped_in_chunks() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let secret: [u8; 16] = core::array::from_fn(|at| at as u8 + 1);
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        for (name, kind) in
            [("k", ""), ("b", " BLOCKED"), ("w", " WINDOW 100"), ("n", " NONSCALING")]
        {
            client.ask(&format!("BF.RESERVE {name} 0.01 100 KEYED SECRET {digits}{kind}"));
            client.ask(&format!("BF.MADD {name} a b"));
            for number in [0, 1, 2, 17, 145] {
                let reply = client.say(&format!("BF.SCANDUMP {name} {number}"));
                assert!(reply.is_error(), "{engine:?} {name} {number}: {reply:?}");
            }
            // A payload has the secret, so reading it needs the permission for DUMP.
            let payload = client.ask(&format!("DUMP {name}"));
            assert!(payload.bytes().windows(16).any(|bytes| bytes == secret), "{engine:?} {name}");
        }
        // A filter that is being loaded may have a secret in its received bytes.
        client.ask("BF.RESERVE open 0.01 100 BLOCKED");
        let chunks = scan(&mut client, "open").expect("it has no secret");
        let number = chunks[0].0.to_string();
        client.call(&[b"BF.LOADCHUNK", b"half", number.as_bytes(), &chunks[0].1]);
        assert!(scan(&mut client, "half").is_err(), "{engine:?}");
    }
}

#[test]
fn refused_writes_leave_transactions_alone_and_accepted_ones_do_not() {
    for engine in engines() {
        let server = Server::start(engine);
        let (mut watcher, mut client) = (server.client(), server.client());
        client.ask("BF.RESERVE b 0.01 1 NONSCALING");
        client.ask("BF.ADD b 1");
        client.ask("CF.RESERVE c 4 BUCKETSIZE 1 EXPANSION 0");
        client.ask("SET s x");
        let executed = |watcher: &mut Client, client: &mut Client, line: &str| {
            watcher.ask("WATCH b c s missing new");
            let reply = client.say(line);
            watcher.ask("MULTI");
            watcher.ask("PING");
            (watcher.ask("EXEC") != Reply::Null, reply)
        };
        let refused = [
            "BF.RESERVE b 0.01 100",
            "BF.RESERVE s 0.01 100",
            "BF.ADD b 2",
            "BF.MADD b 3 4",
            "BF.ADD s 1",
            "BF.INSERT missing NOCREATE ITEMS a",
            "BF.INSERT s ITEMS a",
            "BF.LOADCHUNK b 99999 x",
            "BF.LOADCHUNK missing 5 x",
            "BF.LOADCHUNK s 1 x",
            "BF.MERGE b missing",
            "BF.MERGE s b",
            "CF.RESERVE c 100",
            "CF.RESERVE s 100",
            "CF.ADD s 1",
            "CF.ADDNX s 1",
            "CF.DEL c absent",
            "CF.DEL missing x",
            "CF.INSERT missing NOCREATE ITEMS a",
            "CF.LOADCHUNK c 99999 x",
            "CF.LOADCHUNK missing 5 x",
            "CF.COMPACT s",
            "CF.COMPACT missing",
        ];
        for line in refused {
            let (done, reply) = executed(&mut watcher, &mut client, line);
            assert!(done, "{engine:?}: {line}: {reply:?}");
        }
        let accepted = [
            "BF.RESERVE new 0.01 10",
            "BF.ADD new 1",
            "BF.MADD new 2",
            "BF.INSERT new ITEMS 3",
            "BF.MERGE new b",
            "CF.ADD c 1",
            "CF.ADDNX c 2",
            "CF.DEL c 1",
            "CF.INSERT c ITEMS 1",
            "CF.COMPACT c",
            "DEL new",
            "CF.INSERTNX new ITEMS 3",
        ];
        for line in accepted {
            let (done, reply) = executed(&mut watcher, &mut client, line);
            assert!(!done && !reply.is_error(), "{engine:?}: {line}: {reply:?}");
        }
    }
}

#[test]
fn a_source_that_is_named_often_is_merged_once() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        // Full links of another size, which stay links.
        client.ask("BF.RESERVE s 0.01 10");
        client.ask("BF.RESERVE t 0.01 1000");
        let items: String = (0..300).map(|item| format!(" item:{item}")).collect();
        client.ask(&format!("BF.MADD s{items}"));
        client.ask("BF.ADD t x");
        client.ask("COPY t u");
        client.ask("BF.MERGE t s");
        client.ask("BF.MERGE u s s u s s");
        assert_eq!(client.ask("DUMP t"), client.ask("DUMP u"), "{engine:?}");
    }
}

#[test]
fn a_batch_ends_at_an_amount_of_work_and_the_replica_has_the_same() {
    for engine in engines() {
        // For an item without room, fingerprints are moved 200 times, and back, in buckets that count four
        // times.
        let settings = ["cf-max-moves", "4000", "cf-max-expansions", "65536"];
        let primary = Server::loading(engine, &PRIMARY, &settings);
        let replica = Server::loading(engine, &PRIMARY, &["cf-max-moves", "1"]);
        let mut client = primary.client();
        follow(&primary, &replica);
        client.ask("CF.RESERVE c 1000 BUCKETSIZE 255 MAXITERATIONS 200 EXPANSION 0");
        let inserted = |client: &mut Client, line: &str, count: usize| {
            let reply = client.ask(&format!("{line}{}", " item".repeat(count)));
            let (last, before) = reply.array().split_last().expect("an answer");
            assert!(before.iter().all(|reply| !reply.is_error()), "{engine:?}: {reply:?}");
            (before.to_vec(), last.clone())
        };
        // One item fills its own bucket or two, and then moves between them: 1,600 moves each, and three items
        // exceed 4,000.
        let (before, last) = inserted(&mut client, "CF.INSERT c ITEMS", 1_500);
        let added = before.iter().filter(|reply| reply.integer() == 1).count();
        assert!(matches!(added, 255 | 510) && before.len() == added + 3, "{engine:?}: {added}");
        let is_stopped =
            |reply: &Reply| matches!(reply, Reply::Error(text) if text.contains("cf-max-moves"));
        assert!(is_stopped(&last), "{engine:?}: {last:?}");
        // Searching an item in many sub-filters is work too: a sub-filter has at most 4 copies of an item, so
        // there are 150 or more sub-filters, and every look-up counts 29 or more.
        client.ask("CF.RESERVE n 4 MAXITERATIONS 1");
        (0..12)
            .for_each(|_| assert!(!is_stopped(&inserted(&mut client, "CF.INSERT n ITEMS", 50).1)));
        let (before, last) = inserted(&mut client, "CF.INSERTNX n ITEMS", 1_500);
        assert!(before.len() <= 4_000 / 29 + 1, "{engine:?}: {}", before.len());
        assert!(is_stopped(&last), "{engine:?}: {last:?}");
        wait_for(&mut client, &mut replica.client());
        for name in ["c", "n"] {
            let dump = client.ask(&format!("DUMP {name}"));
            assert_eq!(dump, replica.client().ask(&format!("DUMP {name}")), "{engine:?}");
        }
        if engine != Engine::Redis62 {
            set(&mut client, "cf-max-moves", "0");
            let (before, last) = inserted(&mut client, "CF.INSERT c ITEMS", 1_500);
            assert!(!last.is_error() && before.len() == 1_499, "{engine:?}: {last:?}");
        }
    }
}

/// Everything that is in the folder of the AOF: one file, or several in a folder of their own.
fn aof(server: &Server) -> String {
    let files = |folder| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let all = files(server.folder().to_owned()).chain(files(server.folder().join("appendonlydir")));
    let aofs = all.filter(|file| file.file_name().to_string_lossy().contains(".aof"));
    let bytes: Vec<_> = aofs.map(|file| std::fs::read(file.path()).unwrap()).collect();
    String::from_utf8_lossy(&bytes.concat()).into_owned()
}

const AOF: [&str; 8] = [
    "--save",
    "",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--aof-use-rdb-preamble",
    "no",
];

#[test]
fn only_what_was_taken_of_a_batch_is_passed_on() {
    let secret = "000102030405060708090a0b0c0d0e0f";
    for engine in engines() {
        // A server that gets an error for what was passed on logs it, with its backlog, and may end.
        let panics: &[&str] = match engine {
            Engine::Redis62 => &[],
            _ => &["--propagation-error-behavior", "panic"],
        };
        let mut primary = Server::with(engine, &[&AOF[..], &PRIMARY[2..], panics].concat());
        let mut replica = Server::with(engine, &[&PRIMARY[..], panics].concat());
        let mut client = primary.client();
        follow(&primary, &replica);
        client.ask(&format!("BF.RESERVE k 0.01 1 NONSCALING KEYED SECRET {secret}"));
        client.ask("BF.RESERVE n 0.01 1 NONSCALING");
        client.ask("BF.RESERVE b 0.01 1 NONSCALING BLOCKED");
        // One item is taken, and the rest is not.
        let partly = [
            "BF.MADD k taken refused",
            "BF.MADD n taken taken refused",
            "BF.MADD b taken refused",
            "BF.INSERT i CAPACITY 1 NONSCALING ITEMS taken refused",
            "BF.INSERT j CAPACITY 1 EXPANSION 7 NONSCALING ITEMS taken refused",
        ];
        let refused = |line: &str, client: &mut Client| {
            let reply = client.ask(line);
            let (last, taken) = reply.array().split_last().expect("an answer");
            assert!(last.is_error(), "{engine:?}: {line}: {reply:?}");
            taken.len()
        };
        for line in partly {
            assert!(refused(line, &mut client) > 0, "{engine:?}: {line}");
        }
        for line in ["BF.MADD k refused", "BF.INSERT n ITEMS refused refused2", "BF.MADD b refused"]
        {
            assert_eq!(refused(line, &mut client), 0, "{engine:?}: {line}");
        }
        assert!(client.say("BF.ADD n refused").is_error());
        // 4 slots.
        client.ask("CF.RESERVE c 4 BUCKETSIZE 1 EXPANSION 0");
        client.ask("CF.RESERVE r 4 ERROR 0.01");
        let items: String = (0..40).map(|item| format!(" item{item}")).collect();
        let mut lost = 0;
        for name in ["c", "r"] {
            for command in ["CF.INSERT", "CF.INSERTNX"] {
                let reply = client.ask(&format!("{command} {name} ITEMS{items}"));
                lost += reply.array().iter().filter(|reply| reply.integer() < 0).count();
                let reply = client.ask(&format!("{command} {name} ITEMS refused"));
                assert_eq!(reply.array(), [Reply::Integer(-1)], "{engine:?}: {command} {name}");
            }
        }
        assert!(lost > 40, "{engine:?}: {lost}");
        wait_for(&mut client, &mut replica.client());
        let names = ["k", "n", "b", "i", "j", "c", "r"];
        let dumps = |client: &mut Client| names.map(|name| client.ask(&format!("DUMP {name}")));
        let before = dumps(&mut client);
        assert_eq!(before, dumps(&mut replica.client()), "{engine:?}");
        let clean = |log: String| !log.contains("CRITICAL") && !log.contains(secret);
        assert!(replica.is_alive() && clean(replica.log()), "{engine:?}:\n{}", replica.log());
        assert!(!aof(&primary).contains("refused"), "{engine:?}:\n{}", aof(&primary));
        primary.kill_and_restart();
        assert_eq!(before, dumps(&mut primary.client()), "{engine:?}");
        assert!(clean(primary.log()), "{engine:?}:\n{}", primary.log());
    }
}

#[test]
fn no_secret_is_drawn_in_a_script_that_replicas_may_run_again() {
    for engine in engines() {
        let primary = Server::with(engine, &PRIMARY);
        let mut client = primary.client();
        if engine == Engine::Redis62 {
            client.ask("CONFIG SET lua-replicate-commands no");
        }
        let replica = Server::with(engine, &PRIMARY);
        follow(&primary, &replica);
        let mut script = |rest: &str| {
            let text =
                format!("return redis.call('BF.RESERVE', KEYS[1], 0.01, 100, 'KEYED'{rest})");
            client.call(&[b"EVAL", text.as_bytes(), b"1", b"k"])
        };
        let drawn = script("");
        if engine == Engine::Redis62 {
            let says = matches!(&drawn, Reply::Error(text) if text.contains("give SECRET"));
            assert!(says, "{drawn:?}");
            let given = script(", 'SECRET', '000102030405060708090a0b0c0d0e0f'");
            assert!(!given.is_error(), "{given:?}");
        } else {
            assert!(!drawn.is_error(), "{engine:?}: {drawn:?}");
        }
        client.ask("BF.ADD k item");
        wait_for(&mut client, &mut replica.client());
        assert_eq!(client.ask("DUMP k"), replica.client().ask("DUMP k"), "{engine:?}");
    }
}

/// Every setting has a different value in the second list.
const SETTINGS: [[&str; 18]; 2] = [
    [
        "bf-error-rate",
        "0.001",
        "bf-initial-size",
        "50",
        "bf-expansion-factor",
        "4",
        "cf-bucket-size",
        "4",
        "cf-initial-size",
        "64",
        "cf-max-iterations",
        "30",
        "cf-expansion-factor",
        "2",
        "cf-max-expansions",
        "64",
        "cf-max-moves",
        "1000000",
    ],
    [
        "bf-error-rate",
        "0.2",
        "bf-initial-size",
        "3",
        "bf-expansion-factor",
        "0",
        "cf-bucket-size",
        "255",
        "cf-initial-size",
        "2",
        "cf-max-iterations",
        "1",
        "cf-expansion-factor",
        "0",
        "cf-max-expansions",
        "1",
        "cf-max-moves",
        "1",
    ],
];

/// Every command that writes, on filters of every type, beyond the limits of the second settings.
fn write_everything(client: &mut Client) {
    for line in [
        "BF.RESERVE bf:plain 0.01 10",
        "BF.RESERVE bf:fixed 0.01 300 NONSCALING",
        "BF.RESERVE bf:by3 0.01 10 EXPANSION 3",
        "BF.RESERVE bf:blocked 0.01 10 BLOCKED",
        "BF.RESERVE bf:keyed 0.01 10 KEYED",
        "BF.RESERVE bf:window 0.01 100 WINDOW 100",
        "BF.ADD bf:added first",
        "BF.MADD bf:many first second",
        "BF.INSERT bf:inserted ITEMS first",
        "BF.INSERT bf:small CAPACITY 7 ITEMS first",
        "BF.INSERT bf:rate ERROR 0.3 ITEMS first",
        "CF.RESERVE cf:plain 16",
        "CF.RESERVE cf:buckets 16 BUCKETSIZE 2",
        "CF.RESERVE cf:rated 300 ERROR 0.001",
        "CF.ADD cf:added first",
        "CF.ADDNX cf:new first",
        "CF.INSERT cf:inserted ITEMS first",
        "CF.INSERTNX cf:insertednew CAPACITY 24 ITEMS first first",
    ] {
        client.ask(line);
    }
    let batch =
        |from: u32| (from..from + 20).map(|item| format!(" item:{item}")).collect::<String>();
    let names = texts(&client.ask("KEYS *"));
    for name in names.iter().filter(|name| name.contains("f:")) {
        for from in (0..200).step_by(40) {
            let lines = match name.starts_with("bf") {
                true => [
                    format!("BF.MADD {name}{}", batch(from)),
                    format!("BF.INSERT {name} ITEMS{}", batch(from + 20)),
                ],
                false => [
                    format!("CF.INSERT {name} ITEMS{}", batch(from)),
                    format!("CF.INSERTNX {name} ITEMS{}", batch(from + 20)),
                ],
            };
            lines.iter().for_each(|line| _ = client.ask(line));
        }
        let family = if name.starts_with("bf") { "BF" } else { "CF" };
        for item in 300..320 {
            client.ask(&format!("{family}.ADD {name} single:{item}"));
        }
    }
    for item in 0..60 {
        client.ask(&format!("CF.DEL cf:plain item:{item}"));
        client.ask(&format!("CF.ADDNX cf:buckets other:{item}"));
    }
    client.ask("CF.COMPACT cf:plain");
    client.ask("BF.MERGE bf:merged bf:plain bf:by3 bf:added");
    for (name, family) in
        [("bf:plain", "BF"), ("bf:blocked", "BF"), ("cf:plain", "CF"), ("cf:rated", "CF")]
    {
        let mut number = 0;
        loop {
            let reply = client.ask(&format!("{family}.SCANDUMP {name} {number}"));
            number = reply.array()[0].integer();
            if number == 0 {
                break;
            }
            let (load, copy, number) =
                (format!("{family}.LOADCHUNK"), format!("copy:{name}"), number.to_string());
            client.call(&[
                load.as_bytes(),
                copy.as_bytes(),
                number.as_bytes(),
                reply.array()[1].bytes(),
            ]);
        }
    }
}

fn texts(reply: &Reply) -> Vec<String> {
    let mut texts: Vec<_> = reply
        .array()
        .iter()
        .map(|text| String::from_utf8_lossy(text.bytes()).into_owned())
        .collect();
    texts.sort_unstable();
    texts
}

/// All keys, and their payloads.
fn contents(client: &mut Client) -> Vec<(String, Vec<u8>)> {
    let names = texts(&client.ask("KEYS *f:*"));
    let payload = |name: &String| client.ask(&format!("DUMP {name}")).bytes().to_vec();
    let payloads: Vec<_> = names.iter().map(payload).collect();
    names.into_iter().zip(payloads).collect()
}

#[track_caller]
fn assert_same(engine: Engine, before: &[(String, Vec<u8>)], after: &[(String, Vec<u8>)]) {
    let names =
        |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(before), names(after), "{engine:?}");
    let differ: Vec<_> = before
        .iter()
        .zip(after)
        .filter(|(one, other)| one != other)
        .map(|(one, _)| &one.0)
        .collect();
    assert!(differ.is_empty(), "{engine:?}: {differ:?} differ");
}

#[test]
fn settings_of_a_replica_decide_nothing() {
    for engine in engines() {
        for [one, other] in [SETTINGS, [SETTINGS[1], SETTINGS[0]]] {
            let primary = Server::loading(engine, &PRIMARY, &one);
            // A bucket of 255 in a filter of 2 is too large for clients of the second server.
            let roomy = one[7] == "255";
            let mut client = primary.client();
            if roomy {
                set(&mut client, "cf-initial-size", "1024");
            }
            let replica = Server::loading(engine, &PRIMARY, &other);
            let mut second = replica.client();
            second.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
            wait_for(&mut client, &mut second);
            if !roomy || engine != Engine::Redis62 {
                write_all(&mut client, roomy);
                wait_for(&mut client, &mut second);
                assert_same(engine, &contents(&mut client), &contents(&mut second));
            }
        }
    }
}

/// Changes a setting while the server runs, if the engine supports that.
fn set(client: &mut Client, name: &str, value: &str) {
    let done = [name.to_owned(), format!("bf.{name}")]
        .iter()
        .any(|name| !client.say(&format!("CONFIG SET {name} {value}")).is_error());
    assert!(done || client.say("CONFIG GET bf.*").array().is_empty(), "{name}");
}

/// Writes as much as the settings allow. With the second settings filters do not grow.
fn write_all(client: &mut Client, few: bool) {
    if few {
        for line in [
            "BF.RESERVE bf:a 0.01 10",
            "BF.ADD bf:b x",
            "BF.INSERT bf:c ITEMS x",
            "BF.MADD bf:d x y",
            "CF.RESERVE cf:e 1000",
        ] {
            client.ask(line);
        }
        // With cf-max-expansions 1 every item is refused, and the filters that were created for them stay.
        let refused = ["CF.ADD cf:f x", "CF.INSERT cf:g ITEMS x", "CF.INSERTNX cf:h ITEMS x"];
        for line in refused {
            assert!(client.say(line).is_error(), "{line}");
        }
        set(client, "cf-max-expansions", "2");
        for line in ["CF.ADD cf:b x", "CF.INSERT cf:c ITEMS x", "CF.INSERTNX cf:d ITEMS x"] {
            client.ask(line);
        }
        // Items without room on the primary have no room on the replica either.
        for item in 0..12 {
            client.say(&format!("BF.ADD bf:a item:{item}"));
            client.say(&format!("BF.MADD bf:b item:{item} more:{item}"));
        }
    } else {
        write_everything(client);
    }
}

#[test]
fn settings_at_the_time_of_a_replay_decide_nothing() {
    for engine in engines() {
        let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::loading(engine, &options, &SETTINGS[0]);
        let mut client = server.client();
        write_everything(&mut client);
        let before = contents(&mut client);
        server.kill_and_restart_with(&SETTINGS[1]);
        assert_same(engine, &before, &contents(&mut server.client()));
    }
}

#[test]
fn listeners_hear_of_every_write() {
    for engine in engines() {
        let server = Server::with(engine, &["--save", "", "--notify-keyspace-events", "KEA"]);
        let (mut listener, mut client) = (server.client(), server.client());
        listener.ask("PSUBSCRIBE __keyevent@0__:*");
        let lines = [
            ("BF.RESERVE a 0.01 100", "bf.reserve"),
            ("BF.ADD a 1", "bf.add"),
            ("BF.MADD a 1 2", "bf.madd"),
            ("BF.INSERT a ITEMS 1", "bf.insert"),
            ("BF.MERGE a a", "bf.merge"),
            ("CF.RESERVE c 100", "cf.reserve"),
            ("CF.ADD c 1", "cf.add"),
            ("CF.ADDNX c 2", "cf.addnx"),
            ("CF.INSERT c ITEMS 1", "cf.insert"),
            ("CF.INSERTNX c ITEMS 3", "cf.insertnx"),
            ("CF.DEL c 1", "cf.del"),
            ("CF.COMPACT c", "cf.compact"),
        ];
        for (line, event) in lines {
            client.ask(line);
            let channel = format!("__keyevent@0__:{event}");
            let heard = (0..3).any(|_| {
                let message = listener.reply().expect("a message");
                message.array()[2].bytes() == channel.as_bytes()
            });
            assert!(heard, "{engine:?}: {line}");
        }
    }
}
