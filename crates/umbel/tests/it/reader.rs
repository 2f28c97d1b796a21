//! A second reader of filters, written from `docs/format.md` and `docs/hashing.md` alone. It uses no code of
//! the library, so gaps in the two documents show up here. The tests compare its answers with the library's,
//! for the golden files and for filters of many sizes.

use crate::golden_table::directory;
use std::collections::HashSet;
use std::fs;
use twox_hash::XxHash3_64;
use umbel::any::AnyFilter;
use umbel::counting::{Anywhere, CellLayout, Counting, InLine, Width};
use umbel::frozen::{Build, Frozen, StoredArrangement};
use umbel::ribbon::{self, Ribbon};
use umbel::storage::Heap;
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, BlockedBloomFilter, BloomFilter, Contains, CuckooFilter,
    Digest, Portable, QuotientFilter, RibbonFilter, RibbonMap, Saved, ScalableBloomFilter,
    SplitBlockBloomFilter, StableBloomFilter, WindowBloomFilter, XorFilter,
};

/// The golden ratio, which hashing.md uses in several places.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The upper half of a product.
fn upper(x: u64, y: u64) -> u64 {
    ((u128::from(x) * u128::from(y)) >> 64) as u64
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

/// The portable digest of a word.
fn digest(word: u64, seed: u64) -> u64 {
    mix(word ^ mix(seed.wrapping_add(GOLDEN)))
}

/// The first outputs of SplitMix64 with seed 0.
fn split_mix(index: u64) -> u64 {
    let mut z = (index + 1).wrapping_mul(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A filter, as its bytes describe it.
struct Reader {
    family: u16,
    kernels: u16,
    insertions: u64,
    fields: [u64; 13],
    words: Vec<u64>,
}

impl Reader {
    /// Opens the filter with these bytes, and checks all of them.
    fn open(bytes: &[u8]) -> Self {
        let number = |at: usize, len: usize| {
            let mut number = [0; 8];
            number[..len].copy_from_slice(&bytes[at..at + len]);
            u64::from_le_bytes(number)
        };
        assert_eq!(&bytes[..8], b"umbel\0\r\n");
        assert_eq!((number(8, 2), number(20, 4)), (1, 0));
        assert_eq!(
            number(184, 8),
            XxHash3_64::oneshot_with_seed(0x756d_6265_6c20_6864, &bytes[..184])
        );
        let len = number(64, 8) as usize;
        let blocks = len.div_ceil(8_192);
        assert_eq!(bytes.len(), 192 + len + 8 * blocks);
        let (words, table) = bytes[192..].split_at(len);
        const BLOCK: u64 = 0x756d_6265_6c20_626c;
        assert_eq!(number(72, 8), XxHash3_64::oneshot_with_seed(BLOCK, table));
        for (index, block) in words.chunks(8_192).enumerate() {
            let sum = XxHash3_64::oneshot_with_seed(BLOCK + 1 + index as u64, block);
            assert_eq!(number(192 + len + 8 * index, 8), sum, "block {index}");
        }
        let reader = Self {
            family: number(10, 2) as u16,
            kernels: number(14, 2) as u16,
            insertions: number(56, 8),
            fields: std::array::from_fn(|field| number(80 + 8 * field, 8)),
            words: words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        };
        assert_eq!(reader.words.len() as u64, reader.expected_words(), "{:?}", reader.fields);
        reader
    }

    /// The number of words that follows from the fields.
    fn expected_words(&self) -> u64 {
        let f = &self.fields;
        match self.family {
            1..=3 => f[1].div_ceil(64),
            4 => (f[1] * f[3]).div_ceil(64),
            5 => f[5] + 4 * f[4],
            6 => (f[0] * f[1]).div_ceil(64),
            7 => 8 * f[3] * f[1],
            8 => (4 * f[1] * f[2]).div_ceil(64) + 1,
            9 => {
                let blocks = self.quotient_blocks();
                2 * blocks + blocks.div_ceil(8) + blocks * f[2] + 1
            }
            10..=14 if f[0] == 0 => 0,
            10..=12 => {
                let entries = self.entries_of_a_shard() << f[2];
                (entries * f[1]).div_ceil(64) + u64::from(f[1] != 8)
            }
            13 | 14 => self.layers().last().unwrap().thresholds_end,
            other => panic!("family {other}"),
        }
    }

    /// The bits from `first` on, at most 32.
    fn bits(&self, words: &[u64], first: u64, len: u64) -> u64 {
        (0..len)
            .map(|bit| (words[((first + bit) / 64) as usize] >> ((first + bit) % 64) & 1) << bit)
            .sum()
    }

    fn has_bit(&self, bit: u64) -> bool {
        self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Whether a key with this digest may be present.
    fn contains(&self, digest: u64) -> bool {
        let f = &self.fields;
        match self.family {
            1 => positions(digest, f[1], f[2]).into_iter().all(|bit| self.has_bit(bit)),
            2 => {
                let per_key = if self.kernels == 3 { 2 } else { 1 };
                self.in_lines(0, f[1] / 512, per_key, f[2] / per_key, digest, digest)
            }
            3 => self.in_block(digest),
            4 => self.count(digest) > 0,
            5 => self.in_a_level(digest),
            6 => positions(digest, f[0], f[2])
                .into_iter()
                .all(|cell| self.bits(&self.words, cell * f[1], f[1]) != 0),
            7 => {
                let group = upper(digest, f[1]);
                (0..f[3]).any(|epoch| {
                    let line = f[3] * group + epoch;
                    places(0, f[2], digest & 0xffff_ffff)
                        .into_iter()
                        .all(|bit| self.has_bit(512 * line + bit))
                })
            }
            8 => self.in_a_bucket(digest),
            9 => {
                let product = u128::from(digest) * u128::from(f[1]);
                let prefix = ((product >> 64) as u64) << f[2] | (product as u64) >> (64 - f[2]);
                self.prefixes().contains(&prefix)
            }
            10..=13 if f[0] == 0 => false,
            10..=12 => self.in_entries(digest),
            13 => self.ribbon(digest).is_some_and(|(sum, fingerprint)| sum == fingerprint),
            other => panic!("family {other}"),
        }
    }

    /// The number of copies of a key, in a counting filter.
    fn count(&self, digest: u64) -> u64 {
        let f = &self.fields;
        let cells = match self.kernels {
            1 => positions(digest, f[1], f[2]),
            5 => {
                let (in_word, lines) = (64 / f[3], f[1] * f[3] / 512);
                let b = in_word.ilog2();
                let line = upper(digest, lines);
                let mut y = digest.wrapping_mul(0x93cd_3a2c_8198_e269);
                let first = y >> 61;
                y <<= 3;
                (0..f[2])
                    .map(|i| {
                        let word = 8 * line + (first + i) % 8;
                        let cell = y >> (64 - b);
                        y <<= b;
                        word * in_word + cell
                    })
                    .collect()
            }
            other => panic!("kernels {other}"),
        };
        cells.into_iter().map(|cell| self.bits(&self.words, cell * f[3], f[3])).min().unwrap()
    }

    /// Whether the lines that `lines_by` selects, from word `first` on, have the bits of a digest.
    fn in_lines(
        &self,
        first: u64,
        lines: u64,
        per_key: u64,
        probes: u64,
        lines_by: u64,
        digest: u64,
    ) -> bool {
        let other = lines_by.wrapping_mul(0xb504_f333_f9de_6485);
        let of_key =
            [(upper(lines_by, lines), digest & 0xffff_ffff), (upper(other, lines), digest >> 32)];
        of_key.into_iter().take(per_key as usize).enumerate().all(|(n, (line, x))| {
            let mut bits = places(n, probes, x).into_iter();
            bits.all(|bit| self.has_bit(64 * first + 512 * line + bit))
        })
    }

    fn in_block(&self, digest: u64) -> bool {
        const SALT: [u64; 8] = [
            0x47b6_137b,
            0x4497_4d91,
            0x8824_ad5b,
            0xa2b7_289d,
            0x7054_95c7,
            0x2df1_424b,
            0x9efc_4947,
            0x5c6b_fb31,
        ];
        let blocks = self.fields[1] / 256;
        let block = ((digest >> 32) * blocks) >> 32;
        let x = digest & 0xffff_ffff;
        (0..8).all(|i| {
            let bit = ((x * SALT[i as usize]) & 0xffff_ffff) >> 27;
            self.has_bit(256 * block + 32 * i + bit)
        })
    }

    fn in_a_level(&self, digest: u64) -> bool {
        let levels = self.fields[4];
        let (said, _) = self.words[..4 * levels as usize].as_chunks::<4>();
        assert_eq!(said.iter().map(|[_, lines, ..]| 8 * lines).sum::<u64>(), self.fields[5]);
        assert_eq!(said.iter().map(|[fresh, ..]| fresh).sum::<u64>(), self.insertions);
        let mut first = 4 * levels;
        let mut found = false;
        for (level, [_, lines, per_key, probes]) in (0..).zip(said) {
            let lines_by = digest.wrapping_mul(split_mix(level) | 1);
            found |= self.in_lines(first, *lines, *per_key, *probes, lines_by, digest);
            first += 8 * lines;
        }
        found
    }

    fn in_a_bucket(&self, digest: u64) -> bool {
        let (m, f) = (self.fields[1], self.fields[2]);
        let product = u128::from(digest) * u128::from(m);
        let (first, rest) = ((product >> 64) as u64, product as u64);
        let fingerprint = 1 + (((rest >> 32) * ((1 << f) - 1)) >> 32);
        let x = fingerprint.wrapping_mul(GOLDEN);
        let sum = ((x ^ (x >> 32)) | 1) & ((1 << m.ilog2()) - 1);
        let second = (sum + m - first) % m;
        let in_bucket = |bucket: u64| {
            (0..4).any(|slot| self.bits(&self.words, (4 * bucket + slot) * f, f) == fingerprint)
        };
        assert_eq!(self.words.last(), Some(&0), "the word behind the slots");
        in_bucket(first) || in_bucket(second)
    }

    fn quotient_blocks(&self) -> u64 {
        let m = self.fields[1];
        let capacity = 95 * m / 100;
        let spill = (capacity + 1).min(256);
        (m + spill).div_ceil(64)
    }

    /// All prefixes of a quotient filter. This also checks offsets, free slots and the order.
    fn prefixes(&self) -> HashSet<u64> {
        let (blocks, r) = (self.quotient_blocks() as usize, self.fields[2]);
        let (marks, rest) = self.words.split_at(2 * blocks);
        let (offsets, remainders) = rest.split_at(blocks.div_ceil(8));
        let ones = |which: usize| {
            (0..64 * blocks).filter(move |bit| marks[2 * (bit / 64) + which] >> (bit % 64) & 1 == 1)
        };
        assert_eq!(ones(0).count(), ones(1).count());
        let (mut prefixes, mut free, mut taken) = (HashSet::new(), 0, 0);
        let mut spills = vec![0_usize; blocks];
        for (quotient, end) in ones(0).zip(ones(1)) {
            let start = quotient.max(free);
            assert!(start <= end && end < 64 * blocks - 1 && (quotient as u64) < self.fields[1]);
            for slot in free..start {
                assert_eq!(self.bits(remainders, slot as u64 * r, r), 0, "slot {slot} is free");
            }
            let run: Vec<u64> =
                (start..=end).map(|slot| self.bits(remainders, slot as u64 * r, r)).collect();
            assert!(run.is_sorted());
            prefixes.extend(run.iter().map(|remainder| (quotient as u64) << r | remainder));
            taken += run.len() as u64;
            free = end + 1;
            for (block, spill) in spills.iter_mut().enumerate().skip(quotient / 64 + 1) {
                *spill = (*spill).max(free.saturating_sub(64 * block));
            }
        }
        assert_eq!(taken, self.insertions);
        for (block, spill) in spills.into_iter().enumerate() {
            let offset = offsets[block / 8] >> (8 * (block % 8)) & 0xff;
            assert_eq!(offset, spill.min(255) as u64, "the offset of block {block}");
        }
        assert_eq!(self.words.last(), Some(&0), "the word behind the remainders");
        prefixes
    }

    /// The number of entries per shard, from thirds or segments.
    fn entries_of_a_shard(&self) -> u64 {
        let [_, _, shard_bits, _, _, segment, length, ..] = self.fields;
        let entries = match (segment, self.family) {
            (0, _) => 3 * length,
            (_, 12) => length + 3 * segment,
            _ => length + 2 * segment,
        };
        if shard_bits == 0 { entries } else { entries.next_multiple_of(64) }
    }

    fn in_entries(&self, digest: u64) -> bool {
        let [_, r, b, _, multiplier, segment, length, ..] = self.fields;
        let mut h = digest.wrapping_mul(multiplier).rotate_left(b as u32);
        let shard = h & ((1 << b) - 1);
        h &= !31;
        let u = (h ^ (h >> 32)).wrapping_mul(GOLDEN);
        let entries: Vec<u64> = if segment == 0 {
            let third = |bits: u64| ((bits & 0xffff_ffff) * length) >> 32;
            vec![third(h >> 32), length + third(h >> 11), 2 * length + third(u >> 32)]
        } else {
            let first = upper(h, length);
            let others = [h >> 20, h >> 5, u >> 44];
            let further = if self.family == 12 { 3 } else { 2 };
            let other = |(n, bits): (u64, u64)| (first + n * segment) ^ (bits & (segment - 1));
            [first].into_iter().chain((1..).zip(others).take(further).map(other)).collect()
        };
        let start = shard * self.entries_of_a_shard();
        let sum = entries
            .into_iter()
            .fold(0, |sum, entry| sum ^ self.bits(&self.words, (start + entry) * r, r));
        sum == ((h >> 5) ^ (h >> 32)) & ((1 << r) - 1)
    }

    /// The layers of a ribbon. The last one has no starts.
    fn layers(&self) -> Vec<Layer> {
        let [_, r, _, _, rows, _, bumping, ..] = self.fields;
        let starts = self.fields[7..].iter().take(bumping as usize);
        let mut layers: Vec<Layer> = starts
            .map(|starts| Layer { starts: *starts, rows: starts + 64, ..Layer::default() })
            .chain([Layer { rows, ..Layer::default() }])
            .collect();
        let mut word = 0;
        for layer in &mut layers {
            layer.first = word;
            word += layer.rows / 64 * r + (layer.rows % 64 * r).div_ceil(64);
        }
        for layer in &mut layers {
            layer.thresholds = word;
            word += (layer.starts / 128 * 2).div_ceil(64);
            layer.thresholds_end = word;
        }
        layers
    }

    /// The sum of the rows of a digest, and its fingerprint.
    fn ribbon(&self, mut h: u64) -> Option<(u64, u64)> {
        let [_, r, rounds, seed, _, last_seed, ..] = self.fields;
        for _ in 0..rounds {
            h = digest(h ^ seed, 0);
        }
        let layers = self.layers();
        let (last, bumping) = layers.split_last().unwrap();
        let of = |h: u64| {
            let product = u128::from(h) * 0xc28f_8282_2b65_0bed;
            (product as u64, (product >> 64) as u64 & ((1 << r) - 1))
        };
        for layer in bumping {
            let p = upper(h, layer.starts);
            let (bucket, t) = (p / 128, p % 128);
            let threshold = [0, 88, 110, 128]
                [self.bits(&self.words, 64 * layer.thresholds + 2 * bucket, 2) as usize];
            if t < threshold {
                let (coefficients, fingerprint) = of(h);
                return Some((self.sum(layer, p ^ 127, coefficients | 1), fingerprint));
            }
            h = h.rotate_left(32).wrapping_mul(GOLDEN);
        }
        if last.rows == 0 {
            return None;
        }
        h = digest(h ^ last_seed, 0);
        let w = last.rows.min(64);
        let (coefficients, fingerprint) = of(h);
        let coefficients = coefficients >> (64 - w) | u64::from(w == 64);
        Some((self.sum(last, upper(h, last.rows - w + 1), coefficients), fingerprint))
    }

    /// The sum of the rows that the coefficients select, from this one on, in each column.
    fn sum(&self, layer: &Layer, first: u64, coefficients: u64) -> u64 {
        let (r, whole) = (self.fields[1], layer.rows / 64);
        let bit = |row: u64, column: u64| match row / 64 {
            block if block < whole => {
                self.words[(layer.first + block * r + column) as usize] >> (row % 64) & 1
            }
            _ => {
                let left = layer.rows % 64;
                self.bits(&self.words, 64 * (layer.first + whole * r) + column * left + row % 64, 1)
            }
        };
        let rows = (0..64).filter(|i| coefficients >> i & 1 == 1).map(|i| first + i);
        let column = |column| rows.clone().fold(0, |sum, row| sum ^ bit(row, column)) << column;
        (0..r).map(column).sum()
    }
}

#[derive(Clone, Copy, Default)]
struct Layer {
    starts: u64,
    rows: u64,
    /// Words from there on.
    first: u64,
    thresholds: u64,
    thresholds_end: u64,
}

/// Kernels 1.
fn positions(digest: u64, bits: u64, probes: u64) -> Vec<u64> {
    let mut x = digest | 1;
    (0..probes)
        .map(|_| {
            let position = upper(x, bits);
            x = x.wrapping_mul(bits);
            position
        })
        .collect()
}

/// The bits of a key in the n-th of its lines.
fn places(n: usize, probes: u64, x: u64) -> Vec<u64> {
    let salt = |index: usize| split_mix((8 * n + index) as u64) >> 32 | 1;
    let mut bits = Vec::new();
    for half in 0..2 {
        let count = if n == half { probes.div_ceil(2) } else { probes / 2 };
        for i in 0..count as usize {
            let place = ((x * salt(4 * half + i)) & 0xffff_ffff) >> 24;
            bits.push(256 * half as u64 + place);
        }
    }
    bits
}

/// The number of digests on which the two must agree.
const ASKED: u64 = 1_500;

#[track_caller]
fn agree(bytes: &[u8], filter: &impl Contains) -> Reader {
    let reader = Reader::open(bytes);
    let prefixes = (reader.family == 9).then(|| reader.prefixes());
    for number in 0..ASKED {
        let digest = digest(number, 0);
        let found = match &prefixes {
            // As `contains`, with the prefixes read once.
            Some(prefixes) => {
                let (m, r) = (reader.fields[1], reader.fields[2]);
                let product = u128::from(digest) * u128::from(m);
                prefixes.contains(&(((product >> 64) as u64) << r | (product as u64) >> (64 - r)))
            }
            None => reader.contains(digest),
        };
        assert_eq!(found, filter.contains_digest(Digest::new(digest)), "digest {digest:x}");
    }
    reader
}

#[test]
fn a_reader_written_from_the_documents_agrees_about_every_golden_file_of_portable_integers() {
    let (mut names, mut families) = (0, HashSet::new());
    for entry in fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with("-portable-u64.umbel") {
            continue;
        }
        names += 1;
        let bytes = fs::read(&path).unwrap();
        let reader = if name.starts_with("map-") {
            let (reader, map) = (Reader::open(&bytes), RibbonMap::<u64, u8>::from_bytes(&bytes));
            let map = map.unwrap();
            for number in 0..ASKED {
                let digest = digest(number, 0);
                let value = reader.ribbon(digest).map_or(0, |(sum, _)| sum);
                assert_eq!(value, u64::from(map.get_digest(Digest::new(digest))), "{digest:x}");
            }
            reader
        } else {
            agree(&bytes, &AnyFilter::from_bytes(&bytes).unwrap())
        };
        families.insert((reader.family, reader.kernels));
    }
    // All of visit_families, and three larger ones. `split` has a file with another hash.
    assert_eq!((names, families.len()), (19, 16), "{families:?}");
}

/// Filters of no key, of a few and of many, each with its planned number of keys.
const SIZES: [u64; 9] = [0, 1, 2, 5, 20, 63, 64, 300, 1_000];
const RATES: [f64; 3] = [0.3, 0.01, 1e-5];

#[test]
fn a_reader_written_from_the_documents_agrees_about_filters_of_every_size() {
    macro_rules! each {
        ($($filter:ident)*) => {$(
            for (items, rate) in SIZES.into_iter().flat_map(|n| RATES.map(|rate| (n, rate))) {
                let hasher = Portable::default();
                let mut filter = $filter::<u64, Portable>::with_hasher(items, rate, hasher);
                for number in 0..items {
                    _ = filter.insert_digest(Digest::new(digest(number, 0)));
                }
                agree(&filter.to_bytes(), &filter);
            }
        )*};
    }
    each! {
        BloomFilter
        BlockedBloomFilter
        SplitBlockBloomFilter
        ScalableBloomFilter
        StableBloomFilter
        WindowBloomFilter
        CuckooFilter
        QuotientFilter
    }
}

#[test]
fn a_scalable_filter_of_many_levels_is_read_by_the_documents() {
    let mut filter = ScalableBloomFilter::<u64>::new(10, 0.01);
    (0..1_000).for_each(|number| _ = filter.insert_digest(Digest::new(digest(number, 0))).unwrap());
    let reader = agree(&filter.to_bytes(), &filter);
    assert!(reader.fields[4] > 4, "{:?}", reader.fields);
}

/// A table with long runs, so that offsets are large, saturate, and pass over whole blocks.
#[test]
fn a_crowded_quotient_filter_is_read_by_the_documents() {
    for (quotients, copies) in [(1, 0), (2, 1), (64, 50), (1_100, 60), (1_100, 900)] {
        let shape = umbel::quotient::Shape::with(1, quotients, 7).unwrap();
        let mut filter = QuotientFilter::<u64>::with(shape, Portable::default()).unwrap();
        // Consecutive digests have the same quotient, and 128 consecutive remainders.
        for number in 0..copies.min(shape.capacity()) {
            let near = u64::MAX / 3 + (number << (57 - quotients.ilog2())) / 16;
            filter.insert_digest(Digest::new(near)).unwrap();
        }
        let reader = agree(&filter.to_bytes(), &filter);
        assert_eq!(reader.prefixes().len(), filter.prefixes().collect::<HashSet<_>>().len());
        let blocks = reader.quotient_blocks() as usize;
        let offsets = &reader.words[2 * blocks..][..blocks.div_ceil(8)];
        let saturated = offsets.iter().any(|word| word.to_le_bytes().contains(&255));
        assert_eq!(saturated, copies == 900, "{copies} keys at one place");
    }
    let blocks = |quotients| {
        let shape = umbel::quotient::Shape::with(1, quotients, 7).unwrap();
        let filter = QuotientFilter::<u64>::with(shape, Portable::default()).unwrap();
        Reader::open(&filter.to_bytes()).quotient_blocks()
    };
    // The examples of the document.
    assert_eq!((blocks(1_100), blocks(64), blocks(1)), (22, 2, 1));
}

/// The cells of a counting filter, where they saturate.
#[test]
fn cells_are_counted_by_the_documents() {
    fn count<L: CellLayout>(width: impl Fn(Width) -> L::Shape) {
        for of in [Width::Two, Width::Four, Width::Eight] {
            let mut filter =
                Counting::<u64, Portable, Heap, L>::with(width(of), Portable::default()).unwrap();
            let of_number = |number: u64| Digest::new(digest(number, 0));
            // Key n is inserted n times: 300 is more than any cell can count.
            for number in [0, 1, 2, 3, 4, 14, 15, 16, 17, 254, 255, 256, 300] {
                (0..number).for_each(|_| _ = filter.insert_digest(of_number(number)));
            }
            for round in 0..2 {
                let reader = agree(&filter.to_bytes(), &filter);
                for number in 0..400 {
                    let count = reader.count(digest(number, 0));
                    assert_eq!(count, filter.estimated_count_digest(of_number(number)));
                }
                let most = reader.count(digest(300, 0));
                assert_eq!(
                    most,
                    (1 << reader.fields[3]) - 1,
                    "round {round}: a saturated cell stays"
                );
                assert_eq!(reader.count(digest(2, 0)), 2 - round);
                (0..300).for_each(|_| _ = filter.remove_digest(of_number(300)));
                filter.remove_digest(of_number(2));
            }
        }
    }
    use umbel::counting::{LineShape, Shape};
    count::<Anywhere>(|width| Shape::for_rate(1_000, 0.001).unwrap().with_width(width).unwrap());
    count::<InLine>(|width| LineShape::for_rate_and_width(1_000, 0.001, width).unwrap());
}

fn built<A: StoredArrangement>(items: u64, rate: f64) -> Frozen<u64, Portable, A> {
    let digests = (0..items).map(|number| Digest::new(digest(number, 0)));
    Frozen::build_from_digests(Build::new(rate), digests).unwrap()
}

#[test]
fn a_reader_written_from_the_documents_agrees_about_static_filters_of_every_size() {
    for (items, rate) in SIZES.into_iter().flat_map(|n| RATES.map(|rate| (n, rate))) {
        let filters: [Vec<u8>; 4] = {
            let xor: XorFilter<u64> = built(items, rate);
            let fuse: BinaryFuseFilter<u64> = built(items, rate);
            let fuse4: BinaryFuse4Filter<u64> = built(items, rate);
            let ribbon: RibbonFilter<u64> = built(items, rate);
            agree(&xor.to_bytes(), &xor);
            agree(&fuse.to_bytes(), &fuse);
            agree(&fuse4.to_bytes(), &fuse4);
            agree(&ribbon.to_bytes(), &ribbon);
            [xor.to_bytes(), fuse.to_bytes(), fuse4.to_bytes(), ribbon.to_bytes()]
        };
        // Without keys there are no words, and the file consists of the header.
        assert!(filters.iter().all(|bytes| (bytes.len() == 192) == (items == 0)), "{items}");
    }
    // No word follows entries of a byte.
    let bytes: XorFilter<u64> = built(1_000, 1.0 / 256.0);
    assert_eq!(agree(&bytes.to_bytes(), &bytes).fields[1], 8);
    // Several layers, and a last one of several blocks.
    let ribbon: RibbonFilter<u64> = built(300_000, 0.25);
    assert!(agree(&ribbon.to_bytes(), &ribbon).fields[6] > 1, "{ribbon:?}");
}

#[test]
fn a_static_filter_without_keys_has_no_words_and_contains_nothing() {
    let filters = [
        built::<umbel::frozen::Peeled<umbel::xor::Thirds>>(0, 0.5).to_bytes(),
        built::<umbel::frozen::Peeled<umbel::fuse::Fused<3>>>(0, 0.5).to_bytes(),
        built::<umbel::frozen::Peeled<umbel::fuse::Fused<4>>>(0, 0.5).to_bytes(),
        built::<Ribbon>(0, 0.5).to_bytes(),
    ];
    for bytes in filters {
        assert_eq!(bytes.len(), 192);
        let (reader, filter) = (Reader::open(&bytes), AnyFilter::from_bytes(&bytes).unwrap());
        assert!((0..ASKED).all(|number| !reader.contains(digest(number, 0))));
        assert!((0..ASKED).all(|number| !filter.contains(&number.to_le_bytes()).unwrap()));
    }
    let none: [(u64, u8); 0] = [];
    let how = Build::for_values_hashed_by(Portable::default());
    let map = RibbonMap::<u64, u8>::build_with(how, ribbon::ValueWidth::Bits(3), none).unwrap();
    assert_eq!(map.to_bytes().len(), 192);
    assert!(Reader::open(&map.to_bytes()).words.is_empty());
    assert!((0..ASKED).all(|number| map.get(&number) == 0));
}
