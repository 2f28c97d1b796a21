//! `umbel dedup`: each line once.

use crate::place::{Place, certain};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

const LINES: &str = "b\na\nb\nc\na\nb\n";

#[test]
fn each_line_is_printed_once_in_its_order() {
    let place = Place::new();
    place.umbel_with("dedup", LINES).gives(0, "b\na\nc\n", &certain("3"));
    place.umbel_with("dedup -", LINES).prints("b\na\nc\n");
    place.write("lines", LINES).umbel("dedup lines").prints("b\na\nc\n");
    place.umbel_with("dedup lines - lines", "d\na\n").prints("b\na\nc\nd\n");
}

#[test]
fn the_last_line_may_have_no_newline() {
    let place = Place::new();
    place.umbel_with("dedup", "a\nb").prints("a\nb");
    place.umbel_with("dedup", "a\nb\na").prints("a\nb\n");
    // Between two files it needs one.
    place.write("one", "a\nb").write("two", "c\nb").umbel("dedup one two").prints("a\nb\nc\n");
    place.umbel("dedup -d one one two").prints("a\nb\nb");
    place.umbel("dedup --crlf one two").prints("a\nb\r\nc\n");
    place.write("z", "a\0b").umbel("dedup -z z one").prints("a\0b\0a\nb");
}

#[test]
fn empty_input_and_empty_lines_are_input() {
    let place = Place::new();
    place.umbel("dedup").gives(0, "", &certain("0"));
    place.umbel_with("dedup", "\n\na\n\n").prints("\na\n");
    place.write("none", "").write("one", "a\n").umbel("dedup none one none").prints("a\n");
}

#[test]
fn repeated_lines_go_elsewhere() {
    let place = Place::new();
    place.umbel_with("dedup -d", LINES).gives(0, "b\na\nb\n", &certain("3"));
    place.umbel_with("dedup --repeated", LINES).prints("b\na\nb\n");
    place.umbel_with("dedup -D again", LINES).gives(0, "b\na\nc\n", &certain("3"));
    assert_eq!(place.read("again"), b"b\na\nb\n");
    place.umbel_with("dedup -D again", LINES).fails("again: is there already; --force replaces it");
    place.umbel_with("dedup --duplicates again --force", "a\na\n").prints("a\n");
    assert_eq!(place.read("again"), b"a\n");
    place.umbel_with("dedup -d -D again", LINES).refuses("cannot be used with");
    // What is no file is written to, and not replaced.
    place.umbel_with("dedup -D /dev/null", LINES).prints("b\na\nc\n");
    place.umbel_with("dedup -D .", LINES).fails(".: is a directory");
    assert_eq!(place.names(), ["again"]);
}

#[test]
fn lines_are_counted_instead() {
    let place = Place::new();
    place.umbel_with("dedup -c", LINES).gives(0, "3\n", &certain("3"));
    place.umbel_with("dedup -c -d", LINES).prints("3\n");
    place.umbel_with("dedup --count -D again", "a\na\na\n").prints("1\n");
    assert_eq!(place.read("again"), b"a\na\n");
    place.umbel("dedup -c").prints("0\n");
}

#[test]
fn exact_takes_no_line_for_another() {
    let place = Place::new();
    place.umbel_with("dedup --exact", LINES).gives(0, "b\na\nc\n", "");
    for other in ["-n 5", "-p 1%", "--memory 1M", "--window 5", "--hash keyed"] {
        place.umbel_with(&format!("dedup --exact {other}"), LINES).refuses("cannot be used with");
    }
}

#[test]
fn sizes_are_taken_in_all_spellings() {
    let place = Place::new();
    for size in [
        "-n 100",
        "-n 1e3",
        "-n 1_000",
        "-n 2.5k",
        "--capacity=1M",
        "-n 0",
        "--memory 64",
        "--memory 64K",
        "--memory 1MiB",
        "--memory 1MB",
        "-p 0.01",
        "-p 1%",
        "-p 1/1000",
        "--rate 1e-9",
        "-n 1k --memory 10k -p 1%",
        "--hash portable",
        "--hash keyed",
    ] {
        place.umbel_with(&format!("dedup {size}"), "a\nb\na\n").prints("a\nb\n");
    }
}

#[test]
fn sizes_that_are_none_are_refused() {
    let place = Place::new();
    let number = "not a number such as 1000, 1e6 or 10M";
    let size = "not a size such as 100000, 512M or 1GiB";
    for (args, message) in [
        ("-n ten", number),
        ("-n 10MiB", number),
        ("-n 1.5", "not a whole number, or too large"),
        ("--memory 5apples", size),
        ("-p 0", "a rate is above 0 and below 1"),
        ("-p 100%", "a rate is above 0 and below 1"),
        ("-p often", "not a rate such as 0.01, 1e-6, 1% or 1/1000"),
        ("--window 5x", "not a window such as 100000, 1e6, 10M, 30s, 10m, 2h or 7d"),
        ("--stats=xml", "invalid value 'xml'"),
        ("--hash md5", "invalid value 'md5'"),
    ] {
        place.umbel_with(&format!("dedup {args}"), LINES).refuses(message);
    }
    place.umbel("dedup --memory 10").fails("10 bytes are too few, at least 64 are needed");
    place
        .umbel("dedup -n 1e6 --memory 1k -p 1%")
        .fails("1.0 KiB are too little: the rate would be 100.000%");
    place.umbel("dedup -n 9e15").refuses("umbel: the error rate 1e-6 is too small, at least ");
}

#[test]
fn a_window_forgets() {
    let place = Place::new();
    // A hundred lines are kept at least, and after five quarters of that they are gone.
    let filler = |count: u32| (0..count).map(|n| format!("filler {n}\n")).collect::<String>();
    let near = format!("a\n{}a\n", filler(99));
    place.umbel_with("dedup --window 100 -d", &near).prints("a\n");
    let far = format!("a\n{}a\n", filler(125));
    place.umbel_with("dedup --window 100 -d", &far).prints("");
    place.umbel_with("dedup --window 1e2 -p 1e-9 -c", &far).prints("127\n");
}

#[test]
fn a_window_of_time_takes_a_number_of_lines() {
    let place = Place::new();
    let times = ["500ms", "30s", "10m", "10min", "1.5h", "7d"];
    for time in times.iter().skip(1) {
        place.umbel_with(&format!("dedup --window {time} -n 1e4"), LINES).prints("b\na\nc\n");
    }
    place
        .umbel("dedup --window 10m")
        .fails("a window of time takes -n, the most lines that come in such a time");
    place.umbel("dedup --window 10 -n 5").fails("a window of records has its size already");
    place
        .umbel("dedup --window 1e6 --memory 1k")
        .fails("the window takes 9.9 MiB, more than 1.0 KiB");
}

#[test]
fn time_passes_in_a_window() {
    let place = Place::new();
    let mut child = place
        .process()
        .args(["dedup", "--window", "200ms", "-n", "1e3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    input.write_all(b"a\na\n").unwrap();
    let mut line = [0; 2];
    output.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"a\n");
    // The line was seen before it was printed. What is 0.25 s old is forgotten, however long all of this takes.
    std::thread::sleep(Duration::from_millis(500));
    input.write_all(b"a\n").unwrap();
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "a\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_was_done_is_told_to_people_and_to_programs() {
    let place = Place::new();
    let ran = place.umbel_with("dedup --stats", LINES);
    ran.prints("b\na\nc\n");
    let second = ran.err.lines().nth(1).expect("a second line");
    assert!(
        second.starts_with("umbel: 6 lines, 3 new, 3 repeated (6 bytes of 12 bytes); "),
        "{second}"
    );
    assert!(second.contains(" of memory, rate now "), "{second}");

    let ran = place.umbel_with("dedup --stats=json -n 1000", LINES);
    let stats: serde_json::Value = serde_json::from_str(&ran.err).expect("one JSON object");
    for (name, number) in [
        ("records", 6),
        ("printed", 3),
        ("new", 3),
        ("repeated", 3),
        ("bytes", 12),
        ("repeated_bytes", 6),
    ] {
        assert_eq!(stats[name], number, "{name}");
    }
    for name in ["seconds", "memory", "rate", "expected_lost"] {
        assert!(stats[name].is_number(), "{name}");
    }
    let ran = place.umbel_with("dedup --stats=text --exact", LINES);
    assert!(
        ran.err.starts_with("umbel: 6 lines, 3 new, 3 repeated (6 bytes of 12 bytes); "),
        "{}",
        ran.err
    );
}

/// With the fixed seed of the portable hash the answer is always the same.
#[test]
fn lines_that_may_be_lost_are_told() {
    let place = Place::new();
    let lines: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    let ran = place.umbel_with("dedup -c --stats=json --hash portable -n 10k -p 1%", &lines);
    let stats: serde_json::Value = serde_json::from_str(&ran.err).expect("one JSON object");
    let lost = stats["repeated"].as_f64().expect("a number");
    let expected = stats["expected_lost"].as_f64().expect("a number");
    // All lines are new, so whatever counts as repeated is lost: a sum of independent rare events.
    assert!(lost > 100.0, "{stats}");
    assert!((lost - expected).abs() < 5.0 * expected.sqrt(), "{stats}");
    let ran = place.umbel_with("dedup -c --hash portable -n 10k -p 1%", &lines);
    let told = format!("new lines; about {expected:.1} more may have been taken for repeated");
    assert!(ran.err.contains(&told), "{}", ran.err);
    // A filter that knows everything says so, and not that infinitely many were lost.
    let ran = place.umbel_with("dedup -c --stats=json -n 10 --hash portable", &lines);
    let stats: serde_json::Value = serde_json::from_str(&ran.err).expect("one JSON object");
    assert!(stats["expected_lost"].as_f64() <= stats["repeated"].as_f64(), "{stats}");
}
