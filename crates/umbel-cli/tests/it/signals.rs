//! Signals end a command with 128 and their number, and no half-written file is left.

use crate::place::Place;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A filter that is being changed: the new one is a file already, and keys are still awaited.
fn changing(place: &Place, shell: &str) -> Child {
    place.umbel_with("build -o f -n 100", "a\n").prints("");
    let umbel = env!("CARGO_BIN_EXE_umbel");
    let mut command = place.interruptible("bash");
    command.args(["-c", &format!("{shell} exec '{umbel}' add f")]);
    let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("bash runs");
    let end = Instant::now() + Duration::from_secs(120);
    while !place.path(".f.umbel-part").exists() {
        assert!(Instant::now() < end, "the command does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn every_signal_has_its_status_and_leaves_nothing_behind() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let place = Place::new();
        let mut child = changing(&place, "");
        let before = place.read("f");
        place.shell(&format!("kill -s {signal} {}", child.id())).prints("");
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
        assert_eq!(place.names(), ["f"], "{signal}");
        assert!(place.read("f") == before, "{signal}");
    }
}

/// As under `nohup`.
#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    for signal in ["HUP", "INT", "TERM"] {
        let place = Place::new();
        let mut child = changing(&place, &format!("trap '' {signal};"));
        for _ in 0..3 {
            place.shell(&format!("kill -s {signal} {}", child.id())).prints("");
        }
        child.stdin.take().unwrap().write_all(b"b\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        place.umbel_with("check f", "b\n").prints("b\n");
    }
}
