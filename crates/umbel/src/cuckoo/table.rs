//! Operations on one key: its fingerprint and its two buckets. An island of `unsafe`: the
//! arithmetic that computes a bucket guarantees that it is below the number of buckets, so it is
//! not checked again.

use super::Shape;
use crate::error::Full;
use crate::hash::Digest;
use crate::parts::buckets::{NARROW, Row, SLOTS, Slots, word_of_bucket};

/// The upper and the lower half of a product.
#[inline(always)]
const fn product(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    ((product >> 64) as u64, product as u64)
}

/// 2<sup>64</sup> divided by the golden ratio, odd: Knuth, TAOCP 3, section 6.4.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A mask for the bits of a sum: as many bits as always give a number below the number of buckets.
#[inline(always)]
pub(super) const fn sum_mask(buckets: u64) -> u64 {
    u64::MAX >> buckets.leading_zeros() >> 1
}

/// The sum of the two buckets of a fingerprint, modulo the number of buckets. It is odd unless
/// there is only one bucket. So with an even number of buckets no fingerprint has the same bucket
/// twice.
///
/// The upper half of the product is folded into the lower one, because a product alone is not
/// enough: consecutive fingerprints would have evenly spaced sums, chains of moves would return to
/// where they began, and tables of short fingerprints would be full at a load factor of 0.84
/// already.
#[inline(always)]
pub(super) const fn sum(mask: u64, fingerprint: u64) -> u64 {
    let mixed = fingerprint.wrapping_mul(GOLDEN);
    (mixed ^ mixed >> 32 | 1) & mask
}

/// The fingerprint and the buckets of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) fingerprint: u64,
    pub(super) buckets: [u64; 2],
}

/// The bit at which a bucket of the table begins. A value exists only for buckets of this table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bit(u64);

/// The words of a filter, the number of its buckets and the width of its slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketTable<V> {
    pub(super) words: V,
    pub(super) buckets: u64,
    pub(super) width: u32,
    mask: u64,
}

/// Runs an operation with the row type for the width.
macro_rules! in_rows {
    ($table:expr, $call:ident($($argument:expr),*)) => {
        if $table.width <= NARROW {
            $table.$call::<u64>($($argument),*)
        } else {
            $table.$call::<u128>($($argument),*)
        }
    };
}

impl<V: AsRef<[u64]>> BucketTable<V> {
    /// # Panics
    ///
    /// If there are fewer words than the shape has.
    #[inline(always)]
    pub(super) fn new(shape: &Shape, words: V) -> Self {
        // The words of the buckets, and one more.
        assert!(words.as_ref().len() as u64 * 64 >= shape.bits() + 64);
        let (buckets, width) = (shape.buckets(), shape.fingerprint_bits());
        Self { words, buckets, width, mask: sum_mask(buckets) }
    }
}

impl<V> BucketTable<V> {
    /// Two digits of the digest: the bits that determine the bucket are independent of those that
    /// determine the fingerprint. No fingerprint is 0, which marks an empty slot.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Place {
        let (bucket, rest) = product(digest.bits(), self.buckets);
        // Written like this, the compiler emits a multiplication.
        let fingerprints = u64::MAX >> (64 - self.width);
        let fingerprint = ((rest >> 32) * fingerprints) >> 32;
        self.place_in(bucket, fingerprint + 1)
    }

    /// The place of a fingerprint that is stored in this bucket, or may be.
    #[inline(always)]
    pub(super) fn place_in(&self, bucket: u64, fingerprint: u64) -> Place {
        Place { fingerprint, buckets: [bucket, self.other(bucket, fingerprint)] }
    }

    /// The other bucket of a fingerprint; applied twice, it gives the same bucket again. The result
    /// is below the number of buckets if the argument is.
    #[inline(always)]
    pub(super) fn other(&self, bucket: u64, fingerprint: u64) -> u64 {
        let (other, below) = sum(self.mask, fingerprint).overflowing_sub(bucket);
        if below { other.wrapping_add(self.buckets) } else { other }
    }

    #[inline(always)]
    pub(super) fn slots<R: Row>(&self) -> Slots<R> {
        Slots::new(self.width)
    }
}

impl<V: AsRef<[u64]>> BucketTable<V> {
    /// The bit at which a bucket begins. The bucket comes from `place` or [`other`](Self::other).
    #[inline(always)]
    pub(super) fn bit<R: Row>(&self, slots: &Slots<R>, bucket: u64) -> Bit {
        debug_assert!(bucket < self.buckets);
        Bit(slots.bit(bucket))
    }

    /// The slots of the bucket that begins there.
    #[inline(always)]
    #[allow(unsafe_code, reason = "buckets that were computed need no check")]
    pub(super) fn row_at<R: Row>(&self, bit: Bit) -> R {
        // SAFETY: the number of the bucket is below that of all, for which there are words, and one more.
        unsafe { Slots::row_unchecked(self.words.as_ref(), bit.0) }
    }

    /// The slots of a bucket that comes from `place` or [`other`](Self::other).
    #[inline(always)]
    pub(super) fn row<R: Row>(&self, slots: &Slots<R>, bucket: u64) -> R {
        self.row_at(self.bit(slots, bucket))
    }

    #[inline(always)]
    pub(super) fn rows<R: Row>(&self, slots: &Slots<R>, buckets: [u64; 2]) -> [R; 2] {
        buckets.map(|bucket| self.row(slots, bucket))
    }

    /// Whether the fingerprint is in one of its buckets.
    #[inline(always)]
    pub(super) fn holds(&self, place: Place) -> bool {
        if self.width <= NARROW {
            return self.holds_in::<u64>(place);
        }
        self.by_ref().holds_wide(place)
    }

    #[inline(always)]
    fn by_ref(&self) -> BucketTable<&[u64]> {
        let Self { ref words, buckets, width, mask } = *self;
        BucketTable { words: words.as_ref(), buckets, width, mask }
    }

    #[inline(always)]
    fn holds_in<R: Row>(&self, place: Place) -> bool {
        let slots = self.slots::<R>();
        let rows = self.rows(&slots, place.buckets);
        slots.either_has(rows, slots.everywhere(place.fingerprint))
    }

    /// How many copies of the fingerprint are in its buckets.
    #[inline(always)]
    pub(super) fn count(&self, place: Place) -> u64 {
        in_rows!(self, count_in(place))
    }

    fn count_in<R: Row>(&self, place: Place) -> u64 {
        let (slots, [first, second]) = (self.slots::<R>(), place.buckets);
        let [a, b] = self.rows(&slots, place.buckets);
        let wanted = slots.everywhere(place.fingerprint);
        let there = slots.count(slots.empty(a ^ wanted));
        if first == second { there } else { there + slots.count(slots.empty(b ^ wanted)) }
    }

    /// The words in which the buckets begin.
    #[inline(always)]
    pub(super) fn words_of(&self, place: Place) -> [usize; 2] {
        place.buckets.map(|bucket| word_of_bucket(bucket, self.width))
    }

    /// The fingerprint in a slot of a bucket, or 0.
    pub(super) fn get(&self, bucket: u64, slot: u32) -> u64 {
        in_rows!(self, get_in(bucket, slot))
    }

    fn get_in<R: Row>(&self, bucket: u64, slot: u32) -> u64 {
        let slots = self.slots::<R>();
        slots.number(slots.row(self.words.as_ref(), bucket), slot)
    }

    /// How many slots are taken.
    pub(super) fn taken(&self) -> u64 {
        in_rows!(self, taken_in())
    }

    fn taken_in<R: Row>(&self) -> u64 {
        let (slots, words) = (self.slots::<R>(), self.words.as_ref());
        let free = |bucket| slots.count(slots.empty(slots.row(words, bucket)));
        (0..self.buckets).map(|bucket| SLOTS - free(bucket)).sum()
    }

    /// Whether a bit outside all buckets is set.
    pub(super) fn has_stray_bits(&self) -> bool {
        let bits = self.buckets * SLOTS * u64::from(self.width);
        let (last, words) = ((bits / 64) as usize, self.words.as_ref());
        words[last] >> (bits % 64) != 0 || words[last + 1..].iter().any(|word| *word != 0)
    }
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> BucketTable<V> {
    /// Puts a fingerprint into the slot of the lowest flag, which is empty, or takes it out of that
    /// slot, in the bucket that begins at this bit.
    #[inline(always)]
    #[allow(unsafe_code, reason = "buckets that were computed need no check")]
    pub(super) fn flip<R: Row>(&mut self, slots: &Slots<R>, bit: Bit, flags: R, number: u64) {
        // SAFETY: as in `row_at`.
        unsafe { slots.flip_unchecked(self.words.as_mut(), bit.0, flags, number) }
    }

    /// Puts the fingerprint into a slot of one of its buckets. Returns whether neither contained it
    /// before.
    #[inline(always)]
    pub(super) fn insert(&mut self, place: Place) -> Result<bool, Full> {
        if self.width <= NARROW {
            return self.insert_in::<u64>(place);
        }
        self.by_mut().insert_wide(place)
    }

    #[inline(always)]
    fn by_mut(&mut self) -> BucketTable<&mut [u64]> {
        let Self { ref mut words, buckets, width, mask } = *self;
        BucketTable { words: words.as_mut(), buckets, width, mask }
    }

    #[inline(always)]
    fn insert_in<R: Row>(&mut self, place: Place) -> Result<bool, Full> {
        let slots = self.slots::<R>();
        let bits = place.buckets.map(|bucket| self.bit(&slots, bucket));
        let rows = bits.map(|bit| self.row_at::<R>(bit));
        let fresh = !slots.either_has(rows, slots.everywhere(place.fingerprint));
        // Slots are filled from the lowest up, so the emptier of two buckets has the larger flags,
        // unless keys were removed. Choosing the emptier one leaves few full buckets.
        let [a, b] = rows.map(|row| slots.first_empty(row));
        let (bit, free) = if a >= b { (bits[0], a) } else { (bits[1], b) };
        if free == R::of(0) {
            return self.by_mut().make_room::<R>(place).map(|()| fresh);
        }
        self.flip(&slots, bit, free, place.fingerprint);
        Ok(fresh)
    }

    /// Takes one copy of the fingerprint out of its slot. Returns whether there was one.
    #[inline(always)]
    pub(super) fn remove(&mut self, place: Place) -> bool {
        if self.width <= NARROW {
            return self.remove_in::<u64>(place);
        }
        self.by_mut().remove_wide(place)
    }

    #[inline(always)]
    fn remove_in<R: Row>(&mut self, place: Place) -> bool {
        let slots = self.slots::<R>();
        let wanted = slots.everywhere(place.fingerprint);
        let bits = place.buckets.map(|bucket| self.bit(&slots, bucket));
        let [a, b] = bits.map(|bit| slots.first_empty(self.row_at::<R>(bit) ^ wanted));
        let none = R::of(0);
        let (bit, found) = if a != none { (bits[0], a) } else { (bits[1], b) };
        if found == none {
            return false;
        }
        self.flip(&slots, bit, found, place.fingerprint);
        true
    }
}

/// Operations on wide rows, out of line, so that they do not take registers from the others.
impl BucketTable<&[u64]> {
    #[inline(never)]
    fn holds_wide(self, place: Place) -> bool {
        self.holds_in::<u128>(place)
    }
}

impl BucketTable<&mut [u64]> {
    #[inline(never)]
    fn insert_wide(mut self, place: Place) -> Result<bool, Full> {
        self.insert_in::<u128>(place)
    }

    #[inline(never)]
    fn remove_wide(mut self, place: Place) -> bool {
        self.remove_in::<u128>(place)
    }
}
