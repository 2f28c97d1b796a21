//! Any history of a quotient filter agrees with an exact multiset of prefixes, and leaves a consistent table.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use umbel::quotient::{MAX_COPIES, Shape};
use umbel::{Digest, Full, Portable, QuotientFilter, Saved};

#[derive(Arbitrary, Debug)]
struct History {
    quotients: u16,
    remainder: u8,
    planned: u16,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u8, u8),
    InsertUnique(u8, u8),
    /// A whole run of one quotient.
    Crowd(u8, u8),
    Remove(u8, u8),
    RemoveAll(u8),
    Merge(Vec<(u8, u8)>),
    Grow,
    Shrink,
    Reload,
    Clear,
}

type Filter = QuotientFilter<u64>;

fuzz_target!(|history: History| {
    let (quotients, bits) = (u64::from(history.quotients) % 1_100 + 1, history.remainder % 31 + 2);
    let shape = Shape::with(u64::from(history.planned) % 5_000, quotients, u32::from(bits));
    let Ok(shape) = shape else { return };
    // Places are spread over the whole table, a few of them at its end.
    let digest = |place: u8, remainder: u8| {
        let quotient = match place {
            250.. => quotients - 1,
            _ => u64::from(place) * quotients / 250,
        };
        let prefix = quotient << bits | u64::from(remainder) % (1 << bits);
        let prefixes = u128::from(shape.prefixes());
        Digest::new((u128::from(prefix) << 64).div_ceil(prefixes) as u64)
    };
    let empty = Filter::with(shape, Portable::default()).unwrap();
    let (mut filter, mut model) = (empty.clone(), BTreeMap::<u64, u64>::new());
    let insert = |filter: &mut Filter, model: &mut BTreeMap<u64, u64>, digest: Digest| {
        let prefix = filter.prefix(digest);
        let before = model.get(&prefix).copied().unwrap_or_default();
        match filter.insert_digest(digest) {
            Ok(fresh) => {
                assert_eq!(fresh, before == 0);
                model.insert(prefix, before + 1);
            }
            // If keys cluster at the end, there may be less room than the load allows.
            Err(Full) => {
                let room = filter.capacity().min(255);
                assert!(before >= MAX_COPIES || filter.len() >= room);
            }
        }
    };
    for step in history.steps {
        match step {
            Step::Insert(place, remainder) => {
                insert(&mut filter, &mut model, digest(place, remainder))
            }
            Step::InsertUnique(place, remainder) => {
                let digest = digest(place, remainder);
                let found = filter.contains_digest(digest);
                if let Ok(inserted) = filter.insert_unique_digest(digest) {
                    assert_eq!(inserted, !found);
                    if inserted {
                        assert_eq!(model.insert(filter.prefix(digest), 1), None);
                    }
                }
            }
            Step::Crowd(place, count) => {
                (0..count)
                    .for_each(|number| insert(&mut filter, &mut model, digest(place, number)));
            }
            Step::Remove(place, remainder) => {
                remove(&mut filter, &mut model, digest(place, remainder));
            }
            Step::RemoveAll(place) => {
                (0..=255).for_each(|number| remove(&mut filter, &mut model, digest(place, number)));
            }
            Step::Merge(keys) => {
                let (mut other, mut others) = (empty.clone(), BTreeMap::new());
                for (place, remainder) in keys {
                    insert(&mut other, &mut others, digest(place, remainder));
                }
                if filter.merge_with_threads(&other, 1 + filter.len() as usize % 3).is_ok() {
                    for (prefix, count) in others {
                        *model.entry(prefix).or_default() += count;
                    }
                }
            }
            Step::Grow => _ = filter.grow(),
            Step::Shrink => filter.shrink_to_fit(),
            Step::Reload => {
                let bytes = filter.to_bytes();
                filter = Filter::from_bytes(&bytes).unwrap();
                assert_eq!(filter.to_bytes(), bytes);
            }
            Step::Clear => {
                filter.clear();
                model.clear();
            }
        }
        filter.validate().unwrap();
        let copies = model.iter().flat_map(|(prefix, n)| (0..*n).map(move |_| *prefix));
        assert!(filter.prefixes().eq(copies));
    }
    for place in 0..=255 {
        for remainder in [0, 1, 7] {
            let digest = digest(place, remainder);
            let count = model.get(&filter.prefix(digest)).copied().unwrap_or_default();
            assert_eq!(filter.estimated_count_digest(digest), count);
            assert_eq!(filter.contains_digest(digest), count > 0);
        }
    }
});

fn remove(filter: &mut Filter, model: &mut BTreeMap<u64, u64>, digest: Digest) {
    let prefix = filter.prefix(digest);
    let before = model.remove(&prefix).unwrap_or_default();
    assert_eq!(filter.remove_digest(digest), before > 0);
    if before > 1 {
        model.insert(prefix, before - 1);
    }
}
