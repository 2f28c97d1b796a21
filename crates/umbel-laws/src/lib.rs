//! The contract of every filter, as functions that panic if it is violated.
//!
//! A filter is tested as a [`Subject`]: it is created for a capacity and a rate, and its keys are numbers. The
//! laws use nothing else, so a filter behind a network obeys the same laws as one in an array. A family makes
//! further guarantees by implementing [`Removes`], [`Unites`], [`Saves`], [`Batches`] or [`Forgets`].
//!
//! | law | says |
//! |---|---|
//! | [`no_false_negatives`] | an inserted key is always found |
//! | [`rate_within`] | the false positive rate is at most the promised one, and matches the fill |
//! | [`remove_undoes_insert`] | removing undoes an insertion, and affects no other key |
//! | [`union_contains_both`] | a union finds what either side finds, and equals inserting both |
//! | [`a_batch_stops_at_the_first_key_without_room`] | a batch is its keys inserted one by one, up to the first that is refused |
//! | [`round_trips`] | a loaded filter equals the saved one |
//! | [`survives_any_bytes`] | no bytes cause a panic, and damaged ones are refused |
//! | [`refuses_incompatible`] | incompatible filters are refused and unchanged |
//! | [`keeps_the_window`] | a key inside the window is always found |
//! | [`forgets_what_is_older`] | a key older than the promised window is found only as a false positive |
//! | [`finds_what_just_came`] | a filter that forgets does not forget the last key |
//! | [`settles_at_its_rate`] | a filter that forgets stays at the rate of its formula |
//! | [`every_key_gets_its_value`] | a map returns the right value for the keys that it was built from |
//! | [`a_stranger_gets_each_value_at_chance`] | a map returns each value with the same probability for other keys |
//!
//! Statistical tests have fixed seeds and five sigma on both sides, without any other tolerance. Chance was
//! decided when the seeds were chosen: a test that passed once passes again.

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

/// A filter under test.
pub trait Subject: Sized {
    /// The ratio of the false positive rate of a filter of a few keys to the reported one. It is above 1 where
    /// the positions of a key depend on each other, as with double hashing.
    const DEPENDENCE: f64 = 1.0;

    /// Creates a filter for this capacity and rate. Different seeds hash differently.
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self;

    /// Inserts the key with this number. Returns `true` if it is certainly new.
    fn insert(&mut self, key: u64) -> bool;

    /// Whether the key with this number may have been inserted.
    fn contains(&self, key: u64) -> bool;

    /// The current false positive rate, computed from the content of the filter.
    fn rate_now(&self) -> f64;
}

/// A subject with deletion.
pub trait Removes: Subject {
    /// Undoes one insertion. Returns `false` if there was certainly none.
    fn remove(&mut self, key: u64) -> bool;

    /// Whether two subjects of one shape have the same content, or at least the same amount, as far as the
    /// subject can tell without looking up keys.
    fn holds_as_much(&self, other: &Self) -> bool;
}

/// A subject with unions.
pub trait Unites: Subject {
    /// Adds all keys of the other one. The error describes why that is not possible.
    ///
    /// # Errors
    ///
    /// If the two are incompatible.
    fn unite(&mut self, other: &Self) -> Result<(), String>;

    /// Whether the two give the same answers to all look-ups.
    fn same(&self, other: &Self) -> bool;
}

/// A subject that can be saved as bytes.
pub trait Saves: Unites {
    /// Its bytes.
    fn save(&self) -> Vec<u8>;

    /// Loads a filter from these bytes. The error describes what is wrong.
    ///
    /// # Errors
    ///
    /// If these are not the bytes of a filter.
    fn load(bytes: &[u8]) -> Result<Self, String>;
}
