//! Answers of a filter on another machine, and the reasons why it sometimes cannot answer.
//!
//! ```text
//!     Absent    proof: the bits of this filter, all of its history, said no
//!     Maybe     evidence, as every filter gives it
//!     Unknown   nobody who could know was asked: go and look yourself
//! ```
//!
//! A stock server returns zeros for a key that was evicted, and zeros read as "absent". So an answer does not
//! convert to a `bool`: the caller has to decide what to do with `Unknown`.
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

/// The answer of a filter for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The key was never inserted. This is guaranteed: the filter is complete, and it is the one that was
    /// opened.
    Absent,
    /// The key was probably inserted. The false positive rate is the one that the filter was planned for.
    Maybe,
    /// The filter cannot tell.
    Unknown(Reason),
}

impl Answer {
    /// Whether this proves that the key was never inserted.
    #[must_use]
    pub const fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether the filter could not tell.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Combines the answers for a key whose bits are in two places. If one place lacks a bit of the key, that
    /// is proof of absence, whatever has happened to the other place.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Absent, _) | (_, Self::Absent) => Self::Absent,
            (Self::Unknown(reason), _) | (_, Self::Unknown(reason)) => Self::Unknown(reason),
            (Self::Maybe, Self::Maybe) => Self::Maybe,
        }
    }
}

/// Why the filter cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The key does not exist on the server: it was evicted, expired, flushed, renamed, or never created.
    Missing,
    /// The key holds something else: another type, the bytes of another program, or another filter.
    Foreign,
    /// The filter was created again: it has another generation or another identity.
    Replaced,
    /// The filter is shorter than its header says.
    Shrunken,
    /// Another client is creating the filter, or was interrupted during the creation.
    Building,
    /// No caller has marked the filter as complete yet: see
    /// [`SharedBloom::complete`](crate::SharedBloom::complete).
    Incomplete,
    /// The filter is older than the state that this client has already seen: it was restored from a copy.
    Older,
    /// The server has another history than the filter. It was restarted, or it was promoted and the old primary
    /// may have acknowledged more.
    History,
    /// The server is a replica.
    NotPrimary,
    /// No reply before the time-out.
    TimedOut,
    /// The connection failed or broke.
    Disconnected,
    /// The server is still loading its data.
    Loading,
    /// The server accepts no writes.
    ReadOnly,
    /// The slot moved more often than the client retries, or the cluster is down.
    Moved,
    /// A long script of another client blocks the server.
    Busy,
    /// Wrong password, or a command that this user may not send.
    NotPermitted,
    /// The server has no memory left for writes.
    OutOfMemory,
    /// The filter accepts no more keys.
    Full,
    /// The server lacks a required command, such as those of a module.
    Unsupported,
    /// The reply is malformed.
    Garbage,
    /// The server refused for another reason.
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

/// Why an operation was not carried out, or may not have been.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The server did not acknowledge the operation. It may have been carried out, and may be repeated: every
    /// operation here is safe to repeat.
    Unknown(Reason),
    /// A filter with this name already exists, so none was created.
    Exists,
    /// The key was sealed for a different number of bits.
    Bits {
        /// The requested number of bits.
        expected: u64,
        /// The number of bits in the seal.
        found: u64,
    },
    /// The filter on the server is not the expected one.
    Mismatch {
        /// What differs.
        what: &'static str,
    },
    /// The server's configuration may lose filters, and the policy refuses that.
    Hazard(crate::Hazard),
    /// The parameters are invalid for a filter.
    Shape(InvalidShape),
    /// The header does not describe the hasher sufficiently.
    Hasher(InvalidBytes),
    /// The name or the URL is invalid.
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

/// How [`SharedBloom::open_or_create`](crate::SharedBloom::open_or_create) and its siblings obtained a filter.
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
    /// The type of the keys.
    type Key: ?Sized;

    /// Whether the key may have been inserted.
    fn contains(&self, key: &Self::Key) -> impl Future<Output = Answer> + Send;

    /// Inserts a key, and returns what [`contains`](Self::contains) would have answered just before.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the server did not acknowledge the insert. A filter that is lost, replaced or not
    /// at home on the server is not written to. After a time-out the key may have been inserted. Inserting it
    /// again is safe.
    fn insert(&self, key: &Self::Key) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// As [`contains`](Self::contains), for many keys in few round trips: `answers[i]` is for `keys[i]`.
    fn contains_batch<A>(&self, keys: &[A]) -> impl Future<Output = Vec<Answer>> + Send
    where
        A: Borrow<Self::Key> + Sync;

    /// As [`insert`](Self::insert), for many keys in few round trips. Of equal keys in one batch only the first
    /// is reported as new.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Some of the keys may have been inserted then, and all may be inserted
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
            /// Whether the key may have been inserted. `Absent` is guaranteed; `Unknown` says why the filter
            /// cannot answer.
            pub async fn contains(&self, key: &$key) -> $crate::Answer {
                $crate::RemoteFilter::contains(self, key).await
            }

            /// Inserts a key, and returns what [`contains`](Self::contains) would have answered just before.
            ///
            /// # Errors
            ///
            /// As [`RemoteFilter::insert`](crate::RemoteFilter::insert). The key is then not acknowledged.
            pub async fn insert(&self, key: &$key) -> Result<$crate::Answer, $crate::Error> {
                $crate::RemoteFilter::insert(self, key).await
            }

            /// As [`contains`](Self::contains), for many keys in few round trips: answer i is for `keys[i]`.
            pub async fn contains_batch<A: std::borrow::Borrow<$key> + Sync>(
                &self,
                keys: &[A],
            ) -> Vec<$crate::Answer> {
                $crate::RemoteFilter::contains_batch(self, keys).await
            }

            /// As [`insert`](Self::insert), for many keys in few round trips.
            ///
            /// # Errors
            ///
            /// As [`RemoteFilter::insert_batch`](crate::RemoteFilter::insert_batch). Some of the keys may have
            /// been inserted then.
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

/// Filters of bytes that implement every operation by `ask_batch` and `add_batch`.
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
