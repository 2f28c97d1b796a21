//! The machine of the measurements. The numbers mean little on another one.

use crate::{clock, path};
use serde::Serialize;
use std::{
    fs,
    thread::available_parallelism,
    time::{SystemTime, UNIX_EPOCH},
};

/// The machine, the compiler and the day.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    date: String,
    rustc: &'static str,
    target: &'static str,
    /// Target features the program was compiled with.
    target_features: Vec<&'static str>,
    /// Features of this CPU that filters may detect at run time.
    detected_features: Vec<&'static str>,
    /// The code path that our filters choose.
    path: String,
    opt_level: &'static str,
    clock: &'static str,
}

impl Machine {
    /// The facts, with `date` or today's.
    pub(crate) fn new(date: Option<String>) -> Self {
        Self {
            cpu: cpu_model().unwrap_or_else(|| "unknown".into()),
            cores: available_parallelism().map_or(1, usize::from),
            date: date.unwrap_or_else(today),
            rustc: env!("UMBEL_BENCH_RUSTC"),
            target: env!("UMBEL_BENCH_TARGET"),
            target_features: env!("UMBEL_BENCH_FEATURES").split(',').collect(),
            detected_features: detected_features(),
            path: path::name(umbel::simd::path()),
            opt_level: env!("UMBEL_BENCH_OPT_LEVEL"),
            clock: clock::CLOCK,
        }
    }

    /// The facts, as two lines of text.
    pub(crate) fn summary(&self) -> String {
        let Self { cpu, cores, date, rustc, target, path, opt_level, clock, .. } = self;
        format!(
            "{cpu}, {cores} cores, our path {path}, {date}\n{rustc}, {target} with {}, opt-level {opt_level}, {clock}",
            self.target_features.join(" "),
        )
    }
}

fn cpu_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

fn detected_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let all = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let all: [(&'static str, bool); 0] = [];
    all.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
}

fn today() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(elapsed.as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of the day that is `days` after 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Howard Hinnant's civil_from_days, "chrono-Compatible Low-Level Date Algorithms": years start
    // in March, and an era is 400 of them.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_453), (2025, 12, 31));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }

    #[test]
    fn a_given_date_is_kept() {
        let machine = Machine::new(Some("2026-11-15".into()));
        assert!(machine.summary().contains("2026-11-15"));
    }
}
