//! `umbel dedup`: each line once.

use crate::place::Place;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

const LINES: &str = "b\na\nb\nc\na\nb\n";

#[test]
fn each_line_is_printed_once_in_its_order() {
    let place = Place::new();
    place.umbel_with("dedup", LINES).gives(0, "b\na\nc\n", "");
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
    place.umbel("dedup --repeats one one two").prints("a\nb\nb");
    place.umbel("dedup --crlf one two").prints("a\nb\r\nc\n");
    place.write("z", "a\0b").umbel("dedup -z z one").prints("a\0b\0a\nb");
}

#[test]
fn empty_input_and_empty_lines_are_input() {
    let place = Place::new();
    place.umbel("dedup").gives(0, "", "");
    place.umbel_with("dedup", "\n\na\n\n").prints("\na\n");
    place.write("none", "").write("one", "a\n").umbel("dedup none one none").prints("a\n");
}

#[test]
fn repeated_lines_go_elsewhere() {
    let place = Place::new();
    place.umbel_with("dedup --repeats", LINES).gives(0, "b\na\nb\n", "");
    place.umbel_with("dedup --repeats -n 100", LINES).gives(0, "b\na\nb\n", "");
    place.umbel_with("dedup -D again", LINES).gives(0, "b\na\nc\n", "");
    assert_eq!(place.read("again"), b"b\na\nb\n");
    place.umbel_with("dedup -D again", LINES).fails("again: is there already; --force replaces it");
    place.umbel_with("dedup --duplicates again --force", "a\na\n").prints("a\n");
    assert_eq!(place.read("again"), b"a\n");
    place.umbel_with("dedup --repeats -D again", LINES).refuses("cannot be used with");
    // What is no file is written to, and not replaced.
    place.umbel_with("dedup -D /dev/null", LINES).prints("b\na\nc\n");
    place.umbel_with("dedup -D .", LINES).fails(".: is a directory");
    assert_eq!(place.names(), ["again"]);
}

#[test]
fn lines_are_counted_instead() {
    let place = Place::new();
    place.umbel_with("dedup --total", LINES).gives(0, "3\n", "");
    place.umbel_with("dedup --total --repeats", LINES).prints("3\n");
    place.umbel_with("dedup --total -d", LINES).prints("2\n");
    place.umbel_with("dedup --total -u", LINES).prints("1\n");
    place.umbel_with("dedup --total -c", LINES).prints("3\n");
    place.umbel_with("dedup --total -D again", "a\na\na\n").prints("1\n");
    assert_eq!(place.read("again"), b"a\na\n");
    place.umbel("dedup --total").prints("0\n");
}

#[test]
fn exact_takes_no_line_for_another() {
    let place = Place::new();
    place.umbel_with("dedup --exact", LINES).gives(0, "b\na\nc\n", "");
    place.umbel_with("dedup --exact --memory 1M", LINES).gives(0, "b\na\nc\n", "");
    for other in ["-n 5", "-p 1%", "--window 5", "--hash keyed", "--overfull"] {
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

/// Such a filter has no room for two lines, and says so.
#[test]
fn a_filter_for_no_lines_is_overfull_at_once() {
    let place = Place::new();
    let ran = place.umbel_with("dedup -n 0", "a\nb\na\n");
    assert_eq!((ran.code, &*ran.out), (Some(2), "a\n"), "{}", ran.err);
    assert!(
        ran.err.starts_with("umbel: the filter is overfull: planned for 0 different lines"),
        "{}",
        ran.err
    );
    place.umbel_with("dedup -n 0 --overfull", "a\nb\na\n").prints("a\nb\n");
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
    place
        .umbel_with("dedup --memory 10", "a\n")
        .fails("--memory 10 bytes is too little: a filter takes at least 64 bytes");
    place
        .umbel("dedup -n 1e6 --memory 1k -p 1%")
        .fails("--memory 1.0 KiB is too little for 1,000,000 different lines at a false positive rate of 1.00 %: the rate would be 100 %; use a larger --memory or a smaller -n");
    place.umbel("dedup -n 9e15").fails("9,000,000,000,000,000 different lines at a false positive rate of 1.0e-6 are not possible, because digests have 64 bits: use a -p of at least 0.20 %, or a smaller -n");
    place.umbel("dedup -n 1e12").refuses(
        "and the system does not have so much memory to give: use a smaller -n or a larger -p",
    );
}

#[test]
fn a_window_forgets() {
    let place = Place::new();
    // A hundred lines are kept at least, and after five quarters of that they are gone.
    let filler = |count: u32| (0..count).map(|n| format!("filler {n}\n")).collect::<String>();
    let near = format!("a\n{}a\n", filler(99));
    place.umbel_with("dedup --window 100 --repeats", &near).prints("a\n");
    let far = format!("a\n{}a\n", filler(125));
    place.umbel_with("dedup --window 100 --repeats", &far).prints("");
    place.umbel_with("dedup --window 1e2 -p 1e-9 --total", &far).prints("127\n");
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
fn what_was_done_is_told_in_one_line_to_people_and_to_programs() {
    let place = Place::new();
    let counts = "umbel: 6 lines, 3 new, 3 repeated (6 bytes of 12 bytes), 3 printed; ";
    for args in ["--stats", "-v", "--verbose", "--stats=text", "--report text", "--exact -v"] {
        let ran = place.umbel_with(&format!("dedup {args}"), LINES);
        ran.prints("b\na\nc\n");
        let exact = format!("{counts}exact; no line was lost; ");
        assert!(ran.err.starts_with(&exact), "{args}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{args}: {}", ran.err);
    }
    let ran = place.umbel_with("dedup -v -n 1000", LINES);
    let filter = format!("{counts}a filter with a false positive rate of ");
    assert!(ran.err.starts_with(&filter) && ran.err.lines().count() == 1, "{}", ran.err);
    assert!(ran.err.contains("; less than half a lost line is expected; "), "{}", ran.err);

    for args in ["--stats=json -n 1000", "--report json", "--verbose=json --repeats"] {
        let ran = place.umbel_with(&format!("dedup {args}"), LINES);
        let stats: serde_json::Value = serde_json::from_str(&ran.err).expect("one JSON object");
        for (name, number) in [
            ("records", 6),
            ("printed", 3),
            ("dropped", 3),
            ("new", 3),
            ("repeated", 3),
            ("bytes", 12),
            ("repeated_bytes", 6),
            ("lost_at_most", 0),
        ] {
            // Of a filter, a bound may be larger than what is expected.
            assert!(stats[name] == number || name == "lost_at_most", "{args} {name}: {stats}");
        }
        assert_eq!(stats["exact"], !args.contains("-n"), "{stats}");
        assert!(stats["filter_from_record"].is_null(), "{stats}");
        for name in ["seconds", "memory", "rate", "expected_lost", "lost_at_most"] {
            assert!(stats[name].is_number(), "{name}");
        }
    }
    place.umbel_with("dedup --report json --stats", LINES).refuses("cannot be used with");
}

#[test]
fn a_run_that_lost_nothing_is_silent() {
    let place = Place::new();
    let lines: String = (0..3_000).map(|n| format!("{}\n", n % 1_500)).collect();
    for args in ["", "-n 2000", "-p 1e-3", "--window 5000", "--memory 100k"] {
        let ran = place.umbel_with(&format!("dedup --total {args}"), &lines);
        let is_over = args == "--memory 100k";
        assert_eq!((ran.code, &*ran.out), (Some(0), "1500\n"), "{args}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), usize::from(is_over), "{args}: {}", ran.err);
    }
}

#[test]
fn a_total_is_no_printed_line() {
    let place = Place::new();
    let ran = place.umbel_with("dedup --total -v", "a\nb\na\n");
    assert!(ran.err.contains("2 counted and not printed; exact"), "{}", ran.err);
}

#[test]
fn the_form_of_stats_stands_after_an_equals_sign() {
    let place = Place::new();
    place.umbel("dedup --stats json").fails(
        "--stats takes its form after an equals sign: expected --stats=json or --report json, and there is no file json",
    );
    // A file of that name is a file.
    place.write("json", "a\n").umbel("dedup --stats json").prints("a\n");
}

/// The bounds that the help, the cookbook and `docs/choosing.md` name.
#[test]
fn a_window_forgets_within_two_windows_and_a_large_one_within_five_quarters() {
    use umbel::window::{Shape, Window};
    let longest = |window, rate| match Shape::for_rate(window, rate).unwrap().longest() {
        Window::Insertions(longest) => longest,
        Window::Time(_) => unreachable!("a window of insertions"),
    };
    let mut last = [0; 5];
    let rates = [0.1, 0.01, 1e-3, 1e-4, 1e-6];
    for window in 1..5_000 {
        for (rate, last) in rates.iter().zip(&mut last) {
            let longest = longest(window, *rate);
            assert!(longest <= 2 * window, "{window} at {rate}: {longest}");
            if longest > window.div_ceil(4) * 5 {
                *last = window;
            }
        }
    }
    // From the next window on, five quarters hold.
    assert_eq!(last, [4_002, 2_184, 1_437, 969, 441]);
}
