//! Help, completions and manual pages.

use crate::place::Place;

const VERBS: [&str; 14] = [
    "dedup",
    "build",
    "add",
    "remove",
    "adopt",
    "check",
    "merge",
    "info",
    "verify",
    "plan",
    "bench",
    "guard",
    "completions",
    "man",
];

#[test]
fn every_verb_has_help_with_examples() {
    let place = Place::new();
    let ran = place.umbel("--help");
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    for verb in VERBS {
        assert!(ran.out.contains(&format!("\n  {verb} ")), "{verb}");
        // -h of check is for names of files, as in grep.
        let flag = if verb == "check" { "--help" } else { "-h" };
        let (short, long) =
            (place.umbel(&format!("{verb} {flag}")), place.umbel(&format!("help {verb}")));
        assert_eq!((short.code, long.code), (Some(0), Some(0)), "{verb}");
        if !["completions", "man", "guard"].contains(&verb) {
            assert!(short.out.contains("\nExample"), "{verb}: {}", short.out);
            assert!(short.out.lines().all(|line| line.chars().count() <= 110), "{verb}");
        }
    }
}

#[test]
fn help_promises_no_more_than_filters_keep() {
    let place = Place::new();
    let words = |args: &str| place.umbel(args).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let root = words("--help");
    assert!(
        root.contains("few look-ups of absent keys reach it") && !root.contains("never reach"),
        "{root}"
    );
    let merged = "Keys can be removed, and filters that were built with the same -n and -p merged";
    assert!(words("build --help").contains(merged) && !words("build --help").contains("any size"));
    #[cfg(feature = "guard")]
    assert!(words("guard attach --help").contains(merged));
    assert!(
        words("merge --help").contains(
            "Static and scalable filters cannot be merged: build one filter from all keys"
        )
    );
    let warned = "with a warning as soon as the false positive rate is above the planned one";
    assert!(words("build --help").contains(warned));
}

#[test]
fn versions_name_the_format() {
    let place = Place::new();
    let version = concat!("umbel ", env!("CARGO_PKG_VERSION"), " (file format 1)\n");
    place.umbel("--version").gives(0, version, "");
    place.umbel("-V").gives(0, version, "");
}

#[test]
fn no_verb_or_a_wrong_one_is_an_error() {
    let place = Place::new();
    let ran = place.umbel("");
    assert_eq!((ran.code, &*ran.out), (Some(2), ""));
    assert!(ran.err.contains("Usage: umbel [OPTIONS] <COMMAND>"), "{}", ran.err);
    place.umbel("dedupe").refuses("unrecognized subcommand 'dedupe'");
    place.umbel("dedup --colour").refuses("unexpected argument '--colour'");
    // Of an option that is given twice the last one counts, so that aliases can be overruled. Those that name parts of the key add up.
    place.umbel_with("dedup --total --total -p 1% -p 1e-9 -k 2", "a b\nc b\n").prints("1\n");
    place.umbel_with("dedup --total --total -p 1% -p 1e-9 -k 2 -k 1", "a b\nc b\n").prints("2\n");
    // Colours are for terminals.
    assert!(!ran.err.contains('\x1b'));
    assert!(!place.umbel("--help").out.contains('\x1b'));
}

/// If there is a program that makes a terminal.
fn on_terminal(place: &Place, command: &str) -> Option<String> {
    if place.shell("command -v script").code != Some(0) {
        return None;
    }
    let ran = place.shell(&format!("script -qec '{command}' /dev/null < /dev/null"));
    assert_eq!(ran.code, Some(0), "{command}");
    Some(ran.out)
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let place = Place::new();
    if let Some(help) = on_terminal(&place, "umbel --help") {
        assert!(help.contains("\x1b["), "{help:?}");
        let plain = on_terminal(&place, "NO_COLOR=1 umbel --help").expect("the same program");
        assert!(!plain.contains('\x1b'), "{plain:?}");
    }
}

#[test]
fn progress_is_for_terminals() {
    let place = Place::new();
    let slowly = "(echo a; sleep 0.7; echo b) | umbel dedup -v";
    // The second line comes when progress was seen, however long that takes.
    let watched = "(echo a; for _ in $(seq 600); do grep -q \"1 record, \" seen && break; sleep 0.1; done; echo b)";
    let recorded =
        format!("script -qec '{watched} | umbel dedup -v > out' /dev/null < /dev/null > seen");
    if place.shell("command -v script").code == Some(0) {
        place.shell(&recorded).gives(0, "", "");
        let seen = String::from_utf8(place.read("seen")).unwrap();
        assert!(seen.contains("1 record, 2 bytes, "), "{seen:?}");
        // It is gone when the last word is said, and was never anything else.
        assert!(
            seen.contains("\r\x1b[2Kumbel: 2 lines, 2 new, ")
                && seen.ends_with("lines a second)\r\n"),
            "{seen:?}"
        );
        assert!(!seen.contains("0/0"), "{seen:?}");
        // Two writers on one screen would disturb each other.
        let seen = on_terminal(&place, slowly).expect("the same program");
        assert!(seen.starts_with("a\r\nb\r\numbel: "), "{seen:?}");
    }
    assert!(!place.shell(&format!("{slowly} > out")).err.contains("records"));
}

#[test]
fn every_shell_has_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = place.umbel(&format!("completions {shell}"));
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{shell}");
        for word in ["dedup", "verify", "ignore-case", "duplicates"] {
            assert!(ran.out.contains(word), "{shell}: {word}");
        }
    }
    place.umbel("completions tcsh").refuses("invalid value 'tcsh'");
    place.umbel("completions").refuses("<SHELL>");
    // The one for this shell is at least a script.
    place.shell("umbel completions bash > c && bash -n c && source ./c").gives(0, "", "");
}

#[test]
fn every_verb_has_a_manual_page() {
    let place = Place::new();
    let ran = place.umbel("man");
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    assert!(ran.out.contains(".TH umbel 1") && ran.out.contains("umbel\\-dedup(1)"), "{}", ran.out);
    std::fs::create_dir(place.path("man1")).unwrap();
    place.umbel("man man1").gives(0, "", "");
    let pages = std::fs::read_dir(place.path("man1")).unwrap().count();
    assert!(pages > VERBS.len(), "{pages}");
    for verb in VERBS {
        let page = String::from_utf8(place.read(&format!("man1/umbel-{verb}.1"))).unwrap();
        assert!(page.contains(&format!(".TH umbel-{verb} 1")), "{verb}");
    }
    place.umbel("man nowhere").fails("nowhere: No such file or directory (os error 2)");
}
