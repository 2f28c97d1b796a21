//! The exact text of every error, because programs parse them. The table is in `errors.txt`, which `replies.py`
//! also checks, in RESP2 and RESP3.

use super::client::Reply;
use super::server::{Server, engines};

/// Invalid commands with their errors.
const TABLE: &str = include_str!("errors.txt");

#[test]
fn errors_are_those_of_redisbloom() {
    let cases: Vec<_> = TABLE.lines().filter_map(|line| line.split_once(" -> ")).collect();
    assert!(cases.len() > 80);
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("SET string x");
        client.ask("BF.RESERVE bloom 0.01 100");
        client.ask("BF.RESERVE own 0.01 100 KEYED");
        client.ask("BF.RESERVE window 0.01 100 WINDOW 100");
        client.ask("CF.RESERVE cuckoo 100");
        client.call(&[b"BF.LOADCHUNK", b"loading", b"1", b"umbeldmp\x64\0\0\0\0\0\0\0"]);
        let before: Vec<_> = ["bloom", "own", "window", "cuckoo", "loading"]
            .map(|name| client.ask(&format!("DUMP {name}")))
            .into();
        for &(line, text) in &cases {
            assert_eq!(client.say(line), Reply::Error(text.to_owned()), "{engine:?}: {line}");
        }
        assert_eq!(client.ask("EXISTS n").integer(), 0, "{engine:?}: an error makes nothing");
        let after: Vec<_> = ["bloom", "own", "window", "cuckoo", "loading"]
            .map(|name| client.ask(&format!("DUMP {name}")))
            .into();
        assert_eq!(before, after, "{engine:?}: an error changes nothing");
    }
}

#[test]
fn arguments_are_counted() {
    let lines = [
        "BF.RESERVE",
        "BF.RESERVE a",
        "BF.RESERVE a 0.01",
        "BF.RESERVE a 0.01 100 1 2 3 4",
        "BF.ADD a",
        "BF.ADD a b c",
        "BF.MADD a",
        "BF.INSERT a",
        "BF.INSERT a ITEMS",
        "BF.INSERT a CAPACITY 5 ITEMS",
        "BF.INSERT a CAPACITY",
        "BF.EXISTS a",
        "BF.EXISTS a b c",
        "BF.MEXISTS a",
        "BF.CARD",
        "BF.CARD a b",
        "BF.INFO",
        "BF.INFO a b c",
        "BF.SCANDUMP a",
        "BF.LOADCHUNK a 1",
        "BF.DEBUG",
        "BF.MERGE a",
        "CF.RESERVE a",
        "CF.RESERVE a 100 BUCKETSIZE",
        "CF.ADD a",
        "CF.ADDNX a",
        "CF.INSERT a",
        "CF.INSERT a NOCREATE CAPACITY 50",
        "BF.RESERVE a 0.01 100 EXPANSION 2 EXPANSION 3",
        "CF.INFO a FOO",
        "CF.INSERT a ITEMS",
        "CF.INSERTNX a CAPACITY 5",
        "CF.EXISTS a",
        "CF.MEXISTS a",
        "CF.DEL a",
        "CF.COUNT a",
        "CF.INFO",
        "CF.SCANDUMP a",
        "CF.LOADCHUNK a 1",
        "CF.COMPACT",
        "CF.DEBUG",
    ];
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        for line in lines {
            let reply = client.say(line);
            let arity = matches!(&reply, Reply::Error(text) if text.starts_with("ERR wrong number of arguments"));
            assert!(arity, "{engine:?}: {line}: {reply:?}");
        }
    }
}

#[test]
fn full_filters_say_so_in_the_place_of_the_item() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("BF.RESERVE b 0.0001 3 NONSCALING");
        let reply = client.ask("BF.MADD b 1 2 3 4 5 6");
        let full = Reply::Error("ERR non scaling filter is full".to_owned());
        let one = Reply::Integer(1);
        assert_eq!(
            reply,
            Reply::Array(vec![one.clone(), one.clone(), one.clone(), full.clone()]),
            "{engine:?}"
        );
        assert_eq!(client.say("BF.ADD b 7"), full);
        assert_eq!(client.ask("BF.ADD b 1"), Reply::Integer(0));
        client.ask("CF.RESERVE c 4 BUCKETSIZE 1 EXPANSION 0");
        let reply = client.ask("CF.INSERT c ITEMS 1 2 3 4 5 6 7 8 9 10 11 12");
        let (added, refused): (Vec<_>, Vec<_>) =
            reply.array().iter().partition(|reply| **reply == one);
        assert!(!added.is_empty() && refused.len() >= 8, "{engine:?}: {reply:?}");
        assert!(refused.iter().all(|reply| **reply == Reply::Integer(-1)), "{engine:?}: {reply:?}");
        let full =
            (0..20).map(|item| client.say(&format!("CF.ADD c x{item}"))).find(Reply::is_error);
        assert_eq!(full, Some(Reply::Error("Filter is full".to_owned())));
        client.ask("CF.RESERVE d 4 BUCKETSIZE 1 EXPANSION 1");
        let most =
            (0..2_000).map(|item| client.say(&format!("CF.ADD d {item}"))).find(Reply::is_error);
        assert_eq!(most, Some(Reply::Error("Maximum expansions reached".to_owned())), "{engine:?}");
    }
}

#[test]
fn one_batch_grows_a_cuckoo_filter_past_the_limit_and_the_next_one_is_refused() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("CF.RESERVE k 4");
        let items = (0..1_000).map(|item| format!("key-{item}")).collect::<Vec<_>>().join(" ");
        let reply = client.ask(&format!("CF.INSERT k ITEMS {items}"));
        assert!(reply.array().iter().all(|reply| *reply == Reply::Integer(1)), "{engine:?}");
        let found = client.ask(&format!("CF.MEXISTS k {items}"));
        assert_eq!(found.array().iter().map(Reply::integer).sum::<i64>(), 1_000, "{engine:?}");
        assert_eq!(client.ask("CF.INFO k").array()[5], Reply::Integer(250), "{engine:?}");
        let most = Reply::Error("Maximum expansions reached".to_owned());
        for line in
            ["CF.ADD k key-1", "CF.ADDNX k key-1", "CF.INSERT k ITEMS x", "CF.INSERTNX k ITEMS x"]
        {
            assert_eq!(client.say(line), most, "{engine:?}: {line}");
        }
        assert_eq!(client.ask("CF.DEL k key-1"), Reply::Integer(1));
    }
}

#[test]
fn a_header_for_a_key_that_exists_changes_nothing() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("BF.RESERVE b 0.01 100");
        client.ask("CF.RESERVE c 100");
        client.ask("BF.RESERVE other 0.1 7");
        client.ask("CF.RESERVE another 8");
        client.ask("CF.ADD another x");
        client.ask("BF.ADD b x");
        client.ask("CF.ADD c x");
        let cases = [
            ("BF", "b", "other", "ERR received bad data"),
            ("CF", "c", "another", "ERR item exists"),
        ];
        for (family, name, source, text) in cases {
            let before = client.ask(&format!("DUMP {name}"));
            let header =
                client.ask(&format!("{family}.SCANDUMP {source} 0")).array()[1].bytes().to_vec();
            let load = format!("{family}.LOADCHUNK");
            let reply = client.call(&[load.as_bytes(), name.as_bytes(), b"1", &header]);
            assert_eq!(reply, Reply::Error(text.to_owned()), "{engine:?}");
            assert_eq!(client.ask(&format!("DUMP {name}")), before, "{engine:?}");
        }
    }
}
