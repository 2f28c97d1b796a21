//! `umbel build`, `umbel add` and `umbel remove`.

use crate::place::{FAMILIES, Place, SECRET};

/// A thousand keys.
fn keys() -> String {
    (1..=1000).map(|n| format!("key {n}\n")).collect()
}

fn place() -> Place {
    let place = Place::new();
    place.write("keys", keys());
    place
}

#[test]
fn every_family_finds_every_key() {
    let place = place();
    for family in FAMILIES {
        for count in ["", "-n 1000"] {
            let ran = place.umbel(&format!("build --family {family} {count} --force -o f keys"));
            assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{family}: {}", ran.err);
            assert!(ran.err.starts_with(&format!("umbel: {family} in ")), "{}", ran.err);
            place.umbel("check -v f keys").gives(1, "", "");
            place.umbel("check -c f keys").gives(0, "1000\n", "");
        }
    }
    assert_eq!(place.names(), ["f", "keys"]);
}

#[test]
fn the_family_follows_from_what_is_needed() {
    let place = place();
    for (args, said) in [
        ("", "umbel: blocked in 1.2 KiB, wrong for "),
        ("--static", "umbel: ribbon in 896 bytes, wrong for 0.781%\n"),
        ("--deletable", "umbel: cuckoo in 1.3 KiB, wrong for 0.716%\n"),
    ] {
        let ran = place.umbel(&format!("build {args} -o f --force keys"));
        assert!(ran.err.starts_with(said), "{}", ran.err);
    }
    place.umbel("build --static --deletable -o g keys").refuses("cannot be used with");
    place.umbel("build --static --family xor -o g keys").refuses("cannot be used with");
    place.umbel("build --family bloo -o g keys").refuses("invalid value 'bloo'");
    place.umbel("build keys").refuses("--output <FILE>");
}

#[test]
fn keys_come_from_anywhere() {
    let place = place();
    place.umbel_with("build -o a -", keys()).prints("");
    place.umbel_with("build -o b", keys()).prints("");
    place.umbel("build -o c keys").prints("");
    assert!(place.read("a") == place.read("b") && place.read("b") == place.read("c"));
    place.umbel("build -o d nowhere").fails("nowhere: No such file or directory (os error 2)");
    // Fields, columns, cases: as everywhere.
    place.umbel_with("build -o k -k 2", "1 x\n2 y\n").prints("");
    place.umbel("check k --item x --item 1").prints("x\n");
    place.umbel_with("build -o v --csv b", "a,b\n1,x\n").prints("");
    place.umbel("check v --item x --item b").prints("x\n");
    place.umbel_with("build -o j --json /a", "{\"a\":\"x\"}").prints("");
    place.umbel("check j --item x").prints("x\n");
    place.umbel_with("build -o i -i", "Äx\n").prints("");
    place.umbel("check -i i --item äX").prints("äX\n");
    place.umbel("check i --item äX").gives(1, "", "");
}

#[test]
fn copies_count_once() {
    let place = place();
    for kind in ["--static", "--deletable", "--family quotient", ""] {
        place.umbel(&format!("build {kind} -o once --force keys")).prints("");
        place.umbel(&format!("build {kind} -o twice --force keys keys")).prints("");
        assert_eq!(place.read("once"), place.read("twice"), "{kind}");
    }
}

#[test]
fn no_keys_are_a_set_too() {
    let place = Place::new();
    for kind in ["", "--static", "--deletable"] {
        let ran = place.umbel(&format!("build {kind} -o f --force /dev/null"));
        assert!(ran.err.ends_with("wrong for 0\n"), "{}", ran.err);
        place.umbel_with("check f", "a\n\n").gives(1, "", "");
    }
}

#[test]
fn memory_sets_the_rate() {
    let place = place();
    let ran = place.umbel("build -o m --memory 1k keys");
    assert!(ran.err.starts_with("umbel: blocked in 1.0 KiB, wrong for "), "{}", ran.err);
    place.umbel("build -o s --static --memory 2k keys keys").prints("");
    assert!(place.read("s").len() < 2048 + 300);
    place.umbel("check -c s keys").prints("1000\n");
    place.umbel("build -o n --memory 10 keys").fails("10 bytes are too little for 1,000 keys");
    place
        .umbel("build -o n --memory 1k -p 1e-6 keys")
        .fails("the filter takes 3.9 KiB, more than 1.0 KiB: a larger -p makes it smaller");
    assert_eq!(place.names(), ["keys", "m", "s"]);
}

#[test]
fn more_keys_than_planned_are_told_or_refused() {
    let place = place();
    let ran = place.umbel("build -o f -n 100 keys");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.err.contains("more than the 100 that were planned for: -n is too small"),
        "{}",
        ran.err
    );
    place.umbel("check -c f keys").prints("1000\n");
    place
        .umbel("build -o g -n 100 --deletable keys")
        .fails("-n must be as large as the number of keys, equal ones counted: the filter is full");
    assert_eq!(place.names(), ["f", "keys"]);
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let place = place();
    place
        .write("f", "mine")
        .umbel("build -o f keys")
        .fails("f: is there already; --force replaces it");
    assert_eq!(place.read("f"), b"mine");
    place.umbel("build -o f --force keys").prints("");
    place.umbel("check -q f --item key").gives(1, "", "");
    // A name that leads elsewhere is replaced, not what it leads to.
    place.write("other", "theirs").shell("ln -s other link").prints("");
    place.umbel("build -o link keys").fails("link: is there already; --force replaces it");
    place.umbel("build -o link --force keys").prints("");
    assert_eq!(place.read("other"), b"theirs");
    place.umbel("build -o . --force keys").fails(".: is a directory");
    place.umbel("build -o no/where keys").fails("no/where: No such file or directory (os error 2)");
    // The keys themselves, if somebody insists.
    place.umbel("build -o keys --force keys").prints("");
    place.umbel("verify keys").prints("keys: whole, blocked, 1.2 KiB\n");
}

#[test]
fn standard_output_takes_a_filter_but_no_terminal_does() {
    let place = place();
    place.shell("umbel build -o - keys > f").prints("");
    place.umbel("build -o g keys").prints("");
    assert_eq!(place.read("f"), place.read("g"));
    if place.shell("command -v script").code == Some(0) {
        let ran = place.shell("script -qec 'umbel build -o - keys' /dev/null </dev/null");
        let refused =
            "umbel: a filter is not for a terminal: -o FILE, or redirect standard output\r\n";
        assert_eq!((ran.code, &*ran.out), (Some(2), refused));
    }
}

#[test]
fn hashes_are_portable_or_secret() {
    let place = place();
    place.umbel("build -o a keys").prints("");
    place.umbel("build -o b --hash portable --seed 0 keys").prints("");
    place.umbel("build -o c --seed 1 keys").prints("");
    assert!(place.read("a") == place.read("b") && place.read("a") != place.read("c"));
    for name in ["d", "e"] {
        let mut build = place.process();
        build.env_remove(SECRET.0).args(["build", "-o", name, "--hash", "keyed", "keys"]);
        assert!(build.output().unwrap().status.success());
    }
    assert_ne!(place.read("d"), place.read("e"), "every secret is another");
    place.umbel("check -c d keys").prints("1000\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = place.path("d").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "a secret is for its owner");
    }
}

/// What the other tests rely on.
#[test]
fn tests_choose_the_secret() {
    let place = place();
    for kind in ["build --force --hash keyed -o", "dedup -c --state", "dedup -c --exact --state"] {
        let files = ["d", "e"].map(|name| {
            let ran = place.umbel_with(&format!("{kind} {name}"), "a\nb\n");
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            place.read(name)
        });
        assert_eq!(files[0], files[1], "{kind}");
        place.shell("rm d e").prints("");
    }
}

#[test]
fn threads_change_nothing() {
    let place = place();
    for family in ["ribbon", "fuse", "xor"] {
        for threads in 1..=3 {
            place
                .umbel(&format!("build --family {family} -j {threads} -o f{threads} --force keys"))
                .prints("");
        }
        assert!(place.read("f1") == place.read("f2") && place.read("f1") == place.read("f3"));
    }
}

#[test]
fn keys_are_added_and_removed() {
    let place = place();
    place.umbel("build -o f --deletable -n 2000 /dev/null").prints("");
    place.umbel("add f keys").gives(
        0,
        "",
        "umbel: 997 new keys added, 3 that were or seemed to be there; wrong for 0.364% now\n",
    );
    place.umbel("check -c f keys").prints("1000\n");
    place.umbel_with("remove f", "key 1\nkey 2\nno key\n").gives(
        0,
        "",
        "umbel: 2 keys removed, 1 not there; wrong for 0.363% now\n",
    );
    place.umbel("check f --item").refuses("a value is required");
    place.run(&["check", "f", "--item", "key 1", "--item", "key 3"], "").prints("key 3\n");
    // A filter that is for everybody stays so, and a secret stays in it.
    place.umbel("build -o s --hash keyed -n 10 /dev/null").prints("");
    place.umbel_with("add s", "a\nb\n").gives(
        0,
        "",
        "umbel: 2 new keys added, 0 that were or seemed to be there; wrong for 1 in 16,384 now\n",
    );
    place.umbel("check s --item a").prints("a\n");
}

#[cfg(unix)]
#[test]
fn a_changed_filter_has_the_readers_it_had() {
    let place = place();
    place.umbel("build -o f keys").prints("");
    for mode in ["640", "600", "444"] {
        place
            .shell(&format!("chmod {mode} f; echo x | umbel add f; stat -c %a f"))
            .prints(&format!("{mode}\n"));
    }
    place.umbel("build -o s --hash keyed keys").prints("");
    place.shell("chmod 644 s; echo x | umbel add s; stat -c %a s").prints("600\n");
}

#[test]
fn what_goes_wrong_changes_nothing() {
    let place = place();
    place.umbel("build -o full --deletable keys").prints("");
    place.umbel("build -o still --static keys").prints("");
    place.umbel("build -o bits keys").prints("");
    let before = ["full", "still", "bits"].map(|name| place.read(name));
    let more: String = (0..2000).map(|n| format!("more {n}\n")).collect();
    place
        .umbel_with("add full", &more)
        .fails("no room is left: build a larger filter: the filter is full");
    place
        .umbel_with("add still", "a\n")
        .fails("still: a ribbon filter cannot take keys once it is built");
    place.umbel_with("remove still", "a\n").fails("still: a ribbon filter cannot remove keys");
    place.umbel_with("remove bits", "a\n").fails("bits: a blocked filter cannot remove keys");
    place.umbel("add bits nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.umbel("add keys keys").fails("keys: these bytes do not begin as a filter does");
    place.umbel("add none keys").fails("none: No such file or directory (os error 2)");
    place.umbel("add . keys").fails(".: this is not a file");
    assert_eq!(before, ["full", "still", "bits"].map(|name| place.read(name)));
    assert_eq!(place.names(), ["bits", "full", "keys", "still"]);
}
