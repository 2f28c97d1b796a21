//! Numbers in arguments and in answers.

/// A whole number as engines take it: no sign but a minus, no zeros in front.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && text != b"-0";
    let text = core::str::from_utf8(text).ok().filter(|_| plain)?;
    text.parse().ok()
}

/// A number that may have a fraction or an exponent. Not a number is none.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    let number: f64 = core::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Six significant digits, as C prints `%g`.
pub(super) fn general(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    let trim = |digits: String| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits
        }
    };
    if (-4..6).contains(&exponent) {
        return trim(format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa.to_owned()), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_engines() {
        for (text, value) in [("0", Some(0)), ("-7", Some(-7)), ("1073741824", Some(1 << 30))] {
            assert_eq!(integer(text.as_bytes()), value);
        }
        for text in ["", "-", "+1", "01", "-0", "1.0", " 1", "1 ", "x", "9223372036854775808"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
        assert_eq!((double(b"1e-3"), double(b"nan"), double(b"")), (Some(0.001), None, None));
    }

    #[test]
    fn general_prints_as_c_does() {
        let cases = [
            (0.005, "0.005"),
            (0.0025, "0.0025"),
            (0.00015625, "0.00015625"),
            (0.0000078125, "7.8125e-06"),
            (0.25, "0.25"),
            (1e-300, "1e-300"),
            (123_456_789.0, "1.23457e+08"),
            (0.1234567, "0.123457"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value), text);
        }
    }
}
