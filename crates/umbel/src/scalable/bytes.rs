//! A scalable Bloom filter as bytes, and back.
//!
//! ```text
//!     header | rate, growth, tightening | fresh, lines, lines a key, probes a line | words | checksum
//!                                         of each level                              of each level
//! ```

use super::{Level, MAX_LEVELS, ScalableBloomFilter, Shape};
use crate::blocked;
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Restored, Stored};
use alloc::vec::Vec;

/// The number of the family in a header, and of its kernels: lines of several levels.
const FAMILY: u16 = 5;
const KERNELS: u16 = 6;

/// The bytes of what is said of the filter, and of each level, before the words.
const PLAN: u64 = 3 * 8;
const LEVEL: u64 = 4 * 8;

/// What a header and a payload say: all of it is checked, and nothing is allocated but a list of levels.
struct Parsed<'a> {
    shape: Shape,
    mark: u64,
    /// The plan of each level, and how many fresh keys it has.
    levels: Vec<(blocked::Shape, u64)>,
    words: &'a [u8],
}

/// Takes a number from the front.
fn take(bytes: &mut &[u8]) -> Result<u64, InvalidBytes> {
    let (number, rest) = bytes.split_first_chunk().ok_or(InvalidBytes::Inconsistent)?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*number))
}

/// The plan of level `number`, and its fresh keys, from what comes next.
fn take_level(
    bytes: &mut &[u8],
    shape: &Shape,
    number: u32,
    last: bool,
) -> Result<(blocked::Shape, u64), InvalidBytes> {
    let mut next = || take(bytes);
    let (fresh, lines, lines_per_key, probes) = (next()?, next()?, next()?, next()?);
    let small = |number: u64| u32::try_from(number).map_err(|_| InvalidBytes::Inconsistent);
    let items = shape.level_items(number)?;
    let plan = blocked::Shape::with(items, lines, small(lines_per_key)?, small(probes)?)?;
    let capacity = shape.level_capacity(number);
    // All but the newest are full, and a new one is made for a key.
    let counts =
        if last { fresh <= capacity && (number == 0 || fresh > 0) } else { fresh == capacity };
    if !counts || plan.expected_rate(items) > shape.level_rate(number) {
        return Err(InvalidBytes::Inconsistent);
    }
    Ok((plan, fresh))
}

fn parse<H: Stored>(bytes: &[u8]) -> Result<Parsed<'_>, InvalidBytes> {
    let opened = format::open::<H>(bytes, FAMILY)?;
    if opened.kernels != KERNELS {
        return Err(InvalidBytes::Kernels { got: opened.kernels });
    }
    let [capacity, bits, count, _] = opened.numbers;
    let mut payload = opened.payload()?;
    let count = u32::try_from(count).ok().filter(|count| (1..=MAX_LEVELS).contains(count));
    let count = count.ok_or(InvalidShape::TooManyLevels { max: MAX_LEVELS })?;
    let mut number = || take(&mut payload).map(f64::from_bits);
    let shape = Shape::with(capacity, number()?, number()?, number()?)?;
    let mut levels = Vec::new();
    for number in 0..count {
        levels.push(take_level(&mut payload, &shape, number, number + 1 == count)?);
    }
    // At most 64 levels of at most 2^48 bits.
    let total: u64 = levels.iter().map(|(plan, _)| plan.bits()).sum();
    if total != bits || total / 8 != payload.len() as u64 {
        return Err(InvalidBytes::Inconsistent);
    }
    Ok(Parsed { shape, mark: opened.mark, levels, words: payload })
}

impl<T: ?Sized, H: Stored> ScalableBloomFilter<T, H> {
    /// The filter as bytes, with checksums. The secret of a [`Keyed`](crate::Keyed) filter is not
    /// among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (shape, count) = (&self.shape, self.levels.len() as u64);
        let length = PLAN + count * LEVEL + self.bytes();
        let numbers = [shape.capacity(), self.bytes() * 8, count, length];
        let header = format::header_with(FAMILY, KERNELS, &self.hasher, numbers);
        let mut bytes = Vec::with_capacity(format::HEADER + length as usize + format::TRAILER);
        bytes.extend_from_slice(&header);
        let plan = [shape.rate(), shape.growth(), shape.tightening()];
        bytes.extend(plan.iter().flat_map(|number| number.to_le_bytes()));
        for level in &self.levels {
            let plan = level.shape();
            let small = [plan.lines_per_key(), plan.probes_per_line()].map(u64::from);
            let numbers = [level.fresh(), plan.lines(), small[0], small[1]];
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        for level in &self.levels {
            bytes.extend(level.words().iter().flat_map(|word| word.to_le_bytes()));
        }
        let checksum = format::payload_checksum(&header, &bytes[format::HEADER..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The filter that [`to_bytes`](Self::to_bytes) wrote, with the hasher it was made with. It goes on
    /// as if it had never been away.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or
    /// [`InvalidBytes::Hasher`] if it was made with another seed or secret: it would answer `false`
    /// for every key it holds.
    pub fn from_bytes_with_hasher(bytes: &[u8], hasher: H) -> Result<Self, InvalidBytes> {
        let Parsed { shape, mark, levels, words } = parse::<H>(bytes)?;
        if mark != hasher.mark() {
            return Err(InvalidBytes::Hasher);
        }
        let (mut chunks, mut filter) = (words.as_chunks().0, Self::without_levels(shape, hasher));
        for (number, (plan, fresh)) in (0..).zip(levels) {
            let mut level = Level::planned(&shape, number, plan)?;
            let (here, later) = chunks.split_at(level.words().len());
            level.restore(fresh, here.iter().map(|word| u64::from_le_bytes(*word)));
            filter.levels.push(level);
            chunks = later;
        }
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored> ScalableBloomFilter<T, H> {
    /// The filter that [`to_bytes`](Self::to_bytes) wrote. It goes on as if it had never been away.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let hasher = H::restore(parse::<H>(bytes)?.mark).ok_or(InvalidBytes::Hasher)?;
        Self::from_bytes_with_hasher(bytes, hasher)
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{Restored, ScalableBloomFilter, Stored};
    use crate::format::through_serde;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](ScalableBloomFilter::to_bytes).
    impl<T: ?Sized, H: Stored> Serialize for ScalableBloomFilter<T, H> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](ScalableBloomFilter::from_bytes), with all its checks.
    impl<'de, T: ?Sized, H: Restored> Deserialize<'de> for ScalableBloomFilter<T, H> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
