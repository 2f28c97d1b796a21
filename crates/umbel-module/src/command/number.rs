//! Numbers in arguments and in replies.

/// An integer in the form that engines accept: no sign but a minus, and no leading zeros.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && text != b"-0";
    let text = core::str::from_utf8(text).ok().filter(|_| plain)?;
    text.parse().ok()
}

/// A number that may have a fraction or an exponent, as C's `strtod` reads it, including hexadecimal digits and
/// infinity. `None` for a number that is too large or too small for a double, and for "not a number".
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    let text = core::str::from_utf8(text).ok()?;
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if digits.starts_with(['-', '+']) {
        return None;
    }
    if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return hexadecimal(digits.as_bytes()).map(|number| sign * number);
    }
    let number: f64 = digits.parse().ok()?;
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let vanished = number == 0.0 && mantissa.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    let overflowed =
        number.is_infinite() && digits.starts_with(|first| first != 'i' && first != 'I');
    (!number.is_nan() && !vanished && !overflowed).then_some(sign * number)
}

/// Hexadecimal digits with at most one point, and an optional binary exponent.
fn hexadecimal(digits: &[u8]) -> Option<f64> {
    let end = digits.iter().position(|byte| matches!(byte, b'p' | b'P')).unwrap_or(digits.len());
    let (mut mantissa, mut exponent) = (0_u64, 0_i64);
    let (mut any, mut point) = (false, false);
    for byte in &digits[..end] {
        if *byte == b'.' && !point {
            point = true;
            continue;
        }
        let digit = u64::from((*byte as char).to_digit(16)?);
        any = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if point { 4 } else { 0 };
        } else {
            // Digits beyond the sixteenth only affect the rounding.
            mantissa |= u64::from(digit > 0);
            exponent += if point { 0 } else { 4 };
        }
    }
    if !any {
        return None;
    }
    if let Some(power) = digits.get(end + 1..) {
        let power = core::str::from_utf8(power).ok()?;
        let plain = power.strip_prefix(['-', '+']).unwrap_or(power);
        if plain.is_empty() || !plain.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let limit = if power.starts_with('-') { -100_000 } else { 100_000 };
        exponent += power.parse::<i64>().unwrap_or(limit).clamp(-100_000, 100_000);
    }
    // In two steps, because the power alone may be too large or too small for a double.
    let half = (exponent / 2).clamp(-1_100, 1_100) as i32;
    let rest = (exponent - exponent / 2).clamp(-1_100, 1_100) as i32;
    let number = mantissa as f64 * 2_f64.powi(half) * 2_f64.powi(rest);
    (number.is_finite() && (number > 0.0 || mantissa == 0)).then_some(number)
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
    }

    #[test]
    fn doubles_are_those_of_strtod() {
        let cases = [
            ("1e-3", 0.001),
            ("0x1p-3", 0.125),
            ("0X.8", 0.5),
            ("-0x1.8P+1", -3.0),
            ("0x10", 16.0),
            ("0x123456789abcdef01", 20_988_295_479_420_645_377_f64),
            ("+.5", 0.5),
            ("1.", 1.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0e-999", 0.0),
            ("0x0p-9999", 0.0),
            ("5e-324", 5e-324),
            ("0x1p-1074", 5e-324),
        ];
        for (text, value) in cases {
            assert_eq!(double(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "+",
            "nan",
            "-nan",
            "1e",
            "1e-400",
            "1e400",
            "-1e400",
            " 1",
            "1 ",
            "0x",
            "0x.",
            "0x1p",
            "0x1p-9999",
            "0x1p9999",
            "0x1.2.3",
            "--1",
            "+-1",
            "1_0",
            "abc",
            "0x1g",
        ] {
            assert_eq!(double(text.as_bytes()), None, "{text}");
        }
        assert_eq!(double(b"\xff"), None);
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
