//! Logarithm and exponential as `const fn`.
//!
//! Sizing must give the same result at compile time, at run time and on every platform. So it uses
//! only additions, multiplications and divisions, which IEEE 754 specifies to the last bit. Errors
//! stay below 4 units in the last place over the ranges that sizing uses.

use core::f64::consts::{LN_2, SQRT_2};

/// The natural logarithm of a positive, finite, normal number.
pub(crate) const fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    // The significand, moved into [1, 2), then into [1/sqrt 2, sqrt 2).
    let mut significand = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if significand > SQRT_2 {
        significand /= 2.0;
        exponent += 1;
    }
    exponent as f64 * LN_2 + ln_1p(significand - 1.0)
}

/// `ln(1 + x)` without cancellation, for `-0.3 < x < 0.42`.
pub(crate) const fn ln_1p(x: f64) -> f64 {
    // ln((1 + s) / (1 - s)) = 2 (s + s^3/3 + s^5/5 + ...), with s at most 0.18 in size.
    let s = x / (2.0 + x);
    let square = s * s;
    let mut sum = 0.0;
    let mut odd = 27;
    while odd >= 1 {
        sum = sum * square + 1.0 / odd as f64;
        odd -= 2;
    }
    2.0 * s * sum
}

/// `ln(1 + x)` without cancellation, for any `x` from above -1 to 0.
pub(crate) const fn ln_1p_wide(x: f64) -> f64 {
    if x >= -0.25 { ln_1p(x) } else { ln(1.0 + x) }
}

/// `e^x`; 0 where the result is below the normal numbers, infinite above the largest.
pub(crate) const fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    // x = n ln 2 + r, with ln 2 in two parts so that r keeps its last bits.
    const LN_2_HIGH: f64 = f64::from_bits(LN_2.to_bits() & !0xffff_ffff);
    const LN_2_LOW: f64 = 4.749_325_039_031_672_6e-7;
    let n = (x / LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    let r = (x - n as f64 * LN_2_HIGH) - n as f64 * LN_2_LOW;
    (1.0 + taylor(r)) * f64::from_bits(((1023 + n) as u64) << 52)
}

/// `e^x - 1` without cancellation.
pub(crate) const fn exp_m1(x: f64) -> f64 {
    if -0.35 < x && x < 0.35 { taylor(x) } else { exp(x) - 1.0 }
}

/// `e^r - 1` by its Taylor series, for `|r| < 0.36`.
const fn taylor(r: f64) -> f64 {
    let mut sum = 0.0;
    let mut n = 16;
    while n >= 1 {
        sum = (sum + 1.0) * r / n as f64;
        n -= 1;
    }
    sum
}

/// `x^n` by squaring.
pub(crate) const fn powi(x: f64, n: u32) -> f64 {
    let (mut base, mut n, mut result) = (x, n, 1.0);
    while n > 0 {
        if n & 1 == 1 {
            result *= base;
        }
        base *= base;
        n >>= 1;
    }
    result
}

/// The smallest integer not below a non-negative `x`; `u64::MAX` where it does not fit.
pub(crate) const fn ceil(x: f64) -> u64 {
    let whole = x as u64;
    if (whole as f64) < x { whole.saturating_add(1) } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(got: f64, expected: f64, x: f64) {
        let error = ((got - expected) / expected).abs();
        assert!(error < 1e-15 || got == expected, "{x}: got {got}, expected {expected}");
    }

    #[test]
    fn logarithm_and_exponential_agree_with_the_standard_library() {
        for step in 1..20_000 {
            let x = f64::from(step) * 0.037;
            assert_close(ln(x), x.ln(), x);
            assert_close(ln(1.0 / x), (1.0 / x).ln(), x);
            assert_close(exp(x % 700.0), (x % 700.0).exp(), x);
            assert_close(exp(-x % 700.0), (-x % 700.0).exp(), x);
            assert_close(exp_m1(-x / 500.0), (-x / 500.0).exp_m1(), x);
            assert_close(ln_1p(-1.0 / (4.0 + x)), (-1.0 / (4.0 + x)).ln_1p(), x);
        }
        for exponent in 1..60 {
            let tiny = -1.0 / (1_u64 << exponent) as f64;
            if exponent > 1 {
                assert_close(ln_1p(tiny), tiny.ln_1p(), tiny);
            }
            assert_close(exp_m1(tiny), tiny.exp_m1(), tiny);
        }
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
        assert_close(ln(1e-300), 1e-300_f64.ln(), 1e-300);
    }

    #[test]
    fn powers_and_ceilings_are_exact_on_integers() {
        assert_eq!(powi(3.0, 20), 3_486_784_401.0);
        assert_eq!(powi(0.5, 0), 1.0);
        assert_eq!((ceil(0.0), ceil(2.0), ceil(2.000_1)), (0, 2, 3));
        assert_eq!(ceil(1e300), u64::MAX);
    }
}
