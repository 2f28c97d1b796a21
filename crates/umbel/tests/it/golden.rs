//! Bytes that must never change. A failure here means that filters saved yesterday would lose their
//! keys: change the code back, never the constant.

use crate::forge::{INSERTIONS, WORDS, field};
use std::net::{IpAddr, SocketAddr};
use umbel::Saved;
use umbel::bloom::Bloom;
use umbel::hash::{Digest, Digester, Key, Portable};
use umbel::layout::Layout;
use umbel::stable;
use umbel::storage::Heap;
use umbel::{
    BlockedBloomFilter, BloomFilter, Keyed, ScalableBloomFilter, StableBloomFilter, blocked,
};
use umbel::{WindowBloomFilter, window};

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
            // The bytes 0, 1, 2, ..., this number of them.
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

/// A key of several parts has the documented bytes, and the digest of those bytes as a string.
#[test]
fn keys_of_several_parts_have_the_documented_bytes_and_digests() {
    fn vector<K: Key>(key: K) -> (String, u64) {
        let bytes = key.with_form(|form| form.with_bytes(<[u8]>::to_vec));
        let digest = Portable::default().digest(&key);
        assert_eq!(digest, Portable::default().digest(&bytes[..]));
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        (hex.join(" "), digest.bits())
    }
    let v6 = std::net::Ipv6Addr::LOCALHOST;
    let all = [
        ("(1, 2)", vector((1_u64, 2_u64))),
        ("(-1, \"ab\")", vector((-1_i8, "ab"))),
        ("(\"a\", (\"b\", true))", vector(("a", ("b", true)))),
        ("none", vector(None::<u64>)),
        ("some 0", vector(Some(0_u64))),
        ("192.0.2.1, an address of either version", vector(IpAddr::from([192, 0, 2, 1]))),
        ("::1, an address of either version", vector(IpAddr::from(v6))),
        ("192.0.2.1:80", vector(SocketAddr::from(([192, 0, 2, 1], 80)))),
    ];
    let document = include_str!("../../../../docs/hashing.md");
    for (name, (bytes, digest)) in all {
        let row = format!("| {name} | `{bytes}` | `{digest:#018x}` |");
        assert!(document.contains(&row), "this row is missing: {row}");
    }
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

/// The table of `docs/hashing.md`.
#[cfg(feature = "crc64")]
#[test]
fn hashes_by_name_have_the_documented_digests() {
    use umbel::hash::{City64, Crc64, Farm64, Murmur3, Xxh3, Xxh64};
    use umbel::split::Plain;
    let document = include_str!("../../../../docs/hashing.md");
    let (_, table) =
        document.split_once("| hash | definition | seed | digest of a text |\n").unwrap();
    let digest_of = |hash, text: &str, seed: Option<u64>| -> Digest {
        match (hash, seed) {
            (3, Some(seed)) => Murmur3::seeded(seed as u32).digest(text),
            (4, Some(seed)) => Xxh64::seeded(seed).digest(text),
            (5, Some(seed)) => Xxh3::seeded(seed).digest(text),
            (6, None) => City64::default().digest(text),
            (6, Some(seed)) => City64::seeded(seed).digest(text),
            (7, None) => Farm64.digest(text),
            (8, None) => Crc64.digest(text),
            (9, None) => Plain.digest(text),
            other => panic!("not a hash with this seed: {other:?}"),
        }
    };
    let mut checked = 0;
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let hash: u16 = cells[0].parse().unwrap();
        let text = cells[3].split('`').nth(1).unwrap();
        for vector in cells[3].split("; ") {
            let (told, digest) = vector.rsplit_once(": ").unwrap();
            let seed = told.rsplit_once("seed ").map(|(_, seed)| seed.parse().unwrap());
            let expected =
                u64::from_str_radix(digest.trim_matches('`').trim_start_matches("0x"), 16);
            assert_eq!(digest_of(hash, text, seed), Digest::new(expected.unwrap()), "{row}");
            checked += 1;
        }
    }
    assert_eq!(checked, 8);
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
        [1087, 1286, 1468, 1992, 2379, 2624, 2832, 2862, 3241, 3914]
    );
    let fresh: Vec<u64> = filter.levels().iter().map(|level| level.fresh()).collect();
    assert_eq!(fresh, [100, 200, 400, 297]);
}

/// The state of a window filter in its bytes: insertions, and the fields from the time on.
fn state_of(filter: &WindowBloomFilter<u64>) -> [u64; 7] {
    let bytes = filter.to_bytes();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    [INSERTIONS, field(4), field(5), field(6), field(7), field(8), field(9)].map(number)
}

/// Computed by a second implementation in another language, written from `docs/hashing.md`.
#[test]
fn a_window_filter_keeps_its_words_its_state_and_its_mistakes() {
    let mut filter = WindowBloomFilter::<u64>::new(1_000, 0.01);
    let shape = *filter.shape();
    assert_eq!((shape.epochs(), shape.groups(), shape.probes()), (5, 7, 6));
    for (keys, expected, [group, epoch, way], first) in [
        (
            3_000,
            0xc3fb_4a7e_dac0_b364,
            [0, 3, 0],
            [3167, 3240, 3274, 3379, 3619, 3699, 3770, 3789, 3799, 3823],
        ),
        (
            3_100,
            0xfaad_c540_9a34_983a,
            [2, 3, 200],
            [3103, 3167, 3240, 3274, 3379, 3619, 3699, 3770, 3789, 3799],
        ),
    ] {
        filter.extend(filter.insertions()..keys);
        let fold = |fold: u64, word: &u64| fold.rotate_left(1) ^ word;
        assert_eq!(filter.words().iter().fold(0, fold), expected, "the words have changed");
        assert_eq!(mistakes(keys, |key| filter.contains(&key)), first);
        assert_eq!(filter.to_bytes()[10..16], [7, 0, 1, 0, 7, 0]);
        assert_eq!(state_of(&filter), [keys, 0, group, epoch, way, 0, 0]);
    }
    let nanos = std::time::Duration::from_nanos;
    let shape = window::Shape::for_even_time(nanos(400), 1_000, 0.01).unwrap();
    let mut timed = WindowBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
    timed.advance(nanos(1_000));
    timed.insert_at(&1, nanos(1_250));
    assert_eq!(timed.to_bytes()[10..16], [7, 0, 1, 0, 8, 0]);
    // 250 of a turn of 100: two turns, and three and a half of seven groups.
    assert_eq!(state_of(&timed), [1, 400, 3, 3, 50, 1, 1_250]);
}

/// Computed by a second implementation in another language, written from `docs/hashing.md`.
#[test]
fn a_stable_filter_keeps_its_cells_its_mistakes_and_what_it_forgets() {
    for ((cells, width, probes, decrements), keys, fold, first, kept) in [
        ((731, 3, 4, 51), 1_000, 0x88b2_3887_8c95_3e0e, [1000, 1040, 1041, 1092, 1125], 120),
        ((1_001, 1, 3, 7), 1_000, 0x44e8_91a0_dbd1_277f, [1006, 1014, 1148, 1169, 1204], 87),
        ((1_001, 8, 5, 900), 1_000, 0xf5f7_8034_a906_7dc3, [1005, 1006, 1009, 1016, 1025], 475),
        ((63, 2, 2, 63), 100, 0x353d_66ad_2d7d_a7c0, [158, 335, 350, 446, 447], 4),
    ] {
        let shape = stable::Shape::with(cells, width, probes, decrements).unwrap();
        let mut filter = StableBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        filter.extend(0..keys);
        let bit = |bit: u64| filter.words()[(bit / 64) as usize] >> (bit % 64) & 1;
        let cell = |cell: u64| (0..u64::from(width)).map(move |i| (cell * u64::from(width) + i, i));
        let folded = (0..cells).fold(0_u64, |fold, number| {
            let number: u64 = cell(number).map(|(at, place)| bit(at) << place).sum();
            fold.wrapping_mul(31).wrapping_add(number)
        });
        assert_eq!(folded, fold, "the cells have changed");
        assert_eq!(mistakes(keys, |key| filter.contains(&key)), first);
        assert_eq!((0..keys).filter(|key| filter.contains(key)).count(), kept);
    }
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
    let words_of = |filter: &umbel::QuotientFilter<u64>| {
        let bytes = filter.to_bytes();
        bytes[WORDS..bytes.len() - 8].to_vec()
    };
    let filled = |quotients, remainder, keys| {
        let shape = umbel::quotient::Shape::with(keys, quotients, remainder).unwrap();
        let mut filter = umbel::QuotientFilter::<u64>::with(shape, Portable::default()).unwrap();
        // The order of insertions does not matter.
        (0..keys).rev().for_each(|key| _ = filter.insert(&key).unwrap());
        filter
    };
    let filter = filled(1_100, 7, 1_000);
    let words = words_of(&filter);
    assert_eq!((words.len(), fnv(&words)), (1_616, 0x6d0f_0540_10a4_5b9e));
    assert_eq!(
        mistakes(1_000, |key| filter.contains(&key)),
        [1167, 1178, 1379, 1535, 1560, 1762, 1826, 1903, 1982, 2172]
    );
    // The example of `docs/hashing.md`.
    assert_eq!(filter.prefix(Portable::default().digest(&42_u64)), 1_078 << 7 | 79);

    let filter = filled(333, 13, 300);
    let words = words_of(&filter);
    assert_eq!((words.len(), fnv(&words)), (1_224, 0x7200_8833_0d1b_0295));
    assert_eq!(mistakes(300, |key| filter.contains(&key)), [4329, 19073, 19108]);
}
