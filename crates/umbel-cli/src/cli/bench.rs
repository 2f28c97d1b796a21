//! The arguments of `umbel bench`.

use super::{FamilyChoice, Form, HashChoice, Records};
use crate::amount;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
Every family is built from the different keys. Then keys that are in it and as many absent ones are looked up; hashing is timed apart.
Exit status: 0 if every rate is as planned, 1 if one is off by more than five standard deviations, 2 if something went wrong.

Example:
  umbel bench --family blocked,ribbon -p 1/256 domains.txt")]
pub(crate) struct Bench {
    /// Where keys come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Families to measure [default: all]
    #[arg(long, value_enum, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) family: Vec<FamilyChoice>,
    /// The false positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = amount::rate, default_value = "0.01")]
    pub(crate) rate: f64,
    /// How keys are hashed
    #[arg(long, value_enum, default_value = "portable")]
    pub(crate) hash: HashChoice,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) report: Form,
    #[command(flatten)]
    pub(crate) records: Records,
}
