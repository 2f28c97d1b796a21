//! A model of the stable filter: plain numbers that age, cell by cell.

use crate::positions::positions;
use umbel::Portable;
use umbel::hash::Digester;
use umbel::stable::Shape;

/// A filter as in its paper: one number per cell, and a generator.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    shape: Shape,
    pub(crate) cells: Vec<u8>,
    pub(crate) insertions: u64,
}

impl Model {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, cells: vec![0; shape.cells() as usize], insertions: 0 }
    }

    fn positions(&self, key: u64) -> Vec<usize> {
        let digest = Portable::default().digest(&key);
        let cells = positions(self.shape.cells(), self.shape.probes(), digest);
        cells.into_iter().map(|cell| cell as usize).collect()
    }

    pub(crate) fn contains(&self, key: u64) -> bool {
        self.positions(key).into_iter().all(|cell| self.cells[cell] != 0)
    }

    /// As defined in `docs/hashing.md`.
    fn first_aged(&self) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.insertions.wrapping_mul(GOLDEN).wrapping_add(0x7374_6162_6c65_2121);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * self.cells.len() as u128) >> 64) as usize
    }

    pub(crate) fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains(key);
        let (first, len) = (self.first_aged(), self.cells.len());
        for place in 0..self.shape.decrements() as usize {
            let cell = &mut self.cells[(first + place) % len];
            *cell = cell.saturating_sub(1);
        }
        for cell in self.positions(key) {
            self.cells[cell] = self.shape.max() as u8;
        }
        self.insertions += 1;
        fresh
    }

    /// All bits of all cells, packed one by one.
    pub(crate) fn words(&self) -> Vec<u64> {
        let (width, mut words) =
            (self.shape.width() as usize, vec![0; self.shape.words() as usize]);
        for (cell, number) in self.cells.iter().enumerate() {
            for bit in (0..width).filter(|bit| number >> bit & 1 == 1) {
                words[(cell * width + bit) / 64] |= 1 << ((cell * width + bit) % 64);
            }
        }
        words
    }
}
