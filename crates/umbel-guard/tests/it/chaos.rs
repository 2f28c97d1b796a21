//! An exact model and every kind of fault: a key that can be read is never reported absent.
//!
//! Each worker writes its own keys, so the data set before and after a look-up determines the allowed answers.
//! In the meantime a fault task
//!
//! * breaks scans, rolls back writes, commits them late, loses their outcome, refuses them, cancels rebuilds;
//! * writes rows without the guard, and overwrites and deletes such rows, with and without the guard;
//! * lets a standby take over that lags behind;
//! * moves the clock, and ends the trust.
//!
//! Between two rounds the guard is closed or killed. Its files are lost, damaged, cut, or restored from a backup that was
//! made while it ran. The data set is replaced by a copy from the middle of the round, which another guard has written to.
//!
//! A fleet of guards that share a filter loses it repeatedly. Its members are killed in the middle of a write,
//! and the data set carries out their statements later.

use crate::faulty::{Break, Fate, Faulty, Random, Table, first_seed};
use crate::kinds::Exact;
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
    /// `Absent` answers: a run without any would prove nothing.
    absent: AtomicU64,
    present: AtomicU64,
    /// Look-ups of the filter alone that it did not answer with `Absent`.
    open: AtomicU64,
    /// Look-ups that the filter could not answer, and that went through to the data set.
    sent_on: AtomicU64,
    /// Rows that were written or deleted without the guard.
    foreign: AtomicU64,
    /// Promoted standbys, restored copies, restored folders.
    replaced: AtomicU64,
    /// Starts with a saved filter that could be used.
    restored: AtomicU64,
    /// A standby was promoted, and the guard has not noticed yet: it looks once a second.
    unsettled: AtomicBool,
}

/// The content of a backup from the middle of a round.
#[derive(Debug, Default)]
struct Backup {
    table: Option<Table>,
    folder: bool,
}

fn key(worker: u64, number: u64) -> Vec<u8> {
    format!("worker {worker} key {number}").into_bytes()
}

type Guarded = Guard<Faulty, Local>;

/// A look-up of the filter alone.
async fn contains(guard: &Guarded, key: &[u8], tally: &Tally) -> Answer {
    let answer = guard.contains(key).await;
    tally.open.fetch_add(u64::from(answer != Answer::Absent), SeqCst);
    answer
}

/// A key that can be read must not be absent.
async fn ask(guard: &Guarded, set: &Faulty, key: &[u8], tally: &Tally) {
    let (before, replaced) = (set.value(key), tally.replaced.load(SeqCst));
    let unsettled = tally.unsettled.load(SeqCst);
    let answer = contains(guard, key, tally).await;
    let after = set.value(key);
    if unsettled || tally.replaced.load(SeqCst) != replaced {
        return;
    }
    if answer == Answer::Absent {
        tally.absent.fetch_add(1, SeqCst);
        assert!(before.is_none() || after.is_none(), "{} is there", String::from_utf8_lossy(key));
    }
    tally.present.fetch_add(u64::from(before.is_some()), SeqCst);
}

async fn get(guard: &Guarded, set: &Faulty, key: &[u8], tally: &Tally) {
    let (before, replaced) = (set.value(key), tally.replaced.load(SeqCst));
    let unsettled = tally.unsettled.load(SeqCst);
    let got = guard.get(key).await;
    let after = set.value(key);
    if unsettled || tally.replaced.load(SeqCst) != replaced {
        return;
    }
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
                let replaced = tally.replaced.load(SeqCst);
                if guard.put(&key, &round.to_le_bytes()).await.is_ok() {
                    ask(&guard, &set, &key, &tally).await;
                    let answer = contains(&guard, &key, &tally).await;
                    // A promoted standby may lack the key.
                    let same = replaced == tally.replaced.load(SeqCst);
                    assert!(!same || answer != Answer::Absent, "it was put");
                }
            }
            20..35 => _ = guard.delete(&key).await,
            35..60 => get(&guard, &set, &key, &tally).await,
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

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        // A file that is being replaced is missing from the copy, as it is from every backup.
        let _ = fs::copy(&path, to.join(path.file_name().unwrap()));
    }
}

async fn torment(
    guard: Guarded,
    set: Faulty,
    seed: u64,
    stop: Arc<AtomicBool>,
    tally: Arc<Tally>,
    folder: std::path::PathBuf,
) -> Backup {
    let mut random = Random(seed);
    let mut bypassed = 0_u64;
    let mut backup = Backup::default();
    while !stop.load(SeqCst) {
        let page = random.below(8) as usize;
        let soon = Duration::from_millis(random.below(90_000));
        tally.faults.fetch_add(1, SeqCst);
        match random.below(18) {
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
                // The clock only moves forward, and not past writes with an unknown outcome that are due: those
                // run first.
                tokio::time::advance(Duration::from_secs(random.below(100))).await;
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
            }
            11 => {
                tally.foreign.fetch_add(1, SeqCst);
                let key = format!("bypassed {bypassed} {seed}").into_bytes();
                bypassed += 1;
                set.bypass(&key);
                // One in a hundred is a false positive, and every audit finds a missing key.
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
            12 => {
                // A row that was written without the guard is written through it.
                tally.foreign.fetch_add(1, SeqCst);
                let key = format!("stranger {} {seed}", random.below(50)).into_bytes();
                set.bypass(&key);
                if random.one_in(2) {
                    set.show_foreign_writes();
                }
                if guard.put(&key, b"overwritten").await.is_ok() {
                    let answer = contains(&guard, &key, &tally).await;
                    assert_ne!(answer, Answer::Absent, "it was put");
                }
            }
            13 => {
                tally.foreign.fetch_add(1, SeqCst);
                set.bypass_delete(&key(random.below(WORKERS), random.below(KEYS)));
            }
            14 => set.doom(Fate::Refused),
            15 => {
                // Rows that the standby lacks are lost, and rows that were deleted since exist again.
                let standby = backup.table.take().unwrap_or_else(|| set.backup());
                tally.unsettled.store(true, SeqCst);
                tally.replaced.fetch_add(1, SeqCst);
                set.fail_over(standby);
                guard.tend().await;
                tally.unsettled.store(false, SeqCst);
            }
            16 => {
                backup.table = Some(set.backup());
                copy(&folder, &folder.with_extension("backup"));
                backup.folder = true;
            }
            _ => _ = guard.audit(300).await,
        }
        if guard.state() != State::Active || random.one_in(4) {
            rebuild(&guard, &mut random).await;
        }
        if random.one_in(6) {
            let _ = guard.checkpoint().await;
        }
        // Rare enough that other work happens in between, and a rebuild saves files.
        for _ in 0..random.below(300) {
            tokio::task::yield_now().await;
        }
    }
    backup
}

/// A copy of the data set serves for a while, behind another guard with another folder, and is then restored.
async fn fail_back(set: &Faulty, copied: Table, family: Family, folder: &Path, number: u64) {
    let other = Faulty::default();
    other.restore(copied);
    let _ = fs::remove_dir_all(folder);
    let guard = Guard::builder(other.clone(), Local::new(family, 0.01)).folder(folder);
    let guard = guard.without_background().start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard.put(format!("written to copy {number}").as_bytes(), b"").await.unwrap();
    drop(guard);
    set.restore(other.backup());
}

/// Damages the files of a guard that is not running.
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
            // The data set has marks that a truncated journal lacks.
            _ => {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
                fs::write(&path, bytes).unwrap();
            }
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
    // With a stamp, the data set refuses a late write after the next rebuild. Without one it carries the write
    // out.
    set.0.stampless.store(random.one_in(4), SeqCst);
    let start = Guard::builder(set.clone(), Local::new(family, 0.01)).folder(&folder);
    let start = start.without_background().scan(100, 1.0).capacity(1.2, 200);
    let start = start.set_timeout(Duration::from_secs(1)).doubts(1 << 20, Duration::from_secs(200));
    let start =
        if random.one_in(2) { start.remember_absences(100, Duration::from_secs(5)) } else { start };
    let guard = start.start().await.unwrap();
    tally.restored.fetch_add(u64::from(guard.state() == State::Active), SeqCst);
    let stop = Arc::new(AtomicBool::new(false));
    let (gets, open) = (set.gets(), tally.open.load(SeqCst));
    holds_all(&guard, set, tally).await;
    let (demon_guard, demon_tally) = (guard.clone(), tally.clone());
    let seed = random.next();
    let demon = torment(demon_guard, set.clone(), seed, stop.clone(), demon_tally, folder.clone());
    let demon = tokio::spawn(demon);
    // The paused clock moves only when all tasks are idle, and time-outs wait for it.
    let how = (each, Duration::from_millis(100));
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| work(guard.clone(), set.clone(), worker, random.next(), how, tally.clone()))
        .map(tokio::spawn)
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    stop.store(true, SeqCst);
    let backup = demon.await.unwrap();
    // All late writes have been carried out.
    tokio::time::sleep(Duration::from_secs(100)).await;
    if guard.state() == State::Active {
        // An audit cannot tell when a scan ends too early. It begins where the last one ended, so the second
        // audit sees all keys.
        set.mend_scans();
        for _ in 0..2 {
            while guard.audit(100_000).await.is_err() {}
        }
    }
    if guard.state() != State::Active {
        while guard.rebuild().await.is_err() {}
    }
    holds_all(&guard, set, tally).await;
    // Every look-up that the filter did not answer has reached the data set, alone or shared with another
    // look-up of the same key, except for remembered absences.
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
    match random.below(4) {
        0 => tamper(&folder, &mut random, tally),
        1 if backup.folder => {
            tally.replaced.fetch_add(1, SeqCst);
            copy(&folder.with_extension("backup"), &folder);
        }
        2 => {
            if let Some(table) = backup.table {
                tally.replaced.fetch_add(1, SeqCst);
                fail_back(set, table, family, &folder.with_extension("other"), seed).await;
            }
        }
        _ => {}
    }
}

/// No key of the data set is reported absent.
async fn holds_all(guard: &Guarded, set: &Faulty, tally: &Tally) {
    for key in set.keys() {
        let answer = contains(guard, &key, tally).await;
        assert_ne!(answer, Answer::Absent, "{}", String::from_utf8_lossy(&key));
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
    let [foreign, replaced, restored] =
        [&tally.foreign, &tally.replaced, &tally.restored].map(|number| number.load(SeqCst));
    println!(
        "{operations} operations, {faults} faults, {absent} answers absent, {present} keys asked for while present, \
         {sent_on} look-ups sent on, {foreign} foreign writes, {replaced} data sets and folders replaced, \
         {restored} starts with a saved filter"
    );
    assert!(faults >= 200 && foreign >= 20 && replaced >= 10, "{faults}, {foreign}, {replaced}");
    assert!(restored > 0, "no saved filter was ever used");
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

/// Guards that share a filter: each worker looks up and writes through all of them.
async fn fleet_chaos(rounds: u64, seed: u64) {
    const MEMBERS: usize = 3;
    let mut random = Random(seed);
    let (set, kind) = (Faulty::default(), Exact::<true>::default());
    // The data set carries out no statement later than that.
    set.0.lingering.store(60, SeqCst);
    let start = async || {
        let builder = Guard::builder(set.clone(), kind.clone()).without_background();
        builder.set_timeout(Duration::from_secs(1)).scan(50, 1.0).start().await.unwrap()
    };
    let mut members = Vec::new();
    for _ in 0..MEMBERS {
        members.push(start().await);
    }
    let (mut killed, mut lost, mut absent, mut present) = (0, 0, 0, 0);
    for _ in 0..rounds {
        let which = random.below(MEMBERS as u64) as usize;
        let member = &members[which];
        let key = key(0, random.below(KEYS));
        match random.below(1_000) {
            0..3 => {
                // Killed in the middle of a write, which the data set carries out within a minute.
                set.doom(Fate::Hangs(Duration::from_millis(random.below(59_000))));
                let put = member.put(&key, b"late");
                let _ = tokio::time::timeout(Duration::from_millis(5), put).await;
                members[which] = start().await;
                killed += 1;
            }
            3..5 => {
                kind.lose();
                for member in &members {
                    member.distrust();
                }
                lost += 1;
            }
            5..50 => {
                for member in &members {
                    if member.state() != State::Active {
                        let _ = member.rebuild().await;
                    }
                }
            }
            50..200 => {
                let before = set.value(&key);
                if member.put(&key, b"").await.is_ok() {
                    for other in &members {
                        assert_ne!(other.contains(&key).await, Answer::Absent, "{before:?}");
                    }
                }
            }
            200..300 => _ = member.delete(&key).await,
            300..600 => {
                let before = set.value(&key);
                let got = member.get(&key).await;
                if let (true, Ok(got)) = (before == set.value(&key), got) {
                    assert_eq!(got, before);
                }
            }
            _ => {
                let before = set.has(&key);
                let answer = member.contains(&key).await;
                let both = before && set.has(&key);
                assert!(!both || answer != Answer::Absent, "{}", String::from_utf8_lossy(&key));
                absent += u64::from(answer == Answer::Absent);
                present += u64::from(both);
            }
        }
    }
    println!(
        "fleet: {rounds} operations, {killed} killed, {lost} filters lost, {absent} absent, {present} present"
    );
    assert!(killed > 0 && lost > 0 && absent > rounds / 50 && present > rounds / 50);
}

#[tokio::test(start_paused = true)]
async fn nothing_readable_is_absent_in_a_fleet_whose_members_are_killed() {
    for seed in 0..4 {
        fleet_chaos(50_000, first_seed() + seed).await;
    }
}

/// As the one below, for fleets.
#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn nothing_readable_is_absent_in_a_fleet_in_ten_million_operations() {
    for seed in 0..10 {
        fleet_chaos(1_000_000, first_seed() + seed).await;
    }
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
