//! Any history of a filter of records agrees with an exact multiset of them: a present record is found,
//! completely and by any of its attributes. Filters with unions, and filters with deletion, with a joint
//! filter.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use umbel::multi::Multi;
use umbel::{BloomFilter, CountingBloomFilter, Saved};

type Record = (u8, u8);
type Uniting = Multi<(BloomFilter<u8>, BloomFilter<u8>), BloomFilter<u64>>;
type Forgetting =
    Multi<(CountingBloomFilter<u8>, CountingBloomFilter<u8>), CountingBloomFilter<u64>>;

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(Record),
    Remove(Record),
    Union(Vec<Record>),
    Reload,
}

fuzz_target!(|history: Vec<Step>| {
    unite(&history);
    forget(&history);
});

fn uniting() -> Uniting {
    let dimension = || BloomFilter::new(50, 0.01);
    Multi::with_joint((dimension(), dimension()), BloomFilter::new(50, 0.01))
}

fn unite(history: &[Step]) {
    let (mut filter, mut records) = (uniting(), Vec::new());
    for step in history {
        match step {
            Step::Insert(record) => {
                let absent = !filter.contains((&record.0, &record.1));
                assert_eq!(filter.insert((&record.0, &record.1)), Ok(absent));
                assert!(!absent || !records.contains(record));
                records.push(*record);
            }
            Step::Union(others) => {
                let mut other = uniting();
                for (one, two) in others {
                    other.insert((one, two)).unwrap();
                }
                filter.union_with(&other).unwrap();
                records.extend(others);
            }
            Step::Reload => filter = Uniting::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Remove(_) => {}
        }
    }
    for (one, two) in &records {
        assert!(filter.contains((one, two)));
        assert!(filter.matches((Some(one), None)) && filter.matches((None, Some(two))));
    }
}

fn forget(history: &[Step]) {
    let dimension = || CountingBloomFilter::new(50, 0.01);
    let mut filter: Forgetting =
        Multi::with_joint((dimension(), dimension()), CountingBloomFilter::new(50, 0.01));
    let mut records = HashMap::<Record, u64>::new();
    for step in history {
        match step {
            Step::Insert(record) => {
                filter.insert((&record.0, &record.1)).unwrap();
                *records.entry(*record).or_default() += 1;
            }
            Step::Remove(record) => {
                // Only present records may be removed.
                if let Some(times) = records.get_mut(record).filter(|times| **times > 0) {
                    *times -= 1;
                    assert!(filter.remove((&record.0, &record.1)));
                }
            }
            Step::Reload => filter = Forgetting::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Union(_) => {}
        }
    }
    for ((one, two), _) in records.iter().filter(|(_, times)| **times > 0) {
        assert!(filter.contains((one, two)));
        assert!(filter.matches((Some(one), None)) && filter.matches((None, Some(two))));
    }
}
