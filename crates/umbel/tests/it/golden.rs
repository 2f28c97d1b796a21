//! Bytes that must never change. A failure here means that filters saved yesterday would lose their
//! keys: change the code back, never the constant. (The layout around the words is a draft until
//! version 1 of the format; digests, positions and words are not.)

use umbel::bloom::Bloom;
use umbel::hash::{Digest, Digester, Key, Portable};
use umbel::layout::Layout;
use umbel::storage::Heap;
use umbel::{BlockedBloomFilter, BloomFilter, Keyed, ScalableBloomFilter, blocked};

/// The vectors of `docs/hashing.md`.
#[test]
fn digests_are_the_documented_ones() {
    fn assert_digest<T: Key + ?Sized>(seed: u64, key: &T, expected: u64) {
        let digest = Portable::seeded(seed).digest(key);
        assert_eq!(digest, Digest::new(expected), "seed {seed}: expected {expected:#018x}");
    }
    let document = include_str!("../../../../docs/hashing.md");
    let mut rows = 0;
    for row in document.lines().filter(|line| line.starts_with("| `") && line.contains("`0x")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, kind, key, seed, digest, _] = cells[..] else { panic!("not a vector: {row}") };
        let seed: u64 = seed.parse().unwrap();
        let digest = u64::from_str_radix(digest.trim_start_matches("0x"), 16).unwrap();
        match kind {
            "u64" => assert_digest(seed, &key.parse::<u64>().unwrap(), digest),
            "i32" => assert_digest(seed, &key.parse::<i32>().unwrap(), digest),
            "u128" => assert_digest(seed, &key.parse::<u128>().unwrap(), digest),
            "char" => assert_digest(seed, &key.chars().next().unwrap(), digest),
            "bool" => assert_digest(seed, &key.parse::<bool>().unwrap(), digest),
            "str" => assert_digest(seed, key.trim_matches('"'), digest),
            // As many bytes 0, 1, 2, ...
            "[u8]" => {
                let len: usize = key.trim_end_matches(" bytes").parse().unwrap();
                let bytes: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
                assert_digest(seed, &bytes[..], digest);
            }
            _ => panic!("what is a {kind}?"),
        }
        rows += 1;
    }
    assert!(rows >= 20, "only {rows} vectors found");
}

/// The table of `docs/hashing.md`, computed by a second implementation in another language.
#[test]
fn joint_digests_are_the_documented_ones() {
    let digest = |attribute: &str| match attribute.strip_prefix("the text ").unwrap_or(attribute) {
        text if text.starts_with('`') => Portable::default().digest(text.trim_matches('`')),
        number => Portable::default().digest(&number.parse::<u64>().unwrap()),
    };
    let document = include_str!("../../../../docs/hashing.md");
    let (_, table) = document.split_once("| attributes | joint digest |\n|---|---|\n").unwrap();
    let mut rows = 0;
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let [_, attributes, joint, _] = row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("not a vector: {row}")
        };
        let digests: Vec<Digest> = match attributes.strip_suffix(", eight times") {
            Some(attribute) => vec![digest(attribute); 8],
            None => attributes.split(", ").map(digest).collect(),
        };
        let expected = u64::from_str_radix(&joint.trim_matches('`')[2..], 16).unwrap();
        assert_eq!(Digest::joint(&digests), Digest::new(expected), "{attributes}");
        rows += 1;
    }
    assert_eq!(rows, 7);
}

#[test]
fn keyed_digests_are_siphash_1_3() {
    // The key 00 01 .. 0f of the SipHash paper, with no bytes and with the byte 00; then all lengths
    // up to 63, folded; a second implementation, written from the paper, gives the same.
    let keyed = Keyed::new(std::array::from_fn(|byte| byte as u8));
    let bytes: Vec<u8> = (0..64).collect();
    let digest = |len: usize| keyed.digest(&bytes[..len]).bits();
    assert_eq!((digest(0), digest(1)), (0xabac_0158_050f_c4dc, 0xc9f4_9bf3_7d57_ca93));
    let fold = (0..64).fold(0_u64, |fold, len| fold.rotate_left(1) ^ digest(len));
    assert_eq!(fold, 0x7f4d_5086_694f_99aa);
}

/// The XXH3 of a filter's words.
#[track_caller]
fn assert_words<T: ?Sized, L: Layout>(filter: &Bloom<T, Portable, Heap, L>, expected: u64) {
    let words: Vec<u8> = filter.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    let digest = Portable::default().digest(&words);
    assert_eq!(digest, Digest::new(expected), "the words have changed");
}

/// The first absent keys that are found, of the filter of the keys below `keys`.
fn mistakes<const N: usize>(keys: u64, contains: impl Fn(u64) -> bool) -> [u64; N] {
    let mut mistakes = (keys..).filter(|key| contains(*key));
    std::array::from_fn(|_| mistakes.next().unwrap())
}

#[test]
fn a_filter_keeps_its_words_and_its_mistakes() {
    let mut filter = BloomFilter::<u64>::new(1_000, 0.01);
    filter.extend(0..1_000_u64);
    assert_words(&filter, 0x019c_5c7b_bfec_9662);
    assert_eq!(
        mistakes(1_000, |key| filter.contains(&key)),
        [1062, 1074, 1096, 1137, 1284, 1330, 1830, 1935, 2002, 2290]
    );

    let mut filter = BloomFilter::<str>::new(100, 1e-4);
    filter.extend((0..100).map(|number| format!("key {number}")));
    assert_words(&filter, 0x9de0_abcc_72a8_236b);
}

/// Computed by a second implementation in another language, written from `docs/hashing.md`.
#[test]
fn a_blocked_filter_keeps_its_words_and_its_mistakes() {
    let shape = |lines, per_key, probes| blocked::Shape::with(0, lines, per_key, probes).unwrap();
    for ((per_key, probes), words, first) in [
        (
            (1, 6),
            0xed30_066e_f7ba_a237,
            [1070, 1118, 1189, 1319, 1486, 1560, 1581, 1588, 1747, 1797],
        ),
        (
            (2, 5),
            0x28ef_0f25_3c73_52a8,
            [1350, 1512, 1588, 1621, 1757, 2017, 2348, 2453, 2688, 2723],
        ),
    ] {
        let shape = shape(20, per_key, probes);
        let mut filter = BlockedBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        filter.extend(0..1_000_u64);
        assert_words(&filter, words);
        assert_eq!(mistakes(1_000, |key| filter.contains(&key)), first);
    }
    for ((per_key, probes), words, first) in [
        ((1, 6), 0x2052_0d20_de88_5809, [1833, 6225, 11474]),
        ((2, 5), 0x3f9a_7280_31f6_b19d, [3949, 21474, 25721]),
    ] {
        let shape = shape(4, per_key, probes);
        let mut filter = BlockedBloomFilter::<str>::with(shape, Portable::default()).unwrap();
        let key = |number: u64| format!("key {number}");
        filter.extend((0..100).map(key));
        assert_words(&filter, words);
        assert_eq!(mistakes(100, |number| filter.contains(key(number).as_str())), first);
    }
}

/// The example of `docs/hashing.md`.
#[test]
fn a_key_of_a_blocked_filter_has_the_documented_bits() {
    let lines: [(u64, &[u64]); 2] =
        [(19, &[66, 148, 42, 374, 502]), (17, &[173, 240, 471, 269, 277])];
    for per_key in [1, 2] {
        let shape = blocked::Shape::with(1, 20, per_key as u32, 5).unwrap();
        let mut filter = BlockedBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        filter.insert(&42);
        let mut words = vec![0; 20 * 8];
        for (line, bits) in &lines[..per_key] {
            bits.iter()
                .for_each(|bit| words[(line * 8 + bit / 64) as usize] |= 1_u64 << (bit % 64));
        }
        assert_eq!(filter.words(), words);
    }
}

/// Computed by a second implementation in another language, written from `docs/hashing.md`.
#[test]
fn a_scalable_filter_keeps_its_levels_and_its_mistakes() {
    let mut filter = ScalableBloomFilter::<u64>::new(100, 0.01);
    filter.extend(0..1_000_u64);
    let lines: Vec<u64> = filter.levels().iter().map(|level| level.shape().lines()).collect();
    assert_eq!(lines, [3, 6, 13, 25]);
    assert_eq!(
        mistakes(1_000, |key| filter.contains(&key)),
        [1178, 1411, 2378, 2472, 2866, 3114, 3566, 3589, 5384, 5839]
    );
}

/// Computed by a second implementation in another language, written from `docs/hashing.md` and
/// `docs/format.md`. FNV-1a of the words.
#[test]
fn a_quotient_filter_keeps_its_words_and_its_mistakes() {
    let fnv = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |fnv, byte| {
            (fnv ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let filled = |quotients, remainder, keys| {
        let shape = umbel::quotient::Shape::with(keys, quotients, remainder).unwrap();
        let mut filter = umbel::QuotientFilter::<u64>::with(shape, Portable::default()).unwrap();
        // The order in which they come does not matter.
        (0..keys).rev().for_each(|key| _ = filter.insert(&key).unwrap());
        filter
    };
    let filter = filled(1_100, 7, 1_000);
    let bytes = filter.to_bytes();
    assert_eq!(
        (bytes.len(), fnv(&bytes[64..bytes.len() - 8])),
        (64 + 1_616 + 8, 0x6d0f_0540_10a4_5b9e)
    );
    assert_eq!(
        mistakes(1_000, |key| filter.contains(&key)),
        [1167, 1178, 1379, 1535, 1560, 1762, 1826, 1903, 1982, 2172]
    );
    // The example of `docs/hashing.md`.
    assert_eq!(filter.prefix(Portable::default().digest(&42_u64)), 1_078 << 7 | 79);

    let filter = filled(333, 13, 300);
    let bytes = filter.to_bytes();
    assert_eq!(
        (bytes.len(), fnv(&bytes[64..bytes.len() - 8])),
        (64 + 1_224 + 8, 0x7200_8833_0d1b_0295)
    );
    assert_eq!(mistakes(300, |key| filter.contains(&key)), [4329, 19073, 19108]);
}
