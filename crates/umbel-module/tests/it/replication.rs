//! What a primary has, its replica has; and after a failover nothing is missing.

use super::client::Client;
use super::data::{FILTERS, add, check_all, digests, make_all};
use super::server::{Engine, Server, engines};
use std::time::{Duration, Instant};

fn replica_of(primary: &Server, options: &[&str]) -> Server {
    let replica = Server::with(primary.engine, options);
    replica.client().ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    replica
}

/// Waits until the replica has everything that the primary has written.
fn wait_for(primary: &mut Client, replica: &mut Client) {
    let start = Instant::now();
    primary.ask("SET marker 0");
    let marker = format!("{:?}", start);
    primary.call(&[b"SET", b"marker", marker.as_bytes()]);
    while !matches!(replica.say("GET marker"), super::client::Reply::Text(text) if text == marker.as_bytes())
    {
        assert!(start.elapsed() < Duration::from_secs(60), "the replica does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const PRIMARY: [&str; 6] =
    ["--save", "", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"];

#[test]
fn a_replica_has_what_the_primary_has_from_the_file_and_from_the_stream() {
    for engine in engines() {
        let primary = Server::with(engine, &PRIMARY);
        let mut client = primary.client();
        // Half of it comes with the file ...
        for (name, make) in FILTERS {
            client.ask(make);
            add(&mut client, name, 0..500);
        }
        // ... to a replica whose settings are others.
        let replica = match engine {
            Engine::Redis62 => Server::loading(
                engine,
                &PRIMARY,
                &["bf-initial-size", "7", "cf-initial-size", "16"],
            ),
            _ => Server::loading(engine, &PRIMARY, &["INITIAL_SIZE", "7", "bf-error-rate", "0.2"]),
        };
        let mut second = replica.client();
        second.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for(&mut client, &mut second);
        // ... the rest as commands.
        for (name, _) in FILTERS {
            add(&mut client, name, 500..1_000);
        }
        client.ask("BF.ADD new 1");
        client.ask("BF.INSERT inserted CAPACITY 300 ERROR 0.05 ITEMS 1 2 3");
        client.ask("CF.ADD cnew 1");
        client.ask("CF.INSERTNX cinserted CAPACITY 77 ITEMS 1 2 2");
        client.ask("BF.MERGE merged plain fixed");
        client.ask("BF.RESERVE hidden 0.01 100 KEYED");
        client.ask("BF.MADD hidden 1 2 3");
        wait_for(&mut client, &mut second);
        assert_eq!(digests(&mut client), digests(&mut second), "{engine:?}");
        for name in ["new", "inserted", "cnew", "cinserted", "merged", "hidden"] {
            let dump = client.ask(&format!("DUMP {name}"));
            assert_eq!(dump, second.ask(&format!("DUMP {name}")), "{engine:?} {name}");
        }
        check_all(&mut second);
        assert!(second.say("BF.ADD plain x").is_error(), "replicas are read-only");
    }
}

#[test]
fn nothing_is_lost_on_failover_in_the_middle_of_loading_chunks() {
    for engine in engines() {
        let mut primary = Server::with(engine, &PRIMARY);
        let mut client = primary.client();
        make_all(&mut client);
        // Which keeps its old data set while the new one comes, and answers meanwhile.
        let replica =
            replica_of(&primary, &[&PRIMARY[..], &["--repl-diskless-load", "swapdb"]].concat());
        let mut second = replica.client();
        wait_for(&mut client, &mut second);
        for (name, family) in
            [("plain", "BF"), ("blocked", "BF"), ("cuckoo", "CF"), ("rated", "CF")]
        {
            let mut number = 0;
            loop {
                let reply = client.ask(&format!("{family}.SCANDUMP {name} {number}"));
                number = reply.array()[0].integer();
                if number == 0 {
                    break;
                }
                let (load, copy, number) =
                    (format!("{family}.LOADCHUNK"), format!("{name}-copy"), number.to_string());
                let words =
                    [load.as_bytes(), copy.as_bytes(), number.as_bytes(), reply.array()[1].bytes()];
                assert!(!client.call(&words).is_error());
            }
        }
        wait_for(&mut client, &mut second);
        drop(client);
        assert!(primary.is_alive());
        drop(primary);
        second.ask("REPLICAOF NO ONE");
        check_all(&mut second);
        for (name, family) in
            [("plain", "BF"), ("blocked", "BF"), ("cuckoo", "CF"), ("rated", "CF")]
        {
            assert_eq!(
                second.ask(&format!("DUMP {name}")),
                second.ask(&format!("DUMP {name}-copy")),
                "{engine:?}"
            );
            second.ask(&format!("{family}.ADD {name}-copy after"));
            assert_eq!(second.ask(&format!("{family}.EXISTS {name}-copy after")).integer(), 1);
        }
    }
}

#[test]
fn a_secret_goes_to_replicas_and_nowhere_else() {
    let server = Server::with(
        Engine::Redis70,
        &["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
    );
    let mut client = server.client();
    let secret = "000102030405060708090a0b0c0d0e0f";
    client.ask(&format!("BF.RESERVE told 0.01 100 KEYED SECRET {secret}"));
    client.ask("BF.RESERVE drawn 0.01 100 KEYED");
    client.ask("BF.RESERVE drawn2 0.01 100 KEYED");
    client.ask("BF.MADD told a b");
    client.ask("BF.MADD drawn a b");
    client.ask("BF.MADD drawn2 a b");
    let payload = |client: &mut Client, name: &str| client.ask(&format!("DUMP {name}"));
    assert_ne!(
        payload(&mut client, "drawn"),
        payload(&mut client, "drawn2"),
        "every filter draws its own"
    );
    let replies = ["BF.INFO told", "BF.INFO told ALL", "BF.DEBUG told"]
        .map(|line| format!("{:?}", client.ask(line)));
    assert!(replies.iter().all(|reply| !reply.contains(secret)));
    // The command that is passed on names the secret: without it a replica would have another filter.
    let folder = server.folder().join("appendonlydir");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|file| std::fs::read(file.path()).unwrap());
    let aof = String::from_utf8_lossy(&files.collect::<Vec<_>>().concat()).into_owned();
    assert_eq!(aof.matches("SECRET").count(), 3);
}

#[test]
fn listeners_hear_of_every_write() {
    for engine in engines() {
        let server = Server::with(engine, &["--save", "", "--notify-keyspace-events", "KEA"]);
        let (mut listener, mut client) = (server.client(), server.client());
        listener.ask("PSUBSCRIBE __keyevent@0__:*");
        let lines = [
            ("BF.RESERVE a 0.01 100", "bf.reserve"),
            ("BF.ADD a 1", "bf.add"),
            ("BF.MADD a 1 2", "bf.madd"),
            ("BF.INSERT a ITEMS 1", "bf.insert"),
            ("BF.MERGE a a", "bf.merge"),
            ("CF.RESERVE c 100", "cf.reserve"),
            ("CF.ADD c 1", "cf.add"),
            ("CF.ADDNX c 2", "cf.addnx"),
            ("CF.INSERT c ITEMS 1", "cf.insert"),
            ("CF.INSERTNX c ITEMS 3", "cf.insertnx"),
            ("CF.DEL c 1", "cf.del"),
            ("CF.COMPACT c", "cf.compact"),
        ];
        for (line, event) in lines {
            client.ask(line);
            let channel = format!("__keyevent@0__:{event}");
            let heard = (0..3).any(|_| {
                let message = listener.reply().expect("a message");
                message.array()[2].bytes() == channel.as_bytes()
            });
            assert!(heard, "{engine:?}: {line}");
        }
    }
}
