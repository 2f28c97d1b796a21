//! The laws of `umbel-laws`, through an engine: every key is sent over the wire.
//!
//! `survives_any_bytes` is not among them: engines accept a checksum of zero as none and ignore bytes after a
//! value, so not all damage is refused. `hostile` tests that no damage has an effect on the server.

use super::client::{Client, Reply};
use super::server::{Engine, Server};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use umbel_laws::{
    Pattern, Removes, Saves, Subject, Trial, Unites, keeps_the_window, no_false_negatives,
    rate_within, refuses_incompatible, remove_undoes_insert, round_trips, union_contains_both,
};

thread_local! {
    /// The connection of the test that runs in this thread.
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

fn call(words: &[&[u8]]) -> Reply {
    CLIENT.with_borrow_mut(|client| client.as_mut().expect("a law is under way").call(words))
}

/// Runs laws on a separate server.
fn in_engine(laws: impl FnOnce()) {
    let server = Server::start(Engine::Redis70);
    CLIENT.set(Some(server.client()));
    laws();
    CLIENT.set(None);
}

/// How a type of filter is created.
trait Kind {
    const FAMILY: &'static str;
    fn options(capacity: u64, rate: f64, seed: u64) -> String;
}

macro_rules! kinds {
    ($($name:ident $family:literal |$capacity:ident, $rate:ident, $seed:ident| $options:expr;)*) => {$(
        struct $name;
        impl Kind for $name {
            const FAMILY: &'static str = $family;
            #[allow(unused_variables, reason = "not every kind has a rate or a seed")]
            fn options($capacity: u64, $rate: f64, $seed: u64) -> String { $options }
        }
    )*};
}

kinds! {
    Plain "BF" |capacity, rate, seed| format!("{rate} {capacity} NONSCALING");
    Scaling "BF" |capacity, rate, seed| format!("{rate} {}", capacity / 10 + 1);
    Keyed "BF" |capacity, rate, seed| format!("{rate} {capacity} NONSCALING KEYED SECRET {seed:032x}");
    RoomyPlain "BF" |capacity, rate, seed| format!("{rate} {} NONSCALING", capacity + 10);
    RoomyKeyed "BF" |capacity, rate, seed| format!("{rate} {} NONSCALING KEYED SECRET {seed:032x}", capacity + 10);
    RoomyBlocked "BF" |capacity, rate, seed| format!("{rate} {} NONSCALING BLOCKED", capacity + 10);
    RoomyRated "CF" |capacity, rate, seed| format!("{} ERROR {rate}", capacity + 10);
    Blocked "BF" |capacity, rate, seed| format!("{rate} {capacity} NONSCALING BLOCKED");
    Window "BF" |capacity, rate, seed| format!("{rate} {capacity} WINDOW {capacity}");
    Cuckoo "CF" |capacity, rate, seed| format!("{}", capacity.max(4));
    Rated "CF" |capacity, rate, seed| format!("{} ERROR {rate}", capacity.max(4));
}

/// A filter in the engine.
struct Remote<K> {
    name: String,
    kind: PhantomData<K>,
}

impl<K: Kind> Remote<K> {
    fn fresh() -> Self {
        let number = NEXT.replace(NEXT.get() + 1);
        Self { name: format!("filter:{number}"), kind: PhantomData }
    }

    fn say(&self, verb: &str, key: &[u8]) -> Reply {
        call(&[format!("{}.{verb}", K::FAMILY).as_bytes(), self.name.as_bytes(), key])
    }
}

impl<K> Drop for Remote<K> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            call(&[b"DEL", self.name.as_bytes()]);
        }
    }
}

impl<K: Kind> Subject for Remote<K> {
    /// Double hashing: 3.8 for 10 keys by the table in `umbel::kernels`.
    const DEPENDENCE: f64 = 4.0;

    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let filter = Self::fresh();
        let line = format!(
            "{}.RESERVE {} {}",
            K::FAMILY,
            filter.name,
            K::options(capacity, err_rate, seed)
        );
        let reply = call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert!(!reply.is_error(), "{line}: {reply:?}");
        filter
    }

    fn insert(&mut self, key: u64) -> bool {
        if K::FAMILY == "BF" {
            return self.say("ADD", &key.to_le_bytes()).integer() == 1;
        }
        let found = self.contains(key);
        assert_eq!(self.say("ADD", &key.to_le_bytes()), Reply::Integer(1));
        !found
    }

    fn contains(&self, key: u64) -> bool {
        self.say("EXISTS", &key.to_le_bytes()).integer() == 1
    }

    fn rate_now(&self) -> f64 {
        let reply = self.say("INFO", b"RATE");
        String::from_utf8_lossy(reply.array()[0].bytes()).parse().expect("a rate")
    }
}

impl<K: Kind> Removes for Remote<K> {
    fn remove(&mut self, key: u64) -> bool {
        self.say("DEL", &key.to_le_bytes()).integer() == 1
    }

    /// Compared by the number of items: a fingerprint may be in either of its buckets.
    fn holds_as_much(&self, other: &Self) -> bool {
        self.say("INFO", b"ITEMS") == other.say("INFO", b"ITEMS")
    }
}

impl<K: Kind> Unites for Remote<K> {
    fn unite(&mut self, other: &Self) -> Result<(), String> {
        match self.say("MERGE", other.name.as_bytes()) {
            Reply::Error(text) => Err(text),
            _ => Ok(()),
        }
    }

    /// Compared by their bits: the number of keys in a union is an estimate.
    fn same(&self, other: &Self) -> bool {
        let bits = |filter: &Self| {
            if K::options(1, 0.1, 1).contains("KEYED") {
                // Its bits are at the end of the payload. The type, the secret and a header come before them,
                // and an end mark, the version and the checksum after.
                call(&[b"CONFIG", b"SET", b"rdbcompression", b"no"]);
                let dump = call(&[b"DUMP", filter.name.as_bytes()]).bytes().to_vec();
                let stream = dump.windows(7).position(|bytes| bytes == b"umbelBF")?;
                let from = stream + 9 + 16 + 4 + 20 + 53;
                return dump.get(from..dump.len() - 11).map(<[u8]>::to_vec);
            }
            let reply = filter.say("SCANDUMP", b"1");
            match &reply.array()[1] {
                // An empty cuckoo filter has no chunks.
                Reply::Null => None,
                chunk => Some(chunk.bytes().to_vec()),
            }
        };
        bits(self) == bits(other)
    }
}

impl<K: Kind> Saves for Remote<K> {
    fn save(&self) -> Vec<u8> {
        call(&[b"DUMP", self.name.as_bytes()]).bytes().to_vec()
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        let filter = Self::fresh();
        match call(&[b"RESTORE", filter.name.as_bytes(), b"0", bytes]) {
            Reply::Error(text) => Err(text),
            _ => Ok(filter),
        }
    }
}

const fn trial(items: u64, rate: f64) -> Trial {
    Trial { items, rate, pattern: Pattern::Random, seeds: 2, queries: 10_000 }
}

#[test]
fn plain_filters_obey_the_law() {
    in_engine(|| {
        for items in [1, 10, 200] {
            no_false_negatives::<Remote<Plain>>(items, 0.01);
            no_false_negatives::<Remote<Scaling>>(items, 0.01);
        }
        rate_within::<Remote<Plain>>(trial(2_000, 0.02));
        union_contains_both::<Remote<Plain>>(300, 0.01);
        round_trips::<Remote<RoomyPlain>>(300, 0.01);
    });
}

#[test]
fn keyed_and_blocked_filters_obey_the_law() {
    in_engine(|| {
        for items in [1, 200] {
            no_false_negatives::<Remote<Keyed>>(items, 0.01);
            no_false_negatives::<Remote<Blocked>>(items, 0.01);
        }
        rate_within::<Remote<Keyed>>(trial(2_000, 0.02));
        rate_within::<Remote<Blocked>>(trial(2_000, 0.02));
        union_contains_both::<Remote<Keyed>>(300, 0.01);
        refuses_incompatible::<Remote<Keyed>>(300, 0.01);
        round_trips::<Remote<RoomyKeyed>>(300, 0.01);
        round_trips::<Remote<RoomyBlocked>>(300, 0.01);
    });
}

#[test]
fn windows_obey_the_law() {
    in_engine(|| {
        keeps_the_window::<Remote<Window>>(500, 0.01, 20_000);
        round_trips::<Remote<Window>>(300, 0.01);
    });
}

#[test]
fn cuckoo_filters_obey_the_law() {
    in_engine(|| {
        for items in [1, 200] {
            // Eight bits in one table or two.
            no_false_negatives::<Remote<Cuckoo>>(items, 0.03);
            no_false_negatives::<Remote<Rated>>(items, 0.001);
        }
        remove_undoes_insert::<Remote<Cuckoo>>(300, 0.03);
        remove_undoes_insert::<Remote<Rated>>(300, 0.001);
        rate_within::<Remote<Rated>>(trial(2_000, 0.02));
        round_trips::<Remote<Cuckoo>>(300, 0.01);
        round_trips::<Remote<RoomyRated>>(300, 0.01);
    });
}
