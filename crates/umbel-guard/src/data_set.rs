//! What is guarded: a set of keys with values that is dear to ask.
//!
//! A data set is anything with keys and values: a table, a file, a service. Four operations are what
//! clients want of it; a scan is what a filter is built from.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::convert::Infallible;
//! use std::ops::Bound::{Excluded, Unbounded};
//! use std::sync::Mutex;
//! use umbel_guard::{DataSet, Page, Put};
//!
//! #[derive(Default)]
//! struct InMemory(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);
//!
//! /// A copy of the keys, and how many of them were handed out.
//! struct Copy(Vec<Vec<u8>>, usize);
//!
//! impl DataSet for InMemory {
//!     type Error = Infallible;
//!     type Scan = Copy;
//!
//!     async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
//!         Ok(self.0.lock().unwrap().get(key).cloned())
//!     }
//!     async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, Infallible> {
//!         let old = self.0.lock().unwrap().insert(key.into(), value.into());
//!         Ok(if old.is_none() { Put::New } else { Put::Replaced })
//!     }
//!     async fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
//!         Ok(self.0.lock().unwrap().remove(key).is_some())
//!     }
//!     async fn scan(&self, after: Option<&[u8]>) -> Result<Copy, Infallible> {
//!         let from = after.map_or(Unbounded, Excluded);
//!         let rows = self.0.lock().unwrap();
//!         Ok(Copy(rows.range::<[u8], _>((from, Unbounded)).map(|(key, _)| key.clone()).collect(), 0))
//!     }
//!     async fn page(&self, scan: &mut Copy, limit: usize) -> Result<Page, Infallible> {
//!         let mut page = Page::new();
//!         scan.0.iter().skip(scan.1).take(limit).for_each(|key| page.push(key));
//!         scan.1 += page.len();
//!         Ok(if scan.1 == scan.0.len() { page.last() } else { page })
//!     }
//!     async fn count(&self, scan: &mut Copy) -> Result<u64, Infallible> {
//!         Ok(scan.0.len() as u64)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use umbel_guard::{Answer, Guard, Local};
//!
//! let guard = Guard::builder(InMemory::default(), Local::blocked(0.01)).start().await?;
//! guard.active().await?;
//! assert_eq!(guard.contains(b"a").await, Answer::Absent);
//! guard.put(b"a", b"1").await?;
//! assert_eq!(guard.get(b"a").await?.as_deref(), Some(&b"1"[..]));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

/// Keys with values, as the guard sees them.
///
/// Implement it with `async fn`s; the [module](self) has an example. What the guard promises rests on
/// four things that an implementation must keep:
///
/// * When [`put`](Self::put) has returned `Ok`, every later `get` and every later scan sees the key.
/// * [`scan`](Self::scan) sees every key that was put before it was called; with [`SNAPSHOT`](Self::SNAPSHOT)
///   the view is the one of that moment, else keys that are there all the time are all seen.
/// * A [page](Self::page) that is the last one says so, and no other does. What fails is an error, never a
///   short page.
/// * Keys are equal if their bytes are, after [`canonical`](Self::canonical).
pub trait DataSet: Send + Sync + 'static {
    /// Why it did not answer.
    type Error: std::error::Error + Send + Sync + 'static;

    /// A scan under way: the view it has, and how far it is.
    type Scan: Send;

    /// Whether a scan sees the set as it was at one moment.
    const SNAPSHOT: bool = true;

    /// The value of a key; `None` says that it is not there.
    ///
    /// # Errors
    ///
    /// If the set does not answer, which says nothing of the key.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Vec<u8>>, Self::Error>> + Send;

    /// Puts a value, in the place of the one that was there.
    ///
    /// # Errors
    ///
    /// If it did not happen, or nobody knows whether it did.
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> impl Future<Output = Result<Put, Self::Error>> + Send;

    /// Takes a key away. `true` is proof that it was there, and is said once.
    ///
    /// # Errors
    ///
    /// If it did not happen, or nobody knows whether it did.
    fn delete(&self, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Begins a scan of all keys; with `after`, of those behind that key in the order of the set. Only the
    /// audit asks for that, and a set without an order may begin anywhere.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn scan(
        &self,
        after: Option<&[u8]>,
    ) -> impl Future<Output = Result<Self::Scan, Self::Error>> + Send;

    /// The next keys of a scan: about `limit`, and at least one unless it is the last page.
    ///
    /// # Errors
    ///
    /// If they could not be read. The scan is given up then.
    fn page(
        &self,
        scan: &mut Self::Scan,
        limit: usize,
    ) -> impl Future<Output = Result<Page, Self::Error>> + Send;

    /// How many keys there are for this scan; without [`SNAPSHOT`](Self::SNAPSHOT), how many there are now.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn count(&self, scan: &mut Self::Scan)
    -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The one way in which equal keys are written. Where a set takes `007` for `7`, so must the filter.
    fn canonical<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        Cow::Borrowed(key)
    }

    /// How long a write may go on after the process that asked for it is gone. A guard that has just been started
    /// waits so long before it scans: the one before it may have been killed while a write was on its way.
    fn lingering(&self) -> Duration {
        Duration::ZERO
    }

    /// What tells this set from others, and from itself after it was restored from a backup. A saved
    /// filter is used only for the set it was saved for.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn identity(&self) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send {
        async { Ok(Vec::new()) }
    }

    /// What the set keeps of the guard that was started last: its [`Stamp`]. `None` if the set keeps none; a saved
    /// filter is never used then, because nothing shows whether it is older than the data.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn stamp(&self) -> impl Future<Output = Result<Option<Stamp>, Self::Error>> + Send {
        async { Ok(None) }
    }

    /// A guard starts: stores the random number that tells it from all others, durably, and keeps the mark. From then
    /// on [`put_marked`](Self::put_marked) and [`delete_marked`](Self::delete_marked) of every other guard fail.
    /// `false` if the set keeps no stamp, for example because the user may not write there.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn begin(&self, incarnation: u64) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        let _ = incarnation;
        async { Ok(false) }
    }

    /// As [`put`](Self::put), in one transaction with two more steps: it fails with [`Outcome::Superseded`] if the
    /// [claim](Claim) does not hold, and it raises the mark that the set keeps to the one of the claim. Only called after
    /// `begin` returned `true`.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    fn put_marked(
        &self,
        key: &[u8],
        value: &[u8],
        claim: Claim,
    ) -> impl Future<Output = Result<Put, Self::Error>> + Send {
        let _ = claim;
        self.put(key, value)
    }

    /// As [`delete`](Self::delete), with a claim as [`put_marked`](Self::put_marked) has it.
    ///
    /// # Errors
    ///
    /// As [`delete`](Self::delete).
    fn delete_marked(
        &self,
        key: &[u8],
        claim: Claim,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        let _ = claim;
        self.delete(key)
    }

    /// What an error says about the write that failed, or about the data set. The default is always safe for writes: the
    /// guard prepares for a write that may still happen.
    fn outcome(&self, error: &Self::Error) -> Outcome {
        let _ = error;
        Outcome::Unknown
    }

    /// Whether the key or the value is the reason why a write failed. `None` if the failure has another reason, or none is
    /// known.
    fn refusal(&self, error: &Self::Error) -> Option<Refusal> {
        let _ = error;
        None
    }

    /// A number that changes when anything but this value may have written to the set: the guard reads it about once
    /// a second, and compares all keys with its filter when it has changed. It may change without need, and may
    /// change late. `None` if the set has nothing of the kind, or if nothing else can write.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn foreign_writes(&self) -> impl Future<Output = Result<Option<u64>, Self::Error>> + Send {
        async { Ok(None) }
    }
}

/// Which guard wrote to a data set last, and how far it was.
///
/// A guard keeps the same two numbers in its journal. If they differ at the next start, the journal and the data set
/// do not belong to each other: one of them was restored from a backup or copied, or another guard has written since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The random number of the guard that was started last; 0 if none was started yet.
    pub incarnation: u64,
    /// The number of the last write through a guard; 0 if there was none. It never falls, also not from one
    /// guard to the next.
    pub mark: u64,
}

/// What a guard claims with a write: that it is the guard that was started last, and that the data set has all writes that
/// it confirmed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The number that [`begin`](DataSet::begin) was called with last. If the set has another one, another guard was started.
    pub incarnation: u64,
    /// The mark that the set may not be below. If it is, the set was replaced by an older copy of itself.
    pub least: u64,
    /// The number of this write, which becomes the mark of the set unless that is higher.
    pub mark: u64,
}

impl From<Stamp> for Claim {
    /// Without a mark that the set must have.
    fn from(stamp: Stamp) -> Self {
        Self { incarnation: stamp.incarnation, least: 0, mark: stamp.mark }
    }
}

/// What is known about a write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It may have happened, or may happen yet.
    Unknown,
    /// It did not happen and will not.
    NotDone,
    /// It did not happen and will not: another guard was started in front of this data set, or this is no longer the
    /// data set that was opened, for example because its file was replaced. An error with this outcome, of any
    /// function, ends the trust in the filter.
    Superseded,
}

/// Why a data set refuses a write. Nothing was written, and the same write fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Other rows stand against it: a unique column, a foreign key, a trigger that keeps the row.
    Conflict,
    /// The data set cannot store this key or this value: its type, its length, a check.
    Unfit,
}

/// What putting a value did to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was not there before, for certain.
    New,
    /// It was there before, for certain.
    Replaced,
    /// Nobody can tell.
    Either,
}

/// Some keys of a scan, in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    last: bool,
}

impl Page {
    /// No keys yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), last: false }
    }

    /// Adds a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// The same keys, after which there are no more: the proof that a scan is complete.
    #[must_use]
    pub const fn last(mut self) -> Self {
        self.last = true;
        self
    }

    /// Whether no keys follow.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.last
    }

    /// How many keys there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The keys, in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        let start = |number: usize| if number == 0 { 0 } else { self.ends[number - 1] };
        (0..self.ends.len()).map(move |number| &self.bytes[start(number)..self.ends[number]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_its_keys_back() {
        let mut page = Page::new();
        assert!(page.is_empty() && page.keys().next().is_none());
        for key in [&b"a"[..], b"", b"ccc"] {
            page.push(key);
        }
        assert_eq!(page.keys().collect::<Vec<_>>(), [&b"a"[..], b"", b"ccc"]);
        assert_eq!(page.keys().next_back(), Some(&b"ccc"[..]));
        assert!(!page.is_last() && page.last().is_last());
    }
}
