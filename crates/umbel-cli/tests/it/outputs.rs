//! Outputs that are also an input, or another output.

use crate::place::Place;

/// Nothing changes, and the message names both.
#[track_caller]
fn refused(place: &Place, command: &str, one: &str, other: &str) {
    let before: Vec<_> = place.names().into_iter().map(|name| place.read(&name)).collect();
    let names = place.names();
    let ran = place.shell(command);
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{command}: {}", ran.err);
    for part in [one, other, "one file"] {
        assert!(ran.err.contains(part), "{command}: {part}: {}", ran.err);
    }
    assert_eq!(place.names(), names, "{command}");
    let after: Vec<_> = names.iter().map(|name| place.read(name)).collect();
    assert!(after == before, "{command}: a file has changed");
}

#[test]
fn an_output_that_is_an_input_is_refused_and_stays() {
    let place = Place::new();
    place.write("in", "a\nb\na\n").write("other", "c\n");
    place.shell("ln -s in soft && ln in hard").prints("");
    for name in ["in", "./in", "soft", "hard"] {
        for command in [
            "umbel dedup --force -D NAME other in",
            "umbel dedup --force -o NAME in",
            "umbel dedup --state NAME other in",
            "umbel dedup --force -D NAME < in",
            "umbel dedup --force -o NAME other - < in",
            "umbel dedup -u --force -o NAME in",
            "umbel build --force -o NAME in",
            "umbel build --force --static -o NAME in",
            "umbel build --force -o NAME < in",
        ] {
            let command = command.replace("NAME", name);
            let input = if command.contains('<') { "standard input" } else { "the input in" };
            refused(&place, &command, &format!(" {name} and "), input);
        }
    }
    let ran = place.shell("umbel dedup --force -o in in");
    ran.fails(
        "-o in and the input in are one file, which would be lost: name another file, or use --in-place to de-duplicate the input \
         file itself",
    );
    // These files are not made of the input.
    for option in ["--state", "--force -D", "--skip-bad --bad"] {
        let ran = place.shell(&format!("umbel dedup -k 1 {option} in in"));
        assert!(ran.err.ends_with("which would be lost: name another file\n"), "{}", ran.err);
    }
}

#[test]
fn a_filter_that_is_read_is_no_output_and_no_list_of_keys() {
    let place = Place::new();
    place.umbel_with("build -o f", "a\n").prints("");
    place.umbel_with("build -o g", "a\n").prints("");
    refused(&place, "umbel merge --intersect --force -o f f g", "-o f", "the input f");
    refused(&place, "umbel merge --intersect --force -o g f - < g", "-o g", "standard input");
    refused(&place, "umbel add f f", "the filter f", "the input f");
    refused(&place, "umbel add f < f", "the filter f", "standard input");
    // The filter itself is replaced, as ever.
    place.umbel_with("add f", "a\n").prints("");
}

#[test]
fn two_options_that_name_one_file_are_refused() {
    let place = Place::new();
    place.write("in", "a\nb\na\n");
    for (command, one, other) in [
        ("umbel dedup -D same -o same in", "-o same", "-D same"),
        ("umbel dedup -D same -o ./same in", "-o ./same", "-D same"),
        ("umbel dedup --state same -o same in", "-o same", "--state same"),
        ("umbel dedup --state same -D same in", "-D same", "--state same"),
        ("umbel dedup -k 1 --skip-bad --bad same -o same in", "-o same", "--bad same"),
        ("umbel build -k 1 --skip-bad --bad same -o same in", "-o same", "--bad same"),
    ] {
        refused(&place, command, one, other);
    }
    place.write("same", "").shell("ln -s same link").prints("");
    refused(&place, "umbel dedup --force -D same -o link in", "-o link", "-D same");
    // What is written to a device is not lost.
    place.umbel("dedup --force -D /dev/null -o /dev/null in").prints("");
}
