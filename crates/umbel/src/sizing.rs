//! The error rate as a value that is known to be one.

use crate::error::InvalidShape;

/// An error rate: the share of absent keys that a filter may answer `true` for.
///
/// Always above 0 and below 1, and at least [`Rate::MIN`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// The smallest rate any filter promises.
    pub const MIN: Self = Self(1e-15);

    /// The rate, if it is one.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::RateOutOfRange`] unless `0 < rate < 1`, which NaN is not either;
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

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The most bits a filter may have: 32 TiB.
pub const MAX_BITS: u64 = 1 << 48;

/// The share of absent keys whose whole digest equals that of one of `items` keys, counting that
/// kernels may use 63 bits of it.
pub(crate) const fn digest_collisions(items: u64) -> f64 {
    items as f64 / (1_u64 << 63) as f64
}

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
