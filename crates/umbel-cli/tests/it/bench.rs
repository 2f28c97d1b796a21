//! `umbel bench`: speed and rates on one's own keys.

use crate::place::Place;
use serde_json::Value;

fn keys() -> String {
    (0..2000).map(|n| format!("{}\n", n % 1000)).collect()
}

#[test]
fn families_are_measured_side_by_side() {
    let place = Place::new();
    let ran = place.umbel_with("bench --family blocked,ribbon", keys());
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    let planned = "1,000 different keys of 2.9 bytes, planned for a false positive rate of 1.00 %";
    assert_eq!(lines[0], planned);
    assert!(
        lines[1].starts_with("hashing: ") && lines[1].contains("without hashing"),
        "{}",
        ran.out
    );
    assert_eq!(
        lines[2],
        "look-ups: 4,194,304 of keys that are in the filter, and as many of absent keys"
    );
    assert!(lines[4].starts_with("family   bits/key       size  "), "{}", ran.out);
    assert!(lines[5].starts_with("blocked      9.73    1.2 KiB  "), "{}", ran.out);
    assert!(lines[6].starts_with("ribbon       7.17  896 bytes  "), "{}", ran.out);
    assert_eq!(lines.len(), 7);
    // No column runs into its neighbour: two blanks stand between them, and ends are below each other.
    let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
    assert_eq!(end(lines[4], "size"), end(lines[5], "KiB"), "{}", ran.out);
    assert_eq!(end(lines[5], "KiB"), end(lines[6], "bytes"), "{}", ran.out);
}

#[test]
fn programs_get_intervals() {
    let place = Place::new();
    let args = "bench --family xor --family cuckoo --report json -p 0.1% -k 1 --hash keyed";
    let ran = place.umbel_with(args, keys());
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    let report: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!((&report["keys"], &report["asked_rate"]), (&1000.into(), &0.001.into()));
    assert!(report["hashing_nanoseconds"].as_f64().is_some_and(|nanos| nanos > 0.0), "{report}");
    assert_eq!(report["look_ups"], 1 << 22);
    for (row, name) in report["families"].as_array().unwrap().iter().zip(["xor", "cuckoo"]) {
        assert_eq!((&row["family"], &row["good"]), (&name.into(), &true.into()));
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}"));
        let [low, high] = [0, 1].map(|end| row["interval"][end].as_f64().unwrap());
        assert!(low <= number("measured_rate") && number("measured_rate") <= high);
        assert!(number("expected_rate") <= 0.001 * 1.1);
        for time in ["build", "present", "absent"] {
            assert!(number(&format!("{time}_nanoseconds")) > 0.0);
        }
    }
}

#[test]
fn there_must_be_keys_and_a_rate_that_can_be_had() {
    let place = Place::new();
    place.umbel("bench").fails(
        "there are no keys to measure with: name a file of keys, or write them to standard input",
    );
    place.umbel("bench nowhere").fails("nowhere: No such file or directory (os error 2)");
    place
        .umbel_with("bench -p 1e-11", keys())
        .refuses("umbel: a false positive rate of 1e-11 is too small");
    place.umbel_with("bench --family none", keys()).refuses("invalid value 'none'");
}
