//! The errors of the guard.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use umbel::InvalidShape;
use umbel::format::OpenError;
use umbel::frozen::BuildError;

/// The guard could not carry out a call. None of these errors means that a key is absent.
#[derive(Debug)]
#[non_exhaustive]
pub enum GuardError<E> {
    /// The data set failed. Look-ups that shared one query share its error.
    DataSet(Arc<E>),
    /// The data set did not answer in time. If the call was a write, its outcome is unknown.
    TimedOut {
        /// How long the guard waited.
        after: Duration,
    },
    /// Too many queries: while no filter answers, the guard limits concurrent queries to the data set.
    Busy {
        /// The maximum number of concurrent queries.
        limit: usize,
    },
    /// The filter is for a static set, or the guard was [built for reading](crate::Builder::read_only).
    ReadOnly,
    /// The key could not be added to a filter that other guards rely on. The data set was not queried.
    Filter(Trouble),
    /// The journal record that must be on the disk before the data set may change could not be written, and the
    /// saved filter could not be removed.
    Journal(io::Error),
    /// The guard was closed.
    Closed,
    /// Another guard was started in front of the same data set. This one no longer answers `Absent` and refuses
    /// writes. Reads go through to the data set.
    Superseded,
    /// The background task of the guard has ended: it panicked, or its runtime was shut down.
    Untended,
}

impl<E: fmt::Display> fmt::Display for GuardError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataSet(error) => write!(f, "the data set: {error}"),
            Self::TimedOut { after } => write!(f, "the data set did not answer within {after:?}"),
            Self::Busy { limit } => {
                write!(f, "there is no filter, and {limit} queries are at the data set already")
            }
            Self::ReadOnly => f.write_str(
                "this guard takes no writes: its filter is for a static set, or it was started for reading",
            ),
            Self::Filter(trouble) => write!(f, "the filter: {trouble}"),
            Self::Journal(error) => write!(f, "the journal: {error}"),
            Self::Closed => f.write_str("the guard was closed"),
            Self::Superseded => f.write_str(SUPERSEDED),
            Self::Untended => f.write_str(
                "the background task of the guard has ended; start the guard again, in a runtime that outlives it",
            ),
        }
    }
}

/// The advice in the messages of all errors of this kind.
const SUPERSEDED: &str = "another guard was started in front of this data set, or a copy of the data set was restored; \
     stop the other guard, or start this one again; guards that share one filter use `Shared`";

impl<E: std::error::Error + 'static> std::error::Error for GuardError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::DataSet(error) => Some(&**error),
            Self::Filter(trouble) => Some(trouble),
            Self::Journal(error) => Some(error),
            _ => None,
        }
    }
}

impl<E> Clone for GuardError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::DataSet(error) => Self::DataSet(error.clone()),
            Self::TimedOut { after } => Self::TimedOut { after: *after },
            Self::Busy { limit } => Self::Busy { limit: *limit },
            Self::ReadOnly => Self::ReadOnly,
            Self::Filter(trouble) => Self::Filter(trouble.clone()),
            Self::Journal(error) => Self::Journal(error.kind().into()),
            Self::Closed => Self::Closed,
            Self::Superseded => Self::Superseded,
            Self::Untended => Self::Untended,
        }
    }
}

/// A filter operation failed. The filter is unchanged, or holds more keys than it should, never fewer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The filter has no room for the key.
    Full,
    /// The filter is for a static set.
    ReadOnly,
    /// The filter cannot be reached, perhaps only for a moment.
    Unavailable(Arc<str>),
    /// The shared filter is gone, or was replaced by another one.
    Gone,
    /// The filter did not answer in time.
    TimedOut,
    /// The requested parameters are invalid for this filter.
    Shape(InvalidShape),
    /// The filter could not be built from its keys.
    Build(Arc<BuildError>),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("there is no room for the key"),
            Self::ReadOnly => f.write_str("it is for a set that does not change"),
            Self::Unavailable(why) => write!(f, "it is away: {why}"),
            Self::Gone => f.write_str("it is gone, or another one is in its place"),
            Self::TimedOut => f.write_str("it did not answer in time"),
            Self::Shape(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<InvalidShape> for Trouble {
    fn from(error: InvalidShape) -> Self {
        Self::Shape(error)
    }
}

/// A filter was not built, or not put to use. The previous filter, if any, stays in use.
#[derive(Debug)]
#[non_exhaustive]
pub enum RebuildError<E> {
    /// The data set failed.
    DataSet(E),
    /// The data set did not answer in time.
    TimedOut {
        /// How long the guard waited for a page.
        after: Duration,
    },
    /// The filter failed.
    Filter(Trouble),
    /// The scan gave fewer keys than the data set has.
    Incomplete {
        /// The number of keys in the data set.
        expected: u64,
        /// The number of keys in the scan.
        got: u64,
    },
    /// The new filter does not contain some keys that were added to it.
    Lost {
        /// The number of these keys.
        keys: u64,
    },
    /// The data set has changed identity since the scan began, because another guard was started in front of it
    /// or an older copy was restored. Or a key that was written during the scan could not be added to the new
    /// filter.
    Overtaken,
    /// Another filter is being built already.
    UnderWay,
    /// The guard was closed.
    Closed,
    /// Another guard was started in front of the same data set.
    Superseded,
}

impl<E: fmt::Display> fmt::Display for RebuildError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataSet(error) => write!(f, "the data set: {error}"),
            Self::TimedOut { after } => write!(f, "the data set gave no page within {after:?}"),
            Self::Filter(trouble) => write!(f, "the filter: {trouble}"),
            Self::Incomplete { expected, got } => {
                write!(f, "the scan gave {got} keys of at least {expected}")
            }
            Self::Lost { keys } => write!(f, "{keys} keys that were added are not in the filter"),
            Self::Overtaken => f.write_str(
                "the data set changed while the filter was built: its stamp is another one (another guard was started, a copy was restored, or the \
                 stamp was removed), or a key could not be added",
            ),
            Self::UnderWay => f.write_str("another filter is being built already"),
            Self::Closed => f.write_str("the guard was closed"),
            Self::Superseded => f.write_str(SUPERSEDED),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RebuildError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::DataSet(error) => Some(error),
            Self::Filter(trouble) => Some(trouble),
            _ => None,
        }
    }
}

impl<E> From<Trouble> for RebuildError<E> {
    fn from(trouble: Trouble) -> Self {
        Self::Filter(trouble)
    }
}

/// A guard could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError<E> {
    /// The data set did not return its identity or its stamp, or did not store a new stamp.
    DataSet(E),
    /// Another guard uses these files, or a guard that was dropped without [`close`](crate::Guard::close) is
    /// still saving its filter.
    Locked,
    /// The folder cannot be read or written.
    Io(io::Error),
    /// The folder belongs to another user, who could replace the filter.
    Owner {
        /// The user that owns it.
        owner: u32,
        /// The user that runs this process.
        user: u32,
    },
    /// Other users can write to the folder, and could replace the filter.
    Writable {
        /// The permissions of the folder.
        mode: u32,
    },
    /// The options combine remembered absences with a shared filter. Each guard remembers absences alone, and
    /// would not see the writes of the other guards.
    RemembersShared,
}

impl<E: fmt::Display> fmt::Display for StartError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataSet(error) => write!(f, "the data set: {error}"),
            Self::Locked => {
                f.write_str("another guard uses this folder; stop it, or choose another folder")
            }
            Self::Io(error) => error.fmt(f),
            Self::Owner { owner, user } => write!(
                f,
                "the folder belongs to user {owner}, this process runs as user {user}; run `chown {user}` on it"
            ),
            Self::Writable { mode } => write!(
                f,
                "other users can write to the folder (mode {mode:o}); run `chmod 700` on it"
            ),
            Self::RemembersShared => f.write_str(
                "`remember_absences` cannot be used with a shared filter: other guards write keys \
                 that this one has remembered as absent",
            ),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for StartError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::DataSet(error) => Some(error),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Why saved files were not used. This is not an error: the filter is rebuilt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unusable {
    /// There are no saved files.
    Missing,
    /// The filter does not open.
    Filter(OpenError),
    /// The journal is damaged, or belongs to another filter.
    Journal(&'static str),
    /// The files belong to another data set.
    Identity,
    /// The data set stores no [`Stamp`](crate::Stamp), so nothing shows whether the files are older than the
    /// data.
    Stampless,
    /// Another guard has written to the data set since the files were saved, or to a copy that has replaced it.
    /// Or the files are a copy from before another start of this guard.
    Incarnation,
    /// The data set has writes that are not in the journal.
    Stale {
        /// The mark of the data set.
        set: u64,
        /// The last mark of the journal.
        journal: u64,
    },
    /// The data set had a higher mark before: it was restored from a backup, and deleted keys may exist again.
    RolledBack {
        /// The mark of the data set.
        set: u64,
        /// A mark that the data set had reached before.
        floor: u64,
    },
    /// The filter has no room for a key of the journal.
    Full,
    /// The files could not be read.
    Io(io::Error),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no saved filter"),
            Self::Filter(error) => write!(f, "the saved filter: {error}"),
            Self::Journal(what) => write!(f, "the journal {what}"),
            Self::Identity => f.write_str("the files are of another data set"),
            Self::Stampless => f.write_str(
                "the data set keeps no stamp, so the files may be older than the data",
            ),
            Self::Incarnation => f.write_str(
                "another guard was started in front of this data set or of a copy of it since the files were written",
            ),
            Self::Stale { set, journal } => {
                write!(f, "the data set is at mark {set}, the journal at {journal}")
            }
            Self::RolledBack { set, floor } => {
                write!(f, "the data set is at mark {set}, and was at {floor} already")
            }
            Self::Full => f.write_str("a key of the journal does not fit"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unusable {}
