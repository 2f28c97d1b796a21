//! All ways in which an engine stores data: files, payloads, copies.

use super::client::{Client, Reply};
use super::data::{FILTERS, check_all, digests, dumps, is_cuckoo, make_all};
use super::server::{Engine, PANIC_WHILE_SAVING, Server, engines};

#[test]
fn an_rdb_file_brings_everything_back() {
    for engine in engines() {
        let mut server = Server::with(engine, &["--save", "3600 100000"]);
        let mut client = server.client();
        make_all(&mut client);
        let before = (digests(&mut client), dumps(&mut client));
        client.ask("SAVE");
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!((digests(&mut client), dumps(&mut client)), before, "{engine:?}");
        check_all(&mut client);
        client.ask("DEBUG RELOAD");
        assert_eq!((digests(&mut client), dumps(&mut client)), before, "{engine:?}");
    }
}

#[test]
fn an_aof_file_brings_everything_back_as_written_and_rewritten() {
    for engine in engines() {
        let options = [
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--aof-use-rdb-preamble",
            "no",
        ];
        let mut server = Server::with(engine, &options);
        let mut client = server.client();
        make_all(&mut client);
        let before = digests(&mut client);
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(digests(&mut client), before, "{engine:?}, as written");
        client.ask("BGREWRITEAOF");
        wait_for_rewrite(&mut client);
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(digests(&mut client), before, "{engine:?}, rewritten");
        check_all(&mut client);
    }
}

/// The text of a field of `INFO persistence`, once no save is running.
fn saved(client: &mut Client, field: &str) -> String {
    for _ in 0..1_500 {
        let info = client.ask("INFO persistence");
        let text = String::from_utf8_lossy(info.bytes()).into_owned();
        let is =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        if is("rdb_bgsave_in_progress:").as_deref() == Some("0")
            && is("aof_rewrite_in_progress:").as_deref() == Some("0")
            && is("aof_rewrite_scheduled:").as_deref() == Some("0")
        {
            return is(&format!("{field}:")).expect("the field is there");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("nothing is saved within half a minute");
}

/// Only in debug builds, which `cargo test` uses: see `datatype.rs`.
#[test]
fn a_panic_while_saving_is_a_save_that_failed() {
    for engine in engines() {
        let mut server = Server::with(engine, &["--save", "", PANIC_WHILE_SAVING]);
        let mut client = server.client();
        client.ask("SET s x");
        client.ask("SAVE");
        let before = std::fs::read(server.folder().join("dump.rdb")).expect("a file");
        client.ask("BF.ADD a 1");
        client.ask("BGSAVE");
        assert_eq!(saved(&mut client, "rdb_last_bgsave_status"), "err", "{engine:?}");
        let after = std::fs::read(server.folder().join("dump.rdb")).expect("a file");
        assert_eq!(before, after, "{engine:?}: the last good file stays");
        client.ask("CONFIG SET aof-use-rdb-preamble no");
        client.ask("BGREWRITEAOF");
        assert_eq!(saved(&mut client, "aof_last_bgrewrite_status"), "err", "{engine:?}");
        assert!(server.is_alive() && client.ask("BF.EXISTS a 1").integer() == 1);
        assert!(server.log().contains("bug of the module"), "{engine:?}: {}", server.log());
        // A save in the foreground has no child that could fail alone: the existing file is more valuable.
        assert!(client.try_call(&[b"SAVE"]).is_err(), "{engine:?}");
        let after = std::fs::read(server.folder().join("dump.rdb")).expect("a file");
        assert_eq!(before, after, "{engine:?}");
    }
}

pub(crate) fn wait_for_rewrite(client: &mut Client) {
    for _ in 0..1_500 {
        let info = client.ask("INFO persistence");
        let text = String::from_utf8_lossy(info.bytes()).into_owned();
        let idle =
            text.contains("aof_rewrite_in_progress:0") && text.contains("aof_rewrite_scheduled:0");
        if idle {
            assert!(text.contains("aof_last_bgrewrite_status:ok"), "{text}");
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the AOF is not rewritten within half a minute");
}

#[test]
fn payloads_and_copies_are_equal() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        make_all(&mut client);
        let before = digests(&mut client);
        let payloads = dumps(&mut client);
        for ((name, _), payload) in FILTERS.iter().zip(&payloads) {
            assert_eq!(client.ask(&format!("COPY {name} copy")).integer(), 1);
            assert_eq!(client.ask("DUMP copy").bytes(), payload, "{engine:?} {name}");
            client.ask(&format!("DEL {name}"));
            let restored = client.call(&[b"RESTORE", name.as_bytes(), b"0", payload]);
            assert_eq!(restored, Reply::Text(b"OK".to_vec()), "{engine:?} {name}");
            // The copy is independent.
            let add = if is_cuckoo(name) { "CF.ADD" } else { "BF.ADD" };
            for item in 0..100 {
                client.ask(&format!("{add} copy other:{item}"));
            }
            assert_ne!(client.ask("DUMP copy").bytes(), payload);
            assert_eq!(client.ask("UNLINK copy").integer(), 1);
        }
        assert_eq!(digests(&mut client), before);
        check_all(&mut client);
    }
}

#[test]
fn payloads_move_between_engines() {
    let engines = engines();
    let mut payloads = Vec::new();
    let mut digest = Vec::new();
    for (number, engine) in engines.iter().enumerate() {
        let server = Server::start(*engine);
        let mut client = server.client();
        if number == 0 {
            // The oldest engine: engines refuse payloads of unknown RDB versions.
            make_all(&mut client);
            (payloads, digest) = (dumps(&mut client), digests(&mut client));
            continue;
        }
        for ((name, _), payload) in FILTERS.iter().zip(&payloads) {
            client.call(&[b"RESTORE", name.as_bytes(), b"0", payload]);
        }
        assert_eq!(digests(&mut client), digest, "{engine:?}");
        check_all(&mut client);
    }
}

#[test]
fn chunks_move_every_filter() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        make_all(&mut client);
        let before = digests(&mut client);
        // Filters with a secret move by DUMP and RESTORE.
        for (name, _) in FILTERS.iter().filter(|(_, make)| !make.contains("KEYED")) {
            let family = if is_cuckoo(name) { "CF" } else { "BF" };
            let mut chunks = Vec::new();
            let mut number = 0;
            loop {
                let reply = client.ask(&format!("{family}.SCANDUMP {name} {number}"));
                number = reply.array()[0].integer();
                if number == 0 {
                    break;
                }
                chunks.push((number, reply.array()[1].bytes().to_vec()));
            }
            client.ask(&format!("DEL {name}"));
            let load = format!("{family}.LOADCHUNK");
            for (number, chunk) in chunks {
                let number = number.to_string();
                let words = [load.as_bytes(), name.as_bytes(), number.as_bytes(), &chunk];
                assert_eq!(client.call(&words), Reply::Text(b"OK".to_vec()), "{engine:?} {name}");
            }
        }
        assert_eq!(digests(&mut client), before, "{engine:?}");
        check_all(&mut client);
    }
}

/// An RDB payload of RedisBloom, put together from FORMATS.md by hand: entries 100, error 0.005, 8 hashes, 1152 bits, of
/// which the eight of the item `cfq` are set.
#[test]
fn a_payload_written_by_hand_is_read_and_written_again() {
    let server = Server::start(Engine::Redis70);
    let mut client = server.client();
    client.ask("BF.ADD model cfq");
    let payload = client.ask("DUMP model").bytes().to_vec();
    let mut bits = [0_u8; 144];
    for bit in [376, 457, 666, 747, 828, 909, 990, 1071] {
        bits[bit / 8] |= 1 << (bit % 8);
    }
    // Type 7 is a module's; its id is the name in six bits a letter, and the version.
    let mut expected = vec![7];
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let id = b"MBbloom--".iter().fold(0_u64, |id, letter| {
        id << 6 | letters.iter().position(|known| known == letter).unwrap() as u64
    });
    expected.push(0x81);
    expected.extend((id << 10 | 4).to_be_bytes());
    let unsigned = |expected: &mut Vec<u8>, value: u64| {
        expected.push(2);
        match value {
            0..64 => expected.push(value as u8),
            _ => expected.extend([0x40 | (value >> 8) as u8, value as u8]),
        }
    };
    let double = |expected: &mut Vec<u8>, value: f64| {
        expected.push(4);
        expected.extend(value.to_le_bytes());
    };
    for field in [1, 1, 5, 2, 100] {
        unsigned(&mut expected, field);
    }
    double(&mut expected, 0.005);
    unsigned(&mut expected, 8);
    double(&mut expected, -(0.005_f64.ln()) / 0.480453013918201);
    unsigned(&mut expected, 1152);
    unsigned(&mut expected, 0);
    expected.extend([5, 0x40, 144]);
    expected.extend(bits);
    unsigned(&mut expected, 1);
    expected.push(0);
    client.ask("CONFIG SET rdbcompression no");
    let plain = client.ask("DUMP model").bytes().to_vec();
    assert_eq!(plain[..plain.len() - 10], expected[..]);
    let footer = &plain[plain.len() - 10..plain.len() - 8];
    let mut by_hand = [&expected[..], footer, &[0; 8]].concat();
    super::crc64::seal(&mut by_hand);
    client.ask("DEL model");
    client.call(&[b"RESTORE", b"model", b"0", &by_hand]);
    assert_eq!(client.ask("BF.EXISTS model cfq").integer(), 1);
    assert_eq!(client.ask("BF.EXISTS model cfr").integer(), 0);
    client.ask("CONFIG SET rdbcompression yes");
    assert_eq!(client.ask("DUMP model").bytes(), payload);
}
