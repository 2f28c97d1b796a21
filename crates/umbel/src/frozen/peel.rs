//! Solving by peeling: if a key is alone in a place, its equation can be solved there, whatever the
//! other entries are.
//!
//! ```text
//!     places    0   1   2   3   4   5
//!     key a     x       x       x             b is alone in 1: it goes first and is left out
//!     key b         x       x   x             then c is alone in 3, and a in 2
//!     key c     x           x       x         assigned in the opposite order: a, c, b
//! ```
//!
//! While peeling, every place has one word: the sum of the hashes of its keys, and below it their
//! number. A word with one key identifies that key, and so its other places. When the key has been
//! removed from all its places, its hash stays in the word where it was alone.

use super::BuildError;
use super::hashes::reserve;
use crate::error::InvalidShape;
use crate::parts::entries::EntryWidth;
use crate::parts::prefetch::prefetch;
use crate::parts::words::Words;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The bits of a hash that are not used: they count the keys of a place while peeling. A place has
/// 32 different keys once in 10<sup>20</sup> times.
pub(crate) const COUNT: u64 = 31;

/// The `ARITY` different places of a hash.
pub(crate) trait EntryPlaces<const ARITY: usize>: Copy + Sync {
    /// The places of a hash, whose lowest bits, [`COUNT`], are zero, from `start` on.
    fn of(&self, start: u64, hash: u64) -> [usize; ARITY];
}

/// The exclusive or of the entries in the places of a hash, in its lowest bits.
#[inline(always)]
pub(crate) fn fingerprint(hash: u64) -> u64 {
    hash >> 5 ^ hash >> 32
}

/// Different bits from the same hash: the topmost ones depend on all of it.
#[inline(always)]
pub(crate) fn stirred(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The memory to solve systems of equations one after another.
#[derive(Debug)]
pub(crate) struct Peeler {
    places: Words<u64>,
    /// The places where a key was alone, in the order of peeling, and one unused element at the
    /// end.
    order: Vec<[u8; 3]>,
    used: bool,
}

/// Three bytes can number at most this many places.
pub(crate) const MAX_PLACES: u64 = 1 << 24;

/// How many places are searched for single keys at a time.
const SEARCH: usize = 1 << 12;
/// The size of the queue of places with a single key. Places that do not fit are found again by a
/// search.
const KNOWN: usize = 1 << 13;
/// How many of them are processed together.
const GROUP: usize = 16;

impl Peeler {
    /// For up to `keys` keys in `places` places.
    pub(crate) fn new(keys: u64, places: u64) -> Result<Self, BuildError> {
        debug_assert!(places <= MAX_PLACES);
        let bytes = places.saturating_mul(8);
        let memory = usize::try_from(places).ok().and_then(Words::zeroed);
        let places = memory.ok_or(InvalidShape::OutOfMemory { bytes })?;
        let mut order = Vec::new();
        reserve(&mut order, keys as usize + 1)?;
        order.resize(keys as usize + 1, [0; 3]);
        Ok(Self { places, order, used: false })
    }

    /// The number of bytes of this memory.
    pub(crate) fn bytes(keys: u64, places: u64) -> u64 {
        places * 8 + 64 + (keys + 1) * 3 + KNOWN as u64 * 4
    }

    /// Finds an order in which all keys can be assigned. Returns whether there is one. The topmost
    /// `skip` bits are the same in all hashes, and move to the end of each.
    pub(crate) fn peel<'a, const ARITY: usize>(
        &mut self,
        places: impl EntryPlaces<ARITY>,
        runs: impl Iterator<Item = &'a [u64]>,
        skip: u32,
        keys: u64,
    ) -> bool {
        let words = self.places.as_mut();
        if self.used {
            words.fill(0);
        }
        self.used = true;
        for run in runs {
            if !add(words, places, run, skip) {
                return false;
            }
        }
        let order = &mut self.order[..=keys as usize];
        let mut known = vec_of_known();
        let mut peeled = 0;
        loop {
            let before = peeled;
            let whole = pass(words, places, order, &mut peeled, &mut known);
            if peeled as u64 == keys || whole || peeled == before {
                return peeled as u64 == keys;
            }
        }
    }

    /// Writes the entries of all keys, after they have been peeled.
    pub(crate) fn assign<const ARITY: usize>(
        &self,
        places: impl EntryPlaces<ARITY>,
        keys: u64,
        width: impl EntryWidth,
        words: &mut [u64],
    ) {
        let hashes = self.places.as_ref();
        for &[low, middle, high] in self.order[..keys as usize].iter().rev() {
            let place = u32::from_le_bytes([low, middle, high, 0]) as usize;
            let hash = hashes[place];
            let mut entry = fingerprint(hash);
            for other in places.of(0, hash) {
                entry ^= width.get_to_the_end(words, other);
            }
            width.put(words, place, entry & width.mask());
        }
    }
}

fn vec_of_known() -> Box<[u32; KNOWN]> {
    Box::new([0; KNOWN])
}

/// Adds keys to their places. Returns whether all could be counted.
#[inline]
fn add<const ARITY: usize>(
    words: &mut [u64],
    places: impl EntryPlaces<ARITY>,
    run: &[u64],
    skip: u32,
) -> bool {
    let mut numbered = true;
    for hash in run {
        let hash = hash.rotate_left(skip) & !COUNT;
        for place in places.of(0, hash) {
            let word = &mut words[place];
            *word = word.wrapping_add(hash | 1);
            numbered &= *word & COUNT != 0;
        }
    }
    numbered
}

/// Goes through all places once and peels all keys it can. Returns whether the queue never
/// overflowed.
#[inline]
fn pass<const ARITY: usize>(
    words: &mut [u64],
    places: impl EntryPlaces<ARITY>,
    order: &mut [[u8; 3]],
    peeled: &mut usize,
    known: &mut [u32; KNOWN],
) -> bool {
    let mut whole = true;
    for start in (0..words.len()).step_by(SEARCH) {
        let (mut head, mut tail) = (0, 0);
        for (place, word) in words.iter().enumerate().skip(start).take(SEARCH) {
            known[tail % KNOWN] = place as u32;
            tail += usize::from(word & COUNT == 1);
        }
        while head != tail {
            let group = (tail - head).min(GROUP);
            let mut found = [(0, [0; ARITY]); GROUP];
            for (number, found) in found[..group].iter_mut().enumerate() {
                let place = known[(head + number) % KNOWN] as usize;
                *found = (place, places.of(0, words[place] & !COUNT));
                found.1.iter().for_each(|other| prefetch(words, *other));
            }
            head += group;
            for (place, others) in &found[..group] {
                let word = words[*place];
                // Another place of the group, or an earlier one, may have had the same key.
                let alone = word & COUNT == 1;
                let key = if alone { word } else { 0 };
                let [low, middle, high, _] = (*place as u32).to_le_bytes();
                order[*peeled] = [low, middle, high];
                *peeled += usize::from(alone);
                for other in others {
                    let left = words[*other].wrapping_sub(key);
                    words[*other] = left;
                    known[tail % KNOWN] = *other as u32;
                    tail += usize::from(alone & (left & COUNT == 1));
                }
                words[*place] |= key & !COUNT;
            }
            if tail - head > KNOWN - GROUP * ARITY {
                tail = head + KNOWN - GROUP * ARITY;
                whole = false;
            }
        }
    }
    whole
}
