//! Saving with real system calls, under `strace`: killed at each call, and with a failure of each call.
//! Afterwards the old filter or the new one exists, complete.

use crate::files::Directory;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use umbel::{BlockedBloomFilter, Saved};

/// The number of keys of the existing filter, and of the one that replaces it.
const OLD: u64 = 10_000;
const NEW: u64 = 20_000;

/// The example that saves a filter. Cargo builds it only when all tests are built.
fn saver() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let saver = test.parent().unwrap().parent().unwrap().join("examples/save_filter");
    if !saver.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "umbel", "--example", "save_filter"]);
        assert!(cargo.status().unwrap().success());
    }
    saver
}

/// Whether `strace` works. Some sandboxes forbid it.
fn is_there() -> bool {
    let mut strace = Command::new("strace");
    let works = strace.args(["-qq", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let there = works.is_ok_and(|status| status.success());
    if !there {
        // Written directly, because the test runner captures what is printed.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"SKIPPED: there is no strace that works, so no system call is killed\n",
        );
    }
    there
}

fn filter_of(keys: u64) -> BlockedBloomFilter<u64> {
    let mut filter = BlockedBloomFilter::new(20_000, 0.01);
    filter.extend(0..keys);
    filter
}

/// Runs the saver over the old file, with a fault that `strace` injects.
fn save(saver: &Path, path: &Path, trace: &Path, inject: Option<&str>) -> ExitStatus {
    let mut strace = Command::new("strace");
    strace.arg("-qq").arg("-f").arg("-o").arg(trace);
    if let Some(inject) = inject {
        strace.arg("-e").arg(format!("inject={inject}"));
    }
    strace.arg(saver).arg(path).arg(NEW.to_string());
    strace.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
}

/// A system call of the save: its name, and its number among the calls of that name in the whole program.
#[derive(Debug)]
struct Call {
    name: String,
    number: usize,
}

/// All system calls between the mark of the saver and its end.
fn calls(trace: &Path) -> Vec<Call> {
    let trace = std::fs::read_to_string(trace).unwrap();
    let (mut counts, mut saving) = (std::collections::HashMap::new(), false);
    let mut calls = Vec::new();
    for line in trace.lines() {
        // "1234  name(arguments) = result"
        let call = line.split_once(' ').unwrap().1.trim_start();
        let Some((name, _)) = call.split_once('(') else { continue };
        let number = counts.entry(name.to_owned()).and_modify(|count| *count += 1).or_insert(1);
        if saving && name != "exit_group" {
            calls.push(Call { name: name.into(), number: *number });
        }
        saving |= call.contains("\"/begin\"");
    }
    calls
}

/// Checks the file after the saver has ended; returns whether it is the new filter.
fn is_new(path: &Path, what: &str) -> bool {
    let there = BlockedBloomFilter::<u64>::load(path);
    let there = there.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(there == filter_of(OLD) || there == filter_of(NEW), "{what}: another filter");
    there == filter_of(NEW)
}

#[test]
fn killed_or_failing_at_any_system_call_the_old_filter_is_there_or_the_new_one() {
    if !is_there() {
        return;
    }
    let saver = &saver();
    let directory = Directory::new("strace");
    let scratch = Directory::new("strace-trace");
    let (path, trace) = (directory.path("seen.umbel"), scratch.path("trace"));
    filter_of(OLD).save(&path).unwrap();
    assert!(save(saver, &path, &trace, None).success() && is_new(&path, "undisturbed"));
    let calls = calls(&trace);
    let has = |wanted: &str| calls.iter().any(|call| call.name.starts_with(wanted));
    for wanted in ["open", "flock", "write", "fsync", "rename"] {
        assert!(has(wanted), "{wanted} is not among {calls:?}");
    }
    let (mut olds, mut news) = (0, 0);
    for Call { name, number } in &calls {
        filter_of(OLD).save(&path).unwrap();
        let inject = format!("{name}:signal=SIGKILL:when={number}");
        let status = save(saver, &path, &trace, Some(&inject));
        assert!(!status.success(), "{inject}: not killed");
        if is_new(&path, &inject) {
            news += 1;
        } else {
            olds += 1;
        }
        // The next writer removes the temporary file of a dead one.
        assert!(directory.names().len() <= 2, "{inject}: {:?}", directory.names());
        filter_of(OLD).save(&path).unwrap();
        assert_eq!(directory.names(), ["seen.umbel"], "{inject}");
    }
    assert!(olds > 5 && news > 1, "{olds} old, {news} new");
    for Call { name, number } in &calls {
        for error in ["EIO", "ENOSPC", "EROFS"] {
            filter_of(OLD).save(&path).unwrap();
            let inject = format!("{name}:error={error}:when={number}");
            let status = save(saver, &path, &trace, Some(&inject));
            let new = is_new(&path, &inject);
            // Failures of memory management and of closing files are not reported.
            assert_eq!(status.success(), new && status.code() == Some(0), "{inject}");
            assert!(
                matches!(status.code(), Some(0 | 1)) || !has_to_go_on(name),
                "{inject}: {status}"
            );
            if status.code() == Some(1) && new {
                // Only the sync of the directory failed.
                assert!(matches!(&**name, "fsync" | "openat" | "open"), "{inject}");
            }
            assert_eq!(directory.names(), ["seen.umbel"], "{inject}: something is left");
        }
    }
}

/// Whether a program can continue after a failure of this call.
fn has_to_go_on(name: &str) -> bool {
    !matches!(name, "mmap" | "brk" | "munmap" | "mprotect" | "sigaltstack")
}
