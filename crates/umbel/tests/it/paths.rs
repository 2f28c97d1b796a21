//! The bits and answers on every code path of a processor are those of the definition.

use crate::blocked::positions;
use crate::model::Model;
use std::sync::{Mutex, PoisonError};
use umbel::Saved;
use umbel::blocked::{self, ArrayBlockedBloomFilter, Shape};
use umbel::hash::Digest;
use umbel::simd::{self, Path};
use umbel::window::{self, WindowBloomFilter};
use umbel::{AtomicBlockedBloomFilter, BlockedBloomFilter, Portable};
use umbel_laws::split_mix;

/// Runs a test once for each available path, with all filters created on that path. Two such tests never run at
/// the same time.
pub(crate) fn on_every_path(mut test: impl FnMut(Path)) {
    alone(|| {
        for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
            simd::force(Some(path)).unwrap();
            assert_eq!(simd::path(), path);
            test(path);
        }
    });
}

/// Runs a test that chooses paths for the whole process.
fn alone(test: impl FnOnce()) {
    static FORCED: Mutex<()> = Mutex::new(());
    struct Free;
    impl Drop for Free {
        fn drop(&mut self) {
            simd::force(None).unwrap();
        }
    }
    let _alone = FORCED.lock().unwrap_or_else(PoisonError::into_inner);
    let _free = Free;
    test();
}

/// Digests that expose weak arithmetic, then arbitrary ones.
fn digest(number: u64) -> Digest {
    const ODD: [u64; 8] =
        [0, 1, u64::MAX, 1 << 63, u64::MAX >> 32, u64::MAX << 32, 0x8000_0000_8000_0000, 1 << 32];
    Digest::new(ODD.get(number as usize).copied().unwrap_or_else(|| split_mix(number)))
}

fn digests(numbers: std::ops::Range<u64>) -> Vec<Digest> {
    numbers.map(digest).collect()
}

/// One line per key and two, with every number of probes.
fn shapes(lines: u64) -> impl Iterator<Item = Shape> {
    let shape = move |per_key, probes| Shape::with(1, lines, per_key, probes).unwrap();
    (1..=2).flat_map(move |per_key| (1..=8).map(move |probes| shape(per_key, probes)))
}

fn with(shape: Shape) -> BlockedBloomFilter<u64> {
    BlockedBloomFilter::with(shape, Portable::default()).unwrap()
}

fn model_of(shape: Shape) -> Model<impl Fn(Digest) -> Vec<u64>> {
    Model::new(shape.words(), move |digest| positions(&shape, digest))
}

#[test]
fn single_keys_have_the_bits_of_the_definition_on_every_path() {
    for shape in [1, 2, 7, 1_000].into_iter().flat_map(shapes) {
        let inserted = digests(0..30 * shape.lines().min(50));
        let asked = digests(0..2 * inserted.len() as u64);
        let mut model = model_of(shape);
        let fresh: Vec<bool> = inserted.iter().map(|digest| model.insert(*digest)).collect();
        let found: Vec<bool> = asked.iter().map(|digest| model.contains(*digest)).collect();
        on_every_path(|path| {
            let mut filter = with(shape);
            for (digest, fresh) in inserted.iter().zip(&fresh) {
                assert_eq!(filter.insert_digest(*digest), *fresh, "{path:?} {shape:?} {digest:?}");
            }
            assert!(filter.words() == model.words, "{path:?} {shape:?}");
            let shared = AtomicBlockedBloomFilter::from(filter.clone());
            for (digest, found) in asked.iter().zip(&found) {
                assert_eq!(filter.contains_digest(*digest), *found, "{path:?} {shape:?}");
                assert_eq!(shared.contains_digest(*digest), *found, "{path:?} {shape:?}");
            }
        });
    }
}

#[test]
fn batches_of_every_length_have_the_bits_of_the_definition_on_every_path() {
    for shape in [1, 300].into_iter().flat_map(shapes) {
        // Batches of every length, one after another, with earlier keys among the new ones.
        let mut model = model_of(shape);
        let mut start = 0;
        let mut batch = |len: u64| {
            let batch = digests(start..start + len);
            start += len / 2;
            let fresh: Vec<bool> = batch.iter().map(|digest| model.insert(*digest)).collect();
            (batch, fresh)
        };
        let batches: Vec<_> = (0..=200).chain([1_000]).map(&mut batch).collect();
        let asked = digests(start / 2..start * 2);
        let found: Vec<bool> = asked.iter().map(|digest| model.contains(*digest)).collect();
        on_every_path(|path| {
            let mut filter = with(shape);
            let shared = AtomicBlockedBloomFilter::<u64>::from(with(shape));
            for (batch, expected) in &batches {
                let mut fresh = vec![true; batch.len()];
                filter.insert_digests(batch, &mut fresh);
                assert!(fresh == *expected, "{path:?} {shape:?} {}", batch.len());
                shared.insert_digests(batch, &mut fresh);
                assert!(fresh == *expected, "shared: {path:?} {shape:?} {}", batch.len());
            }
            assert!(filter.words() == model.words, "{path:?} {shape:?}");
            assert!(shared.snapshot() == filter, "{path:?} {shape:?}");
            let mut rest = (&asked[..], &found[..]);
            for len in (0..=200).chain([1_000]) {
                let (asked, expected) = (&rest.0[..len], &rest.1[..len]);
                rest = (&rest.0[len / 2..], &rest.1[len / 2..]);
                let mut answers = vec![len % 2 == 0; len];
                filter.contains_digests(asked, &mut answers);
                assert!(answers == expected, "{path:?} {shape:?} {len}");
                shared.contains_digests(asked, &mut answers);
                assert!(answers == expected, "shared: {path:?} {shape:?} {len}");
            }
        });
    }
}

/// Ends, and then returns one more item, which `Iterator` allows and callers rarely expect.
struct Resurrected<I> {
    keys: I,
    ended: u32,
}

impl<I: Iterator<Item = u64>> Iterator for Resurrected<I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let key = self.keys.next();
        self.ended += u32::from(key.is_none());
        // A key that is in no set of this test.
        if self.ended == 2 { Some(u64::MAX) } else { key }
    }
}

#[test]
fn extending_has_the_bits_of_the_definition_on_every_path() {
    let hashed = |key: u64| umbel::hash::Digester::digest(&Portable::default(), &key);
    for shape in shapes(50) {
        let mut expected = Vec::new();
        for len in (0..=100).chain([1_000]) {
            let mut model = model_of(shape);
            (0..len).for_each(|key| _ = model.insert(hashed(key)));
            expected.push((len, model.words));
        }
        on_every_path(|path| {
            for (len, words) in &expected {
                let (mut slice, mut iterator, mut resurrected) =
                    (with(shape), with(shape), with(shape));
                slice.extend(&(0..*len).collect::<Vec<u64>>());
                assert!(slice.words() == words, "{path:?} {shape:?} {len}");
                // An iterator that does not know its length.
                iterator.extend((0..2 * len).filter(|key| key % 2 == 0).map(|key| key / 2));
                assert!(iterator.words() == words, "{path:?} {shape:?} {len}");
                resurrected.extend(Resurrected { keys: 0..*len, ended: 0 });
                assert!(resurrected.words() == words, "{path:?} {shape:?} {len}");
                let shared = AtomicBlockedBloomFilter::from(with(shape));
                (&shared).extend(Resurrected { keys: 0..*len, ended: 0 });
                assert!(shared.snapshot() == slice, "{path:?} {shape:?} {len}");
            }
        });
    }
}

/// At compile time the processor is unknown, so these filters use the path of the process that queries them.
#[test]
fn filters_that_the_compiler_made_have_the_same_bits_on_every_path() {
    const WORDS: usize = blocked::words_for(100, 0.01);
    const EMPTY: ArrayBlockedBloomFilter<u64, WORDS> = ArrayBlockedBloomFilter::new(100, 0.01);
    let inserted = digests(0..100);
    let asked = digests(0..1_000);
    let mut model = model_of(*EMPTY.shape());
    let fresh: Vec<bool> = inserted.iter().map(|digest| model.insert(*digest)).collect();
    let found: Vec<bool> = asked.iter().map(|digest| model.contains(*digest)).collect();
    on_every_path(|path| {
        let (mut singly, mut batched) = (EMPTY, EMPTY);
        assert!(inserted.iter().map(|digest| singly.insert_digest(*digest)).eq(fresh.clone()));
        let mut answers = vec![false; inserted.len()];
        batched.insert_digests(&inserted, &mut answers);
        assert!(answers == fresh, "{path:?}");
        assert!(singly.words() == model.words && batched.words() == model.words, "{path:?}");
        assert!(asked.iter().map(|digest| singly.contains_digest(*digest)).eq(found.clone()));
        let mut answers = vec![false; asked.len()];
        singly.contains_digests(&asked, &mut answers);
        assert!(answers == found, "{path:?}");
    });
}

#[test]
fn filters_of_two_paths_are_one_filter() {
    let shape = Shape::for_rate(1_000, 0.001).unwrap();
    let mut one = with(shape);
    one.extend(0..500_u64);
    on_every_path(|path| {
        let mut other = with(shape);
        other.extend(0..500_u64);
        assert!(one == other && one.to_bytes() == other.to_bytes(), "{path:?}");
        other.extend(500..1_000_u64);
        let mut united = one.clone();
        united.union_with(&other).unwrap();
        assert!(united == other, "{path:?}");
        assert_eq!(other.expected_rate(), united.expected_rate(), "{path:?}");
    });
}

#[test]
fn a_path_that_is_not_there_cannot_be_forced_and_nothing_is_changed() {
    alone(|| {
        let free = simd::path();
        for there in Path::ALL.into_iter().filter(|path| path.is_available()) {
            simd::force(Some(there)).unwrap();
            for missing in Path::ALL.into_iter().filter(|path| !path.is_available()) {
                let error = simd::force(Some(missing)).unwrap_err();
                assert!(error.to_string().contains(&format!("{missing:?}")), "{error}");
                assert_eq!(simd::path(), there);
            }
        }
        simd::force(None).unwrap();
        assert_eq!(simd::path(), free);
    });
    // No processor has both, and every processor has the portable path.
    assert!(!(Path::Avx2.is_available() && Path::Neon.is_available()));
    assert!(Path::Portable.is_available());
}

#[test]
fn a_window_has_the_same_words_and_answers_on_every_path() {
    let mut first = None;
    on_every_path(|path| {
        for epochs in [2, 5, 7] {
            let shape = window::Shape::for_rate_in_epochs(300, 0.01, epochs).unwrap();
            let filter = || WindowBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
            let (mut one, mut many) = (filter(), filter());
            let digests = digests(0..1_000);
            let fresh: Vec<bool> =
                digests.iter().map(|digest| one.insert_digest(*digest)).collect();
            let mut answers = vec![false; digests.len()];
            many.insert_digests(&digests, &mut answers);
            assert_eq!(answers, fresh, "{path:?}");
            assert!(one == many, "{path:?}");
            let asked = self::digests(500..3_000);
            let mut found = vec![false; asked.len()];
            one.contains_digests(&asked, &mut found);
            let single = asked.iter().map(|digest| one.contains_digest(*digest));
            assert!(single.eq(found.iter().copied()), "{path:?}");
            if epochs == 5 {
                let seen = (one.words().to_vec(), fresh, found);
                assert_eq!(first.get_or_insert(seen.clone()), &seen, "{path:?}");
            }
        }
    });
}
