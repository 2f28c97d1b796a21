//! Records that are long, and records without an end.

use crate::hostile::{gzip, zstd};
use crate::place::Place;

#[test]
fn a_line_of_300_mib_is_a_line() {
    let place = Place::new();
    // Through a pipe, which does not tell how long it is; twice, and then another one.
    let script = "long() { head -c 314572800 /dev/zero | tr '\\0' x; echo $1; }
        (long a; echo short; long a; long b; echo short) | umbel dedup --max-record 512M 2>/dev/null | wc -lc";
    let ran = place.shell(script);
    let numbers: Vec<&str> = ran.out.split_whitespace().collect();
    assert_eq!(numbers, ["3", "629145610"], "{ran:?}");
}

#[test]
fn a_quoted_field_may_be_long_if_it_is_told_so() {
    let place = Place::new();
    // Looking for its end again and again from the start would take minutes.
    let script = "(echo id,x; echo '1,a'; printf '2,\"'; yes 'never, closed' | head -c 60000000; echo '\"') |
        umbel dedup --csv id --max-field 100M 2>/dev/null | wc -c";
    let ran = place.shell(script);
    assert_eq!(ran.out.trim(), (5 + 4 + 3 + 60_000_000 + 2).to_string(), "{ran:?}");
}

/// Runs a script in 400 MiB of address space.
fn in_little_memory(place: &Place, script: &str) -> crate::place::Ran {
    place.shell(&format!("ulimit -v 409600; {script}"))
}

#[test]
fn a_record_without_an_end_is_an_error_before_memory_runs_out() {
    let place = Place::new();
    let (newline, zero) = ("yes | tr -d '\\n'", "yes");
    let longer = "is longer than 64.0 MiB; allow longer ones with --max-record SIZE, or skip such records with --skip-bad";
    let csv = "which starts on line 4, is longer than 64.0 MiB; allow longer ones with --max-record SIZE, or skip such records with --skip-bad";
    let quoted = "quoted field starts here and is not closed within 1.0 MiB; add the closing quote or allow longer fields with --max-field SIZE, or skip such records with --skip-bad";
    for (feed, args, out, err) in [
        (format!("printf 'a\\nb\\n'; {newline}"), "", "a\nb\n", format!("line 3 {longer}")),
        (format!("printf 'a x\\n'; {newline}"), "-k 2", "a x\n", format!("line 2 {longer}")),
        (format!("printf 'a\\0'; {zero}"), "-z", "a\0", format!("record 2 {longer}")),
        (
            format!("printf '{{\"a\":1}}\\n{{\"a\":\"'; {newline}"),
            "--json /a",
            "{\"a\":1}\n",
            format!("line 2 {longer}"),
        ),
        (
            format!("printf 'k,v\\n1,\"a\\nb\"\\n2,'; {newline}"),
            "--csv k",
            "k,v\n1,\"a\nb\"\n",
            format!("record 3, {csv}"),
        ),
        (
            format!("printf 'k,v\\n1,\"a\\nb\"\\n2,\"'; {zero}"),
            "--csv k --max-field 1G",
            "k,v\n1,\"a\nb\"\n",
            format!("record 3, {csv}"),
        ),
    ] {
        let ran = in_little_memory(&place, &format!("({feed}) 2>&- | umbel dedup {args}"));
        ran.gives(2, out, &format!("umbel: standard input: {err}\n"));
    }
    let feed = format!("printf 'k,v\\n1,\"a\\nb\"\\n2,\"'; {zero}");
    in_little_memory(&place, &format!("({feed}) 2>&- | umbel dedup --csv k")).gives(
        2,
        "k,v\n1,\"a\nb\"\n",
        &format!("umbel: standard input:4: {quoted}\n"),
    );
}

#[test]
fn an_archive_of_one_long_line_is_an_error_before_memory_runs_out() {
    let place = Place::new();
    // A few kilobytes that unpack to 1 GiB.
    let zeros = vec![0; 128 << 20];
    place.write("bomb.gz", [&gzip(b"a\n")[..], &gzip(&zeros).repeat(8)].concat());
    place.write("bomb.zst", [&zstd(b"a\n")[..], &zstd(&zeros).repeat(8)].concat());
    for name in ["bomb.gz", "bomb.zst"] {
        in_little_memory(&place, &format!("umbel dedup {name}")).gives(
            2,
            "a\n",
            &format!("umbel: {name}: line 2 is longer than 64.0 MiB; allow longer ones with --max-record SIZE, or skip such records with --skip-bad\n"),
        );
    }
}

#[test]
fn a_packed_stream_says_how_to_unpack_it_if_its_window_is_too_large() {
    let place = Place::new();
    // Frames that announce windows of 128 MiB and of 2 GiB: RFC 8878, 3.1.1.1.2. Both hold "a\n" as a raw block.
    let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, window << 3, 0x11, 0, 0, b'a', b'\n'];
    place.write("fits.zst", frame(27 - 10)).umbel("dedup fits.zst").prints("a\n");
    place.write("large.zst", frame(31 - 10)).umbel("dedup large.zst").fails(
        "large.zst: the zstd data needs a window of more than 128 MiB to be unpacked: unpack it first, with zstd -dc --long=31",
    );
}

#[test]
fn the_longest_record_is_what_was_asked_for_to_the_byte() {
    let place = Place::new();
    for (args, end) in [("", "\n"), ("-z", "\0"), ("--csv 1 --no-header", "\n")] {
        let fits = format!("12345{end}abcde");
        place.umbel_with(&format!("dedup --max-record 5 {args}"), &fits).prints(&fits);
        for long in [format!("ab{end}123456{end}x{end}"), format!("ab{end}123456")] {
            let ran = place.umbel_with(&format!("dedup --max-record 5 {args}"), &long);
            assert_eq!(
                (ran.code, &*ran.out),
                (Some(2), &*format!("ab{end}")),
                "{args}: {}",
                ran.err
            );
            assert!(ran.err.contains(" 2"), "{}", ran.err);
            assert!(ran.err.contains("is longer than 5 bytes"), "{}", ran.err);
        }
    }
    // A header is a record.
    place
        .umbel_with("dedup --max-record 5 --csv 1", "name,x\n1,2\n")
        .fails("standard input: record 1, which starts on line 1, is longer than 5 bytes; allow longer ones with --max-record SIZE");
    place.umbel("dedup --max-record lots").refuses("not a size such as 100000, 512M or 1GiB");
}

#[test]
fn every_verb_that_reads_records_has_the_limit() {
    let place = Place::new();
    place.umbel_with("build -o f --deletable -n 100", "a\n").prints("");
    let before = place.read("f");
    place.write("keys", format!("a\n{}\nb\n", "x".repeat(2_000)));
    let err = "umbel: keys: line 2 is longer than 1.0 KiB; allow longer ones with --max-record SIZE, or skip such records with --skip-bad\n";
    for (verb, out) in [
        ("dedup", "a\n"),
        ("dedup --exact", "a\n"),
        ("dedup --state s", "a\n"),
        ("build -o g", ""),
        ("build -o g -n 100", ""),
        ("build -o g --static", ""),
        ("add f", ""),
        ("remove f", ""),
        ("check f", "a\n"),
        ("bench", ""),
    ] {
        place.umbel(&format!("{verb} --max-record 1k keys")).gives(2, out, err);
    }
    assert_eq!(place.read("f"), before);
    assert_eq!(place.names(), ["f", "keys"]);
}

#[test]
fn a_record_of_many_fields_takes_no_memory_for_each() {
    let place = Place::new();
    // 32 Mi fields: a list of them would take half a GiB, or more.
    let many = "head -c 67108862 /dev/zero | tr '\\0'";
    let words = "(yes x | head -n 33554431 | tr '\\n' ' ')".to_owned();
    for (feed, args) in [
        (format!("{many} ','"), "--csv 2 --no-header"),
        (words.clone(), "-k 2"),
        (words, "-k -1"),
        (format!("{many} ,"), "-k -7 -t ,"),
        (
            "(printf '{\"a\":['; yes 0, | head -n 22369613 | tr '\\n' ' '; printf '0],\"b\":123456789}')"
                .to_owned(),
            "--json /b",
        ),
    ] {
        let ran = in_little_memory(&place, &format!("{feed} | umbel dedup {args} | wc -c"));
        assert_eq!(ran.out, "67108862\n", "{args}: {}", ran.err);
    }
}
