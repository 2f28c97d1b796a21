//! The shape of a cuckoo filter: how many buckets and how wide fingerprints, for how many items.

use super::room::{buckets_for, even, room};
use crate::error::{Incompatible, InvalidShape};
use crate::layout::words_for;
use crate::parts::buckets::{SLOTS, words_for_buckets};
use crate::parts::math::{ceil, exp_m1, ln_1p, ln_1p_wide};
use crate::sizing::{MAX_BITS, Rate, check_bits, check_memory, getters, ok, shape};

/// The fewest bits of a fingerprint.
pub const MIN_FINGERPRINT_BITS: u32 = 4;
/// The most bits of a fingerprint.
pub const MAX_FINGERPRINT_BITS: u32 = 32;

/// The smallest rate: that of the longest fingerprints in a table at a load factor of a quarter.
const MIN_RATE: f64 = 2.0 / u32::MAX as f64;

/// The largest number of places (buckets times fingerprints) that digests of 64 bits are mapped to.
/// It is small enough that all places get practically the same number of digests.
const MAX_PLACES_LOG2: u32 = 60;

/// The shape of a cuckoo filter, computed before memory is allocated.
///
/// ```
/// use umbel::cuckoo::Shape;
///
/// let shape = Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!((shape.buckets(), shape.fingerprint_bits()), (264_552, 10));
/// assert_eq!(shape.bytes(), 1_322_768); // 10.58 bits per key
/// assert!(shape.room() >= 1_000_000 && shape.load(1_000_000) > 0.944);
/// assert!(shape.expected_rate(1_000_000) < 0.0074); // nine bits would not do
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    items: u64,
    buckets: u64,
    width: u32,
}

impl Shape {
    /// The smallest filter that holds `items` items at an error rate of at most `rate`.
    ///
    /// It has [`room`](Self::room) for them, and an even number of buckets or one. Zero items is
    /// valid and gives a filter of one bucket.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]). If it is below 4.7 · 10^-10, the rate of
    /// fingerprints of 32 bits, or below the larger limit that digests of 64 bits set for more than
    /// a billion items. Or if the filter would have more than [`MAX_BITS`].
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        let rate = ok!(Rate::new(rate)).get();
        if rate < MIN_RATE {
            return Err(InvalidShape::RateTooSmall { rate, min: MIN_RATE });
        }
        if items > MAX_BITS / MIN_FINGERPRINT_BITS as u64 {
            return Err(InvalidShape::TooLarge { bits: u64::MAX, max: MAX_BITS });
        }
        let mut best: Option<Self> = None;
        let mut width = MIN_FINGERPRINT_BITS;
        while width <= MAX_FINGERPRINT_BITS {
            // A table with a load factor below a quarter may need longer fingerprints.
            let buckets = buckets_for_rate(items, rate, width);
            if buckets <= items || buckets <= 2 || width == MAX_FINGERPRINT_BITS {
                let shape = Self::large_enough(items, rate, buckets, width);
                match best {
                    // Short fingerprints may need so many slots that much longer ones take less
                    // space, not only the next length.
                    Some(best) if best.bits() <= items * width as u64 => break,
                    Some(best) if best.bits() <= shape.bits() => {}
                    _ => best = Some(shape),
                }
            }
            width += 1;
        }
        let Some(Self { buckets, width, .. }) = best else { unreachable!() };
        match Self::with(items, buckets, width) {
            Err(InvalidShape::OutOfRange { max, .. }) => {
                let min = Self { items, buckets, width: max as u32 }.expected_rate(items);
                Err(InvalidShape::RateTooSmall { rate, min })
            }
            made => made,
        }
    }

    /// The first shape with at least this many buckets that has room for the items at the rate.
    const fn large_enough(items: u64, rate: f64, buckets: u64, width: u32) -> Self {
        let least = buckets_for(items, width);
        let buckets = if buckets > least { buckets } else { least };
        let mut shape = Self { items, buckets, width };
        while shape.expected_rate(items) > rate {
            shape.buckets = even(shape.buckets + 1);
        }
        shape
    }

    /// The best filter for `items` items in at most `bytes` bytes: the longest fingerprints for
    /// which there is room.
    ///
    /// # Errors
    ///
    /// If there is no room for the items even with the shortest fingerprints, or more than
    /// [`MAX_BITS`].
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, 0));
        if items > MAX_BITS / MIN_FINGERPRINT_BITS as u64 {
            return Err(InvalidShape::TooLarge { bits: u64::MAX, max: MAX_BITS });
        }
        // One word belongs to no bucket.
        let bits = (bytes / 8).saturating_sub(1) * 64;
        let mut width = MAX_FINGERPRINT_BITS;
        while width >= MIN_FINGERPRINT_BITS {
            let fit = bits / (SLOTS * width as u64);
            let buckets = if fit > 1 { fit - (fit & 1) } else { fit };
            if buckets > 0 && width <= max_width(buckets) && room(buckets, width) >= items {
                return Ok(Self { items, buckets, width });
            }
            width -= 1;
        }
        Err(InvalidShape::TooSmall { bytes, min: least_bytes(items) })
    }

    /// A shape with exactly these numbers, which may be too small for the items: check
    /// [`room`](Self::room).
    ///
    /// With an odd number of n buckets, one key in n has the same bucket twice. An even number
    /// reaches a higher load factor.
    ///
    /// # Errors
    ///
    /// Unless there is at least one bucket and there are no more than [`MAX_BITS`] bits.
    /// Fingerprints must have 4 to 32 bits; from 2<sup>28</sup> buckets up, the maximum is lower,
    /// because digests have 64 bits.
    pub const fn with(
        items: u64,
        buckets: u64,
        fingerprint_bits: u32,
    ) -> Result<Self, InvalidShape> {
        let (bits, min) = (fingerprint_bits, MIN_FINGERPRINT_BITS);
        if buckets == 0 {
            let min = words_for_buckets(1, min) * 8;
            return Err(InvalidShape::TooSmall { bytes: 0, min });
        }
        ok!(check_fingerprint(bits, MAX_FINGERPRINT_BITS));
        ok!(check_bits(buckets.saturating_mul(SLOTS * bits as u64)));
        ok!(check_fingerprint(bits, max_width(buckets)));
        Ok(Self { items, buckets, width: bits })
    }

    getters! {
        /// The planned number of items.
        items: u64;
        /// The number of buckets. Each has four slots.
        buckets: u64;
    }

    /// The number of slots. A key takes one.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.buckets * SLOTS
    }

    /// How many bits a fingerprint has.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.width
    }

    /// The number of bits of all slots.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.slots() * self.width as u64
    }

    /// The number of 64-bit words: those of the slots, and one.
    #[must_use]
    pub const fn words(&self) -> u64 {
        words_for_buckets(self.buckets, self.width)
    }

    /// How many different keys the filter accepts at least before it refuses one: all but one
    /// filter in three million accept this many. Most accept more, 0.97 of the slots from 100,000
    /// slots up.
    ///
    /// With fingerprints of 4 or 5 bits, a large filter accepts far fewer: so many keys share so
    /// few fingerprints that nine of them coincide sooner or later, and there is no room for nine
    /// anywhere. One filter of 4 bits in 13 comes to that in ten million slots before 0.96 of them
    /// are taken, and no cuckoo filter could avoid it.
    #[must_use]
    pub const fn room(&self) -> u64 {
        room(self.buckets, self.width)
    }

    /// The load factor with `items` items.
    #[must_use]
    pub const fn load(&self, items: u64) -> f64 {
        items as f64 / self.slots() as f64
    }

    /// The error rate while `items` different keys are in the filter. Exact for every distribution
    /// of the keys.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        // A key is a false positive if its fingerprint is stored for a key that starts in one of
        // its buckets. It has two buckets, or one if both are the same.
        let (m, fingerprints) = (self.buckets as f64, ((1_u64 << self.width) - 1) as f64);
        let buckets = if self.buckets & 1 == 0 { 2.0 } else { 2.0 - 1.0 / m };
        -exp_m1(items as f64 * ln_1p(-buckets / m / fingerprints))
    }

    /// Whether the fingerprints of two filters have the same meaning.
    pub(super) fn compatible(&self, other: &Self) -> Result<(), Incompatible> {
        if self.bits() != other.bits() {
            return Err(Incompatible::Bits { expected: self.bits(), got: other.bits() });
        }
        let (expected, got) = (self.width, other.width);
        if expected == got { Ok(()) } else { Err(Incompatible::Cells { expected, got }) }
    }
}

const fn check_fingerprint(bits: u32, max: u32) -> Result<(), InvalidShape> {
    let min = MIN_FINGERPRINT_BITS as u64;
    InvalidShape::check_range("bits of a fingerprint", bits as u64, min, max as u64)
}

/// The widest fingerprints that digests can provide for this number of buckets.
const fn max_width(buckets: u64) -> u32 {
    let width = MAX_PLACES_LOG2 - buckets.next_power_of_two().trailing_zeros();
    if width < MAX_FINGERPRINT_BITS { width } else { MAX_FINGERPRINT_BITS }
}

/// The memory of the smallest filter with room for this many items, at any rate. The shortest
/// fingerprints may not give it, since fewer of them fit.
const fn least_bytes(items: u64) -> u64 {
    let (mut least, mut width) = (u64::MAX, MIN_FINGERPRINT_BITS);
    while width <= 8 {
        let words = words_for_buckets(buckets_for(items, width), width);
        least = if words < least { words } else { least };
        width += 1;
    }
    least * 8
}

/// The number of buckets that reaches the rate, if there is room in them: [`Shape::expected_rate`],
/// solved for an even number of buckets.
const fn buckets_for_rate(items: u64, rate: f64, width: u32) -> u64 {
    if items == 0 {
        return 1;
    }
    let one = -exp_m1(ln_1p_wide(-rate) / items as f64);
    let buckets = ceil(2.0 / one / ((1_u64 << width) - 1) as f64 * (1.0 - 1e-9));
    if buckets > 1 { even(buckets) } else { 1 }
}

words_for! {
    /// The number of words for `items` items at this rate: the `WORDS` of an
    /// [`ArrayCuckooFilter`](super::ArrayCuckooFilter).
    Shape
}

shape!(Shape, "CuckooFilter");
