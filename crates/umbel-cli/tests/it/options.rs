//! Options that have no effect, numbers as people write them, and results for programs.

use crate::place::Place;
use serde_json::Value;

#[test]
fn options_without_an_effect_are_refused() {
    let place = Place::new();
    place.write("keys", "a\n").umbel("build -o f keys").prints("");
    for (name, family) in [("c", "cuckoo"), ("q", "quotient"), ("s", "scalable")] {
        place.umbel(&format!("build -o {name} --family {family} -n 100 keys")).prints("");
    }
    let before = ["c", "q", "s"].map(|name| place.read(name));
    let why = |what: &str| format!("umbel: {what}");
    for (args, what) in [
        ("build -o g --hash keyed --seed 7 keys", "--seed has no effect with --hash keyed"),
        ("build -o g --hash keyed --seed 0 keys", "--seed has no effect with --hash keyed"),
        ("build -o g --static -n 100 keys", "-n has no effect with --static, whose filter holds"),
        (
            "build -o g --family xor -n 100 keys",
            "-n has no effect with --family xor, whose filter holds",
        ),
        ("build -o g -j 2 keys", "-j has no effect on a blocked filter"),
        ("build -o g --deletable -j 2 keys", "-j has no effect on a cuckoo filter"),
        ("build -o g --overfull keys", "--overfull has no effect here"),
        ("build -o g --overfull --family scalable -n 9 keys", "--overfull has no effect on a scal"),
        (
            "add --overfull c keys",
            "c: --overfull has no effect on a cuckoo filter, which takes no more",
        ),
        ("add --overfull q keys", "q: --overfull has no effect on a quotient filter"),
        ("add --overfull s keys", "s: --overfull has no effect on a scalable filter, which grows"),
        ("merge -o g --overfull c c", "c: --overfull has no effect on a cuckoo filter"),
        ("merge -o g --overfull q q", "q: --overfull has no effect on a quotient filter"),
        ("merge -o g --overfull s s", "s: --overfull has no effect on a scalable filter"),
        ("build -o g --overfull --family cuckoo -n 9 keys", "--overfull has no effect on a cuckoo"),
        ("build -o g --overfull --deletable -n 9 keys", "--overfull has no effect on a cuckoo"),
        ("build -o g --overfull --family quotient -n 9 keys", "--overfull has no effect on a quot"),
        ("merge -o g --intersect --overfull f f", "--overfull has no effect with --intersect"),
        ("plan -n 9 --force", "--force has no effect without --svg"),
        ("plan -n 9 --chart --json", "--chart has no effect with --report json"),
    ] {
        place.umbel(args).refuses(&why(what));
        assert!(!place.path("g").exists(), "{args}");
    }
    assert_eq!(["c", "q", "s"].map(|name| place.read(name)), before);
    place.umbel("remove --overfull f keys").refuses("unexpected argument '--overfull'");
    // A filter and a report cannot both be on standard output.
    for args in [
        "build -o - --report json keys",
        "build -o /dev/stdout --report json keys",
        "merge -o - --json f f",
    ] {
        place.umbel(args).refuses("--report json writes to standard output, and so does -o ");
    }
}

#[test]
fn sizes_and_counts_are_read_as_people_write_them() {
    let place = Place::new();
    let plan = |args: &str| place.umbel(&format!("plan --report json {args}")).out;
    let same = |all: &[&str]| {
        let first = plan(all[0]);
        assert!(first.starts_with('{'), "{}", all[0]);
        for args in all {
            assert_eq!(plan(args), first, "{args}");
        }
    };
    same(&["-n 10000", "-n 10k", "-n 10K", "-n 1e4", "-n 10_000", "-n 10,000"]);
    same(&["-n 2000000", "-n 2M", "-n 2m", "-n 2e6"]);
    same(&[
        "-n 9k --memory 1048576",
        "-n 9k --memory 1m",
        "-n 9k --memory 1M",
        "-n 9k --memory 1MiB",
        "-n 9k --memory 1mib",
        "-n 9k --memory 1,048,576",
    ]);
    same(&["-n 9k --memory 1GB", "-n 9k --memory 1gb", "-n 9k --memory 1e9"]);
    same(&["-n 9k --memory 1g", "-n 9k --memory 1GiB"]);
    same(&["-n 9k -p 0.1%", "-n 9k -p 1/1,000", "-n 9k -p 1e-3"]);
    for args in
        ["plan -n 1,5", "plan -n 9 --memory 1,5g", "plan -n 9 --memory 1x", "plan -n 9 -p 2"]
    {
        assert_eq!(place.umbel(args).code, Some(2), "{args}");
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_verb_reports_to_programs_in_one_way() {
    let place = Place::new();
    place.write("keys", "a\nb\na\n");
    let ran = place.umbel("build --report json --deletable -n 100 -o f keys");
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    let built = json(&ran.out);
    assert_eq!(
        (&built["keys"], &built["keys_exact"], &built["family"]),
        (&2.into(), &true.into(), &"cuckoo".into())
    );
    assert!(built["rate_now"].as_f64().is_some_and(|rate| rate > 0.0 && rate < 0.01), "{built}");
    let ran = place.umbel("add --report json f keys");
    let added = json(&ran.out);
    assert_eq!(ran.err, "");
    for (name, number) in [
        ("records", 3),
        ("repeated", 1),
        ("added", 2),
        ("found_before", 2),
        ("keys_planned", 100),
        ("keys_estimated", 4),
    ] {
        assert_eq!(added[name], number, "{name}: {added}");
    }
    let removed = json(&place.umbel_with("remove --report json f", "a\nz\n").out);
    for (name, number) in [("removed", 1), ("not_found", 1), ("still_found", 1)] {
        assert_eq!(removed[name], number, "{name}: {removed}");
    }
    // Where no records are read, --json is short for it.
    let merged = ["--report json", "--json"].map(|form| {
        let ran = place.umbel(&format!("merge {form} --force -o all f f"));
        assert_eq!(ran.err, "");
        json(&ran.out)
    });
    assert_eq!(
        (&merged[0], &merged[0]["filters"], &merged[0]["family"]),
        (&merged[1], &2.into(), &"cuckoo".into())
    );
    for verb in ["info f all", "verify f all", "plan -n 9"] {
        let reports =
            ["--report json", "--json"].map(|form| place.umbel(&format!("{verb} {form}")));
        assert_eq!(reports[0].out, reports[1].out, "{verb}");
        assert!(reports[0].out.starts_with('{'), "{verb}: {}", reports[0].out);
        place.umbel(&format!("{verb} --json --report text")).refuses("cannot be used with");
    }
    // Where records are read, it is where the key is.
    place.umbel_with("build --json /a --report json -o j", "{\"a\":1}\n");
    place.umbel_with("add --json /a j", "{\"a\":1}\n").prints("");
}

#[test]
fn reports_for_programs_count_the_records_that_were_skipped() {
    let place = Place::new();
    place.write("keys", "a 1\nbad\nb 2\n\na 1\n");
    let bad = "--report json -k 2 --skip-bad";
    for (args, records) in [
        ("build -o f keys", None),
        ("build -o g -n 9 keys", None),
        ("build -o h --static keys", None),
        ("build -o d --deletable keys", None),
        ("add f keys", Some(3)),
        ("remove d keys", Some(3)),
        ("bench --family bloom keys", None),
        ("dedup keys", Some(3)),
        ("dedup -c keys", Some(3)),
        ("dedup -d keys", Some(3)),
        ("dedup -n 9 --total keys", Some(3)),
    ] {
        let ran = place.umbel(&format!("{args} {bad}"));
        let report =
            if args.starts_with("dedup") { ran.err.lines().last().unwrap() } else { &*ran.out };
        let report = json(report);
        assert_eq!(report["skipped"], 2, "{args}: {report}");
        assert_eq!(report["records"].as_u64(), records, "{args}: {report}");
    }
    let all = place.umbel("add --report json f keys").out;
    assert_eq!(json(&all)["skipped"], 0);
}

#[test]
fn verify_reports_damage_to_programs() {
    let place = Place::new();
    place.write("keys", "a\n").umbel("build -o f keys").prints("");
    let ran = place.umbel("verify --json f keys nowhere");
    let lines: Vec<Value> = ran.out.lines().map(json).collect();
    assert_eq!(ran.code, Some(2));
    let whole: Vec<&Value> = lines.iter().map(|line| &line["whole"]).collect();
    assert_eq!(whole, [&Value::Bool(true), &Value::Bool(false), &Value::Null]);
    assert_eq!((&lines[0]["kind"], &lines[1]["file"]), (&"blocked".into(), &"keys".into()));
    assert!(
        lines[2]["error"].as_str().is_some_and(|error| error.starts_with("nowhere: ")),
        "{}",
        lines[2]
    );
}

#[test]
fn quiet_verbs_say_nothing_that_is_no_warning() {
    let place = Place::new();
    place.write("keys", "a\nb\n");
    for args in [
        "build -q -o f keys",
        "build -q -n 10 --deletable -o d keys",
        "build -q --static -o s keys",
        "add -q f keys",
        "remove -q d keys",
        "merge -q -o m f f",
        "verify -q f d s m",
        "dedup -q -c keys",
    ] {
        let ran = place.umbel(args);
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{args}");
    }
    // Errors and answers remain.
    let ran = place.umbel("info -q f nowhere");
    assert!(
        ran.out.starts_with("file              f\n") && ran.err.starts_with("umbel: nowhere: "),
        "{}",
        ran.err
    );
}
