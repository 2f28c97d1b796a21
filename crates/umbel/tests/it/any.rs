//! Filters of any family answer and change as their typed twins do, and report unsupported operations.

use crate::filters::{self, Hashed, Numbered, Sort, Split, Visitor};
use crate::forge::{self, with};
use std::borrow::Borrow;
use umbel::any::{AnyFilter, AnyHasher, ChangeError, Unsupported};
use umbel::error::InvalidKey;
use umbel::format::{OpenError, Opening, Saved, Secret, Stored};
use umbel::hash::{Digest, Digester, Kind, Murmur3, Portable};
use umbel::split::Plain;
use umbel::storage::Heap;
use umbel::{
    BatchFull, BinaryFuse4Filter, BinaryFuseFilter, BlockedBloomFilter, BlockedCountingBloomFilter,
    BloomFilter, CountingBloomFilter, CuckooFilter, Full, Incompatible, Insert, InvalidBytes,
    Keyed, QuotientFilter, Remove, RibbonFilter, ScalableBloomFilter, SplitBlockBloomFilter,
    StableBloomFilter, WindowBloomFilter, XorFilter, raw,
};

/// The filter with these bytes, of any family.
fn any(bytes: &[u8]) -> AnyFilter {
    AnyFilter::from_bytes(bytes).unwrap()
}

/// Queries a filter of any family and its typed twin in the same way.
struct Twins(Vec<(&'static str, &'static str, Kind)>);

impl<T, H> Visitor<T, H> for Twins
where
    T: ?Sized + Numbered,
    H: Hashed + Digester<T> + Stored<T>,
{
    fn visit<S: Sort<T, H>>(&mut self, (): &()) {
        if S::NAME == "map" {
            return;
        }
        let typed = S::of(0..300, H::hasher(), T::numbered);
        let bytes = typed.to_bytes();
        let any = if H::HASH == "keyed" {
            let missing = AnyFilter::from_bytes(&bytes).map(|_| ());
            assert_eq!(missing, Err(InvalidBytes::Secret));
            AnyFilter::from_bytes_with_secret(&bytes, Keyed::hasher()).unwrap()
        } else {
            any(&bytes)
        };
        let (mut keys, mut digests) = (Vec::new(), Vec::new());
        for number in 0..2_000 {
            let (key, found) = (T::numbered(number), S::has(&typed, number, T::numbered));
            let key: &T = key.borrow();
            assert_eq!(any.contains(&key.to_bytes()), Ok(found), "{} {number}", S::NAME);
            assert_eq!(any.digest(&key.to_bytes()), Ok(H::hasher().digest(key)));
            keys.push(key.to_bytes());
            digests.push(H::hasher().digest(key));
        }
        let mut found = vec![false; digests.len()];
        any.contains_digests(&digests, &mut found);
        assert!(
            (0..2_000).all(|number| found[number as usize] == S::has(&typed, number, T::numbered))
        );
        assert_eq!(any.contains_many(&keys).as_ref(), Ok(&found), "{}", S::NAME);
        let mut batch = vec![false; keys.len()];
        assert_eq!(any.contains_batch(&keys, &mut batch), Ok(()));
        assert!(batch == found, "{}", S::NAME);
        assert!(any.to_bytes() == bytes && any == any.clone());
        self.0.push((any.family(), any.hasher().name(), any.hasher().keys()));
    }
}

#[test]
fn every_family_answers_as_its_typed_twin_for_every_kind_of_keys() {
    let mut twins = Twins(Vec::new());
    filters::visit_families::<u64, Portable, ()>(&mut twins, &());
    filters::visit_families::<str, Keyed, ()>(&mut twins, &());
    filters::visit_families::<u128, Murmur3, ()>(&mut twins, &());
    Visitor::<i32, Plain>::visit::<Split>(&mut twins, &());
    Visitor::<u64, Plain>::visit::<Split>(&mut twins, &());
    let Twins(seen) = twins;
    assert_eq!(seen.len(), 3 * 15 + 2);
    assert!(seen.contains(&("window", "keyed", Kind::Bytes)));
    assert!(seen.contains(&("blocked-counting", "murmur3", Kind::Wide)));
    assert!(seen.contains(&("ribbon", "portable", Kind::Words)));
    assert!(seen.contains(&("split", "plain", Kind::Plain4)));
    assert!(seen.contains(&("split", "plain", Kind::Plain8)));
}

/// Applies the same changes to a filter and to its twin of any family.
fn change<F>(mut typed: F, remove: Option<fn(&mut F, Digest) -> bool>)
where
    F: Saved<Storage = Heap> + Insert,
{
    let mut any = any(&typed.to_bytes());
    let (family, mut batches) = (any.family(), any.clone());
    let mut keyed = any.clone();
    for number in 0..400_u64 {
        let (key, digest) = (number.to_le_bytes(), Portable::default().digest(&number));
        let expected = typed.insert_digest(digest).map_err(|Full| ChangeError::Full);
        assert_eq!(any.insert(&key), expected, "{family}");
    }
    assert!(any.to_bytes() == typed.to_bytes(), "{family}");
    let digests: Vec<Digest> = (0..400).map(Digest::mixed).collect();
    let (mut fresh, mut found) = (vec![false; 400], vec![false; 400]);
    batches.contains_digests(&digests, &mut found);
    assert!(!found.contains(&true), "{family}");
    let mut singly = batches.clone();
    let one = singly.as_insert().unwrap();
    let answers = digests.iter().map_while(|digest| one.insert_digest(*digest).ok());
    let mut expected: Vec<bool> = answers.collect();
    let inserted = expected.len();
    let full = ChangeError::BatchFull(BatchFull { inserted });
    let result = if matches!(family, "cuckoo" | "quotient") { Err(full) } else { Ok(()) };
    assert_eq!(inserted < 400, result.is_err(), "{family}");
    assert_eq!(batches.insert_digests(&digests, &mut fresh), result, "{family}");
    expected.resize(400, false);
    assert!(fresh == expected && batches == singly, "{family}");
    // A batch of keys equals a batch of their digests. A key with the wrong length is not removed.
    let keys: Vec<[u8; 8]> = (0..400_u64).map(u64::to_le_bytes).collect();
    let before = any.clone();
    let inserted = keyed.insert_batch(&keys, &mut fresh);
    assert!(matches!(inserted, Ok(()) | Err(ChangeError::BatchFull(_))), "{family}");
    match inserted {
        Ok(()) => assert!(keyed == before && fresh.contains(&true), "{family}"),
        Err(_) => assert!(matches!(family, "cuckoo" | "quotient") && !fresh[399], "{family}"),
    }
    let mut removed = vec![false; 400];
    let cannot = Unsupported { family, what: "remove keys" };
    let mut expected = Vec::new();
    for number in 0..400_u64 {
        let (key, digest) = (number.to_le_bytes(), Portable::default().digest(&number));
        let answer = remove.map(|remove| remove(&mut typed, digest));
        assert_eq!(any.remove(&key), answer.ok_or(cannot.into()), "{family}");
        expected.extend(answer);
    }
    assert!(any.to_bytes() == typed.to_bytes(), "{family}");
    let (mut batch, mut digested) = (before.clone(), before.clone());
    let digests: Vec<Digest> =
        (0..400_u64).map(|number| Portable::default().digest(&number)).collect();
    if remove.is_some() {
        assert_eq!(batch.remove_batch(&keys, &mut removed), Ok(()));
        assert!(removed == expected && batch == any, "{family}");
        assert_eq!(digested.remove_digests(&digests, &mut removed), Ok(()));
        assert!(removed == expected && digested == any, "{family}");
        assert_eq!(digested.remove_digest(digests[0]), Ok(any.remove(&keys[0]).unwrap()));
    } else {
        assert_eq!(batch.remove_batch(&keys, &mut removed), Err(cannot.into()), "{family}");
        assert_eq!(digested.remove_digests(&digests, &mut removed), Err(cannot), "{family}");
        assert!(batch == before && digested == before, "{family}");
    }
}

#[test]
fn every_family_changes_as_its_typed_twin() {
    fn removes<F: Remove>() -> Option<fn(&mut F, Digest) -> bool> {
        Some(F::remove_digest)
    }
    change(BloomFilter::<u64>::new(300, 0.01), None);
    change(BlockedBloomFilter::<u64>::new(300, 0.01), None);
    let split = SplitBlockBloomFilter::<u64, Portable>::with_hasher(300, 0.01, Portable::default());
    change(split, None);
    change(CountingBloomFilter::<u64>::new(300, 0.01), removes());
    change(BlockedCountingBloomFilter::<u64>::new(300, 0.01), removes());
    change(ScalableBloomFilter::<u64>::new(30, 0.01), None);
    change(StableBloomFilter::<u64>::new(300, 0.01), None);
    change(WindowBloomFilter::<u64>::new(300, 0.01), None);
    change(CuckooFilter::<u64>::new(300, 0.01), removes());
    change(QuotientFilter::<u64>::new(300, 0.01), removes());
}

#[test]
fn every_family_tells_the_rate_and_the_memory_of_its_typed_twin() {
    macro_rules! tell {
        ($($filter:expr),* $(,)?) => {$({
            let filter = $filter;
            let any = any(&filter.to_bytes());
            assert_eq!(any.expected_rate(), filter.expected_rate(), "{any:?}");
            assert_eq!(any.bytes(), filter.bytes(), "{any:?}");
            assert!(any.expected_rate() > 0.0 && any.bytes() > 0, "{any:?}");
            let debug = format!("{any:?}");
            let family = format!("AnyFilter {{ family: \"{}\", ", any.family());
            assert!(debug.starts_with(&family) && debug.contains("hasher: AnyHasher"), "{debug}");
            assert!(debug.len() < 1_000, "{debug}");
        })*};
    }
    macro_rules! filled {
        ($filter:expr) => {{
            let mut filter = $filter;
            (0..200).for_each(|number| _ = filter.insert_digest(Digest::mixed(number)));
            filter
        }};
    }
    let portable = Portable::default();
    tell!(
        filled!(BloomFilter::<u64>::new(300, 0.01)),
        filled!(BlockedBloomFilter::<u64>::new(300, 0.01)),
        filled!(SplitBlockBloomFilter::<u64, _>::with_hasher(300, 0.01, portable)),
        filled!(CountingBloomFilter::<u64>::new(300, 0.01)),
        filled!(BlockedCountingBloomFilter::<u64>::new(300, 0.01)),
        filled!(ScalableBloomFilter::<u64>::new(30, 0.01)),
        filled!(StableBloomFilter::<u64>::new(300, 0.01)),
        filled!(WindowBloomFilter::<u64>::new(300, 0.01)),
        filled!(CuckooFilter::<u64>::new(300, 0.01)),
        filled!(QuotientFilter::<u64>::new(300, 0.01)),
        XorFilter::<u64>::build(0..200_u64, 0.01).unwrap(),
        BinaryFuseFilter::<u64>::build(0..200_u64, 0.01).unwrap(),
        BinaryFuse4Filter::<u64>::build(0..200_u64, 0.01).unwrap(),
        RibbonFilter::<u64>::build(0..200_u64, 0.01).unwrap(),
    );
}

#[test]
fn every_family_tells_how_many_keys_it_has_if_it_knows() {
    macro_rules! empty {
        ($($filter:ident),*) => {
            [$(any(&$filter::<u64>::new(300, 0.01).to_bytes())),*]
        };
    }
    macro_rules! built {
        ($($filter:ident)*, $keys:expr) => {
            [$(any(&$filter::<u64>::build(0..$keys, 0.01).unwrap().to_bytes())),*]
        };
    }
    for mut estimated in
        [any(&SplitBlockBloomFilter::<u64, Portable>::with_hasher(300, 0.01, Portable::default())
            .to_bytes())]
        .into_iter()
        .chain(empty!(
            BloomFilter,
            BlockedBloomFilter,
            CountingBloomFilter,
            BlockedCountingBloomFilter,
            ScalableBloomFilter,
            WindowBloomFilter
        ))
    {
        assert_eq!((estimated.len(), estimated.estimated_len()), (None, Some(0)));
        assert!(estimated.is_empty());
        (0..200_u64).for_each(|key| _ = estimated.insert(&key.to_le_bytes()));
        let about = estimated.estimated_len();
        assert!(about.is_some_and(|about| (180..=220).contains(&about)), "{about:?} {estimated:?}");
        assert!(estimated.len().is_none() && !estimated.is_empty());
    }
    for mut exact in empty!(CuckooFilter, QuotientFilter) {
        assert!(exact.is_empty() && exact.len() == Some(0));
        (0..200_u64).for_each(|key| _ = exact.insert(&key.to_le_bytes()));
        assert_eq!((exact.len(), exact.estimated_len()), (Some(200), Some(200)), "{exact:?}");
        assert!(!exact.is_empty());
    }
    for keys in [0, 200_u64] {
        for fixed in built!(XorFilter BinaryFuseFilter BinaryFuse4Filter RibbonFilter, keys) {
            assert_eq!((fixed.len(), fixed.estimated_len()), (Some(keys), Some(keys)), "{fixed:?}");
            assert_eq!(fixed.is_empty(), keys == 0, "{fixed:?}");
        }
    }
    let [mut stable] = empty!(StableBloomFilter);
    assert!(stable.is_empty() && stable.insert(&[0; 8]).unwrap());
    assert_eq!((stable.len(), stable.estimated_len(), stable.is_empty()), (None, None, false));
}

#[test]
fn a_filter_whose_type_is_known_becomes_one_of_any_family() {
    let hasher = umbel::any::AnyHasher::from(Portable::default());
    macro_rules! forget {
        ($($typed:expr => $variant:ident;)*) => {$({
            let typed = $typed;
            let bytes = typed.to_bytes();
            let filter = AnyFilter::from(typed);
            assert!(filter == any(&bytes) && filter.to_bytes() == bytes);
            let raw::Any::$variant(core) = filter.raw().clone() else { panic!("{filter:?}") };
            let core = raw::Any::from(core);
            assert_eq!((core.family(), core.bytes()), (filter.family(), filter.bytes()));
            assert!(AnyFilter::from_raw(core, *filter.hasher()) == filter);
        })*};
    }
    let how = || umbel::frozen::Build::with_hasher(0.01, hasher);
    let keys = || [b"a", b"b"].map(|key| &key[..]);
    forget! {
        BloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Bloom;
        BlockedBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Blocked;
        SplitBlockBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Split;
        CountingBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Counting;
        BlockedCountingBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => BlockedCounting;
        ScalableBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Scalable;
        StableBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Stable;
        WindowBloomFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Window;
        CuckooFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Cuckoo;
        QuotientFilter::<[u8], _>::with_hasher(100, 0.01, hasher) => Quotient;
        XorFilter::<[u8], _>::build_with(how(), keys()).unwrap() => Xor;
        BinaryFuseFilter::<[u8], _>::build_with(how(), keys()).unwrap() => Fuse;
        BinaryFuse4Filter::<[u8], _>::build_with(how(), keys()).unwrap() => Fuse4;
        RibbonFilter::<[u8], _>::build_with(how(), keys()).unwrap() => Ribbon;
    }
}

/// Code that is generic over savable filters accepts a filter of any family too.
#[test]
fn a_filter_of_any_family_is_saved_as_every_other() {
    fn again<F: Saved<Storage = Heap>>(filter: &F) -> F {
        let mut stream = Vec::new();
        filter.to_writer(&mut stream).unwrap();
        assert!(stream == filter.to_bytes());
        F::from_reader(&stream[..]).unwrap()
    }
    let mut filter = any(&CuckooFilter::<u64>::new(100, 0.01).to_bytes());
    assert!(filter.insert(&[7; 8]).unwrap());
    assert!(again(&filter) == filter);
    let seeded = AnyFilter::from_bytes(&with(&filter.to_bytes(), 24, &[9])).unwrap();
    let brought = AnyFilter::from_bytes_with_hasher(&filter.to_bytes(), *seeded.hasher());
    assert_eq!(brought.map(|_| ()), Err(InvalidBytes::Hasher));
    let brought = AnyFilter::from_bytes_with_hasher(&filter.to_bytes(), *filter.hasher()).unwrap();
    assert!(brought == filter && brought != seeded);
}

#[cfg(feature = "serde")]
#[test]
fn a_filter_of_any_family_comes_back_through_serde() {
    let mut filter = any(&QuotientFilter::<str>::new(100, 0.01).to_bytes());
    assert!(filter.insert("a").unwrap());
    let json = serde_json::to_string(&filter).unwrap();
    let again: AnyFilter = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.family() == "quotient");
    assert_eq!(again.contains_many(["a", "b"]), Ok(vec![true, false]));
    assert!(serde_json::from_str::<AnyFilter>("[1, 2, 3]").is_err());
}

#[test]
fn static_filters_take_no_keys() {
    let mut xor = any(&XorFilter::<u64>::build(0..100_u64, 0.01).unwrap().to_bytes());
    let before = xor.clone();
    let what = "take keys once it is built";
    let cannot = Unsupported { family: "xor", what };
    assert_eq!(xor.insert(&[0; 8]), Err(cannot.into()));
    assert_eq!(xor.as_insert().map(|_| ()), Err(cannot));
    assert!(xor.as_remove().is_err() && xor.remove(&[0; 8]).is_err());
    assert_eq!(cannot.to_string(), "a xor filter cannot take keys once it is built");
    let merged = xor.merge_with(&before);
    assert_eq!(merged, Err(Unsupported { family: "xor", what: "be merged" }.into()));
    assert!(xor == before);
    let ribbon = any(&RibbonFilter::<u64>::build(0..100_u64, 0.01).unwrap().to_bytes());
    let error = xor.merge_with(&ribbon).unwrap_err();
    assert_eq!(error, ChangeError::Family { expected: "xor", got: "ribbon" });
    assert_eq!(
        error.to_string(),
        "expected two filters of one family, got a xor and a ribbon filter"
    );
    assert_eq!(xor.insert_batch(&[[0; 8]], &mut [false]), Err(cannot.into()));
    assert!(xor == before && !xor.is_compatible(&before) && !xor.is_compatible(&ribbon));
}

/// Two filters of the first and the second hundred keys, merged: all keys are found.
fn merge<F: Saved<Storage = Heap>>([empty, larger]: [F; 2]) {
    let bytes = empty.to_bytes();
    let (mut one, mut other) = (any(&bytes), any(&bytes));
    for number in 0..100_u64 {
        one.insert(&number.to_le_bytes()).unwrap();
        other.insert(&(number + 100).to_le_bytes()).unwrap();
    }
    assert!(one.is_compatible(&other), "{one:?}");
    one.merge_with(&other).unwrap();
    assert!((0..200_u64).all(|number| one.contains(&number.to_le_bytes()).unwrap()), "{one:?}");
    // The same family with another seed, and another family.
    let seeded = any(&with(&bytes, 24, &[9]));
    let before = one.clone();
    let error = one.merge_with(&seeded).unwrap_err();
    assert_eq!(error, ChangeError::Incompatible(Incompatible::Hasher), "{one:?}");
    assert!(!one.is_compatible(&seeded), "{one:?}");
    let larger = any(&larger.to_bytes());
    let error = one.merge_with(&larger).unwrap_err();
    assert!(matches!(error, ChangeError::Incompatible(_)), "{error}: {one:?}");
    assert!(!one.is_compatible(&larger), "{one:?}");
    let stable = any(&StableBloomFilter::<u64>::new(100, 0.01).to_bytes());
    assert!(matches!(one.merge_with(&stable), Err(ChangeError::Family { got: "stable", .. })));
    assert!(one == before);
}

#[test]
fn those_that_can_are_merged_and_only_with_their_like() {
    merge([300, 9_000].map(|items| BloomFilter::<u64>::new(items, 0.01)));
    merge([300, 9_000].map(|items| BlockedBloomFilter::<u64>::new(items, 0.01)));
    let portable = Portable::default();
    merge(
        [300, 9_000].map(|items| {
            SplitBlockBloomFilter::<u64, Portable>::with_hasher(items, 0.01, portable)
        }),
    );
    merge([300, 9_000].map(|items| CountingBloomFilter::<u64>::new(items, 0.01)));
    merge([300, 9_000].map(|items| BlockedCountingBloomFilter::<u64>::new(items, 0.01)));
    merge([300, 9_000].map(|items| CuckooFilter::<u64>::new(items, 0.01)));
    merge([300, 9_000].map(|items| QuotientFilter::<u64>::new(items, 0.01)));
    for bytes in [
        ScalableBloomFilter::<u64>::new(100, 0.01).to_bytes(),
        StableBloomFilter::<u64>::new(100, 0.01).to_bytes(),
        WindowBloomFilter::<u64>::new(100, 0.01).to_bytes(),
    ] {
        let error = any(&bytes).merge_with(&any(&bytes)).unwrap_err();
        assert!(matches!(error, ChangeError::Unsupported(Unsupported { what: "be merged", .. })));
    }
}

#[test]
fn those_that_can_are_intersected() {
    for bytes in [
        BloomFilter::<u64>::new(300, 0.01).to_bytes(),
        BlockedBloomFilter::<u64>::new(300, 0.01).to_bytes(),
        SplitBlockBloomFilter::<u64>::new(300, 0.01).to_bytes(),
    ] {
        let (mut one, mut other) = (any(&bytes), any(&bytes));
        for number in 0..100_u64 {
            one.insert(&number.to_le_bytes()).unwrap();
            other.insert(&(number + 50).to_le_bytes()).unwrap();
        }
        one.intersect_with(&other).unwrap();
        assert!((50..100_u64).all(|number| one.contains(&number.to_le_bytes()).unwrap()));
        // Each key was in one of the two, so it is found in the other one at the false positive rate.
        let found = (0..50_u64).filter(|number| one.contains(&number.to_le_bytes()).unwrap());
        assert!(umbel_laws::sigmas(found.count() as u64, 50, 0.5) <= 5.0);
        let cuckoo = any(&CuckooFilter::<u64>::new(10, 0.01).to_bytes());
        assert!(matches!(one.intersect_with(&cuckoo), Err(ChangeError::Family { .. })));
    }
    let mut cuckoo = any(&CuckooFilter::<u64>::new(10, 0.01).to_bytes());
    let error = cuckoo.clone().intersect_with(&cuckoo).unwrap_err();
    assert_eq!(error, Unsupported { family: "cuckoo", what: "be intersected" }.into());
    assert!(cuckoo.insert(&[0; 8]).is_ok());
}

#[test]
fn what_is_full_says_so() {
    let mut cuckoo = any(&CuckooFilter::<u64>::new(10, 0.01).to_bytes());
    let result = (0..10_000_u64).try_for_each(|key| cuckoo.insert(&key.to_le_bytes()).map(|_| ()));
    assert_eq!(result, Err(ChangeError::Full));
    let other = cuckoo.clone();
    let refused = cuckoo.merge_with(&other);
    assert!(matches!(refused, Err(ChangeError::Incompatible(Incompatible::Room { .. }))));
    assert!(cuckoo == other);
}

#[test]
fn keys_of_another_length_are_no_keys() {
    let wide = BloomFilter::<u128>::new(10, 0.01).to_bytes();
    let four = SplitBlockBloomFilter::<i32>::new(10, 0.01).to_bytes();
    for (bytes, expected) in
        [(CuckooFilter::<u64>::new(10, 0.01).to_bytes(), 8), (wide, 16), (four, 4)]
    {
        let mut filter = any(&bytes);
        assert!(filter.insert(&[7; 16][..expected]).is_ok());
        let before = filter.clone();
        for got in (0..20).filter(|got| *got != expected) {
            let wrong = InvalidKey { expected, got };
            let key = &[7; 20][..got];
            assert_eq!(filter.contains(key), Err(wrong));
            assert_eq!(filter.insert(key), Err(wrong.into()));
            assert_eq!(filter.remove(key), Err(wrong.into()));
            // One invalid key rejects its whole batch before any change.
            let (keys, answers) = ([&[9; 16][..expected], key], &mut [true; 2]);
            assert_eq!(filter.contains_many(keys), Err(wrong));
            assert_eq!(filter.contains_batch(&keys, answers), Err(wrong));
            assert_eq!(filter.insert_batch(&keys, answers), Err(wrong.into()));
            assert_eq!(filter.remove_batch(&keys, answers), Err(wrong.into()));
            assert_eq!(answers, &[true; 2]);
        }
        assert!(filter == before);
    }
    let mut strings = any(&BloomFilter::<str>::new(100, 0.01).to_bytes());
    assert!((0..20).all(|len| strings.insert(&[7; 20][..len]).is_ok()));
}

#[test]
fn secrets_are_brought_to_files_and_streams() {
    let directory = crate::files::Directory::new("any-secret");
    let path = directory.path("seen.umbel");
    let keyed = Keyed::new([3; 16]);
    let mut filter = BlockedBloomFilter::<str, Keyed>::with_hasher(100, 0.01, keyed);
    filter.insert("a");
    filter.save(&path).unwrap();
    let bytes = filter.to_bytes();
    let is = |result: Result<AnyFilter, OpenError>, expected| {
        let error = result.unwrap_err();
        assert!(matches!(error, OpenError::Invalid(got) if got == expected), "{error}");
    };
    is(AnyFilter::load(&path), InvalidBytes::Secret);
    is(AnyFilter::from_reader(&bytes[..]), InvalidBytes::Secret);
    let other = Opening::new().hasher(Keyed::new([4; 16]));
    is(AnyFilter::load_as(&path, other), InvalidBytes::Hasher);
    is(AnyFilter::from_reader_as(&bytes[..], other), InvalidBytes::Hasher);
    let how = Opening::new().hasher(keyed);
    let loaded = AnyFilter::load_as(&path, how).unwrap();
    assert!(loaded == AnyFilter::from_reader_as(&bytes[..], how).unwrap());
    assert!(loaded.contains(b"a").unwrap() && !loaded.contains(b"b").unwrap());
    // A secret for a filter that uses none.
    let public = BloomFilter::<str>::new(100, 0.01).to_bytes();
    let error = AnyFilter::from_bytes_with_secret(&public, keyed).map(|_| ());
    assert_eq!(error, Err(InvalidBytes::Hash { expected: 2, got: 1 }));
    let large = AnyFilter::load_as(&path, how.limit(200)).unwrap_err();
    assert!(matches!(large, OpenError::TooLarge { limit: 200, .. }), "{large}");
    // A secret or a seed that is in the file or in the stream is not required from the caller.
    let (mut with, mut without) = (Vec::new(), Vec::new());
    loaded.to_writer(&mut with, Secret::Kept).unwrap();
    loaded.to_writer(&mut without, Secret::Left).unwrap();
    assert!(without == bytes && AnyFilter::from_reader(&with[..]).unwrap() == loaded);
    let mut typed = Vec::new();
    filter.to_writer_with_secret(&mut typed).unwrap();
    assert!(typed == with && typed.len() as u64 == filter.saved_len());
    for start in (0..typed.len()).step_by(13) {
        for end in [start, start + 1, start + 100, typed.len()].map(|end| end.min(typed.len())) {
            let mut part = Vec::new();
            filter.write_range_with_secret(start as u64..end as u64, &mut part).unwrap();
            assert!(part == typed[start..end], "{start}..{end}");
        }
    }
    loaded.save_with_secret(&path).unwrap();
    assert!(AnyFilter::load(&path).unwrap() == loaded);
}

#[test]
fn unknown_numbers_are_named() {
    let good = BloomFilter::<u64>::new(10, 0.01).to_bytes();
    let open = |at, value: u16| {
        let bytes = with(&good, at, &value.to_le_bytes());
        AnyFilter::from_bytes(&bytes).map(|_| ()).unwrap_err()
    };
    for got in [0, 14, 15, 99, u16::MAX] {
        assert_eq!(open(10, got), InvalidBytes::Unknown { field: "family", got });
    }
    for got in [0, 10, 32_768, u16::MAX] {
        assert_eq!(open(12, got), InvalidBytes::Unknown { field: "hash", got });
    }
    for got in [0, 8, u16::MAX] {
        assert_eq!(open(16, got), InvalidBytes::Unknown { field: "keys", got });
    }
    assert_eq!(open(forge::KERNELS, 77), InvalidBytes::Kernels { got: 77 });
    // Key types that the hash does not support.
    assert_eq!(open(16, 4), InvalidBytes::Inconsistent);
    // Another family with these fields.
    assert!((2..14).all(|family| matches!(
        open(10, family),
        InvalidBytes::Shape(_) | InvalidBytes::Kernels { .. } | InvalidBytes::Inconsistent
    )));
}

/// Such as the command `umbel` makes of two columns.
#[test]
fn keys_of_several_fields_are_told_from_other_bytes() {
    let hasher = AnyHasher::from(Portable::default()).of_fields();
    let mut filter = AnyFilter::from(BloomFilter::<[u8], _>::with_hasher(10, 0.01, hasher));
    assert!(filter.insert("1:a,1:b,").unwrap());
    let bytes = filter.to_bytes();
    let again = AnyFilter::from_bytes(&bytes).unwrap();
    assert_eq!(again.hasher().keys(), Kind::Fields);
    assert_eq!(again.contains("1:a,1:b,"), Ok(true));
    let digest = Portable::default().digest(&b"1:a,1:b,"[..]);
    assert_eq!(again.digest("1:a,1:b,"), Ok(digest), "the digests are those of bytes");
    assert!(BloomFilter::<[u8]>::from_bytes(&bytes).is_err());
}

#[test]
fn what_follows_a_filter_in_a_stream_is_not_read() {
    let mut streamed = Vec::new();
    for items in [10, 20_000] {
        BloomFilter::<u64>::new(items, 0.01).to_writer(&mut streamed).unwrap();
    }
    streamed.extend_from_slice(b"what follows");
    let mut reader = &streamed[..];
    let first = AnyFilter::from_reader(&mut reader).unwrap();
    let second = AnyFilter::from_reader(&mut reader).unwrap();
    assert!(first.bytes() < 100 && second.bytes() > 20_000);
    assert_eq!(reader, b"what follows");
    for len in [0, 1, 191, 192, 200] {
        let error = AnyFilter::from_reader(&streamed[..len]).unwrap_err();
        assert!(matches!(error, OpenError::Invalid(InvalidBytes::Length { .. })), "{len}: {error}");
    }
}

/// The value in `docs/hashing.md` for a tuple is the one that a program computes with only the file.
#[test]
fn keys_of_several_parts_are_given_as_their_bytes() {
    let mut filter = BloomFilter::<(u32, &str)>::new(100, 1e-6);
    filter.insert(&(1, "ab"));
    let any = AnyFilter::from_bytes(&filter.to_bytes()).unwrap();
    let mut key = vec![4, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0, 0];
    key.extend(b"ab");
    assert_eq!(any.hasher().keys(), Kind::Parts);
    assert_eq!((any.contains(&key), any.contains("ab")), (Ok(true), Ok(false)));
    assert_eq!(any.digest(&key), Ok(Portable::default().digest(&(1_u32, "ab"))));
    // Keys of strings are another key type.
    let error = BloomFilter::<[u8]>::from_bytes(&filter.to_bytes()).map(|_| ()).unwrap_err();
    assert_eq!(error, InvalidBytes::Keys { expected: 3, got: 6 });
}
