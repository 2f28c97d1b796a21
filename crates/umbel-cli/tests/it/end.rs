//! `dedup -d`, `-u`, `-c` as uniq has them, `--keep-last`, and where lines go.

use crate::place::Place;

const LINES: &str = "b\na\nb\nc\na\nb\n";

#[test]
fn lines_that_come_again_are_printed_once() {
    let place = Place::new();
    // At the second occurrence.
    for args in ["-d", "--repeated", "-d -n 100", "-d -p 1%", "-d --exact"] {
        place.umbel_with(&format!("dedup {args}"), LINES).gives(0, "b\na\n", "");
    }
    place.umbel_with("dedup -d -k 1", "x 1\ny 1\nx 2\nx 3\n").prints("x 2\n");
    place.umbel_with("dedup -d --csv id", "id,n\n1,a\n2,b\n1,c\n1,d\n").prints("id,n\n1,c\n");
    // A state does not say which lines were printed: every later run would print them again.
    place.umbel_with("dedup -d --state s", LINES).fails(
        "-d with --state would print a line again in every later run: a state says which lines came, and not which of them were \
         printed as repeated. Leave one of them out; --repeats with --state prints every line that came before",
    );
    assert!(place.names().is_empty());
    // Both sets go over to filters.
    let input: String = (0..90_000).map(|n| format!("{}\n", n % 30_000)).collect();
    let ran = place.umbel_with("dedup -d --total --memory 1M", &input);
    assert_eq!((ran.code, &*ran.out), (Some(0), "30000\n"), "{}", ran.err);
    let both =
        "umbel: the memory limit of 1.0 MiB (shared by 2 sets of lines) is reached: from record ";
    assert_eq!(ran.err.matches(both).count(), 2, "{}", ran.err);
    for other in ["-u", "--keep-last", "-D x", "--window 5", "--repeats"] {
        place.umbel_with(&format!("dedup -d {other}"), LINES).refuses("cannot be used with");
    }
}

#[test]
fn lines_that_come_once_are_printed_at_the_end() {
    let place = Place::new();
    place.umbel_with("dedup -u", LINES).gives(0, "c\n", "");
    place.umbel_with("dedup --unique", "c\na\nb\na\nd").gives(0, "c\nb\nd", "");
    place.umbel_with("dedup -u", "").gives(0, "", "");
    place.umbel_with("dedup -u --csv id", "id,n\n1,a\n2,b\n1,c\n").prints("id,n\n2,b\n");
    place.umbel_with("dedup -u -k 1", "x 1\ny 1\nx 2\n").prints("y 1\n");
}

/// The format is that of uniq.
#[test]
fn lines_are_printed_with_their_counts() {
    let place = Place::new();
    place.umbel_with("dedup -c", LINES).gives(0, "      3 b\n      2 a\n      1 c\n", "");
    place.umbel_with("dedup --count -d", LINES).prints("      3 b\n      2 a\n");
    place.umbel_with("dedup -c -u", LINES).prints("      1 c\n");
    let sorted = "a\na\nb\nc\nc\nc\n";
    let uniq = |args: &str| place.write("sorted", sorted).shell(&format!("uniq {args} sorted")).out;
    for args in ["-c", "-d", "-u", "-cd", "-cu"] {
        place.umbel_with(&format!("dedup {args}"), sorted).prints(&uniq(args));
    }
    let many = "x\n".repeat(12_345_678 / 1_000);
    place.umbel_with("dedup -c", many).prints("  12345 x\n");
}

#[test]
fn the_last_record_of_each_key_is_kept_in_its_place() {
    let place = Place::new();
    place.umbel_with("dedup --keep-last", LINES).gives(0, "c\na\nb\n", "");
    place.umbel_with("dedup --keep-last -k 1", "x 1\ny 1\nx 2\n").prints("y 1\nx 2\n");
    place
        .umbel_with("dedup --keep-last --csv id", "id,n\n1,a\n2,b\n1,c\n")
        .prints("id,n\n2,b\n1,c\n");
    place.umbel_with("dedup --keep-last --total", LINES).prints("3\n");
}

/// Records whose place was taken by later ones leave memory: 20 MB go through 1 MiB.
#[test]
fn records_that_are_replaced_take_no_memory() {
    let place = Place::new();
    let line = |n: u64| format!("{} {}{n}\n", n % 500, "x".repeat((n * n % 300) as usize));
    let input: String = (0..100_000).map(line).collect();
    let expected: String = (99_500..100_000).map(line).collect();
    let ran = place.umbel_with("dedup --keep-last --memory 1M -k 1", &input);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out == expected);
    // Some keys stay where they are.
    let some: String =
        (0..60_000).map(|n| line(if n % 3 == 0 { n / 3 % 500 } else { 1_000 + n % 7 })).collect();
    let mut last = std::collections::HashMap::new();
    some.lines()
        .enumerate()
        .for_each(|(at, text)| _ = last.insert(text.split(' ').next().unwrap(), at));
    let kept =
        some.lines().enumerate().filter(|(at, text)| last[text.split(' ').next().unwrap()] == *at);
    let expected: String = kept.map(|(_, text)| format!("{text}\n")).collect();
    let ran = place.umbel_with("dedup --keep-last --memory 1M -k 1", &some);
    assert!(ran.out == expected, "{}", ran.err);
}

#[test]
fn too_many_records_for_the_end_are_an_error_that_names_the_limit() {
    let place = Place::new();
    let input: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
    for mode in ["-c", "-u", "--keep-last", "-c -d", "--keep-last -o out"] {
        let ran = place.umbel_with(&format!("dedup {mode} --memory 1M"), &input);
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{mode}");
        assert!(ran.err.starts_with("umbel: record ") && ran.err.ends_with(" and their keys have taken all of the memory limit of 1.0 MiB, and these lines are printed at the end of the input only; use a larger --memory\n"), "{}", ran.err);
    }
    assert!(place.names().is_empty());
    for other in [
        "-n 9",
        "-p 1%",
        "--window 9",
        "--state s",
        "--hash keyed",
        "-D x",
        "--repeats",
        "--overfull",
    ] {
        for mode in ["-c", "-u", "--keep-last"] {
            place.umbel_with(&format!("dedup {mode} {other}"), "").refuses("cannot be used with");
        }
    }
    place.umbel_with("dedup -u --keep-last", "").refuses("cannot be used with");
}

#[test]
fn the_output_is_a_file_that_is_whole_or_not_there() {
    let place = Place::new();
    place.umbel_with("dedup -o out", LINES).gives(0, "", "");
    assert_eq!(place.read("out"), b"b\na\nc\n");
    place.umbel_with("dedup -o out", LINES).fails("out: is there already; --force replaces it");
    place.umbel_with("dedup --force -o out -c", LINES).gives(0, "", "");
    assert_eq!(place.read("out"), b"      3 b\n      2 a\n      1 c\n");
    place.umbel_with("dedup -o -", LINES).gives(0, "b\na\nc\n", "");
    place.umbel_with("dedup -o lines -D -", LINES).gives(0, "b\na\nb\n", "");
    assert_eq!(place.read("lines"), b"b\na\nc\n");
    place.umbel_with("dedup -D -", LINES).fails(
        "-D - and the lines would both go to standard output; give one of them a file, with -D or -o",
    );
    // A run that fails leaves what was there.
    let ran = place.umbel_with("dedup --force -o out --json /a", "{\"a\":1}\n{}\n");
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    assert_eq!(place.read("out"), b"      3 b\n      2 a\n      1 c\n");
    place.umbel_with("dedup -o /dev/full", LINES).refuses("/dev/full: No space left on device");
    assert_eq!(place.names(), ["lines", "out"]);
}
