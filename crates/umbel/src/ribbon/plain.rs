//! The layer that bumps no keys: it has a few rows more than keys, and tries another seed if
//! banding fails.

use super::band::{Band, Moving, Total, total_bytes};
use super::parts::SlabFull;
use super::row::{Equation, Gatherable, mask, remixed};
use super::shape::{Grid, LastLayer};
use crate::frozen::MAX_ATTEMPTS;
use alloc::vec::Vec;

/// The maximum number of bytes that are needed to build the layer of this many entries of this
/// size.
pub(super) const fn peak_bytes(items: u64, entry: u64, bits: u32) -> u64 {
    let rows = LastLayer::rows(items, MAX_ATTEMPTS).next_multiple_of(64);
    let words = rows / 64 * bits as u64;
    items.saturating_mul(2 * entry) + rows * (8 + total_bytes(bits)) + words * 3 * 8
}

/// Builds the layer and its words, or returns `None` if no seed leads to a solution.
pub(super) fn build<E: Gatherable, T: Total>(
    entries: &[E],
    bits: u32,
    seed: u64,
) -> Result<Option<(LastLayer, Vec<u64>)>, SlabFull> {
    for attempt in 0..MAX_ATTEMPTS {
        let rows = LastLayer::rows(entries.len() as u64, attempt);
        let plain = LastLayer::with_rows(rows, remixed(seed, u64::from(attempt)));
        if let Some(band) = banded::<E, T>(entries, &plain, rows, bits)? {
            return Ok(Some((plain, columns(&band, &plain.grid, bits))));
        }
    }
    Ok(None)
}

/// The band of all equations, if they do not contradict each other.
fn banded<E: Gatherable, T: Total>(
    entries: &[E],
    plain: &LastLayer,
    rows: u64,
    bits: u32,
) -> Result<Option<Band<T>>, SlabFull> {
    let mut hashed = Vec::new();
    hashed.try_reserve_exact(entries.len()).map_err(|_| SlabFull::of::<E>(entries.len()))?;
    hashed.extend(entries.iter().map(|entry| entry.with_hash(plain.hash(entry.hash()))));
    hashed.sort_unstable();
    // Whole blocks, for back substitution.
    let rows = rows.next_multiple_of(64) as usize;
    let mut band = Band::free(rows).ok_or(SlabFull::of::<(u64, T)>(rows))?;
    for entry in hashed.iter().rev() {
        let equation = Equation::of(entry.hash());
        let total = T::new(entry.result(equation, mask(bits)));
        let row = plain.row(entry.hash()) as usize;
        if band.rows().insert(Moving::new(row, plain.coefficients(equation), total)).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(band))
}

/// The columns of the rows: whole blocks, and the remaining rows.
fn columns<T: Total>(band: &Band<T>, grid: &Grid, bits: u32) -> Vec<u64> {
    let rows = band.coefficients.len();
    let mut words = alloc::vec![0; rows / 64 * bits as usize];
    band.solve(0..rows, bits, &mut words);
    let rest = words.split_off(grid.blocks * bits as usize);
    words.resize(grid.words(bits), 0);
    let packed = &mut words[grid.blocks * bits as usize..];
    for (column, &bits) in rest.iter().enumerate() {
        let bit = column * grid.rest as usize;
        let (word, shift) = (bit / 64, bit % 64);
        packed[word] |= bits << shift;
        if shift + grid.rest as usize > 64 {
            packed[word + 1] |= bits >> (64 - shift);
        }
    }
    words
}
