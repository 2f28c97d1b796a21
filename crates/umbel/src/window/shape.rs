//! The shape of a window filter: the number and size of its epochs, and the number of probes.

use crate::blocked;
use crate::error::InvalidShape;
use crate::sizing::{Rate, check_bits, getters, least_rate, ok, shape};
use core::time::Duration;

/// The maximum number of epochs of a filter. Every look-up searches all of them.
pub const MAX_EPOCHS: u32 = 64;

/// The default number of epochs: the number that gives the smallest filters, or is within 1 % of
/// them, from 10 % to one in a million.
pub(super) const EPOCHS: usize = 5;
/// Windows whose epochs have at most this many lines are also planned with fewer epochs, because
/// rounding to whole lines then matters.
const FEW_LINES: u64 = 16;
/// The maximum number of steps in which the epoch that is being filled is evaluated.
const STEPS: u64 = 8;
/// The longest time: 146 years.
const MAX_TIME: Duration = Duration::from_nanos(u64::MAX / 4);

/// The length of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// This many insertions, including those of keys that are already stored.
    Insertions(u64),
    /// This much time, by the clock of the caller.
    Time(Duration),
}

/// The shape of a window filter, computed before memory is allocated.
///
/// ```
/// use core::time::Duration;
/// use umbel::window::{Shape, Window};
///
/// let shape = Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!(shape.window(), Window::Insertions(1_000_000));
/// assert_eq!(shape.longest(), Window::Insertions(1_250_000)); // and then a key is gone
/// assert!(shape.bits() < 17_500_000);
/// assert!(shape.expected_rate(1_000_000) <= 0.01);
///
/// let minute = Shape::for_time(Duration::from_secs(60), 1_000_000, 0.01)?;
/// assert_eq!(minute.longest(), Window::Time(Duration::from_secs(75)));
/// assert!(minute.burst_rate() <= 0.01); // all 1,000,000 may come in one second
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    window: Window,
    capacity: u64,
    epochs: u32,
    /// The shape of one epoch, for the insertions of a turn, with one line per key.
    epoch: blocked::Shape,
}

impl Shape {
    /// A filter of the last `window` insertions, at an error rate of at most `rate`. A window of 0
    /// is treated as 1.
    ///
    /// It has five epochs, or fewer if the window is so small that this takes less memory.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]), is too small for digests of 64 bits, or the filter
    /// would have more than [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub const fn for_rate(window: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::smallest(Window::Insertions(window), window, rate)
    }

    /// A filter of the last `window` insertions with the smallest error rate in at most `bytes` bytes.
    ///
    /// # Errors
    ///
    /// If there is no room for the window at any rate, or more than [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub fn for_memory(window: u64, bytes: u64) -> Result<Self, InvalidShape> {
        least_rate(bytes, |rate| Self::for_rate(window, rate))
    }

    /// As [`for_rate`](Self::for_rate), with the given number of epochs: a key stays for at
    /// most 1 + 1 / (`epochs` − 1) windows.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate), or if there are fewer than two epochs, or more than
    /// [`MAX_EPOCHS`].
    pub const fn for_rate_in_epochs(
        window: u64,
        rate: f64,
        epochs: u32,
    ) -> Result<Self, InvalidShape> {
        Self::in_epochs(Window::Insertions(window), window, rate, epochs)
    }

    /// A filter of the last `window` of time, at an error rate of at most `rate` while there are at
    /// most `capacity` insertions in any window. They may come in bursts, all at once, or spread
    /// over the window.
    ///
    /// It has five epochs. Each one has room for all `capacity` insertions, since a burst fills a
    /// single epoch. At 1 % that takes 3.5 times the space of a window of `capacity` insertions.
    /// Fewer epochs take less space, and keys stay longer
    /// ([`for_time_in_epochs`](Self::for_time_in_epochs)).
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate), or [`InvalidShape::OutsideOf`] if the time is zero or
    /// more than 146 years.
    pub const fn for_time(
        window: Duration,
        capacity: u64,
        rate: f64,
    ) -> Result<Self, InvalidShape> {
        Self::for_time_in_epochs(window, capacity, rate, EPOCHS as u32)
    }

    /// As [`for_time`](Self::for_time), with the given number of epochs: a key stays for at
    /// most 1 + 1 / (`epochs` − 1) windows.
    ///
    /// # Errors
    ///
    /// As [`for_time`](Self::for_time), or if there are fewer than two epochs, or more than
    /// [`MAX_EPOCHS`].
    pub const fn for_time_in_epochs(
        window: Duration,
        capacity: u64,
        rate: f64,
        epochs: u32,
    ) -> Result<Self, InvalidShape> {
        ok!(check_plan(rate, epochs));
        let epoch = ok!(plan_for_bursts(turn(capacity, 2), rate));
        // Files store the capacity, from which a reader derives the insertions of a turn.
        let turn = turn(capacity, epochs);
        let epoch = ok!(blocked::Shape::with(turn, epoch.lines(), 1, epoch.probes()));
        Self::of(Window::Time(window), capacity, epochs, epoch)
    }

    /// A filter of the last `window` of time, at an error rate of at most `rate` while there are at
    /// most `capacity` insertions in any window **and they are spread evenly**: each turn has at
    /// most its proportional share. It takes the same space as a window of `capacity` insertions. A
    /// burst of `capacity` insertions raises its rate to [`burst_rate`](Self::burst_rate).
    ///
    /// # Errors
    ///
    /// As [`for_time`](Self::for_time).
    pub const fn for_even_time(
        window: Duration,
        capacity: u64,
        rate: f64,
    ) -> Result<Self, InvalidShape> {
        Self::smallest(Window::Time(window), capacity, rate)
    }

    /// As [`for_even_time`](Self::for_even_time), with the given number of epochs.
    ///
    /// # Errors
    ///
    /// As [`for_time_in_epochs`](Self::for_time_in_epochs).
    pub const fn for_even_time_in_epochs(
        window: Duration,
        capacity: u64,
        rate: f64,
        epochs: u32,
    ) -> Result<Self, InvalidShape> {
        Self::in_epochs(Window::Time(window), capacity, rate, epochs)
    }

    const fn smallest(window: Window, capacity: u64, rate: f64) -> Result<Self, InvalidShape> {
        let mut best = ok!(Self::in_epochs(window, capacity, rate, EPOCHS as u32));
        let mut epochs = EPOCHS as u32;
        while epochs > 2 && best.epoch.lines() <= FEW_LINES {
            epochs -= 1;
            if let Ok(fewer) = Self::in_epochs(window, capacity, rate, epochs)
                && fewer.bits() < best.bits()
            {
                best = fewer;
            }
        }
        Ok(best)
    }

    const fn in_epochs(
        window: Window,
        capacity: u64,
        rate: f64,
        epochs: u32,
    ) -> Result<Self, InvalidShape> {
        ok!(check_plan(rate, epochs));
        let epoch = ok!(plan(turn(capacity, epochs), rate, epochs));
        Self::of(window, capacity, epochs, epoch)
    }

    /// The shape with these epochs.
    pub(super) const fn of(
        window: Window,
        capacity: u64,
        epochs: u32,
        epoch: blocked::Shape,
    ) -> Result<Self, InvalidShape> {
        ok!(check_epochs(epochs));
        if let Window::Time(time) = window
            && (time.is_zero() || time.as_nanos() > MAX_TIME.as_nanos())
        {
            return Err(time_out_of_range(time));
        }
        ok!(check_bits(epoch.bits().saturating_mul(epochs as u64)));
        Ok(Self { window, capacity, epochs, epoch })
    }

    getters! {
        /// The guaranteed window.
        window: Window;
    }

    /// The maximum age at which a key can still be found because it was inserted: one turn more
    /// than the window, which is rounded up to whole turns.
    #[must_use]
    pub const fn longest(&self) -> Window {
        let times = self.epochs as u64;
        match self.turn() {
            Window::Insertions(turn) => Window::Insertions(turn.saturating_mul(times)),
            Window::Time(turn) => Window::Time(turn.saturating_mul(self.epochs)),
        }
    }

    /// The length of a turn, after which every group begins its next epoch: a share of the window,
    /// rounded up.
    #[must_use]
    pub const fn turn(&self) -> Window {
        match self.window {
            Window::Insertions(window) => Window::Insertions(turn(window, self.epochs)),
            Window::Time(time) => {
                let nanos = time.as_nanos() as u64;
                Window::Time(Duration::from_nanos(nanos.div_ceil(self.epochs as u64 - 1)))
            }
        }
    }

    /// The planned number of insertions in a window.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.capacity
    }

    getters! {
        /// The number of epochs, which is the number of lines that a look-up reads.
        epochs: u32;
    }

    /// The shape of one epoch, as a blocked filter for the insertions of a turn.
    #[must_use]
    pub const fn epoch(&self) -> &blocked::Shape {
        &self.epoch
    }

    /// The number of groups: lines of one epoch.
    #[must_use]
    pub const fn groups(&self) -> u64 {
        self.epoch.lines()
    }

    /// The number of bits of a key.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.epoch.probes()
    }

    /// The number of bits of all epochs.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.epoch.bits() * self.epochs as u64
    }

    /// The number of 64-bit words of all epochs.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.epoch.words() * self.epochs as u64
    }

    /// The steady-state error rate with `items` insertions in every window, all of different keys
    /// and spread evenly. A window of insertions never has more than planned, and fewer only before
    /// the first window has passed. The value is never too low: it treats the false positives of
    /// different epochs as independent, while keys whose bits coincide cause them in several epochs
    /// together.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        match self.window {
            Window::Insertions(window) if items >= window => {
                compound_rate(&self.epoch, self.epoch.items(), self.epochs)
            }
            // Epochs are filled one after another.
            Window::Insertions(_) => {
                let (turn, epoch) = (self.epoch.items(), &self.epoch);
                compound(epoch.expected_rate(items % turn), epoch.expected_rate(turn), items / turn)
            }
            // Turns of a few insertions are rounded up. At most two windows of them can be stored.
            Window::Time(_) => {
                let even = compound_rate(&self.epoch, turn(items, self.epochs), self.epochs);
                let most = two_full(self.epoch.expected_rate(turn(items, 2)));
                if even < most { even } else { most }
            }
        }
    }

    /// The highest error rate with at most the planned number of insertions in any window, in any
    /// distribution. In a window of insertions it is the [`expected_rate`](Self::expected_rate) of
    /// that number. In a window of time, all of them may come at once, and the same number again
    /// when the window has passed and the first ones have not expired. Two epochs are then full.
    #[must_use]
    pub const fn burst_rate(&self) -> f64 {
        match self.window {
            Window::Insertions(window) => self.expected_rate(window),
            Window::Time(_) => two_full(self.epoch.expected_rate(turn(self.capacity, 2))),
        }
    }

    /// The length of a turn in its unit: insertions, or nanoseconds.
    pub(super) const fn span(&self) -> u64 {
        match self.turn() {
            Window::Insertions(turn) => turn,
            Window::Time(turn) => turn.as_nanos() as u64,
        }
    }
}

shape!(Shape, "WindowBloomFilter");

const fn check_epochs(epochs: u32) -> Result<(), InvalidShape> {
    InvalidShape::check_range("epochs", epochs as u64, 2, MAX_EPOCHS as u64)
}

const fn time_out_of_range(time: Duration) -> InvalidShape {
    let (what, got) = ("window in seconds", time.as_secs_f64());
    InvalidShape::OutsideOf { what, got, above: 0.0, below: MAX_TIME.as_secs_f64() }
}

const fn check_plan(rate: f64, epochs: u32) -> Result<(), InvalidShape> {
    ok!(Rate::new(rate));
    check_epochs(epochs)
}

/// The share of `window` in one turn, at least one.
pub(super) const fn turn(window: u64, epochs: u32) -> u64 {
    let turn = window.div_ceil(epochs as u64 - 1);
    if turn == 0 { 1 } else { turn }
}

/// The smallest epoch for `items` insertions per turn.
const fn plan(items: u64, rate: f64, epochs: u32) -> Result<blocked::Shape, InvalidShape> {
    // As if the epoch that is being filled were as full as the others.
    let all = epochs as f64;
    let safe = ok!(plan_for_share(items, rate, all));
    // And with its average fill.
    let filling = rate_while_filling(&safe, items) / safe.expected_rate(items);
    match blocked::Shape::for_rate_in_lines(items, rate / (all - 1.0 + filling), 1) {
        Ok(epoch) if compound_rate(&epoch, items, epochs) <= rate => Ok(epoch),
        _ => Ok(safe),
    }
}

/// The smallest epoch of a window of time for `items` insertions per window, all of which may fall
/// into one turn.
///
/// An epoch gets at most `items` insertions, because a turn is not longer than a window. All epochs
/// together get at most twice that number, because n turns are not longer than two windows. The
/// rate of an epoch grows faster than in proportion to its insertions, so the worst case is two
/// full epochs.
const fn plan_for_bursts(items: u64, rate: f64) -> Result<blocked::Shape, InvalidShape> {
    plan_for_share(items, rate, 2.0)
}

/// An epoch with one of `shares` shares of the rate.
const fn plan_for_share(
    items: u64,
    rate: f64,
    shares: f64,
) -> Result<blocked::Shape, InvalidShape> {
    match blocked::Shape::for_rate_in_lines(items, rate / shares, 1) {
        Err(InvalidShape::RateTooSmall { min, .. }) => {
            Err(InvalidShape::RateTooSmall { rate, min: min * shares })
        }
        planned => planned,
    }
}

/// The compound rate of two epochs that have this rate each.
const fn two_full(rate: f64) -> f64 {
    2.0 * rate - rate * rate
}

/// The compound rate of `epochs` epochs with `turn` insertions per turn, one of which is being
/// filled.
const fn compound_rate(epoch: &blocked::Shape, turn: u64, epochs: u32) -> f64 {
    compound(rate_while_filling(epoch, turn), epoch.expected_rate(turn), epochs as u64 - 1)
}

/// The compound rate of one epoch and `others` others.
const fn compound(one: f64, other: f64, others: u64) -> f64 {
    let (mut rate, mut number) = (one, 0);
    while number < others {
        rate += other - rate * other;
        number += 1;
    }
    rate
}

/// The rate of the epoch that is being filled, as the mean over its lines at the worst moment.
/// Groups begin it one after another, so at that moment its lines have been filled for 1, 2, 3, ...
/// shares of a turn. Steps of several shares, each evaluated at its end, give an upper bound.
const fn rate_while_filling(epoch: &blocked::Shape, turn: u64) -> f64 {
    let steps = if epoch.lines() < STEPS { epoch.lines() } else { STEPS };
    let (mut sum, mut step) = (0.0, 1);
    while step <= steps {
        let items = (turn as u128 * step as u128).div_ceil(steps as u128);
        sum += epoch.expected_rate(items as u64);
        step += 1;
    }
    sum / steps as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const RATES: [f64; 6] = [0.9, 0.1, 0.01, 0.001, 1e-4, 1e-6];

    #[test]
    fn the_rate_asked_for_is_kept_by_every_shape() {
        for window in [0, 1, 2, 3, 10, 100, 1_000, 100_000, 1_000_000_000] {
            for rate in RATES {
                let chosen = Shape::for_rate(window, rate).unwrap();
                assert!(chosen.expected_rate(window) <= rate, "{chosen:?}");
                for epochs in [2, 3, 5, 8, 17, MAX_EPOCHS] {
                    let shape = Shape::for_rate_in_epochs(window, rate, epochs).unwrap();
                    assert!(shape.expected_rate(window) <= rate, "{shape:?}");
                    assert_eq!(shape.epoch().items(), shape.span());
                    let Window::Insertions(turn) = shape.turn() else { unreachable!() };
                    assert!(turn * u64::from(epochs - 1) >= window);
                    assert_eq!(shape.longest(), Window::Insertions(turn * u64::from(epochs)));
                }
            }
        }
    }

    #[test]
    fn the_epochs_taken_are_nearly_the_best_and_few_lines_the_smallest() {
        for rate in &RATES[1..] {
            let chosen = Shape::for_rate(1_000_000, *rate).unwrap();
            let all = (2..20).map(|n| Shape::for_rate_in_epochs(1_000_000, *rate, n).unwrap());
            let least = all.map(|shape| shape.bits()).min().unwrap();
            assert!(chosen.bits() as f64 <= 1.01 * least as f64, "{rate}: {chosen:?} {least}");
        }
        for window in 0..200 {
            let chosen = Shape::for_rate(window, 0.01).unwrap();
            let five = (2..=5).map(|n| Shape::for_rate_in_epochs(window, 0.01, n).unwrap().bits());
            assert_eq!(Some(chosen.bits()), five.min());
        }
    }

    #[test]
    fn a_window_of_a_million_takes_at_most_17_and_a_half_bits_an_insertion() {
        for window in [100_000, 1_000_000, 1_000_000_000] {
            let shape = Shape::for_rate(window, 0.01).unwrap();
            assert!(shape.bits() as f64 <= 17.5 * window as f64, "{shape:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_before_there_is_memory() {
        for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Shape::for_rate(10, rate).unwrap_err();
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{error}");
        }
        for epochs in [0, 1, MAX_EPOCHS + 1, u32::MAX] {
            let error = Shape::for_rate_in_epochs(10, 0.01, epochs).unwrap_err();
            assert_eq!(
                error,
                InvalidShape::OutOfRange { what: "epochs", got: epochs.into(), min: 2, max: 64 }
            );
        }
        for time in [Duration::ZERO, Duration::MAX, MAX_TIME + Duration::from_nanos(1)] {
            let error = Shape::for_time(time, 10, 0.01).unwrap_err();
            assert_eq!(error, time_out_of_range(time));
        }
        assert!(Shape::for_time(MAX_TIME, 10, 0.01).is_ok());
        assert!(Shape::for_time(Duration::from_nanos(1), 10, 0.01).is_ok());
        for window in [1 << 46, 1 << 60, u64::MAX] {
            let error = Shape::for_rate(window, 0.01).unwrap_err();
            let large = matches!(error, InvalidShape::TooLarge { .. });
            assert!(large || matches!(error, InvalidShape::RateTooSmall { .. }), "{error}");
        }
    }

    /// The insertions of a turn, in patterns that an attacker could choose: at most `items` in any
    /// `epochs` - 1 consecutive turns.
    fn patterns(items: u64, epochs: u64) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        for parts in 1..epochs {
            // Several bursts of the same size in consecutive turns, repeated when the window allows
            // it.
            let turn = |turn: u64| {
                if turn % (epochs - 1) < parts { items / parts } else { 0 }
            };
            all.push((0..epochs).map(turn).collect());
        }
        all
    }

    #[test]
    fn a_window_of_time_keeps_its_rate_however_insertions_come() {
        for items in [1_u64, 2, 10, 100, 5_000, 1_000_000] {
            for rate in RATES {
                for epochs in [2, 3, 5, 8, 17] {
                    let time = Duration::from_secs(3_600);
                    let shape = Shape::for_time_in_epochs(time, items, rate, epochs).unwrap();
                    assert!(shape.burst_rate() <= rate, "{shape:?}");
                    assert!(shape.expected_rate(items) <= rate, "{shape:?}");
                    for pattern in patterns(items, epochs.into()) {
                        let compound = |rate, turn: &u64| {
                            let next = shape.epoch().expected_rate(*turn);
                            rate + next - rate * next
                        };
                        let worst = pattern.iter().fold(0.0, compound);
                        assert!(worst <= rate, "{worst} {rate} {pattern:?} {shape:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn even_windows_of_time_are_planned_as_those_of_insertions() {
        let time = Duration::from_secs(3_600);
        for items in [1_000_u64, 100_000, 1_000_000] {
            let even = Shape::for_even_time(time, items, 0.01).unwrap();
            let counted = Shape::for_rate(items, 0.01).unwrap();
            assert_eq!((even.epoch(), even.epochs()), (counted.epoch(), counted.epochs()));
            assert!(even.burst_rate() > 0.01 && even.expected_rate(items) <= 0.01);
            let bursts = Shape::for_time(time, items, 0.01).unwrap();
            assert!(bursts.bits() <= 4 * even.bits() + 5 * 512, "{bursts:?}");
        }
    }

    #[test]
    fn turns_of_time_are_rounded_up() {
        let shape = Shape::for_time_in_epochs(Duration::from_nanos(10), 7, 0.01, 4).unwrap();
        assert_eq!(shape.turn(), Window::Time(Duration::from_nanos(4)));
        assert_eq!(shape.longest(), Window::Time(Duration::from_nanos(16)));
        assert_eq!((shape.items(), shape.epoch().items()), (7, 3));
    }
}
