//! The counting filter against a multiset, cell by cell, and hostile input.

use crate::forge::{KERNELS, field, with};
use crate::positions::positions;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use umbel::Saved;
use umbel::counting::{Anywhere, ArrayCountingBloomFilter, CellLayout, Counting};
use umbel::counting::{InLine, LineShape, Shape, Width, words_for};
use umbel::hash::{Digest, Digester};
use umbel::layout::Probing;
use umbel::sizing::Shape as _;
use umbel::storage::Heap;
use umbel::{
    BlockedCountingBloomFilter, Contains, CountingBloomFilter, Incompatible, Insert, InvalidBytes,
    InvalidShape, Keyed, Portable, Remove, Union, bloom,
};
use umbel_laws::split_mix;

const WIDTHS: [Width; 3] = [Width::Two, Width::Four, Width::Eight];

fn made(shape: Shape) -> CountingBloomFilter<u64> {
    made_as::<Anywhere>(shape)
}

fn made_as<L: CellLayout>(shape: L::Shape) -> Counting<u64, Portable, Heap, L> {
    Counting::with(shape, Portable::default()).unwrap()
}

/// The cells of a key, computed from `docs/hashing.md` without the code of the library.
trait Defined: CellLayout {
    fn cells_of(shape: &Self::Shape, digest: Digest) -> Vec<usize>;
}

impl Defined for Anywhere {
    fn cells_of(shape: &Shape, digest: Digest) -> Vec<usize> {
        let cells = positions(shape.cells(), shape.probes(), digest);
        cells.into_iter().map(|cell| cell as usize).collect()
    }
}

impl Defined for InLine {
    fn cells_of(shape: &LineShape, digest: Digest) -> Vec<usize> {
        let digest = digest.bits();
        let line = (u128::from(digest) * u128::from(shape.lines())) >> 64;
        let in_word = 64 / u64::from(shape.width().bits());
        let mut digits = digest.wrapping_mul(0x93cd_3a2c_8198_e269);
        let mut digit = |base: u64| {
            let product = u128::from(digits) * u128::from(base);
            digits = product as u64;
            (product >> 64) as u64
        };
        let first = digit(8);
        (0..u64::from(shape.probes()))
            .map(|probe| {
                let cell = (first + probe) % 8 * in_word + digit(in_word);
                (line as u64 * 8 * in_word + cell) as usize
            })
            .collect()
    }
}

/// The cells of a filter as large numbers, and the keys that are in it.
struct Model<L: Defined> {
    shape: L::Shape,
    cells: Vec<u64>,
    keys: HashMap<u64, u64>,
}

impl<L: Defined> Model<L> {
    fn new(shape: L::Shape) -> Self {
        Self { shape, cells: vec![0; shape.places() as usize], keys: HashMap::new() }
    }

    fn positions(&self, key: u64) -> Vec<usize> {
        L::cells_of(&self.shape, Portable::default().digest(&key))
    }

    fn count(&self, key: u64) -> u64 {
        self.positions(key).into_iter().map(|cell| self.cells[cell]).min().unwrap()
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = self.count(key) == 0;
        for cell in self.positions(key) {
            self.cells[cell] = self.shape.cell_max().min(self.cells[cell] + 1);
        }
        *self.keys.entry(key).or_default() += 1;
        fresh
    }

    fn remove(&mut self, key: u64) -> bool {
        if self.count(key) == 0 {
            return false;
        }
        for cell in self.positions(key) {
            let saturated = self.cells[cell] == self.shape.cell_max();
            self.cells[cell] = self.cells[cell].saturating_sub(u64::from(!saturated));
        }
        let times = self.keys.get_mut(&key).expect("only keys that are there are removed");
        *times -= 1;
        true
    }

    fn words(&self) -> Vec<u64> {
        let bits = u64::from(self.shape.cell_bits());
        let mut words = vec![0; self.shape.words() as usize];
        for (cell, number) in (0..).zip(&self.cells) {
            words[(cell * bits / 64) as usize] |= number << (cell * bits % 64);
        }
        words
    }
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Extend(Vec<u64>),
    Remove(u64),
    RemoveBatch(Vec<u64>),
    Merge(Vec<u64>),
    Reload,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || vec(0_u64..60, 0..60);
    prop_oneof![
        8 => (0_u64..60).prop_map(Step::Insert),
        2 => keys().prop_map(Step::InsertBatch),
        2 => keys().prop_map(Step::Extend),
        12 => (0_u64..60).prop_map(Step::Remove),
        4 => keys().prop_map(Step::RemoveBatch),
        2 => keys().prop_map(Step::Merge),
        1 => Just(Step::Reload),
        1 => Just(Step::Clear),
    ]
}

/// Any history leaves exactly the cells, and gives exactly the answers, of the model. While only present keys
/// are removed, all present keys are found, and their counts are never too low.
fn follow<L: Defined>(shape: L::Shape, history: Vec<Step>) {
    let (mut filter, mut model) = (made_as::<L>(shape), Model::<L>::new(shape));
    for step in history {
        match step {
            Step::Insert(key) => assert_eq!(filter.insert(&key), model.insert(key)),
            Step::InsertBatch(keys) => {
                let mut fresh = vec![false; keys.len()];
                filter.insert_batch(&keys, &mut fresh);
                assert!(keys.iter().zip(fresh).all(|(key, fresh)| model.insert(*key) == fresh));
            }
            Step::Extend(keys) => {
                filter.extend(&keys);
                keys.into_iter().for_each(|key| _ = model.insert(key));
            }
            Step::Remove(key) => {
                if model.keys.get(&key).is_some_and(|times| *times > 0) {
                    assert!(filter.remove(&key) && model.remove(key));
                } else if model.count(key) == 0 {
                    assert!(!filter.remove(&key));
                }
            }
            Step::RemoveBatch(mut keys) => {
                let mut left = model.keys.clone();
                keys.retain(|key| {
                    let times = left.entry(*key).or_default();
                    let there = *times > 0;
                    *times -= u64::from(there);
                    there
                });
                let mut removed = vec![false; keys.len()];
                filter.remove_batch(&keys, &mut removed);
                assert!(removed.into_iter().all(|removed| removed));
                assert!(keys.into_iter().all(|key| model.remove(key)));
            }
            Step::Merge(keys) => {
                let mut other = made_as::<L>(shape);
                other.extend(&keys);
                filter.merge_with(&other).unwrap();
                keys.into_iter().for_each(|key| _ = model.insert(key));
            }
            Step::Reload => {
                let reloaded = Counting::from_bytes(&filter.to_bytes()).unwrap();
                assert!(reloaded == filter);
                filter = reloaded;
            }
            Step::Clear => {
                filter.clear();
                model = Model::new(shape);
            }
        }
        assert_eq!(filter.words(), model.words());
    }
    let keys: Vec<u64> = (0..200).collect();
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    for (key, found) in keys.into_iter().zip(found) {
        let (count, max) = (model.count(key), shape.cell_max());
        assert_eq!(filter.estimated_count(&key), count);
        assert_eq!((filter.contains(&key), found), (count > 0, count > 0));
        let times = model.keys.get(&key).copied().unwrap_or_default();
        assert!(count >= times.min(max), "key {key} is there {times} times");
        assert!((0..=times).all(|n| filter.count_at_least(&key, n)));
        assert_eq!(filter.count_at_least(&key, count + 1), count == max);
    }
    let count = |is: fn(u64, u64) -> bool| {
        model.cells.iter().filter(|cell| is(**cell, shape.cell_max())).count() as u64
    };
    assert_eq!(filter.count_nonzero(), count(|cell, _| cell > 0));
    assert_eq!(filter.saturated(), count(|cell, max| cell == max));
    assert_eq!(filter.is_empty(), filter.count_nonzero() == 0);
}

proptest! {
    #![proptest_config(crate::cases(256))]

    #[test]
    fn any_history_is_that_of_the_model(
        cells in 0_u64..400,
        probes in 1_u32..12,
        width in 0_usize..3,
        history in vec(step(), 0..80),
    ) {
        let positions = bloom::Shape::with(40, cells * 2 + 1, probes).unwrap();
        follow::<Anywhere>(Shape::of(positions, WIDTHS[width]).unwrap(), history);
    }

    #[test]
    fn any_history_in_lines_is_that_of_the_model(
        lines in 1_u64..8,
        probes in 1_u32..=8,
        width in 0_usize..3,
        history in vec(step(), 0..80),
    ) {
        follow::<InLine>(LineShape::with(40, lines, probes, WIDTHS[width]).unwrap(), history);
    }
}

/// In a filter of one cell, or five, a key has the same cell several times.
#[test]
fn remove_undoes_insert_even_where_a_key_has_a_cell_twice() {
    for cells in [1, 3, 5, 63] {
        let positions = bloom::Shape::with(1, cells, 7).unwrap();
        let shape = Shape::of(positions, Width::Eight).unwrap();
        let mut filter = made(shape);
        filter.extend(0..2_u64);
        let before = filter.clone();
        for key in 0..100 {
            filter.insert(&key);
            assert!(filter != before);
            assert!(filter.remove(&key));
            assert!(filter == before, "key {key} left something behind in {cells} cells");
        }
    }
}

#[test]
fn what_cells_count_they_give_back_to_the_last_bit() {
    for width in [Width::Four, Width::Eight] {
        let shape = Shape::for_rate(2_000, 0.01).unwrap().with_width(width).unwrap();
        let mut filter = made(shape);
        filter.extend(0..2_000_u64);
        for key in 0..2_000_u64 {
            assert!(filter.remove(&key));
            if key % 100 == 0 {
                assert!((key + 1..2_000).all(|key| filter.contains(&key)));
            }
        }
        assert!(filter.is_empty(), "{width:?}");
    }
}

#[test]
fn batches_of_a_filter_larger_than_the_cache_do_as_single_calls() {
    batches_do_as_single_calls::<Anywhere>();
    batches_do_as_single_calls::<InLine>();
}

fn batches_do_as_single_calls<L: CellLayout>() {
    for capacity in [600_000, 8_000_000] {
        let mut filter = Counting::<u64, Portable, Heap, L>::new(capacity, 0.01);
        let mut single = filter.clone();
        for len in [0, 1, 15, 16, 17, 31, 32, 33, 1_000] {
            let keys: Vec<u64> = (0..len).map(|i| split_mix(i % 900)).collect();
            let mut answers = vec![false; keys.len()];
            filter.insert_batch(&keys, &mut answers);
            assert!(keys.iter().zip(&answers).all(|(key, fresh)| single.insert(key) == *fresh));
            filter.extend(&keys);
            keys.iter().for_each(|key| _ = single.insert(key));
            assert!(filter == single);
            let asked: Vec<u64> = (0..len).map(|i| split_mix(i * 2)).collect();
            filter.contains_batch(&asked, &mut answers);
            assert!(asked.iter().zip(&answers).all(|(key, found)| single.contains(key) == *found));
            let digests: Vec<Digest> = asked.iter().map(|k| filter.hasher().digest(k)).collect();
            let mut by_digest = vec![false; digests.len()];
            filter.contains_digests(&digests, &mut by_digest);
            assert_eq!(by_digest, answers);
            filter.remove_batch(&keys, &mut answers);
            assert!(keys.iter().zip(&answers).all(|(key, gone)| single.remove(key) == *gone));
            assert!(filter == single);
        }
    }
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    let mut filter = CountingBloomFilter::<u64>::new(1_000, 0.01);
    filter.extend(0..1_000_u64);
    let before = filter.clone();
    let mut refused = 0;
    for key in 1_000..5_000_u64 {
        if !filter.contains(&key) {
            assert!(!filter.remove(&key));
            refused += 1;
        }
    }
    assert!(refused > 3_900 && filter == before);
}

#[test]
fn no_key_is_lost_when_half_of_them_are_removed() {
    no_key_is_lost::<Anywhere>(100_000);
    no_key_is_lost::<InLine>(1_000_000);
}

fn no_key_is_lost<L: CellLayout>(keys: u64) {
    let mut filter = Counting::<u64, Portable, Heap, L>::new(keys, 0.01);
    let mut half = filter.clone();
    filter.extend(0..keys);
    assert!((0..keys / 2).all(|key| filter.remove(&key)));
    assert!((keys / 2..keys).all(|key| filter.contains(&key)));
    half.extend(keys / 2..keys);
    assert!(filter == half, "what was removed is gone without a trace");
}

/// A key that is inserted sixteen times saturates cells that count to fifteen. It can no longer be removed, and
/// no other key is lost.
#[test]
fn a_saturated_cell_stays() {
    for width in WIDTHS {
        let shape = Shape::for_rate(100, 0.01).unwrap().with_width(width).unwrap();
        let mut filter = made(shape);
        let times = width.max() + 1;
        (0..times).for_each(|_| _ = filter.insert(&1));
        assert_eq!(filter.estimated_count(&1), width.max());
        assert!(filter.count_at_least(&1, times) && filter.count_at_least(&1, u64::MAX));
        assert!(filter.saturated() > 0);
        for _ in 0..2 * times {
            assert!(filter.remove(&1), "sticky: {width:?}");
        }
        assert!(filter.contains(&1));
        assert_eq!(filter.estimated_count(&1), width.max());
        filter.clear();
        assert!(filter.is_empty() && filter.saturated() == 0);
    }
}

/// Balls in bins: at capacity the number of a cell is a Poisson variable, so the share of saturated cells is
/// known, and the documentation states it.
#[test]
fn as_many_cells_are_saturated_as_chance_has_it() {
    let items = 200_000_u64;
    for (width, times) in [(Width::Two, 1), (Width::Two, 3), (Width::Four, 10)] {
        let shape = Shape::for_rate(items / times, 0.01).unwrap().with_width(width).unwrap();
        let mut filter = made(shape);
        filter.extend(0..items);
        let cells = shape.cells() as f64;
        let mean = (items * u64::from(shape.probes())) as f64 / cells;
        let (mut term, mut below) = ((-mean).exp(), 0.0);
        for number in 0..width.max() {
            below += term;
            term *= mean / (number + 1) as f64;
        }
        let share = 1.0 - below;
        let sigma = (share * below / cells).sqrt();
        let got = filter.saturated() as f64 / cells;
        assert!((got - share).abs() < 5.0 * sigma, "{width:?}: {got}, expected {share}");
        // Overload loses no key, and removing keys does not either.
        assert!((0..items / 2).all(|key| filter.remove(&key)));
        assert!((items / 2..items).all(|key| filter.contains(&key)));
    }
}

#[test]
fn a_merged_filter_counts_both_sides() {
    for width in WIDTHS {
        let shape = Shape::for_rate(300, 0.001).unwrap().with_width(width).unwrap();
        let (mut left, mut right, mut both) = (made(shape), made(shape), made(shape));
        for key in 0..200_u64 {
            left.insert(&key);
            both.insert(&key);
        }
        for key in 100..300_u64 {
            right.insert(&key);
            both.insert(&key);
        }
        Union::union_with(&mut left, &right).unwrap();
        assert!(left == both);
        assert!((100..200).all(|key| left.count_at_least(&key, 2)));
    }
}

#[test]
fn filters_that_do_not_fit_are_refused_and_left_alone() {
    let shape = Shape::for_rate(100, 0.01).unwrap();
    let mut filter = made(shape);
    filter.insert(&1);
    let before = filter.clone();
    let refused = |filter: &mut CountingBloomFilter<u64>, other: Shape, hasher: Portable| {
        filter.merge_with(&CountingBloomFilter::with(other, hasher).unwrap()).unwrap_err()
    };
    let plain = Portable::default();
    let wide = shape.with_width(Width::Eight).unwrap();
    let error = refused(&mut filter, wide, plain);
    assert_eq!(error, Incompatible::Cells { expected: 4, got: 8 });
    assert!(error.to_string().contains('8'));
    let larger = Shape::for_rate(200, 0.01).unwrap();
    assert!(matches!(refused(&mut filter, larger, plain), Incompatible::Bits { .. }));
    assert_eq!(refused(&mut filter, shape, Portable::seeded(9)), Incompatible::Hasher);
    assert!(filter == before && filter != made(wide));
}

#[test]
fn hostile_parameters_are_refused() {
    type Counting = CountingBloomFilter<u64>;
    for rate in [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Counting::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }));
    }
    for capacity in [u64::MAX, 1 << 58, 1 << 46] {
        assert!(Counting::try_new(capacity, 0.01).is_err());
    }
    // A valid shape that exceeds the memory of the machine.
    let huge = bloom::Shape::with(1, (1 << 45) - 1, 7).unwrap();
    let huge = Shape::of(huge, Width::Eight).unwrap();
    let error = Counting::with(huge, Portable::default()).unwrap_err();
    assert_eq!(error, InvalidShape::OutOfMemory { bytes: huge.bytes() });
    let even = Shape::of(bloom::Shape::with(1, 64, 7).unwrap(), Width::Four).unwrap();
    let error = Counting::with(even, Portable::default()).unwrap_err();
    assert_eq!(error, InvalidShape::EvenBits { bits: 64 });
    let mut none = Counting::new(0, 0.01);
    assert!(!none.contains(&1) && !none.remove(&1) && none.insert(&1) && none.remove(&1));
    assert!(none.is_empty() && none.count_at_least(&1, 0));
    assert_eq!((none.expected_rate(), none.estimated_len()), (0.0, 0));
}

#[test]
fn estimates_come_back_when_keys_leave() {
    let mut filter = CountingBloomFilter::<u64>::new(100_000, 0.01);
    filter.extend(0..100_000_u64);
    // One sigma of the estimate is below 0.2 % here.
    assert!(filter.estimated_len().abs_diff(100_000) < 1_000);
    // One sigma of the fill is 0.06 % of it, and of its seventh power seven times that.
    let off = |filter: &CountingBloomFilter<u64>, items| {
        (filter.expected_rate() / filter.shape().expected_rate(items) - 1.0).abs()
    };
    assert!(off(&filter, 100_000) < 5.0 * 0.0042, "{filter:?}");
    assert!((0..50_000_u64).all(|key| filter.remove(&key)));
    assert!(filter.estimated_len().abs_diff(50_000) < 1_000);
    assert!(off(&filter, 50_000) < 5.0 * 0.0046, "{filter:?}");
}

#[test]
fn bytes_keep_the_width_and_refuse_another() {
    for width in WIDTHS {
        // Cells of any width take one word when there is one cell.
        for cells in [1, 63, 1_001] {
            let positions = bloom::Shape::with(10, cells, 3).unwrap();
            let mut filter = made(Shape::of(positions, width).unwrap());
            filter.extend(0..5_u64);
            let bytes = filter.to_bytes();
            let loaded = CountingBloomFilter::<u64>::from_bytes(&bytes).unwrap();
            assert!(loaded == filter && loaded.shape() == filter.shape());
            assert_eq!((bytes[10], bytes[KERNELS], bytes[field(3)]), (4, 1, width.bits() as u8));
            let other = umbel::BloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
            assert_eq!(other, InvalidBytes::Family { expected: 1, got: 4 });
            for seeded in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[seeded / 8] ^= 1 << (seeded % 8);
                assert!(CountingBloomFilter::<u64>::from_bytes(&damaged).is_err());
            }
        }
    }
    let keyed = CountingBloomFilter::<str, Keyed>::with_hasher(10, 0.01, Keyed::new([1; 16]));
    let bytes = keyed.to_bytes();
    let load = |secret| {
        CountingBloomFilter::<str, Keyed>::from_bytes_with_hasher(&bytes, Keyed::new([secret; 16]))
    };
    assert!(load(1).unwrap() == keyed);
    assert_eq!(load(2).unwrap_err(), InvalidBytes::Hasher);
}

#[test]
fn an_array_has_the_cells_of_the_heap() {
    const WORDS: usize = words_for(100, 0.01);
    let mut array = ArrayCountingBloomFilter::<u64, WORDS>::new(100, 0.01);
    let mut heap = CountingBloomFilter::<u64>::new(100, 0.01);
    array.extend(0..150_u64);
    heap.extend(0..150_u64);
    assert!((0..20).all(|key| array.remove(&key) && heap.remove(&key)));
    assert_eq!(array.words(), heap.words());
    assert!(ArrayCountingBloomFilter::<u64, 3>::try_new(100, 0.01).is_err());
}

#[test]
fn code_that_knows_only_traits_can_count() {
    fn come_and_go<F: Insert + Remove>(filter: &mut F, digest: Digest) -> [bool; 4] {
        let fresh = filter.insert_digest(digest).unwrap();
        [fresh, filter.contains_digest(digest), filter.remove_digest(digest), {
            Contains::contains_digest(filter, digest)
        }]
    }
    let mut filter = CountingBloomFilter::<str>::new(10, 0.01);
    assert_eq!(come_and_go(&mut filter, Digest::mixed(3)), [true, true, true, false]);
    let text = format!("{filter:?}");
    assert!(text.contains("CountingBloomFilter") && text.contains("bits_per_cell: 4"), "{text}");
}

/// Words that must never change. The positions are those of the classic filter, whose words were computed by a
/// second implementation: its bits are set where these cells are not zero.
#[test]
fn a_filter_keeps_its_words() {
    for (width, expected) in WIDTHS.into_iter().zip([
        0x68b5_b7c5_f75b_3ebf,
        0x0452_9d2d_e625_1159,
        0x85c3_cc87_1f15_a08e,
    ]) {
        let shape = Shape::for_rate(1_000, 0.01).unwrap().with_width(width).unwrap();
        let mut filter = made(shape);
        filter.extend(0..1_000_u64);
        let words: Vec<u8> = filter.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let digest = Portable::default().digest(&words);
        let mut classic = umbel::BloomFilter::<u64>::new(1_000, 0.01);
        classic.extend(0..1_000_u64);
        let bits = u64::from(width.bits());
        for cell in 0..shape.cells() {
            let bit = cell * bits;
            let number = filter.words()[(bit / 64) as usize] >> (bit % 64) & width.max();
            let set = classic.words()[(cell / 64) as usize] >> (cell % 64) & 1;
            assert_eq!(u64::from(number > 0), set, "{width:?}: cell {cell}");
        }
        assert_eq!(digest, Digest::new(expected), "the words have changed: {width:?}");
    }
}

#[test]
fn hostile_plans_of_lines_are_refused() {
    type Blocked = BlockedCountingBloomFilter<u64>;
    for rate in [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Blocked::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }));
    }
    assert!(matches!(Blocked::try_new(10, 1e-13), Err(InvalidShape::RateTooSmall { .. })));
    for capacity in [u64::MAX, 1 << 58, 1 << 46] {
        assert!(Blocked::try_new(capacity, 0.01).is_err());
    }
    let huge = LineShape::with(1, 1 << 39, 6, Width::Four).unwrap();
    let error = Blocked::with(huge, Portable::default()).unwrap_err();
    assert_eq!(error, InvalidShape::OutOfMemory { bytes: 1 << 45 });
    assert!(LineShape::with(1, (1 << 39) + 1, 6, Width::Four).is_err());
    assert!(LineShape::with(1, 0, 6, Width::Four).is_err());
    assert!(LineShape::with(1, 1, 0, Width::Four).is_err());
    assert!(LineShape::with(1, 1, 9, Width::Four).is_err());
    let mut none = Blocked::new(0, 0.01);
    assert!(!none.contains(&1) && !none.remove(&1) && none.insert(&1) && none.remove(&1));
    assert!(none.is_empty() && none.expected_rate() == 0.0 && none.bytes() == 64);
}

#[test]
fn bytes_of_lines_are_not_those_of_cells_anywhere() {
    for width in WIDTHS {
        let mut filter = made_as::<InLine>(LineShape::with(10, 3, 5, width).unwrap());
        filter.extend(0..20_u64);
        let bytes = filter.to_bytes();
        assert_eq!((bytes[10], bytes[KERNELS], bytes[field(3)]), (4, 5, width.bits() as u8));
        let loaded = BlockedCountingBloomFilter::<u64>::from_bytes(&bytes).unwrap();
        assert!(loaded == filter && loaded.shape() == filter.shape());
        let error = CountingBloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, InvalidBytes::Kernels { .. }), "{error}");
        // With one cell more, the last line is incomplete.
        let bytes = with(&bytes, field(1), &[bytes[field(1)] + 1]);
        let error = BlockedCountingBloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, InvalidBytes::Shape(InvalidShape::NotAMultiple { .. })), "{error}");
    }
}

/// Words that must never change, computed by a second implementation in another language, written from
/// `docs/hashing.md`.
#[test]
fn a_blocked_counting_filter_keeps_its_words_and_its_mistakes() {
    for (width, expected, mistakes) in [
        (Width::Two, 0x2658_f371_497c_4b3a, [1059, 1485, 1503, 1624, 1658]),
        (Width::Four, 0x7e06_d213_7301_2b93, [1067, 1261, 1372, 1397, 1547]),
        (Width::Eight, 0x19b8_52ce_dd17_e5e7, [1023, 1024, 1072, 1156, 1182]),
    ] {
        let lines = 80 * u64::from(width.bits()) / 4;
        let mut filter = made_as::<InLine>(LineShape::with(0, lines, 6, width).unwrap());
        filter.extend(0..1_000_u64);
        let words: Vec<u8> = filter.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let digest = Portable::default().digest(&words);
        let found: Vec<u64> = (1_000..).filter(|key| filter.contains(key)).take(5).collect();
        assert_eq!((digest, &found[..]), (Digest::new(expected), &mistakes[..]), "{width:?}");
    }
}
