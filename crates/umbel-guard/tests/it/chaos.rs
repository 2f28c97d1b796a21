//! An exact model and every kind of fault: whatever happens, a key that can be read is never said to be absent.
//!
//! Workers own their keys, so what is in the data set before and after a question says what the answer may be. Meanwhile
//! a demon breaks scans, rolls back writes, commits them late, loses their outcome, cancels rebuilds, writes past the
//! guard until the audit finds it, moves the clock, and ends the trust; and between two rounds the guard is closed or
//! killed, and its files are lost or damaged.

use crate::faulty::{Break, Fate, Faulty, Random, first_seed};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use umbel_guard::{Answer, Family, Guard, Local, State};

const WORKERS: u64 = 4;
const KEYS: u64 = 300;

#[derive(Debug, Default)]
struct Tally {
    operations: AtomicU64,
    faults: AtomicU64,
    /// Answers that said something: the test is not about nothing.
    absent: AtomicU64,
    present: AtomicU64,
    /// Questions to the filter alone that it did not answer with absent.
    open: AtomicU64,
    /// Look-ups that the filter could not answer, and that were sent on.
    sent_on: AtomicU64,
}

fn key(worker: u64, number: u64) -> Vec<u8> {
    format!("worker {worker} key {number}").into_bytes()
}

type Guarded = Guard<Faulty, Local>;

/// A question to the filter alone.
async fn contains(guard: &Guarded, key: &[u8], tally: &Tally) -> Answer {
    let answer = guard.contains(key).await;
    tally.open.fetch_add(u64::from(answer != Answer::Absent), SeqCst);
    answer
}

/// What can be read cannot be absent.
async fn ask(guard: &Guarded, set: &Faulty, key: &[u8], tally: &Tally) {
    let before = set.value(key);
    let answer = contains(guard, key, tally).await;
    let after = set.value(key);
    if answer == Answer::Absent {
        tally.absent.fetch_add(1, SeqCst);
        assert!(before.is_none() || after.is_none(), "{} is there", String::from_utf8_lossy(key));
    }
    tally.present.fetch_add(u64::from(before.is_some()), SeqCst);
}

async fn get(guard: &Guarded, set: &Faulty, key: &[u8]) {
    let before = set.value(key);
    let got = guard.get(key).await;
    let after = set.value(key);
    if let (true, Ok(got)) = (before == after, got) {
        assert_eq!(got, before, "{}", String::from_utf8_lossy(key));
    }
}

async fn work(
    guard: Guarded,
    set: Faulty,
    worker: u64,
    seed: u64,
    (operations, pause): (u64, Duration),
    tally: Arc<Tally>,
) {
    let mut random = Random(seed);
    for round in 0..operations {
        let key = key(worker, random.below(KEYS));
        match random.below(100) {
            0..20 => {
                if guard.put(&key, &round.to_le_bytes()).await.is_ok() {
                    ask(&guard, &set, &key, &tally).await;
                    let answer = contains(&guard, &key, &tally).await;
                    assert_ne!(answer, Answer::Absent, "it was put");
                }
            }
            20..35 => _ = guard.delete(&key).await,
            35..60 => get(&guard, &set, &key).await,
            _ => ask(&guard, &set, &key, &tally).await,
        }
        tally.operations.fetch_add(1, SeqCst);
        if round % 32 == 0 {
            tokio::time::sleep(pause).await;
        }
    }
}

/// A rebuild that may be dropped at any time.
async fn rebuild(guard: &Guarded, random: &mut Random) {
    let patience = Duration::from_micros(random.below(20_000));
    if random.one_in(3) {
        let _ = tokio::time::timeout(patience, guard.rebuild()).await;
    } else {
        let _ = guard.rebuild().await;
    }
}

async fn torment(guard: Guarded, set: Faulty, seed: u64, stop: Arc<AtomicBool>, tally: Arc<Tally>) {
    let mut random = Random(seed);
    let mut bypassed = 0_u64;
    while !stop.load(SeqCst) {
        let page = random.below(8) as usize;
        let soon = Duration::from_millis(random.below(90_000));
        tally.faults.fetch_add(1, SeqCst);
        match random.below(13) {
            0 => set.break_scan(Break::Fails(page)),
            1 => set.break_scan(Break::Dries(page)),
            2 => set.break_scan(Break::Lies(page)),
            3 => set.break_scan(Break::Hangs(page)),
            4 | 5 => set.doom(Fate::RolledBack),
            6 => set.doom(Fate::Lost),
            7 => set.doom(Fate::Late(soon)),
            8 => set.doom(Fate::Hangs(soon)),
            9 => guard.distrust(),
            10 => {
                // Nobody moves the clock of the guard but forward, and not past doubts whose writes are due: those
                // come first.
                tokio::time::advance(Duration::from_secs(random.below(100))).await;
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
            }
            11 => {
                let key = format!("bypassed {bypassed} {seed}").into_bytes();
                bypassed += 1;
                set.bypass(&key);
                // One in a hundred is a false positive, and no audit misses it.
                for _ in 0..20 {
                    if guard.state() != State::Active {
                        break;
                    }
                    let _ = guard.audit(500).await;
                }
                let _ = guard.rebuild().await;
                let answer = contains(&guard, &key, &tally).await;
                assert!(guard.state() != State::Active || answer != Answer::Absent);
            }
            _ => _ = guard.audit(300).await,
        }
        if guard.state() != State::Active || random.one_in(4) {
            rebuild(&guard, &mut random).await;
        }
        if random.one_in(6) {
            let _ = guard.checkpoint().await;
        }
        // Rare enough that something is done in between, and a rebuild saves files.
        for _ in 0..random.below(300) {
            tokio::task::yield_now().await;
        }
    }
}

/// What happens to the files of a guard that is not running.
fn tamper(folder: &Path, random: &mut Random, tally: &Tally) {
    let ours = |path: &Path| path.extension().is_some_and(|end| end == "umbel" || end == "journal");
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if !ours(&path) || !random.one_in(4) {
            continue;
        }
        tally.faults.fetch_add(1, SeqCst);
        let mut bytes = fs::read(&path).unwrap();
        match random.below(3) {
            0 => fs::remove_file(&path).unwrap(),
            1 => {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
                fs::write(&path, bytes).unwrap();
            }
            // Not of a journal: without marks nobody could tell that its end is gone.
            _ if path.extension().is_some_and(|end| end == "umbel") => {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
                fs::write(&path, bytes).unwrap();
            }
            _ => {}
        }
    }
}

async fn round(
    place: &Path,
    set: &Faulty,
    family: Family,
    seed: u64,
    each: u64,
    tally: &Arc<Tally>,
) {
    let mut random = Random(seed);
    let folder = place.join(format!("{family:?}"));
    let start = Guard::builder(set.clone(), Local::new(family, 0.01)).folder(&folder);
    let start = start.without_background().scan(100, 1.0).capacity(1.2, 200);
    let start = start.set_timeout(Duration::from_secs(1)).doubts(1 << 20, Duration::from_secs(200));
    let start =
        if random.one_in(2) { start.remember_absences(100, Duration::from_secs(5)) } else { start };
    let guard = start.start().await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (gets, open) = (set.gets(), tally.open.load(SeqCst));
    let demon = torment(guard.clone(), set.clone(), random.next(), stop.clone(), tally.clone());
    let demon = tokio::spawn(demon);
    // The clock moves only when nobody has anything to do, and time-outs wait for it.
    let how = (each, Duration::from_millis(100));
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| work(guard.clone(), set.clone(), worker, random.next(), how, tally.clone()))
        .map(tokio::spawn)
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    stop.store(true, SeqCst);
    demon.await.unwrap();
    // The writes that were late have come.
    tokio::time::sleep(Duration::from_secs(100)).await;
    if guard.state() == State::Active {
        // Some of its scans may be doomed yet.
        while guard.audit(100_000).await.is_err() {}
    }
    if guard.state() != State::Active {
        while guard.rebuild().await.is_err() {}
    }
    let all: Vec<Vec<u8>> = set.keys();
    for key in all {
        let answer = contains(&guard, &key, tally).await;
        assert_ne!(answer, Answer::Absent, "{}", String::from_utf8_lossy(&key));
    }
    // Every look-up that the filter did not answer has reached the data set, alone or with another one for the same
    // key, but for absences that were remembered.
    let stats = guard.stats();
    let open = stats.maybe + stats.unknown - (tally.open.load(SeqCst) - open);
    let reached = stats.asked + stats.joined + stats.remembered + stats.refused;
    assert!(reached >= open, "{reached} of {open}: {stats:?}");
    assert!(set.gets() - gets >= stats.asked);
    tally.sent_on.fetch_add(stats.asked, SeqCst);
    if random.one_in(3) {
        guard.close().await.unwrap();
    }
    drop(guard);
    tally.faults.fetch_add(1, SeqCst);
    if random.one_in(2) {
        tamper(&folder, &mut random, tally);
    }
}

async fn chaos(operations: u64) {
    const EACH: u64 = 6_000;
    let place = tempfile::tempdir().unwrap();
    let tally = Arc::new(Tally::default());
    let sets: Vec<Faulty> = Family::CHANGING.iter().map(|_| Faulty::default()).collect();
    let mut seed = first_seed();
    while tally.operations.load(SeqCst) < operations {
        let which = seed as usize % Family::CHANGING.len();
        round(place.path(), &sets[which], Family::CHANGING[which], seed, EACH, &tally).await;
        seed += 1;
    }
    let Tally { operations, faults, absent, present, sent_on, .. } = &*tally;
    let [operations, faults, absent, present, sent_on] =
        [operations, faults, absent, present, sent_on].map(|number| number.load(SeqCst));
    println!(
        "{operations} operations, {faults} faults, {absent} answers absent, {present} keys asked for while present, \
         {sent_on} look-ups sent on"
    );
    assert!(faults >= 200, "{faults}");
    assert!(
        [absent, present, sent_on].into_iter().all(|number| number > operations / 20),
        "{absent}, {present}, {sent_on}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_readable_is_absent_in_a_million_operations() {
    chaos(1_000_000).await;
}

/// `cargo test --release -p umbel-guard --all-features --test it -- --ignored --nocapture ten_million`
#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn nothing_readable_is_absent_in_ten_million_operations() {
    chaos(10_000_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_read_write_and_rebuild_find_nothing_readable_absent() {
    for family in [Family::Blocked, Family::Cuckoo, Family::Scalable, Family::Counting] {
        let set = Faulty::default();
        let tally = Arc::new(Tally::default());
        let start = Guard::builder(set.clone(), Local::new(family, 0.01)).without_background();
        let guard = start.scan(64, 1.0).capacity(1.2, 200).start().await.unwrap();
        guard.rebuild().await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let rebuilding = tokio::spawn({
            let (guard, stop) = (guard.clone(), stop.clone());
            async move {
                let mut random = Random(9);
                while !stop.load(SeqCst) {
                    rebuild(&guard, &mut random).await;
                    if random.one_in(5) {
                        guard.distrust();
                    }
                }
            }
        });
        let how = (20_000, Duration::ZERO);
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| work(guard.clone(), set.clone(), worker, worker, how, tally.clone()))
            .map(tokio::spawn)
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        stop.store(true, SeqCst);
        rebuilding.await.unwrap();
        assert!(guard.stats().rebuilds > 3, "{family:?}: {:?}", guard.stats());
    }
}
