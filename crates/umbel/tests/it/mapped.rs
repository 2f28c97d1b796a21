//! Filters that are used where they are, in a file: asked, verified, changed, left behind.
#![allow(unsafe_code, reason = "whoever maps a file promises that nobody changes it")]

use crate::files::Directory;
use crate::forge::{WORDS, with};
use std::fs;
use std::io;
use std::path::Path;
use umbel::format::{Mappable, MappableCore, Mapped, OpenError, Opening, Saved, Stored};
use umbel::hash::Digest;
use umbel::{
    AtomicBlockedBloomFilter, AtomicBloomFilter, BinaryFuse4Filter, BinaryFuseFilter,
    BlockedBloomFilter, BloomFilter, Contains, Edge, Filter, Incompatible, Insert, InvalidBytes,
    Keyed, RibbonFilter, RibbonMap, SplitBlockBloomFilter, XorFilter,
};

/// Maps a file of this test.
fn map<F: Mappable + Saved>(path: &Path) -> Result<Mapped<F>, OpenError> {
    // SAFETY: the file is in a directory of the test, which does not change it while it is mapped.
    unsafe { F::map(path) }
}

macro_rules! map_mut {
    ($filter:ty, $path:expr) => {
        // SAFETY: as above.
        unsafe { <$filter>::map_mut($path) }
    };
}

fn invalid<T>(result: Result<T, OpenError>) -> InvalidBytes {
    match result.map(|_| ()) {
        Err(OpenError::Invalid(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn would_block<T>(result: Result<T, OpenError>) -> bool {
    matches!(result, Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock)
}

/// A mapped filter answers as the loaded one does.
fn answers<H, C>(directory: &Directory, filter: &Filter<u64, H, C>)
where
    H: Stored<u64>,
    C: MappableCore<Mapped: Contains> + Contains,
{
    let path = directory.path("answers.umbel");
    filter.save(&path).unwrap();
    let mapped = map::<Filter<u64, H, C>>(&path).unwrap();
    let digest = |number| Digest::mixed(number);
    let found = (0..30_000).filter(|number| {
        let found = Contains::contains_digest(&mapped, digest(*number));
        assert_eq!(found, Contains::contains_digest(filter, digest(*number)), "{number}");
        found
    });
    let absent_found = found.count() as u64 - 10_000;
    let off = umbel_laws::sigmas(absent_found, 20_000, 200.0);
    assert!(absent_found <= 200 || off <= 5.0, "{absent_found} of 20,000 at 1 %");
    assert_eq!(mapped.verify(), Ok(()));
    assert!((0..mapped.blocks()).all(|block| mapped.verify_block(block).is_ok()));
    assert!(mapped.to_bytes() == filter.to_bytes());
}

/// The digests of the first keys.
fn digests() -> impl Iterator<Item = Digest> {
    (0..10_000).map(Digest::mixed)
}

#[test]
fn a_mapped_filter_answers_as_a_loaded_one() {
    let directory = Directory::new("map-answers");
    macro_rules! filled {
        ($filter:expr) => {{
            let mut filter = $filter;
            digests().for_each(|digest| _ = filter.insert_digest(digest));
            answers(&directory, &filter);
        }};
    }
    filled!(BloomFilter::<u64>::new(10_000, 0.01));
    filled!(BlockedBloomFilter::<u64>::new(10_000, 0.01));
    filled!(SplitBlockBloomFilter::<u64>::new(10_000, 0.01));
    macro_rules! built {
        ($filter:ident) => {
            let how = umbel::frozen::Build::new(0.01);
            answers(&directory, &$filter::<u64>::build_from_digests(how, digests()).unwrap());
        };
    }
    built!(XorFilter);
    built!(BinaryFuseFilter);
    built!(BinaryFuse4Filter);
    built!(RibbonFilter);
}

#[test]
fn a_mapped_map_tells_values() {
    let directory = Directory::new("map-values");
    let path = directory.path("values.umbel");
    let map_of = RibbonMap::<u64, u16>::build((0..5_000_u64).map(|key| (key, key as u16))).unwrap();
    map_of.save(&path).unwrap();
    let mapped = map::<RibbonMap<u64, u16>>(&path).unwrap();
    assert!((0..20_000).all(|key| mapped.get(&key) == map_of.get(&key)));
    assert!((0..5_000).all(|key| mapped.get(&key) == key as u16));
    assert_eq!(mapped.verify(), Ok(()));
    assert_eq!(invalid(map::<RibbonMap<u64, u8>>(&path)), InvalidBytes::Inconsistent);
    assert!(format!("{mapped:?}").starts_with("RibbonMap { len: 5000"));
}

#[test]
fn empty_sets_are_mapped_too() {
    let directory = Directory::new("map-empty");
    let path = directory.path("empty.umbel");
    XorFilter::<u64>::build(0..0_u64, 0.01).unwrap().save(&path).unwrap();
    let mapped = map::<XorFilter<u64>>(&path).unwrap();
    assert_eq!((mapped.verify(), mapped.blocks()), (Ok(()), 0));
    assert!((0..100).all(|key| !mapped.contains(&key)));
}

fn filter_of(keys: u64) -> BloomFilter<u64> {
    let mut filter = BloomFilter::new(30_000, 0.01);
    filter.extend(0..keys);
    filter
}

#[test]
fn damage_is_found_where_it_is() {
    let directory = Directory::new("map-damage");
    let path = directory.path("seen.umbel");
    let good = filter_of(30_000).to_bytes();
    for (at, block) in [(WORDS, 0), (WORDS + 8_191, 0), (WORDS + 8_192, 1), (WORDS + 30_000, 3)] {
        let mut damaged = good.clone();
        damaged[at] ^= 16;
        fs::write(&path, &damaged).unwrap();
        let mapped = map::<BloomFilter<u64>>(&path).unwrap();
        let error = InvalidBytes::Block { number: block };
        assert_eq!(mapped.verify(), Err(error));
        for number in 0..mapped.blocks() {
            let expected = if number == block { Err(error) } else { Ok(()) };
            assert_eq!(mapped.verify_block(number), expected, "{at} {number}");
        }
    }
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, &damaged).unwrap();
    let mapped = map::<BloomFilter<u64>>(&path).unwrap();
    assert_eq!(mapped.verify_block(0), Err(InvalidBytes::Table));
    // A set bit outside the filter, with correct checksums: only a full verification finds it.
    let last = WORDS + crate::forge::words_of(&good) - 1;
    fs::write(&path, with(&good, last, &[0x80])).unwrap();
    let mapped = map::<BloomFilter<u64>>(&path).unwrap();
    assert!((0..mapped.blocks()).all(|number| mapped.verify_block(number).is_ok()));
    assert_eq!(mapped.verify(), Err(InvalidBytes::Inconsistent));
}

#[test]
#[should_panic(expected = "there are 5 blocks")]
fn blocks_that_are_not_there_cannot_be_verified() {
    let directory = Directory::new("map-block");
    let path = directory.path("seen.umbel");
    filter_of(1).save(&path).unwrap();
    let _ = map::<BloomFilter<u64>>(&path).unwrap().verify_block(5);
}

#[test]
fn what_is_not_the_wanted_filter_is_not_mapped() {
    let directory = Directory::new("map-wrong");
    let path = directory.path("seen.umbel");
    let good = filter_of(100).to_bytes();
    fs::write(&path, &good).unwrap();
    let family = InvalidBytes::Family { expected: 2, got: 1 };
    assert_eq!(invalid(map::<BlockedBloomFilter<u64>>(&path)), family);
    assert_eq!(invalid(map_mut!(BlockedBloomFilter<u64>, &path)), family);
    let keys = InvalidBytes::Keys { expected: 3, got: 1 };
    assert_eq!(invalid(map::<BloomFilter<str>>(&path)), keys);
    assert_eq!(invalid(map_mut!(BloomFilter<str>, &path)), keys);
    let hash = InvalidBytes::Hash { expected: 2, got: 1 };
    assert_eq!(invalid(map::<BloomFilter<u64, Keyed>>(&path)), hash);
    assert_eq!(invalid(map_mut!(BloomFilter<u64, Keyed>, &path)), hash);
    // SAFETY: no other process or mapping changes the file.
    let limited = unsafe { Opening::new().limit(1_000).map::<BloomFilter<u64>>(&path) };
    assert!(matches!(limited, Err(OpenError::TooLarge { limit: 1_000, .. })));
    for len in [0, 100, 192, good.len() - 1] {
        fs::write(&path, &good[..len]).unwrap();
        let length = invalid(map::<BloomFilter<u64>>(&path));
        assert!(matches!(length, InvalidBytes::Length { .. }), "{length}");
        let length = invalid(map_mut!(BloomFilter<u64>, &path));
        assert!(matches!(length, InvalidBytes::Length { .. }), "{length}");
    }
    for path in [Path::new("/dev/zero"), &directory.path(".")] {
        assert!(matches!(map::<BloomFilter<u64>>(path), Err(OpenError::NotAFile)));
        assert!(matches!(map_mut!(BloomFilter<u64>, path), Err(OpenError::NotAFile)));
    }
    // Refused files are unchanged.
    fs::write(&path, &good).unwrap();
    assert!(map_mut!(BlockedBloomFilter<u64>, &path).is_err());
    assert!(fs::read(&path).unwrap() == good);
}

#[test]
fn a_file_is_changed_where_it_is() {
    let directory = Directory::new("map-mut");
    let path = directory.path("seen.umbel");
    filter_of(100).save(&path).unwrap();
    let mut mapped = map_mut!(BloomFilter<u64>, &path).unwrap();
    assert!((0..100).all(|key| mapped.contains(&key)));
    for key in 100..10_000 {
        mapped.insert(&key);
    }
    assert!((0..10_000).all(|key| mapped.contains(&key)));
    mapped.flush().unwrap();
    mapped.extend(10_000..20_000_u64);
    assert!(format!("{mapped:?}").starts_with("BloomFilter { capacity: 30000"));
    mapped.close().unwrap();
    // The file is as if it had been saved.
    assert!(fs::read(&path).unwrap() == filter_of(20_000).to_bytes());
    let mut mapped = map_mut!(BloomFilter<u64>, &path).unwrap();
    mapped.insert_all(20_000..30_000);
    mapped.close().unwrap();
    assert!(BloomFilter::<u64>::load(&path).unwrap() == filter_of(30_000));
}

/// Inserts a range in batches.
trait Batches {
    fn insert_all(&mut self, keys: std::ops::Range<u64>);
}

impl Batches for umbel::format::MappedMut<BloomFilter<u64>> {
    fn insert_all(&mut self, keys: std::ops::Range<u64>) {
        let keys: Vec<u64> = keys.collect();
        let mut fresh = vec![false; keys.len()];
        self.insert_batch(&keys, &mut fresh);
    }
}

#[test]
fn a_file_takes_all_keys_of_another_filter() {
    let directory = Directory::new("map-union");
    let (path, other) = (directory.path("seen.umbel"), directory.path("other.umbel"));
    filter_of(100).save(&path).unwrap();
    let mut mapped = map_mut!(BloomFilter<u64>, &path).unwrap();
    // Unions with a filter in memory, with one in a file, and word by word.
    mapped.union_with(&filter_of(5_000)).unwrap();
    filter_of(8_000).save(&other).unwrap();
    mapped.union_with(&map::<BloomFilter<u64>>(&other).unwrap()).unwrap();
    let words = filter_of(10_000);
    for (piece, words) in words.words().chunks(100).enumerate() {
        mapped.union_with_words(piece * 100, words);
    }
    let wrong = BloomFilter::<u64>::new(7, 0.01);
    assert!(matches!(mapped.union_with(&wrong), Err(Incompatible::Bits { .. })));
    mapped.close().unwrap();
    assert!(BloomFilter::<u64>::load(&path).unwrap() == filter_of(10_000));
    // The same for many threads.
    let shared = map_mut!(AtomicBloomFilter<u64>, &path).unwrap();
    shared.union_with(&filter_of(15_000)).unwrap();
    (&shared).extend(15_000..16_000_u64);
    assert!(matches!(shared.union_with(&wrong), Err(Incompatible::Bits { .. })));
    shared.close().unwrap();
    assert!(BloomFilter::<u64>::load(&path).unwrap() == filter_of(16_000));
}

#[test]
fn generic_code_inserts_into_a_file() {
    /// Half of the keys one by one, half as a batch.
    fn fill(filter: &mut impl Insert) {
        let digests: Vec<Digest> = (0..1_000).map(Digest::mixed).collect();
        let (singly, batch) = digests.split_at(500);
        assert!(singly.iter().all(|digest| filter.insert_digest(*digest).is_ok()));
        filter.insert_digests(batch, &mut vec![false; batch.len()]).unwrap();
        assert!(digests.iter().all(|digest| filter.contains_digest(*digest)));
    }
    let directory = Directory::new("map-generic");
    let path = directory.path("seen.umbel");
    filter_of(0).save(&path).unwrap();
    let mut mapped = map_mut!(BloomFilter<u64>, &path).unwrap();
    fill(&mut mapped);
    assert_eq!(Edge::digest(&mapped, &7), Digest::mixed(7));
    mapped.close().unwrap();
    assert!(BloomFilter::<u64>::load(&path).unwrap() == filter_of(1_000));
    filter_of(0).save(&path).unwrap();
    let mut mapped = map_mut!(AtomicBloomFilter<u64>, &path).unwrap();
    fill(&mut mapped);
    mapped.close().unwrap();
    let mapped = map::<BloomFilter<u64>>(&path).unwrap();
    assert!(mapped.to_bytes() == filter_of(1_000).to_bytes());
    assert_eq!(Edge::digest(&mapped, &7), Digest::mixed(7));
}

#[test]
fn who_never_closes_leaves_what_was_flushed() {
    let directory = Directory::new("map-dropped");
    let path = directory.path("seen.umbel");
    let load = || BloomFilter::<u64>::load(&path);
    let unfinished = || Opening::new().unfinished().load::<BloomFilter<u64>>(&path);
    filter_of(100).save(&path).unwrap();

    // The filter was not changed: it can be loaded, but it is mapped only with `unfinished`.
    drop(map_mut!(BloomFilter<u64>, &path).unwrap());
    assert!(load().unwrap() == filter_of(100));
    assert_eq!(invalid(map::<BloomFilter<u64>>(&path)), InvalidBytes::Open);
    assert_eq!(invalid(map_mut!(BloomFilter<u64>, &path)), InvalidBytes::Open);

    // All changes were flushed: the same.
    filter_of(100).save(&path).unwrap();
    let mut mapped = map_mut!(BloomFilter<u64>, &path).unwrap();
    mapped.extend(100..5_000_u64);
    mapped.flush().unwrap();
    drop(mapped);
    assert!(load().unwrap() == filter_of(5_000));

    // Some changes were not flushed: the file opens only with `unfinished`, with all flushed changes.
    // SAFETY: no other process or mapping changes the file.
    let mapped = unsafe { Opening::new().unfinished().map_mut::<BloomFilter<u64>>(&path) };
    let mut mapped = mapped.unwrap();
    mapped.extend(5_000..6_000_u64);
    mapped.flush().unwrap();
    mapped.extend(6_000..9_000_u64);
    drop(mapped);
    assert_eq!(invalid(load()), InvalidBytes::Open);
    assert_eq!(invalid(umbel::any::AnyFilter::load(&path)), InvalidBytes::Open);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(BloomFilter::<u64>::from_bytes(&bytes).map(|_| ()), Err(InvalidBytes::Open));
    assert_eq!(invalid(BloomFilter::<u64>::from_reader(&bytes[..])), InvalidBytes::Open);
    let found = unfinished().unwrap();
    assert!((0..6_000).all(|key| found.contains(&key)));
    let streamed = Opening::new().unfinished().read::<BloomFilter<u64>>(&bytes[..]).unwrap();
    assert!(streamed == found);
    // SAFETY: no other process or mapping changes the file.
    let mapped = unsafe { Opening::new().unfinished().map::<BloomFilter<u64>>(&path) }.unwrap();
    assert!((0..6_000).all(|key| mapped.contains(&key)));
    assert_eq!(mapped.verify(), Err(InvalidBytes::Open));
    drop(mapped);

    // After closing, the file is complete.
    // SAFETY: no other process or mapping changes the file.
    let mapped = unsafe { Opening::new().unfinished().map_mut::<BloomFilter<u64>>(&path) };
    mapped.unwrap().close().unwrap();
    assert!(load().unwrap() == found);
    assert_eq!(map::<BloomFilter<u64>>(&path).unwrap().verify(), Ok(()));
}

#[test]
fn a_damaged_header_is_no_unfinished_filter() {
    let directory = Directory::new("map-header");
    let path = directory.path("seen.umbel");
    filter_of(100).save(&path).unwrap();
    drop(map_mut!(BloomFilter<u64>, &path).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let unfinished = Opening::new().unfinished().load::<BloomFilter<u64>>(&path);
    assert_eq!(invalid(unfinished), InvalidBytes::Header);
}

#[test]
fn one_writes_or_many_read() {
    let directory = Directory::new("map-locks");
    let path = directory.path("seen.umbel");
    filter_of(100).save(&path).unwrap();
    let (one, two) = (map::<BloomFilter<u64>>(&path), map::<BloomFilter<u64>>(&path));
    assert!(one.is_ok() && two.is_ok() && would_block(map_mut!(BloomFilter<u64>, &path)));
    drop(one);
    assert!(would_block(map_mut!(BloomFilter<u64>, &path)));
    drop(two);
    let writer = map_mut!(BloomFilter<u64>, &path).unwrap();
    assert!(would_block(map::<BloomFilter<u64>>(&path)));
    assert!(would_block(map_mut!(BloomFilter<u64>, &path)));
    writer.close().unwrap();
    assert!(map::<BloomFilter<u64>>(&path).is_ok());
}

#[test]
fn saving_over_a_mapped_file_leaves_the_mapping_alone() {
    let directory = Directory::new("map-replaced");
    let path = directory.path("seen.umbel");
    filter_of(100).save(&path).unwrap();
    let old = map::<BloomFilter<u64>>(&path).unwrap();
    filter_of(20_000).save(&path).unwrap();
    let new = map::<BloomFilter<u64>>(&path).unwrap();
    assert!(old.to_bytes() == filter_of(100).to_bytes() && old.verify().is_ok());
    assert!(new.to_bytes() == filter_of(20_000).to_bytes());
    fs::remove_file(&path).unwrap();
    assert!(old.verify().is_ok() && (0..100).all(|key| old.contains(&key)));
    // A writer keeps its file too, even when the file has no name any more.
    filter_of(100).save(&path).unwrap();
    let mut writer = map_mut!(BloomFilter<u64>, &path).unwrap();
    filter_of(200).save(&path).unwrap();
    writer.extend(0..5_000_u64);
    writer.close().unwrap();
    assert!(BloomFilter::<u64>::load(&path).unwrap() == filter_of(200));
    assert_eq!(directory.names(), ["seen.umbel"]);
}

#[test]
fn a_secret_stays_in_the_file_or_out_of_it() {
    let directory = Directory::new("map-secret");
    let path = directory.path("seen.umbel");
    let keyed = Keyed::new(*b"sixteen letters.").with_id(7);
    let filter = BlockedBloomFilter::<str, Keyed>::with_hasher(100, 0.01, keyed);
    type Strings = BlockedBloomFilter<str, Keyed>;
    for kept in [false, true] {
        if kept { filter.save_with_secret(&path) } else { filter.save(&path) }.unwrap();
        assert_eq!(map::<Strings>(&path).is_ok(), kept);
        // SAFETY: no other process or mapping changes the file.
        let mapped = unsafe { Opening::new().hasher(keyed).map_mut::<Strings>(&path) };
        let mut mapped = mapped.unwrap();
        mapped.insert("a");
        mapped.close().unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.windows(16).any(|window| window == b"sixteen letters."), kept);
        let other = Opening::new().hasher(Keyed::new([1; 16]));
        // SAFETY: no other process or mapping changes the file.
        assert_eq!(invalid(unsafe { other.map::<Strings>(&path) }), InvalidBytes::Hasher);
        let again = Opening::new().hasher(keyed).load::<Strings>(&path).unwrap();
        assert!(again.contains("a") && again.hasher().id() == 7);
    }
}

#[test]
fn many_threads_change_one_file() {
    let directory = Directory::new("map-threads");
    let path = directory.path("seen.umbel");
    BlockedBloomFilter::<u64>::new(40_000, 0.01).save(&path).unwrap();
    let mut mapped = map_mut!(AtomicBlockedBloomFilter<u64>, &path).unwrap();
    for round in 0..2_u64 {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mapped = &mapped;
                scope.spawn(move || {
                    let keys = (thread * 10_000..).skip(round as usize * 5_000).take(5_000);
                    keys.for_each(|key| _ = mapped.insert(&key));
                });
            }
        });
        mapped.flush().unwrap();
    }
    mapped.close().unwrap();
    let mut expected = BlockedBloomFilter::<u64>::new(40_000, 0.01);
    expected.extend(0..40_000_u64);
    assert!(BlockedBloomFilter::<u64>::load(&path).unwrap() == expected);
}

#[cfg(unix)]
#[test]
fn the_lock_of_a_mapped_file_ends_with_it_while_other_threads_start_programs() {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    let directory = Directory::new("forks");
    let path = directory.path("locked.umbel");
    BloomFilter::<u64>::new(100, 0.01).save(&path).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // While a program is spawned, the child process briefly holds all open files.
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    std::process::Command::new("true").status().unwrap();
                }
            });
        }
        let mut locked = 0;
        for _ in 0..300 {
            // The lock is released after a refusal, after closing and after saving.
            locked += usize::from(would_block(map_mut!(BlockedBloomFilter<u64>, &path)));
            locked += usize::from(would_block(
                map_mut!(BloomFilter<u64>, &path)
                    .and_then(|mapped| mapped.close().map_err(OpenError::Io)),
            ));
            BloomFilter::<u64>::new(100, 0.01).save(&path).unwrap();
        }
        stop.store(true, SeqCst);
        assert_eq!(locked, 0);
    });
}
