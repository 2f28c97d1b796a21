//! How large a filter is: the arguments of every verb that plans one.

use crate::amount;
use clap::Args;

/// How many keys, how often wrong, in how much memory.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Size")]
pub(crate) struct Size {
    /// How many different keys there will be, such as 1000000, 1e6, 1,000,000, 10k or 10M; m is million too
    #[arg(short = 'n', long, value_name = "N", value_parser = amount::count)]
    pub(crate) capacity: Option<u64>,
    /// The false positive rate, such as 0.01, 1% or 1/1000
    #[arg(short = 'p', long, value_name = "RATE", value_parser = amount::rate)]
    pub(crate) rate: Option<f64>,
    /// How much memory the filter may take, such as 512M, 1g or 1GiB (powers of 1024) or 1GB (of 1000)
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    pub(crate) memory: Option<u64>,
}

impl Size {
    /// Whether anything of it was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.capacity.is_some() || self.rate.is_some() || self.memory.is_some()
    }
}

/// The rate of a filter unless another one is asked for.
pub(crate) const RATE: f64 = 0.01;
