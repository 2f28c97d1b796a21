//! Saves and opens ribbon filters and maps.

use super::Ribbon;
use super::map::{RawRibbonMap, Value};
use super::shape::{LastLayer, MAX_TIERS, Shape, Tier};
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::frozen::{MAX_ATTEMPTS, MAX_BITS, StoredArrangement};
use crate::sizing;
use crate::storage::Storage;
use core::marker::PhantomData;

/// The number of the family of maps in a header. That of filters is 13.
const MAP: u16 = 14;

/// The number of the kernels in a header: 64 rows in several layers.
const KERNELS: u16 = 14;

const FIELDS: usize = 7 + MAX_TIERS;

fn fields_of(shape: &Shape) -> [u64; FIELDS] {
    let Shape { items, bits, rounds, seed, plain, .. } = *shape;
    let [one, two, three, four] = shape.tiers.map(|tier| tier.starts);
    let depth = shape.depth.into();
    let (rows, plain_seed) = (plain.grid.rows(), plain.seed);
    [items, bits.into(), rounds.into(), seed, rows, plain_seed, depth, one, two, three, four]
}

fn shape_of(header: &Header) -> Result<Shape, InvalidBytes> {
    header.expect_kernels(KERNELS)?;
    let fields: [u64; FIELDS] = header.fields()?;
    let [items, bits, rounds, seed, rows, plain_seed, depth, ref starts @ ..] = fields;
    let (Ok(bits), Ok(rounds)) = (u32::try_from(bits), u32::try_from(rounds)) else {
        return Err(InvalidBytes::Inconsistent);
    };
    let depth = usize::try_from(depth).unwrap_or(usize::MAX);
    let Some((tiers, nothing)) = starts.split_at_checked(depth) else {
        return Err(InvalidBytes::Inconsistent);
    };
    let counts = (1..=MAX_BITS).contains(&bits) && rounds <= MAX_ATTEMPTS + 1;
    let sizes = rows <= sizing::MAX_BITS && tiers.iter().all(|starts| Tier::can_have(*starts));
    let empty = items > 0 || (depth == 0 && rows == 0);
    if !counts || !sizes || !empty || nothing.iter().any(|starts| *starts != 0) {
        return Err(InvalidBytes::Inconsistent);
    }
    let mut placed = [Tier::default(); MAX_TIERS];
    for (tier, starts) in placed.iter_mut().zip(tiers) {
        *tier = Tier::with_starts(*starts);
    }
    let plain = LastLayer::with_rows(rows, plain_seed);
    let shape = Shape::of_layers(items, bits, (rounds, seed), &placed[..depth], plain);
    if shape.words > sizing::MAX_BITS / 64 {
        return Err(InvalidBytes::Inconsistent);
    }
    Ok(shape)
}

impl StoredArrangement for Ribbon {
    const FAMILY: u16 = 13;
    const KERNELS: u16 = KERNELS;

    fn fields(shape: &Shape) -> impl AsRef<[u64]> {
        fields_of(shape)
    }

    fn restore(header: &Header) -> Result<Shape, InvalidBytes> {
        shape_of(header)
    }
}

impl<V: Value, S: Storage<Word = u64>> StoredCore for RawRibbonMap<V, S> {
    type Storage = S;
    type Plan = Shape;

    const FAMILY: u16 = MAP;

    fn header(&self, mark: Mark) -> Header {
        let fields = fields_of(&self.shape);
        Header::new(MAP, KERNELS, mark, self.shape.items(), &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.storage.words())
    }

    fn plan(header: &Header) -> Result<Shape, InvalidBytes> {
        let shape = shape_of(header)?;
        if shape.bits <= V::BITS { Ok(shape) } else { Err(InvalidBytes::Inconsistent) }
    }

    fn words(shape: &Shape) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        shape: Shape,
        _: &Header,
        take: &mut impl FnMut(u64) -> Result<S, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self { shape, storage, values: PhantomData })
    }
}
