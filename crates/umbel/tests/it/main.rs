//! All integration tests, in one binary.

/// A model of the stable filter: plain numbers that age.
mod aging;
/// Filters of any family, as their typed twins.
mod any;
/// Any bytes, in every family: truncated, flipped, zeroed or moved, and wrong fields with correct checksums.
mod any_bytes;
/// The table of methods in `docs/api.md`.
mod api;
/// The blocked filter against its definition, and hostile input.
mod blocked;
/// The statements of the guide to choosing about space.
mod choosing;
/// The counting filter against a multiset, and hostile input.
mod counting;
/// The cuckoo filter against a multiset of places, and hostile input.
mod cuckoo;
/// Saving on a disk that loses, tears, reorders and fails.
mod disk;
/// Filters in real files, and files that are not filters.
mod files;
/// The first programs of a new user.
mod first_minutes;
/// Bytes of filters with wrong fields and correct checksums.
mod forge;
/// Bytes that must never change: digests, positions, whole filters.
mod golden;
/// Files of earlier versions, which must open for ever.
mod golden_files;
/// Hostile parameters and keys.
mod hostile;
/// The guarantees of each family, tested by the laws.
mod laws;
/// Filters that are mapped from a file.
#[cfg(feature = "mmap")]
mod mapped;
/// Filters against a slow model of their bits, and against each other.
mod model;
/// Records of several attributes against sets of them.
mod multi;
/// Accepted bytes, opened as their family, and used in every way.
mod opened;
/// The same bits and answers on every code path of a processor.
mod paths;
/// Xor and binary fuse filters: every size, every kind of repetition, every way to fail.
mod peeled;
/// The quotient filter against a multiset, and hostile input.
mod positions; // of a digest, from the definition
mod quotient;
/// The promised false positive rate for every size, rate and pattern of keys.
mod rates;
/// A second reader of filters, written from the documents.
mod reader;
/// Ribbon filters and maps: no key is lost, for any keys, and the bits depend on the keys alone.
mod ribbon;
/// The scalable filter against blocked ones, its rate as it grows, and where it ends.
mod scalable;
/// The split-block filter against Parquet's definition of it and the bytes of others.
mod split;
/// The stable filter against plain numbers that age, and hostile input.
mod stable;
/// Saving with real system calls that are killed or fail.
#[cfg(target_os = "linux")]
mod strace;
/// Many threads, one filter.
mod threads;
/// Filters through serde.
#[cfg(feature = "serde")]
mod through_serde;

/// Which family implements which trait.
mod traits;

/// The window filter against its definition, with hostile clocks, sizes and bytes.
mod window;

/// Bytes that are not the expected filter: an early error that names the field.
mod wrong_use;

/// Filters behind the interface of the laws.
mod subjects;

/// One filter of each family, hash and kind of keys.
#[path = "../../examples/golden/filters.rs"]
mod filters;

/// The names of golden files, and the content of their table.
#[path = "../../examples/golden/files.rs"]
mod golden_table;

/// Custom kernels, from the example.
#[path = "../../examples/own_kernels/independent.rs"]
mod independent;

/// The number of cases of a property. The cases are the same in every run, because the fuzzers (`fuzz/run`)
/// find new ones. `PROPTEST_RNG_SEED=7 cargo test` tries others.
fn cases(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    match config.rng_seed {
        RngSeed::Random => Config { rng_seed: RngSeed::Fixed(20_261_118), ..config },
        RngSeed::Fixed(_) => config,
    }
}
