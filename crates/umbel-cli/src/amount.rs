//! Numbers as people write them: `10M`, `1 GiB`, `1e6`, `1,000`; `1%`, `1/1000`; `10m`.
//!
//! The case of a unit makes no difference, with one exception: in a window, `m` is minutes and `M` is million. Where no time can be meant,
//! in counts and sizes, `m` is mega as `M` is.

use std::time::Duration;
use umbel::internal::Grouped;

/// A number of things: `1000`, `1_000`, `1,000`, `1e6`, `10M`, `10m`. Letters are powers of a thousand.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let times: f64 = match &*unit.to_ascii_lowercase() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        _ => return Err("not a number such as 1000, 1e6 or 10M".into()),
    };
    whole(number, times)
}

/// A number of bytes: `1000`, `512M`, `1g`, `1GiB`, `1GB`. A letter alone is a power of 1024, as for `sort`, and so is `GiB`;
/// `GB` is a power of 1000.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let times: f64 = match &*unit.to_ascii_lowercase() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024_f64.powi(2),
        "g" | "gib" => 1024_f64.powi(3),
        "t" | "tib" => 1024_f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err("not a size such as 100000, 512M or 1GiB".into()),
    };
    whole(number, times)
}

/// A rate: `0.01`, `1e-6`, `1%`, `1/1000`, `1 in 1,000`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = |text: &str| ungrouped(text.trim())?.parse::<f64>().ok();
    let fraction = text.split_once('/').or_else(|| text.split_once(" in "));
    let rate = match (fraction, text.strip_suffix('%')) {
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
    let error = || "not a time such as 30s or 10m".to_owned();
    let number = ungrouped(number).and_then(|number| number.parse::<f64>().ok());
    let time = Duration::try_from_secs_f64(number.ok_or_else(error)? * seconds);
    time.map(Span::Time).map_err(|_| error())
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
    let (number, unit) = text.split_at(end.map_or(0, |last| last + 1));
    (number, unit.trim())
}

/// The number without what stands between groups of digits: `_` anywhere, and commas before three digits each. `1,5` is refused: where
/// a comma is the decimal mark it is not fifteen.
fn ungrouped(number: &str) -> Option<String> {
    let digits: String = number.chars().filter(|letter| *letter != '_').collect();
    let Some((first, rest)) = digits.split_once(',') else { return Some(digits) };
    // Behind the groups there may be a fraction or an exponent.
    let (groups, more) = rest.split_at(rest.find(['.', 'e', 'E']).unwrap_or(rest.len()));
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let right = matches!(first.len(), 1..=3)
        && is_number(first)
        && groups.split(',').all(|group| group.len() == 3 && is_number(group));
    right.then(|| format!("{first}{}{more}", groups.replace(',', "")))
}

fn whole(number: &str, times: f64) -> Result<u64, String> {
    let digits = ungrouped(number).ok_or("a comma stands before three digits, as in 1,000")?;
    if times == 1.0
        && let Ok(number) = digits.parse()
    {
        return Ok(number);
    }
    let error = || format!("{number:?} is not a number");
    let number: f64 = digits.parse().map_err(|_| error())?;
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
    if unit == 0 { show_things(bytes, "byte") } else { format!("{number:.1} {}", units[unit]) }
}

/// A whole number with a comma every three digits.
pub(crate) fn show_count(number: u64) -> String {
    Grouped(number).to_string()
}

/// So many of something that has a plural with s.
pub(crate) fn show_things(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", show_count(number), if number == 1 { "" } else { "s" })
}

/// The smallest rate that is shown in percent: 0.01 %.
const PERCENT: f64 = 1e-4;

/// A rate for people: in percent down to 0.01 %, and below that as `9.5e-7`, which `-p` takes back.
pub(crate) fn show_rate(rate: f64) -> String {
    if rate >= PERCENT { percent(rate) } else { scientific(rate) }
}

fn percent(rate: f64) -> String {
    match rate * 100.0 {
        0.0 => "0".to_owned(),
        rate if rate < 0.0995 => format!("{rate:.3} %"),
        rate if rate < 9.995 => format!("{rate:.2} %"),
        rate if rate < 99.95 => format!("{rate:.1} %"),
        rate => format!("{rate:.0} %"),
    }
}

fn scientific(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { format!("{rate:.1e}") }
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
            ("1,000", 1_000),
            ("12,345,678", 12_345_678),
            ("1,500k", 1_500_000),
            ("1,234.5k", 1_234_500),
            ("1e6", 1_000_000),
            ("1.5e3", 1_500),
            ("10M", 10_000_000),
            ("10m", 10_000_000),
            ("10 M", 10_000_000),
            ("10k", 10_000),
            ("10K", 10_000),
            ("1g", 1_000_000_000),
            ("2.5k", 2_500),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "1e30", "10Mi", "ten", "1e-3", "NaN", "inf"]
            .into_iter()
            .chain(["1,5", "1,00", "1,0000", ",100", "1234,567", "1,,000", "1,000,", "1,1e2"])
        {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024_unless_they_say_otherwise() {
        for (text, number) in
            [("512M", 512 << 20), ("1GiB", 1 << 30), ("1GB", 1_000_000_000), ("100", 100)]
        {
            assert_eq!(bytes(text), Ok(number), "{text}");
            assert_eq!(bytes(&text.to_ascii_lowercase()), Ok(number), "{text}");
        }
        for (text, number) in [
            ("1g", 1 << 30),
            ("2 GiB", 2 << 30),
            ("10K", 10 << 10),
            ("1e6", 1_000_000),
            ("1_000", 1_000),
            ("1,000", 1_000),
            ("64b", 64),
        ] {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        assert!(bytes("10 apples").is_err() && bytes("").is_err() && bytes("1,5g").is_err());
    }

    #[test]
    fn rates_are_shares_percents_and_fractions() {
        for (text, number) in [
            ("0.01", 0.01),
            ("1e-6", 1e-6),
            ("1%", 0.01),
            ("1 %", 0.01),
            ("1/1000", 0.001),
            ("1/1,000", 0.001),
            ("1 in 1,000", 0.001),
        ] {
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
        assert_eq!(span("1,000"), Ok(Span::Records(1_000)));
        assert_eq!(span("10K"), Ok(Span::Records(10_000)));
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
        assert_eq!(show_bytes(1), "1 byte");
        assert_eq!(show_bytes(1_023), "1,023 bytes");
        assert_eq!(show_bytes(1 << 20), "1.0 MiB");
    }

    #[test]
    fn rates_are_percents_down_to_a_hundredth_of_one() {
        for (number, text) in [
            (1.0, "100 %"),
            (0.999_99, "100 %"),
            (0.527_8, "52.8 %"),
            (0.099_99, "10.0 %"),
            (0.01, "1.00 %"),
            (0.009_766, "0.98 %"),
            (1e-4, "0.010 %"),
            (1.5e-4, "0.015 %"),
            (9.9e-4, "0.099 %"),
            (1e-3, "0.10 %"),
            (9.07e-5, "9.1e-5"),
            (1e-6, "1.0e-6"),
            (3.4e-38, "3.4e-38"),
            (0.0, "0"),
        ] {
            assert_eq!(show_rate(number), text);
            // What is shown can be asked for.
            assert!(
                rate(text).is_ok_and(|rate| (rate / number - 1.0).abs() < 0.07)
                    || matches!(text, "0" | "100 %")
            );
        }
    }
}
