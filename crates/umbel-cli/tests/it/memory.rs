//! `dedup` is exact within a memory limit, and goes over to a filter.

use crate::place::Place;
use std::io::{Read, Write};
use std::process::Stdio;

fn lines(from: u64, to: u64) -> String {
    (from..to).map(|n| format!("line {n}\n")).collect()
}

/// The message about going over, and the record that it names.
fn over(err: &str, memory: &str) -> u64 {
    let start = format!("umbel: the memory limit of {memory} is reached: from record ");
    let line = err.lines().find_map(|line| line.strip_prefix(&start));
    let line = line.unwrap_or_else(|| panic!("{err}"));
    let (record, rest) = line.split_once(' ').unwrap();
    assert!(rest.contains("a filter tells which lines are new. It has room for "), "{line}");
    assert!(rest.contains("at most 1.0e-6 of the new lines"), "{line}");
    record.replace(',', "").parse().unwrap()
}

#[test]
fn the_default_is_exact_and_goes_over_at_its_limit() {
    let place = Place::new();
    let input = lines(0, 60_000);
    place.umbel_with("dedup --total", &input).gives(0, "60000\n", "");
    let ran = place.umbel_with("dedup --total --memory 1M", &input);
    assert_eq!((ran.code, &*ran.out), (Some(0), "60000\n"), "{}", ran.err);
    let record = over(&ran.err, "1.0 MiB");
    assert!((10_000..30_000).contains(&record), "{record}");
    let ran = place.umbel_with("dedup --total --memory 1M --report json", &input);
    let stats: serde_json::Value = serde_json::from_str(ran.err.lines().last().unwrap()).unwrap();
    assert_eq!((&stats["exact"], &stats["filter_from_record"]), (&false.into(), &record.into()));
    assert!(stats["memory"].as_u64().unwrap() <= 1 << 20, "{stats}");
    // So little memory that there is never a set.
    let ran = place.umbel_with("dedup --memory 1k", "a\nb\na\n");
    assert_eq!((ran.code, &*ran.out), (Some(0), "a\nb\n"));
    assert_eq!(over(&ran.err, "1.0 KiB"), 1);
}

/// Also where the set would have its second and third part at the same time.
#[test]
fn every_limit_leaves_room_for_a_filter() {
    let place = Place::new();
    let input = lines(0, 7_000);
    for limit in (60..700).step_by(20) {
        let ran = place.umbel_with(&format!("dedup --total --memory {limit}k"), &input);
        assert_eq!((ran.code, &*ran.out), (Some(0), "7000\n"), "{limit}k: {}", ran.err);
    }
}

#[test]
fn lines_of_the_exact_part_are_never_printed_again() {
    let place = Place::new();
    let input = lines(0, 50_000);
    let ran = place.umbel_with("dedup --memory 1M", input.clone() + &input + &input);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    over(&ran.err, "1.0 MiB");
    assert!(ran.out == input);
    // The other way round, and by a part of the record.
    let keyed: String = (0..150_000_u64).map(|n| format!("{n}\tkey {}\n", n % 50_000)).collect();
    let ran = place.umbel_with("dedup --total --memory 1M -k 2 -t \\t", keyed);
    assert_eq!(&*ran.out, "50000\n");
}

#[test]
fn a_plan_that_is_passed_after_going_over_is_reported_and_ends_the_run() {
    let place = Place::new();
    let input = lines(0, 200_000);
    let ran = place.umbel_with("dedup --memory 512k", &input);
    assert_eq!(ran.code, Some(2));
    let told: Vec<&str> = ran.err.lines().collect();
    assert_eq!(told.len(), 3, "{}", ran.err);
    assert!(
        told[1].starts_with("umbel: more than the ")
            && told[1].ends_with("; use a larger --memory"),
        "{}",
        ran.err
    );
    assert!(
        told[2].starts_with("umbel: the filter is overfull: ")
            && told[2].contains(". Use a larger --memory. --overfull goes on"),
        "{}",
        ran.err
    );
    assert!(input.starts_with(&ran.out), "what was printed is what came first");
    assert_eq!(place.umbel_with("dedup --total --memory 512k --overfull", &input).code, Some(0));
}

#[test]
fn exact_past_its_limit_is_an_error() {
    let place = Place::new();
    let input = lines(0, 60_000);
    let ran = place.umbel_with("dedup --exact --memory 1M", &input);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.starts_with("umbel: record "), "{}", ran.err);
    assert!(ran.err.ends_with(" different lines have taken all of the memory limit of 1.0 MiB; use a larger --memory, or leave --exact out: the run then goes over to a filter\n"), "{}", ran.err);
    assert!(input.starts_with(&ran.out) && ran.out.lines().count() > 10_000);
    assert_eq!(ran.err.lines().count(), 1);
}

/// Address space that is too small for 5 million lines, and enough for the program. Arenas of the allocator reserve 64 MiB of it for
/// each thread, so there is one.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_the_system_does_not_give_is_an_error_or_the_end_of_the_exact_part() {
    let place = Place::new();
    let ran = place.shell(
        "export MALLOC_ARENA_MAX=1; ulimit -v 120000; seq 5000000 | umbel dedup --exact --total",
    );
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    assert!(
        ran.err.contains(", and the system has no more memory to give, or leave --exact out"),
        "{}",
        ran.err
    );
    let ran = place.shell(
        "export MALLOC_ARENA_MAX=1; ulimit -v 120000; seq 5000000 | umbel dedup --total --overfull",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains(" is reached: from record "), "{}", ran.err);
    // All counts at the end of the input: an error that names --memory.
    for mode in ["-c", "-u", "--keep-last"] {
        let ran = place.shell(&format!(
            "export MALLOC_ARENA_MAX=1; ulimit -v 120000; seq 5000000 | umbel dedup {mode}"
        ));
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
        assert!(ran.err.contains("use a larger --memory"), "{}", ran.err);
    }
}

/// The highest memory of a run that has read all of this and waits for more, in bytes.
#[cfg(target_os = "linux")]
fn peak(place: &Place, args: &str, input: &str, printed: usize) -> u64 {
    let mut child = place
        .process()
        .args(args.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let status = format!("/proc/{}/status", child.id());
    let peak = std::thread::scope(|scope| {
        scope.spawn(move || {
            to.write_all(input.as_bytes()).unwrap();
            // The last line is printed when all others were looked up. The pipe stays open until the peak is known.
            to.write_all(b"last\n").unwrap();
            to
        });
        let mut out = vec![0; printed + 5];
        from.read_exact(&mut out).unwrap();
        assert!(out.ends_with(b"last\n"));
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    });
    child.wait().unwrap();
    peak
}

#[test]
#[cfg(target_os = "linux")]
fn the_whole_run_stays_within_its_limit() {
    let place = Place::new();
    let input = lines(0, 2_500_000);
    for (args, memory) in [("dedup --memory 64M", 64_u64 << 20), ("dedup --memory 96M", 96 << 20)] {
        let peak = peak(&place, args, &input, input.len());
        assert!(peak <= memory, "{args}: {peak} of {memory}");
        // And makes use of it.
        assert!(peak > memory / 3, "{args}: {peak} of {memory}");
    }
}

#[test]
fn a_state_is_exact_or_a_filter_and_goes_on() {
    let place = Place::new();
    let (first, second) = (lines(0, 20_000), lines(10_000, 60_000));
    place.umbel_with("dedup --total --state s --memory 2M", &first).gives(0, "20000\n", "");
    assert_eq!(place.read("s").len(), 64 + 16 * 20_000);
    // The second run goes over, the third one begins with the filter.
    let ran = place.umbel_with("dedup --total --state s --memory 2M", &second);
    assert_eq!((ran.code, &*ran.out), (Some(0), "40000\n"), "{}", ran.err);
    over(&ran.err, "2.0 MiB");
    place
        .umbel_with("dedup --total --state s --memory 2M", first.clone() + &second)
        .gives(0, "0\n", "");
    place.umbel_with("dedup --total --state s", first.clone() + &second).gives(0, "0\n", "");
    // It is a filter like others.
    place.umbel_with("check s", "line 3\nx\nline 59999\n").prints("line 3\nline 59999\n");
    place.umbel_with("dedup --total --state s --exact", "a\n").refuses(
        "s: the state was begun as a filter, or went over to one, and this run has --exact",
    );
    place
        .umbel_with("dedup --total --state s --memory 100k", "a\n")
        .refuses("and this run has --memory 100.0 KiB");
}

#[test]
fn an_exact_state_that_is_larger_than_the_limit_goes_over_when_it_is_read() {
    let place = Place::new();
    let input = lines(0, 40_000);
    place.umbel_with("dedup --total --state s", &input).gives(0, "40000\n", "");
    let before = place.read("s");
    let ran = place.umbel_with("dedup --state s --exact --memory 1M", "x\n");
    assert_eq!((ran.code, &*ran.out), (Some(2), ""));
    assert!(ran.err.contains("use a larger --memory, or leave --exact out"), "{}", ran.err);
    let ran = place.umbel_with("dedup --total --state s --memory 100k", "x\n");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(place.read("s") == before);
    let ran = place.umbel_with("dedup --state s --memory 1M", input.clone() + "new\n");
    assert_eq!((ran.code, &*ran.out), (Some(0), "new\n"), "{}", ran.err);
    place.umbel_with("dedup --state s", input + "new\nx\n").gives(0, "x\n", "");
}

/// Without -p the rate is one in a million, also if the memory is too little for it.
#[test]
fn a_worse_rate_than_the_default_must_be_asked_for() {
    let place = Place::new();
    let ran = place.umbel_with("dedup --total -n 1000 --memory 1k", "a\n");
    ran.fails(
        "--memory 1.0 KiB is too little for 1,000 different lines at a false positive rate of 1.0e-6, the default of -p: the rate would \
         be 2.00 %; use a larger --memory or a smaller -n, or accept this rate with -p 2.0e-2",
    );
    // What is said is taken.
    place.umbel_with("dedup --total -n 1000 --memory 1k -p 2.0e-2", "a\n").gives(0, "1\n", "");
    place.umbel_with("dedup --total -n 1000 --memory 8k", "a\n").gives(0, "1\n", "");
    place
        .umbel_with("dedup --total -n 1000 --memory 1k -p 1%", "a\n")
        .refuses("at a false positive rate of 1.00 %: the rate would be 2.00 %");
}
