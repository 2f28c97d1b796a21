//! Damaged payloads, then every command: the server survives.
//!
//! `UMBEL_HOSTILE=12000 cargo test -p umbel-module --test it hostile -- --nocapture` tries 12,000 for each of nine filters, in
//! each of two ways and three engines, and says how many were accepted. A sample under valgrind:
//!
//! ```text
//! UMBEL_UNDER="valgrind -q --error-exitcode=99 --soname-synonyms=somalloc=libjemalloc*" UMBEL_ENGINE=Redis70 \
//!     UMBEL_HOSTILE=100 cargo test -p umbel-module --test it hostile -- --nocapture
//! ```

use super::client::{Client, Reply, command};
use super::crc64::seal;
use super::data::FILTERS;
use super::server::{Server, engines};
use umbel_laws::split_mix;

/// Damaged payloads for each filter.
fn cases() -> u64 {
    std::env::var("UMBEL_HOSTILE").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

/// Pseudo-random numbers with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 += 1;
        split_mix(self.0) % sides.max(1)
    }
}

/// Changes some bytes, except the first `head` and the last `tail` ones.
fn damage(bytes: &mut Vec<u8>, head: usize, tail: usize, dice: &mut Dice) {
    const NASTY: [u8; 10] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xff, 0x40, 0x3f, 0xc0];
    for _ in 0..=dice.roll(4) {
        let len = bytes.len() - head - tail;
        if len == 0 {
            return;
        }
        let at = head + dice.roll(len as u64) as usize;
        match dice.roll(8) {
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = NASTY[dice.roll(10) as usize],
            2 => bytes[at] = dice.roll(256) as u8,
            3 => _ = bytes.remove(at),
            4 => bytes.insert(at, dice.roll(256) as u8),
            // A 64-bit number of the RDB encoding, with an arbitrary value.
            5 => {
                let number = split_mix(dice.roll(u64::MAX)) >> dice.roll(64);
                bytes.splice(at..at + 1, [&[0x81][..], &number.to_be_bytes()].concat());
            }
            6 => {
                let end = (at + dice.roll(16) as usize).min(bytes.len() - tail);
                bytes[at..end].fill(NASTY[dice.roll(10) as usize]);
            }
            _ => {
                let end = (at + dice.roll(9) as usize).min(bytes.len() - tail);
                bytes.drain(at..end);
            }
        }
    }
}

/// Commands on a key with a damaged value.
const AFTERWARDS: [&str; 22] = [
    "BF.EXISTS k a",
    "BF.MEXISTS k a b c",
    "BF.ADD k a",
    "BF.MADD k a b c d e f g h",
    "BF.INSERT k ITEMS x y",
    "BF.CARD k",
    "BF.INFO k",
    "BF.INFO k ALL",
    "BF.DEBUG k",
    "BF.SCANDUMP k 0",
    "BF.SCANDUMP k 1",
    "BF.MERGE k k",
    "CF.EXISTS k a",
    "CF.INSERT k ITEMS a b c d e f",
    "CF.ADDNX k z",
    "CF.COUNT k a",
    "CF.DEL k a",
    "CF.COMPACT k",
    "CF.INFO k ALL",
    "CF.SCANDUMP k 1",
    "MEMORY USAGE k",
    "DUMP k",
];

/// Sends all commands at once; returns how many of those in `before` succeeded.
fn try_out(client: &mut Client, before: &[Vec<u8>]) -> usize {
    let mut bytes = before.concat();
    for line in AFTERWARDS {
        bytes.extend(command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()));
    }
    bytes.extend(command(&[b"DEL", b"k"]));
    client.send(&bytes).expect("the server is alive");
    let replies = before.len() + AFTERWARDS.len() + 1;
    let all: Vec<Reply> =
        (0..replies).map(|_| client.reply().expect("the server is alive")).collect();
    all[..before.len()].iter().filter(|reply| !reply.is_error()).count()
}

fn small_filters(client: &mut Client) {
    for (name, make) in FILTERS {
        // A tenth of the usual size, so that more of the damage hits fields and not bits.
        let mut words: Vec<String> = make.split(' ').map(str::to_owned).collect();
        for word in words
            .iter_mut()
            .filter(|word| matches!(word.as_str(), "2000" | "1000" | "1500" | "200" | "100" | "50"))
        {
            *word = "20".to_owned();
        }
        client.ask(&words.join(" "));
        let items: Vec<String> = (0..15).map(|item| format!("item:{item}")).collect();
        let add = if name == "cuckoo" || name == "buckets" || name == "rated" {
            "CF.INSERT"
        } else {
            "BF.INSERT"
        };
        client.ask(&format!("{add} {name} ITEMS {}", items.join(" ")));
    }
    client.ask("BF.MADD plain 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30");
}

#[test]
fn damaged_restores_do_not_kill_the_server() {
    for engine in engines() {
        let mut server = Server::start(engine);
        let mut client = server.client();
        client.ask("CONFIG SET rdbcompression no");
        client.ask("CONFIG SET maxmemory 300mb");
        small_filters(&mut client);
        for (name, _) in FILTERS {
            let payload = client.ask(&format!("DUMP {name}")).bytes().to_vec();
            let mut dice = Dice(split_mix(name.len() as u64) ^ u64::from(name.as_bytes()[0]));
            let mut accepted = 0;
            for case in 0..cases() {
                let mut damaged = payload.clone();
                if case > 0 {
                    // The type and the module's name mostly stay, and so does the version at the end.
                    let head = if dice.roll(20) == 0 { 1 } else { 10 };
                    damage(&mut damaged, head, 10, &mut dice);
                }
                seal(&mut damaged);
                accepted += try_out(
                    &mut client,
                    &[command(&[b"RESTORE", b"k", b"0", &damaged, b"REPLACE"])],
                );
            }
            eprintln!("{engine:?} {name}: {accepted} of {} payloads accepted", cases());
            assert!(accepted > 0, "{engine:?} {name}: the undamaged one is accepted");
        }
        small_filters_are_whole(&mut client);
        no_complaints(&mut server);
    }
}

/// Checks that the server is alive, and that valgrind has found nothing.
fn no_complaints(server: &mut Server) {
    assert!(server.is_alive());
    let log = server.log();
    assert!(
        !log.contains("==ERROR") && !log.contains("Invalid read") && !log.contains("Invalid write"),
        "{log}"
    );
    assert!(!log.contains("uninitialised") && !log.contains("panicked"), "{log}");
}

fn small_filters_are_whole(client: &mut Client) {
    for (name, _) in FILTERS {
        let family =
            if name == "cuckoo" || name == "buckets" || name == "rated" { "CF" } else { "BF" };
        for item in 0..15 {
            assert_eq!(
                client.ask(&format!("{family}.EXISTS {name} item:{item}")).integer(),
                1,
                "{name}"
            );
        }
    }
}

#[test]
fn damaged_chunks_do_not_kill_the_server() {
    for engine in engines() {
        let mut server = Server::start(engine);
        let mut client = server.client();
        // The engines' compression reads uninitialised memory by design, which valgrind would report.
        client.ask("CONFIG SET rdbcompression no");
        client.ask("CONFIG SET maxmemory 300mb");
        small_filters(&mut client);
        // Filters with a secret are not dumped in chunks. The tests of `own::stream` damage theirs.
        for (name, _) in FILTERS.iter().filter(|(_, make)| !make.contains("KEYED")) {
            let family = if matches!(*name, "cuckoo" | "buckets" | "rated") { "CF" } else { "BF" };
            let load = format!("{family}.LOADCHUNK");
            let header =
                client.ask(&format!("{family}.SCANDUMP {name} 0")).array()[1].bytes().to_vec();
            let first = client.ask(&format!("{family}.SCANDUMP {name} 1"));
            let (number, chunk) = (first.array()[0].integer(), first.array()[1].bytes().to_vec());
            let mut dice =
                Dice(split_mix(0xc0ffee ^ name.len() as u64) ^ u64::from(name.as_bytes()[0]));
            let mut accepted = 0;
            for case in 0..cases() {
                let (mut header, mut chunk, mut number) = (header.clone(), chunk.clone(), number);
                if case > 0 {
                    match dice.roll(4) {
                        0 => number = (split_mix(dice.roll(u64::MAX)) >> dice.roll(64)) as i64,
                        1 => damage(&mut chunk, 0, 0, &mut dice),
                        _ => damage(&mut header, 0, 0, &mut dice),
                    }
                }
                let number = number.to_string();
                let header = command(&[load.as_bytes(), b"k", b"1", &header]);
                let chunk = command(&[load.as_bytes(), b"k", number.as_bytes(), &chunk]);
                accepted += try_out(&mut client, &[header, chunk]);
            }
            eprintln!("{engine:?} {name}: {accepted} of {} chunks accepted", 2 * cases());
            assert!(accepted >= 2, "{engine:?} {name}: the undamaged ones are accepted");
        }
        small_filters_are_whole(&mut client);
        no_complaints(&mut server);
    }
}
