//! Which part of a record is its key.

use crate::place::Place;

#[test]
fn fields_are_between_blanks_or_delimiters() {
    let place = Place::new();
    let lines = "1 x a\n2\ty a\n3  x b\n";
    place.umbel_with("dedup -k 2", lines).prints("1 x a\n2\ty a\n");
    place.umbel_with("dedup -k -1", lines).prints("1 x a\n3  x b\n");
    place.umbel_with("dedup --key=3", lines).prints("1 x a\n3  x b\n");
    let lines = "1:x:\n2:x\n3::y\n";
    place.umbel_with("dedup -k 2 -t :", lines).prints("1:x:\n3::y\n");
    place.umbel_with("dedup -k -1 -t ::", "a::b\nc::b\nd:b\n").prints("a::b\nd:b\n");
    place.umbel_with("dedup -k 2 -t \\t", "a\tb c\nd\tb c\n").prints("a\tb c\n");
    place.umbel_with("dedup -k 2 --field-separator=,", "a,b\nc,b\n").prints("a,b\n");
}

#[test]
fn a_record_without_its_field_is_an_error_that_names_it() {
    let place = Place::new();
    place.write("log", "a b\nc\n").umbel("dedup -k 2 log").gives(
        2,
        "a b\n",
        "umbel: log:2: there is no field 2 (the record has 1 field); skip such records with --skip-bad\n",
    );
    // What stands before it was printed, also by others.
    let lines = "a b\nc b\nd d\n\ne e\n";
    for args in ["dedup --exact -k 2", "dedup -n 9 -k 2"] {
        let err = "umbel: standard input:4: there is no field 2 (the record has 0 fields); skip such records with --skip-bad\n";
        place.umbel_with(args, lines).gives(2, "a b\nd d\n", err);
    }
    place
        .umbel_with("dedup -k -3", "a b\n")
        .fails("standard input:1: there is no field -3 (the record has 2 fields); skip such records with --skip-bad");
    place
        .umbel("dedup -k 0")
        .refuses("expected fields such as 2, 1,3, 2-4, 2- or -1 (the last), counted from 1");
    place
        .run(&["dedup", "-k", "1", "-t", ""], "")
        .fails("-t: expected at least one character, found none");
    place.umbel("dedup -t ,").fails(
        "-t is for fields or columns: say which, by -k 2 or --csv name, or by --each in check",
    );
    place.umbel("dedup -k two").refuses("invalid value 'two'");
}

#[test]
fn columns_of_csv_are_found_by_name_or_number() {
    let place = Place::new();
    let table = "id,\"full, name\"\n1,\"Ann \"\"A\"\"\nLee\"\n2,\"Ann \"\"A\"\"\nLee\"\n3,Bo\n";
    let once = "id,\"full, name\"\n1,\"Ann \"\"A\"\"\nLee\"\n3,Bo\n";
    place.write("t.csv", table).run(&["dedup", "--csv", "full, name", "t.csv"], "").prints(once);
    place.umbel("dedup --csv 2 t.csv").gives(0, once, "");
    place.umbel("dedup --csv 2 --total t.csv").prints("2\n");
    place.umbel("dedup --csv 1 -D again t.csv").prints(table);
    assert_eq!(place.read("again"), b"id,\"full, name\"\n", "both have the header");
    // Without a header the first record is one like the others.
    place.umbel_with("dedup --csv 1 --no-header", "a,1\na,2\nb,3\n").prints("a,1\nb,3\n");
}

#[test]
fn columns_may_be_between_other_bytes() {
    let place = Place::new();
    let table = "id;price\n1;\"1,5;\"\n2;\"1,5;\"\n3;1,5\n";
    place.umbel_with("dedup --csv price -t ;", table).prints("id;price\n1;\"1,5;\"\n3;1,5\n");
    place.umbel_with("dedup --csv b -t \\t", "a\tb\n1\tx,y\n2\tx,y\n").prints("a\tb\n1\tx,y\n");
    for bad in ["::", "\""] {
        place.umbel(&format!("dedup --csv 1 -t {bad}")).fails(&format!(
            "-t: expected one byte between columns of CSV that is no quote and no end of a line, found {bad:?}"
        ));
    }
    place
        .run(&["dedup", "--csv", "1", "-t", ""], "")
        .fails("-t: expected at least one character, found none");
}

#[test]
fn several_files_of_csv_have_one_header() {
    let place = Place::new();
    place.write("a.csv", "id,x\n1,a\n2,b").write("b.csv", "id,x\r\n2,c\r\n3,d\r\n");
    place.umbel("dedup --csv id a.csv b.csv").prints("id,x\n1,a\n2,b\n3,d\r\n");
    // As spreadsheets write it.
    place.write("c.csv", "\u{feff}id,x\n4,e\n");
    place.umbel("dedup --csv id c.csv a.csv").prints("\u{feff}id,x\n4,e\n1,a\n2,b");
    place.write("d.csv", "id,y\n5,f\n").write("none.csv", "");
    place.umbel("dedup --csv id a.csv none.csv d.csv").gives(
        2,
        "id,x\n1,a\n2,b",
        "umbel: d.csv: expected the columns of the first file, id, x; found id, y\n",
    );
}

#[test]
fn columns_that_are_not_there_are_named() {
    let place = Place::new();
    place.write("t.csv", "id,\x1bname\n1\n");
    place
        .umbel("dedup --csv x t.csv")
        .fails("t.csv: there is no column named \"x\"; the columns are id, \\u{1b}name");
    place.umbel("dedup --csv 2 t.csv").gives(
        2,
        "id,\x1bname\n",
        "umbel: t.csv:2: there is no column 2 (the record has 1 column); skip such records with --skip-bad\n",
    );
    place.umbel("dedup --csv 0 t.csv").fails("--csv: columns are counted from 1, found 0");
    place.umbel("dedup --csv x --no-header t.csv").fails(
        "--csv: expected the number of a column, since --no-header leaves no names, found \"x\"",
    );
    place.umbel("dedup --no-header t.csv").refuses("--csv <COLUMNS>");
    for other in ["-k 1", "--json /a", "-z"] {
        place.umbel(&format!("dedup --csv 1 {other}")).refuses("cannot be used with");
    }
}

#[test]
fn values_of_json_are_keys() {
    let place = Place::new();
    let lines = "{\"u\":{\"id\":1},\"n\":1}\n{\"n\":2,\"u\":{\"id\": 1}}\r\n{\"u\":{\"id\":2}}\n";
    place
        .umbel_with("dedup --json /u/id", lines)
        .prints("{\"u\":{\"id\":1},\"n\":1}\n{\"u\":{\"id\":2}}\n");
    // Numbers that no machine word holds are not rounded to one.
    let large = "{\"a\":100000000000000000000001}\n{\"a\":100000000000000000000002}\n";
    place.umbel_with("dedup --json /a", large).prints(large);
    // The whole value, and arrays.
    place.run(&["dedup", "--json", ""], "[1]\n[ 1 ]\n[2]\n").prints("[1]\n[2]\n");
    place.umbel_with("dedup --json /1", "[0,\"x\"]\n[1,\"x\"]\n").prints("[0,\"x\"]\n");
}

#[test]
fn json_that_is_none_is_an_error_that_names_the_record() {
    let place = Place::new();
    place.write("m.json", "{\"a\":1}\n{\"b\":1}\n").umbel("dedup --json /a m.json").gives(
        2,
        "{\"a\":1}\n",
        "umbel: m.json:2: there is no value at \"/a\" in the record; skip such records with --skip-bad\n",
    );
    place
        .write("l.json", "{\"a\":\n")
        .umbel("dedup --json /a l.json")
        .fails("l.json:1: expected JSON, found a record that ends inside a value, at column 5; write each value on one line, as jq -c does, or skip such records with --skip-bad");
    place
        .umbel("dedup --json a")
        .refuses("expected a JSON pointer, which begins with a slash, such as /a; for a report as JSON, use --report json");
    place.umbel("dedup --json /a -k 1").refuses("cannot be used with");
}

#[test]
fn case_is_ignored_beyond_ascii() {
    let place = Place::new();
    place.umbel_with("dedup -i", "Straße\nÄpfel\näPFEL\nSTRAßE\n").prints("Straße\nÄpfel\n");
    place.umbel_with("dedup --ignore-case -k 2", "1 A\n2 a\n").prints("1 A\n");
    let ran = place.umbel_with("dedup -i", b"\xffA\n\xffa\n\xfea\n");
    assert_eq!(ran.out, String::from_utf8_lossy(b"\xffA\n\xfea\n"));
}

#[test]
fn records_end_with_zeros_or_carriage_returns() {
    let place = Place::new();
    place.umbel_with("dedup -z", "a\nb\0c\0a\nb\0").prints("a\nb\0c\0");
    place.umbel_with("dedup --null", "a\0a").prints("a\0");
    place.umbel_with("dedup --zero-terminated", "a\0a").prints("a\0");
    place.umbel_with("dedup", "a\r\na\n").prints("a\r\na\n");
    place.umbel_with("dedup --crlf", "a\r\na\nb\r").prints("a\r\nb\r");
    place.umbel("dedup --crlf -z").refuses("cannot be used with");
}
