//! Any history of a stable filter agrees with a model of plain numbers that age, cell by cell. Batches, single
//! calls and reloads agree.
#![no_main]

#[path = "../../crates/umbel/tests/it/aging.rs"]
mod aging;
#[path = "../../crates/umbel/tests/it/positions.rs"]
mod positions;

use aging::Model;
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use umbel::stable::Shape;
use umbel::{Portable, Saved, StableBloomFilter};

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u8),
    Batch(Vec<u8>),
    Reload,
    Clear,
}

#[derive(Arbitrary, Debug)]
struct Input {
    cells: u8,
    width: u8,
    probes: u8,
    decrements: u8,
    steps: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let (cells, width) = (u64::from(input.cells) * 2 + 1, u32::from(input.width % 8) + 1);
    let (probes, decrements) = (u32::from(input.probes % 16) + 1, u64::from(input.decrements) + 1);
    let Ok(shape) = Shape::with(cells, width, probes, decrements) else { return };
    let mut filter = StableBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
    let mut model = Model::new(shape);
    for step in input.steps {
        match step {
            Step::Insert(key) => assert_eq!(filter.insert(&key.into()), model.insert(key.into())),
            Step::Batch(batch) => {
                let batch: Vec<u64> = batch.into_iter().map(u64::from).collect();
                let mut fresh = vec![false; batch.len()];
                filter.insert_batch(&batch, &mut fresh);
                let expected: Vec<bool> = batch.iter().map(|key| model.insert(*key)).collect();
                assert_eq!(fresh, expected);
            }
            Step::Reload => filter = StableBloomFilter::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Clear => {
                filter.clear();
                model = Model::new(shape);
            }
        }
        assert_eq!((filter.insertions(), filter.words()), (model.insertions, &model.words()[..]));
        assert!((0..=255).all(|key| filter.contains(&key) == model.contains(key)));
    }
});
