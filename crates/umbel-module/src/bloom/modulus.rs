//! Remainders without a division.
//!
//! `x mod m` for any 64-bit `x` and one `m`: with R = floor((2^64 - 1) / m), the product x · R / 2^64 is at
//! most one below x / m. So one multiplication gives the quotient or its predecessor, and one subtraction
//! corrects it.

/// A divisor for computing remainders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modulus {
    by: u64,
    reciprocal: u64,
}

impl Modulus {
    /// `by` must be from 2 to 2^63.
    pub(super) const fn new(by: u64) -> Self {
        debug_assert!(by >= 2 && by <= 1 << 63);
        Self { by, reciprocal: u64::MAX / by }
    }

    /// `x mod by`.
    #[inline(always)]
    pub(super) const fn of(self, x: u64) -> u64 {
        let quotient = ((x as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = x.wrapping_sub(quotient.wrapping_mul(self.by));
        if rest >= self.by { rest - self.by } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_equal_those_of_divisions() {
        let mut moduli = vec![2, 3, 8, 64, 1152, 11_027_776, u64::from(u32::MAX), 1 << 62, 1 << 63];
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 32
        };
        moduli.extend((0..200).map(|shift| (random() >> (1 + shift % 62)).max(2)));
        for by in moduli {
            let modulus = Modulus::new(by);
            let corners = [0, 1, by - 1, by, by + 1, u64::MAX, u64::MAX - 1, u64::MAX / by * by];
            for x in corners.into_iter().chain((0..2_000).map(|_| random())) {
                assert_eq!(modulus.of(x), x % by, "{x} mod {by}");
            }
            let last = u64::MAX / by * by;
            assert_eq!(modulus.of(last.wrapping_sub(1)), last.wrapping_sub(1) % by);
        }
    }
}
