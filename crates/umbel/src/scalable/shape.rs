//! The plan of a scalable filter: what each level may hold, and how often it may be wrong.

use crate::blocked;
use crate::error::InvalidShape;
use crate::parts::math::{ceil, powi};
use crate::sizing::Rate;

/// The most levels a filter may have. Every look-up of an absent key goes through all of them.
pub const MAX_LEVELS: u32 = 64;

/// The growth that is taken unless another one is asked for.
const GROWTH: f64 = 2.0;
/// The tightening that is taken unless another one is asked for: of the usual ones the smallest
/// filters, as long as they grow less than a thousandfold.
const TIGHTENING: f64 = 0.85;
/// Keys have two lines in a level where one would cost more than this, in percent of space. More than
/// in a filter of one level: a look-up goes through all of them, and half as many lines are half the
/// time.
const WORTH: u128 = 10;
/// The bytes of a line, which is the smallest level.
const LINE: u64 = 64;

/// The plan of a scalable filter, before any memory exists.
///
/// With a capacity c, a rate p, a growth s and a tightening r, level i is planned for c s^i keys at
/// a rate of p (1 − r) r^i. The sum of all rates is p, however many levels there are.
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
    capacity: u64,
    rate: f64,
    growth: f64,
    tightening: f64,
    /// The capacity of the first level, and its plan.
    first: u64,
    first_level: blocked::Shape,
}

impl Shape {
    /// A filter that starts with room for `capacity` keys and keeps an error rate of at most `rate`,
    /// each level twice as large as the one before it and 0.85 times as often wrong.
    ///
    /// A capacity below what one line of 512 bits has room for, 0 included, counts as that.
    ///
    /// # Errors
    ///
    /// If `rate` is not one ([`Rate::new`]), or the first level cannot be planned:
    /// [`level`](Self::level).
    pub const fn for_rate(capacity: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::with(capacity, rate, GROWTH, TIGHTENING)
    }

    /// The same with another growth, above 1. 2 keeps the memory that is not used yet low; 4 is for
    /// sets that grow a thousandfold: half as many levels to look through, for as many bits a key
    /// once they are full.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::GrowthOutOfRange`] unless it is a finite number above 1.
    pub const fn with_growth(self, growth: f64) -> Result<Self, InvalidShape> {
        Self::with(self.capacity, self.rate, growth, self.tightening)
    }

    /// The same with another tightening, above 0 and below 1. A larger one makes the first levels
    /// larger and the later ones smaller.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::TighteningOutOfRange`] unless it is above 0 and below 1; or if the first
    /// level cannot be planned then.
    pub const fn with_tightening(self, tightening: f64) -> Result<Self, InvalidShape> {
        Self::with(self.capacity, self.rate, self.growth, tightening)
    }

    /// With all four numbers.
    pub(super) const fn with(
        capacity: u64,
        rate: f64,
        growth: f64,
        tightening: f64,
    ) -> Result<Self, InvalidShape> {
        if let Err(error) = Rate::new(rate) {
            return Err(error);
        }
        if !(growth > 1.0 && growth < f64::INFINITY) {
            return Err(InvalidShape::GrowthOutOfRange { growth });
        }
        if !(tightening > 0.0 && tightening < 1.0) {
            return Err(InvalidShape::TighteningOutOfRange { tightening });
        }
        let first_rate = rate * (1.0 - tightening);
        let line = match blocked::Shape::for_budget(LINE, first_rate) {
            Ok(line) => line,
            Err(error) => return Err(error),
        };
        let mut first = (line.items() as f64 * (1.0 - first_rate)) as u64;
        if first < capacity {
            first = capacity;
        }
        if first == 0 {
            first = 1;
        }
        match plan(items_for(first, first_rate), first_rate) {
            Ok(first_level) => Ok(Self { capacity, rate, growth, tightening, first, first_level }),
            Err(error) => Err(error),
        }
    }

    /// The number of keys it was asked to start with.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The error rate that is never exceeded.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// How much larger each level is than the one before it.
    #[must_use]
    pub const fn growth(&self) -> f64 {
        self.growth
    }

    /// The rate of each level over that of the one before it.
    #[must_use]
    pub const fn tightening(&self) -> f64 {
        self.tightening
    }

    /// How many fresh keys a level takes, the first one having number 0; `u64::MAX` where it is
    /// more.
    #[must_use]
    pub const fn level_capacity(&self, level: u32) -> u64 {
        ceil(self.first as f64 * powi(self.growth, level))
    }

    /// The error rate of a level when it is full.
    #[must_use]
    pub const fn level_rate(&self, level: u32) -> f64 {
        self.rate * (1.0 - self.tightening) * powi(self.tightening, level)
    }

    /// The plan of a level.
    ///
    /// It is for a few more items than the level takes. A key that the level mistakes for another
    /// one is not inserted, so that the keys that are set more bits than as many chosen by chance:
    /// at most as many as `capacity / (1 - rate)` of those.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::TooManyLevels`] from number [`MAX_LEVELS`] on;
    /// [`InvalidShape::RateTooSmall`] or [`InvalidShape::TooLarge`] where no filter can be as
    /// rarely wrong or as large as this level would have to be.
    pub const fn level(&self, level: u32) -> Result<blocked::Shape, InvalidShape> {
        if level == 0 {
            return Ok(self.first_level);
        }
        match self.level_items(level) {
            Ok(items) => plan(items, self.level_rate(level)),
            Err(error) => Err(error),
        }
    }

    /// The number of items that a level is planned for: see [`level`](Self::level).
    pub(super) const fn level_items(&self, level: u32) -> Result<u64, InvalidShape> {
        if level >= MAX_LEVELS {
            return Err(InvalidShape::TooManyLevels { max: MAX_LEVELS });
        }
        let rate = self.level_rate(level);
        // It may have become 0, which is too small and not out of range.
        if rate < Rate::MIN.get() {
            return Err(InvalidShape::RateTooSmall { rate, min: Rate::MIN.get() });
        }
        Ok(items_for(self.level_capacity(level), rate))
    }

    /// The error rate of so many levels together when all are full:
    /// 1 − (1 − p<sub>0</sub>) (1 − p<sub>1</sub>) ..., always below [`rate`](Self::rate).
    #[must_use]
    pub const fn compound_rate(&self, levels: u32) -> f64 {
        let (mut rate, mut level) = (0.0, 0);
        // Rates from here on are too small to be counted, and no filter has so many levels.
        let levels = if levels < MAX_LEVELS { levels } else { MAX_LEVELS };
        while level < levels {
            // As 1 - (1 - rate) (1 - next), without losing digits.
            let next = self.level_rate(level);
            rate += next - rate * next;
            level += 1;
        }
        rate
    }
}

/// The number of keys of which so many are fresh, at most.
const fn items_for(fresh: u64, rate: f64) -> u64 {
    ceil(fresh as f64 / (1.0 - rate))
}

/// The plan of a level for so many items.
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
            assert!(matches!(error, InvalidShape::GrowthOutOfRange { .. }), "{growth}: {error}");
        }
        for tightening in [0.0, -0.0, 1.0, 2.0, -0.5, f64::NAN, f64::INFINITY] {
            let error = shape.with_tightening(tightening).unwrap_err();
            assert!(
                matches!(error, InvalidShape::TighteningOutOfRange { .. }),
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
            assert!(shape.level_capacity(0) >= shape.capacity().max(1));
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
                        | InvalidShape::TooManyLevels { .. }
                ),
                "{limit}"
            );
        }
        let slow = Shape::for_rate(1, 0.01).unwrap().with_growth(1.000_1).unwrap();
        assert!(slow.level(MAX_LEVELS - 1).is_ok());
        assert_eq!(slow.level(MAX_LEVELS), Err(InvalidShape::TooManyLevels { max: MAX_LEVELS }));
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
