//! The shape of a scalable filter: the capacity and the error rate of each level.

use crate::blocked;
use crate::error::InvalidShape;
use crate::parts::math::{ceil, powi};
use crate::sizing::{Rate, getters, least_rate, ok, shape};

/// The maximum number of levels of a filter. Every look-up of an absent key searches all levels.
pub const MAX_LEVELS: u32 = 64;

/// The default growth.
const GROWTH: f64 = 2.0;
/// The default tightening: of the usual values, it gives the smallest filters while they grow less
/// than a thousandfold.
const TIGHTENING: f64 = 0.85;
/// Keys have two lines in a level if one would cost more than this, in percent of space. It is more
/// than in a filter of one level: a look-up searches all levels, and half as many lines take half
/// the time.
const WORTH: u128 = 10;
/// The bytes of a line, which is the size of the smallest level.
const LINE: u64 = 64;

/// The shape of a scalable filter, computed before memory is allocated.
///
/// With c items, a rate p, a growth s and a tightening r, level i is planned for c s^i keys at a
/// rate of p (1 − r) r^i. The sum of all rates is p, for any number of levels.
///
/// ```
/// use umbel::scalable::Shape;
///
/// let shape = Shape::for_rate(1_000, 0.01)?;
/// assert_eq!((shape.growth(), shape.tightening()), (2.0, 0.85));
/// assert_eq!(shape.level_capacity(3), 8_000);
/// assert!(shape.compound_rate(1_000) < 0.01); // whatever comes
///
/// let fast = shape.with_growth(4.0)?; // half as many levels
/// assert_eq!(fast.level_capacity(3), 64_000);
/// assert!(shape.with_tightening(1.0).is_err());
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    items: u64,
    rate: f64,
    growth: f64,
    tightening: f64,
    /// The capacity of the first level, and its shape.
    first: u64,
    first_level: blocked::Shape,
}

impl Shape {
    /// A filter that starts with room for `items` keys and keeps an error rate of at most `rate`.
    /// Each level is twice as large as the previous one and has 0.85 times its error rate.
    ///
    /// If `items` is less than one line of 512 bits can hold, including 0, the first level is one
    /// line.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]), or the first level is not possible:
    /// [`level`](Self::level).
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::with(items, rate, GROWTH, TIGHTENING)
    }

    /// The filter with the smallest error rate that starts with room for `items` keys in a first
    /// level of at most `bytes` bytes.
    ///
    /// # Errors
    ///
    /// If there is no room for the items at any rate, or more than [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        least_rate(bytes, |rate| Self::for_rate(items, rate))
    }

    /// The same shape with another growth, above 1. A growth of 2 keeps the unused memory low. A
    /// growth of 4 is for sets that grow a thousandfold: half as many levels to search, at the same
    /// number of bits per key once they are full.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutsideOf`] unless `growth` is a finite number above 1.
    pub const fn with_growth(self, growth: f64) -> Result<Self, InvalidShape> {
        Self::with(self.items, self.rate, growth, self.tightening)
    }

    /// The same shape with another tightening, above 0 and below 1. A larger value makes the first
    /// levels larger and the later ones smaller.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutsideOf`] unless `tightening` is above 0 and below 1. Other variants if
    /// the first level is then not possible.
    pub const fn with_tightening(self, tightening: f64) -> Result<Self, InvalidShape> {
        Self::with(self.items, self.rate, self.growth, tightening)
    }

    /// With all four numbers.
    pub(super) const fn with(
        items: u64,
        rate: f64,
        growth: f64,
        tightening: f64,
    ) -> Result<Self, InvalidShape> {
        ok!(Rate::new(rate));
        ok!(InvalidShape::check_between("growth", growth, 1.0, f64::INFINITY));
        ok!(InvalidShape::check_between("tightening", tightening, 0.0, 1.0));
        let first_rate = rate * (1.0 - tightening);
        let line = ok!(blocked::Shape::for_budget(LINE, first_rate));
        let mut first = (line.items() as f64 * (1.0 - first_rate)) as u64;
        if first < items {
            first = items;
        }
        if first == 0 {
            first = 1;
        }
        let first_level = ok!(plan(items_for(first, first_rate), first_rate));
        Ok(Self { items, rate, growth, tightening, first, first_level })
    }

    getters! {
        /// The requested number of keys of the first level.
        items: u64;
    }

    /// The number of bits of the first level, which has room for all [`items`](Self::items).
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.first_level.bits()
    }

    /// The number of 64-bit words of the first level.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.first_level.words()
    }

    getters! {
        /// The error rate that is never exceeded.
        rate: f64;
        /// The size of each level divided by that of the previous one.
        growth: f64;
        /// The rate of each level divided by that of the previous one.
        tightening: f64;
    }

    /// How many new keys a level accepts, where the first level has number 0; `u64::MAX` if the
    /// number does not fit.
    #[must_use]
    pub const fn level_capacity(&self, level: u32) -> u64 {
        ceil(self.first as f64 * powi(self.growth, level))
    }

    /// The error rate of a level when it is full.
    #[must_use]
    pub const fn level_rate(&self, level: u32) -> f64 {
        self.rate * (1.0 - self.tightening) * powi(self.tightening, level)
    }

    /// The shape of a level.
    ///
    /// It is planned for a few more items than the level accepts. A key that is a false positive is
    /// not inserted, so the inserted keys set more bits than the same number of random keys: at
    /// most as many as `capacity / (1 - rate)` random keys.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfRange`] from number [`MAX_LEVELS`] on. [`InvalidShape::RateTooSmall`]
    /// or [`InvalidShape::TooLarge`] if a filter cannot have the rate or the size of this level.
    pub const fn level(&self, level: u32) -> Result<blocked::Shape, InvalidShape> {
        if level == 0 {
            return Ok(self.first_level);
        }
        plan(ok!(self.level_items(level)), self.level_rate(level))
    }

    /// The number of items that a level is planned for: see [`level`](Self::level).
    pub(super) const fn level_items(&self, level: u32) -> Result<u64, InvalidShape> {
        if level >= MAX_LEVELS {
            return Err(too_many_levels());
        }
        let rate = self.level_rate(level);
        // It may have become 0, which counts as too small and not as out of range.
        if rate < Rate::MIN.get() {
            return Err(InvalidShape::RateTooSmall { rate, min: Rate::MIN.get() });
        }
        Ok(items_for(self.level_capacity(level), rate))
    }

    /// The error rate after `items` different keys were inserted, in the number of levels that they
    /// need: all levels except the last are full.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        let (mut left, mut pass, mut number) = (items, 1.0, 0);
        while left > 0 {
            let Ok(level) = self.level(number) else { break };
            let capacity = self.level_capacity(number);
            let here = if left < capacity { left } else { capacity };
            pass *= 1.0 - level.expected_rate(here);
            (left, number) = (left - here, number + 1);
        }
        1.0 - pass
    }

    /// The compound error rate of the first `levels` levels when all are full: 1 − (1 −
    /// p<sub>0</sub>) (1 − p<sub>1</sub>) ..., always below [`rate`](Self::rate).
    #[must_use]
    pub const fn compound_rate(&self, levels: u32) -> f64 {
        let (mut rate, mut level) = (0.0, 0);
        // Later rates are too small to matter, and no filter has more levels.
        let levels = if levels < MAX_LEVELS { levels } else { MAX_LEVELS };
        while level < levels {
            // 1 - (1 - rate) (1 - next), without cancellation.
            let next = self.level_rate(level);
            rate += next - rate * next;
            level += 1;
        }
        rate
    }
}

shape!(Shape, "ScalableBloomFilter");

/// The error for a level beyond the maximum.
pub(super) const fn too_many_levels() -> InvalidShape {
    let max = MAX_LEVELS as u64;
    InvalidShape::OutOfRange { what: "levels", got: max + 1, min: 1, max }
}

/// The number of keys of which at most this many are new.
const fn items_for(fresh: u64, rate: f64) -> u64 {
    ceil(fresh as f64 / (1.0 - rate))
}

/// The shape of a level for this many items.
const fn plan(items: u64, rate: f64) -> Result<blocked::Shape, InvalidShape> {
    let one = blocked::Shape::for_rate_in_lines(items, rate, 1);
    let two = blocked::Shape::for_rate_in_lines(items, rate, 2);
    match (one, two) {
        (Ok(one), Ok(two)) => {
            let worth = one.lines() as u128 * 100 > two.lines() as u128 * (100 + WORTH);
            Ok(if worth { two } else { one })
        }
        (Err(_), Ok(two)) => Ok(two),
        (one, _) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growths_and_tightenings_that_are_none_are_refused() {
        let shape = Shape::for_rate(100, 0.01).unwrap();
        for growth in [1.0, 0.0, -2.0, 0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = shape.with_growth(growth).unwrap_err();
            assert!(
                matches!(error, InvalidShape::OutsideOf { what: "growth", .. }),
                "{growth}: {error}"
            );
        }
        for tightening in [0.0, -0.0, 1.0, 2.0, -0.5, f64::NAN, f64::INFINITY] {
            let error = shape.with_tightening(tightening).unwrap_err();
            assert!(
                matches!(error, InvalidShape::OutsideOf { what: "tightening", .. }),
                "{tightening}: {error}"
            );
        }
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            let error = Shape::for_rate(100, rate).unwrap_err();
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{rate}: {error}");
        }
    }

    #[test]
    fn the_compound_rate_stays_below_the_rate_for_ever() {
        for rate in [0.9, 0.5, 0.01, 1e-6] {
            for tightening in [0.001, 0.5, 0.85, 0.9, 0.999] {
                let shape = Shape::for_rate(1, rate).unwrap().with_tightening(tightening).unwrap();
                let mut before = 0.0;
                for levels in 1..=MAX_LEVELS {
                    let compound = shape.compound_rate(levels);
                    assert!(compound >= before && compound <= rate, "{shape:?} {levels}");
                    before = compound;
                }
                assert_eq!(shape.compound_rate(u32::MAX), before);
            }
        }
    }

    #[test]
    fn every_level_is_planned_for_its_keys_at_its_rate_up_to_a_limit() {
        for (capacity, rate) in [(0, 0.01), (1, 0.5), (1_000, 0.01), (1 << 40, 1e-3), (5, 1e-12)] {
            let shape = Shape::for_rate(capacity, rate).unwrap();
            assert!(shape.level_capacity(0) >= shape.items().max(1));
            let mut level = 0;
            let limit = loop {
                match shape.level(level) {
                    Ok(plan) => {
                        assert!(plan.items() >= shape.level_capacity(level));
                        assert!(plan.expected_rate(plan.items()) <= shape.level_rate(level));
                    }
                    Err(error) => break error,
                }
                level += 1;
            };
            assert!((1..=MAX_LEVELS).contains(&level), "{shape:?}: {level} levels");
            assert!(
                matches!(
                    limit,
                    InvalidShape::RateTooSmall { .. }
                        | InvalidShape::TooLarge { .. }
                        | InvalidShape::OutOfRange { what: "levels", .. }
                ),
                "{limit}"
            );
        }
        let slow = Shape::for_rate(1, 0.01).unwrap().with_growth(1.000_1).unwrap();
        assert!(slow.level(MAX_LEVELS - 1).is_ok());
        assert_eq!(slow.level(MAX_LEVELS), Err(too_many_levels()));
    }

    #[test]
    fn a_filter_that_grew_64_times_takes_at_most_17_and_a_half_bits_a_key() {
        for capacity in [1_000, 15_625, 1_000_000] {
            let shape = Shape::for_rate(capacity, 0.01).unwrap();
            let bits: u64 = (0..7).map(|level| shape.level(level).unwrap().bits()).sum();
            let keys: u64 = (0..7).map(|level| shape.level_capacity(level)).sum();
            assert!(bits as f64 <= 17.5 * keys as f64, "{}", bits as f64 / keys as f64);
        }
    }
}
