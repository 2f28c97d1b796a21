//! Laws about filters that keep the last insertions and forget older ones.

use crate::keys::split_mix;
use crate::rate::sigmas;
use crate::{Pattern, Subject};
use std::collections::VecDeque;

/// A subject whose capacity is a window: it contains the last insertions, as many as its capacity.
pub trait Forgets: Subject {
    /// The number of insertions, including that of the key, after which a key is certainly forgotten.
    fn longest(&self) -> u64;
}

/// A key inside the window is always found. A third of the insertions repeat an earlier key, which makes it the
/// newest again. After each insertion, the oldest key of the window and another key in it are looked up.
/// `operations` counts insertions and look-ups.
pub fn keeps_the_window<S: Subject>(window: u64, rate: f64, operations: u64) {
    let mut filter = S::make(window, rate, window);
    let mut last = VecDeque::with_capacity(window as usize);
    let mut done = 0;
    for round in 0.. {
        let chance = split_mix(round);
        let again = round > 0 && chance.is_multiple_of(3);
        // One of the keys of the last two windows: some are still present, some are about to be forgotten.
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

/// A key older than [`Forgets::longest`] is found as often as a key that was never inserted: no more often than
/// the requested rate, and as often as the fill predicts, five sigma on both sides. This is checked at many
/// moments in the life of a filter that has been full for long, for the keys that were just forgotten.
pub fn forgets_what_is_older<S: Forgets>(window: u64, rate: f64, queries: u64) {
    const MOMENTS: u64 = 50;
    let (mut found, mut mean) = (0, 0.0);
    for seed in 0..4 {
        let mut filter = S::make(window, rate, seed);
        let longest = filter.longest();
        let key = |index: u64| Pattern::Random.key(seed << 40 | index);
        let mut inserted = 0;
        for moment in 0..MOMENTS {
            // The moments are not in phase with the rotation inside the filter.
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
