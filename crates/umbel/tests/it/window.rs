//! The window filter against its definition, line by line, with hostile clocks, sizes and bytes.

use crate::forge::{self, field};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use umbel::Saved;
use umbel::hash::{Digester, Portable};
use umbel::window::{MAX_EPOCHS, Shape, Window};
use umbel::{BlockedBloomFilter, Contains, Edge, Insert, InvalidBytes, InvalidShape, Keyed};
use umbel::{MultiBloomFilter, WindowBloomFilter};
use umbel_laws::split_mix;

fn made(shape: Shape) -> WindowBloomFilter<u64> {
    WindowBloomFilter::with(shape, Portable::default()).unwrap()
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A past insertion.
struct Insertion {
    key: u64,
    group: u64,
    bits: [u64; 8],
    /// The movement of the window so far.
    moved: u128,
    time: u64,
}

/// All past insertions. Each answer is computed from them: which lines still have a key. The model has no hand:
/// a group begins its epochs at its own moments, once per turn.
struct Model {
    shape: Shape,
    log: Vec<Insertion>,
    moved: u128,
    now: Option<u64>,
}

impl Model {
    fn new(shape: Shape) -> Self {
        Self { shape, log: Vec::new(), moved: 0, now: None }
    }

    fn is_timed(&self) -> bool {
        matches!(self.shape.window(), Window::Time(_))
    }

    /// The group of a key and its bits there, as a blocked filter has them.
    fn place(&self, key: u64) -> (u64, [u64; 8]) {
        let shape = *self.shape.epoch();
        let mut one = BlockedBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        one.insert(&key);
        let (lines, _) = one.words().as_chunks();
        let group = lines.iter().position(|line| *line != [0; 8]).unwrap();
        (group as u64, lines[group])
    }

    /// The number of epochs that a group has begun after this movement of the window.
    fn begun(&self, group: u64, moved: u128) -> u128 {
        let (groups, turn) =
            (u128::from(self.shape.groups()), u128::from(self.shape.epoch().items()));
        let turn = match self.shape.turn() {
            Window::Insertions(insertions) => u128::from(insertions).max(turn),
            Window::Time(time) => time.as_nanos(),
        };
        (moved * groups / turn + groups - 1 - u128::from(group)) / groups
    }

    fn line(&self, insertion: &Insertion, moved: u128) -> Option<usize> {
        let epochs = u128::from(self.shape.epochs());
        let born = self.begun(insertion.group, insertion.moved);
        let kept = self.begun(insertion.group, moved) - born < epochs;
        kept.then_some((u128::from(insertion.group) * epochs + born % epochs) as usize)
    }

    fn words_at(&self, moved: u128) -> Vec<u64> {
        let mut words = vec![0; self.shape.words() as usize];
        for insertion in &self.log {
            if let Some(line) = self.line(insertion, moved) {
                for (word, bits) in words[8 * line..].iter_mut().zip(insertion.bits) {
                    *word |= bits;
                }
            }
        }
        words
    }

    fn contains_at(&self, key: u64, moved: u128) -> bool {
        let (group, bits) = self.place(key);
        let words = self.words_at(moved);
        let epochs = self.shape.epochs() as usize;
        let lines = words.as_chunks::<8>().0;
        lines[group as usize * epochs..][..epochs]
            .iter()
            .any(|line| line.iter().zip(bits).all(|(word, bits)| word & bits == bits))
    }

    /// The movement of the window at that time.
    fn moved_at(&self, now: u64) -> u128 {
        match self.now {
            Some(before) if self.is_timed() => self.moved + u128::from(now.saturating_sub(before)),
            _ => self.moved,
        }
    }

    fn advance(&mut self, now: u64) {
        self.moved = self.moved_at(now);
        self.now = self.now.max(Some(now));
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains_at(key, self.moved);
        let (group, bits) = self.place(key);
        let time = self.now.unwrap_or(0);
        self.log.push(Insertion { key, group, bits, moved: self.moved, time });
        self.moved += u128::from(!self.is_timed());
        fresh
    }

    /// The keys of the window, by its definition.
    fn window(&self) -> Vec<u64> {
        let recent = |insertion: &&Insertion| match self.shape.window() {
            Window::Insertions(_) => true,
            Window::Time(window) => {
                nanos(self.now.unwrap_or(0)) <= nanos(insertion.time).saturating_add(window)
            }
        };
        let most = match self.shape.window() {
            Window::Insertions(window) => window as usize,
            Window::Time(_) => usize::MAX,
        };
        self.log.iter().rev().take(most).filter(recent).map(|insertion| insertion.key).collect()
    }
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertAt(u64, i64),
    Batch(Vec<u64>),
    Extend(Vec<u64>),
    Advance(i64),
    Jump,
    Reload,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0_u64..40;
    prop_oneof![
        8 => key().prop_map(Step::Insert),
        8 => (key(), -20_i64..60).prop_map(|(key, by)| Step::InsertAt(key, by)),
        2 => vec(key(), 0..80).prop_map(Step::Batch),
        2 => vec(key(), 0..80).prop_map(Step::Extend),
        4 => (-500_i64..500).prop_map(Step::Advance),
        1 => Just(Step::Jump),
        1 => Just(Step::Reload),
        1 => Just(Step::Clear),
    ]
}

/// Any history leaves exactly the words, and gives exactly the answers, of the definition. Every key in the
/// window is found.
fn follow(shape: Shape, history: Vec<Step>) {
    let (mut filter, mut model) = (made(shape), Model::new(shape));
    let mut clock = 1_u64 << 40;
    for step in history {
        match step {
            Step::Insert(key) => assert_eq!(filter.insert(&key), model.insert(key)),
            Step::InsertAt(key, by) => {
                clock = clock.saturating_add_signed(by);
                model.advance(clock);
                let later = clock.saturating_add(split_mix(key) % 300);
                assert_eq!(filter.insert_at(&key, nanos(clock)), model.insert(key));
                let then = model.contains_at(key, model.moved_at(later));
                assert_eq!(filter.contains_at(&key, nanos(later)), then);
            }
            Step::Batch(keys) => {
                let mut fresh = vec![false; keys.len()];
                filter.insert_batch(&keys, &mut fresh);
                assert!(keys.iter().zip(fresh).all(|(key, fresh)| model.insert(*key) == fresh));
            }
            Step::Extend(keys) => {
                filter.extend(&keys);
                keys.into_iter().for_each(|key| _ = model.insert(key));
            }
            Step::Advance(by) => {
                clock = clock.saturating_add_signed(by);
                model.advance(clock);
                filter.advance(nanos(clock));
            }
            Step::Jump => {
                clock = clock.saturating_add(1 << 62);
                model.advance(clock);
                filter.advance(nanos(clock));
            }
            Step::Reload => {
                let again = WindowBloomFilter::from_bytes(&filter.to_bytes()).unwrap();
                assert!(again == filter && again.insertions() == filter.insertions());
                filter = again;
            }
            Step::Clear => {
                filter.clear();
                model.log.clear();
            }
        }
        assert_eq!(filter.words(), model.words_at(model.moved));
        assert_eq!(filter.insertions(), model.log.len() as u64);
        assert_eq!(filter.now(), model.now.map(nanos));
        let window = model.window();
        let mut found = vec![false; window.len()];
        filter.contains_batch(&window, &mut found);
        assert!(found.into_iter().all(|found| found), "a key of the window is lost");
        for key in 0..3 {
            assert_eq!(filter.contains(&key), model.contains_at(key, model.moved));
        }
    }
}

proptest! {
    #![proptest_config(crate::cases(48))]

    #[test]
    fn a_window_of_insertions_is_what_its_definition_says(
        window in 0_u64..120, epochs in 2_u32..8, history in vec(step(), 1..30),
    ) {
        follow(Shape::for_rate_in_epochs(window, 0.05, epochs).unwrap(), history);
    }

    #[test]
    fn a_window_of_time_is_what_its_definition_says(
        window in 1_u64..400, capacity in 0_u64..120, epochs in 2_u32..8, even in any::<bool>(),
        history in vec(step(), 1..30),
    ) {
        let plan = if even { Shape::for_even_time_in_epochs } else { Shape::for_time_in_epochs };
        follow(plan(nanos(window), capacity, 0.05, epochs).unwrap(), history);
    }
}

#[test]
fn windows_of_any_size_keep_exactly_so_many() {
    for window in (1..=20).chain([63, 64, 65, 500]) {
        for epochs in [2, 3, 5, 9, MAX_EPOCHS] {
            let shape = Shape::for_rate_in_epochs(window, 1e-6, epochs).unwrap();
            let Window::Insertions(longest) = shape.longest() else { unreachable!() };
            let mut filter = made(shape);
            for key in 0..4 * longest {
                filter.insert(&key);
                let oldest = key.saturating_sub(window - 1);
                assert!(filter.contains(&oldest) && filter.contains(&key), "{window} {epochs}");
                // The rate is so small that none of these is a false positive.
                if key >= longest {
                    assert!(!filter.contains(&(key - longest)), "{window} {epochs}");
                }
            }
        }
    }
}

#[test]
fn no_window_is_a_window_of_one() {
    let mut filter = WindowBloomFilter::<u64>::new(0, 1e-6);
    assert!(filter.insert(&1) && filter.contains(&1));
    assert!(filter.insert(&2) && filter.contains(&2) && !filter.contains(&1));
}

#[test]
fn a_key_that_comes_again_is_the_newest() {
    let mut filter = WindowBloomFilter::<u64>::new(100, 1e-6);
    for round in 0..20 {
        assert_eq!(filter.insert(&7), round == 0);
        filter.extend(1_000 * (round + 1)..1_000 * (round + 1) + 99);
        assert!(filter.contains(&7));
    }
    filter.extend(0..0_u64);
    filter.extend(100_000..100_125_u64);
    assert!(!filter.contains(&7));
}

#[test]
fn clocks_that_misbehave_lose_nothing_early() {
    let minute = Duration::from_secs(60);
    let start = Duration::from_secs(1_700_000_000);
    let filter = || WindowBloomFilter::<u64>::for_time(minute, 100, 1e-6);

    // Insertions before the first time count as insertions at that time.
    let mut seen = filter();
    assert!(seen.insert(&1) && seen.now().is_none());
    seen.advance(start);
    assert!(seen.contains(&1) && seen.contains_at(&1, start + minute));

    // Back by a year: the window does not move until the clock reaches the old time.
    let year = Duration::from_secs(31_557_600);
    assert!(seen.insert_at(&2, start - year));
    assert_eq!(seen.now(), Some(start));
    seen.advance(Duration::ZERO);
    assert!(seen.contains(&1) && seen.contains(&2) && seen.contains_at(&2, start + minute));

    // Forward by a year, or to the end of time: all keys are forgotten.
    for far in [start + year, Duration::from_nanos(u64::MAX), Duration::MAX] {
        let mut later = seen.clone();
        assert!(!later.contains_at(&1, far));
        later.advance(far);
        assert!(!later.contains(&1) && later.is_empty());
        assert!(later.insert_at(&3, far) && later.contains_at(&3, far.saturating_add(minute)));
    }

    // The last moment of the window, and the first at which the key is certainly forgotten.
    let mut seen = filter();
    let Window::Time(longest) = seen.shape().longest() else { unreachable!() };
    for key in 0..1_000_u64 {
        let now = start + Duration::from_millis(700) * key as u32;
        seen.insert_at(&key, now);
        assert!(seen.contains_at(&key, now + minute));
        assert!(!seen.contains_at(&key, now + longest));
        let oldest = key.saturating_sub(85); // 59.5 seconds ago
        assert!(seen.contains(&oldest));
    }
}

#[test]
fn more_keys_than_planned_raise_the_rate_and_are_found() {
    let mut seen = WindowBloomFilter::<u64>::for_time(Duration::from_secs(1), 1_000, 0.01);
    seen.advance(Duration::from_secs(5));
    seen.extend(0..10_000_u64);
    assert!((0..10_000).all(|key| seen.contains(&key)));
    assert!(seen.expected_rate() > 0.5 && seen.shape().expected_rate(1_000) <= 0.01);
    seen.advance(Duration::from_secs(7));
    assert!(seen.is_empty() && seen.expected_rate() == 0.0);
}

/// All insertions of a window come at once, and the same number again at the first moment that the window
/// allows, while the first ones are still present.
#[test]
fn a_burst_keeps_the_rate_of_a_window_of_time() {
    let hour = Duration::from_secs(3_600);
    for (capacity, rate) in [(1_000_u64, 0.01), (20_000, 0.01), (20_000, 0.001)] {
        let shape = Shape::for_time(hour, capacity, rate).unwrap();
        let again = WindowBloomFilter::<u64>::from_bytes(&made(shape).to_bytes()).unwrap();
        assert_eq!((again.shape(), again.shape().burst_rate()), (&shape, shape.burst_rate()));
        let (mut found, mut asked, mut told) = (0, 0_u64, 0.0);
        let filters = (200_000 / capacity).min(50);
        for seed in 0..filters {
            let mut filter = WindowBloomFilter::with(shape, Portable::seeded(seed)).unwrap();
            for (burst, now) in [(0, hour), (1, 2 * hour + nanos(1))] {
                filter.advance(now);
                filter.extend(burst * capacity..(burst + 1) * capacity);
                let queries = (burst + 1) << 40..((burst + 1) << 40) + 10_000_u64;
                asked += 10_000;
                told += 10_000.0 * filter.expected_rate();
                found += queries.filter(|key| filter.contains(key)).count() as u64;
            }
        }
        let off = umbel_laws::sigmas(found, asked, told);
        assert!(off <= 5.0, "{capacity} {rate}: {found} {told}, {off} sigma");
        // Half of the look-ups were after one burst, half after two.
        let most = 0.75 * rate * asked as f64;
        assert!((found as f64) < most + 6.0 * most.sqrt(), "{capacity} {rate}: {found} {most}");
    }
}

#[test]
fn time_moves_no_window_of_insertions() {
    let mut seen = WindowBloomFilter::<u64>::new(10, 1e-6);
    seen.insert_at(&1, Duration::ZERO);
    seen.advance(Duration::MAX);
    assert!(seen.contains(&1) && seen.contains_at(&1, Duration::MAX));
    (2..11_u64).for_each(|key| _ = seen.insert_at(&key, Duration::ZERO));
    assert!(seen.contains(&1));
}

/// Full epochs, at every phase of a turn: the false positive rate is the planned one, and the filter reports
/// it.
#[test]
fn the_rate_is_kept_at_every_moment_of_a_turn() {
    for (window, rate) in [(20_u64, 0.05), (300, 0.01), (10_000, 0.01), (10_000, 0.001)] {
        let shape = Shape::for_rate(window, rate).unwrap();
        let filters = (40_000 / window).clamp(12, 400);
        let (mut found, mut told, mut asked) = (0, 0.0, 0_u64);
        let mut rates = Vec::new();
        for number in 0..filters {
            let mut filter =
                WindowBloomFilter::<u64>::with(shape, Portable::seeded(number)).unwrap();
            filter.extend(0..3 * window);
            let before = (told, asked);
            for moment in 0..8 {
                let first = 3 * window + moment * (window / 8 + 1);
                filter.extend(first..first + window / 8 + 1);
                // Different keys at every moment, because most lines stay unchanged.
                let queries = (moment + 1) << 40..((moment + 1) << 40) + 400_000 / filters;
                asked += queries.end - queries.start;
                told += filter.expected_rate() * (queries.end - queries.start) as f64;
                found += queries.filter(|key| filter.contains(key)).count();
            }
            rates.push((told - before.0) / (asked - before.1) as f64);
        }
        let off = umbel_laws::sigmas(found as u64, asked, told);
        assert!(off <= 5.0, "{window} {rate}: {found} {told}, {off} sigma");
        // Filters differ by chance. Their mean is the planned rate, and no more than the requested one.
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        let luck = 5.0 * (squares / (count * (count - 1.0))).sqrt();
        let planned = shape.expected_rate(window);
        assert!(planned <= rate && mean <= planned + luck, "{window}: {mean} {planned} {luck}");
        // Nor much less: the plan is for the fullest moment of a turn.
        assert!(window < 10_000 || mean >= 0.9 * planned, "{window}: {mean} {planned}");
    }
}

#[test]
fn what_is_in_it_is_estimated() {
    let mut seen = WindowBloomFilter::<u64>::new(100_000, 0.01);
    assert_eq!(seen.estimated_len(), 0);
    seen.extend(0..70_000_u64);
    // Five sigma: keys are counted by lines.
    let near = |estimate: u64, exact: f64| (estimate as f64 - exact).abs() < 5.0 * exact.sqrt();
    assert!(near(seen.estimated_len(), 70_000.0), "{seen:?} {}", seen.estimated_len());
    seen.extend(70_000..500_000_u64);
    // Four full turns, and one that is half full on average.
    assert!(near(seen.estimated_len(), 112_500.0), "{seen:?} {}", seen.estimated_len());
    seen.clear();
    assert_eq!((seen.estimated_len(), seen.insertions()), (0, 0));
}

#[test]
fn shapes_too_large_are_typed_errors() {
    for window in [1 << 50, u64::MAX] {
        assert!(WindowBloomFilter::<u64>::try_new(window, 0.01).is_err());
    }
    let shape = Shape::for_rate(1 << 42, 0.01).unwrap();
    let error = WindowBloomFilter::<u64>::with(shape, Portable::default()).unwrap_err();
    assert!(matches!(error, InvalidShape::OutOfMemory { .. }), "{error}");
    assert!(std::panic::catch_unwind(|| WindowBloomFilter::<u64>::new(10, 2.0)).is_err());
    let zero = || WindowBloomFilter::<u64>::for_time(Duration::ZERO, 10, 0.1);
    assert!(std::panic::catch_unwind(zero).is_err());
}

#[test]
fn it_is_a_filter_for_code_over_any_family() {
    fn through<F: Edge<Key = str> + Insert>(filter: &mut F) -> bool {
        let digest = filter.digest("key");
        filter.insert_digest(digest).unwrap() && Contains::contains_digest(filter, digest)
    }
    assert!(through(&mut WindowBloomFilter::<str>::new(10, 0.01)));
    let window = || WindowBloomFilter::<u64>::new(10, 1e-6);
    let mut records = MultiBloomFilter::of([window(), window()]);
    assert!(records.insert([&1, &2]).unwrap() && records.contains([&1, &2]));
}

#[test]
fn bytes_with_another_secret_or_an_impossible_state_are_refused() {
    let (one, other) = (Keyed::new([1; 16]), Keyed::new([2; 16]));
    let mut seen = WindowBloomFilter::<u64, Keyed>::with_hasher(10, 0.01, one);
    seen.insert(&1);
    let bytes = seen.to_bytes();
    let read = |hasher| WindowBloomFilter::<u64, Keyed>::from_bytes_with_hasher(&bytes, hasher);
    assert_eq!(read(other).unwrap_err(), InvalidBytes::Hasher);
    assert!(read(Keyed::new([1; 16])).unwrap() == seen);
    let blocked = BlockedBloomFilter::<u64>::new(10, 0.01).to_bytes();
    let error = WindowBloomFilter::<u64>::from_bytes(&blocked).unwrap_err();
    assert_eq!(error, InvalidBytes::Family { expected: 7, got: 2 });

    // Correct checksums for an impossible state.
    let timed = Shape::for_time(nanos(9), 10, 0.01).unwrap();
    for (shape, number, value) in [
        (timed, 3, 1_u64),
        (timed, 3, 65),
        (timed, 4, 0),
        (timed, 4, u64::MAX),
        (timed, 5, 1 << 50),
        (timed, 6, 64),
        (timed, 7, u64::MAX),
        (timed, 8, 2),
        (timed, 9, 1),
        (timed, 10, 1),
        (Shape::for_rate(10, 0.01).unwrap(), 4, 1),
    ] {
        let bytes = forge::with(&made(shape).to_bytes(), field(number), &value.to_le_bytes());
        let error = WindowBloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
        let refused = matches!(error, InvalidBytes::Inconsistent | InvalidBytes::Shape(_));
        assert!(refused, "field {number}: {error}");
    }
}

#[test]
fn equal_filters_are_equal_in_all_that_counts() {
    let filter = || WindowBloomFilter::<u64>::for_time(nanos(100), 10, 0.01);
    let (mut one, mut two) = (filter(), filter());
    assert!(one == two);
    one.insert_at(&1, nanos(5));
    assert!(one != two);
    two.insert_at(&1, nanos(5));
    assert!(one == two && one.clone() == two);
    two.advance(nanos(6));
    assert!(one != two);
    let seeded = WindowBloomFilter::<u64>::with(*one.shape(), Portable::seeded(1)).unwrap();
    assert!(filter() != seeded);
    assert_ne!(seeded.hasher().digest(&1), one.hasher().digest(&1));
    assert!(format!("{one:?}").contains("window: Time(100ns)"), "{one:?}");
}
