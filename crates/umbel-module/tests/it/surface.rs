//! The engine's information about the module: commands, keys, categories, settings.

use super::client::{Client, Reply};
use super::server::{Engine, Server, engines};

const COMMANDS: [(&str, i64, &str); 26] = [
    ("bf.reserve", -4, "write"),
    ("bf.add", 3, "write"),
    ("bf.madd", -3, "write"),
    ("bf.insert", -4, "write"),
    ("bf.exists", 3, "readonly"),
    ("bf.mexists", -3, "readonly"),
    ("bf.card", 2, "readonly"),
    ("bf.info", -2, "readonly"),
    ("bf.scandump", 3, "readonly"),
    ("bf.loadchunk", 4, "write"),
    ("bf.debug", 2, "readonly"),
    ("bf.merge", -3, "write"),
    ("cf.reserve", -3, "write"),
    ("cf.add", 3, "write"),
    ("cf.addnx", 3, "write"),
    ("cf.insert", -4, "write"),
    ("cf.insertnx", -4, "write"),
    ("cf.exists", 3, "readonly"),
    ("cf.mexists", -3, "readonly"),
    ("cf.del", 3, "write"),
    ("cf.count", 3, "readonly"),
    ("cf.info", -2, "readonly"),
    ("cf.scandump", 3, "readonly"),
    ("cf.loadchunk", 4, "write"),
    ("cf.compact", 2, "write"),
    ("cf.debug", 2, "readonly"),
];

fn texts(reply: &Reply) -> Vec<String> {
    reply.array().iter().map(|text| String::from_utf8_lossy(text.bytes()).into_owned()).collect()
}

#[test]
fn commands_have_their_flags_keys_and_categories() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        for (name, arity, access) in COMMANDS {
            let reply = client.ask(&format!("COMMAND INFO {name}"));
            let info = reply.array()[0].array();
            let flags = texts(&info[2]);
            assert!(flags.iter().any(|flag| flag == access), "{engine:?} {name}: {flags:?}");
            let deny = access == "write" && name != "cf.del";
            assert_eq!(flags.iter().any(|flag| flag == "denyoom"), deny, "{engine:?} {name}");
            let fast = access == "readonly" || name == "cf.del";
            assert_eq!(flags.iter().any(|flag| flag == "fast"), fast, "{engine:?} {name}");
            let last = if name == "bf.merge" { -1 } else { 1 };
            if name == "bf.merge" && engine != Engine::Redis62 {
                let sources = texts(&info[8].array()[1].array()[1]);
                assert_eq!(sources[0], "RO", "{engine:?}: {sources:?}");
            }
            assert_eq!(
                (info[3].integer(), info[4].integer(), info[5].integer()),
                (1, last, 1),
                "{engine:?} {name}"
            );
            if engine != Engine::Redis62 {
                assert_eq!(info[1].integer(), arity, "{engine:?} {name}");
                let spec = texts(&info[8].array()[0].array()[1]);
                let expected = if access == "write" { "RW" } else { "RO" };
                assert_eq!(spec[0], expected, "{engine:?} {name}: {spec:?}");
            }
            if engine.has_categories() {
                let category = if name.starts_with("bf") { "@bloom" } else { "@cuckoo" };
                assert!(texts(&info[6]).iter().any(|known| known == category), "{name}");
            }
        }
        let keys = texts(&client.ask("COMMAND GETKEYS BF.MERGE a b c"));
        assert_eq!(keys, ["a", "b", "c"], "{engine:?}");
        assert_eq!(texts(&client.ask("COMMAND GETKEYS BF.MADD a b c")), ["a"], "{engine:?}");
    }
}

#[test]
fn access_lists_know_the_categories() {
    let server = Server::start(Engine::Valkey);
    let mut client = server.client();
    client.ask("ACL SETUSER reader on nopass ~* -@all +@bloom");
    client.ask("AUTH reader x");
    assert_eq!(client.ask("BF.ADD a 1").integer(), 1);
    assert!(matches!(client.say("CF.ADD c 1"), Reply::Error(text) if text.starts_with("NOPERM")));
}

fn is_refused(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with("NOPERM"))
}

/// A server does not start with an access list that names an unknown category.
#[test]
fn access_lists_written_for_redisbloom_are_understood() {
    for engine in engines().into_iter().filter(|engine| engine.has_categories()) {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask(
            "ACL SETUSER app on nopass ~* -@all +@bloom +@cuckoo +@cms +@topk +@tdigest -@dangerous",
        );
        for line in ["CMS.QUERY k x", "TOPK.LIST k", "TDIGEST.MIN k"] {
            let allowed = client.ask(&format!("ACL DRYRUN app {line}"));
            assert_eq!(allowed, Reply::Text(b"OK".to_vec()), "{engine:?}: {line}");
            let (family, _) = line.split_once('.').expect("a family");
            client.ask(&format!("ACL SETUSER app -@{}", family.to_ascii_lowercase()));
            let refused = client.ask(&format!("ACL DRYRUN app {line}"));
            assert_ne!(refused, Reply::Text(b"OK".to_vec()), "{engine:?}: {line}");
        }
    }
}

#[test]
fn access_lists_tell_reading_from_writing() {
    for engine in engines().into_iter().filter(|engine| engine.has_categories()) {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("BF.ADD a 1");
        client.ask("CF.ADD c 1");
        client.ask("ACL SETUSER careful on nopass ~* +@all -@write");
        client.ask("ACL SETUSER reader on nopass ~* -@all +@read");
        client.ask("ACL SETUSER writer on nopass ~* -@all +@write");
        client.ask("ACL SETUSER fast on nopass ~* -@all +@fast");
        for (name, arity, access) in COMMANDS {
            let words = " a".repeat(arity.unsigned_abs() as usize - 1);
            let reads = access == "readonly";
            let users = [("careful", reads), ("reader", reads), ("writer", !reads)];
            for (user, may) in users {
                let line = format!("ACL DRYRUN {user} {name}{words}");
                let reply = client.say(&line);
                let allowed = reply == Reply::Text(b"OK".to_vec());
                assert_eq!(allowed, may, "{engine:?}: {user} {name}: {reply:?}");
            }
        }
        let mut careful = server.client();
        careful.ask("AUTH careful x");
        assert!(is_refused(&careful.say("BF.ADD a 2")) && is_refused(&careful.say("CF.ADD c 2")));
        assert_eq!(careful.ask("BF.EXISTS a 1").integer(), 1);
        let mut fast = server.client();
        fast.ask("AUTH fast x");
        assert!(is_refused(&fast.say("BF.MADD a 2")) && is_refused(&fast.say("BF.MEXISTS a 2")));
        for line in
            ["BF.RESERVE b 0.01 10", "BF.INFO a", "BF.CARD a", "CF.RESERVE d 8", "CF.INFO c"]
        {
            fast.ask(line);
        }
    }
}

#[test]
fn a_merge_needs_no_right_to_write_to_its_sources() {
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Redis62) {
        let server = Server::start(engine);
        let mut client = server.client();
        client.ask("BF.MADD source:1 a b");
        client.ask("BF.MADD source:2 c d");
        client.ask("ACL SETUSER merger on nopass +@all %R~source:* ~target");
        client.ask("AUTH merger x");
        client.ask("BF.MERGE target source:1 source:2");
        assert!(is_refused(&client.say("BF.MERGE source:1 source:2")), "{engine:?}");
        assert!(is_refused(&client.say("BF.MERGE target elsewhere")), "{engine:?}");
        let found = client.ask("BF.MEXISTS target a b c d");
        assert!(found.array().iter().all(|found| found.integer() == 1), "{engine:?}");
    }
}

/// A setting whose name may have the module's prefix.
fn configured(client: &mut Client, name: &str) -> Option<(String, String)> {
    [name.to_owned(), format!("bf.{name}")].into_iter().find_map(|name| {
        let reply = client.ask(&format!("CONFIG GET {name}"));
        let texts = texts(&reply);
        texts.get(1).map(|value| (name, value.clone()))
    })
}

#[test]
fn settings_can_be_read_and_set_within_their_ranges() {
    let cases = [
        ("bf-error-rate", "0.01", "0.001", ["0", "1"]),
        ("bf-initial-size", "100", "5000", ["0", "1073741825"]),
        ("bf-expansion-factor", "2", "4", ["-1", "32769"]),
        ("cf-bucket-size", "2", "4", ["0", "256"]),
        ("cf-initial-size", "1024", "4096", ["1", "1073741825"]),
        ("cf-max-iterations", "20", "30", ["0", "65536"]),
        ("cf-expansion-factor", "1", "2", ["-1", "32769"]),
        ("cf-max-expansions", "32", "64", ["0", "65537"]),
        ("cf-max-moves", "1048576", "4000000", ["-1", "1099511627777"]),
    ];
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Redis62) {
        let server = Server::start(engine);
        let mut client = server.client();
        for (name, default, other, wrong) in cases {
            let (full, value) = configured(&mut client, name).expect("the engine knows it");
            assert_eq!(value, default, "{engine:?} {name}");
            for wrong in wrong {
                assert!(
                    client.say(&format!("CONFIG SET {full} {wrong}")).is_error(),
                    "{engine:?} {name} {wrong}"
                );
            }
            client.ask(&format!("CONFIG SET {full} {other}"));
            assert_eq!(configured(&mut client, name).unwrap().1, other, "{engine:?}");
        }
        check_new_filters(&mut client);
        let rate = configured(&mut client, "bf-error-rate").unwrap().0;
        client.ask(&format!("CONFIG SET {rate} 0.5"));
        assert_eq!(configured(&mut client, "bf-error-rate").unwrap().1, "0.25", "{engine:?}");
    }
}

/// Checks that new filters have the settings of these tests.
fn check_new_filters(client: &mut Client) {
    client.ask("BF.ADD a 1");
    assert_eq!(client.ask("BF.INFO a CAPACITY").array()[0].integer(), 5000);
    assert_eq!(client.ask("BF.INFO a EXPANSION").array()[0].integer(), 4);
    assert!(
        String::from_utf8_lossy(client.ask("BF.DEBUG a").array()[1].bytes())
            .contains("ratio:0.0005")
    );
    client.ask("CF.ADD c 1");
    let info = client.ask("CF.INFO c");
    let value = |at: usize| info.array()[at].integer();
    // Buckets, bucket size, expansion, iterations.
    assert_eq!((value(3), value(11), value(13), value(15)), (1024, 4, 2, 30));
}

#[test]
fn refused_settings_are_explained_as_by_redisbloom() {
    let cases = [
        ("bf-error-rate", "x", "Invalid value for `bf-error-rate`"),
        (
            "bf-error-rate",
            "1",
            "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)",
        ),
        ("bf-initial-size", "1k", "Invalid value for `bf-initial-size`"),
        (
            "bf-initial-size",
            "0",
            "Value for `bf-initial-size` must be in the range [1, 1073741824]",
        ),
        (
            "bf-expansion-factor",
            "-1",
            "Value for `bf-expansion-factor` must be in the range [0, 32768]",
        ),
        (
            "cf-initial-size",
            "3",
            "Value for `cf-initial-size` must be in the range [4, 1073741824]",
        ),
        ("cf-bucket-size", "256", "Value for `cf-bucket-size` must be in the range [1, 255]"),
        (
            "cf-max-iterations",
            "65536",
            "Value for `cf-max-iterations` must be in the range [1, 65535]",
        ),
        (
            "cf-expansion-factor",
            "32769",
            "Value for `cf-expansion-factor` must be in the range [0, 32768]",
        ),
        ("cf-max-expansions", "0", "Value for `cf-max-expansions` must be in the range [1, 65536]"),
    ];
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Redis62) {
        let server = Server::start(engine);
        let mut client = server.client();
        let mut refused = |name: &str, value: &str, text: &str| {
            let full = configured(&mut client, name).expect("the engine knows it").0;
            let reply = client.say(&format!("CONFIG SET {full} {value}"));
            let explained =
                matches!(&reply, Reply::Error(error) if error.ends_with(&format!(" - {text}")));
            assert!(explained, "{engine:?}: {name} {value}: {reply:?}");
        };
        cases.iter().for_each(|(name, value, text)| refused(name, value, text));
        // A filter has at least two buckets, so each of these two limits the other one.
        let text = "Value for `cf-bucket-size` must be in the range [1, 10]";
        let mut other = server.client();
        let (full, _) = configured(&mut other, "cf-initial-size").expect("the engine knows it");
        other.ask(&format!("CONFIG SET {full} 20"));
        refused("cf-bucket-size", "11", text);
    }
}

#[test]
fn settings_are_arguments_of_the_module_in_every_engine() {
    let arguments = [
        "ERROR_RATE",
        "0.001",
        "INITIAL_SIZE",
        "5000",
        "bf-expansion-factor",
        "4",
        "cf-bucket-size",
        "4",
        "cf-initial-size",
        "4096",
        "cf-max-iterations",
        "30",
        "cf-expansion-factor",
        "2",
        "CF_MAX_EXPANSIONS",
        "64",
    ];
    for engine in engines() {
        let server = Server::loading(engine, &["--save", ""], &arguments);
        check_new_filters(&mut server.client());
    }
}

#[test]
fn the_module_says_who_it_is() {
    for engine in engines() {
        let server = Server::start(engine);
        let modules = server.client().ask("MODULE LIST");
        assert!(
            format!("{modules:?}").contains(&format!("{:?}", b"bf".to_vec())),
            "{engine:?}: {modules:?}"
        );
        assert!(!server.log().contains("# Module"), "{}", server.log());
    }
}
