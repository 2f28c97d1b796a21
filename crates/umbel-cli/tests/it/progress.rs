//! What a terminal shows while a command works. These tests wait for what is shown, however long that takes.

use crate::place::Place;

/// Whether there is a program that makes a terminal.
fn has_terminal(place: &Place) -> bool {
    let has = place.shell("command -v script").code == Some(0);
    if !has {
        eprintln!("SKIPPED: there is no script(1)");
    }
    has
}

/// Lines that come when what was shown so far contains a text: nothing before the first one.
fn when_seen(steps: &[(&str, &str)]) -> String {
    let wait = |(text, line): &(&str, &str)| {
        format!(
            "for _ in $(seq 1200); do grep -q \"{text}\" seen && break; sleep 0.1; done; echo {line}; "
        )
    };
    format!("({})", steps.iter().map(wait).collect::<String>())
}

/// Runs a command whose terminal is written to the file `seen`, and returns that.
fn watch(place: &Place, command: &str) -> String {
    let ran = place.shell(&format!("script -qec '{command}' /dev/null < /dev/null > seen"));
    assert_eq!(ran.code, Some(0), "{command}: {}", ran.err);
    String::from_utf8(place.read("seen")).expect("text")
}

#[test]
fn build_and_add_show_progress_though_standard_output_is_a_terminal() {
    let place = Place::new();
    if !has_terminal(&place) {
        return;
    }
    let lines = when_seen(&[("waiting for input", "a"), ("1 record, 2 bytes", "b")]);
    for verb in
        ["build -o f", "build --static -o g", "build -n 100 --deletable -o h", "add f", "remove h"]
    {
        let seen = watch(&place, &format!("{lines} | umbel {verb}"));
        // The first frame says what is true before anything has come.
        let first = seen.find("waiting for input").unwrap_or_else(|| panic!("{verb}: {seen:?}"));
        let second = seen.find("1 record, 2 bytes, ").unwrap_or_else(|| panic!("{verb}: {seen:?}"));
        assert!(first < second, "{verb}: {seen:?}");
        assert!(!seen.contains(" left"), "nobody knows how much is to come: {seen:?}");
        // It is gone when the result is told.
        let (_, last) = seen.rsplit_once("\r\x1b[2K").unwrap_or_else(|| panic!("{verb}: {seen:?}"));
        assert!(last.starts_with("umbel: ") && last.ends_with("\r\n"), "{verb}: {last:?}");
    }
    place.umbel_with("check f", "a\nb\nc\n").prints("a\nb\n");
}

#[test]
fn quiet_commands_show_no_progress() {
    let place = Place::new();
    if !has_terminal(&place) {
        return;
    }
    // Long enough to show it, on any machine: if this is ever shorter, nothing is shown and the test holds too.
    let seen = watch(&place, "(echo a; sleep 1.5; echo b) | umbel build -q -o f");
    assert_eq!(seen, "");
}

#[test]
fn what_is_done_at_once_shows_no_progress() {
    let place = Place::new();
    if has_terminal(&place) {
        let seen = watch(&place, "umbel plan -n 5 > out");
        assert_eq!(seen, "");
    }
    // And what is no terminal gets none, however long it takes.
    assert_eq!(
        place.shell("(echo a; sleep 1.5; echo b) | umbel build -o f").err.lines().count(),
        1
    );
}
