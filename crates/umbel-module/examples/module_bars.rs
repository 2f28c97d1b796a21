//! Benchmarks of the module: server CPU time per key, relative to one pipelined GETBIT on the same server in
//! the same run.
//!
//! ```text
//! crates/umbel-module/engines && cargo build --release -p umbel-module --lib --examples
//! target/release/examples/module_bars [--large] [--lock FILE] [redis62|redis70|valkey]
//! ```
//!
//! `--lock` takes the lock of this file after the filters are filled, so that other measurements wait.
//!
//! CPU time is the kernel's account of the server's threads in nanoseconds (`/proc/PID/task/*/schedstat`), so
//! that neither this client nor other processes count. Rounds are interleaved; every figure is a median.

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it/client.rs"]
mod client;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it/server.rs"]
mod server;

use client::{Client, command};
use server::{Engine, Server};
use std::fs::File;
use std::io;

/// Rounds, and keys of each round and row.
const ROUNDS: u64 = 10;
const KEYS: u64 = 100_000;
const ITEMS: u64 = ROUNDS * KEYS;

fn cpu(server: &Server) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("the server runs");
    let time = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.flatten().filter_map(time).sum()
}

/// An eleven-byte key.
fn key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

/// Spreads numbers, so that consecutive keys are not adjacent in memory.
fn shuffled(number: u64, below: u64) -> u64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % below
}

/// Sends commands of `per` keys each, up to 500 keys at once, and waits for the answers.
fn run(client: &mut Client, keys: impl Iterator<Item = Vec<u8>>, head: &[&[u8]], per: usize) {
    run_ahead(client, keys, head, per, 500);
}

/// As [`run`], with this number of keys at once.
fn run_ahead(
    client: &mut Client,
    keys: impl Iterator<Item = Vec<u8>>,
    head: &[&[u8]],
    per: usize,
    at_once: usize,
) {
    let keys: Vec<Vec<u8>> = keys.collect();
    for batch in keys.chunks(at_once) {
        let (mut bytes, mut lines) = (Vec::new(), 0);
        for keys in batch.chunks(per) {
            let words: Vec<&[u8]> =
                head.iter().copied().chain(keys.iter().map(Vec::as_slice)).collect();
            bytes.extend(command(&words));
            // The length of an array, and a line for every element; a string has its length in front.
            lines += match head[0] {
                _ if per > 1 => 1 + keys.len(),
                b"ECHO" => 2,
                _ => 1,
            };
        }
        client.send(&bytes).expect("the server takes it");
        skip(client, lines).expect("the server answers");
    }
}

/// Reads answers of this number of lines, none of which may be an error.
fn skip(client: &mut Client, mut lines: usize) -> io::Result<()> {
    while lines > 0 {
        let bytes = io::BufRead::fill_buf(&mut client.stream)?;
        if bytes.is_empty() || bytes.starts_with(b"-") {
            return Err(io::Error::other(String::from_utf8_lossy(bytes).into_owned()));
        }
        let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(lines - 1);
        let used = end.map_or(bytes.len(), |(at, _)| at + 1);
        lines -= bytes[..used].iter().filter(|byte| **byte == b'\n').count();
        io::BufRead::consume(&mut client.stream, used);
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A row: its name, its limit, and its operation on a range of keys.
struct Row {
    name: &'static str,
    bar: f64,
    head: Vec<&'static [u8]>,
    per: usize,
    keys: fn(u64) -> Vec<u8>,
}

/// Commands that find no filter, which are the floor for those that find one. The limits are 1.15 of it for
/// single keys, and 60 ns per key above it for batches. A command that does not even look up its key takes 0.93
/// of the first (Redis 8.0, 2026-11-19).
const EMPTY: &str = "BF.EXISTS of no key: the floor of single ones";
const EMPTY_BATCH: &str = "BF.MEXISTS x 100 of no key: that of batches";

fn rows() -> Vec<Row> {
    fn words(line: &'static str) -> Vec<&'static [u8]> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect()
    }
    let row = |name, bar, head, per, keys| Row { name, bar, head: words(head), per, keys };
    let hit: fn(u64) -> Vec<u8> = |number| key(shuffled(number, ITEMS));
    let miss: fn(u64) -> Vec<u8> = |number| key(50_000_000 + number);
    let next: fn(u64) -> Vec<u8> = key;
    let offset: fn(u64) -> Vec<u8> = |number| shuffled(number, 20_000_000).to_string().into_bytes();
    vec![
        row("GETBIT, pipelined", 1.0, "GETBIT bits", 1, offset),
        row("BF.MEXISTS x 100, present", 0.5, "BF.MEXISTS full", 100, hit),
        row("BF.MEXISTS x 100, absent", 0.5, "BF.MEXISTS full", 100, miss),
        row("BF.MADD x 100", 0.65, "BF.MADD fill", 100, next),
        row("BF.EXISTS, pipelined, present", 1.5, "BF.EXISTS full", 1, hit),
        row("BF.EXISTS, pipelined, absent", 1.5, "BF.EXISTS full", 1, miss),
        row("BF.ADD, pipelined", 1.5, "BF.ADD single", 1, next),
        row("CF.MEXISTS x 100, present", 0.6, "CF.MEXISTS cfull", 100, hit),
        row("CF.MEXISTS x 100, absent", 0.6, "CF.MEXISTS cfull", 100, miss),
        row("CF.INSERT x 100", 0.7, "CF.INSERT cfill ITEMS", 100, next),
        row("BF.MEXISTS x 100, grown, present", 1.2, "BF.MEXISTS grown", 100, hit),
        row("BF.MEXISTS x 100, grown, absent", 1.2, "BF.MEXISTS grown", 100, miss),
        row("BLOCKED, BF.MEXISTS x 100, present", f64::NAN, "BF.MEXISTS blocked", 100, hit),
        row("KEYED, BF.MEXISTS x 100, present", f64::NAN, "BF.MEXISTS keyed", 100, hit),
        row("WINDOW, BF.MEXISTS x 100, present", f64::NAN, "BF.MEXISTS window", 100, hit),
        row("CF ERROR 0.01, CF.MEXISTS x 100, present", f64::NAN, "CF.MEXISTS rated", 100, hit),
        row(EMPTY, f64::NAN, "BF.EXISTS none", 1, miss),
        row("BF.CARD of no key: a call of a module", f64::NAN, "BF.CARD", 1, |_| b"none".to_vec()),
        row(EMPTY_BATCH, f64::NAN, "BF.MEXISTS none", 100, miss),
        row("ECHO", f64::NAN, "ECHO", 1, |_| b"none".to_vec()),
    ]
}

fn prepare(client: &mut Client) {
    client.ask("SETBIT bits 19999999 1");
    for name in ["full", "fill", "single"] {
        client.ask(&format!("BF.RESERVE {name} 0.01 {ITEMS}"));
    }
    client.ask(&format!("BF.RESERVE blocked 0.01 {ITEMS} BLOCKED"));
    client.ask(&format!("BF.RESERVE keyed 0.01 {ITEMS} KEYED"));
    client.ask(&format!("BF.RESERVE window 0.01 {ITEMS} WINDOW {ITEMS}"));
    client.ask(&format!("CF.RESERVE cfull {ITEMS}"));
    client.ask(&format!("CF.RESERVE cfill {ITEMS}"));
    client.ask(&format!("CF.RESERVE rated {ITEMS} ERROR 0.01"));
    for name in ["full", "grown", "blocked", "keyed", "window"] {
        run(client, (0..ITEMS).map(key), &[b"BF.MADD", name.as_bytes()], 100);
    }
    for name in ["cfull", "rated"] {
        run(client, (0..ITEMS).map(key), &[b"CF.INSERT", name.as_bytes(), b"ITEMS"], 100);
    }
}

fn speed(server: &Server, lock: Option<&File>) -> io::Result<()> {
    let mut client = server.client();
    prepare(&mut client);
    lock.map_or(Ok(()), File::lock)?;
    let rows = rows();
    let mut nanos = vec![Vec::new(); rows.len()];
    for round in 0..ROUNDS {
        for (row, nanos) in rows.iter().zip(&mut nanos) {
            let keys = (round * KEYS..(round + 1) * KEYS).map(row.keys);
            let keys: Vec<_> = keys.collect();
            let before = cpu(server);
            run(&mut client, keys.into_iter(), &row.head, row.per);
            nanos.push((cpu(server) - before) as f64 / KEYS as f64);
        }
    }
    println!("{:<44} {:>8} {:>7} {:>6}  above the floor", "", "ns/key", "ratio", "bar");
    let unit = median(nanos[0].clone());
    let medians: Vec<_> = nanos.into_iter().map(median).collect();
    let floor = |name| rows.iter().position(|row| row.name == name).map_or(unit, |at| medians[at]);
    let (single, batch) = (floor(EMPTY), floor(EMPTY_BATCH));
    for (row, nanos) in rows.iter().zip(&medians) {
        let verdict = if nanos / unit <= row.bar || row.bar.is_nan() { "" } else { "  above" };
        let above = match row.per {
            1 => format!("{:>6.3} times", nanos / single),
            _ => format!("{:>6.1} ns", nanos - batch),
        };
        let ratio = nanos / unit;
        println!("{:<44} {nanos:>8.1} {ratio:>7.3} {:>6.2}  {above}{verdict}", row.name, row.bar);
    }
    Ok(())
}

/// The memory of keys: by `MEMORY USAGE`, and by the decrease of `used_memory` when they are deleted.
fn memory(server: &Server) {
    let mut client = server.client();
    let used = |client: &mut Client| -> i64 {
        let info = client.ask("INFO memory");
        let text = String::from_utf8_lossy(info.bytes()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|line| line.trim().parse().ok()).expect("INFO tells used_memory")
    };
    // With deletion in the background, the memory would be returned later.
    client.ask("CONFIG SET lazyfree-lazy-user-del no");
    println!("{:<44} {:>12} {:>12} {:>8}", "", "MEMORY USAGE", "used_memory", "off");
    for name in ["fill", "full", "grown", "blocked", "keyed", "window", "cfull", "rated"] {
        let usage = client.ask(&format!("MEMORY USAGE {name}")).integer();
        client.ask("GETBIT bits 0");
        let before = used(&mut client);
        client.ask(&format!("DEL {name}"));
        client.ask("GETBIT bits 0");
        let freed = before - used(&mut client);
        let off = (usage as f64 / freed as f64 - 1.0) * 100.0;
        // Deleting the first key also frees buffers of the measurement.
        if name != "fill" {
            println!("{name:<44} {usage:>12} {freed:>12} {off:>7.2}%");
        }
    }
}

/// 1e8 items: the blocked layout against the plain one. Fifty commands are sent at once, so that the filter is
/// measured and not how often the server sleeps.
fn large(server: &Server, lock: Option<&File>) -> io::Result<()> {
    const LARGE: u64 = 100_000_000;
    let mut client = server.client();
    client.ask("FLUSHALL");
    client.ask(&format!("BF.RESERVE plain 0.01 {LARGE}"));
    client.ask(&format!("BF.RESERVE blocked 0.01 {LARGE} BLOCKED"));
    for name in [b"plain".as_slice(), b"blocked"] {
        for start in (0..LARGE).step_by(100_000) {
            run_ahead(
                &mut client,
                (start..start + 100_000).map(key),
                &[b"BF.MADD", name],
                100,
                5_000,
            );
        }
    }
    lock.map_or(Ok(()), File::lock)?;
    let mut nanos = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let mut row = 0;
        for present in [true, false] {
            for name in [b"plain".as_slice(), b"blocked"] {
                let number =
                    |number| if present { shuffled(number, LARGE) } else { LARGE + number };
                let keys: Vec<_> =
                    (round * KEYS..(round + 1) * KEYS).map(|n| key(number(n))).collect();
                let before = cpu(server);
                run_ahead(&mut client, keys.into_iter(), &[b"BF.MEXISTS", name], 100, 5_000);
                nanos[row].push((cpu(server) - before) as f64 / KEYS as f64);
                row += 1;
            }
        }
    }
    let [plain, blocked, plain_absent, blocked_absent] = nanos.map(median);
    println!("1e8 items, BF.MEXISTS x 100      plain  BLOCKED   ratio (bar 0.5)");
    let both = ("both", plain + plain_absent, blocked + blocked_absent);
    for (name, plain, blocked) in
        [("present", plain, blocked), ("absent", plain_absent, blocked_absent), both]
    {
        println!("{name:<30} {plain:>7.1} {blocked:>8.1} {:>7.3}", blocked / plain);
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let engine = match () {
        () if has("redis62") => Engine::Redis62,
        () if has("valkey") => Engine::Valkey,
        () => Engine::Redis70,
    };
    let server = Server::start(engine);
    println!("{engine:?}");
    let path = words.iter().skip_while(|word| *word != "--lock").nth(1);
    let lock = path.map(File::open).transpose()?;
    if has("--large") {
        return large(&server, lock.as_ref());
    }
    speed(&server, lock.as_ref())?;
    memory(&server);
    Ok(())
}
