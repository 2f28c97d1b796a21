//! Records of several attributes against sets of them.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::marker::PhantomData;
use umbel::filter::{Contains, Edge, Insert, Remove, Union};
use umbel::hash::Digester;
use umbel::multi::{Dimensions, Everything, InsertEach, Multi};
use umbel::stable::{self, ArrayStableBloomFilter};
use umbel::{ArrayBloomFilter, AtomicBloomFilter, BlockedBloomFilter, BloomFilter};
use umbel::{
    CountingBloomFilter, CuckooFilter, InvalidBytes, Saved, ScalableBloomFilter,
    SplitBlockBloomFilter, StableBloomFilter,
};
use umbel::{Digest, Full, Incompatible, Keyed, MultiBloomFilter, Portable, Std, words_for};
use umbel_laws::split_mix;

/// An exact filter: every digest with the number of its insertions, up to `room` of them together.
#[derive(Debug)]
struct Exact<T: ?Sized> {
    room: usize,
    copies: HashMap<Digest, usize>,
    keys: PhantomData<fn(&T)>,
}

impl<T: ?Sized> Exact<T> {
    fn new(room: usize) -> Self {
        Self { room, copies: HashMap::new(), keys: PhantomData }
    }
}

impl<T: ?Sized> PartialEq for Exact<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.room, &self.copies) == (other.room, &other.copies)
    }
}

impl<T: ?Sized> Contains for Exact<T> {
    fn contains_digest(&self, digest: Digest) -> bool {
        self.copies.contains_key(&digest)
    }
}

impl<T: umbel::Key + ?Sized> Edge for Exact<T> {
    type Key = T;

    fn digest(&self, key: &T) -> Digest {
        Portable::default().digest(key)
    }
}

impl<T: ?Sized> Insert for Exact<T> {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        if self.copies.values().sum::<usize>() == self.room {
            return Err(Full);
        }
        let copies = self.copies.entry(digest).or_default();
        *copies += 1;
        Ok(*copies == 1)
    }
}

impl<T: ?Sized> Remove for Exact<T> {
    fn remove_digest(&mut self, digest: Digest) -> bool {
        let Some(copies) = self.copies.get_mut(&digest) else { return false };
        *copies -= 1;
        if *copies == 0 {
            self.copies.remove(&digest);
        }
        true
    }
}

impl<T: ?Sized> Union for Exact<T> {
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        let [expected, got] = [self.room as u64, other.room as u64];
        if expected == got { Ok(()) } else { Err(Incompatible::Bits { expected, got }) }
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.fits(other)?;
        for (digest, copies) in &other.copies {
            *self.copies.entry(*digest).or_default() += copies;
        }
        Ok(())
    }
}

const ROOMY: usize = usize::MAX;

type Array<J> = MultiBloomFilter<Exact<u64>, 3, J>;
type Tuple<J> = Multi<(Exact<u64>, Exact<str>, Exact<i8>), J>;

fn array() -> [Exact<u64>; 3] {
    [0; 3].map(|_| Exact::new(ROOMY))
}

fn tuple() -> (Exact<u64>, Exact<str>, Exact<i8>) {
    (Exact::new(ROOMY), Exact::new(ROOMY), Exact::new(ROOMY))
}

type Record = [u64; 3];

/// The third attribute of a tuple.
fn small(attribute: u64) -> i8 {
    -(attribute as i8)
}

/// The same methods for both forms, with records of numbers.
trait Verbs {
    fn insert(&mut self, record: Record) -> bool;
    fn contains(&self, record: Record) -> bool;
    fn matches(&self, query: [Option<u64>; 3]) -> bool;
    fn remove(&mut self, record: Record) -> bool;
    fn unite(&mut self, other: &Self);
}

impl<J: Insert + Remove + Union> Verbs for Array<J> {
    fn insert(&mut self, record: Record) -> bool {
        Self::insert(self, record.each_ref()).unwrap()
    }
    fn contains(&self, record: Record) -> bool {
        Self::contains(self, record.each_ref())
    }
    fn matches(&self, query: [Option<u64>; 3]) -> bool {
        Self::matches(self, query.each_ref().map(Option::as_ref))
    }
    fn remove(&mut self, record: Record) -> bool {
        Self::remove(self, record.each_ref())
    }
    fn unite(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
}

impl<J: Insert + Remove + Union> Verbs for Tuple<J> {
    fn insert(&mut self, [a, b, c]: Record) -> bool {
        Self::insert(self, (&a, &b.to_string(), &small(c))).unwrap()
    }
    fn contains(&self, [a, b, c]: Record) -> bool {
        Self::contains(self, (&a, &b.to_string(), &small(c)))
    }
    fn matches(&self, [a, b, c]: [Option<u64>; 3]) -> bool {
        let (b, c) = (b.map(|b| b.to_string()), c.map(small));
        Self::matches(self, (a.as_ref(), b.as_deref(), c.as_ref()))
    }
    fn remove(&mut self, [a, b, c]: Record) -> bool {
        Self::remove(self, (&a, &b.to_string(), &small(c)))
    }
    fn unite(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
}

/// An operation on a filter of records.
#[derive(Clone, Debug)]
enum Step {
    Insert(Record),
    RemoveInserted(prop::sample::Index),
    Remove(Record),
    UnionWith(Vec<Record>),
}

/// Few attributes, so that they are repeated.
fn record() -> impl Strategy<Value = Record> {
    prop::array::uniform3(0_u64..5)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => record().prop_map(Step::Insert),
        3 => any::<prop::sample::Index>().prop_map(Step::RemoveInserted),
        2 => record().prop_map(Step::Remove),
        1 => vec(record(), 0..4).prop_map(Step::UnionWith),
    ]
}

/// Every inserted record, with its number of insertions.
struct Model {
    records: Vec<Record>,
    joint: bool,
}

impl Model {
    fn matches(&self, query: [Option<u64>; 3]) -> bool {
        let seen = |(at, attribute): (usize, Option<u64>)| {
            attribute.is_none_or(|attribute| self.records.iter().any(|r| r[at] == attribute))
        };
        let together = match query {
            [Some(a), Some(b), Some(c)] if self.joint => self.records.contains(&[a, b, c]),
            _ => true,
        };
        together && query.into_iter().enumerate().all(seen)
    }

    fn contains(&self, record: Record) -> bool {
        self.matches(record.map(Some))
    }

    fn remove(&mut self, record: Record) -> bool {
        let at = self.records.iter().position(|r| *r == record);
        at.map(|at| self.records.swap_remove(at)).is_some()
    }
}

/// Exact filters in every dimension answer exactly as the model.
fn follow<M: Verbs>(empty: impl Fn() -> M, joint: bool, history: &[Step]) {
    let (mut filter, mut model) = (empty(), Model { records: Vec::new(), joint });
    for step in history {
        match step {
            Step::Insert(record) => {
                assert_eq!(filter.insert(*record), !model.contains(*record));
                model.records.push(*record);
            }
            Step::RemoveInserted(index) => {
                if !model.records.is_empty() {
                    let record = *index.get(&model.records);
                    assert!(model.remove(record) && filter.remove(record));
                }
            }
            // Without a joint filter, only inserted records may be removed, or records that are refused.
            Step::Remove(record) => {
                if joint || !model.contains(*record) {
                    assert_eq!(filter.remove(*record), model.remove(*record));
                }
            }
            Step::UnionWith(records) => {
                let mut other = empty();
                records.iter().for_each(|record| _ = other.insert(*record));
                filter.unite(&other);
                model.records.extend(records);
            }
        }
        let values = || (0..6).map(Some).chain([None]);
        for a in values() {
            for b in values() {
                for c in values() {
                    let query = [a, b, c];
                    assert_eq!(filter.matches(query), model.matches(query), "{query:?}");
                    if let [Some(a), Some(b), Some(c)] = query {
                        assert_eq!(filter.contains([a, b, c]), model.contains([a, b, c]));
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::cases(200))]

    #[test]
    fn any_history_gives_exactly_the_answers_of_the_model(history in vec(step(), 0..30)) {
        follow(|| Multi::of(array()), false, &history);
        follow(|| Multi::of(tuple()), false, &history);
        follow(|| Multi::with_joint(array(), Exact::<u64>::new(ROOMY)), true, &history);
        follow(|| Multi::with_joint(tuple(), Exact::<u64>::new(ROOMY)), true, &history);
    }

    /// Their words agree too.
    #[test]
    fn each_dimension_has_the_bits_of_a_filter_of_its_own(
        records in vec(prop::array::uniform3(any::<u64>()), 0..100),
    ) {
        let filter = |seed| BloomFilter::with_hasher(50, 0.01, Portable::seeded(seed));
        let dimensions = || [filter(1), filter(2), filter(3)];
        let mut multi = Multi::with_joint(dimensions(), BlockedBloomFilter::<u64>::new(50, 0.01));
        let (mut alone, mut joint) = (dimensions(), BlockedBloomFilter::<u64>::new(50, 0.01));
        for record in &records {
            let digests = [0, 1, 2].map(|at| alone[at].hasher().digest(&record[at]));
            let mut fresh = joint.insert_digest(Digest::joint(&digests));
            for (filter, attribute) in alone.iter_mut().zip(record) {
                fresh |= filter.insert(attribute);
            }
            prop_assert_eq!(multi.digests(record.each_ref()), digests);
            prop_assert_eq!(multi.insert(record.each_ref()), Ok(fresh));
        }
        prop_assert!(records.iter().all(|record| multi.contains(record.each_ref())));
        prop_assert_eq!(multi.into_parts(), (alone, joint));
    }
}

#[test]
fn a_full_dimension_loses_no_record_and_leaves_the_later_ones_alone() {
    let dimensions = [3, 2, 3].map(Exact::<u64>::new);
    let mut multi = Multi::with_joint(dimensions, Exact::<u64>::new(3));
    for record in [[1, 2, 3], [4, 5, 6]] {
        assert_eq!(multi.insert(record.each_ref()), Ok(true));
    }
    assert_eq!(multi.insert([&7, &8, &9]), Err(Full));
    assert!(multi.contains([&1, &2, &3]) && multi.contains([&4, &5, &6]));
    assert!(multi.matches([Some(&7), None, None]), "the first dimension keeps its attribute");
    assert!(!multi.matches([None, Some(&8), None]) && !multi.matches([None, None, Some(&9)]));
    assert!(!multi.contains([&7, &8, &9]));
    assert_eq!(multi.joint().copies.len(), 2);
}

#[test]
fn a_full_joint_filter_loses_no_record() {
    let mut multi = Multi::with_joint(tuple(), Exact::<u64>::new(1));
    assert_eq!(multi.insert((&1, "one", &1)), Ok(true));
    assert_eq!(multi.insert((&2, "two", &2)), Err(Full));
    assert!(multi.contains((&1, "one", &1)) && !multi.contains((&2, "two", &2)));
}

#[test]
fn an_incompatible_dimension_or_joint_filter_leaves_all_as_they_were() {
    let make = |rooms: [usize; 3], joint| {
        let [a, b, c] = rooms;
        let mut array = Multi::with_joint(rooms.map(Exact::<u64>::new), Exact::<u64>::new(joint));
        let dimensions = (Exact::<u64>::new(a), Exact::<u64>::new(b), Exact::<u64>::new(c));
        let mut tuple = Multi::with_joint(dimensions, Exact::<u64>::new(joint));
        array.insert([&1, &(a as u64), &3]).unwrap();
        tuple.insert((&1, &(a as u64), &3)).unwrap();
        (array, tuple)
    };
    for other in [make([8, 9, 9], 9), make([9, 9, 8], 9), make([9, 9, 9], 8)] {
        let (mut array, mut tuple) = make([9, 9, 9], 9);
        assert!(array.union_with(&other.0).is_err() && tuple.union_with(&other.1).is_err());
        assert!((array, tuple) == make([9, 9, 9], 9));
    }
}

/// Tuples of every length: each attribute is in its own dimension only.
#[test]
fn tuples_of_one_to_eight_keep_their_attributes_apart() {
    fn filter() -> BloomFilter<u64> {
        BloomFilter::new(10, 1e-9)
    }
    macro_rules! lengths {
        ($($len:literal: $($at:literal $name:ident)*;)*) => {$({
            let mut multi = Multi::of(($({ let _ = $at; filter() },)*));
            assert_eq!(multi.insert(($(&$at,)*)), Ok(true));
            assert_eq!(multi.insert(($(&$at,)*)), Ok(false));
            assert!(multi.contains(($(&$at,)*)));
            assert!(multi.matches(($({ let _ = $at; None },)*)));
            let filters = multi.dimensions().filters();
            assert_eq!(filters.len(), $len);
            let digests = multi.digests(($(&$at,)*));
            for (at, filter) in filters.into_iter().enumerate() {
                for (other, digest) in digests.into_iter().enumerate() {
                    assert_eq!(filter.contains_digest(digest), at == other);
                }
                let mut query = [None; $len];
                query[at] = Some(digests[at]);
                assert!(multi.matches_digests(&query));
                query[at] = Some(Digest::mixed(99));
                assert!(!multi.matches_digests(&query));
            }
            let ($($name,)*) = multi.into_parts().0;
            $(assert!($name.contains(&$at));)*
        })*};
    }
    lengths! {
        1: 0 a;
        2: 0 a 1 b;
        3: 0 a 1 b 2 c;
        4: 0 a 1 b 2 c 3 d;
        5: 0 a 1 b 2 c 3 d 4 e;
        6: 0 a 1 b 2 c 3 d 4 e 5 f;
        7: 0 a 1 b 2 c 3 d 4 e 5 f 6 g;
        8: 0 a 1 b 2 c 3 d 4 e 5 f 6 g 7 h;
    }
}

#[test]
fn dimensions_are_iterated_by_reference_by_mutable_reference_and_by_value() {
    let mut multi = Multi::of([1, 2, 3].map(|items| BloomFilter::<u64>::new(items, 0.01)));
    for (filter, key) in (&mut multi).into_iter().zip(10_u64..) {
        filter.insert(&key);
    }
    multi.iter_mut().for_each(|filter| _ = filter.insert(&77));
    assert!(multi.contains([&10, &11, &12]) && multi.contains([&77; 3]));
    assert!((&multi).into_iter().zip(10_u64..).all(|(filter, key)| filter.contains(&key)));
    assert_eq!(multi.iter().map(|filter| filter.shape().items()).collect::<Vec<_>>(), [1, 2, 3]);
    let filters: Vec<BloomFilter<u64>> = multi.into_iter().collect();
    assert!(filters[2].contains(&12));
}

#[test]
fn code_can_be_generic_over_dimensions() {
    fn insert_everywhere<D: InsertEach>(dimensions: &mut D, digest: Digest) -> usize {
        let fresh = dimensions.filters_mut().into_iter().map(|filter| filter.insert_digest(digest));
        let fresh = fresh.filter(|fresh| *fresh == Ok(true)).count();
        assert!(dimensions.filters().into_iter().all(|filter| filter.contains_digest(digest)));
        assert_eq!(dimensions.filters().as_ref().len(), D::LEN);
        fresh
    }
    let mut array = Multi::of([0; 5].map(|_| BloomFilter::<u64>::new(10, 0.01)));
    assert_eq!(insert_everywhere(array.dimensions_mut(), Digest::mixed(7)), 5);
    let mut tuple = Multi::of((BlockedBloomFilter::<str>::new(10, 0.01), Exact::<u64>::new(9)));
    tuple.dimensions_mut().1.insert_digest(Digest::mixed(7)).unwrap();
    assert_eq!(insert_everywhere(tuple.dimensions_mut(), Digest::mixed(7)), 1);
}

#[test]
fn any_family_hasher_and_key_can_be_a_dimension() {
    let text = String::from("borrowed");
    let keyed = BlockedBloomFilter::<str, _>::with_hasher(10, 1e-6, Keyed::new([7; 16]));
    let standard = Std::new(BuildHasherDefault::<DefaultHasher>::default());
    let pairs = BloomFilter::<(u32, &str), _>::with_hasher(10, 1e-6, standard);
    let shared = AtomicBloomFilter::<String>::new(10, 1e-6);
    let mut multi = Multi::of((keyed, pairs, shared));
    assert_eq!(multi.insert(("a", &(7, text.as_str()), &text)), Ok(true));
    assert!(multi.contains(("a", &(7, "borrowed"), &text)));
    assert!(!multi.contains(("a", &(8, "borrowed"), &text)));
    assert!(multi.matches((None, Some(&(7, "borrowed")), None)));
    assert!(multi.dimensions().0.contains("a") && multi.dimensions().2.contains(&text));
}

#[test]
fn arrays_of_arrays_are_made_at_compile_time() {
    type Axis = ArrayBloomFilter<i32, { words_for(100, 0.001) }>;
    const EMPTY: MultiBloomFilter<Axis, 3> = Multi::of([const { Axis::new(100, 0.001) }; 3]);
    const JOINT: MultiBloomFilter<Axis, 2, Axis> =
        Multi::with_joint([const { Axis::new(100, 0.001) }; 2], Axis::new(100, 0.001));
    // An absent joint filter takes no room.
    assert_eq!(size_of_val(&EMPTY), 3 * size_of::<Axis>() + size_of::<Everything>());
    assert_eq!(size_of::<Everything>(), 0);
    let (mut points, mut edges) = (EMPTY, JOINT);
    assert_eq!(points.insert([&1, &-2, &3]), Ok(true));
    assert!(points.contains([&1, &-2, &3]) && !points.contains([&-2, &1, &3]));
    edges.insert([&1, &2]).unwrap();
    edges.insert([&2, &1]).unwrap();
    assert!(edges.contains([&2, &1]) && !edges.contains([&1, &1]));
    assert!(points != EMPTY && edges != JOINT);
}

/// `found` of `asked` is within five sigma of `rate`.
#[track_caller]
fn assert_rate(found: u64, asked: u64, rate: f64) {
    let (mean, sigma) = (rate * asked as f64, (rate * (1.0 - rate) * asked as f64).sqrt());
    let off = (found as f64 - mean) / sigma;
    assert!(off.abs() <= 5.0, "{found} of {asked} found, {mean:.0} expected: {off:.1} sigma");
}

/// The rates of the original: three dimensions at 0.03 each. One new attribute is found at the rate of its
/// dimension, three new ones at the product, and one of three at almost the sum. Records whose attributes were
/// all inserted, but never together, are found at the rate of the joint filter.
#[test]
fn every_rate_is_within_five_sigma() {
    const RECORDS: u64 = 10_000;
    const ASKED: u64 = 400_000;
    for seed in 0..5 {
        let filter = |at| BloomFilter::with_hasher(RECORDS, 0.03, Portable::seeded(3 * seed + at));
        let joint = BlockedBloomFilter::<u64>::new(RECORDS, 0.03);
        let mut multi = Multi::with_joint([0, 1, 2].map(filter), joint);
        // A bijection, so that all attributes differ.
        let attribute =
            |index: u64, at: u64| split_mix(split_mix(seed).wrapping_add(3 * index + at));
        let record = |index| [0, 1, 2].map(|at| attribute(index, at));
        for index in 0..RECORDS {
            multi.insert(record(index).each_ref()).unwrap();
        }
        assert!((0..RECORDS).all(|index| multi.contains(record(index).each_ref())));

        let rates = multi.dimensions().each_ref().map(|filter| filter.expected_rate());
        // One sigma of the fill is 0.2 %, and of its fifth power 1 %.
        assert!(rates.iter().all(|rate| *rate < 0.03 * 1.05), "{rates:?}");
        let (mut single, mut some, mut all) = ([0; 3], 0, 0);
        for index in RECORDS..RECORDS + ASKED {
            let record = record(index);
            let found = [0, 1, 2].map(|at| {
                let mut query = [None; 3];
                query[at] = Some(&record[at]);
                multi.matches(query)
            });
            (0..3).for_each(|at| single[at] += u64::from(found[at]));
            some += u64::from(found.contains(&true));
            let digests = multi.digests(record.each_ref());
            all += u64::from(multi.dimensions().find_each(|at| Some(digests[at])));
        }
        (0..3).for_each(|at| assert_rate(single[at], ASKED, rates[at]));
        assert_rate(some, ASKED, 1.0 - rates.iter().map(|rate| 1.0 - rate).product::<f64>());
        assert_rate(all, ASKED, rates.iter().product());

        let together = (0..ASKED).filter(|index| {
            let [a, b] = [index % RECORDS, (index + 1 + index / RECORDS) % RECORDS];
            let mixed = [attribute(a, 0), attribute(a, 1), attribute(b, 2)];
            assert!(multi.matches([Some(&mixed[0]), None, Some(&mixed[2])]));
            multi.contains(mixed.each_ref())
        });
        assert_rate(together.count() as u64, ASKED, multi.joint().expected_rate());
    }
}

#[test]
fn every_family_can_be_a_dimension_and_a_joint_filter() {
    let dimensions = (
        BloomFilter::<u64>::new(10, 1e-6),
        BlockedBloomFilter::<str>::new(10, 1e-6),
        CountingBloomFilter::<u64>::new(10, 1e-6),
        ScalableBloomFilter::<u64>::new(10, 1e-6),
        StableBloomFilter::<str>::new(10, 1e-6),
        ArrayStableBloomFilter::<u64, { stable::words_for(730, 3) }>::for_cells(730, 3, 0.001),
        SplitBlockBloomFilter::<u64>::new(10, 1e-6),
    );
    let mut multi = Multi::with_joint(dimensions, StableBloomFilter::<u64>::new(10, 1e-6));
    assert_eq!(multi.insert((&1, "two", &3, &4, "five", &6, &7)), Ok(true));
    assert_eq!(multi.insert((&1, "two", &3, &4, "five", &6, &7)), Ok(false));
    assert!(multi.contains((&1, "two", &3, &4, "five", &6, &7)));
    assert!(!multi.contains((&1, "two", &3, &4, "six", &6, &7)));
    assert!(multi.matches((None, None, Some(&3), Some(&4), Some("five"), Some(&6), None)));
    assert!(!multi.matches((None, None, None, None, None, Some(&7), None)));
    assert_eq!(multi.dimensions_mut().filters_mut().as_ref().len(), 7);
}

/// A record is gone as soon as one of its attributes is, unless that attribute is inserted repeatedly.
#[test]
fn dimensions_that_forget_do_so_each_by_itself() {
    let axis = || StableBloomFilter::<u64>::new(100, 0.001);
    let mut multi = Multi::of([axis(), axis()]);
    multi.insert([&1, &2]).unwrap();
    for other in 10..5_000_u64 {
        multi.insert([&1, &other]).unwrap();
    }
    assert!(multi.matches([Some(&1), None]) && !multi.matches([None, Some(&2)]));
    assert!(!multi.contains([&1, &2]) && multi.contains([&1, &4_999]));
}

/// 100,000 rounds of inserting one record and looking up another: each dimension has the rate of its formula,
/// within five sigma of the spread between parts of the stream.
#[test]
fn stable_dimensions_stay_at_the_rates_of_their_formulas() {
    const ROUNDS: usize = 100_000;
    const PARTS: usize = 50;
    let axis =
        || ArrayStableBloomFilter::<u64, { stable::words_for(730, 3) }>::for_cells(730, 3, 0.03);
    let mut multi = Multi::of([axis(), axis(), axis()]);
    let shape = *multi.dimensions()[0].shape();
    let settled = shape.settles_after(1e-4) as usize;
    assert!(ROUNDS / PARTS > 4 * settled, "parts are independent of each other");
    let record = |index: usize| [0, 1, 2].map(|at| split_mix((3 * index + at) as u64));
    for index in 0..settled {
        multi.insert(record(index).each_ref()).unwrap();
    }
    let mut found = [[0.0; PARTS]; 3];
    for round in 0..ROUNDS {
        multi.insert(record(settled + 2 * round).each_ref()).unwrap();
        let other = record(settled + 2 * round + 1);
        for at in 0..3 {
            let mut query = [None; 3];
            query[at] = Some(&other[at]);
            found[at][round * PARTS / ROUNDS] += f64::from(u8::from(multi.matches(query)));
        }
    }
    for parts in found {
        let mean = parts.iter().sum::<f64>() / PARTS as f64;
        let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
        let sigma = (squares / ((PARTS - 1) * PARTS) as f64).sqrt();
        let expected = shape.stable_rate() * (ROUNDS / PARTS) as f64;
        assert!(sigma < 0.05 * expected, "enough to tell: {sigma} of {expected}");
        assert!((mean - expected).abs() < 5.0 * sigma, "{mean} of {expected}, sigma {sigma}");
    }
}

#[test]
fn records_come_back_from_bytes_with_all_their_filters() {
    let bloom = || BloomFilter::<u64>::new(100, 0.01);
    let mut points = MultiBloomFilter::of([bloom(), bloom(), bloom()]);
    (0..50).for_each(|i| _ = points.insert([&i, &(i * 7), &(i * 11)]).unwrap());
    let bytes = points.to_bytes();
    // These bytes must never change.
    let digest = Portable::default().digest(&bytes);
    assert_eq!((bytes.len(), digest), (1_184, Digest::new(0xe3b5_a6bc_a4c7_2f5b)));
    let again = MultiBloomFilter::<BloomFilter<u64>, 3>::from_bytes(&bytes).unwrap();
    assert!(again == points && again.contains([&3, &21, &33]));
    let others = MultiBloomFilter::<BloomFilter<u64>, 2>::from_bytes(&bytes);
    assert_eq!(others.map(|_| ()), Err(InvalidBytes::Inconsistent));
    let others = MultiBloomFilter::<BloomFilter<str>, 3>::from_bytes(&bytes);
    assert_eq!(others.map(|_| ()), Err(InvalidBytes::Keys { expected: 3, got: 1 }));
    assert!(BloomFilter::<u64>::from_bytes(&bytes).is_err());

    type Logins = (BlockedBloomFilter<u64>, CuckooFilter<str>);
    let filters: Logins = (BlockedBloomFilter::new(10, 0.01), CuckooFilter::new(10, 0.01));
    let mut logins = Multi::with_joint(filters, BloomFilter::<u64>::new(10, 0.01));
    logins.insert((&7, "192.0.2.1")).unwrap();
    let bytes = logins.to_bytes();
    let again = Multi::<Logins, BloomFilter<u64>>::from_bytes(&bytes);
    assert!(again.unwrap().contains((&7, "192.0.2.1")));
    assert!(Multi::<Logins>::from_bytes(&bytes).is_err(), "without the joint filter");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(Multi::<Logins, BloomFilter<u64>>::from_bytes(&damaged).is_err());
        // The checksums of the whole are correct, and those of the filter inside are not.
        let forged = crate::forge::with(&bytes, at & !7, &[0xff; 8]);
        let read = Multi::<Logins, BloomFilter<u64>>::from_bytes(&forged);
        assert!(forged == bytes || read.is_err(), "{at}");
    }
}
