//! `umbel merge`: one filter of several.

use crate::place::Place;

/// Filters of this family and size: of a and b, of b and c, and a larger one.
fn place(family: &str) -> Place {
    let place = Place::new();
    let build = |name: &str, n: u32, keys: &str| {
        let args = format!("build -o {name} -p 1e-6 -n {n} --family {family}");
        place.umbel_with(&args, keys).prints("");
    };
    build("ab", 100, "a\nb\n");
    build("bc", 100, "b\nc\n");
    build("large", 1000, "d\n");
    place.write("lines", "a\nb\nc\nd\ne\n");
    place
}

#[test]
fn keys_of_all_are_in_the_union() {
    for family in
        ["bloom", "blocked", "split", "counting", "blocked-counting", "cuckoo", "quotient"]
    {
        let place = place(family);
        let ran = place.umbel("merge -o all ab bc");
        assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{family}: {}", ran.err);
        assert!(
            ran.err.starts_with("umbel: 2 filters, ")
                && ran.err.contains(&format!(" keys, {family}, ")),
            "{}",
            ran.err
        );
        assert!(ran.err.contains(", false positive rate "), "{}", ran.err);
        place.umbel("check all lines").prints("a\nb\nc\n");
        // One alone is itself.
        place.umbel("merge -o one ab").prints("");
        place.umbel("check one lines").prints("a\nb\n");
    }
}

#[test]
fn keys_that_are_in_all_are_in_the_intersection() {
    for family in ["bloom", "blocked", "split"] {
        let place = place(family);
        place.umbel("merge --intersect -o both ab bc").prints("");
        place.umbel("check both lines").prints("b\n");
    }
    place("cuckoo")
        .umbel("merge --intersect -o both ab bc")
        .fails("ab and bc: a cuckoo filter cannot be intersected; only bloom, blocked and split filters can");
}

#[test]
fn what_differs_is_named() {
    let place = place("bloom");
    for family in
        ["bloom", "blocked", "split", "counting", "blocked-counting", "cuckoo", "quotient"]
    {
        let ran = self::place(family).umbel("merge -o all ab large");
        assert!(
            ran.code == Some(2) && ran.err.starts_with("umbel: ab and large: one filter "),
            "{}",
            ran.err
        );
        assert!(ran.err.ends_with("; build both with the same -n and -p\n"), "{}", ran.err);
    }
    for family in ["xor", "fuse", "fuse4"] {
        place.umbel_with(&format!("build --force -o set --family {family}"), "x\n").prints("");
        place.umbel("merge -o all set set").fails(&format!(
            "set and set: a {family} filter cannot be merged; build one filter from all keys: umbel build --family {family} -o all a.gz b.txt"
        ));
    }
    place.umbel_with("build -o grows --family scalable", "x\n").prints("");
    place.umbel("merge -o all grows grows").fails(
        "grows and grows: a scalable filter cannot be merged; build one filter from all keys, or both with another family than scalable and the same -n and -p",
    );
    place.umbel_with("build -o blocked -n 100", "x\n").prints("");
    place.umbel("merge -o all ab blocked").fails(
        "ab and blocked: expected two filters of one family, got a bloom and a blocked filter; build both with the same --family, -n and -p",
    );
    place.umbel_with("build -o seeded -p 1e-6 -n 100 --family bloom --seed 7", "x\n").prints("");
    place
        .umbel("merge -o all ab bc seeded")
        .fails("ab and seeded: the filters hash keys with different seeds or secrets; build both with --hash portable and the same --seed, or add keys to copies of one empty filter");
    place.umbel_with("build -o still --static", "x\n").prints("");
    place
        .umbel("merge -o all still still")
        .fails("still and still: a ribbon filter cannot be merged; build one filter from all keys: umbel build --static -o all a.gz b.txt");
    place.umbel("merge -o all ab nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.write("text", "a\n".repeat(100));
    place.umbel("merge -o all ab text").fails("text: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)");
    place.umbel("merge -o all").refuses("<FILTER>");
    place.umbel("merge ab bc").refuses("--output <FILE>");
    assert!(!place.path("all").exists());
}

#[test]
fn the_result_goes_where_it_may() {
    let place = place("bloom");
    place.umbel("merge -o ab ab bc").fails("ab: is there already; --force replaces it");
    place.umbel("merge -o ab --force ab bc").prints("");
    place.umbel("check ab lines").prints("a\nb\nc\n");
    place.shell("umbel merge -o - ab bc | cat > all").prints("");
    assert_eq!(place.read("all"), place.read("ab"));
    // Filters with one secret: copies of one that was empty.
    place.umbel("build -o one --hash keyed -n 100 /dev/null").prints("");
    place.shell("cp one two").prints("");
    place.umbel_with("add one", "a\n").prints("");
    place.umbel_with("add two", "b\n").prints("");
    place.umbel("merge -o secret one two").prints("");
    place.umbel("check secret lines").prints("a\nb\n");
}

#[test]
#[cfg(feature = "redis")]
fn filters_on_servers_are_neither_merged_nor_verified() {
    let place = Place::new();
    place.umbel_with("build -q -o f", "a\n").gives(0, "", "");
    let address = "redis://:secret@127.0.0.1:1/0?key=k";
    let told = "redis://127.0.0.1:1/0?key=k: expected a file, got a filter on a server";
    for command in [
        format!("merge -o all f {address}"),
        format!("merge -o all {address} f"),
        format!("verify {address}"),
        format!("dedup {address}"),
    ] {
        place.umbel(&command).fails(told);
    }
    assert_eq!(place.names(), ["f"]);
}
