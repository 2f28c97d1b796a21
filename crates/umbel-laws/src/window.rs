//! Laws about filters that keep what came lately and forget the rest.

use crate::keys::split_mix;
use crate::rate::sigmas;
use crate::{Pattern, Subject};
use std::collections::VecDeque;

/// A subject whose capacity is a window: the last so many insertions are in it.
pub trait Forgets: Subject {
    /// After how many insertions, its own included, a key is surely gone.
    fn longest(&self) -> u64;
}

/// What is inside the window is found, always: one insertion after another, a third of them of keys
/// that came before, which makes those the newest again. After each one, the oldest key of the window
/// and another one of it are looked up. `operations` counts both kinds.
pub fn keeps_the_window<S: Subject>(window: u64, rate: f64, operations: u64) {
    let mut filter = S::make(window, rate, window);
    let mut last = VecDeque::with_capacity(window as usize);
    let mut done = 0;
    for round in 0.. {
        let chance = split_mix(round);
        let again = round > 0 && chance.is_multiple_of(3);
        // Of the keys of two windows: some are still there, some may be about to leave.
        let index = if again { round - 1 - chance / 3 % (2 * window).min(round) } else { round };
        let key = Pattern::Random.key(index);
        if last.len() as u64 == window {
            last.pop_front();
        }
        last.push_back(key);
        let found = filter.contains(key);
        assert_eq!(filter.insert(key), !found, "insertion {round} tells what is not so");
        let other = last[(chance >> 32) as usize % last.len()];
        for (kept, which) in [(key, "newest"), (last[0], "oldest"), (other, "chosen")] {
            assert!(filter.contains(kept), "lost the {which} of {window} after {round} more");
        }
        done += 5;
        if done >= operations {
            break;
        }
    }
}

/// What is older than [`Forgets::longest`] is found as often as what never came: no more often than the
/// rate asked for, and as often as the fill says, five sigma on both sides. At many moments of the life
/// of a filter that has been full for long, for the keys that have just gone.
pub fn forgets_what_is_older<S: Forgets>(window: u64, rate: f64, queries: u64) {
    const MOMENTS: u64 = 50;
    let (mut found, mut mean) = (0, 0.0);
    for seed in 0..4 {
        let mut filter = S::make(window, rate, seed);
        let longest = filter.longest();
        let key = |index: u64| Pattern::Random.key(seed << 40 | index);
        let mut inserted = 0;
        for moment in 0..MOMENTS {
            // Never in step with what turns over inside.
            let until = 3 * longest + queries + moment * (longest / 7 + 1);
            (inserted..until).for_each(|index| _ = filter.insert(key(index)));
            inserted = until;
            let gone = inserted - longest - queries..inserted - longest;
            found += gone.filter(|&index| filter.contains(key(index))).count();
            let now = filter.rate_now();
            mean += now * queries as f64;
        }
    }
    let asked = 4 * MOMENTS * queries;
    let promised = rate * asked as f64;
    let off = sigmas(found as u64, asked, mean);
    assert!(off <= 5.0, "{found} of the gone are found and {mean:.0} should be, {off:.1} sigma");
    assert!(
        found as f64 <= promised || sigmas(found as u64, asked, promised) <= 5.0,
        "{found} of the gone are found and {promised:.0} were promised"
    );
}
