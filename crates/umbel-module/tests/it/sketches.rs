//! Count-min, top-k and t-digest keys of the real RedisBloom: kept, and returned byte for byte.

use super::client::{Client, Reply};
use super::crc64::seal;
use super::server::{Engine, Server, engines};
use std::path::{Path, PathBuf};

const VERSIONS: [&str; 2] = ["2.6.28", "8.8.0"];
const KEYS: [&str; 3] = ["cms:a", "topk:a", "td:a"];

fn golden(version: &str, kind: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/redisbloom");
    folder.join(format!("redisbloom-{version}-sketches.{kind}"))
}

/// RedisBloom's payload of this key, in the form for the oldest engine: with an older version, and its
/// checksum.
fn payload(version: &str, key: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(golden(version, "json")).expect("the golden file");
    let (_, rest) = text.split_once(&format!("\"{key}\": \"")).expect("the key is in it");
    let digits = rest.split_once('"').expect("a text ends").0.as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hexadecimal") as u8;
    let mut payload: Vec<u8> =
        digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    let version = payload.len() - 10;
    payload[version..version + 2].copy_from_slice(&9_u16.to_le_bytes());
    seal(&mut payload);
    payload
}

fn restore_all(client: &mut Client, version: &str) {
    for key in KEYS {
        let reply = client.call(&[b"RESTORE", key.as_bytes(), b"0", &payload(version, key)]);
        assert_eq!(reply, Reply::Text(b"OK".to_vec()), "{key}");
    }
}

/// Checks that all keys have RedisBloom's bytes, except for the RDB version and the checksum.
#[track_caller]
fn assert_golden(client: &mut Client, version: &str, what: &str) {
    for key in KEYS {
        let (expected, dump) = (payload(version, key), client.ask(&format!("DUMP {key}")));
        let (expected, dump) = (&expected[..expected.len() - 10], dump.bytes());
        assert_eq!(&dump[..dump.len() - 10], expected, "{what}: {key} of {version}");
    }
}

#[test]
fn sketches_go_through_everything_that_keeps_data() {
    let aof = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
    let options = [&super::replication::PRIMARY[..], &aof].concat();
    for engine in engines() {
        for version in VERSIONS {
            let mut server = Server::with(engine, &options);
            let mut client = server.client();
            restore_all(&mut client, version);
            assert_golden(&mut client, version, &format!("{engine:?}, restored"));
            for key in KEYS {
                client.ask(&format!("COPY {key} copy REPLACE"));
                assert_eq!(client.ask("DUMP copy"), client.ask(&format!("DUMP {key}")));
                // The bytes of a t-digest are uncompressed doubles.
                assert!(client.ask("MEMORY USAGE copy").integer() > 600, "{engine:?} {key}");
            }
            client.ask("DEL copy");
            client.ask("PEXPIRE cms:a 100000000");
            client.ask("BGREWRITEAOF");
            super::persistence::wait_for_rewrite(&mut client);
            server.kill_and_restart();
            let mut client = server.client();
            assert_golden(&mut client, version, &format!("{engine:?}, from the AOF"));
            assert!(client.ask("PTTL cms:a").integer() > 0, "{engine:?}");
            client.ask("DEBUG RELOAD");
            assert_golden(&mut client, version, &format!("{engine:?}, from an RDB file"));
            let replica = Server::start(engine);
            super::replication::follow(&server, &replica);
            assert_golden(&mut replica.client(), version, &format!("{engine:?}, on a replica"));
            for key in KEYS {
                assert_eq!(client.ask(&format!("DEL {key}")).integer(), 1);
            }
        }
    }
}

#[test]
fn a_server_starts_with_a_file_that_has_sketches() {
    for engine in engines() {
        for version in VERSIONS {
            // Engines refuse files of unknown RDB versions.
            let readable = match version {
                "8.8.0" => engine == Engine::Redis80,
                _ => engine != Engine::Redis62,
            };
            if readable {
                let place = |folder: &Path| {
                    std::fs::copy(golden(version, "rdb"), folder.join("dump.rdb")).expect("a copy");
                };
                let server = Server::set_up(engine, &["--save", ""], &[], place);
                let mut client = server.client();
                assert_golden(&mut client, version, &format!("{engine:?}, started"));
                assert_eq!(client.ask("BF.EXISTS bf:beside key-0").integer(), 1);
            }
        }
    }
}

#[test]
fn commands_of_sketches_say_that_they_are_not_served() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        restore_all(&mut client, "2.6.28");
        for line in [
            "CMS.INCRBY cms:a item-1 1",
            "TOPK.LIST topk:a",
            "TDIGEST.QUANTILE td:a 0.5",
            "cms.initbydim new 2 2",
        ] {
            let reply = client.say(line);
            let clear = matches!(&reply, Reply::Error(text) if text.starts_with("ERR not served"));
            assert!(clear, "{engine:?} {line}: {reply:?}");
        }
        assert_golden(&mut client, "2.6.28", &format!("{engine:?}"));
        for line in ["BF.ADD cms:a x", "CF.ADD topk:a x", "BF.INFO td:a"] {
            let reply = client.say(line);
            let wrong = matches!(&reply, Reply::Error(text) if text.starts_with("WRONGTYPE"));
            assert!(wrong, "{engine:?} {line}: {reply:?}");
        }
    }
}

#[test]
fn an_aof_with_commands_of_sketches_is_not_half_loaded() {
    for engine in engines() {
        let commands = [
            super::client::command(&[b"BF.ADD", b"a", b"1"]),
            super::client::command(&[b"CMS.INITBYDIM", b"c", b"10", b"5"]),
        ];
        let place = |folder: &Path| {
            std::fs::write(folder.join("appendonly.aof"), commands.concat()).expect("a file");
        };
        let start = || Server::set_up(engine, &["--save", "", "--appendonly", "yes"], &[], place);
        let panic = std::panic::catch_unwind(start).expect_err("the engine does not start");
        let log = panic.downcast_ref::<String>().expect("it says why");
        assert!(log.contains("BGREWRITEAOF"), "{engine:?}: {log}");
    }
}

#[test]
fn damaged_sketches_end_no_server() {
    for engine in engines() {
        let mut server = Server::start(engine);
        let mut client = server.client();
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..900 {
            let mut damaged = payload("8.8.0", KEYS[round % 3]);
            // After the type and its name, before the checksum.
            let end = damaged.len() - 10;
            for _ in 0..=random(3) {
                let at = 10 + random(end.min(80) - 10);
                damaged[at] ^= 1 << random(8);
            }
            if round % 4 == 0 {
                damaged.drain(10 + random(end - 10)..end);
            }
            seal(&mut damaged);
            let reply = client.call(&[b"RESTORE", b"k", b"0", &damaged, b"REPLACE"]);
            if !reply.is_error() {
                let dump = client.ask("DUMP k").bytes().to_vec();
                client.call(&[b"RESTORE", b"again", b"0", &dump, b"REPLACE"]);
                assert_eq!(client.ask("DUMP again").bytes(), dump);
            }
        }
        assert!(server.is_alive());
    }
}
