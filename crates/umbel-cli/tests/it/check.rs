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
    place.umbel_with("check -q -c f", "a\n").gives(0, "", "");
    // It stops at the first one: what comes later is not read, but it must be there.
    place.write("a", "a\n").write("broken.gz", b"\x1f\x8b\x08");
    place.umbel("check -q f a broken.gz").gives(0, "", "");
    place.umbel("check -q f a nowhere").fails("nowhere: No such file or directory (os error 2)");
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
        .fails("text: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)");
    // Whatever its length is, also of a header that is another one.
    for length in [0, 1, 5, 191, 192, 193, 10_000] {
        let text = "x".repeat(length);
        for command in
            ["check tiny a", "add tiny a", "remove tiny a", "merge -o m tiny", "info tiny"]
        {
            place.write("a", "a\n").write("tiny", &text).umbel(command).fails(
                "tiny: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)",
            );
        }
    }
    // A filter that is cut off is a filter.
    let whole = place.read("f");
    place.write("cut", &whole[..100]);
    place
        .umbel("check cut a")
        .fails("cut: the filter has the wrong length: expected 192 bytes, got 100");
    place.umbel("check .").fails(".: this is not a file");
    place.umbel("check f nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.umbel("check").refuses("<FILTER>");
    // A missing file is noticed before anything is read.
    place.umbel("check f text nowhere").fails("nowhere: No such file or directory (os error 2)");
}

/// What `--item` gives is a record, of which the key is made as of a line.
#[test]
fn single_keys_of_several_parts_are_asked_for() {
    let place = Place::new();
    let table = "customer,sku,n\nann,A,1\n\"b,o\",B,2\n";
    place.umbel_with("build -o f -p 1e-9 -n 100 --csv customer,sku", table).prints("");
    place.umbel("check f --csv customer,sku --item ann,A").prints("ann,A\n");
    place.umbel("check f --csv customer --csv sku --item \"b,o\",B").prints("\"b,o\",B\n");
    place.umbel("check f --csv sku,customer --item A,ann").gives(1, "", "");
    place.umbel("check f --csv 1,2 -t ; --item ann;A").prints("ann;A\n");
    place.umbel("check f --csv 1,3 --no-header --item ann,x,A").prints("ann,x,A\n");
    place.umbel("check f -i --csv customer,sku --item ANN,B").gives(1, "", "");
    place
        .umbel("check f -k 1,2 --item ann:A")
        .fails("--item \"ann:A\": there is no field 2 (the record has 1 field)");
    place.umbel("check f -k 3,1 -t : --item A:x:ann").prints("A:x:ann\n");
    place
        .umbel("check f --json /c --json /s --item {\"s\":\"A\",\"c\":\"ann\"}")
        .prints("{\"s\":\"A\",\"c\":\"ann\"}\n");
    place.umbel("check f --json /c --json /s --item {").refuses("--item \"{\": expected JSON");
    for item in ["ann", "ann,A,1"] {
        let ran = place.umbel(&format!("check f --csv customer,sku --item {item}"));
        ran.refuses(&format!(
            "--item {item:?}: expected one value for each column of --csv, customer, sku with ',' between them, found "
        ));
    }
    place.umbel("check f --csv customer,sku --item ann,\"A").fails(
        "--item \"ann,\\\"A\": a quoted value is never closed, or bytes follow its closing quote",
    );
    // Keys of one part are themselves.
    place.umbel_with("build -o g -p 1e-9 -n 100 --csv sku -i", table).prints("");
    place.umbel("check g -i --csv sku --item A").prints("A\n");
    place.umbel("check g --item a").prints("a\n");
    // The file cannot say how its keys were made, so the help of all verbs that take keys does.
    for verb in ["check", "add", "remove"] {
        let help = place.umbel(&format!("{verb} --help")).out;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "(-k, -t, --csv, --json, --json-as, -i, -z, --crlf) are not in the file: give those that make the same keys as those of build";
        assert!(help.contains(said), "{verb}: {help}");
    }
}

/// `umbel check a b` asks one filter for the lines of a file, and `umbel add a b` inserts them.
#[test]
fn a_filter_is_no_file_of_keys() {
    let place = place();
    place.umbel_with("build -o g", "a\n").prints("");
    let said = "expected a file with keys or lines, found a filter, from which no keys can be read; `umbel merge` makes one filter of several";
    let before = place.read("f");
    for args in
        ["check f g", "check -q f g", "add f g", "build -o h g", "dedup g", "dedup --in-place g"]
    {
        place.umbel(args).fails(&format!("g: {said}"));
    }
    place.shell("umbel check f < g").fails(&format!("standard input: {said}"));
    assert!(place.read("f") == before && !place.path("h").exists());
    // A text that begins like one is a text.
    place.umbel_with("check -v f", "umbel\numbel").prints("umbel\numbel");
}

#[test]
fn lines_are_not_asked_of_a_filter_of_tuples() {
    let place = Place::new();
    let mut tuples = BloomFilter::<(&str, &str)>::new(10, 0.01);
    tuples.insert(&("ann", "A"));
    tuples.save(place.path("tuples")).unwrap();
    let refused = "tuples: expected a filter of bytes, got one whose keys are tuples or options of a program, which have other bytes than the keys of \
                   several parts that -k 1,2, --csv a,b and two --json make: only the program that made it can use it";
    place.umbel("check tuples --item ann").fails(refused);
    place.umbel("check tuples --csv a,b --item ann,A").fails(refused);
    place.umbel_with("add tuples -k 1,2", "ann A\n").fails(refused);
}

#[test]
fn lines_are_not_asked_of_a_filter_of_numbers() {
    let place = Place::new();
    let mut numbers = BloomFilter::<u64>::new(10, 0.01);
    numbers.insert(&12_345_678);
    numbers.save(place.path("numbers")).unwrap();
    let refused = "numbers: expected a filter of bytes, got one of numbers, which only the program that made it can use";
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

#[test]
fn lines_have_numbers_and_names_as_grep_prints_them() {
    let place = place();
    place.write("one", "x\na\nb\n").write("two", "c\nx");
    for (args, out) in [
        ("-n", "2:a\n3:b\n1:c\n"),
        ("-H", "one:a\none:b\ntwo:c\n"),
        ("-h", "a\nb\nc\n"),
        ("-H -h", "a\nb\nc\n"),
        ("-h -H", "one:a\none:b\ntwo:c\n"),
        ("-nH", "one:2:a\none:3:b\ntwo:1:c\n"),
        ("-vnH", "one:1:x\ntwo:2:x"),
        ("--line-number --with-filename -v", "one:1:x\ntwo:2:x"),
        ("-l", "one\ntwo\n"),
        ("-vl", "one\ntwo\n"),
        ("-lH", "one\ntwo\n"),
        ("-o", "a\nb\nc\n"),
        ("-ovn", "1:x\n2:x\n"),
        ("-onH", "one:2:a\none:3:b\ntwo:1:c\n"),
        ("-c", "3\n"),
        ("-ch", "3\n"),
        ("-cH", "one:2\ntwo:1\n"),
        ("-vcH", "one:1\ntwo:1\n"),
        ("-qnH", ""),
        ("-ql", ""),
    ] {
        place.umbel(&format!("check {args} f one two")).gives(0, out, "");
    }
    place.umbel_with("check -nH f", "x\na\n").gives(0, "(standard input):2:a\n", "");
    place.umbel_with("check -l f -", "x\na\n").gives(0, "(standard input)\n", "");
    place.umbel_with("check -cH f one - two", "a\n").gives(
        0,
        "one:2\n(standard input):1\ntwo:1\n",
        "",
    );
    // Nothing found, and files without lines.
    place.write("none", "").write("no", "x\n");
    for (args, out) in [("-nH", ""), ("-l", ""), ("-cH", "none:0\nno:0\n"), ("-o", "")] {
        place.umbel(&format!("check {args} f none no")).gives(1, out, "");
    }
    place.umbel("check -l f none one no two").gives(0, "one\ntwo\n", "");
    place.write("zeros", "a\0x\0");
    place.umbel("check -lz f zeros zeros").gives(0, "zeros\nzeros\n", "");
    place.umbel("check -czH f zeros zeros").gives(0, "zeros:1\nzeros:1\n", "");
    place.umbel("check -l --crlf f one two").gives(0, "one\ntwo\n", "");
    // What one option says, another may not contradict.
    for (args, option) in [
        ("-cn", "--line-number"),
        ("-co", "--only-matching"),
        ("-cl", "--files-with-matches"),
        ("-ln", "--line-number"),
        ("-lo", "--only-matching"),
    ] {
        place.umbel(&format!("check {args} f one")).refuses(option);
    }
    for args in ["-n", "-H", "-l", "-o", "--each"] {
        place.umbel(&format!("check {args} f --item a")).refuses("--item <KEY>");
    }
}

#[test]
fn a_file_with_a_match_is_read_no_further() {
    let place = place();
    // The rest of it is broken.
    let mut broken = crate::hostile::gzip(&[b"a\n".repeat(2_000_000), b"end".to_vec()].concat());
    broken.truncate(broken.len() - 1);
    place.write("l.gz", broken).write("b", "b\n").umbel("check -l f l.gz b").gives(
        0,
        "l.gz\nb\n",
        "",
    );
    assert_eq!(place.umbel("check -c f l.gz").code, Some(2));
}

#[test]
fn lines_are_counted_where_records_begin() {
    let place = place();
    let table = "k,v\n\"a\",\"1\n2\"\nx,\"\n\n\"\nb,3\n";
    place.umbel_with("check -n f --csv k", table).gives(0, "2:\"a\",\"1\n2\"\n7:b,3\n", "");
    place.umbel_with("check -on f --csv k", table).gives(0, "2:a\n7:b\n", "");
    place.umbel_with("check -n f -z", "x\0\na\0a\0b\0").gives(0, "3:a\x004:b\0", "");
    // Far behind the first batch, and the first bytes that are read at once.
    let lines = format!("{}a\n{}b\n", "x\n".repeat(700_000), "longer\n".repeat(100_000));
    place.umbel_with("check -n f", &lines).gives(0, "700001:a\n800002:b\n", "");
    let table = lines.replace("x\n", "x,\"\n\"\n");
    place.umbel_with("check -n f --csv 1 --no-header", &table).gives(
        0,
        "1400001:a\n1500002:b\n",
        "",
    );
}

#[test]
fn only_keys_are_printed_as_they_stand_in_the_record() {
    let place = Place::new();
    place.umbel_with("build -o f -p 1e-9 -n 100", "a\na b\n").prints("");
    place.umbel_with("build -o two -p 1e-9 -n 100 -k 1,2", "a b\na \u{e4}\n").prints("");
    place.umbel_with("check -o f -k 2", "1 a\n2 x\n").gives(0, "a\n", "");
    place.umbel_with("check -o -i f -k 2", "1 A\n").gives(0, "A\n", "");
    place.umbel_with("check -o two -k 1,2", "a b c\n").gives(0, "a\tb\n", "");
    place.umbel_with("check -o two -k 1,2 -t ;", "a;b;c\n").gives(0, "a;b\n", "");
    place.umbel_with("check -o f --csv k", "k,v\n\"a\",1\n\"a b\",2\n").gives(0, "a\na b\n", "");
    place.umbel_with("check -o f --json /k", "{\"k\":\"a\"}\n").gives(0, "a\n", "");
    place.umbel_with("check -ov f --json /k", "{\"k\":1}\n").gives(0, "1\n", "");
    place.umbel_with("check -o two --json /0 --json /1", "[\"a\",\"\\u00e4\"]\n").gives(
        0,
        "a\t\u{e4}\n",
        "",
    );
    place.umbel_with("check -oz f -k 1", "a\0").gives(0, "a\0", "");
}

#[test]
fn any_field_of_a_line_may_be_a_key() {
    let place = place();
    let lines = "x a y\n\nx y\nb\n  c  a\nx b";
    place.umbel_with("check --each f", lines).gives(0, "x a y\nb\n  c  a\nx b", "");
    place.umbel_with("check --each -v f", lines).gives(0, "\nx y\n", "");
    place.umbel_with("check --each -c f", lines).gives(0, "4\n", "");
    place.umbel_with("check --each -q f", lines).gives(0, "", "");
    place.umbel_with("check --each -o f", lines).gives(0, "a\nb\nc\na\nb\n", "");
    place.umbel_with("check --each -on f", lines).gives(0, "1:a\n4:b\n5:c\n5:a\n6:b\n", "");
    place.umbel_with("check --each -ov f", lines).gives(0, "x\ny\n", "");
    place.umbel_with("check --each -n f", lines).gives(0, "1:x a y\n4:b\n5:  c  a\n6:x b", "");
    place.umbel_with("check --each -l f", lines).gives(0, "(standard input)\n", "");
    place.umbel_with("check --each f -t ,", "x,a\nx a,y\n,\n").gives(0, "x,a\n", "");
    place.umbel_with("check --each -i f", "X A\n").gives(0, "X A\n", "");
    place.umbel_with("check --each f", "x\ny\n").gives(1, "", "");
    place.umbel_with("check --each f", "").gives(1, "", "");
    // Over the ends of batches.
    let many = format!("{}a x\n", "x y z\n".repeat(5_000));
    place.umbel_with("check --each -n f", &many).gives(0, "5001:a x\n", "");
    for args in ["-k 1", "--csv 1", "--json /a"] {
        place.umbel(&format!("check --each f {args}")).refuses("--each");
    }
    place.umbel("check -t , f").fails(
        "-t is for fields or columns: say which, by -k 2 or --csv name, or by --each in check",
    );
}
