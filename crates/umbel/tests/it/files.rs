//! Filters in real files: saved, opened and locked. And files that are not filters.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use umbel::format::disk::{Disk, System, replace};
use umbel::format::{OpenError, Opening};
use umbel::hash::{City64, Murmur3};
use umbel::{BlockedBloomFilter, BloomFilter, InvalidBytes, Keyed, Saved};

/// A separate directory for each test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("umbel-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of the files in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut names: Vec<String> = entries.map(|entry| name(entry).unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn filter_of(keys: u64) -> BloomFilter<u64> {
    let mut filter = BloomFilter::new(10_000, 0.01);
    filter.extend(0..keys);
    filter
}

fn load(path: &Path) -> Result<BloomFilter<u64>, OpenError> {
    BloomFilter::load(path)
}

#[test]
fn a_file_gives_back_the_filter_and_nothing_is_left_beside_it() {
    let directory = Directory::new("gives-back");
    let path = directory.path("seen.umbel");
    for keys in [0, 1, 5_000, 10_000] {
        filter_of(keys).save(&path).unwrap();
        assert!(load(&path).unwrap() == filter_of(keys));
        assert_eq!(fs::read(&path).unwrap(), filter_of(keys).to_bytes());
        assert_eq!(directory.names(), ["seen.umbel"]);
    }
    let mut streamed = Vec::new();
    filter_of(7).to_writer(&mut streamed).unwrap();
    assert_eq!(streamed, filter_of(7).to_bytes());
    streamed.extend_from_slice(b"what follows");
    let mut reader = &streamed[..];
    assert!(BloomFilter::<u64>::from_reader(&mut reader).unwrap() == filter_of(7));
    assert_eq!(reader, b"what follows");
}

#[test]
fn a_relative_path_without_a_directory_is_one_too() {
    // The current directory is that of the crate.
    let path = Path::new("a-relative-path.umbel");
    filter_of(3).save(path).unwrap();
    let loaded = load(path);
    fs::remove_file(path).unwrap();
    assert!(loaded.unwrap() == filter_of(3));
}

#[test]
fn two_writers_do_not_meet_and_a_dead_one_leaves_nothing() {
    let directory = Directory::new("writers");
    let path = directory.path("seen.umbel");
    filter_of(1).save(&path).unwrap();
    replace(&System, &path, false, |first| {
        // While the first writer is active.
        assert_eq!(filter_of(2).save(&path).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        assert!(load(&path).unwrap() == filter_of(1));
        filter_of(3).to_writer(first)
    })
    .unwrap();
    assert!(load(&path).unwrap() == filter_of(3));
    // A writer that died has no lock any more.
    let part = directory.path(".seen.umbel.umbel-part");
    fs::write(&part, b"half of a filter").unwrap();
    filter_of(4).save(&path).unwrap();
    assert!(load(&path).unwrap() == filter_of(4));
    assert_eq!(directory.names(), ["seen.umbel"]);
}

#[test]
fn a_failed_write_leaves_the_old_file_alone() {
    let directory = Directory::new("failed");
    let path = directory.path("seen.umbel");
    filter_of(1).save(&path).unwrap();
    let failed = replace(&System, &path, false, |file| {
        file.write_all(b"half of a filter")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(load(&path).unwrap() == filter_of(1));
    assert_eq!(directory.names(), ["seen.umbel"]);
    // Where a file cannot be created there is an error, and no other file beside it.
    fs::create_dir(directory.path("a-directory")).unwrap();
    assert!(filter_of(1).save(directory.path("a-directory")).is_err());
    assert!(filter_of(1).save(directory.path("missing/seen.umbel")).is_err());
    assert!(filter_of(1).save("/").is_err());
    assert_eq!(directory.names(), ["a-directory", "seen.umbel"]);
}

#[cfg(unix)]
#[test]
fn a_link_is_replaced_and_what_it_pointed_to_is_not() {
    let directory = Directory::new("link");
    let (target, link) = (directory.path("target"), directory.path("seen.umbel"));
    fs::write(&target, b"precious").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    filter_of(1).save(&link).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(load(&link).unwrap() == filter_of(1));
    // A symbolic link in place of the temporary file is not followed either.
    std::os::unix::fs::symlink(&target, directory.path(".seen.umbel.umbel-part")).unwrap();
    let _ = filter_of(2).save(&link);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}

#[test]
fn a_secret_is_kept_only_for_those_who_ask() {
    let directory = Directory::new("secret");
    let path = directory.path("seen.umbel");
    let keyed = Keyed::new(*b"sixteen letters.").with_id(77);
    let mut filter = BlockedBloomFilter::<str, Keyed>::with_hasher(100, 0.01, keyed);
    filter.insert("a");
    let has_secret = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(16).any(|window| window == b"sixteen letters.")
    };

    filter.save(&path).unwrap();
    assert!(!has_secret(&path));
    let without = BlockedBloomFilter::<str, Keyed>::load(&path).unwrap_err();
    assert!(matches!(without, OpenError::Invalid(InvalidBytes::Secret)), "{without}");
    let open = |hasher| Opening::new().hasher(hasher).load::<BlockedBloomFilter<str, Keyed>>(&path);
    assert!(open(keyed).unwrap() == filter);
    assert!(open(Keyed::new([0; 16])).is_err());

    filter.save_with_secret(&path).unwrap();
    assert!(has_secret(&path));
    let again = BlockedBloomFilter::<str, Keyed>::load(&path).unwrap();
    assert!(again == filter && again.contains("a"));
    assert_eq!(again.hasher().id(), 77);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn hashers_with_seeds_come_back_with_them() {
    let seeded = BloomFilter::<str, Murmur3>::with_hasher(10, 0.01, Murmur3::seeded(9));
    assert!(BloomFilter::<str, Murmur3>::from_bytes(&seeded.to_bytes()).unwrap() == seeded);
    let plain = BloomFilter::<str, City64>::with_hasher(10, 0.01, City64::default());
    assert!(BloomFilter::<str, City64>::from_bytes(&plain.to_bytes()).unwrap() == plain);
    // No seed and the seed 0 are two hashes, so the seed of this one cannot be determined.
    let seeded = BloomFilter::<str, City64>::with_hasher(10, 0.01, City64::seeded(0));
    let error = BloomFilter::<str, City64>::from_bytes(&seeded.to_bytes()).map(|_| ());
    assert_eq!(error, Err(InvalidBytes::Secret));
    let again = BloomFilter::from_bytes_with_hasher(&seeded.to_bytes(), City64::seeded(0));
    assert!(again.unwrap() == seeded);
}

#[test]
fn keys_of_another_kind_are_refused() {
    let numbers = filter_of(10).to_bytes();
    let error = BloomFilter::<str>::from_bytes(&numbers).map(|_| ());
    assert_eq!(error, Err(InvalidBytes::Keys { expected: 3, got: 1 }));
    // All integers of up to 64 bits are the same key type.
    let signed = BloomFilter::<i32>::from_bytes(&numbers).unwrap();
    assert!((0..10).all(|key| signed.contains(&key)));
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let directory = Directory::new("no-file");
    let not_a_file = |path: &Path| matches!(load(path), Err(OpenError::NotAFile));
    assert!(not_a_file(&directory.0));
    #[cfg(unix)]
    {
        assert!(not_a_file(Path::new("/dev/zero")) && not_a_file(Path::new("/dev/null")));
        let pipe = directory.path("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(not_a_file(&pipe));
    }
    assert!(matches!(load(&directory.path("missing")), Err(OpenError::Io(_))));
}

#[test]
fn files_of_the_wrong_length_are_refused_before_they_are_read() {
    let directory = Directory::new("length");
    let path = directory.path("seen.umbel");
    filter_of(10).save(&path).unwrap();
    let good = fs::read(&path).unwrap();
    for len in [0, 1, 191, 192, 193, good.len() - 1] {
        fs::write(&path, &good[..len]).unwrap();
        let error = load(&path).unwrap_err();
        assert!(matches!(error, OpenError::Invalid(InvalidBytes::Length { .. })), "{len}: {error}");
    }
    // A sparse file, larger than any memory.
    fs::write(&path, &good).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    if file.set_len(1 << 43).is_ok() {
        let error = load(&path).unwrap_err();
        assert!(matches!(error, OpenError::Invalid(InvalidBytes::Length { .. })), "{error}");
    }
    fs::write(&path, &good).unwrap();
    let limit = good.len() as u64;
    let open = |limit| Opening::new().limit(limit).load::<BloomFilter<u64>>(&path);
    assert!(open(limit).is_ok());
    assert!(matches!(open(limit - 1), Err(OpenError::TooLarge { bytes, .. }) if bytes == limit));
    let read = |limit| Opening::new().limit(limit).read::<BloomFilter<u64>>(&good[..]);
    assert!(read(limit).is_ok());
    assert!(matches!(read(limit - 1), Err(OpenError::TooLarge { .. })));
}

#[test]
fn damaged_files_say_which_block() {
    let directory = Directory::new("damaged");
    let path = directory.path("seen.umbel");
    filter_of(10_000).save(&path).unwrap();
    let good = fs::read(&path).unwrap();
    for (at, expected) in [
        (192, InvalidBytes::Block { number: 0 }),
        (192 + 8_192, InvalidBytes::Block { number: 1 }),
        (good.len() - 1, InvalidBytes::Table),
        (100, InvalidBytes::Header),
        (0, InvalidBytes::Magic),
    ] {
        let mut damaged = good.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let error = load(&path).unwrap_err();
        assert!(matches!(error, OpenError::Invalid(got) if got == expected), "{at}: {error}");
        let error = BloomFilter::<u64>::from_bytes(&damaged).map(|_| ());
        assert_eq!(error, Err(expected));
    }
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    let good = filter_of(10).to_bytes();
    for len in 0..good.len() {
        let error = BloomFilter::<u64>::from_reader(&good[..len]).unwrap_err();
        assert!(matches!(error, OpenError::Invalid(InvalidBytes::Length { .. })), "{len}: {error}");
    }
}

#[test]
fn the_system_removes_and_renames() {
    let directory = Directory::new("system");
    let (one, two) = (directory.path("one"), directory.path("two"));
    let mut file = System.create(&one, true).unwrap();
    file.write_all(b"x").unwrap();
    System.sync(&mut file).unwrap();
    System.rename(&one, &two).unwrap();
    System.sync_directory(&directory.0).unwrap();
    assert_eq!(directory.names(), ["two"]);
    System.remove(&two).unwrap();
    assert!(System.remove(&two).is_err() && directory.names().is_empty());
}
