//! A window filter as bytes, and back. What it needs to go on as if it had never stopped follows the
//! words of its lines.

use super::shape::{STATE, turn};
use super::{Shape, Window, WindowBloomFilter};
use crate::blocked;
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Parsed, Restored, Stored};
use crate::storage::StorageMut;
use alloc::vec::Vec;
use core::time::Duration;

/// The number of the family in a header.
const FAMILY: u16 = 7;

/// The lower half of the kernels' number in a header, for a window of insertions and for one of time:
/// bits of one line in each epoch. The upper half is the number of epochs.
const INSERTIONS: u16 = 7;
const TIME: u16 = 8;

/// A window of time in a header, which does not tell how long it is.
const SOME_TIME: Window = Window::Time(Duration::from_nanos(1));

fn kernels(shape: &Shape) -> u16 {
    let kernels = match shape.window() {
        Window::Insertions(_) => INSERTIONS,
        Window::Time(_) => TIME,
    };
    (shape.epochs() as u16) << 8 | kernels
}

/// The shape that a header tells, with [`SOME_TIME`] as its time.
fn restore(
    kernels: u16,
    items: u64,
    bits: u64,
    probes: u32,
) -> Option<Result<Shape, InvalidShape>> {
    let epochs = u32::from(kernels >> 8);
    let window = match kernels & 0xff {
        INSERTIONS => Window::Insertions(items),
        TIME => SOME_TIME,
        _ => return None,
    };
    if epochs < 2 {
        return None;
    }
    let bits_of_groups = 512 * u64::from(epochs);
    if !bits.is_multiple_of(bits_of_groups) {
        return Some(Err(InvalidShape::PartialLine { bits, probes }));
    }
    let epoch = blocked::Shape::with(turn(items, epochs), bits / bits_of_groups, 1, probes);
    Some(epoch.and_then(|epoch| Shape::of(window, items, epochs, epoch)))
}

/// The words that follow those of the lines.
struct State([u64; STATE as usize]);

impl State {
    fn of<T: ?Sized, H>(filter: &WindowBloomFilter<T, H>) -> Self {
        let time = match filter.shape.window() {
            Window::Insertions(_) => 0,
            Window::Time(time) => time.as_nanos() as u64,
        };
        let hand = &filter.hand;
        let told = u64::from(filter.now.is_some());
        let now = filter.now.unwrap_or(0);
        let (group, epoch) = (hand.group as u64, hand.epoch as u64);
        Self([group, epoch, hand.way, filter.insertions, time, told, now, 0])
    }

    /// The shape, with the time that the header does not tell.
    fn complete(&self, shape: Shape) -> Result<Shape, InvalidBytes> {
        let Self([.., time, _, _, _]) = *self;
        let window = match shape.window() {
            Window::Insertions(_) if time != 0 => return Err(InvalidBytes::Inconsistent),
            Window::Insertions(_) => return Ok(shape),
            Window::Time(_) => Window::Time(Duration::from_nanos(time)),
        };
        Ok(Shape::of(window, shape.items(), shape.epochs(), *shape.epoch())?)
    }

    fn restore<T: ?Sized, H>(
        &self,
        filter: &mut WindowBloomFilter<T, H>,
    ) -> Result<(), InvalidBytes> {
        let Self([group, epoch, way, insertions, _, told, now, nothing]) = *self;
        filter.hand = filter.hand.at(group, epoch, way).ok_or(InvalidBytes::Inconsistent)?;
        filter.insertions = insertions;
        filter.now = match (told, now, nothing) {
            (0, 0, 0) => None,
            (1, now, 0) => Some(now),
            _ => return Err(InvalidBytes::Inconsistent),
        };
        Ok(())
    }
}

impl<T: ?Sized, H: Stored> WindowBloomFilter<T, H> {
    /// The filter as bytes, with checksums: its words, where it stands in its window, and the latest
    /// time that it was told. The secret of a [`Keyed`](crate::Keyed) filter is not among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = format::header_of(FAMILY, kernels(&self.shape), &self.shape, &self.hasher);
        let (words, State(state)) = (self.words(), State::of(self));
        let len = words.len() + state.len();
        let mut bytes = Vec::with_capacity(format::HEADER + len * 8 + format::TRAILER);
        bytes.extend_from_slice(&header);
        bytes.extend(words.iter().chain(&state).flat_map(|word| word.to_le_bytes()));
        let checksum = format::payload_checksum(&header, &bytes[format::HEADER..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The filter that [`to_bytes`](Self::to_bytes) wrote, with the hasher it was made with. It goes
    /// on as if it had never stopped.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or
    /// [`InvalidBytes::Hasher`] if it was made with another seed or secret: it would answer `false`
    /// for every key it holds.
    pub fn from_bytes_with_hasher(bytes: &[u8], hasher: H) -> Result<Self, InvalidBytes> {
        let Parsed { shape, mark, payload } = format::parse_as::<Shape, H>(bytes, FAMILY, restore)?;
        if mark != hasher.mark() {
            return Err(InvalidBytes::Hasher);
        }
        let (chunks, _) = payload.as_chunks();
        let mut words = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
        let lines = words.len() - STATE as usize;
        let mut state = State([0; STATE as usize]);
        for (slot, word) in state.0.iter_mut().zip(words.clone().skip(lines)) {
            *slot = word;
        }
        let mut filter = Self::with(state.complete(shape)?, hasher)?;
        state.restore(&mut filter)?;
        for (slot, word) in filter.storage.words_mut().iter_mut().zip(&mut words) {
            *slot = word;
        }
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored> WindowBloomFilter<T, H> {
    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let mark = format::parse_as::<Shape, H>(bytes, FAMILY, restore)?.mark;
        let hasher = H::restore(mark).ok_or(InvalidBytes::Hasher)?;
        Self::from_bytes_with_hasher(bytes, hasher)
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{Restored, Stored, WindowBloomFilter};
    use crate::format::through_serde;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](WindowBloomFilter::to_bytes).
    impl<T: ?Sized, H: Stored> Serialize for WindowBloomFilter<T, H> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](WindowBloomFilter::from_bytes), with all its checks.
    impl<'de, T: ?Sized, H: Restored> Deserialize<'de> for WindowBloomFilter<T, H> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
