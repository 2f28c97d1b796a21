//! `umbel check`: which lines may be in a filter.

use crate::place::Place;
use umbel::{BloomFilter, Saved};

/// A filter in which nothing is found by mistake that these tests ask for.
fn place() -> Place {
    let place = Place::new();
    place.umbel_with("build -o f -p 1e-9 -n 100", "a\nb\nc\n").prints("");
    place
}

#[test]
fn lines_that_may_be_there_are_printed() {
    let place = place();
    place.umbel_with("check f", "x\na\ny\nc").gives(0, "a\nc", "");
    place.umbel_with("check f -", "x\nb\n").gives(0, "b\n", "");
    place.write("one", "a").write("two", "b\nx\n").umbel("check f one two").gives(0, "a\nb\n", "");
    place.umbel_with("check f", "x\ny\n").gives(1, "", "");
    place.umbel("check f").gives(1, "", "");
}

#[test]
fn lines_that_are_certainly_not_are_printed_for_v() {
    let place = place();
    place.umbel_with("check -v f", "x\na\ny\n").gives(0, "x\ny\n", "");
    place.umbel_with("check --invert-match f", "a\n").gives(1, "", "");
}

#[test]
fn counting_and_being_quiet_end_alike() {
    let place = place();
    place.umbel_with("check -c f", "x\na\nb\n").gives(0, "2\n", "");
    place.umbel_with("check --count f", "x\n").gives(1, "0\n", "");
    place.umbel_with("check -c -v f", "x\n").gives(0, "1\n", "");
    place.umbel_with("check -q f", "x\na\n").gives(0, "", "");
    place.umbel_with("check --quiet f", "x\n").gives(1, "", "");
    place.umbel("check -q -c f").refuses("cannot be used with");
    // It stops at the first one: what comes later is not read.
    place.write("a", "a\n").umbel("check -q f a nowhere").gives(0, "", "");
}

#[test]
fn single_keys_are_asked_for() {
    let place = place();
    place.umbel("check f --item a").gives(0, "a\n", "");
    place.umbel("check f --item x --item b --item a").gives(0, "b\na\n", "");
    place.umbel("check f --item x").gives(1, "", "");
    place.umbel("check -v f --item x --item a").gives(0, "x\n", "");
    place.umbel("check -c f --item a --item b").gives(0, "2\n", "");
    place.umbel("check -q f --item a").gives(0, "", "");
    place.umbel("check -z f --item a --item b").gives(0, "a\0b\0", "");
    place.umbel("check -i f --item A").gives(0, "A\n", "");
    place.umbel("check f file --item a").refuses("cannot be used with");
}

#[cfg(unix)]
#[test]
fn a_key_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    place.umbel_with("build -o f -n 100", b"\xff\xfe\n").prints("");
    let key = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let output = place.command().args(["check", "f", "--item"]).arg(key).output().unwrap();
    assert_eq!(output.stdout, b"\xff\xfe\n");
}

#[test]
fn keys_are_parts_of_records() {
    let place = place();
    place.umbel_with("check f -k 2", "1 a\n2 x\n").gives(0, "1 a\n", "");
    place.umbel_with("check f --csv y", "x,y\n1,a\n2,z\n").gives(0, "x,y\n1,a\n", "");
    place.umbel_with("check f --csv y -c", "x,y\n1,a\n2,z\n").gives(0, "1\n", "");
    place.umbel_with("check f --json /k", "{\"k\":\"a\"}\n{\"k\":\"z\"}\n").gives(
        0,
        "{\"k\":\"a\"}\n",
        "",
    );
    place.umbel_with("check f -z", "a\0x\0").gives(0, "a\0", "");
    place.umbel_with("check f --crlf", "a\r\nx\r\n").gives(0, "a\r\n", "");
    place.umbel_with("check f -i", "A\nX\n").gives(0, "A\n", "");
}

#[test]
fn errors_are_no_answers() {
    let place = place();
    place.umbel("check nowhere").fails("nowhere: No such file or directory (os error 2)");
    place
        .write("text", "x\n".repeat(100) + "a\n")
        .umbel("check text")
        .fails("text: these bytes do not begin as a filter does");
    place.umbel("check .").fails(".: this is not a file");
    place.umbel("check f nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.umbel("check").refuses("<FILTER>");
    // What was found before is printed, and yet it is an error.
    place.umbel("check f text nowhere").gives(
        2,
        "a\n",
        "umbel: nowhere: No such file or directory (os error 2)\n",
    );
}

#[test]
fn lines_are_not_asked_of_a_filter_of_numbers() {
    let place = Place::new();
    let mut numbers = BloomFilter::<u64>::new(10, 0.01);
    numbers.insert(&12_345_678);
    numbers.save(place.path("numbers")).unwrap();
    let refused = "numbers: its keys are numbers, for the program that made it, and lines are none";
    place.umbel_with("check numbers", "12345678\n").fails(refused);
    place.umbel_with("add numbers", "12345678\n").fails(refused);
    place.umbel_with("dedup --state numbers", "12345678\n").fails(refused);
    place.umbel("verify numbers").prints("numbers: whole, bloom, 16 bytes\n");
}

#[test]
fn lines_come_out_as_they_come_in() {
    let place = place();
    // The second line is written only when the first one has come out.
    let script = "mkfifo in; umbel check f in > out & exec 3> in; echo a >&3;
        for _ in $(seq 3000); do [ -s out ] && break; sleep 0.02; done; cat out; echo b >&3; exec 3>&-; wait; cat out";
    place.shell(script).gives(0, "a\na\nb\n", "");
}
