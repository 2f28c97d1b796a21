//! Keys in patterns that weak hashes handle badly.

/// How the keys of a trial are derived from 0, 1, 2, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The numbers themselves.
    Sequential,
    /// Well-mixed numbers.
    Random,
    /// Numbers that differ only below a common upper half.
    CommonPrefix,
    /// Families of 64 numbers, each one bit away from the family's first.
    OneBitApart,
    /// Whole numbers as the bits of a double: the lower half is nearly always zero.
    FloatLike,
    /// Numbers that differ only in their upper half.
    UpperHalf,
    /// Numbers whose halves are equal.
    EqualHalves,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Self; 7] = [
        Self::Sequential,
        Self::Random,
        Self::CommonPrefix,
        Self::OneBitApart,
        Self::FloatLike,
        Self::UpperHalf,
        Self::EqualHalves,
    ];

    /// The key with this index: different for different indices below 2<sup>32</sup>.
    #[must_use]
    #[inline]
    pub fn key(self, index: u64) -> u64 {
        match self {
            Self::Sequential => index,
            Self::Random => split_mix(index),
            Self::CommonPrefix => 0xabcd_ef01_0000_0000 | index,
            Self::OneBitApart => split_mix(index / 64) ^ (1 << (index % 64)),
            Self::FloatLike => (index as f64).to_bits(),
            Self::UpperHalf => index << 32,
            Self::EqualHalves => index << 32 | index,
        }
    }
}

/// The SplitMix64 generator's output for a counter (Steele, Lea and Flood 2014, figure 16): a
/// bijection, so different counters give different keys.
#[must_use]
#[inline]
pub fn split_mix(counter: u64) -> u64 {
    let x = counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn patterns_never_repeat_a_key() {
        for pattern in Pattern::ALL {
            let keys: HashSet<u64> = (0..100_000).map(|index| pattern.key(index)).collect();
            assert_eq!(keys.len(), 100_000, "{pattern:?}");
        }
    }

    #[test]
    fn split_mix_gives_the_published_sequence() {
        // The first outputs for seed 0, as in the reference implementation by Vigna.
        assert_eq!(split_mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(split_mix(1), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(split_mix(2), 0x06c4_5d18_8009_454f);
    }
}
