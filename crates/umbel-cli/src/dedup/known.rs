//! What is known of the records so far: all keys, or a filter of them.

use super::plan::{Plan, RATE};
use super::risk::Planned;
use crate::exact::Exact;
use anyhow::Result;
use std::time::{SystemTime, UNIX_EPOCH};
use umbel::any::AnyFilter;
use umbel::hash::Digest;
use umbel::raw::Any;
use umbel::window::Window;

/// What is known.
pub(super) enum Known {
    Exact(Box<Exact>),
    Filter(Box<AnyFilter>),
    /// On a server, where others go on from the same state at the same time.
    #[cfg(feature = "redis")]
    Server(Box<crate::remote::Remote>),
}

impl Known {
    /// The false positive rate now.
    pub(super) fn rate(&self) -> f64 {
        match self {
            Self::Filter(filter) => filter.expected_rate(),
            Self::Exact(_) => 0.0,
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.rate(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Filter(filter) => filter.bytes(),
            Self::Exact(exact) => exact.bytes(),
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.shared().shape().bytes(),
        }
    }

    /// What it is planned for.
    pub(super) fn planned(&self) -> Planned {
        let blocked = |shape: &umbel::blocked::Shape| Planned {
            // In little memory there may be no room for a single key.
            rate: if shape.items() == 0 { RATE } else { shape.expected_rate(shape.items()) },
            items: Some(shape.items()),
            forgets: false,
        };
        match self {
            Self::Exact(_) => Planned::EXACT,
            #[cfg(feature = "redis")]
            Self::Server(remote) => blocked(remote.shared().shape()),
            Self::Filter(filter) => match Plan::of_filter(filter) {
                Some(Plan::Blocked(shape)) => blocked(&shape),
                Some(Plan::Scalable(shape)) => {
                    Planned { rate: shape.rate(), items: None, forgets: false }
                }
                Some(Plan::Window(shape)) => {
                    Planned { rate: shape.burst_rate(), items: None, forgets: true }
                }
                None => Planned { rate: RATE, items: None, forgets: false },
            },
        }
    }

    /// How many keys are in a filter, judged by its bits, and a little less than that: no filter seems to have more than it got.
    pub(super) fn held(&self) -> u64 {
        let least = |estimate: u64| estimate.saturating_sub(4 * estimate.isqrt());
        match self {
            Self::Exact(exact) => exact.len(),
            Self::Filter(filter) => match filter.raw() {
                Any::Blocked(filter) => least(filter.estimated_len()),
                _ => 0,
            },
            #[cfg(feature = "redis")]
            Self::Server(remote) => {
                remote.download().map_or(0, |filter| filter.estimated_len().map_or(0, least))
            }
        }
    }

    /// Whether a window of time has more lines than may come within it. Two windows of them may be there at a time, so this alone is no
    /// reason to complain.
    pub(super) fn is_crowded(&self) -> bool {
        let Self::Filter(filter) = self else { return false };
        let Any::Window(filter) = filter.raw() else { return false };
        let most = filter.shape().items();
        let is_timed = matches!(filter.shape().window(), Window::Time(_));
        is_timed && filter.estimated_len() > most.saturating_add(8 * most.isqrt() + 8)
    }

    /// Tells a window of time what time it is.
    pub(super) fn advance(&mut self) {
        if let Self::Filter(filter) = self
            && let Any::Window(filter) = filter.raw_mut()
            && matches!(filter.shape().window(), Window::Time(_))
            && let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH)
        {
            filter.advance(now);
        }
    }

    /// Inserts keys into a filter, and tells which of them were new.
    pub(super) fn insert(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<()> {
        match self {
            Self::Exact(_) => unreachable!("a set has longer digests"),
            Self::Filter(filter) => filter.insert_digests(digests, fresh).map_err(|error| {
                let few = "the filter cannot grow any more, because the system has no more memory to give";
                anyhow::Error::from(error).context(few)
            }),
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.insert(digests, fresh),
        }
    }
}
