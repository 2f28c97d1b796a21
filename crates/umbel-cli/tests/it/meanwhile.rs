//! Files that another program makes or changes while a run goes on, and outputs that are what the run reads.

use crate::place::{Place, Ran};

/// Runs a command that reads the pipe `p`, and this between its start and the end of its input. The pipe opens when
/// the command reads it, and then the command has looked at its arguments.
fn while_it_runs(place: &Place, command: &str, between: &str) -> Ran {
    let status = "wait $!; status=$?; rm p; exit $status";
    place.shell(&format!(
        "mkfifo p; {command} & exec 3>p; {between}; printf 'a\\nb\\na\\n' >&3; exec 3>&-; {status}"
    ))
}

#[test]
fn a_new_file_does_not_replace_one_that_has_appeared_meanwhile() {
    for command in [
        "umbel build -n 10 -o new p",
        "umbel build -o new p",
        "umbel build --static -o new p",
        "umbel dedup -o new p",
        "umbel dedup -c -o new p",
        "umbel dedup -D new p",
        "umbel dedup --state new p",
        "umbel dedup --state new -n 10 p",
    ] {
        let place = Place::new();
        let ran = while_it_runs(&place, command, "echo precious > new");
        assert_eq!(ran.code, Some(2), "{command}: {}", ran.err);
        let told = "umbel: new: has appeared while this run went on, and stays as it is";
        assert!(ran.err.lines().any(|line| line.starts_with(told)), "{command}: {}", ran.err);
        assert_eq!(place.read("new"), b"precious\n", "{command}");
        assert_eq!(place.names(), ["new"], "{command}");
    }
    // --force replaces also what appears later.
    for command in ["umbel build --force -o new p", "umbel dedup --force -o new p"] {
        let place = Place::new();
        let ran = while_it_runs(&place, command, "echo precious > new");
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.err);
        assert_ne!(place.read("new"), b"precious\n", "{command}");
        assert_eq!(place.names(), ["new"], "{command}");
    }
}

#[test]
fn of_two_runs_that_make_one_file_the_later_one_fails() {
    let place = Place::new();
    let second = "printf 'c\\n' | umbel build -q -o same; cp same first";
    let ran = while_it_runs(&place, "umbel build -q -o same p", second);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let told = "umbel: same: has appeared while this run went on, and stays as it is; --force replaces it\n";
    assert_eq!(ran.err, told);
    assert_eq!(place.read("same"), place.read("first"));
    assert_eq!(place.names(), ["first", "same"]);
}

/// As on FAT, and on some file systems of networks and containers.
#[test]
#[cfg(target_os = "linux")]
fn new_files_are_made_where_there_are_no_links() {
    let place = Place::new();
    if !place.has_strace() {
        return;
    }
    let command = "strace -f -qq -o /dev/null -e trace=linkat -e inject=linkat:error=EPERM umbel build -q -o new p";
    let ran = while_it_runs(&place, command, "true");
    ran.gives(0, "", "");
    assert_eq!(place.names(), ["new"]);
    place.shell("rm new").prints("");
    let ran = while_it_runs(&place, command, "echo precious > new");
    ran.gives(
        2,
        "",
        "umbel: new: has appeared while this run went on, and stays as it is; --force replaces it\n",
    );
    assert_eq!(
        (place.names(), place.read("new")),
        (vec!["new".to_owned()], b"precious\n".to_vec())
    );
}

#[test]
fn a_file_that_was_changed_meanwhile_is_not_replaced() {
    let changes = [
        ("another file", "cp other next; mv next f"),
        ("more bytes", "echo more >> f"),
        ("the same bytes written again", "touch -d '2001-02-03' f"),
        ("no file", "rm f"),
    ];
    for command in
        ["umbel add f p", "umbel remove f p", "umbel dedup --state s p", "umbel dedup --state t p"]
    {
        for (what, change) in changes {
            let place = Place::new();
            place.umbel_with("build -q --deletable -n 10 -o f", "a\nx\n").gives(0, "", "");
            place.umbel_with("build -q --deletable -n 10 -o other", "y\n").gives(0, "", "");
            place.umbel_with("dedup --state s", "a\n").gives(0, "a\n", "");
            place.umbel_with("dedup -n 10 --state t", "a\n").gives(0, "a\n", "");
            let name =
                ["f", "s", "t"].into_iter().find(|name| command.contains(&format!(" {name} p")));
            let name = name.unwrap();
            let change = change.replace(" f", &format!(" {name}"));
            place.shell(&format!("cp -p {name} expected && cd . && mkdir d && cp -p {name} other d && cd d && {change}")).gives(0, "", "");
            let expected =
                place.path(&format!("d/{name}")).exists().then(|| place.read(&format!("d/{name}")));
            let before = place.names();
            let ran = while_it_runs(&place, command, &change);
            assert_eq!(ran.code, Some(2), "{command}, {what}: {}", ran.err);
            let told = format!(
                "umbel: {name}: another program has changed it while this run went on, and it stays as that program left it: \
                 run the command again\n"
            );
            assert!(ran.err.ends_with(&told), "{command}, {what}: {}", ran.err);
            let after = place.path(name).exists().then(|| place.read(name));
            assert!(after == expected, "{command}, {what}");
            let names: Vec<String> = place.names();
            assert!(names.iter().all(|name| before.contains(name)), "{command}, {what}: {names:?}");
        }
    }
}

#[test]
fn standard_output_that_is_a_file_of_the_run_is_refused() {
    let place = Place::new();
    place.umbel_with("build -q -o f", "a\n").gives(0, "", "");
    place.umbel_with("build -q -o g", "b\n").gives(0, "", "");
    place.umbel_with("dedup --state s", "z\n").gives(0, "z\n", "");
    place
        .write("a", "a\nb\na\n")
        .write("c", "a\nc\nc\n")
        .write("d", "")
        .shell("ln a hard; ln -s a soft")
        .prints("");
    for (command, one) in [
        ("umbel dedup --state s a >> s", "--state s"),
        ("umbel dedup --force -D d a >> d", "-D d"),
        ("umbel dedup --repeats c c >> c", "the input c"),
        ("umbel dedup a >> hard", "the input a"),
        ("umbel dedup soft >> a", "the input soft"),
        ("umbel dedup -c a >> a", "the input a"),
        ("umbel dedup --total a >> a", "the input a"),
        ("umbel dedup < a >> a", "standard input"),
        ("umbel dedup c - < a >> a", "standard input"),
        ("umbel check f a >> f", "the filter f"),
        ("umbel check f c >> c", "the input c"),
        ("umbel check -c f c >> c", "the input c"),
        ("umbel check f < a >> a", "standard input"),
        ("umbel check --item a f >> f", "the filter f"),
        ("umbel dedup /dev/stdin < a >> a", "the input /dev/stdin"),
        ("umbel build -o - a >> a", "the input a"),
        ("umbel build -o new --report json a >> a", "the input a"),
        ("umbel add --report json f a >> a", "the input a"),
        ("umbel add --report json f a >> f", "the filter f"),
        ("umbel merge -o - f g >> f", "the input f"),
        ("umbel info f >> f", "the input f"),
        ("umbel verify f g >> g", "the input g"),
        ("umbel bench a >> a", "the input a"),
    ] {
        let names = place.names();
        let before: Vec<_> = names.iter().map(|name| place.read(name)).collect();
        let ran = place.shell(command);
        let told = format!(
            "umbel: {one} and standard output are one file, which would be lost: redirect standard output to another file\n"
        );
        assert_eq!((ran.code, &*ran.err), (Some(2), &*told), "{command}");
        assert_eq!(place.names(), names, "{command}");
        let after: Vec<_> = names.iter().map(|name| place.read(name)).collect();
        assert!(after == before, "{command}: a file has changed");
    }
    // Nothing is printed there, or it is standard output by another name.
    for command in [
        "umbel check -q f a >> a",
        "umbel verify -q f >> f",
        "cp a e; umbel check --item a f < e >> e",
        "umbel dedup -D /dev/stdout a > out",
        "umbel dedup -o /dev/stdout a > out",
        "umbel dedup -o whole a >> a",
        "umbel dedup a < a > out",
    ] {
        let ran = place.shell(command);
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.err);
    }
    assert_eq!(place.read("a"), b"a\nb\na\n");
}
