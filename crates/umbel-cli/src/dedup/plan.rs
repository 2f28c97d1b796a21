//! The filter that the arguments ask for.

use crate::amount::{Span, show_bytes, show_count, show_rate};
use crate::cli::Dedup;
use crate::making;
use anyhow::{Error, Result, bail};
use umbel::any::{AnyFilter, AnyHasher};
use umbel::raw::Any;
use umbel::{BlockedBloomFilter, InvalidShape, ScalableBloomFilter, WindowBloomFilter};
use umbel::{blocked, scalable, window};

/// The false positive rate unless another one is asked for.
pub(super) const RATE: f64 = 1e-6;
/// The keys that a filter which grows begins with.
pub(super) const FIRST: u64 = 1 << 20;

/// The filter that the arguments ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    Scalable(scalable::Shape),
    Blocked(blocked::Shape),
    Window(window::Shape),
}

impl Plan {
    pub(super) fn of(args: &Dedup) -> Result<Self> {
        let rate = args.size.rate.unwrap_or(RATE);
        let told = |error| told(error, args.size.capacity, rate);
        if let Some(span) = args.window {
            let shape = match (span, args.size.capacity) {
                (Span::Records(records), None) => {
                    window::Shape::for_rate(records, rate).map_err(told)?
                }
                (Span::Records(_), Some(_)) => bail!("a window of records has its size already"),
                (Span::Time(_), None) => {
                    bail!("a window of time takes -n, the most lines that come in such a time")
                }
                (Span::Time(time), Some(capacity)) => {
                    window::Shape::for_time(time, capacity, rate).map_err(told)?
                }
            };
            match args.size.memory {
                Some(memory) if shape.bytes() > memory => bail!(
                    "the window takes {}, more than {}",
                    show_bytes(shape.bytes()),
                    show_bytes(memory)
                ),
                _ => return Ok(Self::Window(shape)),
            }
        }
        let shape = match (args.size.capacity, args.size.memory) {
            (None, None) => {
                return Ok(Self::Scalable(scalable::Shape::for_rate(FIRST, rate).map_err(told)?));
            }
            (Some(capacity), None) => blocked::Shape::for_rate(capacity, rate).map_err(told)?,
            (None, Some(memory)) => blocked::Shape::for_budget(memory, rate).map_err(told)?,
            (Some(capacity), Some(memory)) => {
                let shape = blocked::Shape::for_memory(capacity, memory).map_err(told)?;
                let got = shape.expected_rate(capacity);
                if got > rate {
                    let default = if args.size.rate.is_none() { ", the default of -p" } else { "" };
                    // Of a filter that takes most new lines for repeated ones there is no use.
                    let accept = match got < 0.5 {
                        true => format!(", or accept this rate with -p {}", rounded_up(got)),
                        false => String::new(),
                    };
                    bail!(
                        "--memory {} is too little for {} different lines at a false positive rate of {}{default}: the rate would be {}; \
                         use a larger --memory or a smaller -n{accept}",
                        show_bytes(memory),
                        show_count(capacity),
                        show_rate(rate),
                        show_rate(got),
                    );
                }
                shape
            }
        };
        Ok(Self::Blocked(shape))
    }

    /// The plan of a filter, if it is one that `dedup` makes.
    pub(super) fn of_filter(filter: &AnyFilter) -> Option<Self> {
        match filter.raw() {
            Any::Scalable(filter) => Some(Self::Scalable(*filter.shape())),
            Any::Blocked(filter) => Some(Self::Blocked(*filter.shape())),
            Any::Window(filter) => Some(Self::Window(*filter.shape())),
            _ => None,
        }
    }

    /// An empty filter.
    pub(super) fn filter(&self, hasher: AnyHasher) -> Result<AnyFilter> {
        let (items, rate) = match self {
            Self::Scalable(shape) => (shape.items(), shape.rate()),
            Self::Blocked(shape) => (shape.items(), shape.expected_rate(shape.items())),
            Self::Window(shape) => (shape.items(), shape.burst_rate()),
        };
        let filter = match *self {
            Self::Scalable(shape) => ScalableBloomFilter::with(shape, hasher).map(AnyFilter::from),
            Self::Blocked(shape) => BlockedBloomFilter::with(shape, hasher).map(AnyFilter::from),
            Self::Window(shape) => WindowBloomFilter::with(shape, hasher).map(AnyFilter::from),
        };
        filter.map_err(|error| told(error, Some(items), rate))
    }
}

/// A rate of two digits that is no lower than this one, as `-p` takes it.
fn rounded_up(rate: f64) -> String {
    let exponent = rate.log10().floor() as i32 - 1;
    let digits = (rate / 10_f64.powi(exponent)).ceil();
    format!("{:.1e}", digits * 10_f64.powi(exponent))
}

/// What cannot be, in words of the command line.
pub(super) fn told(error: InvalidShape, items: Option<u64>, rate: f64) -> Error {
    let lines = match items {
        Some(items) => format!("{} different lines", show_count(items)),
        None => "so many lines".to_owned(),
    };
    making::told(error, &lines, rate)
}
