//! Files that were written once and must open for ever: see `examples/golden`.

use crate::files::Directory;
use crate::filters::{Hashed, Numbered, Sort, Visitor};
use crate::golden_table::{ABSENT, Line, directory, name, visit_all};
use std::borrow::Borrow;
use std::fs;
use std::path::Path;
use umbel::any::AnyFilter;
use umbel::format::{OpenError, Opening, Saved, Stored};
use umbel::hash::Digester;
use umbel::{InvalidBytes, Keyed};

/// What the table says, of those hashes that are there.
fn table() -> Vec<String> {
    let table = fs::read_to_string(directory().join("table.txt")).unwrap();
    let there = |line: &&str| cfg!(feature = "crc64") || !line.contains("-crc64-");
    table.lines().filter(there).map(str::to_owned).collect()
}

/// Reads every file in every way.
struct Reader {
    scratch: Directory,
    lines: Vec<String>,
}

impl Visitor for Reader {
    fn visit<S, T, H>(&mut self, secret: bool)
    where
        S: Sort<T, H>,
        T: ?Sized + Numbered,
        H: Hashed + Digester<T> + Stored<T>,
    {
        let name = name::<S, T, H>(secret);
        let path = directory().join(&name);
        let bytes = fs::read(&path).unwrap();
        let filter: S::Filter = Opening::new().hasher(H::hasher()).load(&path).unwrap();
        assert!(S::Filter::from_bytes_with_hasher(&bytes, H::hasher()).unwrap() == filter);
        let line = Line::of(name.clone(), &bytes, S::KEYS, |number| S::has(&filter, number));
        self.lines.push(line.to_string());
        assert!(line.found as u64 == S::KEYS || S::NAME == "stable", "{line}");
        // It is written as it was.
        let again = self.scratch.path(&name);
        let saved = if secret { filter.save_with_secret(&again) } else { filter.save(&again) };
        saved.unwrap();
        assert!(fs::read(&again).unwrap() == bytes, "{name} is written in another way");
        // A secret that is not in the file must be brought.
        match S::Filter::load(&path) {
            Ok(alone) => assert!(alone == filter),
            Err(OpenError::Invalid(InvalidBytes::Secret)) => {
                assert!(H::HASH == "keyed" && !secret, "{name}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
        let brought = H::HASH == "keyed" && !secret;
        check_any(&path, &bytes, brought, &self.scratch, secret, &S::KEYS, &|number| {
            (T::numbered(number).borrow().to_bytes(), S::has(&filter, number))
        });
    }
}

/// The same file without knowing what is in it.
fn check_any(
    path: &Path,
    bytes: &[u8],
    brought: bool,
    scratch: &Directory,
    secret: bool,
    keys: &u64,
    ask: &dyn Fn(u64) -> (Vec<u8>, bool),
) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let how = if brought { Opening::new().hasher(Keyed::hasher()) } else { Opening::new() };
    let any = AnyFilter::load_as(path, how);
    if name.starts_with("map-") {
        let error = any.unwrap_err();
        let unknown = InvalidBytes::Unknown { field: "family", got: 14 };
        assert!(matches!(error, OpenError::Invalid(got) if got == unknown), "{name}: {error}");
        return;
    }
    let any = any.unwrap_or_else(|error| panic!("{name}: {error}"));
    let title = format!("{}-{}-", any.family(), any.hasher().name());
    let same = name.replace("-of-time", "").replace("-segments", "");
    assert!(same.starts_with(&title), "{name}: {title}");
    for number in 0..keys + ABSENT {
        let (key, found) = ask(number);
        assert_eq!(any.contains(&key), Ok(found), "{name}: {number}");
    }
    let again = scratch.path("any.umbel");
    let saved = if secret { any.save_with_secret(&again) } else { any.save(&again) };
    saved.unwrap();
    assert!(fs::read(&again).unwrap() == bytes, "{name} is written in another way");
}

#[test]
fn golden_files_open_and_answer_as_they_did() {
    let mut reader = Reader { scratch: Directory::new("golden"), lines: Vec::new() };
    visit_all(&mut reader);
    assert_eq!(reader.lines, table());
    assert!(reader.lines.len() >= 140);
}

#[test]
fn the_table_lists_the_files_that_are_there() {
    let table = fs::read_to_string(directory().join("table.txt")).unwrap();
    let mut listed: Vec<&str> = table.lines().map(|line| line.split(' ').next().unwrap()).collect();
    listed.sort_unstable();
    let entries = fs::read_dir(directory()).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    let mut there: Vec<String> = entries.map(|entry| name(entry).unwrap()).collect();
    there.retain(|name| name != "table.txt");
    there.sort_unstable();
    assert_eq!(listed, there);
}
