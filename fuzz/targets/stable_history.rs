//! Any history of a stable filter agrees with plain numbers that age, cell by cell; batches, single calls
//! and reloads agree.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use umbel::hash::Digester;
use umbel::kernels::{Digits, Kernels};
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

/// A filter as its paper has it: one number a cell, and a generator.
struct Model {
    shape: Shape,
    cells: Vec<u64>,
    insertions: u64,
}

impl Model {
    fn positions(&self, key: u8) -> Vec<usize> {
        let mut walk = Digits.start(Portable::default().digest(&key));
        let step = |_| Digits.step(&mut walk, self.shape.cells()) as usize;
        (0..self.shape.probes()).map(step).collect()
    }

    fn contains(&self, key: u8) -> bool {
        self.positions(key).into_iter().all(|cell| self.cells[cell] != 0)
    }

    /// `docs/hashing.md`.
    fn first_aged(&self) -> usize {
        let golden = 0x9e37_79b9_7f4a_7c15_u64;
        let mut z = self.insertions.wrapping_mul(golden).wrapping_add(0x7374_6162_6c65_2121);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * self.cells.len() as u128) >> 64) as usize
    }

    fn insert(&mut self, key: u8) -> bool {
        let fresh = !self.contains(key);
        let (first, len) = (self.first_aged(), self.cells.len());
        for place in 0..self.shape.decrements() as usize {
            let cell = &mut self.cells[(first + place) % len];
            *cell = cell.saturating_sub(1);
        }
        for cell in self.positions(key) {
            self.cells[cell] = u64::from(self.shape.max());
        }
        self.insertions += 1;
        fresh
    }
}

fuzz_target!(|input: Input| {
    let (cells, width) = (u64::from(input.cells) * 2 + 1, u32::from(input.width % 8) + 1);
    let (probes, decrements) = (u32::from(input.probes % 16) + 1, u64::from(input.decrements) + 1);
    let Ok(shape) = Shape::with(cells, width, probes, decrements) else { return };
    let mut filter = StableBloomFilter::<u8>::with(shape, Portable::default()).unwrap();
    let mut model = Model { shape, cells: vec![0; cells as usize], insertions: 0 };
    for step in input.steps {
        match step {
            Step::Insert(key) => assert_eq!(filter.insert(&key), model.insert(key)),
            Step::Batch(batch) => {
                let mut fresh = vec![false; batch.len()];
                filter.insert_batch(&batch, &mut fresh);
                let expected: Vec<bool> = batch.iter().map(|key| model.insert(*key)).collect();
                assert_eq!(fresh, expected);
            }
            Step::Reload => filter = StableBloomFilter::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Clear => {
                filter.clear();
                model = Model { shape, cells: vec![0; cells as usize], insertions: 0 };
            }
        }
        assert_eq!(filter.insertions(), model.insertions);
        assert_eq!(filter.count_nonzero(), model.cells.iter().filter(|cell| **cell > 0).count() as u64);
        assert!((0..=255).all(|key| filter.contains(&key) == model.contains(key)));
    }
});
