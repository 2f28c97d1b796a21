//! The table of `docs/api.md`: every cell is compiled, and every row must be in the document.

use umbel::plan::{AnyShape, FAMILIES};
use umbel::sizing::{Rate, Shape};
use umbel::{
    AtomicBlockedBloomFilter, AtomicBloomFilter, BatchFull, BinaryFuse4Filter, BinaryFuseFilter,
    BlockedBloomFilter, BlockedCountingBloomFilter, BloomFilter, CountingBloomFilter, CuckooFilter,
    Digest, Full, Incompatible, InvalidShape, QuotientFilter, RibbonFilter, ScalableBloomFilter,
    SplitBlockBloomFilter, StableBloomFilter, WindowBloomFilter, XorFilter,
};

/// The type of a method, and its cell in the table.
macro_rules! cell {
    (insert $f:ident bool) => {{
        let _: fn(&mut $f<u64>, &u64) -> bool = $f::insert;
        let _: fn(&mut $f<u64>, Digest) -> bool = $f::insert_digest;
        let _: fn(&mut $f<u64>, &[u64], &mut [bool]) = $f::insert_batch;
        let _: fn(&mut $f<u64>, &[Digest], &mut [bool]) = $f::insert_digests;
        "bool"
    }};
    (insert $f:ident shared) => {{
        let _: fn(&$f<u64>, &u64) -> bool = $f::insert;
        let _: fn(&$f<u64>, Digest) -> bool = $f::insert_digest;
        let _: fn(&$f<u64>, &[u64], &mut [bool]) = $f::insert_batch;
        let _: fn(&$f<u64>, &[Digest], &mut [bool]) = $f::insert_digests;
        "bool, `&self`"
    }};
    (insert $f:ident Result) => {{
        let _: fn(&mut $f<u64>, &u64) -> Result<bool, Full> = $f::insert;
        let _: fn(&mut $f<u64>, Digest) -> Result<bool, Full> = $f::insert_digest;
        let _: fn(&mut $f<u64>, &[u64], &mut [bool]) -> Result<(), BatchFull> = $f::insert_batch;
        let _: fn(&mut $f<u64>, &[Digest], &mut [bool]) -> Result<(), BatchFull> =
            $f::insert_digests;
        "Result"
    }};
    (made $f:ident new) => {{
        let _: fn(u64, f64) -> $f<u64> = $f::<u64>::new;
        let _: fn(u64, f64) -> Result<$f<u64>, InvalidShape> = $f::<u64>::try_new;
        "new"
    }};
    (made $f:ident collect) => {{
        let _: fn(Vec<u64>) -> $f<u64> = |keys| keys.into_iter().collect();
        cell!(made $f new);
        "new, collect"
    }};
    (made $f:ident build) => {{
        let _: fn(Vec<u64>, f64) -> Result<$f<u64>, umbel::frozen::BuildError> = $f::<u64>::build;
        "build"
    }};
    (remove $f:ident yes) => {{
        let _: fn(&mut $f<u64>, &u64) -> bool = $f::remove;
        let _: fn(&mut $f<u64>, Digest) -> bool = $f::remove_digest;
        let _: fn(&mut $f<u64>, &[u64], &mut [bool]) = $f::remove_batch;
        let _: fn(&mut $f<u64>, &[Digest], &mut [bool]) = $f::remove_digests;
        "yes"
    }};
    (count $f:ident yes) => {{
        let _: fn(&$f<u64>, &u64) -> u64 = $f::estimated_count;
        let _: fn(&$f<u64>, Digest) -> u64 = $f::estimated_count_digest;
        "yes"
    }};
    (unite $f:ident union_with) => {{
        let _: fn(&$f<u64>, &$f<u64>) -> bool = $f::is_compatible;
        let _: fn(&mut $f<u64>, &$f<u64>) -> Result<(), Incompatible> = $f::union_with;
        "union_with"
    }};
    (unite $f:ident shared) => {{
        let _: fn(&$f<u64>, &$f<u64>) -> bool = $f::is_compatible;
        let _: fn(&$f<u64>, &$f<u64>) -> Result<(), Incompatible> = $f::union_with;
        "union_with, `&self`"
    }};
    (unite $f:ident merge_with) => {{
        let _: fn(&$f<u64>, &$f<u64>) -> bool = $f::is_compatible;
        let _: fn(&mut $f<u64>, &$f<u64>) -> Result<(), Incompatible> = $f::merge_with;
        "merge_with"
    }};
    (len $f:ident no) => { "no" };
    (len $f:ident $len:ident) => {{
        let _: fn(&$f<u64>) -> u64 = $f::$len;
        let _: fn(&$f<u64>) -> bool = $f::is_empty;
        stringify!($len)
    }};
    (extend $f:ident yes) => {{
        let _: fn(&mut $f<u64>, Vec<u64>) = |filter, keys| filter.extend(keys);
        "yes"
    }};
    (extend $f:ident shared) => {{
        let _: fn(&$f<u64>, Vec<u64>) = |mut filter, keys| filter.extend(keys);
        "by `&`"
    }};
    (eq $f:ident yes) => {{
        fn is_eq<F: Eq>() {}
        is_eq::<$f<u64>>();
        "`Eq`"
    }};
    (eq $f:ident partly) => {{
        fn is_eq<F: PartialEq>() {}
        is_eq::<$f<u64>>();
        "`PartialEq`"
    }};
    (clear $f:ident yes) => {{
        let _: fn(&mut $f<u64>) = $f::clear;
        "yes"
    }};
    ($what:ident $f:ident no) => { "no" };
}

macro_rules! rows {
    ($($f:ident: $made:ident $insert:ident $remove:ident $count:ident $unite:ident $len:ident
        $extend:ident $clear:ident $eq:ident;)*) => {
        [$([
            stringify!($f),
            cell!(made $f $made),
            cell!(insert $f $insert),
            cell!(remove $f $remove),
            cell!(count $f $count),
            cell!(unite $f $unite),
            cell!(len $f $len),
            cell!(extend $f $extend),
            cell!(clear $f $clear),
            cell!(eq $f $eq),
        ]),*]
    };
}

/// The rows of the table in the document that has this head.
fn table(head: &str) -> Vec<&'static str> {
    include_str!("../../../../docs/api.md")
        .lines()
        .skip_while(|line| !line.starts_with(head))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect()
}

#[test]
fn the_table_of_methods_is_true() {
    let rows = rows! {
        BloomFilter: new bool no no union_with estimated_len yes yes yes;
        BlockedBloomFilter: new bool no no union_with estimated_len yes yes yes;
        SplitBlockBloomFilter: new bool no no union_with estimated_len yes yes yes;
        AtomicBloomFilter: new shared no no shared estimated_len shared yes partly;
        AtomicBlockedBloomFilter: new shared no no shared estimated_len shared yes partly;
        CountingBloomFilter: new bool yes yes merge_with estimated_len yes yes yes;
        BlockedCountingBloomFilter: new bool yes yes merge_with estimated_len yes yes yes;
        ScalableBloomFilter: collect Result no no no estimated_len yes yes yes;
        StableBloomFilter: new bool no no no no yes yes yes;
        WindowBloomFilter: new bool no no no estimated_len yes yes yes;
        CuckooFilter: new Result yes yes merge_with len no yes yes;
        QuotientFilter: new Result yes yes merge_with len no yes yes;
        XorFilter: build no no no no len no no yes;
        BinaryFuseFilter: build no no no no len no no yes;
        BinaryFuse4Filter: build no no no no len no no yes;
        RibbonFilter: build no no no no len no no yes;
    };
    let expected: Vec<String> =
        rows.iter().map(|cells| format!("| {} |", cells.join(" | "))).collect();
    assert_eq!(table("| filter | made by |"), expected);
}

/// A row of the table of shapes: the names that every family has, with their types, and their promises for a
/// filter of 10,000 items at 1 %.
macro_rules! shape {
    ($name:literal, $shape:ty) => {{
        let _: fn(u64, f64) -> Result<$shape, InvalidShape> = <$shape>::for_rate;
        let _: fn(u64, u64) -> Result<$shape, InvalidShape> = <$shape>::for_memory;
        let _: [fn(&$shape) -> u64; 4] =
            [<$shape>::items, <$shape>::bits, <$shape>::words, <$shape>::bytes];
        let _: fn(&$shape) -> f64 = <$shape>::bits_per_key;
        let _: fn(&$shape, u64) -> f64 = <$shape>::expected_rate;
        keeps_its_promises($name, <$shape>::for_rate, <$shape>::for_memory);
        let path = stringify!($shape).replace(' ', "");
        format!("| `{path}` | {} |", <$shape as Shape>::NAME)
    }};
}

/// Every shape keeps its promised size and false positive rate. For the memory that a rate needs there is a
/// shape with that rate, or a better one.
fn keeps_its_promises<S: Shape>(
    name: &str,
    for_rate: fn(u64, f64) -> Result<S, InvalidShape>,
    for_memory: fn(u64, u64) -> Result<S, InvalidShape>,
) {
    for (items, rate) in [(1, 0.5), (10_000, 0.01), (1_000_000, 1e-3)] {
        let planned = for_rate(items, rate).unwrap();
        let bytes = planned.words() * 8;
        assert!(planned.items() >= items, "{name}: {planned:?}");
        assert!(planned.bits() <= bytes * 8 && planned.bits() > 0, "{name}: {planned:?}");
        let kept = planned.expected_rate(items);
        assert!(kept > 0.0 && kept <= rate * 1.000_001, "{name}: {kept} of {rate}");
        assert_eq!(planned.expected_rate(0), 0.0, "{name}");

        // The steps of a rate are as wide as those of its numbers of bits or probes.
        let same = for_memory(items, bytes).unwrap();
        assert!(same.words() * 8 <= bytes, "{name}: {same:?} {bytes}");
        assert!(same.items() >= items, "{name}: {same:?}");
        let better = same.expected_rate(items).max(Rate::MIN.get());
        assert!(better <= kept * 1.000_01, "{name}: {better} {kept} {planned:?} {same:?}");
        let twice = for_memory(items, bytes * 2).unwrap().expected_rate(items).max(Rate::MIN.get());
        assert!(twice <= better, "{name}: {twice} {better}");
        for too_much in [1 << 46, u64::MAX] {
            let error = for_memory(items, too_much).unwrap_err();
            assert!(matches!(error, InvalidShape::TooLarge { .. }), "{name}: {error}");
        }
        let error = for_memory(items, 7).unwrap_err();
        let InvalidShape::TooSmall { bytes: 7, min } = error else { panic!("{name}: {error}") };
        assert!(for_memory(items, min).is_ok() && min > 7, "{name}: {min}");
    }
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        let error = for_rate(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{name}: {error}");
    }
    for items in [1 << 60, u64::MAX] {
        assert!(for_rate(items, 0.01).is_err(), "{name}: {items}");
    }
}

#[test]
fn the_table_of_shapes_is_true() {
    let rows = [
        shape!("bloom", umbel::bloom::Shape),
        shape!("blocked", umbel::blocked::Shape),
        shape!("split", umbel::split::Shape),
        shape!("counting", umbel::counting::Shape),
        shape!("blocked-counting", umbel::counting::LineShape),
        shape!("scalable", umbel::scalable::Shape),
        shape!("stable", umbel::stable::Shape),
        shape!("window", umbel::window::Shape),
        shape!("cuckoo", umbel::cuckoo::Shape),
        shape!("quotient", umbel::quotient::Shape),
        shape!("xor", umbel::xor::Shape),
        shape!("fuse", umbel::fuse::Shape),
        shape!("fuse4", umbel::fuse::Shape4),
        shape!("ribbon", umbel::ribbon::Shape),
    ];
    assert_eq!(table("| shape | of |"), rows);
}

#[test]
fn a_shape_whose_family_is_known_at_run_time_is_that_of_the_family() {
    for family in FAMILIES {
        let planned = AnyShape::for_rate(family, 10_000, 0.01).unwrap().unwrap();
        let same = AnyShape::for_memory(family, 10_000, planned.bytes()).unwrap().unwrap();
        assert_eq!((planned.family(), same.family()), (family, family));
        assert!(same.bytes() <= planned.bytes() && same.items() >= 10_000);
        assert!(same.expected_rate(10_000).unwrap() <= planned.expected_rate(10_000).unwrap());
        let bits = planned.bytes() as f64 * 8.0 / 10_000.0;
        assert!((planned.bits_per_key() - bits).abs() < 1e-9, "{family}");
    }
    assert!(AnyShape::for_memory("bloomier", 1, 100).is_none());
}
