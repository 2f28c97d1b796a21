//! Filters in a cluster: every node has the keys of its slots, and a filter moves with its slot.

use super::client::{Client, Reply};
use super::data::{FILTERS, ITEMS, add, found};
use super::server::{Server, engines};
use std::time::{Duration, Instant};

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Two nodes that share all slots.
fn cluster(engine: super::server::Engine) -> [Server; 2] {
    let nodes = [(); 2].map(|()| Server::with(engine, &["--save", "", "--cluster-enabled", "yes"]));
    let [one, two] = &nodes;
    for (node, slots) in [(one, 0..8192), (two, 8192..16384)] {
        let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
        let words: Vec<&[u8]> = ["CLUSTER", "ADDSLOTS"]
            .into_iter()
            .chain(slots.iter().map(String::as_str))
            .map(str::as_bytes)
            .collect();
        assert!(!node.client().call(&words).is_error());
    }
    one.client().ask(&format!("CLUSTER MEET 127.0.0.1 {}", two.port));
    for node in &nodes {
        let mut client = node.client();
        wait_until("the cluster is not up", || {
            let info = client.ask("CLUSTER INFO");
            let text = String::from_utf8_lossy(info.bytes()).into_owned();
            text.contains("cluster_state:ok") && text.contains("cluster_known_nodes:2")
        });
    }
    nodes
}

/// The node that has a key.
fn home<'a>(clients: &'a mut [Client], key: &str) -> &'a mut Client {
    let slot = clients[0].ask(&format!("CLUSTER KEYSLOT {key}")).integer();
    &mut clients[usize::from(slot >= 8192)]
}

#[test]
fn filters_live_and_move_in_a_cluster() {
    for engine in engines() {
        let nodes = cluster(engine);
        let mut clients = nodes.each_ref().map(Server::client);
        for (name, make) in FILTERS {
            let client = home(&mut clients, name);
            client.ask(make);
            add(client, name, 0..ITEMS);
        }
        // The other node redirects the client.
        let slot = clients[0].ask("CLUSTER KEYSLOT plain").integer();
        let other = usize::from(slot < 8192);
        assert!(
            matches!(clients[other].say("BF.EXISTS plain x"), Reply::Error(text) if text.starts_with("MOVED"))
        );
        assert!(matches!(
            clients[1 - other].say("BF.MERGE plain fixed"),
            Reply::Error(_) | Reply::Text(_)
        ));
        let crossed = clients[1 - other].say("BF.MERGE plain a b c d e f g h i j k");
        assert!(
            matches!(crossed, Reply::Error(text) if text.starts_with("CROSSSLOT")),
            "all arguments are keys"
        );
        for (name, _) in FILTERS {
            let slot = clients[0].ask(&format!("CLUSTER KEYSLOT {name}")).integer();
            let (from, to) = (usize::from(slot >= 8192), usize::from(slot < 8192));
            let id = |client: &mut Client| {
                String::from_utf8_lossy(client.ask("CLUSTER MYID").bytes()).into_owned()
            };
            let (source, target) = (id(&mut clients[from]), id(&mut clients[to]));
            clients[to].ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
            clients[from].ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
            let moved =
                clients[from].ask(&format!("MIGRATE 127.0.0.1 {} {name} 0 10000", nodes[to].port));
            assert_eq!(moved, Reply::Text(b"OK".to_vec()), "{engine:?} {name}");
            clients[to].ask(&format!("CLUSTER SETSLOT {slot} NODE {target}"));
            clients[from].ask(&format!("CLUSTER SETSLOT {slot} NODE {target}"));
            assert_eq!(
                found(&mut clients[to], name, 0..ITEMS),
                i64::from(ITEMS),
                "{engine:?} {name}"
            );
        }
    }
}
