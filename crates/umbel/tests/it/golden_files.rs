//! Files of earlier versions, which must open for ever: see `examples/golden`.

use crate::files::Directory;
use crate::filters::{Hashed, Numbered, Sort, Visitor, visit_families};
use crate::golden_table::{ABSENT, Hashing, Line, directory, name, visit_all};
use std::fs;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::format::{OpenError, Opening, Saved, Stored};
use umbel::hash::{Digester, Portable};
use umbel::{InvalidBytes, Keyed};

/// The lines of the table, for the hashes that are enabled.
fn table() -> Vec<String> {
    let table = fs::read_to_string(directory().join("table.txt")).unwrap();
    let there = |line: &&str| cfg!(feature = "crc64") || !line.contains("-crc64-");
    table.lines().filter(there).map(str::to_owned).collect()
}

/// Reads every file, with a hasher that is chosen at run time.
struct Reader {
    scratch: Directory,
    lines: Vec<String>,
}

impl Visitor<[u8], AnyHasher, Hashing> for Reader {
    fn visit<S: Sort<[u8], AnyHasher>>(&mut self, hashing: &Hashing) {
        let Hashing { hasher, key, secret, .. } = *hashing;
        let name = hashing.name(S::NAME);
        let path = directory().join(&name);
        let bytes = fs::read(&path).unwrap();
        let filter: S::Filter = Opening::new().hasher(hasher).load(&path).unwrap();
        assert!(S::Filter::from_bytes_with_hasher(&bytes, hasher).unwrap() == filter);
        let line = Line::of(name.clone(), &bytes, S::KEYS, |number| S::has(&filter, number, key));
        self.lines.push(line.to_string());
        // A stable filter forgets; the table has its number of found keys.
        if S::NAME != "stable" {
            assert_eq!(line.found as u64, S::KEYS, "{line}");
        }
        // It is saved with the same bytes.
        let again = self.scratch.path(&name);
        let saved = if secret { filter.save_with_secret(&again) } else { filter.save(&again) };
        saved.unwrap();
        assert!(fs::read(&again).unwrap() == bytes, "{name} is written in another way");
        // The caller must provide a secret that is not in the file.
        match S::Filter::load(&path) {
            Ok(alone) => assert!(alone == filter),
            Err(OpenError::Invalid(InvalidBytes::Secret)) => {
                assert!(hashing.hash == "keyed" && !secret, "{name}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
        let has = |number| S::has(&filter, number, key);
        self.read_as_any(S::NAME, hashing, &bytes, S::KEYS, &has);
    }
}

impl Reader {
    /// The same file, opened as a filter of any family.
    fn read_as_any(
        &self,
        family: &str,
        hashing: &Hashing,
        bytes: &[u8],
        keys: u64,
        has: &dyn Fn(u64) -> bool,
    ) {
        let name = hashing.name(family);
        let brought = hashing.hash == "keyed" && !hashing.secret;
        let how = if brought { Opening::new().hasher(Keyed::hasher()) } else { Opening::new() };
        let any = AnyFilter::load_as(directory().join(&name), how);
        if family == "map" {
            let unknown = InvalidBytes::Unknown { field: "family", got: 14 };
            assert!(matches!(any, Err(OpenError::Invalid(got)) if got == unknown), "{name}");
            return;
        }
        let any = any.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(family.starts_with(any.family()) && any.hasher().name() == hashing.hash);
        for number in 0..keys + ABSENT {
            let found = any.contains(&(hashing.key)(number));
            assert_eq!(found, Ok(has(number)), "{name}: {number}");
        }
        let again = self.scratch.path("any.umbel");
        let saved = if hashing.secret { any.save_with_secret(&again) } else { any.save(&again) };
        saved.unwrap();
        assert!(fs::read(&again).unwrap() == bytes, "{name} is written in another way");
    }
}

#[test]
fn golden_files_open_and_answer_as_they_did() {
    let mut reader = Reader { scratch: Directory::new("golden"), lines: Vec::new() };
    visit_all(&mut reader);
    assert_eq!(reader.lines, table());
    assert!(reader.lines.len() >= 140);
}

/// Reads the files of a hash by types.
struct Typed;

impl<T, H> Visitor<T, H, bool> for Typed
where
    T: ?Sized + Numbered,
    H: Hashed + Digester<T> + Stored<T>,
{
    fn visit<S: Sort<T, H>>(&mut self, secret: &bool) {
        let name = name(S::NAME, H::HASH, T::KEYS, *secret);
        let bytes = fs::read(directory().join(&name)).unwrap();
        let filter = S::Filter::from_bytes_with_hasher(&bytes, H::hasher()).unwrap();
        let has = |number| S::has(&filter, number, T::numbered);
        let line = Line::of(name.clone(), &bytes, S::KEYS, has).to_string();
        assert!(table().contains(&line), "{line}");
        assert!(*secret || filter.to_bytes() == bytes, "{name} is written in another way");
    }
}

#[test]
fn typed_filters_read_golden_files_too() {
    visit_families::<u64, Portable, bool>(&mut Typed, &false);
    visit_families::<str, Keyed, bool>(&mut Typed, &false);
    visit_families::<str, Keyed, bool>(&mut Typed, &true);
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
