//! A data set in memory that injects faults: it fails, waits, commits later, or ends a scan early.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Semaphore;
use umbel_guard::{Claim, DataSet, Outcome, Page, Put, Stamp};

/// The secret of filters in tests that expect an answer to be `Absent`: with a random one, any key can be a false positive.
pub(crate) const SECRET: umbel::Keyed = umbel::Keyed::new([7; 16]);

/// Pseudo-random numbers with a fixed seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns true once in `number` calls, on average.
    pub(crate) fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// The first seed of long runs: `UMBEL_SEED`, to use new seeds, or 0.
pub(crate) fn first_seed() -> u64 {
    let told = std::env::var("UMBEL_SEED").ok();
    told.map_or(0, |seed| seed.parse().expect("UMBEL_SEED is a number"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) &'static str);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Fault {}

/// The fate of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The set refuses it before anything happens.
    Refused,
    /// It is rolled back, and the error says so.
    RolledBack,
    /// It is committed, and the answer is lost.
    Lost,
    /// It is committed after this time, long after the call returned an error.
    Late(Duration),
    /// The call never returns; the write is committed after this time.
    Hangs(Duration),
}

/// The fate of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// The page with this number is an error.
    Fails(usize),
    /// The page with this number never arrives.
    Hangs(usize),
    /// All pages from this number on are empty, and none is marked as the last.
    Dries(usize),
    /// The page with this number is wrongly marked as the last.
    Lies(usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Faulty(pub(crate) Arc<Inside>);

#[derive(Debug, Default)]
pub(crate) struct Inside {
    table: Mutex<Table>,
    /// Counts writes without the guard, as `PRAGMA data_version` does.
    pub(crate) foreign: AtomicU64,
    /// Changes when a standby is promoted.
    timeline: AtomicU64,
    fates: Mutex<VecDeque<Fate>>,
    breaks: Mutex<VecDeque<Break>>,
    pub(crate) gets: AtomicU64,
    pub(crate) scans: AtomicU64,
    pub(crate) failing: AtomicU64,
    /// Look-ups wait for this semaphore, if set.
    gate: Mutex<Option<Arc<Semaphore>>>,
    /// Answers of look-ups wait for this semaphore after the row was read.
    answer_gate: Mutex<Option<Arc<Semaphore>>>,
    /// The next look at the set panics.
    pub(crate) panics: AtomicBool,
    /// The set stores no stamp, so it carries out writes of a guard that has ended.
    pub(crate) stampless: AtomicBool,
    /// Looks at the set fail.
    pub(crate) unreachable: AtomicBool,
    /// The set has a stamp, and refuses to store another one.
    pub(crate) refuses_begin: AtomicBool,
    /// The next guard that begins gets an error, and the set stores nothing.
    pub(crate) fails_begin: AtomicBool,
    /// Another guard writes this key before the next one begins.
    pub(crate) written_before_begin: Mutex<Option<Vec<u8>>>,
    /// The set is another one than the one that was opened.
    pub(crate) replaced: AtomicBool,
    /// How long a write may continue after its guard has ended, in seconds.
    pub(crate) lingering: AtomicU64,
    /// Writes wait for this semaphore before they are committed.
    write_gate: Mutex<Option<Arc<Semaphore>>>,
}

/// The content of a backup: rows, and the stamp of the guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    stamp: Stamp,
}

impl Table {
    pub(crate) fn mark(&self) -> u64 {
        self.stamp.mark
    }

    /// Checks whether a write with this claim is carried out, and raises the mark.
    fn stamped(&mut self, claim: Option<Claim>) -> Result<(), Fault> {
        let Some(claim) = claim else { return Ok(()) };
        if claim.incarnation != self.stamp.incarnation || claim.least > self.stamp.mark {
            return Err(SUPERSEDED);
        }
        self.stamp.mark = self.stamp.mark.max(claim.mark);
        Ok(())
    }
}

/// Another guard has begun, or an older copy was restored.
const SUPERSEDED: Fault = Fault("superseded");
/// A write that the set refuses before it does anything.
pub(crate) const REFUSED: Fault = Fault("refused");

#[derive(Debug)]
pub(crate) struct Copied {
    keys: Vec<Vec<u8>>,
    at: usize,
    page: usize,
    fate: Option<Break>,
}

impl Faulty {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap()
    }

    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.table().rows.contains_key(key)
    }

    /// The current value of a key.
    pub(crate) fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.table().rows.get(key).cloned()
    }

    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        self.table().rows.keys().cloned().collect()
    }

    /// Writes without the guard, and leaves no trace for `foreign_writes`.
    pub(crate) fn bypass(&self, key: &[u8]) {
        self.table().rows.insert(key.into(), b"bypassed".into());
    }

    /// Deletes without the guard.
    pub(crate) fn bypass_delete(&self, key: &[u8]) {
        self.table().rows.remove(key);
    }

    /// The next look at the set reports a foreign write.
    pub(crate) fn show_foreign_writes(&self) {
        self.0.foreign.fetch_add(1, SeqCst);
    }

    pub(crate) fn backup(&self) -> Table {
        self.table().clone()
    }

    pub(crate) fn restore(&self, backup: Table) {
        *self.table() = backup;
    }

    /// Promotes a standby.
    pub(crate) fn fail_over(&self, standby: Table) {
        self.0.timeline.fetch_add(1, SeqCst);
        self.restore(standby);
    }

    /// Sets the fate of the next write.
    pub(crate) fn doom(&self, fate: Fate) {
        self.0.fates.lock().unwrap().push_back(fate);
    }

    /// Sets the fate of the next full scan.
    pub(crate) fn break_scan(&self, fate: Break) {
        self.0.breaks.lock().unwrap().push_back(fate);
    }

    /// All scans succeed from now on.
    pub(crate) fn mend_scans(&self) {
        self.0.breaks.lock().unwrap().clear();
    }

    pub(crate) fn gate(&self, permits: usize) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(permits));
        *self.0.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    pub(crate) fn answer_gate(&self, permits: usize) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(permits));
        *self.0.answer_gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    pub(crate) fn write_gate(&self, permits: usize) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(permits));
        *self.0.write_gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    pub(crate) fn open_gates(&self) {
        *self.0.gate.lock().unwrap() = None;
        *self.0.answer_gate.lock().unwrap() = None;
        *self.0.write_gate.lock().unwrap() = None;
    }

    pub(crate) fn gets(&self) -> u64 {
        self.0.gets.load(SeqCst)
    }

    fn later(&self, time: Duration, key: &[u8], value: &[u8], claim: Option<Claim>) {
        let (set, key, value) = (self.clone(), key.to_vec(), value.to_vec());
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let _ = set.insert(&key, &value, claim);
        });
    }

    fn insert(&self, key: &[u8], value: &[u8], claim: Option<Claim>) -> Result<Put, Fault> {
        if self.0.replaced.load(SeqCst) {
            return Err(SUPERSEDED);
        }
        if self.0.unreachable.load(SeqCst) {
            return Err(Fault("down"));
        }
        let mut table = self.table();
        table.stamped(claim)?;
        let old = table.rows.insert(key.into(), value.into());
        Ok(if old.is_some() { Put::Replaced } else { Put::New })
    }

    async fn write(&self, key: &[u8], value: &[u8], claim: Option<Claim>) -> Result<Put, Fault> {
        let fate = self.0.fates.lock().unwrap().pop_front();
        pass(&self.0.write_gate).await;
        match fate {
            None => {
                let put = self.insert(key, value, claim)?;
                pause().await;
                Ok(put)
            }
            Some(Fate::Refused) => Err(REFUSED),
            Some(Fate::RolledBack) => Err(Fault("rolled back")),
            Some(Fate::Lost) => {
                self.insert(key, value, claim)?;
                Err(Fault("the connection broke"))
            }
            Some(Fate::Late(time)) => {
                self.later(time, key, value, claim);
                Err(Fault("the connection broke"))
            }
            Some(Fate::Hangs(time)) => {
                self.later(time, key, value, claim);
                std::future::pending().await
            }
        }
    }

    async fn remove(&self, key: &[u8], claim: Option<Claim>) -> Result<bool, Fault> {
        let fate = self.0.fates.lock().unwrap().pop_front();
        pass(&self.0.write_gate).await;
        match fate {
            Some(Fate::Refused) => return Err(REFUSED),
            Some(Fate::RolledBack | Fate::Late(_)) => return Err(Fault("rolled back")),
            Some(Fate::Hangs(_)) => std::future::pending().await,
            _ => {}
        }
        let deleted = {
            let mut table = self.table();
            table.stamped(claim)?;
            table.rows.remove(key).is_some()
        };
        pause().await;
        if fate.is_some() { Err(Fault("the connection broke")) } else { Ok(deleted) }
    }
}

async fn pass(gate: &Mutex<Option<Arc<Semaphore>>>) {
    let gate = gate.lock().unwrap().clone();
    if let Some(gate) = gate {
        gate.acquire().await.unwrap().forget();
    }
    pause().await;
}

/// Lets other tasks run in between: the guard itself polls twice before it waits.
async fn pause() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

impl DataSet for Faulty {
    type Error = Fault;
    type Scan = Copied;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.0.gets.fetch_add(1, SeqCst);
        pass(&self.0.gate).await;
        if self.0.failing.load(SeqCst) > 0 {
            return Err(Fault("down"));
        }
        let got = self.value(key);
        pass(&self.0.answer_gate).await;
        Ok(got)
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, Fault> {
        self.write(key, value, None).await
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, Fault> {
        self.remove(key, None).await
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], claim: Claim) -> Result<Put, Fault> {
        self.write(key, value, Some(claim)).await
    }

    async fn delete_marked(&self, key: &[u8], claim: Claim) -> Result<bool, Fault> {
        self.remove(key, Some(claim)).await
    }

    async fn begin(&self, incarnation: u64) -> Result<bool, Fault> {
        if self.0.fails_begin.swap(false, SeqCst) {
            return Err(Fault("down"));
        }
        if let Some(key) = self.0.written_before_begin.lock().unwrap().take() {
            let stamp = self.table().stamp;
            self.insert(&key, b"", Some(Stamp { mark: stamp.mark + 1, ..stamp }.into()))?;
        }
        let stamps = !self.0.stampless.load(SeqCst) && !self.0.refuses_begin.load(SeqCst);
        if stamps {
            self.table().stamp.incarnation = incarnation;
        }
        // The write has happened, and the answer is on its way.
        tokio::task::yield_now().await;
        Ok(stamps)
    }

    async fn stamp(&self) -> Result<Option<Stamp>, Fault> {
        let stamps = !self.0.stampless.load(SeqCst);
        Ok(stamps.then(|| self.table().stamp))
    }

    fn outcome(&self, error: &Fault) -> Outcome {
        match *error {
            REFUSED => Outcome::NotDone,
            SUPERSEDED => Outcome::Superseded,
            _ => Outcome::Unknown,
        }
    }

    async fn identity(&self) -> Result<Vec<u8>, Fault> {
        if self.0.replaced.load(SeqCst) {
            return Err(SUPERSEDED);
        }
        if self.0.unreachable.load(SeqCst) {
            return Err(Fault("down"));
        }
        Ok(self.0.timeline.load(SeqCst).to_le_bytes().to_vec())
    }

    fn lingering(&self) -> Duration {
        Duration::from_secs(self.0.lingering.load(SeqCst))
    }

    async fn foreign_writes(&self) -> Result<Option<u64>, Fault> {
        assert!(!self.0.panics.load(SeqCst), "as it was told");
        Ok(Some(self.0.foreign.load(SeqCst)))
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<Copied, Fault> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let fate = match after {
            None => self.0.breaks.lock().unwrap().pop_front(),
            Some(_) => None,
        };
        self.0.scans.fetch_add(1, SeqCst);
        let keys: Vec<Vec<u8>> = {
            let table = self.table();
            table.rows.range::<[u8], _>((from, Unbounded)).map(|(key, _)| key.clone()).collect()
        };
        pause().await;
        Ok(Copied { keys, at: 0, page: 0, fate })
    }

    async fn page(&self, scan: &mut Copied, limit: usize) -> Result<Page, Fault> {
        pause().await;
        let number = scan.page;
        scan.page += 1;
        match scan.fate {
            Some(Break::Fails(at)) if at == number => return Err(Fault("the scan broke")),
            Some(Break::Hangs(at)) if at == number => std::future::pending().await,
            Some(Break::Dries(at)) if at <= number => return Ok(Page::new()),
            Some(Break::Lies(at)) if at == number => return Ok(Page::new().last()),
            _ => {}
        }
        let mut page = Page::new();
        scan.keys.iter().skip(scan.at).take(limit).for_each(|key| page.push(key));
        scan.at += page.len();
        Ok(if scan.at >= scan.keys.len() { page.last() } else { page })
    }

    async fn count(&self, scan: &mut Copied) -> Result<u64, Fault> {
        Ok(scan.keys.len() as u64)
    }
}
