//! The common parts of the shapes of all families: the error rate as a validated value, limits, and
//! the interface of every `Shape`.

use crate::error::InvalidShape;
use crate::parts::math::{exp, ln};
use core::fmt;

/// The value, or an early return with the error: a `?` for `const fn`.
macro_rules! ok {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(crate) use ok;

/// A false positive rate: the share of absent keys for which a filter may answer `true`.
///
/// Always above 0 and below 1, and at least [`Rate::MIN`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// The smallest rate that a filter may promise.
    pub const MIN: Self = Self(1e-15);

    /// Validates a rate.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::RateOutOfRange`] unless `0 < rate < 1`, which excludes NaN.
    /// [`InvalidShape::RateTooSmall`] below [`Rate::MIN`].
    pub const fn new(rate: f64) -> Result<Self, InvalidShape> {
        if rate > 0.0 && rate < 1.0 {
            if rate < Self::MIN.0 {
                return Err(InvalidShape::RateTooSmall { rate, min: Self::MIN.0 });
            }
            Ok(Self(rate))
        } else {
            Err(InvalidShape::RateOutOfRange { rate })
        }
    }

    /// The rate as a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The maximum number of bits of a filter: 32 TiB.
pub const MAX_BITS: u64 = 1 << 48;

/// The share of absent keys whose whole digest equals that of one of `items` keys. It assumes that
/// kernels use only 63 bits of a digest.
pub(crate) const fn digest_collisions(items: u64) -> f64 {
    items as f64 / (1_u64 << 63) as f64
}

/// Checks that digests of 64 bits can give this rate for this many items.
pub(crate) const fn rate_for(items: u64, rate: f64) -> Result<f64, InvalidShape> {
    let rate = ok!(Rate::new(rate)).get();
    let min = 2.0 * digest_collisions(items);
    if rate < min { Err(InvalidShape::RateTooSmall { rate, min }) } else { Ok(rate) }
}

/// Checks the number of bits of a filter.
pub(crate) const fn check_bits(bits: u64) -> Result<(), InvalidShape> {
    if bits > MAX_BITS { Err(InvalidShape::TooLarge { bits, max: MAX_BITS }) } else { Ok(()) }
}

/// Checks the number of bytes of a filter that needs at least `min` bytes.
pub(crate) const fn check_memory(bytes: u64, min: u64) -> Result<(), InvalidShape> {
    if bytes < min {
        return Err(InvalidShape::TooSmall { bytes, min });
    }
    check_bits(bytes.saturating_mul(8))
}

/// Bisects between a number that fails and a larger one that works: returns the smallest that
/// works, if all numbers above it work too. A macro, because a `const fn` cannot take a closure.
macro_rules! bisect {
    ($fails:expr, $works:expr, |$at:ident| $test:expr) => {{
        let (mut fails, mut works): (u64, u64) = ($fails, $works);
        while works > fails + 1 {
            let $at = fails + (works - fails) / 2;
            if $test {
                works = $at;
            } else {
                fails = $at;
            }
        }
        works
    }};
}
pub(crate) use bisect;

/// As [`bisect!`], but searches upwards from the number that fails in steps that double: faster if
/// the answer is near.
macro_rules! gallop {
    ($fails:expr, $works:expr, $step:expr, |$at:ident| $test:expr) => {{
        let (mut fails, mut works, mut step): (u64, u64, u64) = ($fails, $works, $step);
        while works > fails + 1 {
            let half = (works - fails) / 2;
            let $at = fails + if step < half { step } else { half };
            if $test {
                works = $at;
            } else {
                fails = $at;
                step = step.saturating_mul(2);
            }
        }
        works
    }};
}
pub(crate) use gallop;

/// Makes a getter for a field, of the same name and type, for each line.
macro_rules! getters {
    ($($(#[$attribute:meta])* $field:ident: $type:ty;)*) => {$(
        $(#[$attribute])*
        #[must_use]
        pub const fn $field(&self) -> $type {
            self.$field
        }
    )*};
}
pub(crate) use getters;

/// The interface of every shape, for code that is generic over families. Shapes have these
/// functions as inherent methods too, most of which work at compile time.
#[doc(hidden)]
pub trait Shape: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The name of the filter for everyday use.
    const NAME: &'static str;

    /// The smallest filter that holds `items` items at an error rate of at most `rate`.
    ///
    /// # Errors
    ///
    /// If there is no such filter.
    fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape>;

    /// The filter with the smallest error rate for `items` items in at most `bytes` bytes.
    ///
    /// # Errors
    ///
    /// If there is no such filter.
    fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape>;

    /// The planned number of items.
    fn items(&self) -> u64;

    /// The number of bits that keys are stored in.
    fn bits(&self) -> u64;

    /// The number of 64-bit words.
    fn words(&self) -> u64;

    /// The error rate with `items` different keys.
    fn expected_rate(&self, items: u64) -> f64;
}

/// The shape with the smallest rate, up to a millionth of it, that takes at most `bytes` bytes. For
/// families whose shapes are computed from a rate.
pub(crate) fn least_rate<S: Shape>(
    bytes: u64,
    plan: impl Fn(f64) -> Result<S, InvalidShape>,
) -> Result<S, InvalidShape> {
    check_memory(bytes, 0)?;
    let (mut low, mut high) = (Rate::MIN.0, 0.99);
    let mut best = plan(high)?;
    let min = best.words() * 8;
    if min > bytes {
        return Err(InvalidShape::TooSmall { bytes, min });
    }
    while high > low * (1.0 + 1e-6) {
        let rate = exp((ln(low) + ln(high)) / 2.0);
        match plan(rate) {
            Ok(shape) if shape.words() * 8 <= bytes => (best, high) = (shape, rate),
            _ => low = rate,
        }
    }
    Ok(best)
}

/// Adds the methods that follow from others to a shape, and implements [`Shape`] for it.
macro_rules! shape {
    ($shape:ty, $name:expr) => {
        $crate::sizing::shape!(impl[] $shape, $name);
    };
    (impl[$($generics:tt)*] $shape:ty, $name:expr) => {
        impl<$($generics)*> $shape {
            /// The memory of the words, in bytes.
            #[must_use]
            pub const fn bytes(&self) -> u64 {
                self.words() * 8
            }

            /// The memory of the words in bits per planned item; 0 if there are none.
            #[must_use]
            pub const fn bits_per_key(&self) -> f64 {
                let items = self.items();
                if items == 0 { 0.0 } else { self.words() as f64 * 64.0 / items as f64 }
            }
        }

        impl<$($generics)*> $crate::sizing::Shape for $shape {
            const NAME: &'static str = $name;

            fn for_rate(items: u64, rate: f64) -> Result<Self, $crate::InvalidShape> {
                Self::for_rate(items, rate)
            }

            fn for_memory(items: u64, bytes: u64) -> Result<Self, $crate::InvalidShape> {
                Self::for_memory(items, bytes)
            }

            fn items(&self) -> u64 {
                self.items()
            }

            fn bits(&self) -> u64 {
                self.bits()
            }

            fn words(&self) -> u64 {
                self.words()
            }

            fn expected_rate(&self, items: u64) -> f64 {
                self.expected_rate(items)
            }
        }
    };
}
pub(crate) use shape;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_are_none_are_refused() {
        for rate in [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Rate::new(rate).unwrap_err();
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{rate}: {error}");
        }
        for rate in [5e-324, 1e-80, 9.9e-16] {
            assert_eq!(
                Rate::new(rate),
                Err(InvalidShape::RateTooSmall { rate, min: Rate::MIN.get() })
            );
        }
        for rate in [1e-15, 0.01, 0.5, 0.999_999] {
            assert_eq!(Rate::new(rate).map(Rate::get), Ok(rate));
        }
    }
}
