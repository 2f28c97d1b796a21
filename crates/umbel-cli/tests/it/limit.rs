//! More keys than a filter was planned for: a warning up to ten times its rate, and an error past that.

use crate::place::Place;

/// Families whose filters take any number of keys at an ever higher rate.
const ENDLESS: [&str; 5] = ["bloom", "blocked", "split", "counting", "blocked-counting"];

fn keys(count: u32) -> String {
    (0..count).map(|key| format!("{key}\n")).collect()
}

#[test]
fn build_writes_no_filter_past_ten_times_its_rate() {
    let place = Place::new();
    place.write("keys", keys(10_000));
    for family in ENDLESS {
        let ran = place.umbel(&format!("build --family {family} -o f -n 100 keys"));
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{family}: {}", ran.err);
        assert!(
            ran.err.starts_with("umbel: planned for 100 keys at a false positive rate of "),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains(" would make it ") && ran.err.contains("nothing is saved"),
            "{}",
            ran.err
        );
        assert!(
            ran.err.ends_with(
                "Build a filter with a larger -n, or accept this rate with --overfull\n"
            ),
            "{}",
            ran.err
        );
        assert_eq!(place.names(), ["keys"], "{family}");
        // Whoever wants it gets it, and a warning that -q does not silence.
        let ran = place.umbel(&format!("build -q --overfull --family {family} -o f -n 100 keys"));
        assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{family}: {}", ran.err);
        assert!(
            ran.err.starts_with("umbel: planned for 100 keys at ") && ran.err.lines().count() == 1,
            "{}",
            ran.err
        );
        place.umbel("check -c f keys").prints("10000\n");
        place.shell("rm f").prints("");
    }
}

#[test]
fn build_says_how_many_keys_filled_a_filter_that_has_an_end() {
    let place = Place::new();
    place.write("keys", keys(10_000));
    for family in ["cuckoo", "quotient"] {
        for more in ["", "-q"] {
            let ran = place.umbel(&format!("build {more} --family {family} -o f -n 100 keys"));
            assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
            let said = format!("umbel: -n 100 is too small: the {family} filter is full after 1");
            assert!(ran.err.starts_with(&said), "{}", ran.err);
            assert!(
                ran.err.ends_with(
                    "different keys; without -n, keys are counted before the filter is made\n"
                ),
                "{}",
                ran.err
            );
            assert_eq!(place.names(), ["keys"], "{family}");
        }
    }
}

#[test]
fn add_leaves_a_filter_as_it_was_past_ten_times_its_rate() {
    let place = Place::new();
    place.write("many", keys(20_000)).write("few", "a\nb\n");
    for family in ENDLESS {
        place.umbel(&format!("build --force --family {family} -o f -n 1000 few")).prints("");
        let before = place.read("f");
        let ran = place.umbel("add f many");
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{family}: {}", ran.err);
        assert!(
            ran.err.starts_with(
                "umbel: f: planned for 1,000 keys, with which its false positive rate is "
            ),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains("nothing is saved") && ran.err.contains("--overfull"),
            "{}",
            ran.err
        );
        assert!(place.read("f") == before, "{family}");
        assert_eq!(place.names(), ["f", "few", "many"]);
        let ran = place.umbel("add --overfull f many");
        assert_eq!(ran.code, Some(0), "{family}: {}", ran.err);
        assert!(ran.err.starts_with("umbel: f: planned for 1,000 keys, with "), "{}", ran.err);
        place.umbel("check -c f many").prints("20000\n");
        // Keys that are in it make nothing worse.
        assert_eq!(place.umbel("add f few").code, Some(0), "{family}");
    }
}

/// However the keys come: in many runs of few keys too.
#[test]
fn many_small_runs_have_the_same_limit() {
    let place = Place::new();
    place.umbel("build -o f -n 100 /dev/null").prints("");
    let (mut warned, mut refused) = (false, false);
    for run in 0..40 {
        let lines: String = (0..20).map(|key| format!("{run} {key}\n")).collect();
        let ran = place.umbel_with("add -q f", lines);
        warned |= ran.code == Some(0) && ran.err.contains("planned for 100 keys");
        refused |= ran.code == Some(2);
        assert!(ran.code == Some(0) || refused, "{}", ran.err);
    }
    assert!(warned && refused, "first a warning, then an error");
}

#[test]
fn a_few_more_keys_than_planned_are_a_warning() {
    let place = Place::new();
    place.write("keys", keys(1_400));
    for family in ENDLESS {
        let ran = place.umbel(&format!("build -q --family {family} --force -o f -n 1000 keys"));
        assert_eq!(ran.code, Some(0), "{family}: {}", ran.err);
        // A split filter of 1,000 keys is so much larger than it must be that its rate is still below the planned one.
        if family == "split" {
            assert_eq!(ran.err, "");
            continue;
        }
        assert!(
            ran.err.contains("planned for 1,000 keys at a false positive rate of "),
            "{family}: {}",
            ran.err
        );
        assert!(
            ran.err.contains(" holds about 1,4") || ran.err.contains(" holds about 1,3"),
            "{family}: {}",
            ran.err
        );
    }
    // As many as planned are none, however keys are counted.
    place.write("keys", keys(1_000));
    for family in ENDLESS {
        place
            .umbel(&format!("build -q --family {family} --force -o f -n 1000 keys"))
            .gives(0, "", "");
    }
    // A filter that grows has no plan to pass.
    place.umbel("build -q --family scalable --force -o f -n 10 keys").gives(0, "", "");
    place.umbel("check -c f keys").prints("1000\n");
}

/// A number of keys that is certain has no margin: from the first key past the plan that makes the rate worse than asked for.
#[test]
fn a_handful_of_keys_past_the_plan_are_a_warning() {
    let place = Place::new();
    for count in [1_010, 1_100, 1_140] {
        let ran = place.umbel_with("build --force -o f -n 1000", keys(count));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let lines: Vec<&str> = ran.err.lines().collect();
        let said = "umbel: planned for 1,000 keys at a false positive rate of 1.00 %, holds about ";
        assert!(lines[0].starts_with(said), "{count}: {}", ran.err);
        // One number of keys in one report.
        let held = lines[0][said.len()..].split(';').next().unwrap();
        assert!(lines[1].starts_with(&format!("umbel: about {held} keys, ")), "{}", ran.err);
    }
    // The same in two runs, as far as the bits of the filter tell.
    place.umbel_with("build --force -q -o f -n 1000", keys(1_000)).gives(0, "", "");
    let more: String = (0..120).map(|key| format!("more {key}\n")).collect();
    let ran = place.umbel_with("add -q f", more);
    let said = "umbel: f: planned for 1,000 keys, with which its false positive rate is 0.98 %, holds about 1,1";
    assert!(ran.err.starts_with(said), "{}", ran.err);
}

#[test]
fn a_filter_that_was_built_of_nothing_was_planned_for_nothing() {
    let place = Place::new();
    for family in ENDLESS {
        place.umbel(&format!("build -q --force --family {family} -o f /dev/null")).gives(0, "", "");
        let ran = place.umbel_with("add -q f", "a\nb\n");
        let said = "umbel: f: planned for 0 keys at a false positive rate of 1.00 %, holds ";
        assert!(ran.code == Some(0) && ran.err.starts_with(said), "{family}: {}", ran.err);
    }
    // The least cuckoo filter has no more than a few slots. It takes no --overfull, and so none is offered.
    place.umbel("build -q --force --family cuckoo -o f /dev/null").gives(0, "", "");
    place.umbel_with("add -q f", "a\nb\n").fails(
        "f: planned for 0 keys at a false positive rate of 1.00 %, and 2 would make it 12.9 %: nothing is saved. Build a filter with a larger -n",
    );
}

#[test]
fn merge_writes_no_filter_past_ten_times_its_rate() {
    let place = Place::new();
    for (name, from) in [("one", 0), ("two", 1_200), ("three", 2_400)] {
        let lines: String = (from..from + 1_200).map(|key| format!("{key}\n")).collect();
        let ran = place.umbel_with(&format!("build -o {name} -n 1000"), lines);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    let ran = place.umbel("merge -o all one two three");
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    assert!(
        ran.err.starts_with("umbel: all filters together: planned for 1,000 keys, with "),
        "{}",
        ran.err
    );
    assert!(!place.path("all").exists());
    let ran = place.umbel("merge --overfull -o all one two three");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.starts_with("umbel: all: planned for 1,000 keys, with "), "{}", ran.err);
    place.umbel_with("check -c all", keys(3_600)).prints("3600\n");
    // What is in all of them is less, whatever each of them holds.
    place.umbel("merge --intersect -o both one two").prints("");
}

/// A split filter doubles in size, so it may be much better than what was asked for. What was asked for counts.
#[test]
fn build_keeps_to_the_rate_that_was_asked_for() {
    let place = Place::new();
    for family in ENDLESS {
        place.write("keys", keys(30_000));
        let ran = place.umbel(&format!("build --family {family} -o f -n 10000 keys"));
        assert_eq!((ran.code, place.path("f").exists()), (Some(2), false), "{family}: {}", ran.err);
        let said =
            "umbel: planned for 10,000 keys at a false positive rate of 1.00 %, and about 30,";
        assert!(
            ran.err.starts_with(said) || ran.err.contains("would make it"),
            "{family}: {}",
            ran.err
        );
    }
    // Past the plan and within the rate: nothing is worse than promised.
    place.write("keys", keys(12_000));
    let ran = place.umbel("build --family split -o f -n 10000 keys");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!ran.err.contains("planned"), "{}", ran.err);
    // The plan in a warning is what was asked for, and the rate now is above it.
    place.write("keys", keys(13_500));
    let ran = place.umbel("build --family split --force -o f -n 10000 keys");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.starts_with(
            "umbel: planned for 10,000 keys at a false positive rate of 1.00 %, holds about 13,"
        ),
        "{}",
        ran.err
    );
}

/// A file has no rate: what counts is the rate that `plan` prints for its size.
#[test]
fn add_keeps_to_the_rate_that_plan_prints() {
    let place = Place::new();
    place.umbel("build --family split -o f -n 10000 /dev/null").prints("");
    let before = place.read("f");
    let ran = place.umbel_with("add f", keys(30_000));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(
        ran.err.starts_with(
            "umbel: f: planned for 10,000 keys, with which its false positive rate is 0.35 %, and about "
        ),
        "{}",
        ran.err
    );
    assert!(place.read("f") == before);
}
