//! Folding: halves a filter without the keys.

use super::Blocks;
use super::blocks::mean_rate;
use crate::bloom::RawBloom;
use crate::edge::for_core_and_filter;
use crate::error::InvalidShape;
use crate::simd::Block;
use crate::sizing::Rate;
use crate::storage::{Allocate, Heap, Storage, StorageMut};

for_core_and_filter! { impl[] RawBloom<Heap, Blocks> {
    /// Halves the number of blocks and keeps the keys. The result is bit for bit the filter that
    /// the same insertions into half as many blocks would give. Half of the memory is freed.
    ///
    /// With half as many blocks, the block number of a key is half the old number, rounded down,
    /// and its bits in the block are the same. So blocks 0 and 1 become one, then blocks 2 and 3,
    /// and so on. The capacity is halved too: for that number of keys the rate is unchanged.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::NotAMultiple`] if the number of blocks is odd, which includes 1.
    /// [`InvalidShape::OutOfMemory`] if there is no room for both sizes at once. Nothing is changed
    /// then.
    ///
    /// ```
    /// use umbel::SplitBlockBloomFilter;
    ///
    /// let mut large = SplitBlockBloomFilter::<str>::new(2_000, 0.01);
    /// let mut small = SplitBlockBloomFilter::<str>::new(1_000, 0.01);
    /// large.insert("umbel");
    /// small.insert("umbel");
    /// assert!(large != small);
    /// large.fold()?;
    /// assert!(large == small);
    /// # Ok::<(), umbel::InvalidShape>(())
    /// ```
    pub fn fold(&mut self) -> Result<(), InvalidShape> {
        self.fold_times(1)
    }

    /// Folds as often as possible while the false positive rate stays at most `err_rate`, and
    /// returns the number of folds. For a filter that was made too large because the number of keys
    /// was unknown.
    ///
    /// Returns 0 if nothing was changed: a fold would exceed the rate, or the number of blocks is
    /// odd.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or there is no room
    /// for both sizes at once. Nothing is changed then.
    ///
    /// ```
    /// use umbel::SplitBlockBloomFilter;
    ///
    /// let mut column = SplitBlockBloomFilter::<i64>::new(1_000_000, 0.01); // who knows?
    /// column.extend(0..5_000_i64);
    /// assert_eq!((column.bytes(), column.fold_to_rate(0.01)?), (2 << 20, 8));
    /// assert_eq!(column.bytes(), 8 << 10);
    /// assert!(column.expected_rate() <= 0.01 && (0..5_000).all(|key| column.contains(&key)));
    /// # Ok::<(), umbel::InvalidShape>(())
    /// ```
    pub fn fold_to_rate(&mut self, err_rate: f64) -> Result<u32, InvalidShape> {
        let rate = Rate::new(err_rate)?.get();
        let most = self.shape.blocks().trailing_zeros();
        // A fold only adds bits to a block, so each fold raises the rate.
        let too_many = |times: &u32| mean_rate(folds(self.storage.words(), *times)) > rate;
        let times = (1..=most).find(too_many).unwrap_or(most + 1) - 1;
        if times > 0 {
            self.fold_times(times)?;
        }
        Ok(times)
    }
} }

impl RawBloom<Heap, Blocks> {
    fn fold_times(&mut self, times: u32) -> Result<(), InvalidShape> {
        let shape = self.shape.folded(times)?;
        let mut storage = Heap::zeroed(shape.words())?;
        let (blocks, _) = storage.words_mut().as_chunks_mut();
        for (block, fold) in blocks.iter_mut().zip(folds(self.storage.words(), times)) {
            *block = fold;
        }
        (self.shape, self.storage) = (shape, storage);
        Ok(())
    }
}

/// The blocks after `times` folds: every 2^`times` of them combined.
fn folds(words: &[u64], times: u32) -> impl ExactSizeIterator<Item = Block<u64>> {
    let (blocks, _) = words.as_chunks::<4>();
    blocks.chunks_exact(1 << times).map(|neighbours| {
        let mut fold = [0; 4];
        for block in neighbours {
            for (word, other) in fold.iter_mut().zip(block) {
                *word |= other;
            }
        }
        fold
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::{Plain, Shape, SplitBlockBloomFilter};
    use std::vec::Vec;

    fn filled(blocks: u64, keys: u64) -> SplitBlockBloomFilter<u64> {
        let shape = Shape::with(keys, blocks).unwrap();
        let mut filter = SplitBlockBloomFilter::with(shape, Plain).unwrap();
        filter.extend(0..keys);
        filter
    }

    #[test]
    fn a_fold_is_the_filter_of_half_the_size() {
        for blocks in [2, 4, 6, 10, 64, 1_000] {
            for keys in [0, 1, 100, 5_000] {
                let mut filter = filled(blocks, keys);
                filter.fold().unwrap();
                assert!(filter == filled(blocks / 2, keys), "{blocks} {keys}");
                assert_eq!(filter.words().len() as u64, blocks * 2);
                assert_eq!(filter.shape().items(), keys / 2);
            }
        }
    }

    #[test]
    fn odd_numbers_of_blocks_are_refused_and_left_alone() {
        for blocks in [1, 3, 25, 1_001] {
            let mut filter = filled(blocks, 100);
            assert_eq!(
                filter.fold(),
                Err(InvalidShape::NotAMultiple { what: "blocks", got: blocks, of: 2 })
            );
            assert_eq!(filter.fold_to_rate(0.999), Ok(0));
            assert!(filter == filled(blocks, 100) && filter.shape().items() == 100);
        }
    }

    #[test]
    fn folding_to_a_rate_goes_as_far_as_the_rate_and_no_further() {
        for blocks in [1_024, 1_536, 12, 2_000] {
            for keys in [0, 10, 1_000, 30_000] {
                for rate in [0.5, 0.01, 1e-4] {
                    let mut filter = filled(blocks, keys);
                    let before = filter.expected_rate();
                    let times = filter.fold_to_rate(rate).unwrap();
                    assert_eq!(filter.shape().blocks(), blocks >> times);
                    assert!(filter == filled(blocks >> times, keys));
                    assert!(filter.expected_rate() <= rate.max(before));
                    assert!((0..keys).all(|key| filter.contains(&key)));
                    if filter.fold().is_ok() {
                        assert!(filter.expected_rate() > rate, "{blocks} {keys} {rate} {times}");
                    }
                }
            }
        }
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        let mut filter = filled(64, 10);
        for rate in [0.0, 1.0, -1.0, f64::NAN, 1e-300] {
            assert!(filter.fold_to_rate(rate).is_err());
        }
        assert!(filter == filled(64, 10));
    }

    #[test]
    fn a_key_moves_to_the_block_of_half_the_number() {
        let words: Vec<u64> = (0..16).map(|word| 1 << word).collect();
        let folded: Vec<[u64; 4]> = folds(&words, 1).collect();
        assert_eq!(folded, [[0x11, 0x22, 0x44, 0x88], [0x1100, 0x2200, 0x4400, 0x8800]]);
        assert_eq!(folds(&words, 2).len(), 1);
    }
}
