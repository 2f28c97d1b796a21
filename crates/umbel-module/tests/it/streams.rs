//! Commands that an older RedisBloom accepted and that this module refuses from clients. It accepts them from a
//! primary and from an AOF, with the same bytes as result. The primary is a socket with a minimal replication
//! protocol.

use super::client::{Client, Reply, command};
use super::conversations::{dump, lines};
use super::server::{Server, engines};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A stream of commands, and the expected value of each key.
struct Stream {
    bytes: Vec<u8>,
    /// A key, the hash of its dump, and whether its rate is above a quarter.
    keys: Vec<(String, serde_json::Value, bool)>,
}

/// Every filter that RedisBloom 2.6.28 created in its conversation, each under a separate key, except those of
/// several GB.
fn filters_of_2_6() -> Stream {
    let mut stream = Stream { bytes: command(&[b"SELECT", b"0"]), keys: Vec::new() };
    for line in lines("2.6.28-resp2") {
        let reserved = matches!(line.name().as_str(), "BF.RESERVE" | "CF.RESERVE");
        let at = if line.name() == "BF.RESERVE" { 3 } else { 2 };
        let number = |at: usize| core::str::from_utf8(line.send.get(at)?).ok();
        let capacity = number(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let large = (1 << 30..1 << 60).contains(&capacity);
        let Some(hash) = line.dump.clone().filter(|_| reserved && !large) else { continue };
        if line.reply["status"] != "OK" {
            continue;
        }
        let key = format!("key-{}", stream.keys.len());
        let mut words: Vec<&[u8]> = line.send.iter().map(Vec::as_slice).collect();
        words[1] = key.as_bytes();
        stream.bytes.extend(command(&words));
        let rate = number(2).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let loose = line.name() == "BF.RESERVE" && rate > 0.25;
        stream.keys.push((key, hash, loose));
    }
    assert!(stream.keys.iter().any(|(_, _, loose)| *loose) && stream.keys.len() > 20);
    stream
}

/// Several commands of each type that clients may not send, or that grow a filter past the limit.
fn more(is_redis_8: bool) -> Vec<u8> {
    let items = (0..1_000).map(|item| format!("item-{item}")).collect::<Vec<_>>().join(" ");
    let text = [
        "BF.RESERVE fast 0.01 10 EXPANSION 65536",
        "BF.INSERT wide EXPANSION 4294967295 ITEMS a",
        "BF.INSERT fixed NONSCALING EXPANSION 5 ITEMS a",
        "BF.ADD there a",
        "BF.INSERT there CAPACITY -5 EXPANSION -1 ITEMS b",
        "CF.INSERT letters ITEM a",
        "CF.RESERVE small 4",
        &format!("CF.INSERT small ITEMS {items}"),
        "CF.ADD small one-more",
        "BF.RESERVE strict 1e-300 10",
        "BF.RESERVE loose 0.999999 10",
        "CF.RESERVE wide-buckets 1024 BUCKETSIZE 255 MAXITERATIONS 65535 EXPANSION 32768",
        // 8,951 bits at this rate. A Redis 8 would use 0.25, which needs 1.5 GB.
        if is_redis_8 { "PING" } else { "BF.RESERVE large 0.999999 4294967296 NONSCALING" },
    ];
    let words = |line: &str| command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    text.iter().flat_map(|line| words(line)).collect()
}

fn is_redis_8(client: &mut Client) -> bool {
    let info = client.ask("INFO server");
    String::from_utf8_lossy(info.bytes()).contains("redis_version:8")
}

fn check(client: &mut Client, stream: &Stream, way: &str) {
    let is_redis_8 = is_redis_8(client);
    for (key, hash, loose) in &stream.keys {
        // Redis 8 may follow a RedisBloom 8, which reduces a rate above a quarter to a quarter.
        if !(*loose && is_redis_8) {
            assert_eq!(dump(client, key.as_bytes()), *hash, "{way}: {key}");
        }
    }
    for (line, value) in [
        ("BF.INFO fast EXPANSION", 65_536),
        ("BF.INFO wide EXPANSION", 4_294_967_295),
        ("BF.INFO there ITEMS", 2),
    ] {
        assert_eq!(client.ask(line).array()[0], Reply::Integer(value), "{way}: {line}");
    }
    assert_eq!(client.ask("BF.INFO fixed EXPANSION").array()[0], Reply::Null, "{way}");
    assert_eq!(client.ask("CF.INFO wide-buckets").array()[11], Reply::Integer(255), "{way}");
    for name in ["strict", "loose"] {
        assert_eq!(client.ask(&format!("BF.INFO {name} CAPACITY")).array()[0], Reply::Integer(10));
    }
    if !is_redis_8 {
        let capacity = client.ask("BF.INFO large CAPACITY").array()[0].clone();
        assert_eq!(capacity, Reply::Integer(4_294_967_296), "{way}");
        assert_eq!(client.ask("BF.INFO large SIZE").array()[0], Reply::Integer(8_960 / 8 + 96));
    }
    for line in
        ["BF.EXISTS wide a", "BF.EXISTS fixed a", "BF.EXISTS there b", "CF.EXISTS letters a"]
    {
        assert_eq!(client.ask(line), Reply::Integer(1), "{way}: {line}");
    }
    let items = (0..1_000).map(|item| format!("item-{item}")).collect::<Vec<_>>().join(" ");
    let found = client.ask(&format!("CF.MEXISTS small {items} one-more"));
    assert_eq!(found.array().iter().map(Reply::integer).sum::<i64>(), 1_001, "{way}");
}

/// Replies to a replica until it has received an empty file. From then on the connection is the stream.
fn accept_replica(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("the replica connects");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("a line") > 0, "the replica goes away");
        let word = line.trim_end().to_ascii_uppercase();
        match word.as_str() {
            "PING" => stream.write_all(b"+PONG\r\n").expect("a reply"),
            "REPLCONF" => stream.write_all(b"+OK\r\n").expect("a reply"),
            "PSYNC" => break,
            _ => {}
        }
    }
    // A file without keys and checksum, of a version that every engine reads.
    let mut file = b"REDIS0009\xff".to_vec();
    file.extend([0; 8]);
    let id = "0123456789012345678901234567890123456789";
    let head = format!("+FULLRESYNC {id} 1\r\n${}\r\n", file.len());
    stream.write_all(&[head.as_bytes(), &file].concat()).expect("a file");
    stream
}

#[test]
fn a_replica_takes_what_an_older_primary_accepted() {
    let sent = filters_of_2_6();
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        client.ask(&format!("REPLICAOF 127.0.0.1 {port}"));
        let mut primary = accept_replica(&listener);
        let all =
            [&sent.bytes[..], &more(is_redis_8(&mut client)), &command(&[b"SET", b"end", b"x"])]
                .concat();
        primary.write_all(&all).expect("the stream");
        let start = Instant::now();
        while client.say("GET end") != Reply::Text(b"x".to_vec()) {
            assert!(start.elapsed() < Duration::from_secs(60), "{engine:?}:\n{}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        check(&mut client, &sent, &format!("{engine:?}, stream"));
        // The accepted values can be saved and loaded.
        client.ask("REPLICAOF NO ONE");
        client.ask("DEBUG RELOAD");
        check(&mut client, &sent, &format!("{engine:?}, stream and RDB"));
    }
}

#[test]
fn an_aof_of_an_older_version_is_taken() {
    let sent = filters_of_2_6();
    for engine in engines() {
        let options = ["--save", "", "--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let mut server = Server::with(engine, &options);
        let more = more(is_redis_8(&mut server.client()));
        super::golden::exchange_aof(&server, &[&sent.bytes[..], &more].concat());
        server.kill_and_restart();
        check(&mut server.client(), &sent, &format!("{engine:?}, AOF"));
    }
}

#[test]
fn clients_may_not_send_what_older_primaries_accepted() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        for line in [
            "BF.RESERVE k 0.01 10 EXPANSION 65536",
            "BF.RESERVE k 0.01 4611686018427387904",
            "BF.INSERT k CAPACITY -5 ITEMS b",
            "CF.RESERVE k 4294967296",
        ] {
            assert!(client.say(line).is_error(), "{engine:?}: {line}");
        }
        assert_eq!(client.ask("DBSIZE"), Reply::Integer(0));
    }
}

/// Deleting compacts sub-filters. A replica that joins at any time has the same tables afterwards.
#[test]
fn a_replica_that_joins_while_items_are_deleted_has_the_same_tables() {
    let delete = |client: &mut Client, items: core::ops::Range<u32>| {
        let count = items.len();
        let bytes: Vec<u8> = items
            .flat_map(|item| command(&[b"CF.DEL", b"k", format!("item-{item}").as_bytes()]))
            .collect();
        client.send(&bytes).expect("the server listens");
        for _ in 0..count {
            assert_eq!(client.reply().expect("a reply"), Reply::Integer(1));
        }
    };
    for engine in engines() {
        let options = ["--save", "", "--repl-diskless-sync-delay", "0"];
        let primary = Server::with(engine, &options);
        let mut client = primary.client();
        client.ask("CF.RESERVE k 200000");
        for start in (0..300_000).step_by(1_000) {
            let items: Vec<_> = (start..start + 1_000).map(|item| format!("item-{item}")).collect();
            client.ask(&format!("CF.INSERT k ITEMS {}", items.join(" ")));
        }
        // Just past a tenth, where tables are compacted.
        delete(&mut client, 0..27_274);
        let replica = Server::with(engine, &options);
        let mut second = replica.client();
        second.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        let start = Instant::now();
        while second.say("EXISTS k") != Reply::Integer(1) {
            assert!(start.elapsed() < Duration::from_secs(60), "the replica does not follow");
            std::thread::sleep(Duration::from_millis(20));
        }
        delete(&mut client, 27_274..40_000);
        client.ask("SET end x");
        while second.say("GET end") != Reply::Text(b"x".to_vec()) {
            assert!(start.elapsed() < Duration::from_secs(60), "the replica does not follow");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(client.ask("DUMP k") == second.ask("DUMP k"), "{engine:?}");
    }
}
