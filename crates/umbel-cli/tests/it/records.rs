//! Quotes that are never closed, bad records that are skipped, files that are missing, and `-` for a file.

use crate::place::Place;

/// A table of so many rows behind one with an open quote.
fn table(rows: u32) -> String {
    let rows: String = (0..rows).map(|row| format!("{row},x{row}\n")).collect();
    format!("id,name\n1000001,\"open\n{rows}")
}

#[test]
fn a_quote_that_is_never_closed_is_an_error_that_names_its_line() {
    let place = Place::new();
    let err = "umbel: t.csv:2: quoted field starts here and is never closed (searched to the end of the file); \
               add the closing quote, or skip such records with --skip-bad\n";
    place.write("t.csv", table(1000));
    for verb in ["dedup --csv id", "dedup --csv id --exact", "dedup --csv 1 -n 1k"] {
        place.umbel(&format!("{verb} t.csv")).gives(2, "id,name\n", err);
    }
    place.umbel("build -o f --csv id t.csv").gives(2, "", err);
    assert_eq!(place.names(), ["t.csv"]);
    // With more rows than a field may have bytes, the search stops there.
    let long = table(200_000);
    assert!(long.len() > 2 << 20);
    place.write("l.csv", &long).umbel("dedup --csv id l.csv").gives(
        2,
        "id,name\n",
        "umbel: l.csv:2: quoted field starts here and is not closed within 1.0 MiB; \
         add the closing quote or allow longer fields with --max-field SIZE, or skip such records with --skip-bad\n",
    );
    let longer = place.umbel("dedup --csv id --max-field 10M l.csv");
    assert!(longer.err.contains("l.csv:2: quoted field starts here and is never closed"));
    // Lines before it are counted, also those inside of other quoted fields, and it may be in any column.
    place.umbel_with("dedup --csv 1 --no-header", "\"a\n\n\",b\nc,d,\"e\nf").gives(
        2,
        "\"a\n\n\",b\n",
        &err.replace("t.csv:2", "standard input:4"),
    );
    // The header is a record, too.
    place
        .umbel_with("dedup --csv a --skip-bad", "a,\"b\nc,d\n")
        .refuses("standard input:1: quoted");
}

#[test]
fn what_follows_a_closing_quote_is_an_error() {
    let place = Place::new();
    // The quote of line 2 is closed by the one that opens the field of line 3.
    let lines = "id,x\n1,\"a\n2,\"b\"\n3,c\n";
    place.umbel_with("dedup --csv id", lines).gives(
        2,
        "id,x\n",
        "umbel: standard input:2: quoted field starts here and ends on line 3, where a ',' or the end of the line \
         was expected after the closing quote and 'b' was found; write a quote inside a quoted field as two quotes, or skip such records with --skip-bad\n",
    );
    let ran = place.umbel_with("dedup --csv id --skip-bad", lines);
    assert_eq!((ran.code, &*ran.out), (Some(0), "id,x\n2,\"b\"\n3,c\n"));
    place.umbel_with("dedup --csv 1 --no-header", "\"a\" ,b\n").refuses("and ' ' was found");
    place.umbel_with("dedup --csv 1 --no-header", "\"a\"b\",c\n").refuses("and 'b' was found");
    // A quote inside a field that is not quoted is a byte like others.
    let inches = "5\" pipe,1\n5\" pipe,2\na\"b\",3\n \"x\",4\n";
    place
        .umbel_with("dedup --csv 1 --no-header", inches)
        .prints("5\" pipe,1\na\"b\",3\n \"x\",4\n");
    // Behind the mark that spreadsheets write, a quote begins a field.
    let marked = "\u{feff}\"a,\nb\",c\n1,2\n3,2\n";
    place.run(&["dedup", "--csv", "a,\nb"], marked).prints(marked);
    place.umbel_with("dedup --csv c", marked).prints("\u{feff}\"a,\nb\",c\n1,2\n");
}

#[test]
fn a_quoted_field_may_be_as_long_as_was_said() {
    let place = Place::new();
    for (length, code) in [(1024, 0), (1025, 2)] {
        let row = format!("\"{}\",b\n", "x".repeat(length));
        let ran = place.umbel_with("dedup --csv 2 --no-header --max-field 1KiB", &row);
        assert_eq!(ran.code, Some(code), "{}", ran.err);
    }
    let row = format!("a,\"{}\"\n", "x\n".repeat(1 << 19));
    place.umbel_with("dedup --csv 1 --no-header", &row).prints(&row);
}

#[test]
fn bad_records_are_skipped_and_counted_on_request() {
    let place = Place::new();
    let lines = "a 1\nbad\nb 1\n\nc 2\nbad\n";
    let said = "umbel: 3 bad records were skipped; the first: log:2: there is no field 2 (the record has 1 field)\n";
    place.write("log", lines);
    place.umbel("dedup -k 2 --skip-bad log").gives(0, "a 1\nc 2\n", said);
    place.umbel("dedup -k 2 --skip-bad --total --exact -q log").gives(0, "2\n", said);
    // Neither inserted, nor found, nor not found.
    place.umbel("build -o f -n 100 -k 2 -q --skip-bad log").gives(0, "", said);
    place.umbel("build -o g -k 2 -q --skip-bad log").gives(0, "", said);
    place.umbel("build -o h --static -k 2 -q --skip-bad log").gives(0, "", said);
    for filter in ["f", "g", "h"] {
        place.umbel(&format!("check {filter} -k 2 --skip-bad log")).gives(
            0,
            "a 1\nb 1\nc 2\n",
            said,
        );
        place.umbel(&format!("check {filter} -v -k 2 --skip-bad log")).gives(1, "", said);
        place.umbel(&format!("check {filter} -c --skip-bad log -k 2")).gives(0, "3\n", said);
        place.umbel(&format!("check {filter} --item bad")).gives(1, "", "");
    }
    let ran = place.umbel("add f -k 2 --skip-bad log");
    assert!(
        ran.err.starts_with(&format!(
            "{said}umbel: 0 new keys added, 3 were already in it, or seemed to be"
        )),
        "{}",
        ran.err
    );
    place.umbel_with("dedup --json /a --skip-bad", "{\"a\":1}\n{\"b\":1}\nnull\n{\n\n{\"a\":2}\n").gives(
        0,
        "{\"a\":1}\n{\"a\":2}\n",
        "umbel: 4 bad records were skipped; the first: standard input:2: there is no value at \"/a\" in the record\n",
    );
    // Without bad ones nothing is said of them.
    place.umbel_with("dedup --skip-bad -k 1 -q", "a\na\n").gives(0, "a\n", "");
    place.umbel_with("dedup --skip-bad -k 2 -q", "a\n").gives(
        0,
        "",
        "umbel: 1 bad record was skipped; the first: standard input:1: there is no field 2 (the record has 1 field)\n",
    );
}

#[test]
fn many_bad_records_cost_only_themselves() {
    let place = Place::new();
    // In every place of a batch, and across its ends.
    let lines: String = (0..10_000)
        .map(|n| {
            if n % 3 == 0 || (2040..2060).contains(&n) {
                "bad\n".into()
            } else {
                format!("{n} {n}\n")
            }
        })
        .collect();
    let good: String = lines.split_inclusive('\n').filter(|line| *line != "bad\n").collect();
    place.write("log", &lines);
    for verb in ["dedup", "dedup --exact", "dedup -n 20k"] {
        place.umbel(&format!("{verb} -k 2 --skip-bad log")).prints(&good);
    }
    place.umbel("build -o f -p 1e-9 -k 2 --skip-bad log").prints("");
    place.umbel("check f -k 2 --skip-bad log").prints(&good);
    place
        .umbel("dedup -k 2 --skip-bad --bad bad --total log")
        .prints(&format!("{}\n", good.lines().count()));
    let bad = lines.lines().count() - good.lines().count();
    assert_eq!(String::from_utf8(place.read("bad")).unwrap(), "bad\n".repeat(bad));
}

#[test]
fn an_error_about_a_bad_record_names_the_option_that_skips_it() {
    let place = Place::new();
    place.umbel_with("build -o f --deletable -n 9", "a\n").prints("");
    place.umbel_with("build -o several --deletable -n 9 -k 1,2", "a b\n").prints("");
    let said = "skip such records with --skip-bad\n";
    for (how, input) in [
        ("-k 2", "a\n"),
        ("-k 2-4", "a b c\n"),
        ("-k 3--2", "a b c\n"),
        ("--csv 2 --no-header", "a\n"),
        ("--csv 1 --no-header", "a,\"b"),
        ("--csv 1 --no-header", "a,\"b\"c\n"),
        ("--csv 1 --no-header --max-field 1", "\"abc\"\n"),
        ("--json /a", "{}\n"),
        ("--json /a", "\n"),
        ("--json /a", "{"),
        ("--max-record 1", "ab\n"),
        ("--max-record 1 -z", "ab\0"),
    ] {
        let filter = if ["-k 2-4", "-k 3--2"].contains(&how) { "several" } else { "f" };
        for verb in ["dedup", "build -o g", "add F", "remove F", "check F", "bench"] {
            let verb = verb.replace('F', filter);
            let ran = place.umbel_with(&format!("{verb} {how}"), input);
            assert_eq!(ran.code, Some(2), "{verb} {how}");
            assert!(ran.err.ends_with(said), "{verb} {how}: {}", ran.err);
        }
        // A file that is de-duplicated itself would lose the record, so there the option is refused and not named.
        place.write("own", input);
        let ran = place.umbel(&format!("dedup --in-place own {how}"));
        assert_eq!(ran.code, Some(2), "{how}");
        assert!(!ran.err.contains("--skip-bad"), "{how}: {}", ran.err);
        assert_eq!(place.read("own"), input.as_bytes());
    }
    // Without its header a file cannot be read.
    let ran = place.umbel_with("dedup --csv a", "a,\"b\nc,d\n");
    assert!(!ran.err.contains("--skip-bad"), "{}", ran.err);
}

#[test]
fn skipped_records_are_written_to_a_file_on_request() {
    let place = Place::new();
    let table = "id,x\n1,a\n2\n3,\"open\n4,b\n5,\"c\"d\n6,e\n7";
    let ran = place.write("t.csv", table).umbel("dedup --csv x --skip-bad --bad bad.csv t.csv -q");
    let said = "umbel: 4 bad records were skipped; the first: t.csv:3: there is no column 2 (the record has 1 column)\n";
    ran.gives(0, "id,x\n1,a\n4,b\n6,e\n", said);
    // With its header, so that it can be mended and read again.
    assert_eq!(place.read("bad.csv"), b"id,x\n2\n3,\"open\n5,\"c\"d\n7");
    place
        .umbel("dedup --csv x --skip-bad --bad bad.csv t.csv")
        .fails("--bad bad.csv: the file is there already; remove it, or name another one");
    place
        .umbel("dedup --csv x --skip-bad --bad - t.csv")
        .fails("--bad -: standard output is for results; name a file, or /dev/stderr");
    place.umbel("dedup --csv x --bad b t.csv").refuses("--skip-bad");
    place
        .umbel("dedup --csv x --skip-bad --bad no/where t.csv")
        .fails("--bad no/where: No such file or directory (os error 2)");
    place.umbel("dedup --csv x --skip-bad --bad /dev/stderr t.csv -q").gives(
        0,
        "id,x\n1,a\n4,b\n6,e\n",
        &format!("{said}id,x\n2\n3,\"open\n5,\"c\"d\n7"),
    );
    // Nothing bad, nothing written; records of several files end where they should.
    place.umbel("dedup -k 1 --skip-bad --bad none t.csv --total -q").prints("8\n");
    assert_eq!(place.read("none"), b"");
    place
        .write("a", "x")
        .write("b", "y")
        .umbel("dedup -k 2 --skip-bad --bad two a b -q")
        .prints("");
    assert_eq!(place.read("two"), b"x\ny");
}

#[test]
fn a_list_of_bad_records_that_cannot_be_written_leaves_no_file() {
    let place = Place::new();
    place.write("few", "a 1\nbad\n").write("many", "bad\n".repeat(100_000));
    // No file may grow, or one to 64 KiB.
    for (limit, input) in [("0", "few"), ("64", "many")] {
        let command = format!("umbel dedup -k 2 --skip-bad --bad list {input} | cat");
        let ran = place.shell(&format!("set -o pipefail; ulimit -f {limit}; {command}"));
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.ends_with("umbel: list: File too large (os error 27)\n"), "{}", ran.err);
        assert_eq!(place.names(), ["few", "many"]);
    }
    // Nor does a run that fails before there is a bad record. One that fails later keeps those that it has found.
    let gzip = crate::hostile::gzip(b"a 1\nb 2\n");
    place.write("cut", &gzip[..gzip.len() - 4]);
    assert_eq!(place.umbel("dedup -k 2 --skip-bad --bad list cut").code, Some(2));
    assert_eq!(place.names(), ["cut", "few", "many"]);
    assert_eq!(place.umbel("dedup -k 2 --skip-bad --bad list few cut").code, Some(2));
    assert_eq!(place.read("list"), b"bad\n");
}

#[test]
fn records_that_are_too_long_are_skipped() {
    let place = Place::new();
    for (args, end) in [("", "\n"), ("-z", "\0"), ("--csv 1 --no-header", "\n")] {
        for long in [10, 5_000_000] {
            let long = "x".repeat(long);
            let text = ["a", &long, "b", &long, "c", ""].join(end);
            let ran = place.umbel_with(&format!("dedup --skip-bad --max-record 5 -q {args}"), text);
            assert_eq!((ran.code, ran.out), (Some(0), ["a", "b", "c", ""].join(end)), "{args}");
            assert!(
                ran.err.starts_with("umbel: 2 bad records were skipped; the first: "),
                "{}",
                ran.err
            );
            assert!(ran.err.contains("is longer than 5 bytes"), "{}", ran.err);
        }
    }
}

#[test]
fn a_later_file_that_is_missing_is_noticed_before_the_work_begins() {
    let place = Place::new();
    place.umbel_with("build -o f --deletable -n 100", "a\n").prints("");
    place.write("a", "a\nb\n");
    let before = place.read("f");
    for verb in [
        "dedup",
        "dedup --exact",
        "dedup --state s",
        "dedup -D d",
        "build -o g",
        "build -o g -n 9",
        "build -o g --static",
        "add f",
        "remove f",
        "check f",
        "check -v f",
        "bench",
    ] {
        place
            .umbel(&format!("{verb} a nowhere"))
            .fails("nowhere: No such file or directory (os error 2)");
        place.umbel(&format!("{verb} a .")).fails(".: is a directory; name the files in it");
    }
    place.umbel("merge -o g f nowhere").fails("nowhere: No such file or directory (os error 2)");
    assert_eq!(place.read("f"), before);
    assert_eq!(place.names(), ["a", "f"]);
    // A pipe is opened when it is its turn: its writer here waits for the end of the first file.
    let script = "mkfifo one two; (echo a > one; echo b > two) & umbel dedup -q one two; wait";
    place.shell(script).gives(0, "a\nb\n", "");
}

#[test]
fn a_filter_may_come_from_standard_input_and_go_to_standard_output() {
    let place = Place::new();
    place.umbel_with("build -o f --hash keyed --deletable -n 100", "a\nb\n").prints("");
    place.write("keys", "a\nx\n").write("x", "x\n");
    place.shell("umbel check - keys < f").gives(0, "a\n", "");
    place.shell("umbel check - --item b < f").gives(0, "b\n", "");
    place.shell("umbel verify - < f").prints("-: whole, cuckoo, 184 bytes\n");
    place
        .shell("umbel info - < f | grep -E '^(family|secret)'")
        .prints("family            cuckoo\nsecret in file    yes\n");
    place.shell("umbel add - x < f 2>/dev/null | umbel check - keys").gives(0, "a\nx\n", "");
    place
        .shell("umbel remove - keys < f 2>/dev/null | umbel check -v - keys")
        .gives(0, "a\nx\n", "");
    place.umbel_with("build -o g -n 100 -p 1e-6", "a\n").prints("");
    place.umbel_with("build -o h -n 100 -p 1e-6", "x\n").prints("");
    place.shell("umbel merge -q -o - - h < g | umbel check - keys").gives(0, "a\nx\n", "");
    place.shell("umbel merge -q -o - h - < g | umbel check - keys").gives(0, "a\nx\n", "");
    for verb in ["check -", "check - -", "check - keys -"] {
        place.umbel(verb).fails(
            "standard input cannot be the filter and the records at once: name a file for one of them",
        );
    }
    for verb in ["add -", "remove - -", "add - keys -"] {
        place.umbel(verb).fails(
            "standard input cannot be the filter and the keys at once: name a file for one of them",
        );
    }
    place
        .umbel("merge -o - - -")
        .fails("standard input holds one filter: name - once, and files for the others");
    place.umbel("dedup --state -").fails(
        "--state takes the name of a file, because the state is read and then replaced; - is none",
    );
    place.umbel("dedup -D -").fails("-D - and the lines would both go to standard output; give one of them a file, with -D or -o");
    let two = place.shell("cat f f | umbel check - keys");
    two.fails("standard input: expected the end of the filter, found more bytes; give it one whole filter");
    place.umbel_with("check - keys", "text").refuses("standard input: ");
    let ran = place.umbel("plan -n 10 --svg -");
    assert!(ran.out.starts_with("<svg ") && ran.out.ends_with("</svg>\n"), "{ran:?}");
    // No file of that name was made.
    assert_eq!(place.names(), ["f", "g", "h", "keys", "x"]);
}

#[test]
fn a_mark_of_utf8_is_no_part_of_a_csv_field() {
    let place = Place::new();
    let marked = "\u{feff}ann,1\nann,2\n";
    place.umbel_with("dedup --csv 1 --no-header --total", marked).prints("1\n");
    place
        .umbel_with("dedup --csv 1 --no-header --total", "\u{feff}\"a,b\",1\n\"a,b\",2\n")
        .prints("1\n");
    place.umbel_with("build -q -o f --csv 1 --no-header -n 9 -p 1e-9", marked).prints("");
    place.umbel("check f --item ann").prints("ann\n");
}
