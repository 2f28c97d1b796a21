//! The configuration: defaults of filters that are created without explicit parameters.
//!
//! With Redis 7 and Valkey these are options of `CONFIG`, as `bf.NAME`, and without the prefix in Redis 8. Any
//! engine accepts them as arguments of the module: `--loadmodule libumbel_module.so bf-initial-size 1000`.

use core::ffi::CStr;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// An integer setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in `CONFIG`.
    pub(crate) name: &'static CStr,
    /// The smallest and the largest value.
    pub(crate) range: (i64, i64),
    value: AtomicI64,
}

impl Setting {
    const fn new(name: &'static CStr, range: (i64, i64), default: i64) -> Self {
        Self { name, range, value: AtomicI64::new(default) }
    }

    pub(crate) fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The range that `CONFIG SET` accepts now. As in RedisBloom, the size of buckets and the initial size of
    /// cuckoo filters limit each other: a filter has at least two buckets.
    pub(crate) fn range_now(&self) -> (i64, i64) {
        let (least, most) = self.range;
        if core::ptr::eq(self, &CF_INITIAL_SIZE) {
            (least.max(CF_BUCKET_SIZE.get() * 2), most)
        } else if core::ptr::eq(self, &CF_BUCKET_SIZE) {
            (least, most.min(CF_INITIAL_SIZE.get() / 2))
        } else {
            (least, most)
        }
    }

    /// Returns `false` if the value is out of range.
    pub(crate) fn set(&self, value: i64) -> bool {
        let (least, most) = self.range;
        let fits = (least..=most).contains(&value);
        if fits {
            self.value.store(value, Ordering::Relaxed);
        }
        fits
    }
}

/// The largest capacity that a client can request.
pub(crate) const MAX_CAPACITY: i64 = 1 << 30;

/// The largest expansion that a client can request.
pub(crate) const MAX_EXPANSION: i64 = 32_768;

pub(crate) static BF_INITIAL_SIZE: Setting =
    Setting::new(c"bf-initial-size", (1, MAX_CAPACITY), 100);
pub(crate) static BF_EXPANSION_FACTOR: Setting =
    Setting::new(c"bf-expansion-factor", (0, MAX_EXPANSION), 2);
pub(crate) static CF_BUCKET_SIZE: Setting = Setting::new(c"cf-bucket-size", (1, 255), 2);
pub(crate) static CF_INITIAL_SIZE: Setting =
    Setting::new(c"cf-initial-size", (2, MAX_CAPACITY), 1024);
pub(crate) static CF_MAX_ITERATIONS: Setting = Setting::new(c"cf-max-iterations", (1, 65_535), 20);
pub(crate) static CF_EXPANSION_FACTOR: Setting =
    Setting::new(c"cf-expansion-factor", (0, MAX_EXPANSION), 1);
pub(crate) static CF_MAX_EXPANSIONS: Setting = Setting::new(c"cf-max-expansions", (1, 65_536), 32);

/// Our own: the maximum work of a batch of a cuckoo filter, as a number of moved fingerprints; 0 means no
/// limit. A million moves take about a tenth of a second, in which the server answers no other client.
pub(crate) static CF_MAX_MOVES: Setting = Setting::new(c"cf-max-moves", (0, 1 << 40), 1 << 20);

/// All integer settings.
pub(crate) static NUMBERS: [&Setting; 8] = [
    &BF_INITIAL_SIZE,
    &BF_EXPANSION_FACTOR,
    &CF_BUCKET_SIZE,
    &CF_INITIAL_SIZE,
    &CF_MAX_ITERATIONS,
    &CF_EXPANSION_FACTOR,
    &CF_MAX_EXPANSIONS,
    &CF_MAX_MOVES,
];

/// The name of the error rate in `CONFIG`.
pub(crate) const BF_ERROR_RATE: &CStr = c"bf-error-rate";

static ERROR_RATE: AtomicU64 = AtomicU64::new(0.01_f64.to_bits());

/// The default error rate of new filters.
pub(crate) fn error_rate() -> f64 {
    f64::from_bits(ERROR_RATE.load(Ordering::Relaxed))
}

/// Returns `false` if the rate is not above 0 and below 1. A rate above a quarter becomes a quarter, as
/// everywhere.
pub(crate) fn set_error_rate(rate: f64) -> bool {
    let fits = rate > 0.0 && rate < 1.0;
    if fits {
        ERROR_RATE.store(rate.min(crate::bloom::MAX_RATE).to_bits(), Ordering::Relaxed);
    }
    fits
}

/// Changes a setting by any of its names: that of `CONFIG`, with or without `bf.`, or that of RedisBloom's
/// arguments. Returns `false` if the name or the value is invalid.
pub(crate) fn set_by_name(name: &[u8], value: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix(b"bf.").unwrap_or(&name);
    let name: &[u8] = match name {
        b"error_rate" => b"bf-error-rate",
        b"initial_size" => b"bf-initial-size",
        b"cf_max_expansions" => b"cf-max-expansions",
        name => name,
    };
    let Ok(text) = core::str::from_utf8(value) else { return false };
    if name == BF_ERROR_RATE.to_bytes() {
        return text.parse().is_ok_and(set_error_rate);
    }
    let setting = NUMBERS.iter().find(|setting| setting.name.to_bytes() == name);
    setting.is_some_and(|setting| text.parse().is_ok_and(|value| setting.set(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_several_names_and_keep_their_ranges() {
        assert!(set_by_name(b"CF_MAX_EXPANSIONS", b"33") && CF_MAX_EXPANSIONS.get() == 33);
        assert!(set_by_name(b"cf-max-expansions", b"34") && CF_MAX_EXPANSIONS.get() == 34);
        assert!(set_by_name(b"bf.cf-max-expansions", b"32") && CF_MAX_EXPANSIONS.get() == 32);
        for wrong in ["0", "65537", "-1", "x", "", "1.5"] {
            assert!(!set_by_name(b"cf-max-expansions", wrong.as_bytes()), "{wrong}");
        }
        assert!(!set_by_name(b"no-such-setting", b"1"));
        assert!(!set_by_name(b"ERROR_RATE", b"1") && !set_by_name(b"ERROR_RATE", b"nan"));
        assert!(set_by_name(b"ERROR_RATE", b"0.5") && error_rate() == 0.25);
        assert!(set_by_name(b"bf-error-rate", b"0.01") && error_rate() == 0.01);
    }
}
