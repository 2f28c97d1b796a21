//! One link of a chain: a Bloom filter of RedisBloom's sizing and positions.
//!
//! ```text
//! bits per entry = -ln(error) / ln(2)^2      bits   = entries * bits per entry, up to words of 64
//! hashes         = ceil(ln(2) * bits per entry)
//! position i     = (a + i b) mod bits, in 64 bits that wrap round; byte x / 8, bit x mod 8
//! ```

use super::modulus::Modulus;
use crate::error::Invalid;
use crate::memory;
use crate::prefetch::prefetch;

/// ln(2) and its square, with RedisBloom's number of digits: sizes depend on them.
#[allow(clippy::approx_constant, reason = "the last digit is missing there too")]
const LN2: f64 = 0.693_147_180_559_945;
const LN2_SQUARED: f64 = 0.480_453_013_918_201;

/// The maximum number of bits of a link: 2^43, a TiB of memory. Anything larger is a mistake or an attack.
pub const MAX_BITS: u64 = 1 << 43;

/// The bits per entry at the smallest rate that a double can represent, rounded up.
const MAX_BITS_PER_ENTRY: f64 = 1_600.0;

/// The number of positions that are read before the first branch.
pub(super) const FIRST: usize = 4;

/// A core has about this number of cache misses in flight at once.
const MOST_AHEAD: u32 = 12;

/// The two hashes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The first position, before the modulus.
    pub a: u64,
    /// The distance between positions.
    pub b: u64,
}

/// The plan of a link, without its bits. A value of this type has been validated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkPlan {
    entries: u64,
    error: f64,
    bits_per_entry: f64,
    hashes: u32,
    bits: u64,
    n2: u8,
    size: u64,
}

/// The fields of a link as they are stored, in RDB files and in headers of dumps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFields {
    /// The planned number of keys.
    pub entries: u64,
    /// The error rate.
    pub error: f64,
    /// The number of positions per key.
    pub hashes: u64,
    /// The number of bits per entry.
    pub bits_per_entry: f64,
    /// The number of bits.
    pub bits: u64,
    /// Its base-2 logarithm, in old filters that were rounded up to a power of two; otherwise 0.
    pub n2: u64,
    /// The number of keys that were added.
    pub size: u64,
}

impl LinkPlan {
    /// The plan of an empty link for `entries` keys at this rate.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if `error` is not above 0 and below 1, `entries` is 0, or there are too many bits.
    pub fn for_rate(entries: u64, error: f64) -> Result<Self, Invalid> {
        if !(error > 0.0 && error < 1.0) {
            return Err(Invalid::Field("error rate"));
        }
        let bits_per_entry = -error.ln() / LN2_SQUARED;
        let bits = entries as f64 * bits_per_entry;
        if entries == 0 || bits >= MAX_BITS as f64 {
            return Err(Invalid::Field("capacity"));
        }
        let fields = LinkFields {
            entries,
            error,
            hashes: hashes(bits_per_entry) as u64,
            bits_per_entry,
            bits: (bits as u64).max(1).next_multiple_of(64),
            n2: 0,
            size: 0,
        };
        Self::of(fields)
    }

    /// As [`for_rate`](Self::for_rate), except for a capacity whose bits do not fit into 64 bits. RedisBloom
    /// 2.6 accepted those too, and made a filter of 64 bits.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate).
    pub(super) fn wrapping(entries: u64, error: f64) -> Result<Self, Invalid> {
        const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
        let smallest = Self::for_rate(1, error)?;
        if entries as f64 * smallest.bits_per_entry < TWO_TO_64 {
            return Self::for_rate(entries, error);
        }
        Self::of(LinkFields { entries, bits: 64, ..smallest.fields() })
    }

    /// The only validator: all stored fields pass through it.
    ///
    /// # Errors
    ///
    /// [`Invalid::Field`] if a field has an invalid value, or does not fit the others.
    pub fn of(fields: LinkFields) -> Result<Self, Invalid> {
        let LinkFields { entries, error, hashes: stored, bits_per_entry, bits, n2, size } = fields;
        if entries == 0 {
            return Err(Invalid::Field("entries"));
        }
        if !(error > 0.0 && error < 1.0) {
            return Err(Invalid::Field("error rate"));
        }
        if !(bits_per_entry > 0.0 && bits_per_entry <= MAX_BITS_PER_ENTRY) {
            return Err(Invalid::Field("bits per entry"));
        }
        if stored as f64 != hashes(bits_per_entry) {
            return Err(Invalid::Field("hashes"));
        }
        if bits == 0 || bits > MAX_BITS || !bits.is_multiple_of(8) {
            return Err(Invalid::Field("bits"));
        }
        if n2 != 0 && (n2 >= 64 || bits != 1 << n2) {
            return Err(Invalid::Field("n2"));
        }
        Ok(Self { entries, error, bits_per_entry, hashes: stored as u32, bits, n2: n2 as u8, size })
    }

    /// The fields in their stored form.
    #[must_use]
    pub fn fields(&self) -> LinkFields {
        LinkFields {
            entries: self.entries,
            error: self.error,
            hashes: u64::from(self.hashes),
            bits_per_entry: self.bits_per_entry,
            bits: self.bits,
            n2: u64::from(self.n2),
            size: self.size,
        }
    }

    /// The memory of its bits.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bits / 8
    }

    /// The link with these bits.
    ///
    /// # Errors
    ///
    /// [`Invalid::Length`] if the number of bytes is wrong.
    pub fn with(self, bytes: Box<[u8]>) -> Result<Link, Invalid> {
        if bytes.len() as u64 != self.bytes() {
            return Err(Invalid::Length);
        }
        Ok(Link { plan: self, modulus: Modulus::new(self.bits), bytes })
    }

    /// The link with no bit set.
    ///
    /// # Errors
    ///
    /// [`Invalid::NoMemory`] if there is not enough memory.
    pub fn empty(self) -> Result<Link, Invalid> {
        let len = usize::try_from(self.bytes()).map_err(|_| Invalid::NoMemory)?;
        self.with(memory::zeroed(len).ok_or(Invalid::NoMemory)?)
    }
}

/// The number of positions per key, as a double: a stored one may be too large for any integer type.
fn hashes(bits_per_entry: f64) -> f64 {
    (LN2 * bits_per_entry).ceil()
}

/// One Bloom filter of a chain.
#[derive(Debug)]
pub struct Link {
    plan: LinkPlan,
    modulus: Modulus,
    bytes: Box<[u8]>,
}

impl Link {
    /// The plan, and the number of keys that were added.
    #[must_use]
    pub const fn plan(&self) -> &LinkPlan {
        &self.plan
    }

    /// The planned number of keys.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.plan.entries
    }

    /// The error rate.
    #[must_use]
    pub const fn error(&self) -> f64 {
        self.plan.error
    }

    /// The number of positions per key.
    #[must_use]
    pub const fn hashes(&self) -> u32 {
        self.plan.hashes
    }

    /// The number of bits.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.plan.bits
    }

    /// The number of keys that were added.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.plan.size
    }

    pub(super) fn set_size(&mut self, size: u64) {
        self.plan.size = size;
    }

    /// The bits.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The allocation of the bits, for the engine to move.
    pub(crate) fn memory_mut(&mut self) -> &mut Box<[u8]> {
        &mut self.bytes
    }

    /// The positions of a key, one after the other. All other functions must agree with this one.
    #[cfg(test)]
    pub(super) fn positions(&self, pair: Pair) -> impl Iterator<Item = u64> + use<> {
        let (modulus, mut x) = (self.modulus, pair.a);
        (0..self.plan.hashes).map(move |_| {
            let position = modulus.of(x);
            x = x.wrapping_add(pair.b);
            position
        })
    }

    #[inline(always)]
    fn bit(&self, position: u64) -> u8 {
        self.bytes[(position >> 3) as usize] >> (position & 7)
    }

    /// The first positions of a key. In a link with fewer hashes some are repeated.
    #[inline(always)]
    pub(super) fn first(&self, pair: Pair) -> [u64; FIRST] {
        // A loop instead of `map`, which the compiler does not inline.
        let Pair { a, b } = pair;
        let b = if self.plan.hashes >= FIRST as u32 { b } else { 0 };
        let (second, third) = (a.wrapping_add(b), a.wrapping_add(b << 1));
        let fourth = second.wrapping_add(b << 1);
        [
            self.modulus.of(a),
            self.modulus.of(second),
            self.modulus.of(third),
            self.modulus.of(fourth),
        ]
    }

    /// Prefetches these positions.
    #[inline(always)]
    pub(super) fn fetch(&self, first: &[u64; FIRST]) {
        first.iter().for_each(|position| prefetch(&self.bytes, (position >> 3) as usize));
    }

    /// Prefetches all positions of a key: an insert needs them whether the key is new or not.
    #[inline(always)]
    pub(super) fn fetch_all(&self, pair: Pair) {
        let mut x = pair.a;
        for _ in 0..self.plan.hashes.min(MOST_AHEAD) {
            prefetch(&self.bytes, (self.modulus.of(x) >> 3) as usize);
            x = x.wrapping_add(pair.b);
        }
    }

    /// Whether all bits of a key are set. Four bits are combined per branch: in a half-full filter the first
    /// four reject fifteen of sixteen absent keys, so the branch is nearly always predicted.
    #[inline]
    #[must_use]
    pub fn contains(&self, pair: Pair) -> bool {
        self.contains_with(pair, self.first(pair))
    }

    /// As [`contains`](Self::contains), for a key whose first positions are already computed.
    #[inline(always)]
    pub(super) fn contains_with(&self, pair: Pair, first: [u64; FIRST]) -> bool {
        let [one, two, three, four] = first;
        let all = self.bit(one) & self.bit(two) & self.bit(three) & self.bit(four);
        all & 1 == 1 && self.contains_rest(pair)
    }

    /// The positions after the first ones.
    #[inline]
    fn contains_rest(&self, pair: Pair) -> bool {
        let Pair { mut a, b } = pair;
        let mut left = self.plan.hashes;
        if left >= FIRST as u32 {
            (a, left) = (a.wrapping_add(b << 2), left - FIRST as u32);
        }
        // Chains that have grown very often have links of a thousand hashes.
        const AT_ONCE: u32 = 8;
        loop {
            let mut all = 1;
            for _ in 0..left.min(AT_ONCE) {
                all &= self.bit(self.modulus.of(a));
                a = a.wrapping_add(b);
            }
            if left <= AT_ONCE || all & 1 == 0 {
                return all & 1 == 1;
            }
            left -= AT_ONCE;
        }
    }

    /// Sets the bits of a key. The chain counts the key.
    #[inline]
    pub(super) fn set(&mut self, pair: Pair) {
        let Pair { a: mut x, b } = pair;
        for _ in 0..self.plan.hashes {
            let position = self.modulus.of(x);
            self.bytes[(position >> 3) as usize] |= 1 << (position & 7);
            x = x.wrapping_add(b);
        }
    }

    /// The number of bits that are set. This reads all of them.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.count_ones_with(self)
    }

    /// An estimate of the number of set bits, from one of `stride` cache lines. Positions are hashes, so all
    /// lines are alike.
    pub(super) fn sampled_ones(&self, stride: usize) -> u64 {
        const LINE: usize = 64;
        if stride <= 1 || self.bytes.len() < LINE * stride {
            return self.count_ones();
        }
        let (mut ones, mut seen) = (0, 0);
        for line in self.bytes.as_chunks::<LINE>().0.iter().step_by(stride) {
            let words = line.as_chunks::<8>().0;
            ones +=
                words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum::<u32>() as u64;
            seen += LINE as u64 * 8;
        }
        (ones as f64 / seen as f64 * self.bits() as f64).round() as u64
    }

    /// The number of set bits in the union with a link of the same size.
    pub(super) fn count_ones_with(&self, other: &Self) -> u64 {
        let (words, tail) = self.bytes.as_chunks::<8>();
        let (more, more_tail) = other.bytes.as_chunks::<8>();
        let both = |(one, other): (&[u8; 8], &[u8; 8])| {
            u64::from((u64::from_le_bytes(*one) | u64::from_le_bytes(*other)).count_ones())
        };
        let rest = |(one, other): (&u8, &u8)| u64::from((one | other).count_ones());
        words.iter().zip(more).map(both).sum::<u64>()
            + tail.iter().zip(more_tail).map(rest).sum::<u64>()
    }

    /// An estimate of the number of keys, from the share of set bits.
    #[must_use]
    pub fn estimated_len(&self, ones: u64) -> f64 {
        let bits = self.bits() as f64;
        // A filter with every bit set may hold any number of keys. The estimate is limited to that for one bit
        // fewer.
        let fill = (ones as f64).min(bits - 1.0) / bits;
        -bits / f64::from(self.hashes()) * (1.0 - fill).ln()
    }

    /// The false positive rate, from the share of set bits.
    #[must_use]
    pub fn rate_at(&self, ones: u64) -> f64 {
        (ones as f64 / self.bits() as f64).powi(self.hashes() as i32)
    }

    /// Adds the bits of a link with the same number of bits and hashes.
    pub(super) fn unite(&mut self, other: &Self) {
        for (byte, more) in self.bytes.iter_mut().zip(&other.bytes) {
            *byte |= more;
        }
    }

    /// A copy, if there is enough memory.
    pub(super) fn try_clone(&self) -> Option<Self> {
        let bytes = memory::copied(&self.bytes)?;
        Some(Self { plan: self.plan, modulus: self.modulus, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> LinkFields {
        LinkPlan::for_rate(100, 0.005).unwrap().fields()
    }

    #[test]
    fn a_sample_tells_about_how_many_bits_are_set() {
        let mut link = LinkPlan::for_rate(10_000_000, 0.01).unwrap().empty().unwrap();
        let mut state = 7_u64;
        for byte in link.bytes_mut() {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *byte = (state >> 33) as u8 & (state >> 45) as u8;
        }
        let (exact, bits) = (link.count_ones() as f64, link.bits() as f64);
        assert_eq!(link.sampled_ones(1), link.count_ones());
        for stride in [2, 7, 16] {
            let sampled = link.sampled_ones(stride) as f64;
            // A quarter of the bits is set; seven standard deviations of the sample.
            let sigma = (0.25 * 0.75 * bits * stride as f64).sqrt();
            assert!((sampled - exact).abs() < 7.0 * sigma, "{stride}: {sampled} of {exact}");
        }
    }

    #[test]
    fn sizes_are_those_of_a_dump_of_redisbloom() {
        // RedisBloom issue 317: entries 100, error 0.005, 8 hashes, 1152 bits.
        let plan = LinkPlan::for_rate(100, 0.005).unwrap();
        assert_eq!((plan.hashes, plan.bits, plan.bytes()), (8, 1152, 144));
        // REDIS.md: MEMORY USAGE of 1,378,600 and 1,977,672 bytes, some 130 of which are not bits.
        assert_eq!(LinkPlan::for_rate(1_000_000, 0.005).unwrap().bytes(), 1_378_472);
        assert_eq!(LinkPlan::for_rate(1_000_000, 0.0005).unwrap().bytes(), 1_977_536);
    }

    #[test]
    fn fields_that_do_not_go_together_are_refused() {
        assert!(LinkPlan::of(fields()).is_ok());
        let wrong = |change: fn(&mut LinkFields)| {
            let mut fields = fields();
            change(&mut fields);
            LinkPlan::of(fields).unwrap_err()
        };
        assert_eq!(wrong(|f| f.entries = 0), Invalid::Field("entries"));
        for error in [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
            let fields = LinkFields { error, ..fields() };
            assert_eq!(LinkPlan::of(fields).unwrap_err(), Invalid::Field("error rate"));
            assert!(LinkPlan::for_rate(1, error).is_err());
        }
        assert_eq!(wrong(|f| f.bits_per_entry = f64::NAN), Invalid::Field("bits per entry"));
        assert_eq!(wrong(|f| f.bits_per_entry = 1e9), Invalid::Field("bits per entry"));
        assert_eq!(wrong(|f| f.bits_per_entry = 0.0), Invalid::Field("bits per entry"));
        assert_eq!(wrong(|f| f.hashes = 9), Invalid::Field("hashes"));
        assert_eq!(wrong(|f| f.hashes = 1 << 31), Invalid::Field("hashes"));
        assert_eq!(wrong(|f| f.hashes = 0), Invalid::Field("hashes"));
        for bits in [0, 1151, 1 << 44, u64::MAX] {
            let fields = LinkFields { bits, ..fields() };
            assert_eq!(LinkPlan::of(fields).unwrap_err(), Invalid::Field("bits"));
        }
        for n2 in [1, 64, 255, u64::MAX] {
            let fields = LinkFields { n2, ..fields() };
            assert_eq!(LinkPlan::of(fields).unwrap_err(), Invalid::Field("n2"));
        }
        assert!(LinkPlan::of(LinkFields { bits: 1024, n2: 10, ..fields() }).is_ok());
    }

    #[test]
    fn bits_of_another_number_are_refused() {
        let plan = LinkPlan::for_rate(100, 0.005).unwrap();
        assert_eq!(plan.with(vec![0; 143].into()).unwrap_err(), Invalid::Length);
        assert!(plan.with(vec![0; 144].into()).is_ok());
    }

    #[test]
    fn the_smallest_rates_and_largest_capacities_have_plans_or_errors() {
        assert!(LinkPlan::for_rate(1, f64::from_bits(1)).is_ok());
        assert!(LinkPlan::for_rate(u64::MAX, 0.01).is_err());
        assert!(LinkPlan::for_rate(0, 0.01).is_err());
        assert_eq!(LinkPlan::for_rate(1, 0.999).unwrap().bits, 64);
    }

    #[test]
    fn contains_agrees_with_positions() {
        for hashes in (1..30).chain([100, 900]) {
            let error = 0.7_f64.powi(hashes) * 0.9;
            let mut link = LinkPlan::for_rate(500, error).unwrap().empty().unwrap();
            let pair = |key: u64| Pair {
                a: key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                b: key.wrapping_mul(0xd6e8_feb8_6659_fd93),
            };
            (0..500).for_each(|key| link.set(pair(key)));
            for key in 0..5_000 {
                let slow = link
                    .positions(pair(key))
                    .all(|x| link.bytes()[x as usize / 8] >> (x % 8) & 1 == 1);
                assert_eq!(link.contains(pair(key)), slow, "{hashes} {key}");
                assert!(key >= 500 || slow);
            }
        }
    }
}
