//! Single-flight: concurrent look-ups of one key share one query to the data set.
//!
//! A look-up may share an answer only if it began before the answer was out of date. So a write removes its
//! key's query from the table after the data set has done the write, and before the caller's call returns.
//! Later look-ups send a new query.
//!
//! A query that is answered at once, as from a file in memory, never enters the table. A query that has to wait
//! enters the table after it was sent, unless a write has ended in between. The version of the shard shows
//! that.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

const SHARDS: usize = 256;

#[derive(Debug)]
pub(crate) struct Flights<T> {
    hasher: RandomState,
    shards: Box<[Shard<T>]>,
}

/// The flights of a shard with the hashes of their keys. There are few, so a linear search is fastest.
type Table<T> = Vec<(u64, Arc<Flight<T>>)>;

/// On separate cache lines, so that processors that work on different keys do not wait for each other.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<T> {
    table: Mutex<Table<T>>,
    /// The number of flights in the table, mostly 0.
    flights: AtomicUsize,
    /// The number of writes that have ended.
    version: AtomicU64,
}

/// A key, and the state of its shard before the data set was queried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    key: &'a [u8],
    hash: u64,
    version: u64,
}

/// A query in progress, and its answer. The answer is `None` if the look-up that sent the query was dropped.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    key: Box<[u8]>,
    answer: OnceLock<Option<T>>,
    done: Notify,
}

#[derive(Debug)]
pub(crate) struct Pilot<'a, T> {
    shard: &'a Shard<T>,
    flight: Arc<Flight<T>>,
    landed: bool,
}

impl<T> Shard<T> {
    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes all flights that `kept` rejects.
    fn keep(&self, table: &mut Table<T>, mut kept: impl FnMut(u64, &Arc<Flight<T>>) -> bool) {
        table.retain(|(hash, flight)| kept(*hash, flight));
        self.flights.store(table.len(), SeqCst);
    }
}

fn of<'a, T>(table: &'a Table<T>, hash: u64, key: &[u8]) -> Option<&'a Arc<Flight<T>>> {
    let same = |(other, flight): &&(u64, Arc<Flight<T>>)| *other == hash && *flight.key == *key;
    table.iter().find(same).map(|(_, flight)| flight)
}

impl<T> Flights<T> {
    pub(crate) fn new() -> Self {
        let shard = |_| Shard {
            table: Mutex::default(),
            flights: AtomicUsize::new(0),
            version: AtomicU64::new(0),
        };
        Self { hasher: RandomState::new(), shards: (0..SHARDS).map(shard).collect() }
    }

    fn shard(&self, hash: u64) -> &Shard<T> {
        &self.shards[hash as usize % SHARDS]
    }

    /// The flight in progress for this key, or what [`begin`](Self::begin) needs to start one.
    pub(crate) fn find<'a>(&self, key: &'a [u8]) -> Result<Arc<Flight<T>>, Question<'a>> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash);
        let question = Question { key, hash, version: shard.version.load(SeqCst) };
        if shard.flights.load(SeqCst) == 0 {
            return Err(question);
        }
        of(&shard.lock(), hash, key).cloned().ok_or(question)
    }

    /// Registers a flight for a query that was sent. Returns `None` if a write has ended since, or another
    /// look-up has registered one.
    pub(crate) fn begin(&self, question: Question<'_>) -> Option<Pilot<'_, T>> {
        let Question { key, hash, version } = question;
        let shard = self.shard(hash);
        let (answer, done) = (OnceLock::new(), Notify::new());
        let flight = Arc::new(Flight { key: key.into(), answer, done });
        let mut table = shard.lock();
        if shard.version.load(SeqCst) != version || of(&table, hash, key).is_some() {
            return None;
        }
        table.push((hash, flight.clone()));
        shard.flights.store(table.len(), SeqCst);
        Some(Pilot { shard, flight, landed: false })
    }

    /// Called when a write to this key has ended: later look-ups send a new query.
    pub(crate) fn forget(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash);
        let mut table = shard.lock();
        shard.version.fetch_add(1, SeqCst);
        shard.keep(&mut table, |other, flight| other != hash || *flight.key != *key);
    }
}

impl<T: Clone> Flight<T> {
    /// The answer; `None` if the query was dropped.
    pub(crate) async fn wait(&self) -> Option<T> {
        loop {
            let done = self.done.notified();
            if let Some(answer) = self.answer.get() {
                return answer.clone();
            }
            done.await;
        }
    }
}

impl<T: Clone> Pilot<'_, T> {
    /// Hands the answer to all look-ups that wait. Copies it only if there are any.
    pub(crate) fn land(mut self, answer: &T) {
        self.leave();
        self.landed = true;
        // The table no longer has the flight, so no look-up can join it now.
        if Arc::strong_count(&self.flight) > 1 {
            let _ = self.flight.answer.set(Some(answer.clone()));
        }
    }
}

impl<T> Pilot<'_, T> {
    /// Removes the flight from the table, unless a write has already done so.
    fn leave(&self) {
        let mut table = self.shard.lock();
        self.shard.keep(&mut table, |_, flight| !Arc::ptr_eq(flight, &self.flight));
    }
}

/// Also runs when the future of the look-up is dropped.
impl<T> Drop for Pilot<'_, T> {
    fn drop(&mut self) {
        if !self.landed {
            self.leave();
            let _ = self.flight.answer.set(None);
        }
        self.flight.done.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pilot<'a>(flights: &'a Flights<u32>, key: &'a [u8]) -> Pilot<'a, u32> {
        let question = flights.find(key).expect_err("nobody asks for it");
        flights.begin(question).expect("nothing came in between")
    }

    fn passenger(flights: &Flights<u32>, key: &[u8]) -> Arc<Flight<u32>> {
        flights.find(key).expect("somebody asks for it")
    }

    #[test]
    fn who_asked_before_a_write_ended_flies_alone() {
        let flights = Flights::<u32>::new();
        let question = flights.find(b"k").unwrap_err();
        flights.forget(b"k");
        assert!(flights.begin(question).is_none());
        let (one, two) = (flights.find(b"k").unwrap_err(), flights.find(b"k").unwrap_err());
        let first = flights.begin(one);
        assert!(first.is_some() && flights.begin(two).is_none());
        drop(first);
        assert!(flights.find(b"k").is_err());
    }

    #[tokio::test]
    async fn all_who_wait_get_the_answer() {
        let flights = Flights::new();
        let first = pilot(&flights, b"k");
        let (one, two) = (passenger(&flights, b"k"), passenger(&flights, b"k"));
        drop(pilot(&flights, b"other"));
        let waits = async { (one.wait().await, two.wait().await) };
        let lands = async { first.land(&7) };
        assert_eq!(tokio::join!(waits, lands).0, (Some(7), Some(7)));
        assert_eq!(one.wait().await, Some(7));
        drop(pilot(&flights, b"k"));
    }

    #[tokio::test]
    async fn who_goes_away_leaves_the_question_to_others() {
        let flights = Flights::new();
        let first = pilot(&flights, b"k");
        let waits = passenger(&flights, b"k");
        drop(first);
        assert_eq!(waits.wait().await, None);
        pilot(&flights, b"k").land(&1);
    }

    #[tokio::test]
    async fn an_answer_from_before_a_write_is_not_for_those_who_ask_after_it() {
        let flights = Flights::new();
        let old = pilot(&flights, b"k");
        let early = passenger(&flights, b"k");
        flights.forget(b"k");
        let new = pilot(&flights, b"k");
        let late = passenger(&flights, b"k");
        old.land(&1);
        // The old flight did not remove the new one.
        let later = passenger(&flights, b"k");
        new.land(&2);
        assert_eq!((early.wait().await, late.wait().await), (Some(1), Some(2)));
        assert_eq!(later.wait().await, Some(2));
    }
}
