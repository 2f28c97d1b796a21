//! Where the bits of a key are, and what is done with them: one key, and many.

use super::shape::Shape;
use crate::bloom::BATCH;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, ring};
use crate::layout::{Layout, StoredLayout};
use crate::parts::bits::{SetBit, Word};
use crate::parts::prefetch::{prefetch, prefetch_to_write};
use crate::simd::{self, Block, Isa, Job, Portable, block_has, for_each_of_block};

/// The layout of a split-block Bloom filter: a bit of a key in each eighth of one block.
///
/// With z blocks, a key with digest d is in block (d >> 32) · z / 2^32. Where in the block is
/// decided by the lower half of d: `docs/hashing.md`, kernels 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks;

/// The block of one key, by number, and what tells its bits there.
#[derive(Clone, Copy)]
struct Place {
    block: usize,
    x: u32,
}

#[inline(always)]
fn place(digest: Digest, count: u64) -> Place {
    // No overflow: there are fewer than 2^26 blocks.
    let block = ((digest.bits() >> 32) * count) >> 32;
    Place { block: block as usize, x: digest.bits() as u32 }
}

/// Looks keys up.
#[derive(Clone, Copy)]
struct LookUp<'a, I, W> {
    isa: I,
    blocks: &'a [Block<W>],
    /// How many blocks there are; `blocks` has as many.
    count: u64,
}

impl<'a, I: Isa, W: Word> Touch for LookUp<'a, I, W> {
    type Staged = (u32, &'a Block<W>);

    #[inline(always)]
    fn stage(&self, digest: Digest) -> Self::Staged {
        let Place { block, x } = place(digest, self.count);
        prefetch(self.blocks, block);
        (x, &self.blocks[block])
    }

    #[inline(always)]
    fn answer(&mut self, (x, block): Self::Staged) -> bool {
        self.isa.block_has(block, x)
    }
}

/// A batch of look-ups.
struct LookUps<'a, W, A, F> {
    blocks: &'a [Block<W>],
    count: u64,
    keys: &'a [A],
    digest: F,
    found: &'a mut [bool],
}

impl<W: Word, A, F: Fn(&A) -> Digest> Job for LookUps<'_, W, A, F> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { blocks, count, keys, digest, found } = self;
        ring(LookUp { isa, blocks, count }, keys, digest, found);
    }
}

/// Inserts keys into blocks that nobody else can be changing.
struct InsertPlain<'a, I> {
    isa: I,
    blocks: &'a mut [Block<u64>],
    count: u64,
}

impl<I: Isa> Touch for InsertPlain<'_, I> {
    type Staged = Place;

    #[inline(always)]
    fn stage(&self, digest: Digest) -> Place {
        let place = place(digest, self.count);
        prefetch(self.blocks, place.block);
        place
    }

    #[inline(always)]
    fn answer(&mut self, Place { block, x }: Place) -> bool {
        self.isa.block_set(&mut self.blocks[block], x)
    }
}

/// Inserts keys into words that other threads may be changing.
struct InsertShared<V> {
    words: V,
    count: u64,
}

impl<V: SetBit> Touch for InsertShared<V> {
    type Staged = Place;

    #[inline(always)]
    fn stage(&self, digest: Digest) -> Place {
        let place = place(digest, self.count);
        prefetch_to_write(self.words.words(), place.block * 4);
        place
    }

    /// Sets the bits that are not set already: those who meet only set bits write nothing.
    #[inline(always)]
    fn answer(&mut self, Place { block, x }: Place) -> bool {
        let mut fresh = false;
        for_each_of_block(x, |word, mask| {
            let word = block * 4 + word;
            if self.words.words()[word].load() & mask != mask {
                fresh |= self.words.set_in(word, mask) != mask;
            }
        });
        fresh
    }
}

/// A batch of inserts into blocks that nobody else can be changing.
struct Inserts<'a, A, F> {
    blocks: &'a mut [Block<u64>],
    count: u64,
    keys: &'a [A],
    digest: F,
    fresh: &'a mut [bool],
}

impl<A, F: Fn(&A) -> Digest> Job for Inserts<'_, A, F> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { blocks, count, keys, digest, fresh } = self;
        ring(InsertPlain { isa, blocks, count }, keys, digest, fresh);
    }
}

/// The mean, over these blocks, of the share of absent keys that are found there.
pub(super) fn mean_rate(blocks: impl ExactSizeIterator<Item = Block<u64>>) -> f64 {
    let count = blocks.len() as f64;
    let share = |eighth: u64| f64::from((eighth as u32).count_ones()) / 32.0;
    let rate_of = |block: Block<u64>| -> f64 {
        block.into_iter().map(|word| share(word) * share(word >> 32)).product()
    };
    blocks.map(rate_of).sum::<f64>() / count
}

impl Layout for Blocks {
    type Digest = Digest;
    type Shape = Shape;

    fn admit(&self, _: &Shape) -> Result<(), InvalidShape> {
        Ok(())
    }

    fn tag(&self) -> u64 {
        4
    }

    #[inline(always)]
    fn contains<W: Word>(&self, shape: &Shape, words: &[W], digest: Digest) -> bool {
        let Place { block, x } = place(digest, shape.blocks());
        block_has(&words.as_chunks().0[block], x)
    }

    #[inline]
    fn contains_batch<W: Word, A>(
        &self,
        shape: &Shape,
        words: &[W],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        let (blocks, count) = (words.as_chunks().0, shape.blocks());
        simd::dispatch(LookUps { blocks, count, keys, digest, found });
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, shape: &Shape, mut words: V, digest: Digest) -> bool {
        let count = shape.blocks();
        if let Some(plain) = words.plain_mut() {
            let (blocks, _) = plain.as_chunks_mut();
            return InsertPlain { isa: Portable, blocks, count }.answer(place(digest, count));
        }
        let mut shared = InsertShared { words, count };
        let place = shared.stage(digest);
        shared.answer(place)
    }

    #[inline]
    fn insert_batch<V: SetBit, A>(
        &self,
        shape: &Shape,
        mut words: V,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        let count = shape.blocks();
        if let Some(plain) = words.plain_mut() {
            let (blocks, _) = plain.as_chunks_mut();
            simd::dispatch(Inserts { blocks, count, keys, digest, fresh });
        } else {
            ring(InsertShared { words, count }, keys, digest, fresh);
        }
    }

    #[inline]
    fn extend_batch<V: SetBit>(&self, shape: &Shape, words: V, digests: &[Digest]) {
        let mut fresh = [false; BATCH];
        self.insert_batch(shape, words, digests, |digest| *digest, &mut fresh[..digests.len()]);
    }

    fn rate<W: Word>(&self, _: &Shape, words: &[W]) -> f64 {
        let (blocks, _) = words.as_chunks::<4>();
        mean_rate(blocks.iter().map(|block| block.each_ref().map(Word::load)))
    }
}

impl StoredLayout for Blocks {
    const FAMILY: u16 = 3;

    fn kernels(_: &Shape) -> u16 {
        4
    }

    fn restore(
        kernels: u16,
        items: u64,
        bits: u64,
        probes: u32,
    ) -> Option<Result<Shape, InvalidShape>> {
        (kernels == 4).then(|| Shape::with_bits(items, bits, probes))
    }

    fn has_stray_bits<W: Word>(_: &Shape, _: &[W]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn blocks_are_in_the_order_of_digests_and_the_last_one_is_reached() {
        for count in [1_u64, 2, 3, 1_000, (1 << 26) - 1] {
            let block = |digest: u64| place(Digest::new(digest), count).block as u64;
            assert_eq!((block(0), block(u64::MAX)), (0, count - 1));
            // The first digest of the last block, and the one before.
            let first = ((u128::from(count - 1) << 32).div_ceil(u128::from(count)) as u64) << 32;
            assert_eq!(block(first), count - 1);
            assert!(count == 1 || block(first - 1) == count - 2);
        }
    }

    #[test]
    fn the_rate_is_the_mean_over_blocks_of_the_shares_of_eighths() {
        let shape = Shape::with(1, 2).unwrap();
        let mut words = vec![u64::MAX; 8];
        assert_eq!(Blocks.rate(&shape, &words), 1.0);
        words[7] = u64::MAX >> 16;
        assert_eq!(Blocks.rate(&shape, &words), 0.75);
        words[4] >>= 1;
        words[0] = u64::from(u32::MAX);
        assert_eq!(Blocks.rate(&shape, &words), 0.5 * 0.5 * 31.0 / 32.0);
    }

    #[test]
    fn a_shared_insert_says_what_a_plain_one_says() {
        use crate::parts::bits::AtomicU64;
        let shape = Shape::with(1, 3).unwrap();
        let mut plain = vec![0_u64; 12];
        let shared: vec::Vec<AtomicU64> = (0..12).map(|_| AtomicU64::new(0)).collect();
        for key in 0..100 {
            let digest = Digest::mixed(key % 60);
            let fresh = Blocks.insert(&shape, &mut plain[..], digest);
            assert_eq!(Blocks.insert(&shape, &shared[..], digest), fresh);
            assert!(Blocks.contains(&shape, &plain, digest));
            assert!(!Blocks.insert(&shape, &mut plain[..], digest));
        }
        assert!(shared.iter().map(Word::load).eq(plain));
    }
}
