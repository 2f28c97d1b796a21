//! The bars of the guard, each a ratio of interleaved rounds in one run.
//!
//! ```sh
//! cargo run --release -p umbel-guard --all-features --example guard_bars -- postgres
//! cargo run --release -p umbel-guard --all-features --example guard_bars -- redb      # the first run writes 1e7 rows
//! cargo run --release -p umbel-guard --all-features --example guard_bars -- rebuild
//! cargo run --release -p umbel-guard --all-features --example guard_bars -- restart
//! ```
//!
//! The rows of redb are kept in the folder `UMBEL_BARS`, or `umbel-bars` in that for temporary files.

#[path = "../tests/it/server.rs"]
#[allow(dead_code, reason = "nothing is encrypted here")]
mod server;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use umbel_guard::set::{Postgres, Redb};
use umbel_guard::{Answer, DataSet, Guard, Local, State};

const ROWS: u64 = 10_000_000;
const RATE: f64 = 0.01;
/// Short rounds, alternating, so that other load on the machine affects both equally.
const ROUNDS: usize = 100;

type Failed = Box<dyn std::error::Error>;

fn mixed(number: u64) -> u64 {
    umbel::Digest::mixed(number.wrapping_add(0x9e37_79b9_7f4a_7c15)).bits()
}

/// The key of a row. Numbers from `ROWS` on are absent keys.
fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed(number).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn bar(what: &str, limit: &str, mut ratios: Vec<f64>, met: impl Fn(f64) -> bool) {
    ratios.sort_by(f64::total_cmp);
    let [low, middle, high] = [1, 2, 3].map(|part| ratios[(ratios.len() - 1) * part / 4]);
    let met = if met(middle) { "yes" } else { "NO" };
    println!("{what:<62} {limit:>9} {middle:>9.3}   {low:.3}-{high:.3}   {met}");
}

/// The time of looking up all these keys, in `tasks` tasks at once.
async fn time<F: Future<Output = ()> + Send + 'static>(
    keys: &Arc<Vec<[u8; 16]>>,
    tasks: usize,
    ask: impl Fn([u8; 16]) -> F + Clone + Send + 'static,
) -> Duration {
    let begun = Instant::now();
    let all: Vec<_> = (0..tasks)
        .map(|task| {
            let (keys, ask) = (keys.clone(), ask.clone());
            tokio::spawn(async move {
                for key in keys.iter().skip(task).step_by(tasks) {
                    ask(*key).await;
                }
            })
        })
        .collect();
    for task in all {
        task.await.expect("a task ends");
    }
    begun.elapsed()
}

/// The times of alternating rounds of the data set and the guard, per key.
async fn rounds<D: DataSet>(
    guard: &Guard<D, Local>,
    keys: Vec<[u8; 16]>,
    more_for_guard: usize,
    tasks: usize,
    there: bool,
) -> Vec<f64> {
    let mut ratios = Vec::new();
    let (mut plain_sum, mut guarded_sum) = (0.0, 0.0);
    for (round, some) in keys.chunks_exact(keys.len() / ROUNDS).enumerate() {
        let few: Arc<Vec<[u8; 16]>> = Arc::new(some[..some.len() / more_for_guard].to_vec());
        let many = Arc::new(some.to_vec());
        let plain = async || {
            let guard = guard.clone();
            let took = time(&few, tasks, move |key| {
                let guard = guard.clone();
                async move {
                    let got = guard.data_set().get(&key).await.expect("the set answers");
                    assert_eq!(got.is_some(), there);
                }
            });
            took.await.as_secs_f64() / few.len() as f64
        };
        let guarded = async || {
            let guard = guard.clone();
            let took = time(&many, tasks, move |key| {
                let guard = guard.clone();
                async move {
                    let got = guard.get(&key).await.expect("the guard answers");
                    assert_eq!(got.is_some(), there);
                }
            });
            took.await.as_secs_f64() / many.len() as f64
        };
        // The second one finds its pages in memory, so the order alternates.
        let (plain, guarded) = if round % 2 == 0 {
            (plain().await, guarded().await)
        } else {
            let guarded = guarded().await;
            (plain().await, guarded)
        };
        (plain_sum, guarded_sum) = (plain_sum + plain, guarded_sum + guarded);
        ratios.push(guarded / plain);
    }
    let mean = |sum: f64| sum * 1e6 / ratios.len() as f64;
    println!("    unguarded {:.2} us, guarded {:.2} us", mean(plain_sum), mean(guarded_sum));
    ratios
}

fn inverse(ratios: Vec<f64>) -> Vec<f64> {
    ratios.into_iter().map(|ratio| 1.0 / ratio).collect()
}

async fn postgres() -> Result<(), Failed> {
    const ROWS: u64 = 1_000_000;
    let server = server::postgres().ok_or("there is no PostgreSQL")?;
    let url = server.postgres_url();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE users (k bytea PRIMARY KEY, v bytea)").await?;
    let filling = client
        .prepare("INSERT INTO users SELECT k, '\\x00112233' FROM unnest($1::bytea[]) k")
        .await?;
    for some in (0..ROWS).collect::<Vec<_>>().chunks(50_000) {
        let keys: Vec<Vec<u8>> = some.iter().map(|number| key(*number).to_vec()).collect();
        client.execute(&filling, &[&keys]).await?;
    }
    client.batch_execute("VACUUM ANALYZE users").await?;
    let set = Postgres::connect(&url, "users", "k", "v").await?;
    let set = set.statement_timeout(Duration::from_millis(500));
    let guard = Guard::builder(set, Local::blocked(RATE)).start().await?;
    guard.active().await?;
    let absent = (ROWS..ROWS + 800_000).map(key).collect();
    let ratios = rounds(&guard, absent, 20, 16, false).await;
    bar(
        "absent keys, PostgreSQL, sixteen at a time: throughput, times",
        ">= 30",
        inverse(ratios),
        |r| r >= 30.0,
    );
    let present = |keys| (0..keys).map(|number| key(mixed(number) % ROWS)).collect();
    let ratios = rounds(&guard, present(100_000), 1, 1, true).await;
    bar("present keys, PostgreSQL, one at a time: time", "<= 1.05", ratios, |r| r <= 1.05);
    let ratios = rounds(&guard, present(1_500_000), 1, 16, true).await;
    bar("present keys, PostgreSQL, sixteen at a time: time", "<= 1.05", ratios, |r| r <= 1.05);
    Ok(())
}

fn place() -> PathBuf {
    let folder = std::env::var_os("UMBEL_BARS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join("umbel-bars"));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The file with all rows, and a saved filter beside it.
async fn prepared() -> Result<(), Failed> {
    let (file, done) = (place().join("rows.redb"), place().join("done"));
    if done.exists() {
        return Ok(());
    }
    println!("writing {ROWS} rows to {}", file.display());
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_dir_all(place().join("guard"));
    let mut keys: Vec<[u8; 16]> = (0..ROWS).map(key).collect();
    keys.sort_unstable();
    let set = Redb::create(&file, "rows")?;
    let table = redb::TableDefinition::<&[u8], &[u8]>::new("rows");
    for some in keys.chunks(1_000_000) {
        let transaction = set.database().ok_or("open for writing")?.begin_write()?;
        {
            let mut rows = transaction.open_table(table)?;
            for key in some {
                rows.insert(&key[..], &key[..8])?;
            }
        }
        transaction.commit()?;
    }
    let guard = Guard::builder(set, Local::blocked(RATE)).folder(place().join("guard"));
    let guard = guard.without_background().start().await?;
    guard.rebuild().await?;
    guard.close().await?;
    std::fs::write(done, b"")?;
    Ok(())
}

async fn guarded() -> Result<Guard<Redb, Local>, Failed> {
    let set = Redb::create(place().join("rows.redb"), "rows")?;
    let guard = Guard::builder(set, Local::blocked(RATE)).folder(place().join("guard"));
    let guard = guard.without_background().start().await?;
    assert_eq!(guard.state(), State::Active, "the saved filter is used");
    Ok(guard)
}

/// Drops the kernel's cached pages of the files.
fn drop_caches() {
    let _ = Command::new("sync").status();
    let from = format!("if={}", place().join("rows.redb").display());
    let dropped = Command::new("dd").args([&*from, "iflag=nocache", "count=0"]).output();
    assert!(dropped.is_ok_and(|output| output.status.success()), "dd drops caches");
}

/// Runs this program for one cold measurement; the time of a look-up in microseconds.
fn cold(what: &str, seed: u64) -> Result<f64, Failed> {
    drop_caches();
    let child = Command::new(std::env::current_exe()?).args([what, &seed.to_string()]).output()?;
    let said = String::from_utf8(child.stdout)?;
    said.trim()
        .parse()
        .map_err(|_| format!("{said}{}", String::from_utf8_lossy(&child.stderr)).into())
}

/// In a fresh process: look-ups of absent keys in a file that is not in memory.
async fn cold_child(with_guard: bool, seed: u64) -> Result<(), Failed> {
    const KEYS: u64 = 5_000;
    let guard = guarded().await?;
    let begun = Instant::now();
    for number in 0..KEYS {
        let key = key(ROWS + seed * KEYS + number);
        let got =
            if with_guard { guard.get(&key).await? } else { guard.data_set().get(&key).await? };
        assert!(got.is_none());
    }
    println!("{}", begun.elapsed().as_secs_f64() * 1e6 / KEYS as f64);
    Ok(())
}

async fn redb() -> Result<(), Failed> {
    prepared().await?;
    let mut ratios = Vec::new();
    for seed in 0..5 {
        let (plain, guarded) = (cold("cold-unguarded", seed)?, cold("cold-guarded", seed)?);
        println!("    unguarded {plain:>9.2} us, guarded {guarded:>9.2} us");
        ratios.push(plain / guarded);
    }
    bar("absent keys, redb, 1e7 rows, cold: throughput, times", ">= 5", ratios, |r| r >= 5.0);
    let guard = guarded().await?;
    // Every page is read once, so that the cache is warm.
    let warm: Vec<[u8; 16]> = (0..ROWS).step_by(20).map(key).collect();
    for key in &warm {
        guard.data_set().get(key).await?;
    }
    let absent = (2 * ROWS..2 * ROWS + 800_000).map(key).collect();
    let ratios = rounds(&guard, absent, 4, 1, false).await;
    bar("absent keys, redb, 1e7 rows, warm: throughput, times", ">= 2", inverse(ratios), |r| {
        r >= 2.0
    });
    let present = (0..800_000).map(|number| key(mixed(number) % ROWS)).collect();
    let ratios = rounds(&guard, present, 1, 1, true).await;
    bar("present keys, redb, 1e7 rows, warm: time", "<= 1.15", ratios, |r| r <= 1.15);
    Ok(())
}

/// Reads until `stop` is set; returns reads per second.
async fn reads(guard: &Guard<Redb, Local>, stop: Arc<AtomicBool>) -> f64 {
    let (done, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let readers: Vec<_> = (0..2)
        .map(|reader| {
            let (guard, stop, done) = (guard.clone(), stop.clone(), done.clone());
            tokio::spawn(async move {
                let mut number = reader;
                while !stop.load(Relaxed) {
                    for _ in 0..64 {
                        number += 2;
                        let (present, absent) = (key(mixed(number) % ROWS), key(3 * ROWS + number));
                        assert!(guard.get(&present).await.expect("it answers").is_some());
                        assert!(guard.get(&absent).await.expect("it answers").is_none());
                    }
                    done.fetch_add(128, Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.expect("a reader ends");
    }
    done.load(Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

async fn rebuild() -> Result<(), Failed> {
    prepared().await?;
    let guard = guarded().await?;
    let mut ratios = Vec::new();
    for _ in 0..2 {
        let stop = Arc::new(AtomicBool::new(false));
        let stopper = tokio::spawn({
            let stop = stop.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(8)).await;
                stop.store(true, Relaxed);
            }
        });
        let normal = reads(&guard, stop).await;
        stopper.await?;
        let stop = Arc::new(AtomicBool::new(false));
        let (begun, rebuilding) = (Instant::now(), {
            let (guard, stop) = (guard.clone(), stop.clone());
            tokio::spawn(async move {
                let built = guard.rebuild().await;
                stop.store(true, Relaxed);
                built
            })
        });
        let meanwhile = reads(&guard, stop).await;
        let keys = rebuilding.await??;
        assert_eq!(keys, ROWS);
        println!(
            "    {normal:.0} reads a second, {meanwhile:.0} during a rebuild of {:.1} s",
            begun.elapsed().as_secs_f64()
        );
        ratios.push(meanwhile / normal);
    }
    bar("reads during a rebuild of 1e7 keys: throughput", ">= 0.5", ratios, |r| r >= 0.5);
    for number in (0..ROWS).step_by(7) {
        assert_eq!(guard.contains(&key(number)).await, Answer::Maybe, "{number}");
    }
    guard.close().await?;
    Ok(())
}

async fn restart_child(begun: Instant) -> Result<(), Failed> {
    let guard = guarded().await?;
    let (absent, present) = (guard.get(&key(5 * ROWS)).await?, guard.get(&key(17)).await?);
    assert!(absent.is_none() && present.is_some() && guard.stats().saved == 1);
    println!("{}", begun.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

async fn restart() -> Result<(), Failed> {
    prepared().await?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let child = Command::new(std::env::current_exe()?).arg("restart-child").output()?;
        times.push(String::from_utf8(child.stdout)?.trim().parse()?);
    }
    bar("restart with 1e7 keys: first answer, ms", "< 100", times, |r| r < 100.0);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let begun = Instant::now();
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let seed = args.next().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    match &*what {
        "postgres" => postgres().await,
        "redb" => redb().await,
        "rebuild" => rebuild().await,
        "restart" => restart().await,
        "prepare" => prepared().await,
        "cold-unguarded" => cold_child(false, seed).await,
        "cold-guarded" => cold_child(true, seed).await,
        "restart-child" => restart_child(begun).await,
        _ => Err("one of: postgres, redb, rebuild, restart".into()),
    }
}
