//! Data of the real RedisBloom 2.6.28, 2.8.20 and 8.8.0: RDB files, AOFs, payloads and chunks load, give the
//! same answers, and are written back byte for byte. `tests/golden/redisbloom/README.md` says how they were
//! created.

use super::client::{Client, Reply};
use super::crc64::seal;
use super::server::{Engine, Server, engines};
use serde_json::Value;
use std::path::PathBuf;

const VERSIONS: [&str; 3] = ["2.6.28", "2.8.20", "8.8.0"];

fn path(version: &str, ending: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/redisbloom/redisbloom-{version}.{ending}"))
}

/// A key of the real server, with its replies.
struct Golden {
    key: String,
    present: String,
    absent: String,
    info: Vec<Value>,
    dump: Vec<u8>,
    chunks: Vec<(i64, Vec<u8>)>,
}

fn bytes(hexadecimal: &Value) -> Vec<u8> {
    let digits = hexadecimal.as_str().expect("digits").as_bytes();
    let byte = |pair: &[u8]| {
        let pair = core::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(pair, 16).expect("digits")
    };
    digits.chunks(2).map(byte).collect()
}

fn golden(version: &str) -> Vec<Golden> {
    let text = std::fs::read_to_string(path(version, "json")).expect("the file is in the tree");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let chunk = |chunk: &Value| (chunk[0].as_i64().expect("a number"), bytes(&chunk[1]));
    let key = |(key, value): (&String, &Value)| Golden {
        key: key.clone(),
        present: text(&value["present"]),
        absent: text(&value["absent"]),
        info: value["info"].as_array().expect("pairs").clone(),
        dump: bytes(&value["dump"]),
        chunks: value["chunks"].as_array().expect("chunks").iter().map(chunk).collect(),
    };
    let keys: Vec<_> = all.as_object().expect("keys").iter().map(key).collect();
    assert_eq!(keys.len(), 11, "{version}");
    keys
}

/// The bytes of a payload without version and checksum.
fn value(payload: &[u8]) -> &[u8] {
    &payload[..payload.len() - 10]
}

impl Golden {
    fn family(&self) -> &str {
        if self.key.starts_with("cf:") { "CF" } else { "BF" }
    }

    fn found(&self, client: &mut Client, prefix: &str, count: usize) -> String {
        let items = (0..count).map(|item| format!("{prefix}-{item}")).collect::<Vec<_>>().join(" ");
        let reply = client.ask(&format!("{}.MEXISTS {} {items}", self.family(), self.key));
        reply.array().iter().map(|found| found.integer().to_string()).collect()
    }

    /// Checks that a server has the same value under this key, by every command that shows it.
    fn check(&self, client: &mut Client, way: &str) {
        let Self { key, .. } = self;
        assert_eq!(self.found(client, "key", self.present.len()), self.present, "{way}: {key}");
        assert_eq!(self.found(client, "absent", self.absent.len()), self.absent, "{way}: {key}");
        let info = client.ask(&format!("{}.INFO {key}", self.family()));
        let info: Vec<Value> = info.array().iter().map(json).collect();
        assert_eq!(info, self.info, "{way}: {key}");
        let dump = client.ask(&format!("DUMP {key}"));
        assert!(value(dump.bytes()) == value(&self.dump), "{way}: {key}: the payload differs");
        let (mut number, mut chunks) = (0, Vec::new());
        loop {
            let reply = client.ask(&format!("{}.SCANDUMP {key} {number}", self.family()));
            number = reply.array()[0].integer();
            if number == 0 {
                break;
            }
            chunks.push((number, reply.array()[1].bytes().to_vec()));
        }
        assert!(chunks == self.chunks, "{way}: {key}: the chunks differ");
    }
}

fn json(reply: &Reply) -> Value {
    match reply {
        Reply::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        Reply::Integer(value) => (*value).into(),
        Reply::Null => Value::Null,
        other => panic!("unexpected: {other:?}"),
    }
}

/// The RDB version of an engine.
fn rdb_version(client: &mut Client) -> u16 {
    client.ask("SET version x");
    let dump = client.ask("DUMP version").bytes().to_vec();
    client.ask("DEL version");
    u16::from_le_bytes([dump[dump.len() - 10], dump[dump.len() - 9]])
}

/// Whether an engine of the first RDB version reads files of the second one. Valkey, from 80 on, does not read those of
/// Redis from 12 on.
fn reads(engine: u16, file: u16) -> bool {
    file <= engine && !(engine >= 80 && (12..80).contains(&file))
}

/// The version in the first nine bytes of an RDB file.
fn file_version(file: &[u8]) -> u16 {
    core::str::from_utf8(&file[5..9]).ok().and_then(|text| text.parse().ok()).expect("a version")
}

#[test]
fn rdb_files_of_redisbloom_load_and_are_written_back() {
    let mut loaded = 0;
    for (engine, version) in
        engines().into_iter().flat_map(|e| VERSIONS.map(|version| (e, version)))
    {
        let mut server = Server::with(engine, &["--save", "3600 100000"]);
        let rdb = rdb_version(&mut server.client());
        let file = std::fs::read(path(version, "rdb")).expect("the file is in the tree");
        if !reads(rdb, file_version(&file)) {
            eprintln!("{engine:?} cannot read RDB files of version {}", file_version(&file));
            continue;
        }
        std::fs::write(server.folder().join("dump.rdb"), file).expect("a file");
        server.kill_and_restart();
        let mut client = server.client();
        golden(version).iter().for_each(|key| key.check(&mut client, &format!("{engine:?}, RDB")));
        client.ask("SAVE");
        server.kill_and_restart();
        let mut client = server.client();
        golden(version)
            .iter()
            .for_each(|key| key.check(&mut client, &format!("{engine:?}, saved")));
        loaded += 1;
    }
    assert!(loaded > 0 || engines().iter().all(|engine| *engine == Engine::Redis62));
}

/// Puts an AOF into the folder of a server, which reads it at the next start.
pub(crate) fn exchange_aof(server: &Server, aof: &[u8]) {
    let folder = server.folder().join("appendonlydir");
    if !folder.exists() {
        std::fs::write(server.folder().join("appendonly.aof"), aof).expect("a file");
        return;
    }
    for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
        std::fs::remove_file(entry.path()).expect("a file");
    }
    let manifest = "file appendonly.aof.1.base.aof seq 1 type b\n";
    std::fs::write(folder.join("appendonly.aof.manifest"), manifest).expect("a file");
    std::fs::write(folder.join("appendonly.aof.1.base.aof"), aof).expect("a file");
}

#[test]
fn aofs_of_redisbloom_load() {
    for (engine, version) in
        engines().into_iter().flat_map(|e| VERSIONS.map(|version| (e, version)))
    {
        let options = ["--save", "", "--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let mut server = Server::with(engine, &options);
        exchange_aof(
            &server,
            &std::fs::read(path(version, "aof")).expect("the file is in the tree"),
        );
        server.kill_and_restart();
        let mut client = server.client();
        golden(version).iter().for_each(|key| key.check(&mut client, &format!("{engine:?}, AOF")));
    }
}

#[test]
fn payloads_and_chunks_of_redisbloom_load_and_are_written_back() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let rdb = rdb_version(&mut client);
        for version in VERSIONS {
            client.ask("FLUSHALL");
            let keys = golden(version);
            for Golden { key, dump, .. } in &keys {
                // The value is the same in all RDB versions. Engines refuse payloads of unknown versions.
                let mut payload = [value(dump), &rdb.to_le_bytes(), &[0; 8]].concat();
                seal(&mut payload);
                let reply = client.call(&[b"RESTORE", key.as_bytes(), b"0", &payload]);
                assert_eq!(reply, Reply::Text(b"OK".to_vec()), "{engine:?}, {version}: {key}");
            }
            keys.iter().for_each(|key| key.check(&mut client, &format!("{engine:?}, RESTORE")));
            client.ask("FLUSHALL");
            for golden in &keys {
                let load = format!("{}.LOADCHUNK", golden.family());
                for (number, chunk) in &golden.chunks {
                    let number = number.to_string();
                    let words = [load.as_bytes(), golden.key.as_bytes(), number.as_bytes(), chunk];
                    assert_eq!(client.call(&words), Reply::Text(b"OK".to_vec()), "{}", golden.key);
                }
            }
            keys.iter().for_each(|key| key.check(&mut client, &format!("{engine:?}, LOADCHUNK")));
        }
    }
}
