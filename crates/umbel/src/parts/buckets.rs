//! Buckets: four small numbers each, packed into words without gaps, and searched all four at once.
//!
//! ```text
//!     word 0                                        word 1
//!     [ 3f a1 00 77 | 09 00 00 00 | ... | 1c 55 ][ 20 00 | 42 ...      a bucket may be in two words
//!       slot 0 .. 3    bucket 1
//!
//!     bucket        77   00   a1   3f        as one number
//!     xor wanted    d6   a1   00   9e        the wanted number in every slot
//!     flags         ..   ..   80   ..        the highest bit of every slot that is zero
//! ```
//!
//! Slots of up to 16 bits are searched in a `u64`, wider ones in a `u128`. The last word belongs to
//! no bucket, so that a read past the end of a bucket stays inside the words. An island of
//! `unsafe`: a bucket whose index is known to be valid is read and changed with one access at any
//! bit offset. Every such function has a checked equivalent that works word by word.

use core::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

/// The slots of a bucket.
pub(crate) const SLOTS: u64 = 4;

/// The widest slots of which four fit into a `u64`.
pub(crate) const NARROW: u32 = 16;

/// The words of `buckets` buckets with slots of `width` bits, including the last word.
pub(crate) const fn words_for_buckets(buckets: u64, width: u32) -> u64 {
    (buckets * SLOTS * width as u64).div_ceil(64) + 1
}

/// The word in which a bucket begins.
#[inline(always)]
pub(crate) const fn word_of_bucket(bucket: u64, width: u32) -> usize {
    place(bucket * SLOTS * width as u64).0
}

/// The four slots of a bucket as one number, slot 0 lowest. The bits above slot 3 are arbitrary.
pub(crate) trait Row:
    Copy
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// A row with this number in slot 0.
    fn of(number: u64) -> Self;

    /// The lowest 64 bits.
    fn low(self) -> u64;

    /// The wrapping sum.
    fn plus(self, other: Self) -> Self;
    /// The wrapping difference.
    fn minus(self, other: Self) -> Self;
    /// The wrapping product.
    fn times(self, other: Self) -> Self;

    /// The number of zeros below the lowest one.
    fn trailing_zeros(self) -> u32;

    /// The bits from `bit` on.
    fn read(words: &[u64], bit: u64) -> Self;

    /// Flips the bits from `bit` on that are set in this row.
    fn flip(self, words: &mut [u64], bit: u64);

    /// As [`read`](Self::read), with one load.
    ///
    /// # Safety
    ///
    /// From the byte of `bit` on, there must be at least the number of bytes of a row.
    #[cfg(target_endian = "little")]
    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn load(words: &[u64], bit: u64) -> Self {
        let byte = (bit >> 3) as usize;
        debug_assert!(byte + size_of::<Self>() <= size_of_val(words));
        // SAFETY: the bytes are inside the words, any bytes are a row, and it need not be aligned.
        let row = unsafe { words.as_ptr().cast::<u8>().add(byte).cast::<Self>().read_unaligned() };
        row >> (bit & 7) as u32
    }

    /// As [`flip`](Self::flip), with one load and store.
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load).
    #[cfg(target_endian = "little")]
    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn toggle(self, words: &mut [u64], bit: u64) {
        let byte = (bit >> 3) as usize;
        debug_assert!(byte + size_of::<Self>() <= size_of_val(words));
        // SAFETY: the bytes are inside the words, any bytes are words, and a row need not be aligned.
        unsafe {
            let row = words.as_mut_ptr().cast::<u8>().add(byte).cast::<Self>();
            row.write_unaligned(row.read_unaligned() ^ self << (bit & 7) as u32);
        }
    }
}

/// The word of a bit, and its position there.
#[inline(always)]
const fn place(bit: u64) -> (usize, u32) {
    ((bit >> 6) as usize, (bit & 63) as u32)
}

/// 64 bits of two words, from bit `shift` of the first one on.
#[inline(always)]
const fn funnel(low: u64, high: u64, shift: u32) -> u64 {
    // In two steps, since a shift by 64 is not possible.
    low >> shift | high << 1 << (63 - shift)
}

/// The operations that both types of rows implement in the same way.
macro_rules! arithmetic {
    () => {
        #[inline(always)]
        fn of(number: u64) -> Self {
            number.into()
        }

        #[inline(always)]
        fn low(self) -> u64 {
            self as u64
        }

        #[inline(always)]
        fn plus(self, other: Self) -> Self {
            self.wrapping_add(other)
        }

        #[inline(always)]
        fn minus(self, other: Self) -> Self {
            self.wrapping_sub(other)
        }

        #[inline(always)]
        fn times(self, other: Self) -> Self {
            self.wrapping_mul(other)
        }

        #[inline(always)]
        fn trailing_zeros(self) -> u32 {
            self.trailing_zeros()
        }
    };
}

impl Row for u64 {
    arithmetic!();

    #[inline(always)]
    fn read(words: &[u64], bit: u64) -> Self {
        let (word, shift) = place(bit);
        let [low, high] = words[word..word + 2] else { unreachable!() };
        funnel(low, high, shift)
    }

    #[inline(always)]
    fn flip(self, words: &mut [u64], bit: u64) {
        let (word, shift) = place(bit);
        let [low, high] = &mut words[word..word + 2] else { unreachable!() };
        *low ^= self << shift;
        *high ^= self >> 1 >> (63 - shift);
    }
}

impl Row for u128 {
    arithmetic!();

    #[inline(always)]
    fn read(words: &[u64], bit: u64) -> Self {
        let (word, shift) = place(bit);
        let [low, middle, high] = words[word..word + 3] else { unreachable!() };
        Self::from(funnel(low, middle, shift)) | Self::from(funnel(middle, high, shift)) << 64
    }

    #[inline(always)]
    fn flip(self, words: &mut [u64], bit: u64) {
        let (word, shift) = place(bit);
        let [low, middle, high] = &mut words[word..word + 3] else { unreachable!() };
        let (first, second) = (self as u64, (self >> 64) as u64);
        *low ^= first << shift;
        *middle ^= first >> 1 >> (63 - shift) | second << shift;
        *high ^= second >> 1 >> (63 - shift);
    }
}

/// The masks to search rows with slots of some width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<R> {
    width: u32,
    /// The bits of a bucket.
    stride: u64,
    /// The lowest bit of every slot, and the highest one.
    lowest: R,
    highest: R,
}

impl<R: Row> Slots<R> {
    /// For slots of `width` bits, at least 3, four of which fit into a row.
    #[inline(always)]
    pub(crate) fn new(width: u32) -> Self {
        let one = R::of(1);
        let two = one | one << width;
        let lowest = two | two << (2 * width);
        let stride = SLOTS * u64::from(width);
        Self { width, stride, lowest, highest: lowest << (width - 1) }
    }

    /// The bit at which a bucket begins.
    #[inline(always)]
    pub(crate) const fn bit(&self, bucket: u64) -> u64 {
        bucket * self.stride
    }

    /// The slots of a bucket.
    ///
    /// # Panics
    ///
    /// If there is no such bucket.
    #[inline(always)]
    pub(crate) fn row(&self, words: &[u64], bucket: u64) -> R {
        R::read(words, self.bit(bucket))
    }

    /// The slots of the bucket that begins at this bit, without a bounds check.
    ///
    /// # Safety
    ///
    /// There must be such a bucket in the words, and a word after the last one.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    pub(crate) unsafe fn row_unchecked(words: &[u64], bit: u64) -> R {
        #[cfg(target_endian = "little")]
        // SAFETY: from its byte on, a row reaches past its bucket by less than a word: a `u64` has
        // no more bits than that, and the bucket of a `u128` has more than 64.
        return unsafe { R::load(words, bit) };
        #[cfg(not(target_endian = "little"))]
        R::read(words, bit)
    }

    #[inline(always)]
    pub(crate) fn number(&self, row: R, slot: u32) -> u64 {
        (row >> (slot * self.width)).low() & ((1 << self.width) - 1)
    }

    /// The number in every slot.
    #[inline(always)]
    pub(crate) fn everywhere(&self, number: u64) -> R {
        R::of(number).times(self.lowest)
    }

    /// Whether a slot of either row equals the number that every slot of `wanted` has.
    #[inline(always)]
    pub(crate) fn either_has(&self, rows: [R; 2], wanted: R) -> bool {
        let flags = rows.map(|row| {
            let row = row ^ wanted;
            row.minus(self.lowest) & !row
        });
        (flags[0] | flags[1]) & self.highest != R::of(0)
    }

    /// A flag for the lowest slot that is zero: its highest bit. Higher flags are arbitrary, but if
    /// no slot is zero, there is no flag.
    #[inline(always)]
    pub(crate) fn first_empty(&self, row: R) -> R {
        row.minus(self.lowest) & !row & self.highest
    }

    /// Flags for all slots that are zero: their highest bits.
    #[inline(always)]
    pub(crate) fn empty(&self, row: R) -> R {
        let rest = self.highest.minus(self.lowest);
        !((row & rest).plus(rest) | row) & self.highest
    }

    /// Flags for all slots.
    #[inline(always)]
    pub(crate) fn all(&self) -> R {
        self.highest
    }

    /// The number of flags.
    #[inline(always)]
    pub(crate) fn count(&self, flags: R) -> u64 {
        // The highest slot of the product is the sum of all slots.
        let sums = (flags >> (self.width - 1)).times(self.lowest);
        self.number(sums, 3)
    }

    /// The slot of the lowest flag.
    #[cfg(test)]
    fn first(&self, flags: R) -> u32 {
        flags.trailing_zeros() / self.width
    }

    /// Replaces `old` by `new` in the slot of a bucket.
    ///
    /// # Panics
    ///
    /// If there is no such bucket.
    #[inline(always)]
    pub(crate) fn replace(&self, words: &mut [u64], bucket: u64, slot: u32, old: u64, new: u64) {
        (R::of(old ^ new) << (slot * self.width)).flip(words, self.bit(bucket));
    }

    /// As [`replace`](Self::replace), in the slot of the lowest flag of the bucket that begins at
    /// this bit, without a bounds check. Either the old or the new value is 0, and the other one is
    /// `number`.
    ///
    /// # Safety
    ///
    /// There must be such a bucket in the words, and a word after the last one.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    pub(crate) unsafe fn flip_unchecked(&self, words: &mut [u64], bit: u64, flags: R, number: u64) {
        let row = R::of(number) << (flags.trailing_zeros() + 1 - self.width);
        #[cfg(target_endian = "little")]
        // SAFETY: as in `row_unchecked`.
        unsafe {
            row.toggle(words, bit);
        }
        #[cfg(not(target_endian = "little"))]
        row.flip(words, bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Pseudorandom numbers.
    fn noise(seed: u64) -> u64 {
        let x = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
    }

    fn slots_are_what_was_put_there<R: Row>(width: u32) {
        const BUCKETS: u64 = 37;
        let slots = Slots::<R>::new(width);
        let max = (1_u64 << width) - 1;
        let mut words = vec![0; words_for_buckets(BUCKETS, width) as usize];
        let mut model = vec![[0; 4]; BUCKETS as usize];
        for step in 0..5_000 {
            let (bucket, slot) = (noise(step) % BUCKETS, noise(step + 9_000) as u32 % 4);
            // Few different ones, and often the largest and the smallest.
            let number =
                [0, 0, 1, max, max - 1, noise(step * 3) & max][noise(step * 5) as usize % 6];
            let place = &mut model[bucket as usize][slot as usize];
            slots.replace(&mut words, bucket, slot, *place, number);
            *place = number;
            let model = model[bucket as usize];
            let row = slots.row(&words, bucket);
            assert_eq!([0, 1, 2, 3].map(|slot| slots.number(row, slot)), model, "{width} bits");
            for wanted in [0, 1, max, max - 1, number ^ 1, number] {
                let flags = slots.empty(row ^ slots.everywhere(wanted));
                let found: Vec<u32> =
                    (0..4).filter(|slot| model[*slot as usize] == wanted).collect();
                assert_eq!(slots.count(flags), found.len() as u64);
                assert_eq!(flags == slots.all(), found.len() == 4);
                for flags in [flags, slots.first_empty(row ^ slots.everywhere(wanted))] {
                    let first = (flags != R::of(0)).then(|| slots.first(flags));
                    assert_eq!(found.first().copied(), first);
                }
                let (no, wanted) = (slots.everywhere(wanted ^ 1), slots.everywhere(wanted));
                assert_eq!(slots.either_has([row, no], wanted), !found.is_empty());
                assert_eq!(slots.either_has([no, row], wanted), !found.is_empty());
            }
        }
        let mut all = vec![0; words.len()];
        for (bucket, row) in (0..).zip(&model) {
            for (slot, number) in (0..).zip(row) {
                slots.replace(&mut all, bucket, slot, 0, *number);
            }
        }
        assert_eq!(all, words, "slots of {width} bits touch each other");
        assert_eq!(words.last(), Some(&0));
    }

    #[test]
    fn rows_of_every_width_are_those_of_the_model() {
        for width in 4..=NARROW {
            slots_are_what_was_put_there::<u64>(width);
        }
        for width in NARROW + 1..=32 {
            slots_are_what_was_put_there::<u128>(width);
        }
    }

    /// Compares the functions without a bounds check with those with one, up to the last bucket.
    #[allow(unsafe_code, reason = "what is tested")]
    fn unchecked_is_the_same<R: Row>(width: u32) {
        for buckets in 1..20 {
            let slots = Slots::<R>::new(width);
            let mut words = vec![0; words_for_buckets(buckets, width) as usize];
            for step in 0..8 * buckets {
                let bucket = noise(step) % buckets;
                let free = slots.empty(slots.row(&words, bucket));
                let mut checked = words.clone();
                if free == R::of(0) {
                    continue;
                }
                let number = 1 + noise(step * 7) % ((1 << width) - 1);
                slots.replace(&mut checked, bucket, slots.first(free), 0, number);
                // SAFETY: the bucket is one of those that the words were allocated for.
                unsafe { slots.flip_unchecked(&mut words, slots.bit(bucket), free, number) };
                assert_eq!(words, checked, "slots of {width} bits");
                // SAFETY: as above.
                let row = unsafe { Slots::<R>::row_unchecked(&words, slots.bit(bucket)) };
                let same =
                    |slot| slots.number(row, slot) == slots.number(slots.row(&words, bucket), slot);
                assert!((0..4).all(same), "slots of {width} bits");
            }
        }
    }

    #[test]
    fn without_a_check_there_are_the_same_rows() {
        (4..=NARROW).for_each(unchecked_is_the_same::<u64>);
        (NARROW + 1..=32).for_each(unchecked_is_the_same::<u128>);
    }
}
