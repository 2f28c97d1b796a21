//! A lower bound of how many keys a table accepts before it refuses one.
//!
//! Two things make a table refuse a key before all slots are taken. In a large table the search for
//! an empty slot fails near a load factor of 0.975, with a deviation that decreases with the square
//! root of the number of slots. In a small table, or with short fingerprints, nine keys share two
//! buckets, which have eight slots. This module bounds both at a probability of [`REFUSAL`]. The
//! tests fill a thousand tables of many shapes, and `docs/decisions.md` has the worst of some
//! million small ones.
//!
//! No search and no choice of sums helps nine keys that share their buckets and fingerprint. With F
//! fingerprints there are F / 2 places per bucket, each with two buckets, and keys fall into all
//! places with equal probability. At a load factor of 0.96 each place has 7.68 / F keys on average,
//! and the number of places with nine keys is
//!
//! | fingerprints | places of nine in 1e5 slots | 1e6 | 1e7 |
//! |---|---|---|---|
//! | 4 bits | 0.0008 | 0.008 | 0.08 |
//! | 5 bits | 0.000003 | 0.00003 | 0.0003 |
//!
//! A probability below one in three million therefore excludes tables of 4 bits with such a load
//! factor: their guaranteed load factor is 0.38 for 1e5 slots, 0.29 for 1e6 and 0.23 for 1e7.
//! [`Shape::for_rate`](super::Shape::for_rate) uses longer fingerprints instead, which take less
//! space in total.

use super::table::{sum, sum_mask};
use crate::parts::buckets::SLOTS;
use crate::parts::math::{ceil, exp, ln, powi};

/// The largest probability that a table refuses a key before it holds its guaranteed number: five
/// sigma.
const REFUSAL: f64 = 2.9e-7;

/// The highest guaranteed load factor. Tables reach 0.97 and more, but each further key takes
/// longer to insert.
const MOST: f64 = 0.945;

/// Where searches fail: this share of the slots, minus this multiple of the square root of their
/// number.
const SEARCHED: f64 = 0.975;
const SPREAD: f64 = 1.8;

/// The widest fingerprints whose sums are counted one by one.
const COUNTED: u32 = 6;

/// The factor by which the sums of longer fingerprints may coincide more often than on average.
const UNLUCKY: f64 = 2.0;

/// How many different keys fit into `buckets` buckets of fingerprints of `width` bits.
pub(super) const fn room(buckets: u64, width: u32) -> u64 {
    // This many fit even if all have the same buckets: two, or one that is the same twice.
    let always = if buckets & 1 == 1 { SLOTS } else { 2 * SLOTS };
    let slots = (buckets * SLOTS) as f64;
    let searched = slots * SEARCHED - SPREAD * exp(ln(slots) / 2.0);
    let most = if searched < slots * MOST { searched } else { slots * MOST };
    if most <= always as f64 {
        return always;
    }
    let crowd = Crowd::new(buckets, width);
    let (mut fits, mut high) = (always, most as u64 + 1);
    while fits + 1 < high {
        let items = fits + (high - fits) / 2;
        if crowd.chance(items) <= REFUSAL {
            fits = items;
        } else {
            high = items;
        }
    }
    fits
}

/// An estimate of the smallest number of buckets with room for this many keys, without trying all
/// numbers.
pub(super) const fn buckets_for(items: u64, width: u32) -> u64 {
    if items <= 2 * SLOTS {
        return if items <= SLOTS { 1 } else { 2 };
    }
    let mut high = even(ceil(items as f64 / (SLOTS as f64 * MOST)));
    let mut low = 0;
    while room(high, width) < items {
        low = high;
        high *= 2;
    }
    while low > 0 && low + 2 < high {
        let buckets = even((high - low) / 2) + low;
        if room(buckets, width) < items {
            low = buckets;
        } else {
            high = buckets;
        }
    }
    high
}

/// The next even number: with an odd number of buckets, some keys have the same bucket twice.
pub(super) const fn even(buckets: u64) -> u64 {
    buckets + (buckets & 1)
}

/// The probabilities that keys crowd in buckets without room for them.
struct Crowd {
    /// That nine given keys have no room together, and that five given keys have none.
    nine: f64,
    five: f64,
}

impl Crowd {
    const fn new(buckets: u64, width: u32) -> Self {
        let (m, fingerprints) = (buckets as f64, ((1_u64 << width) - 1) as f64);
        // A sum determines which two buckets belong together. All sums are odd.
        let sums = (sum_mask(buckets) / 2 + 1) as f64;
        let same = if width <= COUNTED {
            same_sums(buckets, width)
        } else {
            UNLUCKY * mean_same_sums(sums, fingerprints)
        };
        // The first bucket of each of the eight others must be one of the two buckets of the first
        // key.
        let nine = powi(2.0 / m, 8) * same;
        // If both buckets of a key are the same bucket, five keys are too many.
        let alone = powi(1.0 / m, 5) * powi(1.0 / sums + 4.0 / fingerprints, 4);
        Self { nine, five: if buckets & 1 == 0 { 0.0 } else { alone } }
    }

    /// For this many keys: a union bound over all sets of nine, and of five.
    const fn chance(&self, items: u64) -> f64 {
        subsets(items, 9) * self.nine + subsets(items, 5) * self.five
    }
}

/// The number of subsets of size `of` among `items`.
const fn subsets(items: u64, of: u32) -> f64 {
    let (mut sets, mut number) = (1.0, 0);
    while number < of {
        sets *= (items as f64 - number as f64) / (number + 1) as f64;
        number += 1;
    }
    sets
}

/// The probability that nine fingerprints have the same sum.
const fn same_sums(buckets: u64, width: u32) -> f64 {
    let (fingerprints, mask) = ((1_u64 << width) - 1, sum_mask(buckets));
    let (mut chance, mut one) = (0.0, 1);
    while one <= fingerprints {
        let (mut same, mut other) = (0, 1);
        while other <= fingerprints {
            same += (sum(mask, one) == sum(mask, other)) as u32;
            other += 1;
        }
        chance += powi(same as f64 / fingerprints as f64, 8);
        one += 1;
    }
    chance / fingerprints as f64
}

/// The mean of this probability over all distributions of the fingerprints over `sums` sums, by the
/// number of different fingerprints among the nine.
const fn mean_same_sums(sums: f64, fingerprints: f64) -> f64 {
    /// In how many ways nine things form 1, 2, .. groups: Stirling numbers of the second kind.
    const GROUPS: [u32; 9] = [1, 255, 3_025, 7_770, 6_951, 2_646, 462, 36, 1];
    let (mut chance, mut different, mut group) = (0.0, 1.0, 0);
    while group < 9 {
        different *= (fingerprints - group as f64) / fingerprints;
        let rest = powi(1.0 / fingerprints, 8 - group as u32) * powi(1.0 / sums, group as u32);
        chance += GROUPS[group] as f64 * different * rest;
        group += 1;
    }
    chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_nine_are_all_ways_to_be_the_same() {
        // With a single sum, all are the same, whatever the fingerprints are.
        for fingerprints in [9.0, 15.0, 127.0, 1e6] {
            assert!((mean_same_sums(1.0, fingerprints) - 1.0).abs() < 1e-9, "{fingerprints}");
        }
        // With a single fingerprint too.
        assert!((mean_same_sums(1e9, 1.0) - 1.0).abs() < 1e-9);
        assert_eq!((subsets(9, 9), subsets(12, 9), subsets(5, 5)), (1.0, 220.0, 1.0));
        assert_eq!((same_sums(1, 4), same_sums(2, 6)), (1.0, 1.0));
    }

    /// The value that is counted for short fingerprints is not above the one that is estimated for
    /// longer ones. In small tables sums are spread more evenly than at random.
    #[test]
    fn sums_are_the_same_as_often_as_chance_has_it() {
        for buckets in [1_000, 25_000, 1 << 20] {
            let sums = (sum_mask(buckets) / 2 + 1) as f64;
            let ratio = same_sums(buckets, 7) / mean_same_sums(sums, 127.0);
            assert!((0.01..UNLUCKY).contains(&ratio), "{buckets} buckets: {ratio}");
        }
    }

    #[test]
    fn tables_that_cannot_refuse_are_promised_to_the_last_slot() {
        assert_eq!([room(1, 4), room(2, 4), room(2, 32), room(4, 10)], [4, 8, 8, 8]);
        assert_eq!([0, 1, 4, 5, 8].map(|items| buckets_for(items, 10)), [1, 1, 1, 2, 2]);
    }

    #[test]
    fn the_buckets_for_so_many_keys_have_room_for_them() {
        for width in [4, 5, 7, 10, 32] {
            for items in (0..300).chain([1_000, 12_345, 100_000, 10_000_000]) {
                let buckets = buckets_for(items, width);
                assert!(room(buckets, width) >= items, "{items} keys of {width} bits");
                let fewer = buckets.saturating_sub(2).max(1);
                assert!(buckets <= 2 || room(fewer, width) < items, "{items} keys of {width} bits");
            }
        }
    }
}
