//! A cache of false positives: keys that the filter reported present and the data set does not have. Repeated
//! look-ups of such a key do not reach the data set.
//!
//! A remembered absence must never outlive a write. So a key is remembered only if no write in its shard was
//! under way while the data set was queried, and every write forgets its key before it begins:
//!
//! ```text
//!     reader   --- notes the shard's version ---- asks the set: none ---- same version, no writer: remembers
//!     writer   ------ one writer more, another version, forgets ---- puts ---- one writer less
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const SHARDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Absences {
    hasher: RandomState,
    /// The maximum number of keys per shard.
    room: usize,
    age: Duration,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    known: HashMap<Box<[u8]>, Instant>,
    writers: u64,
    version: u64,
    /// Until this instant, a write with an unknown outcome may still happen.
    doubtful: Option<Instant>,
}

/// The state of a shard before the data set was queried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    shard: usize,
    version: u64,
}

/// A write in progress.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    absences: &'a Absences,
    shard: usize,
}

impl Absences {
    /// Room for `keys` keys, each remembered for `age`.
    pub(crate) fn new(keys: usize, age: Duration) -> Self {
        let room = keys.div_ceil(SHARDS).max(1);
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { hasher: RandomState::new(), room, age, shards }
    }

    fn shard_of(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `Ok` if the key is known to be absent, and otherwise what [`remember`](Self::remember) needs.
    pub(crate) fn knows(&self, key: &[u8]) -> Result<(), Noted> {
        let shard = self.shard_of(key);
        let mut table = self.lock(shard);
        match table.known.get(key) {
            Some(since) if since.elapsed() < self.age => return Ok(()),
            Some(_) => _ = table.known.remove(key),
            None => {}
        }
        Err(Noted { shard, version: table.version })
    }

    /// Remembers an absence, unless a write may have ended it.
    pub(crate) fn remember(&self, key: &[u8], noted: Noted) {
        let mut table = self.lock(noted.shard);
        let doubtful = table.doubtful.is_some_and(|until| Instant::now() < until);
        if doubtful || table.writers > 0 || table.version != noted.version {
            return;
        }
        if table.known.len() >= self.room && !table.known.contains_key(key) {
            let age = self.age;
            table.known.retain(|_, since| since.elapsed() < age);
            if table.known.len() >= self.room {
                let oldest = table.known.iter().min_by_key(|(_, since)| **since);
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    table.known.remove(&oldest);
                }
            }
        }
        table.known.insert(key.into(), Instant::now());
    }

    /// A write to this key begins.
    pub(crate) fn writing(&self, key: &[u8]) -> Writing<'_> {
        let shard = self.shard_of(key);
        let mut table = self.lock(shard);
        table.known.remove(key);
        table.version += 1;
        table.writers += 1;
        Writing { absences: self, shard }
    }

    /// Forgets all keys, and refuses to remember absences that were looked up before this call.
    pub(crate) fn clear(&self) {
        for shard in 0..SHARDS {
            let mut table = self.lock(shard);
            table.known.clear();
            table.version += 1;
        }
    }
}

impl Writing<'_> {
    /// The write may still happen within this time. Until then the shard remembers nothing.
    pub(crate) fn in_doubt(self, age: Duration) {
        // Adding `Duration::MAX` to an instant panics, so the time is limited to thirty years.
        let until = Instant::now() + age.min(Duration::from_secs(30 * 365 * 24 * 3600));
        let mut table = self.absences.lock(self.shard);
        table.doubtful = table.doubtful.max(Some(until));
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut table = self.absences.lock(self.shard);
        table.writers -= 1;
        // A look-up that began after this write may still have read the old value.
        table.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absences() -> Absences {
        Absences::new(64 * 8, Duration::from_secs(5))
    }

    fn asked(absences: &Absences, key: &[u8]) -> Noted {
        absences.knows(key).expect_err("it is not known")
    }

    #[tokio::test(start_paused = true)]
    async fn an_absence_is_remembered_for_a_while() {
        let absences = absences();
        absences.remember(b"k", asked(&absences, b"k"));
        assert!(absences.knows(b"k").is_ok() && absences.knows(b"other").is_err());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(absences.knows(b"k").is_err());
        absences.remember(b"k", asked(&absences, b"k"));
        absences.clear();
        assert!(absences.knows(b"k").is_err());
    }

    #[tokio::test]
    async fn no_absence_outlives_a_write() {
        let absences = absences();
        // A write that ended before the answer came.
        let noted = asked(&absences, b"k");
        drop(absences.writing(b"k"));
        absences.remember(b"k", noted);
        assert!(absences.knows(b"k").is_err());
        // A write that began before the question and has not ended.
        let writing = absences.writing(b"k");
        absences.remember(b"k", asked(&absences, b"k"));
        assert!(absences.knows(b"k").is_err());
        drop(writing);
        // A write that began before the question and ended before the answer came.
        let writing = absences.writing(b"k");
        let noted = asked(&absences, b"k");
        drop(writing);
        absences.remember(b"k", noted);
        assert!(absences.knows(b"k").is_err());
        // A write that begins when the absence is known.
        absences.remember(b"k", asked(&absences, b"k"));
        assert!(absences.knows(b"k").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn absences_are_remembered_again_when_a_doubt_is_over() {
        let absences = absences();
        absences.remember(b"k", asked(&absences, b"k"));
        absences.writing(b"k").in_doubt(Duration::from_secs(60));
        assert!(absences.knows(b"k").is_err(), "the write has forgotten it");
        // The write may happen within a minute.
        absences.remember(b"k", asked(&absences, b"k"));
        assert!(absences.knows(b"k").is_err());
        tokio::time::advance(Duration::from_secs(60)).await;
        absences.remember(b"k", asked(&absences, b"k"));
        assert!(absences.knows(b"k").is_ok());
    }

    #[tokio::test]
    async fn only_so_many_are_remembered() {
        let absences = absences();
        for key in 0..100_000_u32 {
            let key = key.to_le_bytes();
            absences.remember(&key, asked(&absences, &key));
        }
        let known: usize =
            absences.shards.iter().map(|shard| shard.lock().unwrap().known.len()).sum();
        assert_eq!(known, 64 * 8);
    }
}
