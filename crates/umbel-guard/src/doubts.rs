//! Writes with an unknown outcome: the data set failed, was too slow, or the caller dropped the future.
//!
//! Such a write may still happen after a scan that did not see it. So the guard adds its key to every filter
//! that it builds in the meantime. If the write never happens, the key is a false positive. Look-ups of such a
//! key are not shared: the guard does not know when the write happens, and a look-up that began before it must
//! not answer one that began after it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Doubts {
    room: usize,
    age: Duration,
    table: Mutex<Table>,
    /// The number of keys, including lost ones.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    keys: HashMap<Box<[u8]>, Instant>,
    /// When a key was last lost for lack of room.
    lost: Option<Instant>,
}

impl Doubts {
    pub(crate) fn new(room: usize, age: Duration) -> Self {
        Self { room, age, table: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.lost.is_some_and(|since| since.elapsed() >= self.age) {
            table.lost = None;
        }
        table
    }

    /// Remembers a key. Returns `false` if there is no room; then no filter can be trusted for a while.
    #[must_use]
    pub(crate) fn add(&self, key: &[u8]) -> bool {
        let mut table = self.table();
        if table.keys.len() >= self.room && !table.keys.contains_key(key) {
            let age = self.age;
            table.keys.retain(|_, since| since.elapsed() < age);
            if table.keys.len() >= self.room {
                table.lost = Some(Instant::now());
                self.recount(&table);
                return false;
            }
        }
        table.keys.insert(key.into(), Instant::now());
        self.recount(&table);
        true
    }

    /// Whether a write to this key may still happen.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        // The fast path: mostly there are no such keys.
        if self.count.load(SeqCst) == 0 {
            return false;
        }
        let table = self.table();
        table.lost.is_some() || table.keys.contains_key(key)
    }

    /// All keys; `None` if some were lost.
    pub(crate) fn keys(&self) -> Option<Vec<Box<[u8]>>> {
        let mut table = self.table();
        let age = self.age;
        table.keys.retain(|_, since| since.elapsed() < age);
        self.recount(&table);
        table.lost.is_none().then(|| table.keys.keys().cloned().collect())
    }

    fn recount(&self, table: &Table) {
        self.count.store(table.keys.len() + usize::from(table.lost.is_some()), SeqCst);
    }

    pub(crate) fn len(&self) -> usize {
        self.table().keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_are_remembered_until_they_are_old() {
        let doubts = Doubts::new(2, Duration::from_secs(10));
        assert!(!doubts.has(b"a"));
        assert!(doubts.add(b"a") && doubts.add(b"a") && doubts.len() == 1);
        assert!(doubts.has(b"a") && !doubts.has(b"b"));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert!(doubts.add(b"b"));
        assert_eq!(doubts.keys().map(|keys| keys.len()), Some(2));
        // The lost key is unknown until its time is over.
        assert!(!doubts.add(b"c"));
        assert_eq!(doubts.keys(), None);
        assert!(doubts.has(b"c") && doubts.has(b"d"), "any key may be one that was lost");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(doubts.keys().map(|keys| keys.len()), Some(0));
        assert!(doubts.add(b"c"));
    }
}
