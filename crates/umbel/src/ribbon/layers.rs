//! All layers of a ribbon: each takes the keys that the previous one bumped.

use super::band::Total;
use super::parts::{Parts, SlabFull, distinct, has_many_copies};
use super::row::{Gatherable, remixed};
use super::shape::{LastLayer, MAX_PLAIN, MAX_TIERS, Shape, Tier};
use super::{parts, plain, tier};
use crate::error::InvalidShape;
use crate::frozen::{BuildError, MAX_ATTEMPTS, Stage, Work};
use crate::parts::gather;
use crate::sizing;
use crate::storage::{Allocate, Heap, StorageMut};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Up to this many entries, duplicates are always removed first.
const ALWAYS_SORTED: u64 = 1 << 13;

/// Why building failed.
#[derive(Debug)]
pub(super) enum Fault<C> {
    Build(BuildError),
    Conflict(C),
}

impl<C> From<SlabFull> for Fault<C> {
    fn from(SlabFull { bytes }: SlabFull) -> Self {
        InvalidShape::OutOfMemory { bytes }.into()
    }
}

impl<C> From<InvalidShape> for Fault<C> {
    fn from(shape: InvalidShape) -> Self {
        Self::Build(shape.into())
    }
}

/// The maximum number of bytes that building needs, from entries `E`.
pub(super) fn peak_bytes<E>(items: u64, bits: u32) -> u64 {
    let entry = size_of::<E>() as u64;
    // More than any filter has, and few enough to avoid overflow.
    if items > sizing::MAX_BITS {
        return u64::MAX;
    }
    let gathered = gather::bytes(items) / 8 * entry;
    let last = plain::peak_bytes(items.min(MAX_PLAIN.max(items / 4096)), entry, bits);
    if items <= MAX_PLAIN {
        return gathered + last;
    }
    let tier = Tier::for_items(items);
    let all = items * entry;
    // Memory holds the entries twice while they are sorted into parts, and then once, together with
    // the first layer. The layers below need less.
    let sorting = all + parts::peak_bytes(&tier, entry);
    let building = tier::peak_bytes(&tier, items, entry, bits);
    gathered.max(all + sorting.max(building)) + last
}

/// Builds the shape and the words for these entries, with this many bits each.
pub(super) fn build<E: Gatherable>(
    pieces: Vec<Vec<E>>,
    bits: u32,
    work: &Work<'_>,
) -> Result<(Shape, Heap), Fault<E::Conflict>> {
    let needed = len(&pieces).saturating_mul(bits.into());
    if needed > sizing::MAX_BITS {
        return Err(InvalidShape::TooLarge { bits: needed, max: sizing::MAX_BITS }.into());
    }
    match bits {
        ..=8 => build_with_totals::<E, u8>(pieces, bits, work),
        9..=16 => build_with_totals::<E, u16>(pieces, bits, work),
        _ => build_with_totals::<E, u32>(pieces, bits, work),
    }
}

fn build_with_totals<E: Gatherable, T: Total>(
    mut pieces: Vec<Vec<E>>,
    bits: u32,
    work: &Work<'_>,
) -> Result<(Shape, Heap), Fault<E::Conflict>> {
    let mut rounds = 0;
    if work.seed != 0 {
        remix(&mut pieces, work.seed);
        rounds += 1;
    }
    for _ in 0..MAX_ATTEMPTS {
        match Layers::build::<E, T>(pieces, bits, work)? {
            Attempt::Built(layers) => return Ok(layers.assemble(bits, rounds, work.seed)?),
            Attempt::Crowded(back) => pieces = Vec::from([all_distinct(back)?]),
        }
        remix(&mut pieces, work.seed);
        rounds += 1;
    }
    Err(Fault::Build(BuildError::Attempts { attempts: MAX_ATTEMPTS }))
}

/// Mixes all hashes differently.
fn remix<E: Gatherable>(pieces: &mut [Vec<E>], seed: u64) {
    for entry in pieces.iter_mut().flatten() {
        *entry = entry.with_hash(remixed(entry.hash(), seed));
    }
}

/// All entries without duplicates, if no two of them conflict.
fn all_distinct<E: Gatherable>(pieces: Vec<Vec<E>>) -> Result<Vec<E>, Fault<E::Conflict>> {
    let all = distinct(pieces)?;
    let conflict = all.windows(2).find_map(|two| two[0].conflict(two[1]));
    conflict.map_or(Ok(all), |conflict| Err(Fault::Conflict(conflict)))
}

fn len<E>(pieces: &[Vec<E>]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// The result of one attempt.
enum Attempt<E> {
    Built(Layers),
    /// Far more keys would be bumped than expected: the hashes are not well mixed. Returns the
    /// entries.
    Crowded(Vec<Vec<E>>),
}

/// The layers built so far, and their words.
struct Layers {
    items: u64,
    tiers: Vec<(Tier, Box<[u64]>, Vec<u64>)>,
    plain: (LastLayer, Vec<u64>),
}

impl Layers {
    fn build<E: Gatherable, T: Total>(
        mut pieces: Vec<Vec<E>>,
        bits: u32,
        work: &Work<'_>,
    ) -> Result<Attempt<E>, Fault<E::Conflict>> {
        if len(&pieces) <= ALWAYS_SORTED || has_many_copies(&pieces) {
            pieces = Vec::from([all_distinct(pieces)?]);
        }
        let total = len(&pieces);
        work.tell(Stage::Solving, 0, Some(total));
        let mut items = total;
        let mut tiers = Vec::new();
        let mut first = None;
        while len(&pieces) > MAX_PLAIN && tiers.len() < MAX_TIERS {
            let tier = Tier::for_items(len(&pieces));
            let parts = Parts::new(pieces, tier, work)?;
            let built = tier::build::<E, T>(&parts, bits, total, work)?;
            if built.outcomes.iter().any(|outcome| outcome.crowded) {
                return Ok(Attempt::Crowded(first.unwrap_or(parts).into_pieces()));
            }
            // The first layer has all keys: its entries are kept in case another attempt is needed.
            first.get_or_insert(parts);
            items -= built.outcomes.iter().map(|outcome| outcome.copies).sum::<u64>();
            tiers.push((tier, built.words, built.thresholds));
            pieces = built.outcomes.into_iter().map(|outcome| outcome.bumped).collect();
        }
        let bumped = len(&pieces);
        let last = all_distinct(pieces)?;
        items -= bumped - last.len() as u64;
        let Some(plain) = plain::build::<E, T>(&last, bits, work.seed)? else {
            return Err(Fault::Build(BuildError::Attempts { attempts: MAX_ATTEMPTS }));
        };
        work.tell(Stage::Solving, total, Some(total));
        Ok(Attempt::Built(Self { items, tiers, plain }))
    }

    /// Concatenates all words: the columns of all layers, then the thresholds of all layers.
    fn assemble(self, bits: u32, rounds: u32, seed: u64) -> Result<(Shape, Heap), InvalidShape> {
        let (plain, plain_words) = self.plain;
        let tiers: Vec<Tier> = self.tiers.iter().map(|(tier, ..)| *tier).collect();
        let shape = Shape::of_layers(self.items, bits, (rounds, seed), &tiers, plain);
        let mut heap = Heap::zeroed(shape.words)?;
        let words = heap.words_mut();
        for (placed, (_, columns, thresholds)) in shape.tiers().iter().zip(self.tiers) {
            words[placed.grid.base..][..columns.len()].copy_from_slice(&columns);
            words[placed.thresholds..][..thresholds.len()].copy_from_slice(&thresholds);
        }
        words[shape.plain.grid.base..][..plain_words.len()].copy_from_slice(&plain_words);
        Ok((shape, heap))
    }
}
