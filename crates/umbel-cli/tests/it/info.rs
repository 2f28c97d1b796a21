//! `umbel info` and `umbel verify`.

use crate::place::{FAMILIES, Place};
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    let keys: String = (0..100).map(|n| format!("{n}\n")).collect();
    place.write("keys", keys);
    place
}

#[test]
fn all_that_is_known_is_told() {
    let place = place();
    place.umbel("build -o f --family bloom keys").prints("");
    place.umbel("info f").gives(
        0,
        "file              f\n\
         family            bloom\n\
         format            1\n\
         hash              portable\n\
         secret in file    no\n\
         key type          bytes\n\
         size              128 bytes\n\
         keys planned      100\n\
         keys estimated    98\n\
         capacity left     2\n\
         bits              1,023\n\
         probes            5\n\
         fill              37.9 %\n\
         rate planned      0.87 %\n\
         rate now          0.78 %\n\
         overfull          no\n\
         checksums         match\n",
        "",
    );
}

#[test]
fn programs_get_json() {
    let place = place();
    for family in FAMILIES {
        place.umbel(&format!("build --family {family} -o {family} keys")).prints("");
    }
    let ran = place.umbel(&format!("info --json {}", FAMILIES.join(" ")));
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    let objects: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(objects.len(), FAMILIES.len(), "one a file");
    for (object, family) in objects.iter().zip(FAMILIES) {
        assert_eq!((&object["file"], &object["family"]), (&family.into(), &family.into()));
        assert_eq!(object["checksums"], "match");
        assert!(object["rate_now"].as_f64().is_some_and(|rate| rate < 0.02), "{object}");
        let keys = ["keys_in_it", "keys_estimated"].iter().find_map(|name| object[name].as_u64());
        assert!(keys.is_some_and(|keys| keys.abs_diff(100) < 20), "{object}");
    }
}

#[test]
fn a_filter_with_far_more_keys_than_planned_is_overfull() {
    let place = place();
    place.umbel("build -q --overfull -n 20 -o f keys");
    let ran = place.umbel("info --json f");
    let facts: Value = serde_json::from_str(&ran.out).expect("an object");
    assert_eq!((&facts["keys_planned"], &facts["overfull"]), (&20.into(), &true.into()), "{facts}");
    assert!(facts["rate_planned"].as_f64().is_some_and(|rate| rate < 0.011), "{facts}");
    // What grows, or is built whole, has no plan to pass.
    for family in ["scalable", "ribbon"] {
        place.umbel(&format!("build -q --force --family {family} -o f keys"));
        assert!(!place.umbel("info f").out.contains("overfull"), "{family}");
    }
}

#[test]
fn windows_and_secrets_are_told_but_no_secret_is() {
    let place = place();
    place.umbel("dedup --total --state s --window 50 keys").prints("100\n");
    let ran = place.umbel("info s");
    assert!(ran.out.contains("\nhash              keyed\nsecret in file    yes\n"), "{}", ran.out);
    assert!(ran.out.contains("\nwindow insertions 50\n"), "{}", ran.out);
    place.umbel("dedup --total --state t --window 1.5h -n 200 keys").prints("100\n");
    assert!(place.umbel("info t").out.contains("\nwindow seconds    5400.0\n"));
}

#[test]
fn several_files_are_told_one_by_one() {
    let place = place();
    place.umbel("build -o a keys").prints("");
    place.umbel("build -o b keys").prints("");
    let (one, two) = (place.umbel("info a").out, place.umbel("info b").out);
    place.umbel("info a b").gives(0, &format!("{one}\n{two}"), "");
    place.umbel("info a nowhere keys b").gives(
        2,
        &format!("{one}\n{two}"),
        "umbel: nowhere: No such file or directory (os error 2)\n\
         umbel: keys: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)\n",
    );
    place.umbel("info").refuses("<FILE>");
}

#[test]
fn whole_files_verify() {
    let place = place();
    place.umbel("build -o a --static keys").prints("");
    place.umbel("build -o b keys").prints("");
    place.umbel("verify a b").gives(
        0,
        "a: whole, ribbon, 96 bytes\nb: whole, blocked, 128 bytes\n",
        "",
    );
    place.umbel("verify -q a b").gives(0, "", "");
    place.umbel("verify").refuses("<FILE>");
}

#[test]
fn damaged_files_do_not() {
    let place = place();
    for kind in ["--static", "--family bloom", "--deletable"] {
        place.umbel(&format!("build {kind} -o f --force keys")).prints("");
        let whole = place.read("f");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            // To run a program for every byte would take long.
            if at % 29 == 0 || at + 1 == whole.len() {
                let ran = place.write("g", &bytes).umbel("verify f g");
                assert_eq!(ran.code, Some(1), "{kind} {at}: {}", ran.err);
                assert!(ran.out.starts_with("f: whole") && ran.err.starts_with("umbel: g: "));
                let ran = place.umbel("check g keys");
                assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{kind} {at}");
                assert_eq!(place.umbel("info g").code, Some(2));
            }
        }
        for length in [0, 1, 8, 100, whole.len() - 1] {
            let ran = place.write("g", &whole[..length]).umbel("verify -q g");
            assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{kind} {length}: {}", ran.err);
        }
        let ran = place.write("g", [&whole[..], b"more"].concat()).umbel("verify g");
        assert_eq!(ran.code, Some(1), "{}", ran.err);
    }
}

#[test]
fn files_that_cannot_be_read_are_another_matter() {
    let place = place();
    place.umbel("build -o f keys").prints("");
    place.umbel("verify keys nowhere f").gives(
        2,
        "f: whole, blocked, 128 bytes\n",
        "umbel: keys: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)\n\
         umbel: nowhere: No such file or directory (os error 2)\n",
    );
    place.umbel("verify keys").gives(
        1,
        "",
        "umbel: keys: expected a filter, found a file that is none (it does not begin with umbel's magic bytes)\n",
    );
    place.umbel("verify .").gives(2, "", "umbel: .: this is not a file\n");
}
