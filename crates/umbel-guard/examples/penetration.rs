//! Cache penetration: an attacker looks up random keys that do not exist, so that no cache helps and every
//! look-up reaches PostgreSQL. Then the same flood with a guard in between.
//!
//! ```sh
//! cargo run --release -p umbel-guard --features postgres --example penetration
//! ```
//!
//! A few honest clients look up existing rows, as fast as they are answered. First they run alone, then
//! together with a flood of 200,000 look-ups per second, if they are answered as fast, then with the same flood
//! behind a guard.

#[path = "../tests/it/server.rs"]
#[allow(dead_code, reason = "nothing is encrypted here")]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use umbel_guard::set::Postgres;
use umbel_guard::{DataSet, Guard, Local};

const ROWS: u64 = 200_000;
const HONEST: u64 = 4;
const FLOOD: u64 = 64;
/// The maximum rate of the flood per second, over all of its tasks.
const RATE: u64 = 200_000;
const SPELL: Duration = Duration::from_secs(5);

type Failed = Box<dyn std::error::Error>;
type Users = Guard<Postgres, Local>;

fn random(number: u64) -> u64 {
    umbel::Digest::mixed(number).bits()
}

/// The measurements of one period of five seconds.
#[derive(Debug, Default)]
struct Seen {
    honest: AtomicU64,
    flood: AtomicU64,
    worst: AtomicU64,
}

async fn ask(guard: &Users, key: &str, through_guard: bool) -> bool {
    let got = if through_guard {
        guard.get(key.as_bytes()).await.expect("the guard answers")
    } else {
        guard.data_set().get(key.as_bytes()).await.expect("the server answers")
    };
    got.is_some()
}

async fn spell(guard: &Users, flood: u64, through_guard: bool) -> Arc<Seen> {
    let (seen, stop) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let mut clients = Vec::new();
    let start = Instant::now();
    for client in 0..HONEST + flood {
        let (guard, seen, stop) = (guard.clone(), seen.clone(), stop.clone());
        clients.push(tokio::spawn(async move {
            let mut number = client << 32;
            while !stop.load(Relaxed) {
                number += 1;
                let begun = Instant::now();
                if client < HONEST {
                    let name = format!("user{}", random(number) % ROWS);
                    assert!(ask(&guard, &name, through_guard).await);
                    seen.honest.fetch_add(1, Relaxed);
                    seen.worst.fetch_max(begun.elapsed().as_micros() as u64, Relaxed);
                } else {
                    let name = format!("x{:016x}", random(number));
                    assert!(!ask(&guard, &name, through_guard).await);
                    seen.flood.fetch_add(1, Relaxed);
                    let asked = (number & 0xffff_ffff) as f64 * FLOOD as f64;
                    if asked > start.elapsed().as_secs_f64() * RATE as f64 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                if number % 64 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }));
    }
    tokio::time::sleep(SPELL).await;
    stop.store(true, Relaxed);
    for client in clients {
        client.await.expect("a client ends");
    }
    seen
}

fn tell(what: &str, seen: &Seen, queries: u64) {
    let seconds = SPELL.as_secs_f64();
    println!(
        "{what:<28} {:>9.0} {:>11.0} {:>11.1} {:>12.0}",
        seen.honest.load(Relaxed) as f64 / seconds,
        seen.flood.load(Relaxed) as f64 / seconds,
        seen.worst.load(Relaxed) as f64 / 1e3,
        queries as f64 / seconds,
    );
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let server = server::postgres().ok_or("there is no PostgreSQL")?;
    let url = server.postgres_url();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let rows = format!(
        "CREATE TABLE users (name text PRIMARY KEY, mail text);
         INSERT INTO users SELECT 'user' || n, n || '@example.org' FROM generate_series(0, {}) n;
         ANALYZE users",
        ROWS - 1
    );
    client.batch_execute(&rows).await?;
    let users = Postgres::connect(&url, "users", "name", "mail").await?;
    let users = users.statement_timeout(Duration::from_millis(500));
    let guard = Guard::builder(users, Local::blocked(0.001))
        .remember_absences(10_000, Duration::from_secs(5))
        .start()
        .await?;
    guard.active().await?;
    println!("{HONEST} honest clients, {FLOOD} that ask for {RATE} random names; a second:");
    println!("{:<28} {:>9} {:>11} {:>11} {:>12}", "", "honest", "flood", "worst ms", "at server");
    let alone = spell(&guard, 0, false).await;
    tell("no flood", &alone, alone.honest.load(Relaxed));
    let flooded = spell(&guard, FLOOD, false).await;
    let both = flooded.honest.load(Relaxed) + flooded.flood.load(Relaxed);
    tell("flood, no guard", &flooded, both);
    let before = guard.stats();
    let guarded = spell(&guard, FLOOD, true).await;
    let after = guard.stats();
    tell("flood, guard", &guarded, after.asked - before.asked);
    let filter = after.filter.ok_or("there is a filter")?;
    println!(
        "the filter: {} bytes for {ROWS} rows; {} of {} questions for absent names went through ({:.4} %)",
        filter.bytes,
        after.measured.hits,
        after.measured.trials,
        after.measured.value() * 100.0,
    );
    Ok(())
}
