//! All integration tests, in one binary.

/// A stable filter the slow way: plain numbers that age.
mod aging;
/// Filters of any family, as their typed twins.
mod any;
/// Any bytes, whatever the family: cut off, flipped, zeroed, moved, and lies with checksums in order.
mod any_bytes;
/// The table of methods in `docs/api.md`.
mod api;
/// The blocked filter against its definition, and what is meant to break it.
mod blocked;
/// What the guide to choosing says of space.
mod choosing;
/// The counting filter against a multiset, and what is meant to break it.
mod counting;
/// The cuckoo filter against a multiset of places, and what is meant to break it.
mod cuckoo;
/// Saving on a disk that loses, tears, reorders and fails.
mod disk;
/// Filters in real files, and what is no filter.
mod files;
/// The programs that a newcomer writes first.
mod first_minutes;
/// Bytes of filters that lie, with checksums in order.
mod forge;
/// Bytes that must never change: digests, positions, whole filters.
mod golden;
/// Files that were written once and must open for ever.
mod golden_files;
/// Parameters and keys meant to break a filter.
mod hostile;
/// The claims of each family, put to the law.
mod laws;
/// Filters that are used where they are, in a file.
#[cfg(feature = "mmap")]
mod mapped;
/// Filters against bits computed the slow way, and against each other.
mod model;
/// Records of several attributes against sets of them.
mod multi;
/// Whatever bytes are: opened as what they say, and used in every way.
mod opened;
/// The same bits and answers by every path a processor has.
mod paths;
/// Xor and binary fuse filters: every size, every kind of repetition, every way to fail.
mod peeled;
/// The quotient filter against a multiset, and what is meant to break it.
mod positions; // of a digest, from the definition
mod quotient;
/// The promised rate for every size, rate and pattern of keys.
mod rates;
/// A second reader of filters, written from the documents.
mod reader;
/// Ribbon filters and maps: nothing is lost, whatever the keys, and the bits depend on the keys alone.
mod ribbon;
/// The scalable filter against blocked ones, its rate as it grows, and where it ends.
mod scalable;
/// The split-block filter against Parquet's definition of it and the bytes of others.
mod split;
/// The stable filter against plain numbers that age, and what is meant to break it.
mod stable;
/// Saving with real system calls, killed and failing at each of them.
#[cfg(target_os = "linux")]
mod strace;
/// Many threads, one filter.
mod threads;
/// Filters through serde.
#[cfg(feature = "serde")]
mod through_serde;

/// Which family implements which trait.
mod traits;

/// The window filter against its definition, and clocks, sizes and bytes meant to break it.
mod window;

/// What is no filter, or not the wanted one: an error that names the field, at once.
mod wrong_use;

/// Filters as subjects of the law.
mod subjects;

/// One filter of each family, hash and kind of keys.
#[path = "../../examples/golden/filters.rs"]
mod filters;

/// The names of golden files, and what the table says of them.
#[path = "../../examples/golden/files.rs"]
mod golden_table;

/// Kernels of one's own, from the example.
#[path = "../../examples/own_kernels/independent.rs"]
mod independent;

/// So many cases of a property. They are the same in every run, since the fuzzers (`fuzz/run`) are there to
/// find new ones; `PROPTEST_RNG_SEED=7 cargo test` tries others.
fn cases(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    match config.rng_seed {
        RngSeed::Random => Config { rng_seed: RngSeed::Fixed(20_261_118), ..config },
        RngSeed::Fixed(_) => config,
    }
}
