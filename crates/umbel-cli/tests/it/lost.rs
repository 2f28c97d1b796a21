//! What a filter loses, and whether what `dedup` says of it is true.

use crate::place::{Place, Ran};
use serde_json::Value;
use std::collections::HashSet;

fn stats(ran: &Ran) -> Value {
    let last = ran.err.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", ran.err))
}

/// The input, its number of different lines, and its name.
fn inputs() -> Vec<(&'static str, String)> {
    let lines = |numbers: &mut dyn Iterator<Item = u64>| -> String {
        numbers.map(|number| format!("{number}\n")).collect()
    };
    vec![
        ("all different", lines(&mut (0..60_000))),
        ("half repeated, each at once", lines(&mut (0..60_000).map(|n| n / 2))),
        ("half repeated, all at the end", lines(&mut (0..60_000).map(|n| n % 30_000))),
        ("mostly repeated", lines(&mut (0..200_000).map(|n| n % 900))),
        // The filter fills up, then only repeated lines come, and then new ones.
        (
            "new lines last",
            lines(&mut (0..2_000).chain((0..50_000).map(|n| n % 2_000)).chain(2_000..20_000)),
        ),
        (
            "one new line in a hundred",
            lines(&mut (0..100_000).map(|n| if n % 100 == 0 { n } else { n % 100 })),
        ),
    ]
}

/// True for every input: no more lines are lost than the bound says, and about as many as expected if that is said.
#[test]
fn no_more_lines_are_lost_than_the_bound_says() {
    let place = Place::new();
    for (name, input) in inputs() {
        let different = input.lines().collect::<HashSet<_>>().len() as u64;
        for args in [
            "-n 1000 -p 1e-6",
            "-n 1000 -p 1%",
            "-n 10k -p 10%",
            "-n 100k -p 30%",
            "-n 10",
            "--memory 40k",
        ] {
            let ran =
                place.umbel_with(&format!("dedup --total --report json --overfull {args}"), &input);
            assert_eq!(ran.code, Some(0), "{name}, {args}: {}", ran.err);
            let stats = stats(&ran);
            let number = |name: &str| stats[name].as_u64().unwrap();
            let lost = different - number("printed");
            assert!(lost <= number("lost_at_most"), "{name}, {args}: {lost} of {stats}");
            assert!(number("lost_at_most") <= number("repeated"), "{name}, {args}: {stats}");
            assert_eq!(number("records"), number("printed") + number("dropped"));
            if let Some(expected) = stats["expected_lost"].as_f64() {
                // Independent rare events: six standard deviations, and a share of the number for a rate that is not known exactly between
                // two looks at the filter.
                let off = (lost as f64 - expected).abs();
                let chance = 6.0 * expected.max(1.0).sqrt() + 0.25 * expected;
                assert!(off < chance, "{name}, {args}: {lost} of {stats}");
            } else {
                assert!(stats["rate"].as_f64().unwrap() >= 0.5, "{name}, {args}: {stats}");
            }
        }
    }
}

#[test]
fn a_filter_that_is_overfull_says_that_it_does_not_know() {
    let place = Place::new();
    let lines: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    let ran = place.umbel_with("dedup --total -n 1000 --overfull", &lines);
    let printed: u64 = ran.out.trim().parse().unwrap();
    let told = format!(
        "an unknown number of new lines may have been taken for repeated ones, at most {} (none with --exact)\n",
        umbel_count(200_000 - printed)
    );
    assert!(ran.err.ends_with(&told), "{}", ran.err);
}

/// A number as messages have it.
fn umbel_count(number: u64) -> String {
    let (thousands, rest) = (number / 1_000, number % 1_000);
    if thousands == 0 { rest.to_string() } else { format!("{thousands},{rest:03}") }
}

#[test]
fn lines_that_may_be_lost_are_told() {
    let place = Place::new();
    let lines: String = (0..20_000).map(|n| format!("{}\n", n / 2)).collect();
    let ran = place.umbel_with("dedup --total --stats=json -n 10k -p 1%", &lines);
    let json = stats(&ran);
    let expected = json["expected_lost"].as_f64().unwrap();
    let new = json["new"].as_u64().unwrap();
    assert!(expected > 5.0, "{json}");
    let ran = place.umbel_with("dedup --total -n 10k -p 1%", &lines);
    let told = format!(
        "umbel: {} new lines of 20,000; about {} new lines may have been taken for repeated ones, at most {} (none with --exact)\n",
        umbel_count(new),
        expected.round(),
        json["lost_at_most"]
    );
    assert_eq!(ran.err, told);
}

const WARNING: &str = "umbel: more than the 1,000 different lines that the filter is planned for: its false positive rate is above 1.0e-6 now, and more new lines are taken for repeated ones; use a larger -n, or none for an exact run\n";

#[test]
fn a_plan_that_is_passed_is_reported_once() {
    let place = Place::new();
    let lines = |count: u64| -> String { (0..count).map(|n| format!("{n}\n")).collect() };
    // As many as planned are no reason, repeated ones not either.
    let twice = lines(1_000) + &lines(1_000);
    place.umbel_with("dedup --total -n 1000", twice).gives(0, "1000\n", "");
    place.umbel_with("dedup --total -n 1000", lines(1_100)).gives(0, "1100\n", WARNING);
    // The filter is a little better than planned, so that a few more lines leave the rate where it should be.
    place.umbel_with("dedup --total -n 1000", lines(1_005)).gives(0, "1005\n", "");
    // In more memory than the plan needs, the rate stays far below the planned one.
    place.umbel_with("dedup --total -n 100 --memory 1M", lines(1_100)).gives(0, "1100\n", "");
    // Not even -q silences it.
    place.umbel_with("dedup -q --total -n 1000", lines(1_100)).gives(0, "1100\n", WARNING);
    // A state is as full as it is.
    place.umbel_with("dedup --total --state s -n 1000", lines(1_000)).gives(0, "1000\n", "");
    place.umbel_with("dedup --total --state s -n 1000", lines(1_000)).gives(0, "0\n", "");
    let more: String = (1_000..1_160).map(|n| format!("{n}\n")).collect();
    place.umbel_with("dedup --total --state s -n 1000", more).gives(0, "160\n", WARNING);
}

#[test]
fn a_filter_with_ten_times_its_rate_ends_the_run() {
    let place = Place::new();
    let lines: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let ran = place.umbel_with("dedup -n 1000", &lines);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let (warning, error) = ran.err.split_at(WARNING.len());
    assert_eq!(warning, WARNING);
    let overfull =
        "umbel: the filter is overfull: planned for 1,000 different lines, it holds at least 1,";
    assert!(error.starts_with(overfull), "{error}");
    assert!(error.ends_with(". Use a larger -n, or none for an exact run. --overfull goes on, and loses more and more new lines\n"), "{error}");
    // What was printed until then is the start of the input, and less than one line in a thousand is lost.
    let printed = ran.out.lines().count();
    assert!((1_000..1_400).contains(&printed), "{printed}");
    let last: usize = ran.out.lines().last().unwrap().parse().unwrap();
    assert!(last - printed <= 1, "{last} {printed}");
    // The state is what it was, and with --overfull it is the new one.
    place.umbel_with("dedup --total --state s -n 1000", "0\n").prints("1\n");
    let before = place.read("s");
    assert_eq!(place.umbel_with("dedup --total --state s -n 1000", &lines).code, Some(2));
    assert!(place.read("s") == before);
    let ran = place.umbel_with("dedup --total --state s -n 1000 --overfull", &lines);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(place.read("s") != before);
}

#[test]
fn a_window_of_time_loses_no_more_in_a_burst_than_it_promises() {
    let place = Place::new();
    let lines: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    for (rate, most) in [("1e-3", 100), ("1e-5", 1)] {
        // Poisson numbers of these means at most: six standard deviations and nine.
        let most = most + 6 * u64::isqrt(most) + 9;
        let ran = place.umbel_with(
            &format!("dedup --total --report json --window 1h -n 100k -p {rate}"),
            &lines,
        );
        assert_eq!(ran.code, Some(0));
        let stats = stats(&ran);
        let lost = 100_000 - stats["printed"].as_u64().unwrap();
        assert!(lost <= most && lost <= stats["lost_at_most"].as_u64().unwrap(), "{stats}");
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    // Four times as many lines as were planned for.
    let ran = place.umbel_with("dedup --total --window 1h -n 25k -p 1e-3", &lines);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("umbel: more lines within the window than -n: "), "{}", ran.err);
    assert!(
        ran.err
            .contains("umbel: the filter is overfull: more lines came within the window than -n, "),
        "{}",
        ran.err
    );
}
