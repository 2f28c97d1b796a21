//! CSV, JSON and fields, as Python reads them: random records, some of them bad, and inputs that are cut off anywhere.

use crate::place::Place;
use serde_json::{Value, json};

const REFERENCE: &str = include_str!("reference.py");

/// A generator of numbers: the constants are Knuth's, for MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What the reference is told, and the arguments of `umbel dedup`.
struct Case {
    told: Value,
    input: Vec<u8>,
    args: Vec<String>,
}

fn csv(random: &mut Random) -> Case {
    let between = random.of(&[',', ',', ';', '\t']);
    let columns: Vec<usize> = (0..random.below(3) + 1).map(|_| random.below(3)).collect();
    let header = random.below(2) == 0;
    let mut text = String::new();
    if header {
        text += &["a", "\"b\nb\"", "c\n"].join(&between.to_string());
    }
    for _ in 0..random.below(8) {
        let fields = if random.below(8) == 0 { random.below(5) } else { 3 };
        let mut record: Vec<String> = Vec::new();
        for _ in 0..fields {
            record.push(match random.below(12) {
                0 => "\"\"".into(),
                1 => "\"x\"\"y\"".into(),
                2 => format!("\"x{between}\""),
                3 => "\"x\ny\"".into(),
                4 => "\"x\r\ny\"".into(),
                5 => "5\" x".into(),
                6 => String::new(),
                7 => "\"x\"".into(),
                8 => random.of(&["\"x", "\"x\"y", "x\"", "\"", "\"\"\"", " \"x\""]).into(),
                _ => random.of(&["x", "y", "xy", "é", "1"]).into(),
            });
        }
        text += &record.join(&between.to_string());
        text += random.of(&["\n", "\n", "\r\n"]);
    }
    let mut args = vec!["--csv".to_owned()];
    let name = |column: &usize| match (header, *column) {
        (true, 0) => "a".to_owned(),
        (true, 1) => "b\nb".to_owned(),
        (true, 2) => "c".to_owned(),
        (_, column) => (column + 1).to_string(),
    };
    let names: Vec<String> = columns.iter().map(name).collect();
    args.push(names.join(","));
    args.extend((between != ',').then(|| format!("-t{between}")));
    args.extend((!header).then(|| "--no-header".to_owned()));
    let told = json!({ "mode": "csv", "between": between, "columns": columns, "header": header });
    Case { told, input: text.into_bytes(), args }
}

/// A value of JSON, with escapes, blanks, and names that are there twice.
fn value(random: &mut Random, depth: usize) -> String {
    let blank = |random: &mut Random| random.of(&["", "", "", " ", "\t", " \r"]);
    match random.below(if depth > 2 { 8 } else { 12 }) {
        0 => random
            .of(&["1", "1.0", "1e0", "1E0", "-0", "0", "-1.5e+3", "100000000000000000000001"])
            .into(),
        1 => random.of(&["true", "false", "null"]).into(),
        2 => random.of(&["\"1\"", "\"null\"", "\"true\"", "\"[]\"", "\"{}\"", "\"\""]).into(),
        3 => random
            .of(&["\"\\u00e9\"", "\"é\"", "\"e\\u0301\"", "\"\\ud83d\\ude00\"", "\"😀\""])
            .into(),
        4 => random
            .of(&[
                "\"a\\/b\"",
                "\"a/b\"",
                "\"\\n\\t\\\\\\\"\"",
                "\"\\u000a\\u0009\\\\\\\"\"",
                "\"\\u001f\u{7f}\"",
            ])
            .into(),
        5..=7 => random.of(&["\"x\"", "\"y\"", "7", "8"]).into(),
        8 | 9 => {
            let all: Vec<String> = (0..random.below(3)).map(|_| value(random, depth + 1)).collect();
            format!("[{}{}]", blank(random), all.join(&format!("{},", blank(random))))
        }
        _ => object(random, depth + 1),
    }
}

fn object(random: &mut Random, depth: usize) -> String {
    let mut all = Vec::new();
    for _ in 0..random.below(4) {
        let name = random.of(&["a", "a", "b", "b", "c/d", "\\u0061", "~", "0"]);
        all.push(format!("\"{name}\":{}", value(random, depth)));
    }
    format!("{{{}}}", all.join(random.of(&[",", ", "])))
}

fn json_lines(random: &mut Random) -> Case {
    let all = ["/a", "/a", "/b", "", "/a/0", "/a/a", "/c~1d", "/~0", "/0", "/b/01"];
    let pointers: Vec<&str> = (0..random.of(&[1, 1, 2])).map(|_| random.of(&all)).collect();
    let typed = random.below(3) > 0;
    let mut input = Vec::new();
    for _ in 0..random.below(10) {
        let record = match random.below(16) {
            0 => random
                .of(&[
                    "",
                    "{",
                    "nul",
                    "[1,]",
                    "{\"a\":1}}",
                    "{\"a\":NaN}",
                    "{\"a\":01}",
                    "{\"a\":\"\t\"}",
                ])
                .into(),
            1 => value(random, 0),
            _ => object(random, 0),
        };
        input.extend(record.bytes());
        if random.below(40) == 0 {
            input.push(0xff);
        }
        input.extend(random.of(&["\n", "\n", "\r\n"]).bytes());
    }
    let mut args: Vec<String> = Vec::new();
    for pointer in &pointers {
        args.extend(["--json".to_owned(), (*pointer).to_owned()]);
    }
    args.push(format!("--json-as={}", if typed { "typed" } else { "text" }));
    Case { told: json!({ "mode": "json", "pointers": pointers, "typed": typed }), input, args }
}

fn fields(random: &mut Random) -> Case {
    let between = random.of(&["", "", ",", "::"]);
    let mut wanted = Vec::new();
    let mut list = Vec::new();
    for _ in 0..random.below(3) + 1 {
        let first = random.of(&[1_i64, 2, 3, -1, -2]);
        let (last, text) = match random.below(4) {
            0 => (-1, format!("{first}-")),
            1 if first > 0 => (first + 1, format!("{first}-{}", first + 1)),
            _ => (first, first.to_string()),
        };
        wanted.push([first, last]);
        list.push(text);
    }
    let mut input = Vec::new();
    for _ in 0..random.below(12) {
        for _ in 0..random.below(9) {
            input.extend(random.of(&["a", "b", " ", ",", "::", "\t", ":", "1:a,"]).bytes());
        }
        input.push(b'\n');
    }
    let mut args = vec!["-k".to_owned(), list.join(",")];
    args.extend((!between.is_empty()).then(|| format!("-t{between}")));
    Case { told: json!({ "mode": "fields", "between": between, "wanted": wanted }), input, args }
}

fn case(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed);
    let mut case = match random.below(5) {
        0 | 1 => csv(&mut random),
        2 | 3 => json_lines(&mut random),
        _ => fields(&mut random),
    };
    // The records twice, so that some are repeated, and then a cut; a header has to stay.
    let from = if case.told["header"] == true { "a,\"b\nb\",c\n".len() } else { 0 };
    case.input.extend_from_within(from..);
    if random.below(3) == 0 {
        let length = from + random.below(case.input.len() - from + 1);
        case.input.truncate(length);
    }
    let skip = random.below(3) > 0;
    case.args.extend(skip.then(|| "--skip-bad".to_owned()));
    case.told["skip"] = json!(skip);
    let hex: String = case.input.iter().map(|byte| format!("{byte:02x}")).collect();
    case.told["input"] = json!(hex);
    case
}

/// Asks the reference for all answers at once, and runs `umbel` for each.
fn compare(seeds: std::ops::Range<u64>) {
    let place = Place::new();
    if place.shell("python3 -c ''").code != Some(0) {
        eprintln!("SKIPPED: there is no python3");
        return;
    }
    let cases: Vec<Case> = seeds.clone().map(case).collect();
    let lines: Vec<String> = cases.iter().map(|case| case.told.to_string()).collect();
    place.write("reference.py", REFERENCE).write("cases", lines.join("\n"));
    let answers = place.shell("python3 reference.py < cases");
    assert_eq!(answers.code, Some(0), "{}", answers.err);
    assert_eq!(answers.out.lines().count(), cases.len());
    let (mut bad, mut dropped) = (0, 0);
    for ((seed, case), answer) in seeds.zip(cases).zip(answers.out.lines()) {
        let answer: Value = serde_json::from_str(answer).expect("JSON of the reference");
        let mut command = place.command();
        command.args(["dedup", "--exact", "-q"]).args(&case.args).write_stdin(&case.input[..]);
        let output = command.output().expect("umbel runs");
        let hex: String = output.stdout.iter().map(|byte| format!("{byte:02x}")).collect();
        let err = String::from_utf8_lossy(&output.stderr);
        let told = format!(
            "seed {seed}: {:?} {:?}\n{err}",
            case.args,
            String::from_utf8_lossy(&case.input)
        );
        assert_eq!(json!(output.status.code()), answer["code"], "{told}");
        assert_eq!(json!(hex), answer["out"], "{told}");
        let skipped = answer["bad"].as_u64().expect("a number");
        if answer["code"] == 0 && skipped > 0 {
            assert!(err.starts_with(&format!("umbel: {skipped} bad record")), "{told}");
        }
        assert_eq!(err.is_empty(), skipped == 0, "{told}");
        bad += skipped;
        dropped += case.input.len() - output.stdout.len();
    }
    assert!(bad > 50 && dropped > 1000, "the cases are worth nothing: {bad} {dropped}");
}

#[test]
fn keys_are_those_that_python_reads() {
    compare(0..300);
}

/// `cargo test -p umbel-cli --all-features --test it -- --ignored python`
#[test]
#[ignore = "10,000 runs take minutes"]
fn keys_are_those_that_python_reads_in_10_000_runs() {
    for thousand in 1..11 {
        compare(thousand * 1000..(thousand + 1) * 1000);
    }
}
