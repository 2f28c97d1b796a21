//! Standard output that is closed or full, and filters on standard input.

use crate::place::Place;

/// Lines are not lost with status 0.
#[test]
fn a_standard_output_that_was_never_open_is_an_error() {
    let place = Place::new();
    place.write("keys", "a\nb\na\n").umbel("build -o f keys").prints("");
    let closed = "umbel: standard output: is closed: redirect it to a file, or to /dev/null if the output is not needed\n";
    for verb in [
        "dedup keys",
        "dedup -c keys",
        "dedup --state s keys",
        "check f keys",
        "check -c f keys",
        "info f",
        "verify f",
        "plan -n 5",
        "build -o - keys",
        "build --force -o g --report json keys",
        "merge -o - f f",
        "bench --family bloom keys",
        "man",
        "completions zsh",
        "--help",
        "--version",
    ] {
        for close in [">&-", ">&- <&-", ">&- <&- 3<&-"] {
            let ran = place.shell(&format!("umbel {verb} {close}"));
            assert_eq!((ran.code, &*ran.err), (Some(2), closed), "{verb} {close}");
        }
    }
    // No state of lines that were not printed.
    assert!(!place.path("s").exists());
    for name in ["/dev/stdout", "/proc/self/fd/1"] {
        let ran = place.shell(&format!("umbel build -o {name} keys >&-"));
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
    }
    // What prints nothing needs no standard output.
    for verb in [
        "build --force -o g keys",
        "add g keys",
        "merge --force -o h f g",
        "check -q f keys",
        "verify -q f",
    ] {
        assert_eq!(place.shell(&format!("umbel {verb} >&-")).code, Some(0), "{verb}");
    }
}

/// However it was opened: other programs open it for reading too.
#[test]
fn the_null_device_is_no_closed_standard_output() {
    let place = Place::new();
    place.write("keys", "a\nb\na\n");
    for null in ["> /dev/null", "1<> /dev/null", ">> /dev/null"] {
        assert_eq!(place.shell(&format!("umbel dedup keys {null}")).code, Some(0), "{null}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_reports_and_help_too() {
    let place = Place::new();
    place.write("keys", "a\n").umbel("build -o f --deletable -n 9 keys").prints("");
    for verb in [
        "build -o g --report json keys",
        "add --report json f keys",
        "remove --report json f keys",
        "merge -o h --json f f",
        "verify --json f",
        "info --json f",
        "plan -n 9 --json",
        "plan -n 9 --chart",
        "--help",
        "help build",
        "--version",
    ] {
        let ran = place.shell(&format!("umbel {verb} > /dev/full"));
        let full = "umbel: standard output: No space left on device (os error 28)\n";
        assert_eq!((ran.code, &*ran.err), (Some(2), full), "{verb}");
    }
    let ran = place.umbel("plan -n 9 --svg /dev/full");
    ran.gives(2, "", "umbel: /dev/full: No space left on device (os error 28)\n");
}

#[test]
fn a_filter_comes_from_standard_input() {
    let place = Place::new();
    place.write("keys", "a\nb\n").write("more", "c\n");
    for kind in ["", "--deletable", "--static", "--family scalable", "--hash keyed"] {
        place.umbel(&format!("build {kind} --force -o f keys")).prints("");
        let (file, stdin) = (place.umbel("info f"), place.shell("cat f | umbel info -"));
        assert_eq!(
            stdin.out,
            file.out.replace("file              f\n", "file              -\n"),
            "{kind}: {}",
            stdin.err
        );
        place
            .shell("umbel verify - < f")
            .prints(&place.umbel("verify f").out.replace("f: ", "-: "));
        let whole = place.read("f");
        let cut = place.umbel_with("verify -", &whole[..whole.len() - 1]);
        assert_eq!(cut.code, Some(1), "{kind}: {}", cut.err);
        let more = place.umbel_with("verify -", [&whole[..], b"x"].concat());
        let said = "umbel: standard input: expected the end of the filter, found more bytes; give it one whole filter\n";
        assert_eq!((more.code, &*more.err), (Some(1), said), "{kind}");
    }
    for (name, keys) in [("one", "keys"), ("two", "more")] {
        place.umbel(&format!("build -n 100 -o {name} {keys}")).prints("");
    }
    for order in ["- two < one", "one - < two"] {
        place.shell(&format!("umbel merge --force -o all {order}")).prints("");
        place.umbel("check all keys more").prints("a\nb\nc\n");
    }
    // A secret that comes this way is kept, and for its owner only.
    place.umbel("build -n 100 --hash keyed -o secret keys").prints("");
    place.shell("umbel merge -o kept - < secret; stat -c %a kept; cmp secret kept").prints("600\n");
    place
        .shell("umbel merge -o no - - < one")
        .fails("standard input holds one filter: name - once, and files for the others");
    place
        .umbel_with("info -", "")
        .fails("standard input: expected a filter, found input that is none (it does not begin with umbel's magic bytes)");
}

#[test]
fn states_of_exact_runs_are_known() {
    let place = Place::new();
    place.write("keys", "a\nb\na\n");
    place.umbel("dedup -q --exact --state s keys").prints("a\nb\n");
    place.umbel("info s").prints(
        "file              s\n\
         kind              exact state of dedup\n\
         format            2\n\
         secret in file    yes\n\
         private           yes\n\
         size              96 bytes\n\
         keys in it        2\n\
         rate now          0\n\
         checksums         match\n",
    );
    place.shell("chmod 644 s").prints("");
    assert!(place.umbel("info s").out.contains("\nprivate           no\n"));
    place.umbel("verify s").prints("s: whole, exact state of dedup, 96 bytes\n");
    let whole = place.read("s");
    for (damaged, code) in [
        (&whole[..90], 1),
        (&[&whole[..], b"x"].concat()[..], 1),
        (&[&whole[..95], b"!"].concat()[..], 1),
    ] {
        let ran = place.write("d", damaged).umbel("verify d");
        assert_eq!((ran.code, &*ran.out), (Some(code), ""), "{}", ran.err);
        assert_eq!(place.umbel("info d").code, Some(2));
    }
    place.umbel("build -o f keys").prints("");
    let state = "is a state of `umbel dedup` and not a filter: `umbel dedup --state` goes on with it, `umbel info` describes it";
    for verb in ["check s keys", "add s keys", "remove s keys", "merge -o m f s", "merge -o m s f"]
    {
        place.umbel(verb).fails(&format!("s: {state}"));
    }
    place.umbel_with("info -", &whole).fails(&format!("standard input: {state}"));
    assert!(place.read("s") == whole);
}
