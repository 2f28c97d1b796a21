//! A reader for the bytes on a server, written from `docs/redis.md` alone. It uses plain commands and computes
//! slots, offsets and positions itself, and agrees with the clients on every key. Only the hashes are the
//! library's: `docs/hashing.md` describes those.

use crate::servers::{Engine, Node};
use crate::shared::in_shards;
use redis::Value;
use umbel::Portable;
use umbel::blocked::Shape;
use umbel::hash::{Digester, Murmur3, Xxh3};
use umbel_redis::{GoZeroBloom, Policy, RedissonBloom, SharedBloom};

fn get(node: &Node, key: &str) -> Vec<u8> {
    redis::from_redis_value(node.call(&["GETRANGE", key, "0", "-1"])).unwrap()
}

fn little(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The slot of a key: CRC-16 (XMODEM) of the text between the first braces, or of the whole key.
fn slot(key: &str) -> u16 {
    let inner = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let hashed = inner.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 }
        })
    });
    crc % 16_384
}

/// The key of shard i of S.
fn key_of(name: &str, shard: u64, shards: u64) -> String {
    if shards == 1 {
        return name.to_owned();
    }
    let wanted = (16_384 * shard / shards + 1) as u16;
    let tag = (0_u32..).find(|number| slot(&number.to_string()) == wanted).unwrap();
    format!("{name}:{{{tag}}}")
}

/// The home that belongs to this server: the 40 hex digits of its `master_replid`, decoded to 20 bytes.
fn home(node: &Node) -> Vec<u8> {
    let digits = node.info("replication", "master_replid");
    assert_eq!(digits.len(), 40);
    (0..20).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[tokio::test]
async fn the_layout_of_a_shared_filter_is_as_documented() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        for (lines_per_key, shards) in [(1, 1), (1, 5), (2, 3)] {
            node.call(&["FLUSHALL"]);
            let shape = Shape::for_rate_in_lines(3_000, 0.001, lines_per_key).unwrap();
            let (hasher, options) = (Portable::seeded(9), in_shards(shards as u32));
            let filter = SharedBloom::<u64, _>::create(&server, "f", shape, hasher, &options);
            let filter = filter.await.unwrap();
            let strings: Vec<Vec<u8>> =
                (0..shards).map(|shard| get(&node, &key_of("f", shard, shards))).collect();
            assert!(strings.iter().all(|bytes| little(bytes, 116, 4) == 3), "incomplete");
            filter.complete().await.unwrap();
            let keys: Vec<u64> = (0..3_000).collect();
            for keys in keys.chunks(500) {
                filter.insert_batch(keys).await.unwrap();
            }
            let strings: Vec<Vec<u8>> =
                (0..shards).map(|shard| get(&node, &key_of("f", shard, shards))).collect();
            let lines = little(&strings[0], 40, 8);
            let first = |shard: u64| shard * lines / shards;
            for (shard, bytes) in (0..).zip(&strings) {
                assert_eq!(&bytes[..8], b"UMBELRED");
                assert_eq!(little(bytes, 8, 2), 1, "version");
                assert_eq!(little(bytes, 10, 2), 1 + u64::from(lines_per_key), "kernels");
                assert_eq!(little(bytes, 16, 8), 9, "seed");
                assert_eq!(little(bytes, 24, 8), 0, "no secret");
                assert_eq!(little(bytes, 32, 8), 3_000, "keys");
                assert_eq!(little(bytes, 40, 8), lines);
                assert!((1..=8).contains(&little(bytes, 48, 4)), "probes");
                assert_eq!([little(bytes, 52, 4), little(bytes, 56, 4)], [shards, shard]);
                assert_eq!(little(bytes, 60, 4), 0);
                assert_eq!(little(bytes, 64, 8), 1, "generation");
                assert_eq!(bytes[72..88], strings[0][72..88], "identity");
                assert_eq!(little(bytes, 88, 8), Xxh3::default().digest(&bytes[..88]).bits());
                assert_eq!(bytes[96..116], home(&node), "home");
                assert_eq!(little(bytes, 116, 4), 2, "complete");
                let changes =
                    bytes[120..128].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
                assert!((1..=6 * 3).contains(&changes), "{changes} scripts");
                assert_eq!(bytes.len() as u64, 128 + 64 * (first(shard + 1) - first(shard)));
            }
            // Every key, present or not.
            let asked: Vec<u64> = (0..6_000).collect();
            let answers = filter.contains_batch(&asked).await;
            for (key, answer) in asked.iter().zip(answers) {
                let mut all = true;
                shape.for_each_bit(hasher.digest(key), |line, bit| {
                    let shard = (0..shards).rfind(|shard| first(*shard) <= line).unwrap();
                    let n = line - first(shard);
                    // SETBIT counts the highest bit of a byte as its first.
                    let position = 8 * (128 + 64 * n + bit as u64 / 8) + 7 - bit as u64 % 8;
                    let byte = strings[shard as usize][(position / 8) as usize];
                    all &= byte >> (7 - position % 8) & 1 == 1;
                });
                assert_eq!(all, !answer.is_absent(), "{key}");
                assert!(!answer.is_unknown());
            }
        }
    }
}

/// Whether a bitmap has all of these bits, the first of a byte its highest.
fn has(bytes: &[u8], positions: impl IntoIterator<Item = u64>) -> bool {
    let bit =
        |at: u64| bytes.get(at as usize / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    positions.into_iter().all(bit)
}

#[tokio::test]
async fn the_seal_and_the_bits_of_a_go_zero_key_are_as_documented() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let bits = 10_007;
    let filter = GoZeroBloom::create(&server, "go", bits, Policy::Warn).await.unwrap();
    let bytes = get(&node, "go");
    let (map, seal) = bytes.split_at(1_251);
    assert!(map.iter().all(|byte| *byte == 0));
    assert_eq!((seal.len(), &seal[..8]), (56, &b"UMBELGZ2"[..]));
    assert_eq!((little(seal, 8, 8), little(seal, 52, 4)), (bits, 3));
    assert_eq!(seal[32..52], home(&node));
    filter.complete().await.unwrap();
    let keys: Vec<Vec<u8>> = (0..500).map(|key| format!("user:{key}").into_bytes()).collect();
    filter.insert_batch(&keys).await.unwrap();
    let bytes = get(&node, "go");
    assert_eq!(little(&bytes, 1_251 + 52, 4), 2);
    assert_eq!(bytes[1_251..1_251 + 32], seal[..32]);
    let asked: Vec<Vec<u8>> = (0..2_000).map(|key| format!("user:{key}").into_bytes()).collect();
    for (key, answer) in asked.iter().zip(filter.contains_batch(&asked).await) {
        let positions = (0..14).map(|number| {
            let data = [&key[..], &[number]].concat();
            Murmur3::default().hash128(&data).0 % bits
        });
        assert_eq!(has(&bytes, positions), !answer.is_absent());
    }
}

#[tokio::test]
async fn the_config_and_the_bits_of_a_redisson_filter_are_as_documented() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = RedissonBloom::create(&server, "java", 1_000, 0.02, Policy::Warn).await.unwrap();
    let field = |name: &str| -> String {
        redis::from_redis_value(node.call(&["HGET", "{java}:config", name])).unwrap()
    };
    assert_eq!([field("size"), field("hashIterations")], ["8142", "6"]);
    assert_eq!([field("expectedInsertions"), field("falseProbability")], ["1000", "0.02"]);
    let mark = field("umbel");
    let [identity, at, state] = mark.split(':').collect::<Vec<_>>()[..] else { panic!("{mark}") };
    assert_eq!((identity.len(), state), (32, "incomplete"));
    assert_eq!(at, node.info("replication", "master_replid"));
    assert_eq!(node.call(&["STRLEN", "java"]), Value::Int(1_018));
    filter.complete().await.unwrap();
    assert_eq!(field("umbel"), format!("{identity}:{at}:complete"));
    // StringCodec, ByteArrayCodec and LongCodec: text, bytes, and decimal digits.
    let keys: [&[u8]; 4] = [b"caf\xc3\xa9", &[0, 255, 7], b"-42", b"9223372036854775807"];
    filter.insert_batch(&keys).await.unwrap();
    assert_eq!(filter.contains_batch(&keys).await, [umbel_redis::Answer::Maybe; 4]);
    let bytes = get(&node, "java");
    for key in keys {
        assert!(has(&bytes, RedissonBloom::positions(8_142, 6, key)));
    }
}
