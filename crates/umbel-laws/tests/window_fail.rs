//! Tests of the laws of windows: an exact window obeys them, and each defect below breaks one.

use std::collections::{HashMap, VecDeque};
use umbel_laws::{Forgets, Subject, forgets_what_is_older, keeps_the_window, split_mix};

/// The defect of a subject.
const NOTHING: u8 = 0;
const LOSES_THE_OLDEST: u8 = 1;
const IGNORES_WHAT_COMES_AGAIN: u8 = 2;
const NEVER_FORGETS: u8 = 3;
const FORGETS_A_LITTLE_LATE: u8 = 4;
const FINDS_TOO_MUCH: u8 = 5;
const SAYS_NEW_TWICE: u8 = 6;

/// The exact window, with false positives at exactly the promised rate.
struct Exact<const WRONG: u8> {
    window: u64,
    rate: f64,
    last: VecDeque<u64>,
    times: HashMap<u64, u64>,
}

impl<const WRONG: u8> Exact<WRONG> {
    /// A quarter more than the window, as a ring of five epochs would keep.
    fn kept(&self) -> u64 {
        match WRONG {
            NEVER_FORGETS => u64::MAX,
            LOSES_THE_OLDEST => self.window - 1,
            FORGETS_A_LITTLE_LATE => self.longest() + 20,
            _ => self.longest(),
        }
    }
}

impl<const WRONG: u8> Subject for Exact<WRONG> {
    fn make(window: u64, rate: f64, _: u64) -> Self {
        Self { window, rate, last: VecDeque::new(), times: HashMap::new() }
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains(key);
        if WRONG == IGNORES_WHAT_COMES_AGAIN && self.times.contains_key(&key) {
            return fresh;
        }
        self.last.push_back(key);
        *self.times.entry(key).or_default() += 1;
        while self.last.len() as u64 > self.kept() {
            let oldest = self.last.pop_front().unwrap();
            let times = self.times.get_mut(&oldest).unwrap();
            *times -= 1;
            if *times == 0 {
                self.times.remove(&oldest);
            }
        }
        fresh || WRONG == SAYS_NEW_TWICE
    }

    fn contains(&self, key: u64) -> bool {
        let rate = if WRONG == FINDS_TOO_MUCH { 1.5 * self.rate } else { self.rate };
        self.times.contains_key(&key) || (split_mix(key) as f64) < rate * 2_f64.powi(64)
    }

    fn rate_now(&self) -> f64 {
        if WRONG == FINDS_TOO_MUCH { 1.5 * self.rate } else { self.rate }
    }
}

impl<const WRONG: u8> Forgets for Exact<WRONG> {
    fn longest(&self) -> u64 {
        self.window + self.window.div_ceil(4)
    }
}

#[test]
fn an_exact_window_obeys_the_laws() {
    for window in [1, 2, 10, 1_000] {
        keeps_the_window::<Exact<NOTHING>>(window, 0.01, 40_000);
    }
    forgets_what_is_older::<Exact<NOTHING>>(1_000, 0.01, 1_000);
}

/// One test per defect: the defect, the law that detects it, and its message.
macro_rules! noticed {
    ($($name:ident: $wrong:ident => $law:ident($($argument:expr),*), $words:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $words)]
        fn $name() {
            $law::<Exact<$wrong>>($($argument),*);
        }
    )*};
}

noticed! {
    a_window_that_is_one_too_short_is_noticed: LOSES_THE_OLDEST =>
        keeps_the_window(100, 0.01, 10_000), "lost the oldest of 100";
    not_to_count_a_key_again_is_noticed: IGNORES_WHAT_COMES_AGAIN =>
        keeps_the_window(100, 0.01, 40_000), "lost the";
    a_key_that_is_new_twice_is_noticed: SAYS_NEW_TWICE =>
        keeps_the_window(100, 0.01, 10_000), "tells what is not so";
    never_to_forget_is_noticed: NEVER_FORGETS =>
        forgets_what_is_older(1_000, 0.01, 1_000), "of the gone are found";
    to_forget_a_little_late_is_noticed: FORGETS_A_LITTLE_LATE =>
        forgets_what_is_older(1_000, 0.01, 1_000), "of the gone are found";
    finding_too_much_is_noticed: FINDS_TOO_MUCH =>
        forgets_what_is_older(1_000, 0.01, 1_000), "were promised";
}
