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
            // A static filter holds what is read.
            if count == "-n 1000" && FAMILIES[8..].contains(&family) {
                continue;
            }
            let ran = place.umbel(&format!("build --family {family} {count} --force -o f keys"));
            assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{family}: {}", ran.err);
            // Of a key that seems to be there already, streamed filters do not know whether it is a copy.
            let said = ran.err.starts_with("umbel: 1,000 keys, ")
                || ran.err.starts_with("umbel: about 1,000 keys");
            assert!(said && ran.err.contains(&format!(" keys, {family}, ")), "{}", ran.err);
            assert!(ran.err.contains(", false positive rate "), "{}", ran.err);
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
        ("", "umbel: 1,000 keys, blocked, 1.2 KiB, false positive rate "),
        ("--static", "umbel: 1,000 keys, ribbon, 896 bytes, false positive rate 0.78 %\n"),
        ("--deletable", "umbel: 1,000 keys, cuckoo, 1.3 KiB, false positive rate 0.72 %\n"),
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
        assert!(
            ran.err.starts_with("umbel: 0 keys, ") && ran.err.ends_with("false positive rate 0\n"),
            "{}",
            ran.err
        );
        place.umbel_with("check f", "a\n\n").gives(1, "", "");
    }
}

#[test]
fn memory_sets_the_rate() {
    let place = place();
    let ran = place.umbel("build -o m --memory 1k keys");
    assert!(
        ran.err.starts_with("umbel: 1,000 keys, blocked, 1.0 KiB, false positive rate "),
        "{}",
        ran.err
    );
    place.umbel("build -o s --static --memory 2k keys keys").prints("");
    assert!(place.read("s").len() < 2048 + 300);
    place.umbel("check -c s keys").prints("1000\n");
    place
        .umbel("build -o n --memory 10 keys")
        .fails("a blocked filter of 1,000 keys does not fit into 10 bytes: use a larger --memory");
    place
        .umbel("build -o n --memory 1k -p 1e-6 keys")
        .fails("the filter takes 3.9 KiB, more than the 1.0 KiB of --memory: use a larger -p");
    assert_eq!(place.names(), ["keys", "m", "s"]);
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
    // What a link leads to is replaced, and not the link.
    place.write("other", "theirs").shell("ln -s other link").prints("");
    place.umbel("build -o link keys").fails("link: is there already; --force replaces it");
    place.umbel("build -o link --force keys").prints("");
    assert_eq!(place.read("other"), place.read("f"));
    assert!(place.path("link").is_symlink());
    place.umbel("build -o . --force keys").fails(".: is a directory");
    place.umbel("build -o no/where keys").fails("no/where: No such file or directory (os error 2)");
    place.umbel("verify f").prints("f: whole, blocked, 1.2 KiB\n");
}

#[test]
fn standard_output_takes_a_filter_but_no_terminal_does() {
    let place = place();
    place.shell("umbel build -o - keys > f").prints("");
    place.umbel("build -o g keys").prints("");
    assert_eq!(place.read("f"), place.read("g"));
    if place.shell("command -v script").code == Some(0) {
        let ran = place.shell("script -qec 'umbel build -o - keys' /dev/null </dev/null");
        let refused = "umbel: standard output is a terminal, and a filter is binary: write it with -o FILE, or redirect standard output\r\n";
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
    for kind in
        ["build --force --hash keyed -o", "dedup --total --state", "dedup --total --exact --state"]
    {
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
        "umbel: 1,000 keys added, 3 of them were already in it, or seemed to be; holds 1,000 of 2,000 planned keys; false positive rate 0.36 %\n",
    );
    place.umbel("check -c f keys").prints("1000\n");
    place.umbel_with("remove f", "key 1\nkey 2\nno key\n").gives(
        0,
        "",
        "umbel: 2 keys removed, 1 not found; holds 998 of 2,000 planned keys; false positive rate 0.36 %\n",
    );
    place.umbel("check f --item").refuses("a value is required");
    place.run(&["check", "f", "--item", "key 1", "--item", "key 3"], "").prints("key 3\n");
    // A filter that is for everybody stays so, and a secret stays in it.
    place.umbel("build -o s --hash keyed -n 10 /dev/null").prints("");
    place.umbel_with("add s", "a\nb\n").gives(
        0,
        "",
        "umbel: 2 new keys added; holds about 2 of 10 planned keys; false positive rate 6.1e-5\n",
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
        .fails("full: full after 1,074 keys (planned for 1,000): nothing was added, the filter still holds 1,000 keys. Build one with a larger -n");
    place
        .umbel_with("add still", "a\n")
        .fails("still: a ribbon filter cannot take keys once it is built");
    place.umbel_with("remove still", "a\n").fails("still: a ribbon filter cannot remove keys");
    place.umbel_with("remove bits", "a\n").fails("bits: a blocked filter cannot remove keys");
    place.umbel("add bits nowhere").fails("nowhere: No such file or directory (os error 2)");
    place.umbel_with("add keys", "a\n").fails("keys: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)");
    place.umbel("add none keys").fails("none: No such file or directory (os error 2)");
    place.umbel("add . keys").fails(".: this is not a file");
    assert_eq!(before, ["full", "still", "bits"].map(|name| place.read(name)));
    assert_eq!(place.names(), ["bits", "full", "keys", "still"]);
}

/// Whatever is written: a filter that changes, a state, a new filter, a file of duplicates, a drawing.
#[cfg(unix)]
#[test]
fn links_are_followed_and_modes_kept() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("keys", "a\nb\na\n").shell("mkdir real");
    for (name, make, change) in [
        ("f", "build -o real/f -n 100 --deletable keys", "add f keys"),
        ("r", "build -o real/r -n 100 --deletable keys", "remove r keys"),
        ("s", "dedup --state real/s keys", "dedup --state s keys"),
        ("b", "build -o real/b keys", "build --force -o b keys"),
        ("m", "build -o real/m keys", "merge --force -o m real/b real/b"),
        ("d", "dedup -D real/d keys", "dedup --force -D d keys"),
        ("p", "plan -n 9 --svg real/p", "plan -n 9 --force --svg p"),
    ] {
        assert_eq!(place.umbel(make).code, Some(0), "{make}");
        place.shell(&format!("chmod 640 real/{name}; ln -s real/{name} {name}")).prints("");
        let inode = place.shell(&format!("stat -c %i real/{name}")).out;
        let ran = place.umbel(change);
        assert_eq!(ran.code, Some(0), "{change}: {}", ran.err);
        assert!(place.path(name).is_symlink(), "{change}");
        assert_ne!(place.shell(&format!("stat -c %i real/{name}")).out, inode, "{change}");
        let mode = place.path(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{change}");
    }
    // A link to a file that is not there yet, and a link to itself.
    place.shell("ln -s real/new.umbel new; ln -s loop loop").prints("");
    place.umbel("dedup --state new keys").prints("a\nb\n");
    place.umbel("dedup --state real/new.umbel keys").prints("");
    place.umbel("dedup --state loop keys").refuses("loop: ");
}

#[cfg(unix)]
#[test]
fn names_of_open_files_are_written_to_and_not_replaced() {
    let place = Place::new();
    place.write("keys", "a\nb\na\n").umbel("build -o f keys").prints("");
    place.shell("ln -s /dev/stdout out").prints("");
    for name in ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "out"] {
        place.shell(&format!("echo first > g; umbel build -o {name} keys 2>&- >> g")).prints("");
        assert_eq!(place.read("g"), [b"first\n", &place.read("f")[..]].concat(), "{name}");
        place.shell(&format!("umbel build -o {name} keys 2>&- | cmp - f")).prints("");
        // Lines and duplicates in one file, none over another.
        place.shell(&format!("umbel dedup -D {name} keys > g; sort g")).prints("a\na\nb\n");
    }
    place.shell("test -L /dev/stdout && test -L out").prints("");
    place
        .umbel("dedup --state /dev/stdout keys")
        .fails("/dev/stdout: expected a file that can be replaced, got a device or an open file");
}

#[test]
fn a_filter_that_is_not_possible_says_what_to_change() {
    let place = place();
    place.umbel("build -n 1e15 -o f keys").fails(
        "1,000,000,000,000,000 keys at a false positive rate of 1.00 % take more than the 32.0 TiB that a filter may have: \
         use a smaller -n or a larger -p",
    );
    place.umbel("build -n 1e15 -p 1e-9 -o f keys").fails(
        "1,000,000,000,000,000 keys at a false positive rate of 1.0e-9 are not possible, because digests have 64 bits: \
         use a -p of at least 0.022 %, or a smaller -n",
    );
    assert_eq!(place.names(), ["keys"]);
}
