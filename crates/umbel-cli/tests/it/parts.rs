//! Keys of several parts, and the types of JSON.

use crate::place::Place;

#[test]
fn a_key_may_have_several_fields() {
    let place = Place::new();
    let lines = "a b c\na x c\nz b c\na b d\n";
    for args in ["-k 1,3", "-k 1 -k 3", "-k 1,-1", "-k -3,-1"] {
        place.umbel_with(&format!("dedup {args}"), lines).prints("a b c\nz b c\na b d\n");
        place.umbel_with(&format!("dedup --exact {args}"), lines).prints("a b c\nz b c\na b d\n");
    }
    place.umbel_with("dedup -k 2-3", lines).prints("a b c\na x c\na b d\n");
    place.umbel_with("dedup -k 2-", lines).prints("a b c\na x c\na b d\n");
    place.umbel_with("dedup -k 2 -k 3", lines).prints("a b c\na x c\na b d\n");
    // The order counts, and no two lists of fields are one key.
    place
        .umbel_with("dedup -k 1,2 -t ,", "a,bc\nab,c\nabc,\n,abc\n")
        .prints("a,bc\nab,c\nabc,\n,abc\n");
    place
        .umbel_with("dedup -k 2- -t ,", "1,a,b\n2,a,b,\n3,a\n4,a,b\n")
        .prints("1,a,b\n2,a,b,\n3,a\n");
    place
        .umbel_with("dedup -k 1,3", "a b\n")
        .fails("standard input:1: there is no field 3 (the record has 2 fields); skip such records with --skip-bad");
    place
        .umbel_with("dedup -k 3-", "a b\n")
        .fails("standard input:1: there is no field 3 (the record has 2 fields); skip such records with --skip-bad");
    place
        .umbel_with("dedup -k 3--2", "a b c\n")
        .fails("standard input:1: field 3 is behind field -2 (the record has 3 fields); skip such records with --skip-bad");
    for bad in ["1,", "3-2", "a", "1-2-3", "-"] {
        place
            .umbel(&format!("dedup -k {bad}"))
            .refuses("expected fields such as 2, 1,3, 2-4, 2- or -1 (the last)");
    }
}

#[test]
fn a_key_of_several_parts_is_their_netstrings_and_one_part_is_itself() {
    let place = Place::new();
    place.umbel_with("build -o f -p 1e-9 -n 100 -k 1,3", "ann at film7\n").prints("");
    place.umbel("check f --item 3:ann,5:film7,").refuses("several parts");
    place.umbel_with("check f -t ; -k 2,1", "film7;ann\n").prints("film7;ann\n");
    place
        .umbel_with("check f --csv user,film", "film,user\nfilm7,ann\n")
        .prints("film,user\nfilm7,ann\n");
    place
        .umbel_with("check f --json /u --json /f", "{\"f\":\"film7\",\"u\":\"ann\"}\n")
        .prints("{\"f\":\"film7\",\"u\":\"ann\"}\n");
    place.umbel_with("check f -i -k 1,2", "ANN Film7\n").prints("ANN Film7\n");
    // Filters with keys of one part stay what they were.
    place.umbel_with("build -o g -p 1e-9 -n 100 -k 2", "at ann\n").prints("");
    place.umbel_with("check g", "ann\n").prints("ann\n");
    // A range has a length of its own, so even one field of it is a netstring.
    place.umbel_with("build -o h -p 1e-9 -n 100 -k 2-", "at ann\n").prints("");
    place.umbel("check h --item 3:ann,").refuses("several parts");
    place.umbel("check h -k 1- --item ann").prints("ann\n");
}

#[test]
fn a_key_may_have_several_columns() {
    let place = Place::new();
    let table = "id,email,x\n1,a,1\n1,b,2\n2,a,3\n1,a,4\n";
    let once = "id,email,x\n1,a,1\n1,b,2\n2,a,3\n";
    for args in ["--csv id --csv email", "--csv id,email", "--csv 1,2", "--csv 2 --csv id"] {
        place.umbel_with(&format!("dedup {args}"), table).prints(once);
    }
    place
        .umbel_with("dedup --csv 1,2 --no-header", "1,a,1\n1,b,2\n1,a,3\n")
        .prints("1,a,1\n1,b,2\n");
    // A column whose name has a comma is that column, and not two.
    let table = "a,b,\"a,b\"\n1,1,x\n1,1,y\n2,1,x\n";
    place.umbel_with("dedup --csv a,b", table).prints("a,b,\"a,b\"\n1,1,x\n1,1,y\n");
    place.umbel_with("dedup --csv a --csv b", table).prints("a,b,\"a,b\"\n1,1,x\n2,1,x\n");
    place
        .umbel_with("dedup --csv id,nosuch", "id,email\n1,a\n")
        .fails("standard input: there is no column named \"nosuch\"; the columns are id, email");
    place.umbel_with("dedup --csv 1,9", "id,email\n1,a\n").gives(
        2,
        "id,email\n",
        "umbel: standard input:2: there is no column 9 (the record has 2 columns); skip such records with --skip-bad\n",
    );
    place.umbel("dedup --csv 1,x --no-header").fails(
        "--csv: expected the number of a column, since --no-header leaves no names, found \"x\"",
    );
}

#[test]
fn a_key_may_have_several_values_of_json() {
    let place = Place::new();
    let lines = "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"x\",\"a\":1}\n{\"a\":1,\"b\":\"y\"}\n{\"a\":\"1\",\"b\":\"x\"}\n";
    place
        .umbel_with("dedup --json /a --json /b", lines)
        .prints("{\"a\":1,\"b\":\"x\"}\n{\"a\":1,\"b\":\"y\"}\n{\"a\":\"1\",\"b\":\"x\"}\n");
    place
        .umbel_with("dedup --json /a --json /b --json-as text", lines)
        .prints("{\"a\":1,\"b\":\"x\"}\n{\"a\":1,\"b\":\"y\"}\n");
}

#[test]
fn types_of_json_are_told_apart() {
    let place = Place::new();
    let lines = "[1]\n[\"1\"]\n[null]\n[\"null\"]\n[true]\n[\"true\"]\n[[]]\n[\"[]\"]\n[{}]\n[\"{}\"]\n[1.0]\n[1e0]\n[\"\"]\n[[\"1\"]]\n";
    for exact in ["", "--exact"] {
        place.umbel_with(&format!("dedup --json /0 {exact}"), lines.repeat(2)).prints(lines);
        place
            .umbel_with(&format!("dedup --json /0 --json-as text {exact}"), lines)
            .prints("[1]\n[null]\n[true]\n[[]]\n[{}]\n[1.0]\n[1e0]\n[\"\"]\n[[\"1\"]]\n");
    }
    // A filter of plain text knows numbers by their digits.
    place.umbel_with("build -o f -p 1e-9 -n 100", "ann\n17\n").prints("");
    let lines = "[\"ann\"]\n[17]\n[\"17\"]\n";
    place.umbel_with("check f --json /0", lines).prints(lines);
    place.umbel_with("check f --json /0 --json-as typed", lines).prints("[\"ann\"]\n[\"17\"]\n");
    place.umbel_with("build -o t -p 1e-9 --json /0", lines).prints("");
    place.umbel_with("check t", "17\nann\n").prints("17\nann\n");
    // The byte before a value that is no string.
    place.umbel_with("build -o g -p 1e-9 -n 100", b"\xff17\n\xffnull\n").prints("");
    let typed = "check g --json /0 --json-as typed";
    place.umbel_with(typed, "[17]\n[\"17\"]\n[null]\n").prints("[17]\n[null]\n");
    place.umbel("dedup --json-as text").refuses("--json <POINTER>");
}

#[test]
fn wrong_json_is_told_in_words_that_help() {
    let place = Place::new();
    for (record, told) in [
        (&b"[1,,2]"[..], "expected JSON, found something else at column 4: expected value;"),
        (b"", "expected JSON, found an empty record;"),
        (b" \t\r", "expected JSON, found an empty record;"),
        (
            b"{\"a\":",
            "expected JSON, found a record that ends inside a value, at column 5; write each value on one line, as jq -c does, or",
        ),
        (b"{\"a\":\"\xff\"}", "expected JSON in UTF-8, found another byte at column 7;"),
        (b"{\"a\":1} x", "expected JSON, found something else at column 9: trailing characters;"),
    ] {
        place
            .umbel_with("dedup --json /a", [record, b"\n"].concat())
            .fails(&format!("standard input:1: {told} skip such records with --skip-bad"));
    }
    let deep = |depth: usize| format!("{{\"a\":{}{}}}\n", "[".repeat(depth), "]".repeat(depth));
    place.umbel_with("dedup --json /a", deep(126)).prints(&deep(126));
    place.umbel_with("dedup --json /a", deep(127)).fails(
        "standard input:1: the JSON is nested more than 127 levels deep, at column 132; write the record flatter or take out its key first, or skip such records with --skip-bad",
    );
    // What is only skipped may be as deep as it likes.
    let skipped = format!("{{\"b\":{}{},\"a\":1}}\n", "[".repeat(500), "]".repeat(500));
    place.umbel_with("dedup --json /a", &skipped).prints(&skipped);
}

#[test]
fn keys_with_another_number_of_parts_are_refused_and_not_reported_absent() {
    let place = Place::new();
    place.write("o.csv", "customer,sku\nann,A\nbob,B\n");
    place.umbel("build -q --csv customer,sku -o two o.csv").prints("");
    place.umbel("build -q --csv customer -o one o.csv").prints("");
    place.umbel("check -q two --csv customer,sku --item ann,A").prints("");
    place.umbel("check -q one --item ann").prints("");
    for line in [
        "check two --item ann,A",
        "check two --csv customer o.csv",
        "add two --csv customer o.csv",
        "check one --csv customer,sku o.csv",
        "check one --csv customer,sku --item ann,A",
        "add one -k 1,2 o.csv",
    ] {
        place.umbel(line).refuses("several");
    }
    let info = place.umbel("info two").out;
    assert!(info.contains("several fields of a record"), "{info}");
}
