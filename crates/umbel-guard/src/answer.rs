//! Answers of the guard with their reasons, and the state of the guard.
//!
//! ```text
//!     Empty ---> Building ---> Active <----------------------.
//!                  ^  |          |  a miss, a full filter,   |
//!                  |  | failed   v  a filter that is away    |
//!                  `--'       Suspect ---> Rebuilding -------'
//!                                ^             |  failed
//!                                `-------------'
//! ```
//!
//! The guard returns [`Answer::Absent`] only in the state `Active`. In every other state all look-ups go
//! through to the data set. A sound filter that has become too full stays `Active` while the next one is built.

use std::fmt;

/// Whether a key is in the data set, as far as the filter can tell. It does not convert to a `bool`, because
/// the caller has to decide what to do with [`Unknown`](Self::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The key is not in the data set. This is guaranteed.
    Absent,
    /// The key may be in the data set, or is a false positive: query the data set.
    Maybe,
    /// The filter cannot tell: query the data set.
    Unknown(Reason),
}

/// Why the filter cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// There is no filter yet.
    Building,
    /// The filter is not trusted.
    Suspect(Suspicion),
    /// The filter did not answer in time.
    TimedOut,
    /// The filter cannot be reached, or was replaced by another one.
    Unavailable,
    /// The filter was replaced during the look-up, several times in a row.
    Changing,
    /// The data set could not be reached for longer than [`trust_for`](crate::Builder::trust_for) allows, so
    /// another guard may have written to it.
    Unwatched,
}

/// Why a filter is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Suspicion {
    /// The filter lacked a key of the data set: another program writes to the data set without the guard.
    Missed,
    /// A key could not be added.
    Full,
    /// The shared filter is gone, or was replaced by another one.
    Gone,
    /// More writes have an unknown outcome than the guard can remember.
    Doubts,
    /// [`Guard::distrust`](crate::Guard::distrust) was called, or the guard was closed.
    Told,
    /// The data set was replaced: a standby was promoted, or a backup was restored.
    Moved,
    /// Another guard was started in front of the same data set. This guard builds no more filters.
    Superseded,
    /// The background task of the guard has ended. This guard builds no more filters.
    Untended,
}

impl Suspicion {
    /// Whether the guard builds no more filters.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Superseded | Self::Untended)
    }

    /// Whether the filter that is being built may lack the same keys.
    pub(crate) const fn is_of_content(self) -> bool {
        matches!(self, Self::Missed | Self::Told | Self::Moved | Self::Superseded | Self::Untended)
    }
}

/// The state of a guard. The [module](self) has the diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The guard has done nothing yet.
    Empty,
    /// The first filter is being built.
    Building,
    /// The filter answers.
    Active,
    /// The filter is not trusted.
    Suspect,
    /// The filter is not trusted, and the next one is being built.
    Rebuilding,
}

impl State {
    /// Its name, and its number in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Building => "building",
            Self::Active => "active",
            Self::Suspect => "suspect",
            Self::Rebuilding => "rebuilding",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missed => "a key of the data set was not in the filter",
            Self::Full => "a key could not be added to the filter",
            Self::Gone => "the shared filter is gone or another one",
            Self::Doubts => "too many writes have an unknown outcome",
            Self::Told => "the caller ended the trust in it, or the guard was closed",
            Self::Moved => "the data set is not the one that the filter was built from",
            Self::Superseded => "another guard was started in front of this data set",
            Self::Untended => "the background task of the guard has ended",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Building => f.write_str("there is no filter yet"),
            Self::Suspect(why) => write!(f, "the filter is not trusted: {why}"),
            Self::TimedOut => f.write_str("the filter did not answer in time"),
            Self::Unavailable => f.write_str("the filter is away"),
            Self::Changing => f.write_str("the filter is being replaced"),
            Self::Unwatched => f.write_str("the data set has not been reached for too long"),
        }
    }
}
