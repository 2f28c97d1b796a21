//! The clock: CPU time of this process where available, wall time elsewhere.
//!
//! CPU time excludes the time when another program had the core. It includes every thread of the process, so it
//! counts the helper threads of a peer's build. Measurements *of* threads use wall time instead, see
//! [`threads`](crate::threads).

/// The name of the clock behind [`time`], for reports.
pub(crate) const CLOCK: &str = if cfg!(unix) { "process CPU time" } else { "wall time" };

/// Runs `work`; returns the nanoseconds it took, and its result.
#[inline]
pub(crate) fn time<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = nanos();
    let result = work();
    (nanos() - start, result)
}

#[cfg(unix)]
fn nanos() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

#[cfg(not(unix))]
fn nanos() -> f64 {
    use std::{sync::OnceLock, time::Instant};
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let work = || (0..2_000_000u64).fold(0, |sum, i| std::hint::black_box(sum ^ i));
        assert!(time(work).0 > 0.0);
    }
}
