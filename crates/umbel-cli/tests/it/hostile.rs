//! Bad bytes, damaged archives, full disks, closed pipes.

use crate::place::Place;
use std::io::Write;
use std::process::Stdio;

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn any_bytes_are_a_line() {
    let place = Place::new();
    let all: Vec<u8> = (0..=255_u8).filter(|byte| *byte != b'\n').collect();
    let lines = [&all[..], b"\n\xff\n\0\0\n\xff\n\0\n", &all[..], b"\n"].concat();
    let output = place.command().arg("dedup").write_stdin(lines).output().unwrap();
    assert_eq!(output.stdout, [&all[..], b"\n\xff\n\0\0\n\0\n"].concat());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    let place = Place::new();
    let name = "evil\x1b[2J\r\u{9b}name";
    let shown = "evil\\u{1b}[2J\\r\\u{9b}name";
    place
        .run(&["dedup", name], "")
        .fails(&format!("{shown}: No such file or directory (os error 2)"));
    place.write(name, "a\n".repeat(100));
    place.run(&["dedup", "-k", "2", name], "").fails(&format!(
        "{shown}:1: there is no field 2 (the record has 1 field); skip such records with --skip-bad"
    ));
    place.run(&["verify", name], "").gives(
        1,
        "",
        &format!("umbel: {shown}: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)\n"),
    );
    place.run(&["build", "--force", "-o", name], "a\n".repeat(100)).prints("");
    place.run(&["verify", name], "").prints(&format!("{shown}: whole, blocked, 64 bytes\n"));
    let told = place.run(&["info", name], "").out;
    assert!(told.starts_with(&format!("file              {shown}\n")), "{told:?}");
    // Lines themselves go through untouched, as of every filter.
    place.umbel_with("dedup", "\x1b[31mred\n").prints("\x1b[31mred\n");
    place
        .umbel_with("dedup --json /\x1b", "{}\n")
        .fails("standard input:1: there is no value at \"/\\u{1b}\" in the record; skip such records with --skip-bad");
}

#[test]
fn what_is_no_file_of_lines_is_named() {
    let place = Place::new();
    place.umbel("dedup nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.umbel("dedup .").fails(".: is a directory; name the files in it");
    place.write("a", "a\n").umbel("dedup a .").fails(".: is a directory; name the files in it");
    place.umbel("dedup a/b").fails("a/b: Not a directory (os error 20)");
}

#[test]
fn archives_are_known_by_their_first_bytes() {
    let place = Place::new();
    place.write("lines", gzip(b"a\nb\na\n")).umbel("dedup lines").prints("a\nb\n");
    place.write("more", zstd(b"b\nc\nc\n")).umbel("dedup lines more").prints("a\nb\nc\n");
    place.umbel_with("dedup", gzip(b"a\na")).prints("a\n");
    place.umbel_with("dedup", zstd(b"a\na")).prints("a\n");
    // Several in one file, as `cat` and log rotation make them; a line may go from one into the other.
    place
        .umbel_with("dedup", [gzip(b"a\nb"), gzip(b""), gzip(b"c\na\n")].concat())
        .prints("a\nbc\n");
    place.umbel_with("dedup", [zstd(b"a\nb"), zstd(b"c\na\n")].concat()).prints("a\nbc\n");
    place.umbel_with("dedup", gzip(b"")).prints("");
    place.umbel_with("build -o f -n 100", gzip(b"a\nb\n")).prints("");
    place.umbel_with("check f", zstd(b"x\nb\n")).prints("b\n");
    // A short text that begins like one is none. Bytes that no text has are one that is cut off.
    for bytes in [&b"\x1f"[..], b"\x28", b"BZh9", b"PK"] {
        let output = place.command().arg("dedup").write_stdin(bytes).output().unwrap();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), bytes));
    }
    for bytes in [&b"\x1f\x8b"[..], b"\x28\xb5\x2f", b"\xfd7zXZ", b"\x04\x22\x4d\x18\x40"] {
        assert_eq!(place.umbel_with("dedup", bytes).code, Some(2), "{bytes:?}");
    }
}

#[test]
fn archives_that_end_too_early_are_errors() {
    let place = Place::new();
    let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let whole = gzip(lines.as_bytes());
    for length in [10, 100, whole.len() - 8, whole.len() - 1] {
        let ran = place.write("l.gz", &whole[..length]).umbel("dedup l.gz");
        assert_eq!(ran.code, Some(2), "{length}");
        let told = "the gzip data is cut off: expected more of it, found the end of the file; get the whole file, or recover what is there, with gzip -dc\n";
        assert!(
            ran.err.starts_with("umbel: l.gz: ") && ran.err.ends_with(told),
            "{length}: {}",
            ran.err
        );
        assert!(lines.starts_with(&ran.out), "{length}: what came before is right");
    }
    let mut damaged = whole.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    let ran = place.write("l.gz", damaged).umbel("build -o f l.gz");
    assert_eq!(ran.code, Some(2));
    assert_eq!(place.names(), ["l.gz"], "no filter of half of the keys");
    let whole = zstd(lines.as_bytes());
    let ran = place.write("l.zst", &whole[..whole.len() - 3]).umbel("dedup l.zst");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("the zstd data is cut off: expected more of it"), "{}", ran.err);
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let place = Place::new();
    place.write("a", "a\nb\na\n");
    place.umbel("build -o f a").prints("");
    let full = "No space left on device (os error 28)\n";
    for verb in [
        "dedup a",
        "dedup --total a",
        "check f a",
        "check -c f a",
        "info f",
        "verify f",
        "plan -n 5",
        "build -o - a",
        "merge -o - f f",
        "man",
        "completions zsh",
        "bench --family bloom a",
    ] {
        let ran = place.shell(&format!("umbel {verb} > /dev/full"));
        assert_eq!(ran.code, Some(2), "{verb}");
        assert_eq!(ran.err, format!("umbel: standard output: {full}"), "{verb}");
    }
    let ran = place.umbel("build -o /dev/full a");
    ran.gives(2, "", &format!("umbel: /dev/full: {full}"));
    let ran = place.umbel("dedup -D /dev/full a");
    assert_eq!((ran.code, &*ran.out), (Some(2), "a\nb\n"));
    assert!(ran.err.ends_with(&format!("umbel: /dev/full: {full}")), "{}", ran.err);
}

#[test]
fn a_file_that_cannot_grow_leaves_what_was_there() {
    let place = Place::new();
    let keys: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    place.write("keys", keys);
    // Files of at most 64 KiB, and no signal about it.
    let limited =
        |command: &str| place.shell(&format!("trap '' XFSZ; ulimit -f 64; umbel {command}"));
    limited("build -o f keys").gives(2, "", "umbel: f: File too large (os error 27)\n");
    assert_eq!(place.names(), ["keys"]);
    place.umbel_with("build -o f -n 100k", "a\n").prints("");
    let before = place.read("f");
    limited("add f keys").gives(2, "", "umbel: f: File too large (os error 27)\n");
    limited("build --force -o f keys").gives(2, "", "umbel: f: File too large (os error 27)\n");
    let ran = limited("dedup --state s keys");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.ends_with("umbel: s: File too large (os error 27)\n"), "{}", ran.err);
    assert_eq!(place.read("f"), before);
    assert_eq!(place.names(), ["f", "keys"]);
}

#[test]
fn a_closed_standard_output_ends_the_command_without_an_error() {
    let place = Place::new();
    let keys: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    place.write("keys", keys);
    place.umbel("build -o f keys").prints("");
    for verb in [
        "dedup keys",
        "dedup --total keys",
        "check f keys",
        "build -o - keys",
        "merge -o - f f",
        "info f",
        "verify f",
        "man",
        "completions bash",
        "plan -n 9",
    ] {
        place.unread(verb, "").gives(0, "", "");
        let ran =
            place.shell(&format!("umbel {verb} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"));
        assert_eq!(ran.out, "0\n", "{verb}: {}", ran.err);
    }
    // A closed standard error is no error either.
    for verb in ["dedup --total --stats keys", "build -o g keys", "add f keys", "merge -o h f f"] {
        let ran = place.shell(&format!("(umbel {verb}; echo $? > code) 2> >(true); cat code"));
        assert!(ran.out.ends_with("0\n") && !ran.out.contains("101"), "{verb}: {}", ran.out);
    }
}

#[test]
fn a_status_that_is_an_answer_does_not_depend_on_the_reader_of_the_output() {
    let place = Place::new();
    place.umbel_with("build -o f -p 1e-9 -n 100", "a\n").prints("");
    place.write("damaged", &place.read("f")[1..]);
    for (args, input, code) in [
        ("check f", "x\na\ny\n", 0),
        ("check f", "x\ny\n", 1),
        ("check -c f", "x\na\n", 0),
        ("check -c f", "x\n", 1),
        ("check -v f", "a\n", 1),
        ("check f --item a", "", 0),
        ("check f --item x", "", 1),
        // The header cannot be printed, and the records are looked up all the same.
        ("check --csv k f", "k,v\nx,1\na,2\n", 0),
        ("check --csv k f", "k,v\nx,1\n", 1),
        ("verify f", "", 0),
        ("verify f damaged", "", 1),
        ("verify damaged nowhere", "", 2),
        ("info f nowhere", "", 2),
    ] {
        assert_eq!(place.unread(args, input).code, Some(code), "{args} {input:?}");
    }
}

#[test]
fn a_pipe_that_breaks_elsewhere_is_an_error() {
    let place = Place::new();
    let keys: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    place.write("keys", keys);
    // The reader opens the pipe and closes it. What is written is more than a pipe holds.
    for verb in ["build -o pipe keys", "dedup --total -D pipe keys keys"] {
        let script = format!(
            "rm -f pipe; mkfifo pipe; (exec 3< pipe) & umbel {verb} > /dev/null; echo $?; wait"
        );
        let ran = place.shell(&script);
        assert_eq!(ran.out, "2\n", "{verb}: {}", ran.err);
        assert!(ran.err.ends_with("umbel: pipe: Broken pipe (os error 32)\n"), "{}", ran.err);
    }
}

/// The error that a broken socket gives, from the file that is read.
#[test]
#[cfg(unix)]
fn input_that_breaks_is_an_error_and_no_answer() {
    let place = Place::new();
    place.write("keys", "a\n").umbel("build -o f keys").prints("");
    if !place.has_strace() {
        return;
    }
    for verb in ["check -q f keys", "dedup keys", "build -o g keys", "add f keys"] {
        let ran = place.shell(&format!(
            "strace -f -o /dev/null -P $PWD/keys -e trace=read -e inject=read:error=EPIPE umbel {verb}"
        ));
        ran.gives(2, "", "umbel: keys: Broken pipe (os error 32)\n");
    }
}

#[test]
fn a_standard_input_that_was_closed_is_an_error() {
    let place = Place::new();
    let closed = "standard input: is closed: name a file, or redirect it from /dev/null if there is no input";
    place.umbel("build -q -o f /dev/null").prints("");
    for verb in ["dedup", "dedup -o o -", "build -o b", "add f", "check -v f", "check - f", "bench"]
    {
        place.shell(&format!("umbel {verb} <&-")).fails(closed);
    }
    assert_eq!(place.names(), ["f"]);
    place.shell("umbel dedup --total < /dev/null").gives(0, "0\n", "");
}

#[test]
fn a_pipe_in_the_place_of_a_half_written_file_is_an_error() {
    let place = Place::new();
    place.write("in", "a\n").shell("mkfifo .x.umbel-part").prints("");
    for verb in ["dedup -o x in", "dedup --state x in", "build -o x in"] {
        let ran = place.umbel(verb);
        assert_eq!(ran.code, Some(2), "{verb}");
        assert!(ran.err.contains(".x.umbel-part is in the way"), "{verb}: {}", ran.err);
    }
    assert_eq!(place.names(), [".x.umbel-part", "in"]);
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_leaves_nothing_behind() {
    let place = Place::new();
    place.shell("seq 300000 > in").prints("");
    for verb in ["dedup -o x in", "dedup --state x in", "build -o x in"] {
        // Blocks of 512 or 1024 bytes: less than any of these files.
        let ran = place.shell(&format!("ulimit -f 100; umbel {verb} > /dev/null"));
        assert_eq!(ran.code, Some(2), "{verb}: {}", ran.err);
        assert_eq!(place.names(), ["in"], "{verb}");
    }
}

#[test]
fn lines_come_out_as_they_come_in() {
    let place = Place::new();
    for line in ["a\n", "longer than any magic\n"] {
        let mut child = place
            .process()
            .arg("dedup")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let mut got = vec![0; line.len()];
        // This waits for ever if the line waits for the next one.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut got).unwrap();
        assert_eq!(got, line.as_bytes());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
