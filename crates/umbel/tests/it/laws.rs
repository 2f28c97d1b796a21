//! The guarantees of each family, each tested by a law.

use crate::independent::{Independent, ManyHashes};
use crate::subjects::Aged;
use crate::subjects::{ARRAY_ITEMS, ARRAY_RATE, Array, Atomic, Identity, Plain, Strings};
use crate::subjects::{AtomicSplit, Blocked, BlockedArray, Counting, Grown, GrownFromOne};
use crate::subjects::{BlockedCounting, Built, Cuckoo, JoinedRecords, Quotient, Recent, Records};
use crate::subjects::{Opened, Split, Stunted};
use std::hash::BuildHasherDefault;
use umbel::blocked::Lines;
use umbel::frozen::Peeled;
use umbel::fuse::Fused;
use umbel::hash::{City64, Farm64, Murmur3, Xxh3, Xxh64};
use umbel::ribbon::Ribbon;
use umbel::xor::Thirds;
use umbel::{Keyed, Portable, Std};
use umbel_laws::{AgeingTrial, Pattern, Subject, Trial, Unites};

/// The table of guarantees: a name, the subject, and the laws that it obeys.
macro_rules! claims {
    ($($name:ident: $subject:ty => $($law:ident)*;)*) => {$(
        mod $name {
            use super::*;
            $(claims!(@ $subject, $law);)*
        }
    )*};
    (@ $subject:ty, no_false_negatives) => {
        #[test]
        fn no_false_negatives() {
            for items in (1..=40).chain([100, 1_000, 20_000]) {
                for rate in [0.5, 0.01, 1e-9] {
                    umbel_laws::no_false_negatives::<$subject>(items, rate);
                }
            }
        }
    };
    // A static filter is rebuilt after every insertion that the law checks.
    (@ $subject:ty, no_false_negatives_when_built) => {
        #[test]
        fn no_false_negatives() {
            for items in (1..=40).chain([100, 500]) {
                for rate in [0.5, 0.01, 1e-9] {
                    umbel_laws::no_false_negatives::<$subject>(items, rate);
                }
            }
        }
    };
    (@ $subject:ty, rate_within) => {
        #[test]
        fn rate_within() {
            for items in [1, 2, 5, 10, 100, 1_000, 10_000] {
                for rate in [0.1, 0.01, 0.001] {
                    let pattern = Pattern::Sequential;
                    let trial = Trial { items, rate, pattern, seeds: 10, queries: 160_000 };
                    umbel_laws::rate_within::<$subject>(trial);
                }
            }
        }
    };
    // Filters of a few lines differ by chance: by 29 % (one sigma) for 100 keys at 0.1 %. So the mean needs
    // more filters, with fewer look-ups each.
    (@ $subject:ty, rate_within_of_lines) => {
        #[test]
        fn rate_within() {
            for items in [1, 2, 5, 10, 100, 1_000, 10_000] {
                for rate in [0.1, 0.01, 0.001] {
                    let pattern = Pattern::Sequential;
                    let trial = Trial { items, rate, pattern, seeds: 30, queries: 60_000 };
                    umbel_laws::rate_within::<$subject>(trial);
                }
            }
        }
    };
    // An array has a size that was fixed at compile time, so its laws use that size.
    (@ $subject:ty, no_false_negatives_in_an_array) => {
        #[test]
        fn no_false_negatives() {
            for items in [1, 2, 3, 10, 100, 999, ARRAY_ITEMS] {
                umbel_laws::no_false_negatives::<$subject>(items, ARRAY_RATE);
            }
        }
    };
    (@ $subject:ty, rate_within_in_an_array) => {
        #[test]
        fn rate_within() {
            for pattern in Pattern::ALL {
                let (items, rate) = (ARRAY_ITEMS, ARRAY_RATE);
                let trial = Trial { items, rate, pattern, seeds: 10, queries: 1_000_000 };
                umbel_laws::rate_within::<$subject>(trial);
            }
        }
    };
    (@ $subject:ty, refuses_incompatible_in_an_array) => {
        #[test]
        fn refuses_another_seed() {
            let mut filter = <$subject>::make(ARRAY_ITEMS, ARRAY_RATE, 1);
            let other = <$subject>::make(ARRAY_ITEMS, ARRAY_RATE, 2);
            assert!(filter.unite(&other).is_err());
            let fewer_probes = <$subject>::make(1, 0.5, 1);
            assert!(filter.unite(&fewer_probes).is_err());
        }
    };
    // At these sizes, another rate leads to another power of two.
    (@ $subject:ty, refuses_incompatible_powers_of_two) => {
        #[test]
        fn refuses_incompatible() {
            for items in [300, 1_000] {
                umbel_laws::refuses_incompatible::<$subject>(items, 0.01);
            }
        }
    };
    // If each of several filters has a share of the rate, filters for a few keys all take one word.
    (@ $subject:ty, refuses_incompatible_shares) => {
        #[test]
        fn refuses_incompatible() {
            for items in [100, 300] {
                umbel_laws::refuses_incompatible::<$subject>(items, ARRAY_RATE);
            }
        }
    };
    (@ $subject:ty, keeps_the_window) => {
        #[test]
        fn keeps_the_window() {
            for window in (1..=10).chain([100, 1_000, 20_000]) {
                for rate in [0.5, 0.01, 1e-6] {
                    umbel_laws::keeps_the_window::<$subject>(window, rate, 20 * window + 10_000);
                }
            }
        }
    };
    // Filters that are planned for a number of remembered keys.
    (@ $subject:ty, finds_what_just_came) => {
        #[test]
        fn finds_what_just_came() {
            for items in [1, 10, 100, 1_000] {
                for rate in [0.3, 0.03, 1e-3] {
                    umbel_laws::finds_what_just_came::<$subject>(items, rate);
                }
            }
        }
    };
    (@ $subject:ty, forgets_what_is_older) => {
        #[test]
        fn forgets_what_is_older() {
            for (window, rate) in [(1_000, 0.1), (1_000, 0.01), (5_000, 0.01), (20_000, 0.001)] {
                umbel_laws::forgets_what_is_older::<$subject>(window, rate, 2_000);
            }
        }
    };
    // Filters that are planned for a number of cells, of a width that is possible with few cells.
    (@ $subject:ty, settles_at_its_rate_in_cells) => {
        #[test]
        fn settles_at_its_rate() {
            for (items, rate) in [(101, 0.1), (730, 0.03), (730, 0.3), (5_000, 0.01)] {
                for pattern in [Pattern::Sequential, Pattern::Random] {
                    let trial = AgeingTrial { items, rate, pattern, rounds: 800_000 };
                    umbel_laws::settles_at_its_rate::<$subject>(trial);
                }
            }
        }
    };
    (@ $subject:ty, settles_at_its_rate_in_wide_cells) => {
        #[test]
        fn settles_at_its_rate() {
            for (items, rate) in [(3_000, 0.03), (3_000, 0.1)] {
                let pattern = Pattern::Sequential;
                let trial = AgeingTrial { items, rate, pattern, rounds: 200_000 };
                umbel_laws::settles_at_its_rate::<$subject>(trial);
            }
        }
    };
    (@ $subject:ty, $law:ident) => {
        #[test]
        fn $law() {
            for items in [1, 2, 10, 100, 300] {
                umbel_laws::$law::<$subject>(items, ARRAY_RATE);
            }
        }
    };
}

claims! {
    bloom: Plain =>
        no_false_negatives rate_within union_contains_both refuses_incompatible
        round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    bloom_of_strings: Strings =>
        no_false_negatives rate_within union_contains_both refuses_incompatible
        round_trips survives_any_bytes;
    bloom_with_a_secret: Plain<Keyed> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible;
    bloom_with_the_identity: Plain<Std<BuildHasherDefault<Identity>>> =>
        no_false_negatives rate_within union_contains_both;
    bloom_with_murmur3: Plain<Murmur3> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible;
    bloom_with_xxh64: Plain<Xxh64> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible;
    bloom_with_xxh3: Plain<Xxh3> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible;
    bloom_with_city64: Plain<City64> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible;
    bloom_with_farm64: Plain<Farm64> =>
        no_false_negatives rate_within union_contains_both;
    array: Array =>
        no_false_negatives_in_an_array rate_within_in_an_array union_contains_both
        refuses_incompatible_in_an_array round_trips survives_any_bytes;
    atomic: Atomic =>
        no_false_negatives rate_within union_contains_both refuses_incompatible
        round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    independent_kernels: Plain<ManyHashes, Independent> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible;
    blocked: Blocked =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible
        round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    blocked_of_strings: Strings<Lines> =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible
        round_trips survives_any_bytes;
    blocked_with_a_secret: Blocked<Keyed> =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible;
    blocked_with_the_identity: Blocked<Std<BuildHasherDefault<Identity>>> =>
        no_false_negatives rate_within_of_lines union_contains_both;
    blocked_with_murmur3: Blocked<Murmur3> =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible;
    blocked_with_xxh3: Blocked<Xxh3> =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible;
    blocked_array: BlockedArray =>
        no_false_negatives_in_an_array rate_within_in_an_array union_contains_both
        refuses_incompatible_in_an_array round_trips survives_any_bytes;
    atomic_blocked: Atomic<Portable, Lines> =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible
        round_trips survives_any_bytes;
    counting: Counting =>
        no_false_negatives rate_within remove_undoes_insert union_contains_both
        refuses_incompatible round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    counting_with_a_secret: Counting<Keyed> =>
        no_false_negatives rate_within remove_undoes_insert union_contains_both
        refuses_incompatible;
    counting_with_the_identity: Counting<Std<BuildHasherDefault<Identity>>> =>
        no_false_negatives rate_within remove_undoes_insert union_contains_both;
    blocked_counting: BlockedCounting =>
        no_false_negatives rate_within_of_lines remove_undoes_insert union_contains_both
        refuses_incompatible round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    blocked_counting_with_the_identity: BlockedCounting<Std<BuildHasherDefault<Identity>>> =>
        no_false_negatives rate_within_of_lines remove_undoes_insert union_contains_both;
    cuckoo: Cuckoo =>
        no_false_negatives rate_within remove_undoes_insert refuses_incompatible round_trips
        survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    cuckoo_with_a_secret: Cuckoo<Keyed> =>
        no_false_negatives rate_within remove_undoes_insert refuses_incompatible;
    cuckoo_with_the_identity: Cuckoo<Std<BuildHasherDefault<Identity>>> =>
        no_false_negatives rate_within remove_undoes_insert
        a_batch_stops_at_the_first_key_without_room;
    // A union is a sum and needs the room of all its parts.
    cuckoo_with_room: Cuckoo<Portable, 3> =>
        union_contains_both refuses_incompatible;
    quotient: Quotient =>
        no_false_negatives rate_within remove_undoes_insert union_contains_both
        refuses_incompatible round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    quotient_with_a_secret: Quotient<Keyed> =>
        no_false_negatives rate_within remove_undoes_insert union_contains_both
        refuses_incompatible;
    quotient_with_the_identity: Quotient<Std<BuildHasherDefault<Identity>>> =>
        no_false_negatives rate_within remove_undoes_insert union_contains_both
        a_batch_stops_at_the_first_key_without_room;
    split: Split =>
        no_false_negatives rate_within union_contains_both round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    split_with_a_seed: Split<Portable> =>
        no_false_negatives rate_within union_contains_both refuses_incompatible_powers_of_two
        round_trips survives_any_bytes;
    atomic_split: AtomicSplit =>
        no_false_negatives rate_within union_contains_both round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    multi: Records =>
        no_false_negatives rate_within union_contains_both refuses_incompatible_shares;
    multi_with_a_joint_filter: JoinedRecords =>
        no_false_negatives rate_within_of_lines union_contains_both refuses_incompatible_shares;
    atomic_split_with_a_seed: AtomicSplit<Portable> =>
        union_contains_both refuses_incompatible_powers_of_two;
    scalable: Grown =>
        no_false_negatives rate_within_of_lines round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    scalable_from_one: GrownFromOne =>
        no_false_negatives rate_within_of_lines round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    window: Recent =>
        no_false_negatives rate_within_of_lines keeps_the_window forgets_what_is_older
        round_trips survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    window_with_a_secret: Recent<Keyed> =>
        keeps_the_window forgets_what_is_older;
    window_with_the_identity: Recent<Std<BuildHasherDefault<Identity>>> =>
        keeps_the_window forgets_what_is_older;
    stable: Aged<0> => finds_what_just_came survives_any_bytes
        a_batch_stops_at_the_first_key_without_room;
    stable_with_room: Aged<0, 50> => round_trips;
    stable_of_1_bit: Aged<1> => settles_at_its_rate_in_cells;
    stable_of_2_bits: Aged<2> => settles_at_its_rate_in_cells;
    stable_of_3_bits: Aged<3> => settles_at_its_rate_in_cells;
    stable_of_8_bits: Aged<8> => settles_at_its_rate_in_wide_cells;
    scalable_without_growth: Stunted => a_batch_stops_at_the_first_key_without_room;
    any_bloom: Opened<Plain> => a_batch_stops_at_the_first_key_without_room;
    any_blocked: Opened<Blocked> => a_batch_stops_at_the_first_key_without_room;
    any_split: Opened<Split<Portable>> => a_batch_stops_at_the_first_key_without_room;
    any_counting: Opened<Counting> => a_batch_stops_at_the_first_key_without_room;
    any_blocked_counting: Opened<BlockedCounting> => a_batch_stops_at_the_first_key_without_room;
    any_scalable: Opened<Grown> => a_batch_stops_at_the_first_key_without_room;
    any_scalable_without_growth: Opened<Stunted> => a_batch_stops_at_the_first_key_without_room;
    any_stable: Opened<Aged<0>> => a_batch_stops_at_the_first_key_without_room;
    any_window: Opened<Recent> => a_batch_stops_at_the_first_key_without_room;
    any_cuckoo: Opened<Cuckoo> => a_batch_stops_at_the_first_key_without_room;
    any_quotient: Opened<Quotient> => a_batch_stops_at_the_first_key_without_room;
    xor: Built<Peeled<Thirds>> =>
        no_false_negatives_when_built rate_within;
    fuse: Built<Peeled<Fused<3>>> =>
        no_false_negatives_when_built rate_within;
    fuse_of_four: Built<Peeled<Fused<4>>> =>
        no_false_negatives_when_built rate_within;
    ribbon: Built<Ribbon> =>
        no_false_negatives_when_built rate_within;
}
