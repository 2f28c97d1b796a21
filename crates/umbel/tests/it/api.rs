//! The table of `docs/api.md`: every cell is compiled, and every row must stand in the document.

use umbel::{
    AtomicBlockedBloomFilter, AtomicBloomFilter, BatchFull, BinaryFuse4Filter, BinaryFuseFilter,
    BlockedBloomFilter, BlockedCountingBloomFilter, BloomFilter, CountingBloomFilter, CuckooFilter,
    Digest, Full, Incompatible, QuotientFilter, RibbonFilter, ScalableBloomFilter,
    SplitBlockBloomFilter, StableBloomFilter, Unmergeable, WindowBloomFilter, XorFilter,
};

/// The type of a method, and the cell that says so.
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
        let _: fn(u64, f64) -> Result<$f<u64>, umbel::InvalidShape> = $f::<u64>::try_new;
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
        let _: fn(&mut $f<u64>, &$f<u64>) -> Result<(), Incompatible> = $f::union_with;
        "union_with"
    }};
    (unite $f:ident shared) => {{
        let _: fn(&$f<u64>, &$f<u64>) -> Result<(), Incompatible> = $f::union_with;
        "union_with, `&self`"
    }};
    (unite $f:ident merge_with) => {{
        let _: fn(&mut $f<u64>, &$f<u64>) -> Result<(), Incompatible> = $f::merge_with;
        "merge_with"
    }};
    (unite $f:ident unmergeable) => {{
        let _: fn(&mut $f<u64>, &$f<u64>) -> Result<(), Unmergeable> = $f::merge_with;
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
    (clear $f:ident yes) => {{
        let _: fn(&mut $f<u64>) = $f::clear;
        "yes"
    }};
    ($what:ident $f:ident no) => { "no" };
}

macro_rules! rows {
    ($($f:ident: $made:ident $insert:ident $remove:ident $count:ident $unite:ident $len:ident
        $extend:ident $clear:ident;)*) => {
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
        ]),*]
    };
}

#[test]
fn the_table_of_methods_is_true() {
    let rows = rows! {
        BloomFilter: new bool no no union_with estimated_len yes yes;
        BlockedBloomFilter: new bool no no union_with estimated_len yes yes;
        SplitBlockBloomFilter: new bool no no union_with estimated_len yes yes;
        AtomicBloomFilter: new shared no no shared estimated_len shared yes;
        AtomicBlockedBloomFilter: new shared no no shared estimated_len shared yes;
        CountingBloomFilter: new bool yes yes merge_with estimated_len yes yes;
        BlockedCountingBloomFilter: new bool yes yes merge_with estimated_len yes yes;
        ScalableBloomFilter: collect Result no no no estimated_len yes yes;
        StableBloomFilter: new bool no no no no yes yes;
        WindowBloomFilter: new bool no no no estimated_len yes yes;
        CuckooFilter: new Result yes yes unmergeable len no yes;
        QuotientFilter: new Result yes yes merge_with len no yes;
        XorFilter: build no no no no len no no;
        BinaryFuseFilter: build no no no no len no no;
        BinaryFuse4Filter: build no no no no len no no;
        RibbonFilter: build no no no no len no no;
    };
    let document = include_str!("../../../../docs/api.md");
    let written: Vec<&str> = document
        .lines()
        .skip_while(|line| !line.starts_with("| filter | made by |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let expected: Vec<String> =
        rows.iter().map(|cells| format!("| {} |", cells.join(" | "))).collect();
    assert_eq!(written, expected);
}
