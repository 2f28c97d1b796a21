//! `umbel dedup --state`: runs that go on where the last one stopped.

use crate::place::{Place, certain};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

#[test]
fn the_next_run_goes_on() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\nb\na\n").gives(0, "a\nb\n", &certain("2"));
    place.umbel_with("dedup --state s", "c\nb\n").gives(0, "c\n", &certain("1"));
    place.umbel_with("dedup --state s", "a\nb\nc\n").gives(0, "", &certain("0"));
    place.umbel_with("dedup --state s -d", "a\nd\n").gives(0, "a\n", &certain("1"));
    place.umbel_with("dedup --state s -D again", "d\ne\n").prints("e\n");
    assert_eq!(place.read("again"), b"d\n");
    assert_eq!(place.names(), ["again", "s"]);
}

#[test]
fn the_same_command_may_be_run_every_day() {
    for args in [
        "-n 1000",
        "-n 1e3 -p 1e-4",
        "-p 1e-3",
        "--memory 64k",
        "--memory 64k -p 1%",
        "-n 100 --memory 4k",
        "--window 50",
        "--window 1h -n 100",
        "--hash portable",
        "--hash keyed",
    ] {
        let place = Place::new();
        let command = format!("dedup --state s {args}");
        place.umbel_with(&command, "a\nb\n").prints("a\nb\n");
        place.umbel_with(&command, "b\nc\n").prints("c\n");
        place.umbel_with("dedup --state s", "c\na\nd\n").prints("d\n");
    }
}

#[test]
fn another_command_may_not() {
    let place = Place::new();
    place.umbel_with("dedup --state s -n 1000", "a\n").prints("a\n");
    let before = place.read("s");
    for args in [
        "-n 2000",
        "-n 1000 -p 1%",
        "--memory 1M",
        "--window 9",
        "-p 1%",
        "--hash portable",
        "--exact",
    ] {
        place
            .umbel_with(&format!("dedup --state s {args}"), "b\n")
            .fails("s: was begun with other -n, -p, --memory, --window, --hash and --exact; leave them out");
    }
    place.umbel_with("build -o f --static", "a\n").prints("");
    place
        .umbel_with("dedup --state f", "a\n")
        .fails("f: a ribbon filter cannot take keys once it is built");
    place
        .write("text", "a\n".repeat(100))
        .umbel_with("dedup --state text", "a\n")
        .fails("text: these bytes do not begin as a filter does");
    assert_eq!((place.read("s"), place.read("text")), (before, b"a\n".repeat(100)));
    assert_eq!(place.names(), ["f", "s", "text"]);
}

#[test]
fn exact_goes_on_too() {
    let place = Place::new();
    place.umbel_with("dedup --exact --state s", "a\nb\na\n").gives(0, "a\nb\n", "");
    place.umbel_with("dedup --exact --state s", "c\nb\n").gives(0, "c\n", "");
    // What was left out is as it was.
    place.umbel_with("dedup --state s", "a\nd\nc\n").gives(0, "d\n", "");
    let whole = place.read("s");
    assert_eq!(whole.len(), 64 + 4 * 16);
    for args in ["-n 9", "-p 1%", "--memory 1M", "--window 9", "--hash keyed"] {
        place
            .umbel_with(&format!("dedup --state s {args}"), "b\n")
            .fails("s: was begun with other -n, -p, --memory, --window, --hash and --exact; leave them out");
    }
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for (bytes, why) in [
        (&damaged[..], "s: is damaged: it is not what was saved"),
        (&whole[..100], "s: does not hold the 4 digests it announces"),
        (&whole[..20], "s: ends in its header"),
    ] {
        place.write("s", bytes).umbel_with("dedup --exact --state s", "e\n").fails(why);
        assert_eq!(place.read("s"), bytes);
    }
}

#[test]
fn a_state_is_for_its_owner_and_a_filter_like_others() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\nb\n").prints("a\nb\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = place.path("s").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "a secret is in it");
    }
    place.umbel_with("check s", "x\nb\n").prints("b\n");
    place.umbel("verify s").prints("s: whole, scalable, 4.6 MiB\n");
    // And the other way round.
    place.umbel_with("build -o f -n 100", "a\n").prints("");
    place.umbel_with("dedup --state f", "a\nb\n").prints("b\n");
}

#[test]
fn what_goes_wrong_leaves_the_state() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\n").prints("a\n");
    let before = place.read("s");
    place.umbel("dedup --state s nowhere").fails("nowhere: No such file or directory (os error 2)");
    let ran = place.umbel_with("dedup --state s -k 2", "x y\nz\n");
    assert_eq!((ran.code, &*ran.out), (Some(2), "x y\n"));
    let ran = place.shell("echo b | umbel dedup --state s > /dev/full");
    ran.gives(2, "", "umbel: standard output: No space left on device (os error 28)\n");
    // Lines that nobody could read were not seen.
    assert_eq!(place.read("s"), before);
    assert_eq!(place.names(), ["s"]);
    for state in [".", "/"] {
        place
            .umbel_with(&format!("dedup --state {state}"), "a\n")
            .fails(&format!("{state}: is a directory"));
    }
    place.umbel_with("dedup --state /dev/null", "a\n").fails("/dev/null: this is not a file");
    place
        .umbel_with("dedup --state no/where", "a\n")
        .fails("no/where: No such file or directory (os error 2)");
}

#[test]
fn what_is_not_saved_because_the_output_was_closed_is_named() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\n").prints("a\n");
    let before = place.read("s");
    for args in ["--state s", "--state s -c"] {
        place.unread(&format!("dedup {args}"), "b\n").gives(
            0,
            "",
            "umbel: standard output was closed before the end: s is not saved, and the next run prints these lines again\n",
        );
    }
    place.unread("dedup -D again", "b\nb\n").gives(
        0,
        "",
        "umbel: standard output was closed before the end: again is not written\n",
    );
    let ran = place.unread("dedup --state s -D again", "b\nb\n");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.err.contains(": s is not saved") && ran.err.contains("\numbel: standard"),
        "{ran:?}"
    );
    assert_eq!(place.read("s"), before);
    assert_eq!(place.names(), ["s"]);
    // No line was lost.
    place.umbel_with("dedup --state s", "a\nb\n").prints("b\n");
}

/// There, a line is marked as seen before it is printed.
#[test]
#[cfg(feature = "redis")]
fn lines_that_are_lost_to_a_state_on_a_server_are_an_error() {
    let Some(node) = crate::server::Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("seen"));
    place.umbel_with(&format!("dedup --state {url}&create -n 1000"), "a\n").prints("a\n");
    let lost = "standard output was closed before the end, and lines that were not printed are marked as seen there";
    place.unread(&format!("dedup --state {url}"), "b\n").fails(&format!("{shown}: {lost}"));
    place.unread(&format!("dedup -c --state {url}"), "c\n").fails(&format!("{shown}: {lost}"));
}

/// A run that has printed a line and waits for more.
fn waiting(place: &Place) -> Child {
    let mut child = place
        .process()
        .args(["dedup", "--state", "s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("umbel runs");
    child.stdin.as_mut().unwrap().write_all(b"new\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "new\n");
    child
}

#[test]
fn two_runs_do_not_share_a_state() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\n").prints("a\n");
    let mut first = waiting(&place);
    place
        .umbel_with("dedup --state s", "b\n")
        .fails("s: is being written by another process; wait until it ends");
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    place.umbel_with("dedup --state s", "a\nnew\nb\n").prints("b\n");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_the_old_state_and_nothing_else() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\n").prints("a\n");
    let before = place.read("s");
    for signal in ["INT", "TERM", "HUP"] {
        let mut run = waiting(&place);
        place.shell(&format!("kill -{signal} {}", run.id())).gives(0, "", "");
        assert_eq!(run.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(place.names(), ["s"], "{signal}");
    }
    // One that is killed cannot tidy up, but is in nobody's way.
    let mut run = waiting(&place);
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(place.read("s"), before);
    place.umbel_with("dedup --state s", "a\nnew\n").prints("new\n");
    assert_eq!(place.names(), ["s"]);
}
