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
    assert_eq!(lines[0], "1,000 different keys; nanoseconds a key, in batches");
    assert!(
        lines[1].starts_with("family            bits/key        size   build  present  absent")
    );
    assert!(lines[2].starts_with("blocked               9.73     1.2 KiB"), "{}", ran.out);
    assert!(lines[3].starts_with("ribbon                7.17   896 bytes"), "{}", ran.out);
    assert_eq!(lines.len(), 4);
}

#[test]
fn programs_get_intervals() {
    let place = Place::new();
    let args = "bench --family xor --family cuckoo --report json -p 0.1% -k 1 --hash keyed";
    let ran = place.umbel_with(args, keys());
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    let report: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!((&report["keys"], &report["asked_rate"]), (&1000.into(), &0.001.into()));
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
    place.umbel("bench").fails("there are no keys to measure with");
    place.umbel("bench nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.umbel_with("bench -p 1e-11", keys()).refuses("umbel: the error rate 1e-11 is too small");
    place.umbel_with("bench --family none", keys()).refuses("invalid value 'none'");
}
