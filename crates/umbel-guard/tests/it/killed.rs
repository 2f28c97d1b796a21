//! A guarded process is killed repeatedly, between any two steps. The next process never reports a key absent
//! that can be read.
//!
//! The child is this test binary with an environment variable that selects its role. It prints the step that it
//! has reached and waits there, and the parent kills it with SIGKILL.

use crate::faulty::{Random, first_seed};
use std::collections::BTreeMap;
use std::future::pending;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use umbel_guard::set::{Redb, RedbError};
use umbel_guard::{Answer, Claim, DataSet, Family, Guard, Local, Page, Put, Stamp, State};

/// A data set that reports when it reaches the step at which the process is killed.
struct Doomed {
    set: Redb,
    steps: Arc<AtomicU64>,
}

impl Doomed {
    /// One step of the data set.
    async fn step(&self) {
        if self.steps.fetch_sub(1, SeqCst) == 1 {
            say("here");
            pending::<()>().await;
        }
    }
}

fn say(word: &str) {
    println!("\n{word}");
    std::io::stdout().flush().unwrap();
}

impl DataSet for Doomed {
    type Error = RedbError;
    type Scan = umbel_guard::set::RedbScan;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedbError> {
        self.set.get(key).await
    }
    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, RedbError> {
        self.set.put(key, value).await
    }
    async fn delete(&self, key: &[u8]) -> Result<bool, RedbError> {
        self.set.delete(key).await
    }
    async fn scan(&self, after: Option<&[u8]>) -> Result<Self::Scan, RedbError> {
        self.step().await;
        self.set.scan(after).await
    }
    async fn page(&self, scan: &mut Self::Scan, limit: usize) -> Result<Page, RedbError> {
        self.step().await;
        self.set.page(scan, limit).await
    }
    async fn count(&self, scan: &mut Self::Scan) -> Result<u64, RedbError> {
        self.step().await;
        self.set.count(scan).await
    }
    async fn identity(&self) -> Result<Vec<u8>, RedbError> {
        self.set.identity().await
    }
    async fn put_marked(&self, key: &[u8], value: &[u8], claim: Claim) -> Result<Put, RedbError> {
        // Between the filter and the commit, and between the commit and the answer.
        self.step().await;
        let put = self.set.put_marked(key, value, claim).await;
        self.step().await;
        put
    }
    async fn delete_marked(&self, key: &[u8], claim: Claim) -> Result<bool, RedbError> {
        self.step().await;
        let deleted = self.set.delete_marked(key, claim).await;
        self.step().await;
        deleted
    }
    async fn begin(&self, incarnation: u64) -> Result<bool, RedbError> {
        // Between the journal and the data set, and after both.
        self.step().await;
        let begun = self.set.begin(incarnation).await;
        self.step().await;
        begun
    }
    async fn stamp(&self) -> Result<Option<Stamp>, RedbError> {
        self.set.stamp().await
    }
}

const FAMILIES: [Family; 4] = [Family::Blocked, Family::Cuckoo, Family::Scalable, Family::Quotient];
const KEYS: u64 = 400;

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Checks that no readable key is reported absent; returns the number of keys.
async fn check(guard: &Guard<Doomed, Local>) -> u64 {
    let mut there = 0;
    for number in 0..KEYS {
        let readable = guard.data_set().get(&key(number)).await.unwrap();
        let answer = guard.contains(&key(number)).await;
        assert!(readable.is_none() || answer != Answer::Absent, "key {number} can be read");
        assert_eq!(guard.get(&key(number)).await.unwrap(), readable);
        there += u64::from(readable.is_some());
    }
    there
}

/// The child: opens the files of the last process, checks them, and works until it is killed.
async fn live(place: &Path, seed: u64) {
    let mut random = Random(seed);
    let family = FAMILIES[random.below(4) as usize];
    let folder = place.join(format!("{family:?}"));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("data.redb");
    let mut set = Redb::create(&file, "t").unwrap();
    if random.one_in(2) {
        // Acknowledged writes may then be lost: the data set determines what can be read.
        set = set.without_sync();
    }
    let steps = Arc::new(AtomicU64::new(u64::MAX));
    let doomed = Doomed { set, steps: steps.clone() };
    let start = Guard::builder(doomed, Local::new(family, 0.001)).folder(folder.join("guard"));
    let start = start.capacity(1.2, 100).scan(50, 1.0).without_background();
    let guard = start.start().await.unwrap();
    let restored = guard.state() == State::Active;
    if restored && random.one_in(10) {
        // Deleted between two processes: an empty filter must never be used.
        drop(guard);
        let files = std::fs::read_dir(folder.join("guard")).unwrap();
        for file in files.map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|end| end == "umbel" || end == "journal")
                && random.one_in(2)
            {
                std::fs::remove_file(file).unwrap();
            }
        }
        say("restart");
        return;
    }
    let there = check(&guard).await;
    say(&format!("checked {there} {restored}"));
    if random.one_in(2) {
        steps.store(random.below(120) + 1, SeqCst);
    }
    if !restored {
        guard.rebuild().await.unwrap();
    }
    let mut model = BTreeMap::new();
    for round in 0_u64.. {
        let number = random.below(KEYS);
        match random.below(100) {
            0..40 => {
                guard.put(&key(number), &round.to_le_bytes()).await.unwrap();
                model.insert(number, true);
            }
            40..60 => {
                guard.delete(&key(number)).await.unwrap();
                model.insert(number, false);
            }
            60..97 => {
                let readable = guard.get(&key(number)).await.unwrap().is_some();
                assert_eq!(model.get(&number).copied().unwrap_or(readable), readable);
            }
            97 => _ = guard.checkpoint().await.unwrap(),
            98 if random.one_in(2) => _ = guard.rebuild().await.unwrap(),
            _ => assert_eq!(guard.audit(50).await.unwrap(), 0),
        }
        if round % 16 == 0 {
            say("alive");
        }
    }
}

#[test]
#[ignore = "the life of a process that is killed by the other tests"]
fn child() {
    let Some(place) = std::env::var_os("UMBEL_CHILD_PLACE") else { return };
    let seed = std::env::var("UMBEL_CHILD_SEED").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(live(Path::new(&place), seed));
}

/// Runs a child until it is killed. Returns whether it had checked the files of the last process.
fn one_life(place: &Path, seed: u64) -> Option<(u64, bool)> {
    let mut random = Random(seed ^ 0xdead);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "killed::child", "--nocapture", "--test-threads=1"])
        .env("UMBEL_CHILD_PLACE", place)
        .env("UMBEL_CHILD_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut checked, mut ended, mut signs) = (None, false, 0);
    let patience = random.below(12) + 1;
    // Kept until the child is dead: a closed pipe would end it early.
    for line in &mut lines {
        let line = line.unwrap_or_default();
        let mut words = line.split(' ');
        match words.next() {
            Some("checked") => {
                let there = words.next().unwrap().parse().unwrap();
                checked = Some((there, words.next() == Some("true")));
            }
            Some("here") => break,
            Some("restart") => {
                ended = true;
                break;
            }
            Some("alive") => {
                signs += 1;
                if signs == patience {
                    // At any point: in the middle of a save, a commit, a rename.
                    std::thread::sleep(Duration::from_micros(random.below(3_000)));
                    break;
                }
            }
            _ => {}
        }
    }
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "seed {seed}: {said}");
    assert!(ended || checked.is_some(), "seed {seed}: it ended before it had checked: {said}");
    checked
}

fn lives(number: u64) {
    let place = tempfile::tempdir().unwrap();
    let (mut restored, mut keys) = (0, 0);
    for seed in first_seed()..first_seed() + number {
        if let Some((there, active)) = one_life(place.path(), seed) {
            restored += u64::from(active);
            keys += there;
        }
    }
    // Most processes start with the filter of the last one, and with some keys, so the test exercises restarts.
    assert!(restored > number / 3, "{restored} of {number}");
    assert!(keys > number * 10, "{keys}");
}

#[test]
fn nothing_readable_is_absent_after_a_process_was_killed_anywhere() {
    lives(500);
}

/// `cargo test -p umbel-guard --all-features --test it -- --ignored killed_five_thousand_times`
#[test]
#[ignore = "takes minutes"]
fn nothing_readable_is_absent_after_processes_were_killed_five_thousand_times() {
    lives(5_000);
}
