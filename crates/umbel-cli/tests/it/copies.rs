//! Equal lines, where keys can be removed: those of one run count once, and every run counts.

use crate::place::Place;

const DELETABLE: [&str; 4] = ["cuckoo", "quotient", "counting", "blocked-counting"];
/// Planned for the keys that come, for more of them, and not planned at all.
const SIZES: [&str; 3] = ["", "-n 10", "-n 1000"];

#[test]
fn equal_lines_of_one_run_count_once() {
    let place = Place::new();
    place.write("lines", "a\na\nb\n").write("many", "a\n".repeat(100) + "b\n");
    for family in DELETABLE {
        for size in SIZES {
            for lines in ["lines", "many"] {
                let ran = place
                    .umbel(&format!("build --family {family} {size} -p 1e-6 --force -o f {lines}"));
                assert!(ran.err.starts_with("umbel: 2 keys, "), "{family} {size}: {}", ran.err);
                // A line that is removed twice by one run, too.
                let ran = place.umbel_with("remove f", "a\na\n");
                assert!(
                    ran.err.starts_with("umbel: 1 key removed, 1 repeated line; "),
                    "{}",
                    ran.err
                );
                place.umbel("check f lines").prints("b\n");
                let ran = place.umbel("add f lines");
                assert!(ran.err.contains("umbel: 2 keys added, 1 of them was already in it, or seemed to be, 1 repeated line; "), "{}", ran.err);
                place.umbel_with("remove f", "a\n").prints("");
                place.umbel("check f lines").prints("b\n");
            }
        }
    }
}

#[test]
fn every_run_counts() {
    let place = Place::new();
    place.write("lines", "a\nb\n");
    for family in DELETABLE {
        for size in ["-n 10", "-n 1000"] {
            place
                .umbel(&format!("build --family {family} {size} -p 1e-6 --force -o f lines"))
                .prints("");
            place.umbel("add f lines").prints("");
            let ran = place.umbel_with("remove f", "a\n");
            let still = "umbel: 1 key removed, 1 of them still found: added more than once, or false positives; ";
            assert!(ran.err.starts_with(still), "{family} {size}: {}", ran.err);
            place.umbel("check f lines").prints("a\nb\n");
            let ran = place.umbel_with("remove f", "a\n");
            assert!(ran.err.starts_with("umbel: 1 key removed; "), "{family} {size}: {}", ran.err);
            place.umbel("check f lines").prints("b\n");
            let ran = place.umbel_with("remove f", "a\n");
            assert!(
                ran.err.starts_with("umbel: 0 keys removed, 1 not found; "),
                "{family} {size}: {}",
                ran.err
            );
        }
    }
}

/// At a rate of 30 %, many keys look like another one. None of them is lost when the other one is removed.
#[test]
fn no_key_is_lost_with_another_one_that_looks_like_it() {
    let place = Place::new();
    let keys =
        |range: std::ops::Range<u32>| -> String { range.map(|key| format!("{key}\n")).collect() };
    let (gone, kept) = (keys(0..1_000), keys(1_000..2_000));
    place.write("gone", &gone).write("kept", &kept);
    for family in DELETABLE {
        for size in ["", "-n 2000"] {
            // Every line twice, each time in another place.
            let ran = place.umbel(&format!(
                "build --family {family} {size} -p 0.3 --force -o f gone kept gone kept"
            ));
            assert_eq!(ran.code, Some(0), "{family}: {}", ran.err);
            let ran = place.umbel("remove f gone");
            assert!(ran.err.starts_with("umbel: 1,000 keys removed, "), "{family}: {}", ran.err);
            place.umbel("check -c f kept").prints("1000\n");
            place.umbel("check -v f kept").gives(1, "", "");
        }
    }
}

#[test]
fn a_key_that_too_many_runs_add_is_refused_and_said_to_be_so() {
    let place = Place::new();
    place.umbel_with("build --family cuckoo -n 1000 -o f", "a\n").prints("");
    for _ in 0..7 {
        place.umbel_with("add f", "a\n").prints("");
    }
    let before = place.read("f");
    place.umbel_with("add f", "a\n").fails(
        "f: there is no room for another copy of one key, which was added by too many runs (planned for 1,000 keys): nothing was added, the filter still holds 8 keys",
    );
    assert!(place.read("f") == before);
}
