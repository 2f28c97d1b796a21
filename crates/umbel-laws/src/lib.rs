//! The contract of every filter, as functions that fail.
//!
//! A filter comes here as a [`Subject`]: something that is made for a capacity and a rate, and
//! takes keys by number. The laws know nothing else of it, so that a filter behind a network obeys
//! the same ones as one in an array. What a family claims beyond that it claims by implementing
//! [`Removes`], [`Unites`], [`Saves`], [`Batches`] or [`Forgets`].
//!
//! | law | says |
//! |---|---|
//! | [`no_false_negatives`] | what was inserted is found, always |
//! | [`rate_within`] | absent keys are found no more often than promised, and no less often than the fill says |
//! | [`remove_undoes_insert`] | removing gives back what inserting took, and takes nothing else |
//! | [`union_contains_both`] | a union finds what either side finds, and equals inserting both |
//! | [`a_batch_stops_at_the_first_key_without_room`] | a batch is its keys inserted one by one, up to the first that is refused |
//! | [`round_trips`] | bytes give back the same filter |
//! | [`survives_any_bytes`] | no bytes at all panic, and damaged ones are refused |
//! | [`refuses_incompatible`] | filters that do not fit are refused and left alone |
//! | [`keeps_the_window`] | what came lately is found, always |
//! | [`forgets_what_is_older`] | what is older than promised is as good as absent |
//! | [`finds_what_just_came`] | a filter that forgets does not forget the last key |
//! | [`settles_at_its_rate`] | a filter that forgets stays at the rate of its formula |
//! | [`every_key_gets_its_value`] | a map is right for the keys that it was built from |
//! | [`a_stranger_gets_each_value_at_chance`] | and tells nothing of other keys |
//!
//! Statistics have fixed seeds and five sigma on both sides, with no tolerance beside that. What chance
//! decided was decided when the seeds were chosen: a test that passed once passes again.

mod ageing;
mod batches;
mod bytes;
mod keys;
mod rate;
mod sets;
mod values;
mod window;

pub use ageing::{AgeingReport, AgeingTrial, Ages, finds_what_just_came, settles_at_its_rate};
pub use batches::{Batches, a_batch_stops_at_the_first_key_without_room};
pub use bytes::{round_trips, survives_any_bytes};
pub use keys::{Pattern, split_mix};
pub use rate::{RateReport, Trial, rate_within, sigmas};
pub use sets::{
    no_false_negatives, refuses_incompatible, remove_undoes_insert, union_contains_both,
};
pub use values::{Answers, a_stranger_gets_each_value_at_chance, every_key_gets_its_value};
pub use window::{Forgets, forgets_what_is_older, keeps_the_window};

/// A filter under the law.
pub trait Subject: Sized {
    /// How many times as often as it says a filter of a few keys finds absent ones. More than 1 where the
    /// positions of a key depend on each other, as with double hashing.
    const DEPENDENCE: f64 = 1.0;

    /// A filter for this capacity and rate; different seeds hash differently.
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self;

    /// Inserts the key with this number; `true` if it is certainly new.
    fn insert(&mut self, key: u64) -> bool;

    /// Whether the key with this number may have been inserted.
    fn contains(&self, key: u64) -> bool;

    /// The rate at which absent keys are found now, judged by what is in the filter.
    fn rate_now(&self) -> f64;
}

/// A subject that forgets on request.
pub trait Removes: Subject {
    /// Takes back one insertion; `false` if there can have been none.
    fn remove(&mut self, key: u64) -> bool;

    /// Whether two of one shape hold the same, or at least as much, as far as the subject can tell without
    /// looking keys up.
    fn holds_as_much(&self, other: &Self) -> bool;
}

/// A subject that can be united with another.
pub trait Unites: Subject {
    /// Takes in everything the other one has; what is wrong if that cannot be.
    ///
    /// # Errors
    ///
    /// If the two do not fit.
    fn unite(&mut self, other: &Self) -> Result<(), String>;

    /// Whether the two give the same answers to everything.
    fn same(&self, other: &Self) -> bool;
}

/// A subject that has a form in bytes.
pub trait Saves: Unites {
    /// Its bytes.
    fn save(&self) -> Vec<u8>;

    /// The filter with these bytes; what is wrong if there is none.
    ///
    /// # Errors
    ///
    /// If these are not the bytes of a filter.
    fn load(bytes: &[u8]) -> Result<Self, String>;
}
