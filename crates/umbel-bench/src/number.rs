//! Parsing of counts and rates: `1e6`, `1_000_000`, `0.01`.

/// An integer of at least one, written plainly, with underscores, or as `1e6`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    if let Ok(count) = plain.parse::<u64>() {
        return if count > 0 { Ok(count) } else { Err(format!("{text} is not at least 1")) };
    }
    let value: f64 = plain.parse().map_err(|_| format!("{text} is not a number"))?;
    // Above 2^53 a float cannot represent every integer.
    if value < 1.0 || value.fract() != 0.0 || value > 9_007_199_254_740_992.0 {
        return Err(format!("{text} is not a whole number of at least 1"));
    }
    Ok(value as u64)
}

/// A false-positive rate between 0 and 1, exclusive.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err(format!("{text} is not a rate between 0 and 1")),
    }
}

/// `count` in the shortest form that says it exactly: 1000000 is `1e6`, 1500000 is `1.5e6`.
pub(crate) fn short(count: u64) -> String {
    if count < 1000 { count.to_string() } else { format!("{:e}", count as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_in_every_common_form() {
        for text in ["1000000", "1_000_000", "1e6", "1E6", "1.0e6", "10_0e4"] {
            assert_eq!(count(text), Ok(1_000_000), "{text}");
        }
        assert_eq!(count("1.5e3"), Ok(1_500));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn what_is_no_count_is_refused() {
        for text in ["", "0", "-1", "1.5", "1e-3", "1e30", "NaN", "inf", "many"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_lie_strictly_between_zero_and_one() {
        assert_eq!(rate("0.01"), Ok(0.01));
        assert_eq!(rate("1e-3"), Ok(0.001));
        for text in ["0", "1", "-0.1", "NaN", "1%"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn short_forms_are_exact() {
        assert_eq!(short(2_000), "2e3");
        assert_eq!(short(1_000_000), "1e6");
        assert_eq!(short(1_234_567), "1.234567e6");
        assert_eq!(short(999), "999");
    }
}
