//! Events that a guard reports while it runs. A program passes [`Builder::observe`](crate::Builder::observe) a
//! function that receives every [`Event`].

use crate::answer::Suspicion;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use umbel::internal::Grouped;

/// A change in the filter of a guard. Its `Display` text is one line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The guard started with the saved filter.
    Restored,
    /// There is no saved filter, so the guard builds one.
    Building,
    /// The saved filter cannot be used, so the guard builds another one.
    Unusable {
        /// Why it cannot be used.
        why: String,
    },
    /// A new filter was built and is in use.
    Ready {
        /// The number of keys in the data set.
        keys: u64,
        /// How long the build took.
        took: Duration,
    },
    /// The filter is no longer trusted.
    Lost {
        /// Why.
        why: Suspicion,
        /// The error of the data set, if there was one.
        error: Option<String>,
    },
    /// Another program has written to the data set, so the guard compares all keys with the filter.
    ForeignWrite,
    /// The guard builds the next filter while this one answers.
    Renewing {
        /// Why.
        why: Renewal,
    },
    /// A filter could not be built.
    Failed {
        /// Why.
        error: String,
        /// When the next attempt begins.
        wait: Duration,
    },
    /// The filter in use could not be saved.
    NotSaved {
        /// Why.
        error: String,
    },
}

/// Why a filter that answers correctly is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renewal {
    /// Its false positive rate is too high.
    Rate,
    /// Too many of its keys were deleted from the data set.
    Deletes,
    /// Other programs wrote to the data set, and keys can be removed from the filter.
    ForeignWrites,
}

impl Event {
    /// Whether this event costs performance: look-ups reach the data set, or a later start takes longer.
    #[must_use]
    pub const fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::Unusable { .. } | Self::Lost { .. } | Self::Failed { .. } | Self::NotSaved { .. }
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => f.write_str("filter ready: the saved filter is used"),
            Self::Building => f.write_str(
                "there is no saved filter, building one; look-ups go to the data set until it is ready",
            ),
            Self::Unusable { why } => write!(
                f,
                "the saved filter is not used: {why}; building another one, look-ups go to the data set until it is ready"
            ),
            Self::Ready { keys, took } => write!(f, "filter ready: {} keys in {took:.1?}", Grouped(*keys)),
            Self::Lost { why, error } => {
                write!(f, "filter lost: {why}")?;
                if let Some(error) = error {
                    write!(f, " ({error})")?;
                }
                f.write_str(if why.is_final() {
                    "; this guard builds no other filter, look-ups go to the data set"
                } else {
                    "; look-ups go to the data set until another filter is ready"
                })
            }
            Self::ForeignWrite => f.write_str(
                "foreign write noticed: another program wrote to the data set, comparing all keys with the filter",
            ),
            Self::Renewing { why } => write!(
                f,
                "building the next filter: {why}; the current filter answers until it is ready"
            ),
            Self::Failed { error, wait } => {
                write!(f, "the filter was not built: {error}; next attempt in {wait:?}")
            }
            Self::NotSaved { error } => {
                write!(f, "the filter was not saved: {error}; the next start builds it again")
            }
        }
    }
}

impl fmt::Display for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "the false positive rate is too high",
            Self::Deletes => "too many of its keys were deleted from the data set",
            Self::ForeignWrites => "other programs wrote to the data set",
        })
    }
}

/// The function that receives events.
#[derive(Clone)]
pub(crate) struct Observer(pub(crate) Arc<dyn Fn(&Event) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_keys_have_separators() {
        for (keys, text) in [(0, "0"), (999, "999"), (31_000, "31,000"), (1_234_567, "1,234,567")] {
            let ready = Event::Ready { keys, took: Duration::ZERO }.to_string();
            assert!(ready.starts_with(&format!("filter ready: {text} keys in ")), "{ready}");
        }
    }
}
