//! `umbel plan`: all families side by side.

use crate::place::Place;
use serde_json::Value;

#[test]
fn all_families_are_compared() {
    let place = Place::new();
    let ran = place.umbel("plan -n 1M -p 1%");
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[3].starts_with("family            bits/key        size  lines  can"),
        "{}",
        ran.out
    );
    let rows: Vec<Vec<&str>> =
        lines[4..17].iter().map(|line| line.split_whitespace().collect()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, umbel::plan::FAMILIES);
    assert_eq!(rows[0][..7], ["bloom", "9.59", "1.1", "MiB", "7", "insert", "merge"]);
    let ribbon = rows.last().expect("a last row");
    assert_eq!(ribbon[..6], ["ribbon", "7.03", "858.2", "KiB", "3", "-"]);
    // One notation for all rates: in percent down to 0.01 %.
    assert_eq!(ribbon[6..], ["0.78", "%", "0.78", "%", "full", "full", "full", "full"]);
    assert!(
        !ran.out.contains("e-3") && !ran.out.contains("e-2") && ran.out.contains("e-5"),
        "{}",
        ran.out
    );
    let builds =
        "umbel build takes: blocked by default, ribbon with --static, cuckoo with --deletable\n";
    assert!(ran.out.ends_with(builds) && !ran.out.contains("do not fit"), "{}", ran.out);
    assert_eq!(lines[0], "1,000,000 keys at a false positive rate of 1.00 %");
    // One percent is what plans are for unless they are for something else, and then that is said.
    let default = ran.out.replacen("1.00 %\n", "1.00 %, the default of -p\n", 1);
    assert_eq!(place.umbel("plan -n 1e6").out, default);
    assert_eq!(place.umbel("plan --capacity 1_000_000 --rate 1/100").out, ran.out);
}

#[test]
fn programs_get_the_same_numbers() {
    let place = Place::new();
    let ran = place.umbel("plan -n 1e6 -p 0.001 --json");
    let plan: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!((&plan["keys"], &plan["rate"]), (&1_000_000.into(), &0.001.into()));
    assert_eq!((&plan["memory"], &plan["do_not_fit"]), (&Value::Null, &Value::Array(vec![])));
    let families = plan["families"].as_array().expect("a list");
    assert_eq!(families.len(), umbel::plan::FAMILIES.len());
    for family in families {
        let loads: Vec<f64> = family["rates"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|rate| rate["load"].as_f64())
            .collect();
        assert_eq!(loads, [0.5, 1.0, 1.25, 1.5, 2.0, 4.0]);
        let planned = family["rates"][1]["rate"].as_f64().expect("a rate at the planned load");
        assert!(planned <= 0.001 * 1.000_001, "{family}");
        assert!(family["bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{family}");
    }
    let named = |name: &str| families.iter().find(|family| family["family"] == name).unwrap();
    assert_eq!(
        (&named("cuckoo")["remove"], &named("bloom")["remove"]),
        (&true.into(), &false.into())
    );
    assert_eq!(named("fuse")["rates"][5]["rate"], Value::Null, "it is full long before");
}

#[test]
fn memory_is_the_other_way_round() {
    let place = Place::new();
    let ran = place.umbel("plan -n 1e6 --memory 1M --json");
    let plan: Value = serde_json::from_str(&ran.out).expect("one document");
    for family in plan["families"].as_array().unwrap() {
        assert!(family["bytes"].as_u64().is_some_and(|bytes| bytes <= 1 << 20), "{family}");
    }
    // With a rate as well, only those that fit.
    let ran = place.umbel("plan -n 1e6 -p 1% --memory 1M");
    let names: Vec<&str> = ran
        .out
        .lines()
        .skip(4)
        .take(3)
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names, ["fuse", "fuse4", "ribbon"]);
    let end = "\ndo not fit: bloom, blocked, split, counting, blocked-counting, scalable, window, cuckoo, quotient, xor\n\
               umbel build takes: blocked by default (does not fit), ribbon with --static, cuckoo with --deletable (does not fit)\n";
    assert!(ran.out.ends_with(end), "{}", ran.out);
    let ran = place.umbel("plan -n 1e6 -p 1% --memory 1M --json");
    let plan: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!((&plan["rate"], &plan["memory"]), (&0.01.into(), &(1 << 20).into()));
    assert_eq!(plan["do_not_fit"].as_array().map(Vec::len), Some(10), "{plan}");
    let none = "no family fits: allow more memory or a larger rate, or plan fewer keys";
    place.umbel("plan -n 1e6 -p 1% --memory 1k").fails(none);
    place.umbel("plan -n 1e15 -p 1e-9").fails(none);
}

#[test]
fn rates_are_drawn() {
    let place = Place::new();
    place.umbel("plan -n 1e6 --svg rates.svg").prints(&place.umbel("plan -n 1e6").out);
    let drawing = String::from_utf8(place.read("rates.svg")).expect("text");
    assert!(drawing.starts_with("<svg xmlns=") && drawing.ends_with("</svg>\n"));
    assert_eq!(drawing.matches("<polyline").count(), umbel::plan::FAMILIES.len());
    assert!(drawing.contains("False positive rate of filters planned for 1,000,000 keys"));
    // Viewers other than browsers know neither of these.
    for css in ["hsl(", "var(", "currentColor", "<style", "class="] {
        assert!(!drawing.contains(css), "{css}");
    }
    for family in umbel::plan::FAMILIES {
        assert!(drawing.contains(&format!(">{family}</text>")), "{family}");
    }
    for tag in ["svg", "text"] {
        assert_eq!(
            drawing.matches(&format!("<{tag} ")).count(),
            drawing.matches(&format!("</{tag}>")).count()
        );
    }
    assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
    place
        .umbel("plan -n 5 --svg rates.svg")
        .fails("rates.svg: is there already; --force replaces it");
    place.umbel("plan -n 5 --svg rates.svg --force").prints(&place.umbel("plan -n 5").out);
    assert_ne!(drawing.as_bytes(), place.read("rates.svg"));
}

#[test]
fn a_plan_needs_a_number() {
    let place = Place::new();
    place
        .umbel("plan")
        .fails("a plan needs the number of keys, such as -n 1000000, -n 1e6 or -n 1M");
    place.umbel("plan -n 0").prints(&place.umbel("plan -n 0").out);
}
