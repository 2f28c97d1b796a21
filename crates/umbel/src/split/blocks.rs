//! The positions of the bits of a key, and the operations on them, for one key and for batches.

use super::shape::Shape;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, batch, extend, fetch, fetch_and_answer};
use crate::layout::{Layout, StoredLayout};
use crate::parts::bits::{SetBit, Word};
use crate::parts::prefetch::prefetch_to_write;
use crate::simd::{self, Block, Choice, Isa, Scalar, for_each_of_block};

/// The layout of a split-block Bloom filter: a key has one bit in each eighth of one block.
///
/// With z blocks, a key with digest d is in block (d >> 32) · z / 2^32. The lower half of d
/// determines the positions in the block: `docs/hashing.md`, kernels 4.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    choice: Choice,
}

impl Default for Blocks {
    /// With the best path that the processor supports: see [`simd`](crate::simd).
    fn default() -> Self {
        Self { choice: Choice::now() }
    }
}

/// The words of a block.
const BLOCK: usize = 4;

/// The block number of a key.
#[inline(always)]
fn number(digest: Digest, count: usize) -> usize {
    // No overflow: there are fewer than 2^26 blocks.
    (((digest.bits() >> 32) * count as u64) >> 32) as usize
}

/// The value that determines the bits of a key in its block.
#[inline(always)]
const fn half(digest: Digest) -> u32 {
    digest.bits() as u32
}

/// Looks keys up.
struct BlockLookUp<'a, W> {
    blocks: &'a [Block<W>],
}

impl<W: Word> Touch for BlockLookUp<'_, W> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        fetch::<_, AHEAD>(self.blocks, number(digest, self.blocks.len()));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        isa.block_has(&self.blocks[number(digest, self.blocks.len())], half(digest))
    }
}

/// Inserts keys.
struct BlockInsert<V> {
    words: V,
}

impl<V: SetBit> BlockInsert<V> {
    /// The block number of a key.
    #[inline(always)]
    fn number(&self, digest: Digest) -> usize {
        number(digest, self.words.words().len() / BLOCK)
    }

    /// Tests first: a block that has all bits of the key is not written.
    #[inline(always)]
    fn set_shared(&mut self, number: usize, x: u32) -> bool {
        let (blocks, _) = self.words.words().as_chunks();
        if Scalar.block_has(&blocks[number], x) {
            return false;
        }
        let mut fresh = false;
        for_each_of_block(x, |word, mask| {
            fresh |= self.words.set_in(number * BLOCK + word, mask) != mask;
        });
        fresh
    }
}

impl<V: SetBit> Touch for BlockInsert<V> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.words.words())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        if V::SHARED {
            prefetch_to_write(self.words.words(), self.number(digest) * BLOCK);
        } else {
            fetch::<_, AHEAD>(self.words.words(), self.number(digest) * BLOCK);
        }
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        let (number, x) = (self.number(digest), half(digest));
        match self.words.plain_mut() {
            Some(plain) => isa.block_set(&mut plain.as_chunks_mut().0[number], x),
            None => self.set_shared(number, x),
        }
    }
}

/// The mean over these blocks of their false positive rates.
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

    fn admit(&mut self, _: &Shape) -> Result<(), InvalidShape> {
        Ok(())
    }

    fn tag(&self) -> u64 {
        4
    }

    #[inline(always)]
    fn contains<W: Word>(&self, _: &Shape, words: &[W], digest: Digest) -> bool {
        let (blocks, _) = words.as_chunks();
        simd::block_has(self.choice, &blocks[number(digest, blocks.len())], half(digest))
    }

    #[inline]
    fn contains_batch<W: Word, A>(
        &self,
        _: &Shape,
        words: &[W],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        batch(self.choice, BlockLookUp { blocks: words.as_chunks().0 }, keys, digest, found);
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, _: &Shape, words: V, digest: Digest) -> bool {
        if V::SHARED {
            fetch_and_answer(BlockInsert { words }, digest)
        } else {
            BlockInsert { words }.answer(Scalar, digest)
        }
    }

    #[inline]
    fn insert_batch<V: SetBit, A>(
        &self,
        _: &Shape,
        words: V,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        batch(self.choice, BlockInsert { words }, keys, digest, fresh);
    }

    #[inline]
    fn extend<V: SetBit>(&self, _: &Shape, words: V, digests: impl Iterator<Item = Digest>) {
        extend(self.choice, BlockInsert { words }, digests);
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
            let block = |digest: u64| number(Digest::new(digest), count as usize) as u64;
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
        assert_eq!(Blocks::default().rate(&shape, &words), 1.0);
        words[7] = u64::MAX >> 16;
        assert_eq!(Blocks::default().rate(&shape, &words), 0.75);
        words[4] >>= 1;
        words[0] = u64::from(u32::MAX);
        assert_eq!(Blocks::default().rate(&shape, &words), 0.5 * 0.5 * 31.0 / 32.0);
    }

    #[test]
    fn a_shared_insert_says_what_a_plain_one_says() {
        use crate::parts::bits::AtomicU64;
        let shape = Shape::with(1, 3).unwrap();
        let mut plain = vec![0_u64; 12];
        let shared: vec::Vec<AtomicU64> = (0..12).map(|_| AtomicU64::new(0)).collect();
        for key in 0..100 {
            let digest = Digest::mixed(key % 60);
            let fresh = Blocks::default().insert(&shape, &mut plain[..], digest);
            assert_eq!(Blocks::default().insert(&shape, &shared[..], digest), fresh);
            assert!(Blocks::default().contains(&shape, &plain, digest));
            assert!(!Blocks::default().insert(&shape, &mut plain[..], digest));
        }
        assert!(shared.iter().map(Word::load).eq(plain));
    }
}
