//! Filters of every type under keys, filled with the same items.

use super::client::Client;

/// A key, the command that creates its filter, and the one that adds items.
pub(crate) const FILTERS: [(&str, &str); 9] = [
    ("plain", "BF.RESERVE plain 0.01 50"),
    ("fixed", "BF.RESERVE fixed 0.001 2000 NONSCALING"),
    ("keyed", "BF.RESERVE keyed 0.01 50 KEYED"),
    ("blocked", "BF.RESERVE blocked 0.01 50 BLOCKED"),
    ("secret", "BF.RESERVE secret 0.01 2000 BLOCKED KEYED NONSCALING"),
    ("window", "BF.RESERVE window 0.01 1000 WINDOW 1000"),
    ("cuckoo", "CF.RESERVE cuckoo 100"),
    ("buckets", "CF.RESERVE buckets 200 BUCKETSIZE 4 MAXITERATIONS 30 EXPANSION 2"),
    ("rated", "CF.RESERVE rated 1500 ERROR 0.001"),
];

/// The number of items in each.
pub(crate) const ITEMS: u32 = 1_000;

pub(crate) fn is_cuckoo(name: &str) -> bool {
    matches!(name, "cuckoo" | "buckets" | "rated")
}

fn words(head: &[&str], items: impl Iterator<Item = u32>) -> Vec<Vec<u8>> {
    let head = head.iter().map(|word| word.as_bytes().to_vec());
    head.chain(items.map(|item| format!("item:{item}").into_bytes())).collect()
}

fn call(client: &mut Client, words: &[Vec<u8>]) -> super::client::Reply {
    client.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Adds items, in batches and one at a time.
pub(crate) fn add(client: &mut Client, name: &str, items: core::ops::Range<u32>) {
    for start in items.clone().step_by(100) {
        let batch = start..items.end.min(start + 100);
        let words = match is_cuckoo(name) {
            true => words(&["CF.INSERT", name, "ITEMS"], batch),
            false => words(&["BF.MADD", name], batch),
        };
        let reply = call(client, &words);
        assert!(!reply.array().iter().any(super::client::Reply::is_error), "{name}: {reply:?}");
    }
}

/// The number of these items that are found.
pub(crate) fn found(client: &mut Client, name: &str, items: core::ops::Range<u32>) -> i64 {
    let command = if is_cuckoo(name) { "CF.MEXISTS" } else { "BF.MEXISTS" };
    let reply = call(client, &words(&[command, name], items));
    reply.array().iter().map(super::client::Reply::integer).sum()
}

/// Creates and fills all filters.
pub(crate) fn make_all(client: &mut Client) {
    for (name, make) in FILTERS {
        client.ask(make);
        add(client, name, 0..ITEMS);
    }
    for item in 0..50 {
        client.ask(&format!("CF.DEL cuckoo item:{item}"));
        client.ask(&format!("CF.ADD cuckoo item:{item}"));
    }
}

/// Checks that every filter has its items, and is not just full.
pub(crate) fn check_all(client: &mut Client) {
    for (name, _) in FILTERS {
        assert_eq!(found(client, name, 0..ITEMS), i64::from(ITEMS), "{name}");
        assert!(found(client, name, 1_000_000..1_001_000) < 200, "{name}");
    }
}

/// The engine's digest of every filter.
pub(crate) fn digests(client: &mut Client) -> Vec<String> {
    let digest = |name: &str, client: &mut Client| {
        let reply = client.ask(&format!("DEBUG DIGEST-VALUE {name}"));
        format!("{name} {}", String::from_utf8_lossy(reply.array()[0].bytes()))
    };
    FILTERS.iter().map(|(name, _)| digest(name, client)).collect()
}

/// The payloads of every filter.
pub(crate) fn dumps(client: &mut Client) -> Vec<Vec<u8>> {
    FILTERS.iter().map(|(name, _)| client.ask(&format!("DUMP {name}")).bytes().to_vec()).collect()
}
