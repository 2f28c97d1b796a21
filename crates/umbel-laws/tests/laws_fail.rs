//! Tests of the laws themselves: an exact multiset obeys all laws, and each defect below breaks one.

use std::collections::{HashMap, VecDeque};
use umbel_laws::{
    AgeingTrial, Ages, Batches, Pattern, Removes, Saves, Subject, Trial, Unites,
    a_batch_stops_at_the_first_key_without_room, finds_what_just_came, no_false_negatives,
    rate_within, refuses_incompatible, remove_undoes_insert, round_trips, settles_at_its_rate,
    split_mix, survives_any_bytes, union_contains_both,
};

/// The defect of a subject.
const NOTHING: u8 = 0;
const LOSES_A_KEY: u8 = 1;
const FINDS_TOO_MUCH: u8 = 2;
const TELLS_A_WRONG_RATE: u8 = 3;
const SAYS_NEW_TWICE: u8 = 4;
const REMOVES_A_STRANGER: u8 = 5;
const REMOVES_EVERYTHING: u8 = 6;
const UNITES_ANYTHING: u8 = 7;
const FORGETS_ITS_SIDE: u8 = 8;
const LOADS_ANYTHING: u8 = 9;
const SAVES_ALL_BUT_ONE: u8 = 10;
const FINDS_EVERYTHING: u8 = 11;
const FORGETS_AT_ONCE: u8 = 12;
const NEVER_SETTLES: u8 = 13;
const SETTLES_TOO_HIGH: u8 = 14;
const TAKES_BACK_A_BATCH: u8 = 15;
const SKIPS_WHAT_DOES_NOT_FIT: u8 = 16;
const COUNTS_ONE_TOO_FEW: u8 = 17;
const LEAVES_ANSWERS_ALONE: u8 = 18;
const IS_NEVER_FULL: u8 = 19;
const REMOVES_NOTHING: u8 = 20;
const REMOVES_ALL_COPIES: u8 = 21;
const LEAVES_A_TRACE: u8 = 22;
const IS_TOO_FULL: u8 = 23;

/// The rate of its false positives, divided by the promised rate.
const FACTORS: [f64; 24] = {
    let mut factors = [1.0; 24];
    factors[FINDS_TOO_MUCH as usize] = 1.5;
    factors[IS_TOO_FULL as usize] = 1.01;
    factors
};

/// An exact multiset with false positives at exactly the promised rate, and the defect `WRONG`.
struct Exact<const WRONG: u8> {
    capacity: u64,
    rate: f64,
    seed: u64,
    keys: HashMap<u64, u64>,
    traces: u64,
}

impl<const WRONG: u8> Exact<WRONG> {
    /// Whether an absent key is a false positive, chosen by a hash.
    fn mistaken(&self, key: u64) -> bool {
        let rate = self.rate * FACTORS[usize::from(WRONG)];
        !self.keys.is_empty() && (split_mix(key ^ self.seed << 48) as f64) < rate * 2_f64.powi(64)
    }

    fn plan(&self) -> (u64, f64, u64) {
        (self.capacity, self.rate, self.seed)
    }
}

impl<const WRONG: u8> Subject for Exact<WRONG> {
    fn make(capacity: u64, rate: f64, seed: u64) -> Self {
        Self { capacity, rate, seed, keys: HashMap::new(), traces: 0 }
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains(key);
        *self.keys.entry(key).or_default() += 1;
        fresh || WRONG == SAYS_NEW_TWICE
    }

    fn contains(&self, key: u64) -> bool {
        if WRONG == LOSES_A_KEY && key.is_multiple_of(17) && self.keys.len() > 90 {
            return false;
        }
        WRONG == FINDS_EVERYTHING || self.keys.contains_key(&key) || self.mistaken(key)
    }

    fn rate_now(&self) -> f64 {
        match WRONG {
            FINDS_TOO_MUCH => self.rate,
            TELLS_A_WRONG_RATE => self.rate * 0.8,
            _ => self.rate * FACTORS[usize::from(WRONG)],
        }
    }
}

impl<const WRONG: u8> Removes for Exact<WRONG> {
    fn remove(&mut self, key: u64) -> bool {
        if WRONG == REMOVES_A_STRANGER
            && let Some(&stranger) = self.keys.keys().next()
        {
            return self.keys.remove(&stranger).is_some();
        }
        let Some(count) = self.keys.get_mut(&key) else { return false };
        match WRONG {
            REMOVES_NOTHING => return true,
            LEAVES_A_TRACE => self.traces += 1,
            _ => {}
        }
        *count -= 1;
        if *count == 0 || WRONG == REMOVES_ALL_COPIES {
            self.keys.remove(&key);
        }
        if WRONG == REMOVES_EVERYTHING {
            self.keys.clear();
        }
        true
    }

    fn holds_as_much(&self, other: &Self) -> bool {
        self.keys == other.keys && self.traces == other.traces
    }
}

impl<const WRONG: u8> Unites for Exact<WRONG> {
    fn unite(&mut self, other: &Self) -> Result<(), String> {
        if self.plan() != other.plan() && WRONG != UNITES_ANYTHING {
            return Err("they do not fit".into());
        }
        if WRONG == FORGETS_ITS_SIDE {
            self.keys.clear();
        }
        self.keys.extend(&other.keys);
        Ok(())
    }

    fn same(&self, other: &Self) -> bool {
        self.plan() == other.plan()
            && self.keys.len() == other.keys.len()
            && self.keys.keys().all(|key| other.keys.contains_key(key))
    }
}

impl<const WRONG: u8> Saves for Exact<WRONG> {
    fn save(&self) -> Vec<u8> {
        let mut keys: Vec<u64> = self.keys.keys().copied().collect();
        keys.sort_unstable();
        if WRONG == SAVES_ALL_BUT_ONE {
            keys.pop();
        }
        let mut words = vec![self.capacity, self.rate.to_bits(), self.seed];
        words.extend(keys);
        words.push(checksum(&words));
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        let (words, rest) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let [capacity, rate, seed, keys @ .., sum] = &words[..] else {
            return Err("too short".into());
        };
        let body = &words[..words.len() - 1];
        if WRONG != LOADS_ANYTHING && (!rest.is_empty() || *sum != checksum(body)) {
            return Err("damaged".into());
        }
        let keys = keys.iter().map(|&key| (key, 1)).collect();
        let (capacity, rate, seed) = (*capacity, f64::from_bits(*rate), *seed);
        Ok(Self { capacity, rate, seed, keys, traces: 0 })
    }
}

/// It is full when its number of different keys reaches its capacity.
impl<const WRONG: u8> Batches for Exact<WRONG> {
    const FILLS: bool = true;

    fn insert_one(&mut self, key: u64) -> Option<bool> {
        let room = (self.keys.len() as u64) < self.capacity || WRONG == IS_NEVER_FULL;
        (room || self.keys.contains_key(&key)).then(|| self.insert(key))
    }

    fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize> {
        if WRONG != LEAVES_ANSWERS_ALONE {
            fresh.fill(false);
        }
        let before = self.keys.clone();
        let mut refused = None;
        for (index, (key, fresh)) in keys.iter().zip(fresh.iter_mut()).enumerate() {
            match self.insert_one(*key) {
                Some(answer) => *fresh = answer,
                None => refused = refused.or(Some(index)),
            }
            if refused.is_some() && WRONG != SKIPS_WHAT_DOES_NOT_FIT {
                break;
            }
        }
        if refused.is_some() && WRONG == TAKES_BACK_A_BATCH {
            self.keys = before;
        }
        let few = usize::from(WRONG == COUNTS_ONE_TOO_FEW);
        refused.map_or(Ok(()), |index| Err(index.saturating_sub(few)))
    }

    fn equals(&self, other: &Self) -> bool {
        self.plan() == other.plan() && self.keys == other.keys
    }
}

fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(words.len() as u64, |sum, word| split_mix(sum ^ word))
}

const TRIAL: Trial =
    Trial { items: 100, rate: 0.01, pattern: Pattern::Random, seeds: 10, queries: 200_000 };

#[test]
fn an_exact_multiset_obeys_every_law() {
    for items in [1, 2, 100, 1_000] {
        no_false_negatives::<Exact<NOTHING>>(items, 0.01);
        remove_undoes_insert::<Exact<NOTHING>>(items, 0.01);
        union_contains_both::<Exact<NOTHING>>(items, 0.01);
        refuses_incompatible::<Exact<NOTHING>>(items, 0.01);
        a_batch_stops_at_the_first_key_without_room::<Exact<NOTHING>>(items, 0.01);
    }
    rate_within::<Exact<NOTHING>>(TRIAL);
    round_trips::<Exact<NOTHING>>(100, 0.01);
    survives_any_bytes::<Exact<NOTHING>>(30, 0.01);
}

/// One test per defect: the defect, the law that detects it, and its message.
macro_rules! noticed {
    ($($name:ident: $wrong:ident => $law:ident($($argument:expr),*), $words:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $words)]
        fn $name() {
            $law::<Exact<$wrong>>($($argument),*);
        }
    )*};
}

noticed! {
    a_lost_key_is_noticed: LOSES_A_KEY => no_false_negatives(100, 0.01), "lost";
    a_key_that_is_new_twice_is_noticed: SAYS_NEW_TWICE => no_false_negatives(1_000, 0.01), "insertion";
    finding_everything_is_noticed: FINDS_EVERYTHING => no_false_negatives(100, 0.01), "absent keys";
    finding_too_much_is_noticed: FINDS_TOO_MUCH => rate_within(TRIAL), "off its prediction";
    a_wrong_prediction_is_noticed: TELLS_A_WRONG_RATE => rate_within(TRIAL), "off its prediction";
    a_removed_stranger_is_noticed: REMOVES_A_STRANGER => remove_undoes_insert(100, 0.01), "lost";
    not_removing_is_noticed: REMOVES_NOTHING => remove_undoes_insert(100, 0.01), "as if";
    not_removing_the_only_key_is_noticed: REMOVES_NOTHING => remove_undoes_insert(1, 0.01), "as if";
    removing_all_copies_is_noticed: REMOVES_ALL_COPIES => remove_undoes_insert(100, 0.01), "lost";
    what_is_left_behind_is_noticed: LEAVES_A_TRACE => remove_undoes_insert(1, 0.01), "left behind";
    a_rate_that_is_a_little_too_high_is_noticed: IS_TOO_FULL => rate_within(TRIAL), "too full";
    too_few_filters_are_noticed: NOTHING => rate_within(Trial { seeds: 1, items: 5_000, ..TRIAL }), "too few";
    removing_everything_is_noticed: REMOVES_EVERYTHING => remove_undoes_insert(100, 0.01), "lost";
    uniting_anything_is_noticed: UNITES_ANYTHING => refuses_incompatible(100, 0.01), "capacity";
    a_union_that_forgets_is_noticed: FORGETS_ITS_SIDE => union_contains_both(100, 0.01), "lost";
    a_batch_that_is_taken_back_is_noticed: TAKES_BACK_A_BATCH =>
        a_batch_stops_at_the_first_key_without_room(100, 0.01), "another filter";
    a_batch_that_goes_on_is_noticed: SKIPS_WHAT_DOES_NOT_FIT =>
        a_batch_stops_at_the_first_key_without_room(100, 0.01), "another filter";
    a_wrong_number_of_inserted_keys_is_noticed: COUNTS_ONE_TOO_FEW =>
        a_batch_stops_at_the_first_key_without_room(100, 0.01), "there was room";
    answers_for_refused_keys_are_noticed: LEAVES_ANSWERS_ALONE =>
        a_batch_stops_at_the_first_key_without_room(100, 0.01), "refused, and fresh";
    never_being_full_is_noticed: IS_NEVER_FULL =>
        a_batch_stops_at_the_first_key_without_room(100, 0.01), "0 refused";
    loading_anything_is_noticed: LOADS_ANYTHING => survives_any_bytes(30, 0.01), "accepted";
    a_key_lost_on_the_way_is_noticed: SAVES_ALL_BUT_ONE => round_trips(100, 0.01), "came back";
}

/// The last keys, up to the capacity, with false positives at half the requested rate, and the defect `WRONG`.
struct Recent<const WRONG: u8> {
    capacity: u64,
    rate: f64,
    insertions: u64,
    keys: VecDeque<u64>,
}

impl<const WRONG: u8> Recent<WRONG> {
    /// Whether an absent key is a false positive now; the choice changes over time.
    fn mistaken(&self, key: u64) -> bool {
        let rate = match WRONG {
            FINDS_EVERYTHING => 1.0,
            FINDS_TOO_MUCH => self.rate * 0.55,
            NEVER_SETTLES => self.rate * (0.5 + self.insertions as f64 * 1e-6),
            SETTLES_TOO_HIGH => self.rate * 1.1,
            _ => self.rate * 0.5,
        };
        (split_mix(key ^ self.insertions << 40) as f64) < rate * 2_f64.powi(64)
    }
}

impl<const WRONG: u8> Subject for Recent<WRONG> {
    fn make(capacity: u64, rate: f64, _: u64) -> Self {
        Self { capacity, rate, insertions: 0, keys: VecDeque::new() }
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains(key);
        self.insertions += 1;
        self.keys.push_back(key);
        if self.keys.len() as u64 > self.capacity || WRONG == FORGETS_AT_ONCE {
            self.keys.pop_front();
        }
        fresh || WRONG == SAYS_NEW_TWICE
    }

    fn contains(&self, key: u64) -> bool {
        self.keys.contains(&key) || self.mistaken(key)
    }

    fn rate_now(&self) -> f64 {
        self.rate * 0.5
    }
}

impl<const WRONG: u8> Ages for Recent<WRONG> {
    fn stable_rate(&self) -> f64 {
        match WRONG {
            TELLS_A_WRONG_RATE => self.rate * 0.45,
            SETTLES_TOO_HIGH => self.rate * 1.1,
            _ => self.rate * 0.5,
        }
    }

    fn settles_after(&self) -> u64 {
        self.capacity
    }
}

const AGEING: AgeingTrial =
    AgeingTrial { items: 10, rate: 0.2, pattern: Pattern::Random, rounds: 200_000 };

#[test]
fn a_window_without_mistakes_of_its_own_obeys_the_laws_of_ageing() {
    finds_what_just_came::<Recent<NOTHING>>(1, 0.01);
    finds_what_just_came::<Recent<NOTHING>>(20, 0.01);
    settles_at_its_rate::<Recent<NOTHING>>(AGEING);
}

macro_rules! noticed_of_the_ageing {
    ($($name:ident: $wrong:ident => $law:ident($($argument:expr),*), $words:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $words)]
        fn $name() {
            $law::<Recent<$wrong>>($($argument),*);
        }
    )*};
}

noticed_of_the_ageing! {
    forgetting_at_once_is_noticed: FORGETS_AT_ONCE => finds_what_just_came(10, 0.01), "lost at once";
    a_known_key_called_new_is_noticed: SAYS_NEW_TWICE => finds_what_just_came(10, 0.2), "insertion";
    knowing_everything_is_noticed: FINDS_EVERYTHING => finds_what_just_came(10, 0.01), "absent keys";
    a_rate_above_its_formula_is_noticed: FINDS_TOO_MUCH => settles_at_its_rate(AGEING), "sigma off";
    a_formula_below_its_rate_is_noticed: TELLS_A_WRONG_RATE => settles_at_its_rate(AGEING), "sigma off";
    a_rate_that_rises_is_noticed: NEVER_SETTLES => settles_at_its_rate(AGEING), "sigma off";
    settling_too_high_is_noticed: SETTLES_TOO_HIGH => settles_at_its_rate(AGEING), "above what was asked";
    too_few_rounds_are_noticed: NOTHING => settles_at_its_rate(AgeingTrial { rounds: 2_000, ..AGEING }), "too few";
    parts_that_are_too_short_are_noticed: NOTHING => settles_at_its_rate(AgeingTrial { items: 5_000, ..AGEING }), "to settle";
}
