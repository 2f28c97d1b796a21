//! Entries: numbers of 1 to 32 bits, packed into words and read with one load each.
//!
//! ```text
//!     word 0                          word 1
//!     [ entry 0 | entry 1 | ... | entr][y 9 | entry 10 | ...      7 bits: one entry in two words
//! ```
//!
//! An island of `unsafe`: on little-endian machines words are read as bytes, so that an entry that
//! spans two words takes one load. The safe equivalent reads words, and is used on other machines.

/// The width of entries, and how they are read.
pub(crate) trait EntryWidth: Copy + Sync {
    /// A mask of the bits of an entry.
    fn mask(self) -> u64;

    /// An entry. The bits above it are arbitrary.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    fn get(self, words: &[u64], entry: usize) -> u64;

    /// As [`get`](Self::get), also if there is no word behind that of the last entry.
    fn get_to_the_end(self, words: &[u64], entry: usize) -> u64;

    /// Stores a number in an entry that is zero. It must fit.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    fn put(self, words: &mut [u64], entry: usize, number: u64);

    /// The word in which an entry begins.
    fn word(self, entry: usize) -> usize;
}

/// Entries of one byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Byte;

impl EntryWidth for Byte {
    #[inline(always)]
    fn mask(self) -> u64 {
        0xff
    }

    #[inline(always)]
    fn get(self, words: &[u64], entry: usize) -> u64 {
        #[cfg(target_endian = "little")]
        return u64::from(bytes(words)[entry]);
        #[cfg(not(target_endian = "little"))]
        return words[entry / 8] >> (entry % 8 * 8);
    }

    #[inline(always)]
    fn get_to_the_end(self, words: &[u64], entry: usize) -> u64 {
        self.get(words, entry)
    }

    #[inline(always)]
    fn put(self, words: &mut [u64], entry: usize, number: u64) {
        #[cfg(target_endian = "little")]
        {
            bytes_mut(words)[entry] = number as u8;
        }
        #[cfg(not(target_endian = "little"))]
        {
            words[entry / 8] |= number << (entry % 8 * 8);
        }
    }

    #[inline(always)]
    fn word(self, entry: usize) -> usize {
        entry / 8
    }
}

/// Entries of 1 to 32 bits. There must be a word behind that of the last entry, except for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedEntry {
    pub(crate) bits: u32,
}

impl PackedEntry {
    /// The word in which an entry begins, and its lowest bit there.
    #[inline(always)]
    fn place(self, entry: usize) -> (usize, u32) {
        let bit = entry as u64 * u64::from(self.bits);
        ((bit >> 6) as usize, (bit & 63) as u32)
    }
}

impl EntryWidth for PackedEntry {
    #[inline(always)]
    fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    #[inline(always)]
    fn get(self, words: &[u64], entry: usize) -> u64 {
        #[cfg(target_endian = "little")]
        {
            let bit = entry as u64 * u64::from(self.bits);
            let (chunk, _) = bytes(words)[(bit >> 3) as usize..]
                .split_first_chunk::<8>()
                .expect("there is a word behind the last entry's");
            u64::from_le_bytes(*chunk) >> (bit & 7)
        }
        #[cfg(not(target_endian = "little"))]
        self.get_to_the_end(words, entry)
    }

    #[inline(always)]
    fn get_to_the_end(self, words: &[u64], entry: usize) -> u64 {
        let (word, shift) = self.place(entry);
        let next = words.get(word + 1).copied().unwrap_or_default();
        words[word] >> shift | next << 1 << (63 - shift)
    }

    #[inline(always)]
    fn put(self, words: &mut [u64], entry: usize, number: u64) {
        let (word, shift) = self.place(entry);
        words[word] |= number << shift;
        if let Some(next) = words.get_mut(word + 1) {
            *next |= number >> 1 >> (63 - shift);
        }
    }

    #[inline(always)]
    fn word(self, entry: usize) -> usize {
        self.place(entry).0
    }
}

/// The words for this many entries of this width, including a word behind them unless entries are
/// bytes.
pub(crate) const fn words_for(entries: u64, bits: u32) -> u64 {
    (entries * bits as u64).div_ceil(64) + (bits != 8) as u64
}

#[cfg(target_endian = "little")]
#[inline(always)]
#[allow(unsafe_code, reason = "one load for an entry that is in two words")]
fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the slice has eight bytes per word; bytes need no alignment, every value is valid,
    // and the result is borrowed for as long as the words are.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// As [`bytes`], mutably.
#[cfg(target_endian = "little")]
#[inline(always)]
#[allow(unsafe_code, reason = "one store for an entry, and no load")]
fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as above; any eight bytes are a valid word, and the words are mutably borrowed as
    // long as the result.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    const ENTRIES: usize = 300;

    /// The bits of an entry, one by one.
    fn slowly(words: &[u64], bits: u32, entry: usize) -> u64 {
        let bit = |at: usize| words[at / 64] >> (at % 64) & 1;
        (0..bits as usize).map(|i| bit(entry * bits as usize + i) << i).sum()
    }

    #[test]
    fn entries_of_every_width_come_back() {
        for bits in 1..=32 {
            let width = PackedEntry { bits };
            let mut words = vec![0; words_for(ENTRIES as u64, bits) as usize + 1];
            let number = |entry: usize| {
                (entry as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & width.mask()
            };
            for entry in (0..ENTRIES).rev() {
                width.put(&mut words, entry, number(entry));
            }
            for entry in 0..ENTRIES {
                assert_eq!(slowly(&words, bits, entry), number(entry), "{bits} bits");
                assert_eq!(width.get(&words, entry) & width.mask(), number(entry));
                let full = &words[..(ENTRIES * bits as usize).div_ceil(64)];
                assert_eq!(width.get_to_the_end(full, entry) & width.mask(), number(entry));
                assert_eq!(width.word(entry), entry * bits as usize / 64);
                if bits == 8 {
                    assert_eq!(Byte.get(&words, entry), number(entry));
                    assert_eq!(Byte.word(entry), width.word(entry));
                }
            }
        }
    }

    #[test]
    fn bytes_are_entries_of_eight_bits() {
        let (mut of_bytes, mut packed) = (vec![0; 38], vec![0; 39]);
        for entry in 0..ENTRIES {
            let number = (entry as u64 * 37) & 0xff;
            Byte.put(&mut of_bytes, entry, number);
            PackedEntry { bits: 8 }.put(&mut packed, entry, number);
        }
        assert_eq!(of_bytes, packed[..38]);
        assert_eq!((words_for(300, 8), words_for(300, 7)), (38, 34));
    }
}
