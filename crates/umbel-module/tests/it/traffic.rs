//! Random commands against an exact model: an added item is found, whatever else has happened to the key.
//!
//! `UMBEL_TRAFFIC=100000 cargo test --release -p umbel-module --test it traffic` runs longer.

use super::client::{Client, Reply};
use super::data::{FILTERS, is_cuckoo};
use super::server::{Server, engines};
use std::collections::{HashMap, VecDeque};
use umbel_laws::split_mix;

/// Rounds in each engine.
fn rounds() -> u64 {
    std::env::var("UMBEL_TRAFFIC").ok().and_then(|text| text.parse().ok()).unwrap_or(1_500)
}

/// The expected content: how often each item is present, and for windows the last items.
#[derive(Default)]
struct Model {
    counts: HashMap<u64, u64>,
    last: VecDeque<u64>,
}

/// The window of the filter of that name in `FILTERS`.
const WINDOW: usize = 1_000;

/// Items of the model, and of the filters that do not grow.
const ITEMS: u64 = 900;

impl Model {
    fn add(&mut self, item: u64) {
        *self.counts.entry(item).or_default() += 1;
        self.last.push_back(item);
        if self.last.len() > WINDOW {
            self.last.pop_front();
        }
    }

    fn has(&self, name: &str, item: u64) -> bool {
        let counted = self.counts.get(&item).is_some_and(|count| *count > 0);
        counted && (name != "window" || self.last.contains(&item))
    }
}

fn word(item: u64) -> String {
    format!("item:{item}")
}

/// Adds some items by one of the commands, and to the model, unless they were refused or already present.
fn add(client: &mut Client, name: &str, model: &mut Model, dice: &mut impl FnMut(u64) -> u64) {
    let items: Vec<u64> = (0..=dice(8)).map(|_| dice(ITEMS)).collect();
    let words: Vec<String> = items.iter().map(|item| word(*item)).collect();
    if !is_cuckoo(name) {
        let verb = if dice(2) == 0 { "BF.MADD" } else { "BF.INSERT" };
        let keyword = if verb == "BF.INSERT" { " ITEMS" } else { "" };
        client.ask(&format!("{verb} {name}{keyword} {}", words.join(" ")));
        items.into_iter().for_each(|item| model.add(item));
        return;
    }
    let verb = if dice(2) == 0 { "CF.INSERT" } else { "CF.INSERTNX" };
    let reply = client.ask(&format!("{verb} {name} ITEMS {}", words.join(" ")));
    for (item, reply) in items.into_iter().zip(reply.array()) {
        if *reply == Reply::Integer(1) {
            model.add(item);
        }
    }
}

/// Moves the filter to another key and back, in one of several ways.
fn move_it(client: &mut Client, name: &str, way: u64) {
    let family = if is_cuckoo(name) { "CF" } else { "BF" };
    match way {
        0 => {
            client.ask(&format!("COPY {name} other REPLACE"));
            client.ask(&format!("RENAME other {name}"));
        }
        1 => {
            let payload = client.ask(&format!("DUMP {name}")).bytes().to_vec();
            client.call(&[b"RESTORE", name.as_bytes(), b"0", &payload, b"REPLACE"]);
        }
        2 => {
            let mut number = 0;
            loop {
                let reply = client.say(&format!("{family}.SCANDUMP {name} {number}"));
                if matches!(&reply, Reply::Error(text) if text.contains("secret")) {
                    return;
                }
                number = reply.array()[0].integer();
                if number == 0 {
                    break;
                }
                let (load, number) = (format!("{family}.LOADCHUNK"), number.to_string());
                let words =
                    [load.as_bytes(), b"other", number.as_bytes(), reply.array()[1].bytes()];
                assert!(!client.call(&words).is_error(), "{name}");
            }
            // An empty cuckoo filter has no chunks.
            if client.ask("EXISTS other").integer() == 1 {
                client.ask(&format!("RENAME other {name}"));
            }
        }
        3 => _ = client.ask("DEBUG RELOAD"),
        _ if family == "CF" => _ = client.ask(&format!("CF.COMPACT {name}")),
        _ => _ = client.say(&format!("BF.MERGE {name} {name}")),
    }
}

#[test]
fn whatever_happens_nothing_is_lost() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let mut models: HashMap<&str, Model> = HashMap::new();
        for (name, make) in FILTERS {
            client.ask(make);
            models.insert(name, Model::default());
        }
        let mut state = 0;
        let mut dice = |sides: u64| {
            state += 1;
            split_mix(state) % sides
        };
        for round in 0..rounds() {
            let name = FILTERS[dice(9) as usize].0;
            let model = models.get_mut(name).expect("every filter has a model");
            let family = if is_cuckoo(name) { "CF" } else { "BF" };
            match dice(12) {
                0..6 => add(&mut client, name, model, &mut dice),
                6..9 if family == "CF" => {
                    // Only present items may be removed.
                    let item = dice(ITEMS);
                    if let Some(count) = model.counts.get_mut(&item).filter(|count| **count > 0) {
                        assert_eq!(
                            client.ask(&format!("CF.DEL {name} {}", word(item))).integer(),
                            1,
                            "{engine:?} {name}"
                        );
                        *count -= 1;
                    }
                }
                9 => move_it(&mut client, name, dice(5)),
                _ => {
                    let item = dice(ITEMS);
                    let found =
                        client.ask(&format!("{family}.EXISTS {name} {}", word(item))).integer()
                            == 1;
                    assert!(
                        found || !model.has(name, item),
                        "{engine:?} {name}: {item} is lost in round {round}"
                    );
                }
            }
        }
        for (name, model) in models {
            let family = if is_cuckoo(name) { "CF" } else { "BF" };
            let mut absent = 0;
            for item in 0..ITEMS {
                let found =
                    client.ask(&format!("{family}.EXISTS {name} {}", word(item))).integer() == 1;
                assert!(found || !model.has(name, item), "{engine:?} {name}: {item} is lost");
                absent += u64::from(!found);
            }
            let strangers = (0..200).filter(|number| {
                client.ask(&format!("{family}.EXISTS {name} stranger:{number}")).integer() == 1
            });
            assert!(
                strangers.count() < 40,
                "{engine:?} {name} says yes to everything; {absent} items are not in it"
            );
        }
    }
}
