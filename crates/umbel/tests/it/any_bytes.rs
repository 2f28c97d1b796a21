//! Any bytes give a filter or an error, in every family: bytes that are truncated, flipped, zeroed or moved,
//! and wrong fields with correct checksums.

use crate::filters::{self, Hashed, Numbered, Sort, Visitor};
use crate::forge::{LENGTH, WORDS, field, seal, words_of};
use crate::opened::{Opened, use_up};
use umbel::hash::Portable;
use umbel::{InvalidBytes, Saved};
use umbel_laws::split_mix;

/// The bytes of a filter of each family, all of about the same length.
struct Samples {
    bytes: u64,
    /// The number of the first key. Different keys give another generation of the filter.
    first: u64,
    all: Vec<(&'static str, Vec<u8>)>,
}

impl Samples {
    fn of(bytes: u64, first: u64) -> Vec<(&'static str, Vec<u8>)> {
        let mut samples = Self { bytes, first, all: Vec::new() };
        filters::visit_families::<u64, Portable, ()>(&mut samples, &());
        samples.all
    }
}

impl Visitor<u64, Portable> for Samples {
    fn visit<S: Sort<u64, Portable>>(&mut self, (): &()) {
        let numbers = |keys| self.first..self.first + keys;
        let of = |keys| S::of(numbers(keys), Portable::hasher(), u64::numbered).to_bytes();
        let keys = 1_000 * self.bytes / words_of(&of(1_000)) as u64;
        self.all.push((S::NAME, of(keys)));
    }
}

#[test]
fn all_truncations_are_refused() {
    for (family, bytes) in Samples::of(4_096, 0) {
        assert!((3_000..6_000).contains(&bytes.len()), "{family}: {}", bytes.len());
        assert!(Opened::from_bytes(&bytes).is_ok(), "{family}");
        for len in 0..bytes.len() {
            let error = Opened::from_bytes(&bytes[..len]).unwrap_err();
            assert!(matches!(error, InvalidBytes::Length { .. }), "{family} {len}: {error}");
        }
        let longer = [&bytes[..], &[0; 8]].concat();
        assert!(matches!(Opened::from_bytes(&longer), Err(InvalidBytes::Length { .. })));
    }
}

#[test]
fn all_flips_of_one_bit_are_refused() {
    for (family, mut bytes) in Samples::of(4_096, 0) {
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Opened::from_bytes(&bytes).is_err(), "{family}: bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Pseudo-random numbers with a fixed seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        split_mix(self.0)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Damages bytes in one of the ways in which disks do.
fn damage(bytes: &mut [u8], older: &[u8], chance: &mut Chance) {
    const BLOCK: usize = 8_192;
    let blocks = words_of(bytes) / BLOCK;
    let block = |number: usize| WORDS + number * BLOCK..WORDS + (number + 1) * BLOCK;
    let sum = |number: usize| {
        let table = WORDS + words_of(older);
        table + number * 8..table + (number + 1) * 8
    };
    let one = chance.below(blocks);
    match chance.below(6) {
        0 => {
            for _ in 0..=chance.below(64) {
                let bit = chance.below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        1 => {
            let len = [512, 4_096, 8_192][chance.below(3)];
            let at = chance.below((bytes.len() - len) / 512) * 512;
            bytes[at..at + len].fill(0);
        }
        2 => {
            let other = (one + 1 + chance.below(blocks - 1)) % blocks;
            let (mine, its) = (bytes[block(one)].to_vec(), bytes[block(other)].to_vec());
            bytes[block(one)].copy_from_slice(&its);
            bytes[block(other)].copy_from_slice(&mine);
        }
        3 => bytes[block(one)].copy_from_slice(&older[block(one)]),
        4 => {
            // Together with its checksum.
            bytes[block(one)].copy_from_slice(&older[block(one)]);
            bytes[sum(one)].copy_from_slice(&older[sum(one)]);
        }
        _ => {
            let (at, len) = (chance.below(bytes.len() - 64), 1 + chance.below(64));
            bytes[at..at + len].iter_mut().for_each(|byte| *byte = chance.next() as u8);
        }
    }
}

#[test]
fn all_of_100_000_corruptions_are_refused() {
    let (samples, older) = (Samples::of(40_000, 0), Samples::of(40_000, 1 << 32));
    let mut chance = Chance(0);
    let mut refused = 0;
    for ((family, good), (_, mut older)) in samples.into_iter().zip(older) {
        // Static filters differ in length by a few bytes.
        older.resize(good.len(), 0);
        seal(&mut older);
        let mut bytes = good.clone();
        for number in 0..6_500 {
            damage(&mut bytes, &older, &mut chance);
            if bytes != good {
                assert!(Opened::from_bytes(&bytes).is_err(), "{family}: corruption {number}");
                refused += 1;
            }
            bytes.copy_from_slice(&good);
        }
    }
    assert!(refused >= 100_000, "{refused}");
}

/// Invalid values of a field.
fn values(now: u64, chance: &mut Chance) -> [u64; 22] {
    let (half, random) = (now / 2, chance.next());
    [
        0,
        1,
        2,
        3,
        7,
        8,
        63,
        64,
        65,
        100,
        1 << 16,
        1 << 24,
        1 << 32,
        1 << 47,
        1 << 48,
        1 << 63,
        u64::MAX,
        half,
        now.wrapping_add(1),
        now.wrapping_sub(1),
        now.wrapping_mul(2),
        random,
    ]
}

#[test]
fn headers_that_lie_with_checksums_in_order_are_refused_or_make_a_filter() {
    let mut chance = Chance(1);
    let (mut accepted, mut tried) = (0, 0);
    for (_, good) in Samples::of(1_024, 0) {
        let mut bytes = good.clone();
        let mut attempt = |bytes: &mut Vec<u8>| {
            seal(bytes);
            tried += 1;
            if let Ok(opened) = Opened::from_bytes(bytes) {
                accepted += 1;
                use_up(bytes, opened);
            }
            bytes.copy_from_slice(&good);
        };
        for bit in 0..184 * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            attempt(&mut bytes);
        }
        for at in (24..184).step_by(8) {
            let now = u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
            for value in values(now, &mut chance) {
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                attempt(&mut bytes);
                // And a second field.
                let (other, value) = (field(chance.below(13)), values(now, &mut chance)[21]);
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                bytes[other..other + 8].copy_from_slice(&(value % 100).to_le_bytes());
                attempt(&mut bytes);
            }
        }
        for at in (8..24).step_by(2) {
            for value in 0..40_u16 {
                bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
                attempt(&mut bytes);
            }
        }
    }
    assert!(tried > 40_000 && accepted > 1_000, "{accepted} of {tried}");
}

/// The number of words that matches a header, if it is at most `most`.
fn words_for(header: &[u8], most: u64) -> Option<u64> {
    (0..most).find(|words| {
        let mut bytes = header[..WORDS].to_vec();
        bytes[LENGTH..LENGTH + 8].copy_from_slice(&(words * 8).to_le_bytes());
        seal(&mut bytes);
        matches!(Opened::from_bytes(&bytes), Ok(_) | Err(InvalidBytes::Length { .. }))
    })
}

#[test]
fn shapes_that_nobody_planned_are_refused_or_make_a_filter() {
    let mut chance = Chance(2);
    let (mut accepted, mut fitting) = (0, 0);
    for (_, good) in Samples::of(512, 0) {
        for _ in 0..500 {
            let mut bytes = good[..WORDS].to_vec();
            for _ in 0..=chance.below(3) {
                let at = field(chance.below(11));
                let now = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                let value = values(now, &mut chance)[chance.below(22)];
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            let Some(words) = words_for(&bytes, 256) else { continue };
            fitting += 1;
            bytes[LENGTH..LENGTH + 8].copy_from_slice(&(words * 8).to_le_bytes());
            bytes.resize(WORDS + words as usize * 8 + usize::from(words > 0) * 8, 0);
            let noise = chance.below(3) == 0;
            for byte in &mut bytes[WORDS..] {
                *byte = if noise { chance.next() as u8 } else { 0 };
            }
            // Where the words describe the filter, the previous values may be valid.
            if chance.below(2) == 0 {
                let len = bytes.len().min(good.len() - 8);
                bytes[WORDS..len].copy_from_slice(&good[WORDS..len]);
            }
            seal(&mut bytes);
            if let Ok(opened) = Opened::from_bytes(&bytes) {
                accepted += 1;
                use_up(&bytes, opened);
            }
        }
    }
    assert!(fitting > 1_000 && accepted > 500, "{accepted} of {fitting}");
}

#[test]
fn words_of_chance_with_checksums_in_order_are_refused_or_make_a_filter() {
    let mut chance = Chance(3);
    let mut accepted = 0;
    for (_, good) in Samples::of(4_096, 0) {
        let mut bytes = good.clone();
        for _ in 0..500 {
            for _ in 0..=chance.below(4) {
                let (at, len) = (chance.below(words_of(&bytes) - 16), 1 + chance.below(16));
                let noise = chance.below(2) == 0;
                for byte in &mut bytes[WORDS + at..WORDS + at + len] {
                    *byte = if noise { chance.next() as u8 } else { 0xff };
                }
            }
            seal(&mut bytes);
            if let Ok(opened) = Opened::from_bytes(&bytes) {
                accepted += 1;
                use_up(&bytes, opened);
            }
            bytes.copy_from_slice(&good);
        }
    }
    assert!(accepted > 4_000, "{accepted}");
}
