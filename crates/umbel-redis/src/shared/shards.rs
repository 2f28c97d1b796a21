//! The distribution of lines over keys.
//!
//! ```text
//!     lines    0 ............ L/S ............ 2L/S ........... L
//!     keys     name:{2022}    name:{1234}      ...                     slots 1, 1 + 16384/S, ...
//! ```
//!
//! Shard i of S has the lines from ⌊i L / S⌋ on. A filter and its shards have the same bytes in the same order,
//! so they are copied unchanged. The hash tag of a shard is the smallest whole number whose slot is ⌊16384 i /
//! S⌋ + 1. The masters of a cluster have equal ranges of neighbouring slots. So if S is a multiple of their
//! number, they have the same number of shards. A filter of one shard is in a key with its name.

use redis::cluster_routing::Slot;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;
use umbel::blocked::Shape;

/// The maximum number of shards of a filter.
pub const MAX_SHARDS: u32 = 4096;
/// The maximum number of bits of a shard, 16 MiB: a server moves it in some 20 ms when it grows.
pub(crate) const MAX_SHARD_BITS: u64 = 1 << 27;
/// The default size of a shard in bits: 8 MiB.
const SHARD_BITS: u64 = 1 << 26;
/// The number of shards in a cluster is a multiple of this, so that 2, 3, 4, 6 or 12 masters have the same
/// number of them.
const CLUSTER: u64 = 12;

const SLOTS: u64 = 16_384;

/// Whether a filter of this shape can have this number of shards: none empty, and none too large.
pub(crate) fn fits(shape: &Shape, shards: u32) -> bool {
    let (lines, count) = (shape.lines(), u64::from(shards));
    (1..=u64::from(MAX_SHARDS)).contains(&count)
        && count <= lines
        && lines.div_ceil(count) * 512 <= MAX_SHARD_BITS
}

/// The default number of shards.
pub(crate) fn default_count(shape: &Shape, cluster: bool) -> u32 {
    let needed = shape.bits().div_ceil(SHARD_BITS);
    let spread = if cluster { needed.next_multiple_of(CLUSTER) } else { needed };
    spread.min(shape.lines()).min(MAX_SHARDS.into()) as u32
}

/// The lines of a shard.
pub(crate) fn lines(shape: &Shape, shards: u32, shard: u32) -> Range<u64> {
    let start =
        |shard: u32| (u128::from(shape.lines()) * u128::from(shard) / u128::from(shards)) as u64;
    start(shard)..start(shard + 1)
}

/// The shard that a line is in.
pub(crate) fn of_line(shape: &Shape, shards: u32, line: u64) -> u32 {
    ((u128::from(line + 1) * u128::from(shards) - 1) / u128::from(shape.lines())) as u32
}

/// The key of a shard.
pub(crate) fn key(name: &str, shards: u32, shard: u32) -> String {
    if shards == 1 {
        return name.to_owned();
    }
    let slot = SLOTS * u64::from(shard) / u64::from(shards) + 1;
    format!("{name}:{{{}}}", tags()[slot as usize])
}

/// A temporary key in the slot of another key, used until a rename. It begins with the name of that key, so
/// that a user who may write `name*` may write it.
pub(crate) fn beside(key: &str, what: &str) -> String {
    let slot = Slot::for_key(key);
    let same = format!("{key}:{what}");
    if Slot::for_key(&same) == slot {
        return same;
    }
    let number = (0..SLOTS as u16).position(|number| Slot::new(number) == Some(slot));
    let tag = format!("{{{}}}", tags()[number.unwrap_or(0)]);
    // The server uses the first brace of a key.
    if key.contains('{') { format!("{tag}:{same}") } else { format!("{same}:{tag}") }
}

/// The smallest number in each slot.
fn tags() -> &'static [u32] {
    static TAGS: OnceLock<Vec<u32>> = OnceLock::new();
    TAGS.get_or_init(|| {
        let slots = (0..SLOTS as u16).filter_map(Slot::new);
        let mut open: HashMap<Slot, usize> = slots.zip(0..).collect();
        let mut tags = vec![0; open.len()];
        for number in 0.. {
            if let Some(slot) = open.remove(&Slot::for_key(number.to_string())) {
                tags[slot] = number;
            }
            if open.is_empty() {
                break;
            }
        }
        tags
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_in_exactly_one_shard() {
        for (lines_of_all, shards) in [(1, 1), (7, 3), (12, 12), (1_000, 7), (4_097, 4_096)] {
            let shape = Shape::with(1, lines_of_all, 1, 6).unwrap();
            assert!(fits(&shape, shards));
            let mut next = 0;
            for shard in 0..shards {
                let range = lines(&shape, shards, shard);
                assert_eq!(range.start, next);
                assert!(!range.is_empty());
                assert!(range.clone().all(|line| of_line(&shape, shards, line) == shard));
                next = range.end;
            }
            assert_eq!(next, lines_of_all);
        }
        let large = Shape::with(1, (1 << 30) - 1, 2, 8).unwrap();
        assert_eq!(of_line(&large, MAX_SHARDS, large.lines() - 1), MAX_SHARDS - 1);
        assert_eq!(of_line(&large, MAX_SHARDS, 0), 0);
    }

    #[test]
    fn no_shard_is_empty_or_too_large() {
        let shape = Shape::with(1, 3, 1, 6).unwrap();
        assert!(!fits(&shape, 0) && !fits(&shape, 4) && fits(&shape, 3));
        let large = Shape::for_rate(100_000_000, 0.01).unwrap();
        assert!(!fits(&large, 7) && fits(&large, 8));
        assert_eq!((default_count(&large, false), default_count(&large, true)), (15, 24));
        let small = Shape::for_rate(1_000, 0.01).unwrap();
        assert_eq!((default_count(&small, false), default_count(&small, true)), (1, 12));
        assert_eq!(default_count(&Shape::with(1, 2, 1, 6).unwrap(), true), 2);
    }

    /// The slot ranges are those of `redis-cli --cluster create`.
    #[test]
    fn masters_have_equally_many_shards() {
        for masters in [1_u64, 2, 3, 4, 6, 12] {
            let first = |master: u64| (master * SLOTS * 2 + masters) / (2 * masters);
            let mut held = vec![0; masters as usize];
            for shard in 0..12 {
                let slot = SLOTS * shard / 12 + 1;
                let master = (0..masters).rfind(|master| first(*master) <= slot).unwrap();
                held[master as usize] += 1;
            }
            assert!(held.iter().all(|shards| *shards == 12 / masters), "{held:?}");
        }
    }

    #[test]
    fn keys_are_in_the_slots_they_should_be_in() {
        assert_eq!(key("seen", 1, 0), "seen");
        for (shards, shard, slot) in
            [(12, 0, 1), (12, 1, 1_366), (2, 1, 8_193), (4_096, 4_095, 16_381)]
        {
            let key = key("seen", shards, shard);
            assert!(key.starts_with("seen:{") && key.ends_with('}'));
            assert_eq!(Some(Slot::for_key(&key)), Slot::new(slot));
        }
        for key in ["seen", "a{b}c", "a{}c", "}{", "{"] {
            let making = beside(key, "making:00");
            assert!(making.starts_with(key) || key.contains('{'));
            assert_eq!(Slot::for_key(&making), Slot::for_key(key), "{making}");
        }
        // Fixed for ever: every client looks for the first shard here.
        assert_eq!(key("seen", 2, 0), key("seen", 4_096, 0));
    }
}
