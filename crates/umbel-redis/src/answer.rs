//! What a filter on another machine can answer, and why it sometimes cannot.
//!
//! ```text
//!     Absent    proof: the bits of this filter, all of its history, said no
//!     Maybe     evidence, as every filter gives it
//!     Unknown   nobody who could know was asked: go and look yourself
//! ```
//!
//! A key that was evicted answers a stock client with zeros, and zeros read as "absent". So there is no
//! `bool` here: whoever asks must say what happens when nothing is known.
//!
//! ```
//! use umbel_redis::{Answer, Reason};
//!
//! let must_look = |answer: Answer| answer != Answer::Absent;
//! assert!(must_look(Answer::Unknown(Reason::Missing)) && must_look(Answer::Maybe));
//! assert!(!must_look(Answer::Absent));
//! ```

use std::borrow::Borrow;
use std::fmt;
use std::future::Future;
use umbel::{InvalidBytes, InvalidShape};

/// What a filter says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It was never inserted: the filter is whole and is the one that was asked for.
    Absent,
    /// It probably was: wrong for a share of absent keys that the filter was made for.
    Maybe,
    /// Nothing is known of it.
    Unknown(Reason),
}

impl Answer {
    /// Whether this is proof that the key was never inserted.
    #[must_use]
    pub const fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether there was no answer.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// One answer for a key whose bits are in two places. One of them without a bit of the key is
    /// proof, whatever has become of the other.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Absent, _) | (_, Self::Absent) => Self::Absent,
            (Self::Unknown(reason), _) | (_, Self::Unknown(reason)) => Self::Unknown(reason),
            (Self::Maybe, Self::Maybe) => Self::Maybe,
        }
    }
}

/// Why nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The key is not there: evicted, expired, flushed, renamed, or never made.
    Missing,
    /// Something else is there: another type, another program's bytes, another filter.
    Foreign,
    /// The same filter, made anew: another generation or another identity.
    Replaced,
    /// The filter is shorter than it says it is.
    Shrunken,
    /// Another client is creating the filter, or was interrupted while it did.
    Building,
    /// No caller has said yet that the filter has all keys: see [`SharedBloom::complete`](crate::SharedBloom::complete).
    Incomplete,
    /// The filter is older than what this client has seen of it: it was put back from a copy.
    Older,
    /// The server has another history than the filter: it was restarted, or it took over from one that
    /// may have acknowledged more.
    History,
    /// The server is a replica.
    NotPrimary,
    /// No reply in time.
    TimedOut,
    /// No connection, or it broke.
    Disconnected,
    /// The server is still loading its data.
    Loading,
    /// The server takes no writes.
    ReadOnly,
    /// The slot moved more often than was worth following, or the cluster is down.
    Moved,
    /// A script of somebody else's occupies the server.
    Busy,
    /// Wrong password, or a command that this user may not send.
    NotPermitted,
    /// The server has no memory left for writes.
    OutOfMemory,
    /// The filter takes no more keys.
    Full,
    /// The server does not know a command that is needed, such as those of a module.
    Unsupported,
    /// A reply that is none.
    Garbage,
    /// The server refused for a reason of its own.
    Refused,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the filter is not there: evicted, expired, flushed or never made",
            Self::Foreign => "something else is stored under the filter's name",
            Self::Replaced => "the filter was made anew since it was opened",
            Self::Shrunken => "the filter is shorter than it should be",
            Self::Building => {
                "the filter is being created, or its creation was interrupted: wait, or delete it"
            }
            Self::Incomplete => {
                "the filter is not complete: insert all keys, then mark it complete"
            }
            Self::Older => "the filter is older than it was before",
            Self::History => "the server has another history than the filter: adopt it or rebuild",
            Self::NotPrimary => "the server is a replica",
            Self::TimedOut => "no reply in time",
            Self::Disconnected => "no connection to the server",
            Self::Loading => "the server is loading its data",
            Self::ReadOnly => "the server takes no writes",
            Self::Moved => "the slot is on its way to another server, or the cluster is down",
            Self::Busy => "the server is busy with a script",
            Self::NotPermitted => "the server does not permit this to this user",
            Self::OutOfMemory => "the server has no memory left",
            Self::Full => "the filter takes no more keys",
            Self::Unsupported => "the server does not know a command that is needed",
            Self::Garbage => "the reply of the server makes no sense",
            Self::Refused => "the server refused",
        })
    }
}

impl std::error::Error for Reason {}

/// Why something was not done, or is not known to have been.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// It was not acknowledged. It may have been done all the same, and may be tried again: nothing
    /// here does harm when it is done twice.
    Unknown(Reason),
    /// There is a filter with this name already, so none was created.
    Exists,
    /// The key was sealed for another number of bits.
    Bits {
        /// The number that was asked for.
        expected: u64,
        /// The number in the seal.
        found: u64,
    },
    /// The filter there is not the one that was expected.
    Mismatch {
        /// What differs.
        what: &'static str,
    },
    /// The server is set up so that it may lose filters, and that was to be refused.
    Hazard(crate::Hazard),
    /// There is no such filter.
    Shape(InvalidShape),
    /// The hasher of the filter there cannot be told from what it says.
    Hasher(InvalidBytes),
    /// A name or a URL that is none.
    Address(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(reason) => reason.fmt(f),
            Self::Exists => {
                f.write_str("a filter with this name exists already: open it, or delete it first")
            }
            Self::Bits { expected, found } => {
                write!(f, "the key is sealed for {found} bits, not for {expected}: use {found}")
            }
            Self::Mismatch { what } => write!(f, "the filter there has another {what}"),
            Self::Hazard(hazard) => hazard.fmt(f),
            Self::Shape(error) => error.fmt(f),
            Self::Hasher(error) => error.fmt(f),
            Self::Address(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unknown(reason) => Some(reason),
            Self::Shape(error) => Some(error),
            Self::Hasher(error) => Some(error),
            Self::Hazard(hazard) => Some(hazard),
            Self::Exists | Self::Bits { .. } | Self::Mismatch { .. } | Self::Address(_) => None,
        }
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Self::Unknown(reason)
    }
}

impl From<InvalidShape> for Error {
    fn from(error: InvalidShape) -> Self {
        Self::Shape(error)
    }
}

impl From<crate::Hazard> for Error {
    fn from(hazard: crate::Hazard) -> Self {
        Self::Hazard(hazard)
    }
}

/// How [`SharedBloom::open_or_create`](crate::SharedBloom::open_or_create) and its siblings came to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opening {
    /// The filter existed and was opened as it was.
    Opened,
    /// There was no filter, so this call created an empty one. It is incomplete.
    Created,
}

/// A filter on another machine, for code that is generic over the types of this crate. Each type has these methods itself.
///
/// `insert` is acknowledged when it returns `Ok`, and from then on no client gets [`Answer::Absent`] for the
/// key. If the filter itself is lost, the answer is [`Answer::Unknown`]. An insert that returns an error is not
/// acknowledged. The documentation of each type says what exactly it can prove.
pub trait RemoteFilter {
    /// What is inserted and asked for.
    type Key: ?Sized;

    /// Whether the key may have been inserted.
    fn contains(&self, key: &Self::Key) -> impl Future<Output = Answer> + Send;

    /// Inserts a key, and tells what [`contains`](Self::contains) would have answered just before.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the server did not acknowledge it. A filter that is lost, replaced or not at home on
    /// the server is not written to. After a time-out the key may have been inserted. Inserting it again is safe.
    fn insert(&self, key: &Self::Key) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// As [`contains`](Self::contains), for many keys with few round trips: `answers[i]` is for
    /// `keys[i]`.
    fn contains_batch<A>(&self, keys: &[A]) -> impl Future<Output = Vec<Answer>> + Send
    where
        A: Borrow<Self::Key> + Sync;

    /// As [`insert`](Self::insert), for many keys with few round trips. Of equal keys in one batch only the
    /// first is new.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert): some of the keys may be inserted then, and all may be inserted
    /// again.
    fn insert_batch<A>(
        &self,
        keys: &[A],
    ) -> impl Future<Output = Result<Vec<Answer>, Error>> + Send
    where
        A: Borrow<Self::Key> + Sync;
}

/// The methods of [`RemoteFilter`] as methods of the type, so that callers need not import the trait.
macro_rules! remote_methods {
    (impl[$($generics:tt)*] $filter:ty: $key:ty) => {
        impl<$($generics)*> $filter {
            /// Whether the key may have been inserted. `Absent` is guaranteed; `Unknown` tells why the filter cannot answer.
            pub async fn contains(&self, key: &$key) -> $crate::Answer {
                $crate::RemoteFilter::contains(self, key).await
            }

            /// Inserts a key, and tells what [`contains`](Self::contains) would have answered just before.
            ///
            /// # Errors
            ///
            /// As [`RemoteFilter::insert`](crate::RemoteFilter::insert): the key is not acknowledged then.
            pub async fn insert(&self, key: &$key) -> Result<$crate::Answer, $crate::Error> {
                $crate::RemoteFilter::insert(self, key).await
            }

            /// As [`contains`](Self::contains), for many keys with few round trips: answer i is for `keys[i]`.
            pub async fn contains_batch<A: std::borrow::Borrow<$key> + Sync>(
                &self,
                keys: &[A],
            ) -> Vec<$crate::Answer> {
                $crate::RemoteFilter::contains_batch(self, keys).await
            }

            /// As [`insert`](Self::insert), for many keys with few round trips.
            ///
            /// # Errors
            ///
            /// As [`RemoteFilter::insert_batch`](crate::RemoteFilter::insert_batch): some of the keys may be inserted then.
            pub async fn insert_batch<A: std::borrow::Borrow<$key> + Sync>(
                &self,
                keys: &[A],
            ) -> Result<Vec<$crate::Answer>, $crate::Error> {
                $crate::RemoteFilter::insert_batch(self, keys).await
            }
        }
    };
}
pub(crate) use remote_methods;

/// Filters of bytes that do everything in batches, by `ask_batch` and `add_batch`.
macro_rules! remote_in_batches {
    ($($filter:ty),*) => {$(
        $crate::answer::remote_methods!(impl[] $filter: [u8]);

        impl $crate::RemoteFilter for $filter {
            type Key = [u8];

            async fn contains(&self, key: &[u8]) -> $crate::Answer {
                let answers = self.ask_batch(&[key]).await;
                answers.first().copied().unwrap_or($crate::Answer::Unknown($crate::Reason::Garbage))
            }

            async fn insert(&self, key: &[u8]) -> Result<$crate::Answer, $crate::Error> {
                let answers = self.add_batch(&[key]).await?;
                answers.first().copied().ok_or($crate::Error::Unknown($crate::Reason::Garbage))
            }

            async fn contains_batch<A: std::borrow::Borrow<[u8]> + Sync>(
                &self,
                keys: &[A],
            ) -> Vec<$crate::Answer> {
                self.ask_batch(keys).await
            }

            async fn insert_batch<A: std::borrow::Borrow<[u8]> + Sync>(
                &self,
                keys: &[A],
            ) -> Result<Vec<$crate::Answer>, $crate::Error> {
                self.add_batch(keys).await
            }
        }
    )*};
}
pub(crate) use remote_in_batches;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_half_without_the_key_is_proof_and_two_halves_with_it_are_evidence() {
        let lost = Answer::Unknown(Reason::Missing);
        assert_eq!(Answer::Absent.and(lost), Answer::Absent);
        assert_eq!(lost.and(Answer::Absent), Answer::Absent);
        assert_eq!(Answer::Maybe.and(lost), lost);
        assert_eq!(lost.and(Answer::Maybe), lost);
        assert_eq!(Answer::Maybe.and(Answer::Maybe), Answer::Maybe);
    }
}
