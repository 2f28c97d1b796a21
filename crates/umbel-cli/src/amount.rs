//! Numbers as people write them: `10M`, `1GiB`, `1e6`; `1%`, `1/1000`; `10m`.

use std::time::Duration;

/// A number of things: `1000`, `1_000`, `1e6`, `10M`. Letters are powers of a thousand.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let times: f64 = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return Err("not a number such as 1000, 1e6 or 10M".into()),
    };
    whole(number, times)
}

/// A number of bytes: `1000`, `512M`, `1GiB`, `1GB`. Letters are powers of 1024, as for `sort`, unless `B`
/// stands behind them alone.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let times: f64 = match unit {
        "" | "B" => 1.0,
        "k" | "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1024_f64.powi(2),
        "G" | "GiB" => 1024_f64.powi(3),
        "T" | "TiB" => 1024_f64.powi(4),
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return Err("not a size such as 100000, 512M or 1GiB".into()),
    };
    whole(number, times)
}

/// A share: `0.01`, `1e-6`, `1%`, `1/1000`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let rate = match (text.split_once('/'), text.strip_suffix('%')) {
        (Some((above, below)), _) => number(above).zip(number(below)).map(|(a, b)| a / b),
        (None, Some(percent)) => number(percent).map(|percent| percent / 100.0),
        (None, None) => number(text),
    };
    match rate {
        Some(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        Some(_) => Err("a rate is above 0 and below 1".into()),
        None => Err("not a rate such as 0.01, 1e-6, 1% or 1/1000".into()),
    }
}

/// How far back a window goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Span {
    Records(u64),
    Time(Duration),
}

/// A window: a number of records, or a time such as `500ms`, `30s`, `10m`, `2h`, `7d`.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => {
            let error = "not a window such as 100000, 1e6, 10M, 30s, 10m, 2h or 7d";
            return count(text).map(Span::Records).map_err(|_| error.into());
        }
    };
    let number: f64 = number.parse().map_err(|_| "not a time such as 30s or 10m".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds);
    time.map(Span::Time).map_err(|_| "not a time such as 30s or 10m".into())
}

/// A time such as `500ms`, `30s`, `10m`.
#[cfg(feature = "guard")]
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match span(text) {
        Ok(Span::Time(time)) if time > Duration::ZERO => Ok(time),
        _ => Err("not a time such as 500ms, 30s or 10m".into()),
    }
}

/// The number, and the letters behind it.
fn split(text: &str) -> (&str, &str) {
    // The e of 1e6 is no unit: digits follow it.
    let end = text.rfind(|letter: char| letter.is_ascii_digit() || letter == '.');
    text.split_at(end.map_or(0, |last| last + 1))
}

fn whole(number: &str, times: f64) -> Result<u64, String> {
    let digits: String = number.chars().filter(|letter| *letter != '_').collect();
    if times == 1.0
        && let Ok(number) = digits.parse()
    {
        return Ok(number);
    }
    let number: f64 = digits.parse().map_err(|_| format!("{number:?} is not a number"))?;
    let all = number * times;
    // Beyond 2^53 a sum of powers of ten is not exact, and nobody means it.
    if (0.0..=9e15).contains(&all) && all.fract() == 0.0 {
        Ok(all as u64)
    } else {
        Err("not a whole number, or too large".into())
    }
}

/// Bytes for people.
pub(crate) fn show_bytes(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut number = bytes as f64;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{number:.1} {}", units[unit]) }
}

/// A whole number with a comma every three digits.
pub(crate) fn show_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something that has a plural with s.
pub(crate) fn show_things(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", show_count(number), if number == 1 { "" } else { "s" })
}

/// A rate for people: in percent, or one in how many.
pub(crate) fn show_rate(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate >= 0.001 => format!("{:.3}%", rate * 100.0),
        rate if rate >= 1e-12 => format!("1 in {}", show_count((1.0 / rate).round() as u64)),
        rate => format!("{rate:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_powers_of_a_thousand() {
        for (text, number) in [
            ("0", 0),
            ("17", 17),
            ("1_000", 1_000),
            ("1e6", 1_000_000),
            ("1.5e3", 1_500),
            ("10M", 10_000_000),
            ("2.5k", 2_500),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "1e30", "10Mi", "ten", "1e-3", "NaN", "inf"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024_unless_they_say_otherwise() {
        for (text, number) in
            [("512M", 512 << 20), ("1GiB", 1 << 30), ("1GB", 1_000_000_000), ("100", 100)]
        {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        assert!(bytes("10 apples").is_err() && bytes("").is_err());
    }

    #[test]
    fn rates_are_shares_percents_and_fractions() {
        for (text, number) in [("0.01", 0.01), ("1e-6", 1e-6), ("1%", 0.01), ("1/1000", 0.001)] {
            assert_eq!(rate(text), Ok(number), "{text}");
        }
        for text in ["0", "1", "100%", "-1", "2", "NaN", "1/0", "", "%", "/"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn windows_are_records_or_times() {
        assert_eq!(span("10M"), Ok(Span::Records(10_000_000)));
        assert_eq!(span("10m"), Ok(Span::Time(Duration::from_secs(600))));
        assert_eq!(span("500ms"), Ok(Span::Time(Duration::from_millis(500))));
        assert_eq!(span("1.5h"), Ok(Span::Time(Duration::from_secs(5_400))));
        assert!(span("-3s").is_err() && span("soon").is_err() && span("1e300d").is_err());
    }

    #[test]
    #[cfg(feature = "guard")]
    fn times_have_a_unit() {
        assert_eq!(time("30s"), Ok(Duration::from_secs(30)));
        assert!(["30", "0s", "-1s", "", "s"].iter().all(|text| time(text).is_err()));
    }

    #[test]
    fn numbers_are_shown_as_people_read_them() {
        assert_eq!(show_count(0), "0");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_things(1, "key"), "1 key");
        assert_eq!(show_things(1_000, "key"), "1,000 keys");
        assert_eq!(show_bytes(1_023), "1023 bytes");
        assert_eq!(show_bytes(1 << 20), "1.0 MiB");
        assert_eq!(show_rate(0.01), "1.000%");
        assert_eq!(show_rate(1e-6), "1 in 1,000,000");
        assert_eq!(show_rate(3.4e-38), "3e-38");
    }
}
