//! The statements of `docs/choosing.md` about space.

use core::time::Duration;
use umbel::plan::AnyShape;
use umbel::{RibbonFilter, blocked, bloom, fuse, split, window, xor};

/// `docs/check` compares the table with its copies.
#[test]
fn the_chooser_says_the_bits_per_key_of_a_million_keys() {
    const ITEMS: u64 = 1_000_000;
    let document = include_str!("../../../../docs/choosing.md");
    let both = |places: usize, bytes: &dyn Fn(f64) -> u64| {
        [0.01, 0.001]
            .map(|rate| format!("{:.places$}", bytes(rate) as f64 * 8.0 / ITEMS as f64))
            .join(", ")
    };
    let of =
        |family| both(1, &|rate| AnyShape::for_rate(family, ITEMS, rate).unwrap().unwrap().bytes());
    let minute = Duration::from_secs(60);
    let bursts = |rate| window::Shape::for_time(minute, ITEMS, rate).unwrap().bytes();
    let ribbon = |rate| RibbonFilter::<u64>::build(0..ITEMS, rate).unwrap().bytes();
    let classic_and_blocked = format!("{} and {}", of("bloom"), of("blocked"));
    for (types, bits) in [
        ("`BloomFilter`", of("bloom")),
        ("`BlockedBloomFilter`", of("blocked")),
        ("`ArrayBloomFilter`, `ArrayBlockedBloomFilter`", classic_and_blocked.clone()),
        ("`AtomicBloomFilter`, `AtomicBlockedBloomFilter`", classic_and_blocked),
        ("`CuckooFilter`", of("cuckoo")),
        ("`QuotientFilter`", of("quotient")),
        ("`CountingBloomFilter`", of("counting")),
        ("`BlockedCountingBloomFilter`", of("blocked-counting")),
        ("`WindowBloomFilter`", of("window")),
        ("`WindowBloomFilter` with `window::Shape::for_time`", both(0, &bursts)),
        ("`BinaryFuseFilter`, `BinaryFuse4Filter`", format!("{} and {}", of("fuse"), of("fuse4"))),
        ("`XorFilter`", of("xor")),
        ("`RibbonFilter`", both(2, &ribbon)),
    ] {
        let row = format!(" | {types} | {bits} |");
        assert!(document.contains(&row), "this row is missing: {row}");
    }
}

#[test]
fn choosing_md_tells_the_bits_that_filters_take() {
    const ITEMS: u64 = 1_000_000;
    let document = include_str!("../../../../docs/choosing.md");
    let rows = document.lines().filter(|line| line.starts_with("| 0."));
    let mut checked = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let rate: f64 = cells[0].parse().unwrap();
        let in_lines = |lines| blocked::Shape::for_rate_in_lines(ITEMS, rate, lines).unwrap();
        let chosen = blocked::Shape::for_rate(ITEMS, rate).unwrap();
        let expected = [
            bloom::Shape::for_rate(ITEMS, rate).unwrap().bytes(),
            in_lines(1).bytes(),
            in_lines(2).bytes(),
            split::Shape::for_rate_tight(ITEMS, rate).unwrap().bytes(),
        ];
        for (number, bytes) in expected.into_iter().enumerate() {
            let bits = format!("{:.2}", bytes as f64 * 8.0 / ITEMS as f64);
            let bold = number as u32 == chosen.lines_per_key();
            let expected = if bold { format!("**{bits}**") } else { bits };
            assert_eq!(cells[number + 1], expected, "{row}");
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn choosing_md_tells_the_bits_of_sets_that_do_not_change() {
    let document = include_str!("../../../../docs/choosing.md");
    let rows = document.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        Some((cells.first()?.parse::<u64>().ok()?, cells))
    });
    let mut checked = 0;
    for (items, cells) in rows {
        let expected = [
            xor::Shape::for_bits(items, 8).unwrap().bits_per_key(),
            fuse::Shape::for_bits(items, 8).unwrap().bits_per_key(),
            fuse::Shape4::for_bits(items, 8).unwrap().bits_per_key(),
            // The number of rows is known only after all keys have found one.
            RibbonFilter::<u64>::build(0..items, 1.0 / 256.0).unwrap().bytes() as f64 * 8.0
                / items as f64,
        ];
        assert_eq!(cells[1..], expected.map(|bits| format!("{bits:.2}")), "{items} keys");
        checked += 1;
    }
    assert_eq!(checked, 7);
}
