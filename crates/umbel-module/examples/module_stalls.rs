//! How long one client command blocks the server, on filters of about 100 MB: the table "What holds up the
//! server" of `docs/module.md`.
//!
//! ```text
//! crates/umbel-module/engines && cargo build --release -p umbel-module --lib --examples
//! target/release/examples/module_stalls [redis62|redis70|redis80|valkey81|valkey]
//! ```
//!
//! Two figures per command: the CPU time of the server, which is independent of other processes, and the
//! longest wait of a `PING` on another connection, which a busy machine increases. If a command is sent several
//! times, such as one for each chunk, both figures are those of the longest.

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it/client.rs"]
mod client;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it/server.rs"]
mod server;

use client::Client;
use server::{Engine, Server};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Commands that fill about a hundred megabytes, one per type of filter.
const FILTERS: [(&str, &str); 7] = [
    ("plain", "BF.RESERVE plain 0.01 70000000 NONSCALING"),
    ("keyed", "BF.RESERVE keyed 0.01 70000000 NONSCALING KEYED"),
    ("blocked", "BF.RESERVE blocked 0.01 70000000 NONSCALING BLOCKED"),
    ("window", "BF.RESERVE window 0.01 50000000 WINDOW 50000000"),
    ("cuckoo", "CF.RESERVE cuckoo 100000000"),
    ("rated", "CF.RESERVE rated 70000000 ERROR 0.01"),
    // Bits that other filters of the shape of `plain` are merged with.
    ("other", "BF.RESERVE other 0.01 70000000 NONSCALING"),
];

/// The connections that measure a row.
struct Stalls<'a> {
    server: &'a Server,
    client: Client,
    waited: &'a AtomicU64,
}

impl Stalls<'_> {
    fn cpu(&self) -> u64 {
        let path = format!("/proc/{}/task/{}/schedstat", self.server.pid(), self.server.pid());
        let text = std::fs::read_to_string(path).expect("the server runs");
        text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("nanoseconds")
    }

    /// Sends commands one after the other, and prints a row for the slowest one.
    fn row(&mut self, name: &str, commands: &[Vec<Vec<u8>>]) {
        let (mut cpu, mut wait) = (0, 0);
        for words in commands {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            // The time to send and parse the commands is excluded as far as possible.
            self.client.ask("PING");
            self.waited.store(0, Ordering::SeqCst);
            let before = self.cpu();
            let reply = self.client.call(&words);
            cpu = cpu.max(self.cpu() - before);
            assert!(!reply.is_error(), "{name}: {reply:?}");
            // The delayed PING is answered after this one.
            std::thread::sleep(std::time::Duration::from_millis(20));
            wait = wait.max(self.waited.load(Ordering::SeqCst));
        }
        let milliseconds = |nanos: u64| nanos as f64 / 1e6;
        println!("{name:<60} {:>9.1} {:>9.1}", milliseconds(cpu), milliseconds(wait));
    }

    fn line(&mut self, line: &str) {
        self.row(line, &[line.split(' ').map(|word| word.as_bytes().to_vec()).collect()]);
    }

    fn items(&mut self, head: &str, first: u32, count: u32) {
        let words = head.split(' ').map(|word| word.as_bytes().to_vec());
        let items = (first..first + count).map(|item| format!("{item:x}").into_bytes());
        self.row(&format!("{head}, {count} items"), &[words.chain(items).collect()]);
    }

    /// Moves a filter in chunks: one row for reading them, one for writing all but the last, and one for
    /// writing the last.
    fn chunks(&mut self, family: &str, name: &str) {
        let words = |number: i64| {
            let number = number.to_string();
            [&format!("{family}.SCANDUMP"), name, &number]
                .map(|word| word.as_bytes().to_vec())
                .to_vec()
        };
        let (mut number, mut dumps, mut loads) = (0, Vec::new(), Vec::new());
        loop {
            dumps.push(words(number));
            let line: Vec<&[u8]> = dumps[dumps.len() - 1].iter().map(Vec::as_slice).collect();
            let reply = self.client.call(&line);
            number = reply.array()[0].integer();
            if number == 0 {
                break;
            }
            let head = [&format!("{family}.LOADCHUNK"), "loaded", &number.to_string()];
            let mut load = head.map(|word| word.as_bytes().to_vec()).to_vec();
            load.push(reply.array()[1].bytes().to_vec());
            loads.push(load);
        }
        dumps.pop();
        let last = dumps.len() - 1;
        self.row(&format!("{family}.SCANDUMP {name} 0"), &dumps[..1]);
        self.row(&format!("{family}.SCANDUMP {name}, first chunk"), &dumps[1..2]);
        self.row(&format!("{family}.SCANDUMP {name}, last chunk"), &dumps[last..]);
        self.row(&format!("{family}.SCANDUMP {name}, others"), &dumps[2..last]);
        let (others, last) = loads.split_at(loads.len() - 1);
        self.row(&format!("{family}.LOADCHUNK {name}, others"), others);
        self.row(&format!("{family}.LOADCHUNK {name}, last"), last);
        self.client.ask("DEL loaded");
    }

    fn add(&mut self, head: &str, items: std::ops::Range<u32>) {
        for start in items.clone().step_by(10_000) {
            let end = items.end.min(start + 10_000);
            let words = head.split(' ').map(|word| word.as_bytes().to_vec());
            let items = (start..end).map(|item| format!("{item:x}").into_bytes());
            let words: Vec<Vec<u8>> = words.chain(items).collect();
            self.client.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }

    fn all(&mut self) {
        println!("{:<60} {:>9} {:>9}", "milliseconds", "CPU", "PING");
        for (name, make) in FILTERS {
            self.line(make);
            let head = if make.starts_with("CF") {
                format!("CF.INSERT {name} ITEMS")
            } else {
                format!("BF.MADD {name}")
            };
            // Every page is touched.
            self.add(&head, 0..2_000_000);
            self.items(&head, 5_000_000, 100_000);
            let head = if make.starts_with("CF") { "CF" } else { "BF" };
            self.items(&format!("{head}.MEXISTS {name}"), 3_000_000, 100_000);
            self.line(&format!("{head}.INFO {name} ALL"));
            if name != "keyed" && name != "other" {
                self.chunks(head, name);
            }
        }
        for name in ["plain", "blocked", "window", "cuckoo", "rated"] {
            self.line(&format!("COPY {name} copy"));
            self.line("UNLINK copy");
        }
        self.line("BF.MERGE plain other");
        self.line("BF.MERGE copy plain other plain other");
        self.line("BF.MERGE copied blocked");
        self.line("DUMP plain");
        self.line("DUMP blocked");
        self.line("FLUSHALL ASYNC");
        self.line("CF.RESERVE small 1000000");
        self.add("CF.INSERT small ITEMS", 0..20_000_000);
        self.line("CF.COMPACT small");
        self.line("CF.RESERVE full 130050 BUCKETSIZE 255 MAXITERATIONS 65535 EXPANSION 0");
        self.add("CF.INSERT full ITEMS", 0..130_000);
        self.line("BF.RESERVE links 0.01 1 EXPANSION 1");
        self.add("BF.MADD links", 0..2_000);
        self.items("BF.MEXISTS links", 3_000_000, 20_000);
    }
}

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    let engine = match word.as_str() {
        "redis62" => Engine::Redis62,
        "redis70" => Engine::Redis70,
        "valkey81" => Engine::Valkey81,
        "valkey" => Engine::Valkey,
        _ => Engine::Redis80,
    };
    let server = Server::start(engine);
    println!("{engine:?}");
    let (waited, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            while !done.load(Ordering::SeqCst) {
                let start = Instant::now();
                client.ask("PING");
                let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                waited.fetch_max(nanos, Ordering::SeqCst);
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        Stalls { server: &server, client: server.client(), waited: &waited }.all();
        done.store(true, Ordering::SeqCst);
    });
}
