//! `dedup --in-place`: files that are de-duplicated themselves, and lose nothing.

use crate::hostile::{gzip, zstd};
use crate::place::Place;

#[test]
fn each_line_stays_in_the_first_file_that_has_it() {
    let place = Place::new();
    place.write("a", "1\n2\n1\n").write("b", "2\n3\n3\n4").write("c", "1\n2\n");
    place.umbel("dedup --in-place a b c").gives(0, "", "");
    let read = |name: &str| String::from_utf8(place.read(name)).unwrap();
    assert_eq!((&*read("a"), &*read("b"), &*read("c")), ("1\n2\n", "3\n4", ""));
    assert_eq!(place.names(), ["a", "b", "c"]);
    // Once more changes nothing.
    place.umbel("dedup --in-place -v a b c").prints("");
    assert_eq!((&*read("a"), &*read("b"), &*read("c")), ("1\n2\n", "3\n4", ""));
    // Every table keeps its header.
    place.write("a", "id,n\n1,x\n2,y\n").write("b", "n,id\nz,1\nw,3\n");
    place.umbel("dedup --in-place --csv id a b").gives(0, "", "");
    assert_eq!((&*read("a"), &*read("b")), ("id,n\n1,x\n2,y\n", "n,id\nw,3\n"));
}

/// The second run would find all lines of the file in the state, and take them from their only copy.
#[test]
fn a_state_is_refused_and_nothing_changes() {
    let place = Place::new();
    place.write("a", "1\n2\n2\n3\n");
    for state in ["s", "redis://127.0.0.1:1/0?key=k"] {
        place.umbel(&format!("dedup --in-place --state {state} a")).fails(
            "--in-place would remove lines from their only copy that an earlier run with this --state has seen, in this file too: leave one of \
             them out, or write the lines that no earlier run has seen to another file with -o",
        );
    }
    assert_eq!((place.names(), place.read("a")), (vec!["a".to_owned()], b"1\n2\n2\n3\n".to_vec()));
}

#[test]
fn what_cannot_be_replaced_is_refused_before_any_file_is() {
    let place = Place::new();
    let text = "1\n1\n";
    place.write("a", text).write("p.gz", gzip(b"1\n1\n")).write("p.zst", zstd(b"1\n1\n"));
    let before = (place.read("a"), place.read("p.gz"), place.read("p.zst"));
    place.shell("ln a hard; ln -s a soft; mkdir d; mkfifo pipe").prints("");
    let packed = "is packed, and --in-place would write it unpacked: use -o";
    for (files, why) in [
        (
            "a -",
            "--in-place replaces files, and - is standard input: leave - or --in-place out"
                .to_owned(),
        ),
        ("a nowhere", "nowhere: No such file or directory (os error 2)".to_owned()),
        ("a d", "d: is a directory; name the files in it".to_owned()),
        ("a pipe", "pipe: expected a file that can be replaced, got a device or a pipe".to_owned()),
        ("a p.gz", format!("p.gz: {packed}")),
        ("a p.zst", format!("p.zst: {packed}")),
        ("a a", "a and a are one file: name it once".to_owned()),
        ("a ./a", "a and ./a are one file: name it once".to_owned()),
        ("a soft", "a and soft are one file: name it once".to_owned()),
        ("a hard", "a and hard are one file: name it once".to_owned()),
    ] {
        place.umbel(&format!("dedup --in-place {files}")).fails(&why);
    }
    place.umbel("dedup --in-place").refuses("required arguments were not provided");
    for other in [
        "-n 9",
        "-p 1%",
        "--window 9",
        "-o x",
        "-D x",
        "-d",
        "-u",
        "-c",
        "--total",
        "--keep-last",
        "--repeats",
        // The records that are skipped would be gone.
        "--skip-bad",
    ] {
        place.umbel(&format!("dedup --in-place {other} a")).refuses("cannot be used with");
    }
    assert_eq!((place.read("a"), place.read("p.gz"), place.read("p.zst")), before);
}

/// Wherever a run ends, every line is still in one of the files.
#[test]
fn no_line_is_lost_when_a_run_fails() {
    let place = Place::new();
    let (first, second) = ("{\"k\":1}\n{\"k\":1}\n", "{\"k\":1}\n{\"k\":2}\n{}\n");
    place.write("a", first).write("b", second);
    let ran = place.umbel("dedup --in-place --json /k a b");
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    // The first file was finished, and the second one stays as it was.
    assert_eq!(place.read("a"), b"{\"k\":1}\n");
    assert_eq!(place.read("b"), second.as_bytes());
    // Too little memory.
    let many: String = (0..60_000).map(|n| format!("{n}\n")).collect();
    place.write("a", "0\n0\n").write("b", &many);
    let ran = place.umbel("dedup --in-place --memory 1M a b");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("use a larger --memory, or leave --in-place out"), "{}", ran.err);
    assert_eq!((place.read("a"), place.read("b")), (b"0\n".to_vec(), many.clone().into_bytes()));
    // A full disk.
    let ran = place.shell("trap '' XFSZ; ulimit -f 64; umbel dedup --in-place a b");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.ends_with("umbel: b: File too large (os error 27)\n"), "{}", ran.err);
    assert_eq!(place.read("b"), many.as_bytes());
    assert_eq!(place.names(), ["a", "b"]);
}

#[test]
#[cfg(unix)]
fn a_file_keeps_its_mode_and_a_link_leads_to_it() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("real", "1\n1\n").shell("chmod 640 real; ln -s real link").prints("");
    place.umbel("dedup --in-place link").gives(0, "", "");
    assert!(place.path("link").is_symlink());
    assert_eq!(place.read("real"), b"1\n");
    assert_eq!(place.path("real").metadata().unwrap().permissions().mode() & 0o777, 0o640);
}
