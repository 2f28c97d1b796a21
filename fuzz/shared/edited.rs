//! Small filters of every family, with some bytes changed and correct checksums.

use crate::filters::{Hashed, Numbered, Sort, Visitor, visit_families};
use crate::forge::{LENGTH, seal, words_of};
use crate::opened::{Opened, use_up};
use umbel::{Portable, Saved};

/// The bytes of valid filters.
struct Samples<'a> {
    families: &'a [&'a str],
    all: Vec<Vec<u8>>,
}

impl Visitor<u64, Portable> for Samples<'_> {
    fn visit<S: Sort<u64, Portable>>(&mut self, (): &()) {
        if self.families.contains(&S::NAME) {
            let of = |keys| S::of(0..keys, Portable::hasher(), u64::numbered).to_bytes();
            self.all.extend([1, 10, 60, 300].map(of));
        }
    }
}

pub fn samples(families: &[&str]) -> Vec<Vec<u8>> {
    let mut samples = Samples { families, all: Vec::new() };
    visit_families::<u64, Portable, ()>(&mut samples, &());
    assert_eq!(samples.all.len(), 4 * families.len());
    samples.all
}

/// Changes one of them according to the data, and uses it if it is accepted.
pub fn check(samples: &[Vec<u8>], data: &[u8]) {
    let Some((which, edits)) = data.split_first() else { return };
    let mut bytes = samples[usize::from(*which) % samples.len()].clone();
    for edit in edits.as_chunks().0 {
        let [low, high, how, value] = *edit;
        // The fields before the family are known to be checked.
        let at = 10 + usize::from(u16::from_le_bytes([low, high])) % (bytes.len() - 18);
        match how % 4 {
            0 => bytes[at] = value,
            1 => bytes[at] ^= 1 << (value % 8),
            2 => bytes[at..at + 8].copy_from_slice(&u64::from(value).to_le_bytes()),
            _ => bytes[at..at + usize::from(value % 8)].fill(value),
        }
    }
    let words = words_of(&bytes) as u64;
    bytes[LENGTH..LENGTH + 8].copy_from_slice(&words.to_le_bytes());
    seal(&mut bytes);
    if let Ok(opened) = Opened::from_bytes(&bytes) {
        use_up(&bytes, opened);
    }
}
