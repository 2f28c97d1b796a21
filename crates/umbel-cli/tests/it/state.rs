//! `umbel dedup --state`: runs that go on where the last one stopped.

use crate::place::Place;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

#[test]
fn the_next_run_goes_on() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\nb\na\n").gives(0, "a\nb\n", "");
    place.umbel_with("dedup --state s", "c\nb\n").gives(0, "c\n", "");
    place.umbel_with("dedup --state s", "a\nb\nc\n").gives(0, "", "");
    place.umbel_with("dedup --state s --repeats", "a\nd\n").gives(0, "a\n", "");
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

/// What a run says that has another option than the one that began the state.
fn other(began: &str, asked: &str) -> String {
    let remedy = if asked.starts_with("no ") { "add it" } else { "leave that out" };
    format!(
        "s: the state was begun {began}, and this run has {asked}; {remedy}, or begin another state"
    )
}

#[test]
fn another_command_may_not_and_hears_which_option_differs() {
    let planned = "with a false positive rate of 8.8e-7";
    for (begin, args, began, asked) in [
        ("-n 1000", "-n 2000", "with -n 1,000", "-n 2,000"),
        ("-n 1000", "-n 1000 -p 1%", planned, "-p 1.00 %"),
        (
            "-n 1000 -p 1%",
            "-n 1000",
            "with a false positive rate of 0.98 %",
            "no -p, which means 1.0e-6",
        ),
        ("-n 1000", "--memory 1k", "with a filter of 3.9 KiB", "--memory 1.0 KiB"),
        ("-n 1000", "--window 9", "without a window", "--window 9"),
        ("-n 1000", "-p 1%", "with -n 1,000", "-p without -n"),
        ("-n 1000", "--hash portable", "with --hash keyed", "--hash portable"),
        ("-n 1000", "--exact", "as a filter, or went over to one", "--exact"),
        ("-p 1%", "-n 9", "without -n", "-n 9"),
        ("-p 1%", "-p 2%", "with a false positive rate of 1.00 %", "-p 2.00 %"),
        ("-p 1%", "--memory 1M", "without --memory", "--memory 1.0 MiB"),
        ("--window 50", "--window 60", "with --window 50", "--window 60"),
        ("--window 50", "-p 1%", "with --window 50", "no --window"),
        ("--window 50", "--window 1s -n 50", "with --window 50", "--window 1s"),
        ("--window 1h -n 10", "--window 1h -n 20", "with -n 10", "-n 20"),
        ("", "-n 9", "exact, without a filter", "-n 9"),
        ("", "-p 1%", "exact, without a filter", "-p 1.00 %"),
        ("--exact", "--window 9", "exact, without a filter", "--window 9"),
        ("", "--hash keyed", "exact, without a filter", "--hash keyed"),
    ] {
        let place = Place::new();
        place.umbel_with(&format!("dedup --state s {begin}"), "a\n").prints("a\n");
        let before = place.read("s");
        let ran = place.umbel_with(&format!("dedup --state s {args}"), "b\n");
        ran.fails(&other(began, asked));
        assert_eq!(place.read("s"), before, "{begin}, {args}");
        assert_eq!(place.names(), ["s"]);
    }
}

#[test]
fn what_is_no_state_is_refused_and_stays() {
    let place = Place::new();
    place.umbel_with("build -o frozen --static", "a\n").prints("");
    place.write("text", "a\n".repeat(100));
    for build in [
        "",
        "-n 100",
        "--hash keyed -n 100",
        "--family scalable --hash keyed -n 100",
        "--family bloom",
    ] {
        place.umbel_with(&format!("build --force -o list {build}"), "a\n").prints("");
        let before = place.read("list");
        place.umbel_with("dedup --state list", "a\nb\n").fails(
            "list: is a filter that `umbel dedup --state` did not write, and it stays as it is. To print the lines that are not in \
             it, use `umbel check -v list`. A new state begins with the name of a file that does not exist",
        );
        assert_eq!(place.read("list"), before);
    }
    place.umbel_with("dedup --state frozen", "a\n").refuses("frozen: is a filter that");
    place
        .umbel_with("dedup --state text", "a\n")
        .fails("text: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)");
    place.umbel_with("dedup --state -", "a\n").fails(
        "--state takes the name of a file, because the state is read and then replaced; - is none",
    );
    assert_eq!(place.names(), ["frozen", "list", "text"]);
}

/// Such states have no mark: the number of their secret is 0.
#[test]
fn a_state_that_earlier_versions_began_without_options_goes_on() {
    let place = Place::new();
    let shape = umbel::scalable::Shape::for_rate(1 << 20, 1e-6).unwrap();
    let hasher = umbel::any::AnyHasher::from(umbel::Keyed::new([7; 16]));
    let mut filter = umbel::ScalableBloomFilter::<[u8], _>::with(shape, hasher).unwrap();
    filter.insert(&b"a"[..]).unwrap();
    let mut file = std::fs::File::create(place.path("s")).unwrap();
    umbel::AnyFilter::from(filter).to_writer(&mut file, umbel::format::Secret::Kept).unwrap();
    drop(file);
    place.umbel_with("dedup --state s", "a\nb\n").gives(0, "b\n", "");
    place.umbel_with("dedup --state s", "b\na\nc\n").gives(0, "c\n", "");
}

#[test]
fn exact_goes_on_too() {
    let place = Place::new();
    place.umbel_with("dedup --exact --state s", "a\nb\na\n").gives(0, "a\nb\n", "");
    place.umbel_with("dedup --exact --state s", "c\nb\n").gives(0, "c\n", "");
    // Exact runs are the default.
    place.umbel_with("dedup --state s", "a\nd\nc\n").gives(0, "d\n", "");
    let whole = place.read("s");
    assert_eq!(whole.len(), 64 + 4 * 16);
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for (bytes, why) in [
        (&damaged[..], "s: is damaged: it is not what was saved"),
        (&whole[..100], "s: does not hold the 4 digests it announces"),
        (&whole[..20], "s: ends in its header"),
    ] {
        for args in ["--exact", "", "--memory 10k"] {
            place
                .write("s", bytes)
                .umbel_with(&format!("dedup --state s {args}"), "e\n")
                .refuses(why);
            assert_eq!(place.read("s"), bytes);
        }
    }
}

#[test]
fn a_state_is_for_its_owner_and_a_filter_like_others() {
    let place = Place::new();
    place.umbel_with("dedup --state s -p 1e-6", "a\nb\n").prints("a\nb\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = place.path("s").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "a secret is in it");
    }
    place.umbel_with("check s", "x\nb\n").prints("b\n");
    place.umbel("verify s").prints("s: whole, scalable, 4.6 MiB\n");
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
    place
        .umbel_with("dedup --state /dev/null", "a\n")
        .fails("/dev/null: expected a file that can be replaced, got a device or an open file");
    place
        .umbel_with("dedup --state no/where", "a\n")
        .fails("no/where: No such file or directory (os error 2)");
}

#[test]
fn what_is_not_saved_because_the_output_was_closed_is_named() {
    let place = Place::new();
    place.umbel_with("dedup --state s", "a\n").prints("a\n");
    let before = place.read("s");
    for args in ["--state s", "--state s --total"] {
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
    place.unread(&format!("dedup --total --state {url}"), "c\n").fails(&format!("{shown}: {lost}"));
}

/// A run that has printed a line and waits for more.
fn waiting(place: &Place) -> Child {
    #[cfg(unix)]
    let mut command = place.interruptible(env!("CARGO_BIN_EXE_umbel"));
    #[cfg(not(unix))]
    let mut command = place.process();
    let mut child = command
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
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mut run = waiting(&place);
        place.shell(&format!("kill -{signal} {}", run.id())).gives(0, "", "");
        assert_eq!(run.wait().unwrap().code(), Some(status), "{signal}");
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

/// Keys of others would be lines that `dedup` never prints.
#[test]
fn only_dedup_changes_a_state() {
    let place = Place::new();
    place.umbel_with("build -o f", "a\n").prints("");
    for args in ["", "-n 1000", "-n 1000 --hash portable", "--window 50"] {
        place.shell("rm -f s").prints("");
        place.umbel_with(&format!("dedup --state s {args}"), "a\n").prints("a\n");
        let before = place.read("s");
        for command in ["add s", "remove s", "merge --force -o s f"] {
            place.umbel_with(command, "b\n").fails(
                "s: is a state of `umbel dedup` and not a filter: `umbel dedup --state` goes on with it, `umbel info` describes it",
            );
        }
        assert!(place.read("s") == before, "{args}");
        let told = place.umbel("info s").out;
        assert!(told.contains("state of dedup\n"), "{told}");
        if !args.is_empty() {
            place.umbel_with("check s", "a\nb\n").prints("a\n");
        }
    }
}
