//! Every error, word for word: programs read them.

use super::client::Reply;
use super::server::{Server, engines};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn errors_are_those_of_redisbloom() {
    let cases = [
        ("BF.RESERVE n x 100", "ERR bad error rate"),
        ("BF.RESERVE n nan 100", "ERR bad error rate"),
        ("BF.RESERVE n 0 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
        ("BF.RESERVE n 1 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
        ("BF.RESERVE n -1 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
        ("BF.RESERVE n inf 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
        ("BF.RESERVE n 0.01 x", "ERR bad capacity"),
        ("BF.RESERVE n 0.01 0", "ERR capacity must be in the range [1, 1073741824]"),
        ("BF.RESERVE n 0.01 1073741825", "ERR capacity must be in the range [1, 1073741824]"),
        ("BF.RESERVE n 0.01 100 EXPANSION", "ERR no expansion"),
        ("BF.RESERVE n 0.01 100 EXPANSION x", "ERR bad expansion"),
        ("BF.RESERVE n 0.01 100 EXPANSION -1", "ERR expansion must be in the range [0, 32768]"),
        ("BF.RESERVE n 0.01 100 EXPANSION 32769", "ERR expansion must be in the range [0, 32768]"),
        ("BF.RESERVE n 0.01 100 NONSCALING EXPANSION 2", "Nonscaling filters cannot expand"),
        ("BF.RESERVE bloom 0.01 100", "ERR item exists"),
        ("BF.RESERVE own 0.01 100", "ERR item exists"),
        ("BF.RESERVE string 0.01 100", WRONG_TYPE),
        ("BF.RESERVE cuckoo 0.01 100", WRONG_TYPE),
        ("BF.RESERVE n 0.01 100 KEYED SECRET 00", "ERR SECRET takes 32 hexadecimal digits"),
        (
            "BF.RESERVE n 0.01 100 BLOCKED SECRET 000102030405060708090a0b0c0d0e0f",
            "ERR SECRET goes with KEYED",
        ),
        ("BF.RESERVE n 0.01 100 WINDOW", "ERR WINDOW takes a number of items"),
        ("BF.RESERVE n 0.01 100 WINDOW 0", "ERR WINDOW takes a number of items"),
        ("BF.RESERVE n 0.01 100 WINDOW 50", "ERR the capacity of a window is its number of items"),
        (
            "BF.RESERVE n 0.01 100 WINDOW 100 BLOCKED",
            "ERR WINDOW goes with neither BLOCKED nor EXPANSION",
        ),
        ("BF.ADD string x", WRONG_TYPE),
        ("BF.ADD cuckoo x", WRONG_TYPE),
        ("BF.MADD string x", WRONG_TYPE),
        ("BF.INSERT string ITEMS x", WRONG_TYPE),
        ("BF.INSERT n NOCREATE ITEMS x", "ERR not found"),
        ("BF.INSERT n CAPACITY x ITEMS x", "Bad capacity"),
        ("BF.INSERT n ERROR x ITEMS x", "Bad error rate"),
        ("BF.INSERT n EXPANSION x ITEMS x", "Bad expansion"),
        ("BF.INSERT n FOO 1 ITEMS x", "Unknown argument received"),
        ("BF.INSERT n NONSCALING EXPANSION 2 ITEMS x", "Nonscaling filters cannot expand"),
        ("BF.CARD string", WRONG_TYPE),
        ("BF.INFO n", "ERR not found"),
        ("BF.INFO string", WRONG_TYPE),
        ("BF.INFO bloom FOO", "Invalid information value"),
        ("BF.DEBUG n", "ERR not found"),
        ("BF.SCANDUMP n 0", "ERR not found"),
        ("BF.SCANDUMP bloom x", "Second argument must be numeric"),
        ("BF.LOADCHUNK n x data", "ERR Second argument must be numeric"),
        ("BF.LOADCHUNK n 1 data", "ERR received bad data"),
        ("BF.LOADCHUNK n 2 data", "ERR not found"),
        ("BF.LOADCHUNK string 1 data", WRONG_TYPE),
        ("BF.LOADCHUNK bloom 0 data", "ERR invalid offset - no link found"),
        ("BF.LOADCHUNK bloom -5 data", "ERR invalid offset - no link found"),
        ("BF.LOADCHUNK bloom 9223372036854775807 data", "ERR invalid offset - no link found"),
        ("BF.LOADCHUNK bloom 146 data", "ERR invalid chunk - Too big for current filter"),
        ("BF.MERGE n m", "ERR not found"),
        (
            "BF.MERGE bloom string",
            "ERR these filters cannot be merged: they are of different kinds, or hash differently",
        ),
        ("BF.MERGE string bloom", WRONG_TYPE),
        (
            "BF.MERGE bloom own",
            "ERR these filters cannot be merged: they are of different kinds, or hash differently",
        ),
        (
            "BF.MERGE n window",
            "ERR these filters cannot be merged: they are of different kinds, or hash differently",
        ),
        (
            "BF.ADD loading x",
            "ERR the filter is being loaded: BF.LOADCHUNK or CF.LOADCHUNK brings the rest",
        ),
        (
            "BF.EXISTS loading x",
            "ERR the filter is being loaded: BF.LOADCHUNK or CF.LOADCHUNK brings the rest",
        ),
        ("CF.RESERVE n x", "Bad capacity"),
        ("CF.RESERVE n 1", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
        (
            "CF.RESERVE n 7 BUCKETSIZE 4",
            "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]",
        ),
        ("CF.RESERVE n 1073741825", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
        ("CF.RESERVE n 100 BUCKETSIZE x", "Couldn't parse BUCKETSIZE"),
        ("CF.RESERVE n 100 BUCKETSIZE 256", "BUCKETSIZE: value must be in the range [1, 255]"),
        ("CF.RESERVE n 100 MAXITERATIONS x", "Couldn't parse MAXITERATIONS"),
        (
            "CF.RESERVE n 100 MAXITERATIONS 0",
            "MAXITERATIONS: value must be in the range [1, 65535]",
        ),
        ("CF.RESERVE n 100 EXPANSION x", "Couldn't parse EXPANSION"),
        ("CF.RESERVE n 100 EXPANSION 32769", "EXPANSION: value must be in the range [0, 32768]"),
        ("CF.RESERVE n 100 ERROR 1", "ERR error rate must be in the range (0.000000, 1.000000)"),
        (
            "CF.RESERVE n 100 ERROR 0.01 EXPANSION 2",
            "ERR ERROR goes with none of BUCKETSIZE, MAXITERATIONS and EXPANSION",
        ),
        ("CF.RESERVE cuckoo 100", "ERR item exists"),
        ("CF.RESERVE string 100", WRONG_TYPE),
        ("CF.RESERVE bloom 100", WRONG_TYPE),
        ("CF.ADD string x", WRONG_TYPE),
        ("CF.ADDNX bloom x", WRONG_TYPE),
        ("CF.INSERT n NOCREATE ITEMS x", "ERR not found"),
        ("CF.INSERT n CAPACITY x ITEMS x", "Bad capacity"),
        (
            "CF.INSERT n CAPACITY 3 ITEMS x",
            "Capacity must be in the range [cf-bucket-size * 2, 1073741824]",
        ),
        ("CF.DEL n x", "Not found"),
        ("CF.DEL string x", "Not found"),
        ("CF.INFO n", "ERR not found"),
        ("CF.INFO string", WRONG_TYPE),
        ("CF.INFO cuckoo FOO", "Invalid information value"),
        ("CF.DEBUG n", "ERR not found"),
        ("CF.COMPACT n", "Cuckoo filter was not found"),
        ("CF.SCANDUMP n 0", "ERR not found"),
        ("CF.SCANDUMP cuckoo x", "Invalid position"),
        ("CF.LOADCHUNK n 0 data", "Invalid position"),
        ("CF.LOADCHUNK n x data", "Invalid position"),
        ("CF.LOADCHUNK n 1 data", "Invalid header"),
        ("CF.LOADCHUNK n 1 00000000000000000000000000000000000000", "Couldn't create filter!"),
        ("CF.LOADCHUNK n 2 data", "ERR not found"),
        ("CF.LOADCHUNK cuckoo 2 data", "Couldn't load chunk!"),
        ("CF.LOADCHUNK string 1 data", WRONG_TYPE),
        ("CF.LOADCHUNK cuckoo 9223372036854775807 data", "Couldn't load chunk!"),
    ];
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
        for (line, text) in cases {
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
        "CF.INSERT a b c",
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
