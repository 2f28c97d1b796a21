//! The guarded data set: a key-value store that is expensive to query.
//!
//! A data set is anything with keys and values: a table, a file, a service. Clients look up, put and delete
//! keys. The guard builds its filter from a scan.
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

/// A key-value store, as the guard uses it.
///
/// Implement it with `async fn`s; the [module](self) has an example. The guarantees of the guard rest on four
/// rules that an implementation must keep:
///
/// * When [`put`](Self::put) has returned `Ok`, every later `get` and every later scan sees the key.
/// * With [`SNAPSHOT`](Self::SNAPSHOT), a [`scan`](Self::scan) returns the keys of one moment. Without it, a
///   scan returns every key that exists from its beginning to its end. Either way it returns every key that was
///   put before it was called and not deleted since.
/// * The last [page](Self::page) of a scan is marked as the last, and no other page is. A failure is an error,
///   never a short page.
/// * Two keys are equal if their bytes are equal after [`canonical`](Self::canonical).
pub trait DataSet: Send + Sync + 'static {
    /// The error of a failed call.
    type Error: std::error::Error + Send + Sync + 'static;

    /// A scan in progress: its view of the data, and its position.
    type Scan: Send;

    /// Whether a scan reads a snapshot of the set.
    const SNAPSHOT: bool = true;

    /// The value of a key; `None` if the set does not have the key.
    ///
    /// # Errors
    ///
    /// If the set does not answer. The key may or may not exist then.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Vec<u8>>, Self::Error>> + Send;

    /// Stores a value, and replaces the old one if there is one.
    ///
    /// # Errors
    ///
    /// If the write did not happen, or its outcome is unknown.
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> impl Future<Output = Result<Put, Self::Error>> + Send;

    /// Deletes a key. Returns `true` only if the key existed and this call deleted it.
    ///
    /// # Errors
    ///
    /// If the write did not happen, or its outcome is unknown.
    fn delete(&self, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Begins a scan of all keys; with `after`, of the keys behind that key in the order of the set. Only the
    /// audit uses `after`, and a set without an order may begin anywhere.
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
    /// If the keys could not be read. The guard then gives up the scan.
    fn page(
        &self,
        scan: &mut Self::Scan,
        limit: usize,
    ) -> impl Future<Output = Result<Page, Self::Error>> + Send;

    /// The number of keys in this scan; without [`SNAPSHOT`](Self::SNAPSHOT), the number of keys now.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn count(&self, scan: &mut Self::Scan)
    -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The canonical form of a key. If the set treats `007` as equal to `7`, the filter must do so too.
    fn canonical<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        Cow::Borrowed(key)
    }

    /// How long a write may continue after the process that sent it has ended. A guard waits this long before
    /// its first scan, because the guard before it may have been killed during a write.
    fn lingering(&self) -> Duration {
        Duration::ZERO
    }

    /// Identifies this set, and distinguishes it from a copy restored from a backup. A saved filter is used
    /// only for the set it was saved for.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn identity(&self) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send {
        async { Ok(Vec::new()) }
    }

    /// The [`Stamp`] of the guard that was started last, as stored in the set. `None` if the set stores none. A
    /// saved filter is then never used, because nothing shows whether it is older than the data.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn stamp(&self) -> impl Future<Output = Result<Option<Stamp>, Self::Error>> + Send {
        async { Ok(None) }
    }

    /// Called when a guard starts. Durably stores `incarnation`, the random number of this guard, and keeps the
    /// mark. From then on [`put_marked`](Self::put_marked) and [`delete_marked`](Self::delete_marked) of every
    /// other guard fail. Returns `false` if the set stores no stamp, for example because the user may not write
    /// there.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn begin(&self, incarnation: u64) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        let _ = incarnation;
        async { Ok(false) }
    }

    /// As [`put`](Self::put), in one transaction with two more steps. It fails with [`Outcome::Superseded`] if
    /// the [claim](Claim) does not hold, and it raises the mark of the set to the mark of the claim. Only
    /// called after `begin` returned `true`.
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

    /// As [`delete`](Self::delete), with the claim of [`put_marked`](Self::put_marked).
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

    /// What an error means for the write that failed, or for the data set. The default is always safe for
    /// writes: the guard assumes that the write may still happen.
    fn outcome(&self, error: &Self::Error) -> Outcome {
        let _ = error;
        Outcome::Unknown
    }

    /// Whether the write failed because of the key or the value. `None` if it failed for another or an unknown
    /// reason.
    fn refusal(&self, error: &Self::Error) -> Option<Refusal> {
        let _ = error;
        None
    }

    /// A counter that changes when another program may have written to the set. The guard reads it about once a
    /// second, and compares all keys with its filter when it has changed. It may change without a foreign
    /// write, and may change late. `None` if the set has no such counter, or if no other program can write.
    ///
    /// # Errors
    ///
    /// If the set does not answer.
    fn foreign_writes(&self) -> impl Future<Output = Result<Option<u64>, Self::Error>> + Send {
        async { Ok(None) }
    }
}

/// The last guard that wrote to a data set, and its last write.
///
/// A guard keeps the same two numbers in its journal. If they differ at the next start, the journal and the
/// data set do not belong together: one of them was restored from a backup or copied, or another guard has
/// written since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The random number of the guard that was started last; 0 if no guard was started yet.
    pub incarnation: u64,
    /// The number of the last write through a guard; 0 if there was none. It never decreases, not even when
    /// another guard starts.
    pub mark: u64,
}

/// What a guard claims with a write: that it is the guard that was started last, and that the data set has all
/// writes that it confirmed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The number of the last call of [`begin`](DataSet::begin). If the set has a different one, another guard
    /// was started.
    pub incarnation: u64,
    /// The smallest mark that the set may have. A lower mark means that the set was replaced by an older copy
    /// of itself.
    pub least: u64,
    /// The number of this write. The set stores it as its mark, unless its mark is higher.
    pub mark: u64,
}

impl From<Stamp> for Claim {
    /// A claim that accepts any mark.
    fn from(stamp: Stamp) -> Self {
        Self { incarnation: stamp.incarnation, least: 0, mark: stamp.mark }
    }
}

/// What is known about a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The write may have happened, or may still happen.
    Unknown,
    /// The write did not happen and will not happen.
    NotDone,
    /// The write did not happen and will not happen. Another guard was started in front of this data set, or
    /// the data set was replaced, for example its file. An error with this outcome, from any function, ends the
    /// trust in the filter.
    Superseded,
}

/// Why a data set refuses a write. Nothing was written, and the same write fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The write conflicts with other rows: a unique column, a foreign key, a trigger that keeps the row.
    Conflict,
    /// The data set cannot store this key or value because of its type, its length or a check.
    Unfit,
}

/// The effect of a put on the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The key did not exist before.
    New,
    /// The key existed before.
    Replaced,
    /// The data set does not report whether the key existed before.
    Either,
}

/// A page of keys, stored in one block of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    last: bool,
}

impl Page {
    /// An empty page.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), last: false }
    }

    /// Adds a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Marks this page as the last one, which proves that the scan is complete.
    #[must_use]
    pub const fn last(mut self) -> Self {
        self.last = true;
        self
    }

    /// Whether this is the last page.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.last
    }

    /// The number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the page has no keys.
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
