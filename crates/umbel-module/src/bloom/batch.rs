//! Batches of keys, processed link by link, so that the memory accesses to one link overlap.

use super::link::FIRST;
use super::{Chain, Growth, Hashing, Link, Pair};
use crate::error::Refused;
use crate::membership::{About, GROUP, Measure, Membership, stride};

/// Batches: the memory of all keys is prefetched before the first key is checked.
impl Chain {
    /// As [`contains`](Self::contains): `found[i]` is the answer for `pairs[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_batch(&self, pairs: &[Pair], found: &mut [bool]) {
        assert_eq!(pairs.len(), found.len(), "an answer for every key");
        for (pairs, found) in pairs.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.group_contains(pairs, found);
        }
    }

    fn group_contains(&self, pairs: &[Pair], found: &mut [bool]) {
        found.fill(false);
        for link in self.links.iter().rev() {
            if link.bytes().len() > NEAR {
                far_contains(link, pairs, found);
                continue;
            }
            for (pair, found) in pairs.iter().zip(&mut *found) {
                if !*found {
                    *found = link.contains(*pair);
                }
            }
        }
    }

    /// As [`add`](Self::add), key after key: `fresh[i]` is the answer for `pairs[i]`.
    ///
    /// # Errors
    ///
    /// The number of keys that were added or found, and why the next key was refused.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn add_batch(
        &mut self,
        pairs: &[Pair],
        fresh: &mut [bool],
    ) -> Result<(), (usize, Refused)> {
        assert_eq!(pairs.len(), fresh.len(), "an answer for every key");
        for (number, (pairs, fresh)) in pairs.chunks(GROUP).zip(fresh.chunks_mut(GROUP)).enumerate()
        {
            let result = self.group_add(pairs, fresh);
            result.map_err(|(done, refused)| (number * GROUP + done, refused))?;
        }
        Ok(())
    }

    fn group_add(&mut self, pairs: &[Pair], fresh: &mut [bool]) -> Result<(), (usize, Refused)> {
        let mut found = [false; GROUP];
        let found = &mut found[..pairs.len()];
        self.fetch_to_add(pairs);
        self.group_contains(pairs, found);
        // Adding keys of this group changes only these links.
        let first = self.links.len() - 1;
        for (number, (pair, found)) in pairs.iter().zip(&*found).enumerate() {
            fresh[number] = !found && !self.links[first..].iter().any(|link| link.contains(*pair));
            if fresh[number] {
                self.put(*pair).map_err(|refused| (number, refused))?;
            }
        }
        Ok(())
    }
}

impl Membership for Chain {
    fn find(&self, keys: &[&[u8]], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "an answer for every key");
        if let ([key], [found]) = (keys, &mut *found) {
            *found = self.contains(self.hash(key));
            return;
        }
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.group_contains(&self.group(keys)[..keys.len()], found);
        }
    }

    fn put(&mut self, keys: &[&[u8]], fresh: &mut [bool]) -> Result<(), (usize, Refused)> {
        assert_eq!(keys.len(), fresh.len(), "an answer for every key");
        if let ([key], [fresh]) = (keys, &mut *fresh) {
            *fresh = self.add(self.hash(key)).map_err(|refused| (0, refused))?;
            return Ok(());
        }
        for (number, (keys, fresh)) in keys.chunks(GROUP).zip(fresh.chunks_mut(GROUP)).enumerate() {
            let pairs = self.group(keys);
            let result = self.group_add(&pairs[..keys.len()], fresh);
            result.map_err(|(done, refused)| (number * GROUP + done, refused))?;
        }
        Ok(())
    }

    fn about(&self) -> About {
        About {
            capacity: self.capacity(),
            bytes: self.reported_bytes(),
            filters: self.links.len() as u64,
            items: self.size,
            expansion: match self.growth() {
                Growth::By(growth) => Some(growth),
                Growth::None => None,
            },
            layout: if let Hashing::Keyed(_) = self.hashing { "keyed" } else { "classic" },
        }
    }

    fn measure(&self) -> Measure {
        let (mut ones, mut bits, mut items, mut no) = (0, 0, 0.0, 1.0);
        let stride = stride(self.links.iter().map(|link| link.plan().bytes()).sum());
        for link in &self.links {
            let set = link.sampled_ones(stride);
            (ones, bits) = (ones + set, bits + link.bits());
            items += link.estimated_len(set);
            no *= 1.0 - link.rate_at(set);
        }
        Measure { fill: ones as f64 / bits as f64, items, rate: 1.0 - no }
    }
}

impl Chain {
    /// The hashes of up to [`GROUP`] keys.
    #[inline]
    fn group(&self, keys: &[&[u8]]) -> [Pair; GROUP] {
        let mut pairs = [Pair { a: 0, b: 0 }; GROUP];
        for (pair, key) in pairs.iter_mut().zip(keys) {
            *pair = self.hashing.pair(key);
        }
        pairs
    }
}

/// Looks up the keys that were not found yet, in a link that is not in a near cache.
fn far_contains(link: &Link, pairs: &[Pair], found: &mut [bool]) {
    let mut firsts = [[0; FIRST]; GROUP];
    for ((pair, first), found) in pairs.iter().zip(&mut firsts).zip(&*found) {
        if !found {
            *first = link.first(*pair);
            link.fetch(first);
        }
    }
    for ((pair, first), found) in pairs.iter().zip(&firsts).zip(found) {
        if !*found {
            *found = link.contains_with(*pair, *first);
        }
    }
}

/// Links of up to this number of bytes are in a near cache, where prefetching only costs time.
pub(super) const NEAR: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u32) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(|key| format!("key:{key}").into_bytes())
    }

    #[test]
    fn batches_answer_as_single_calls_do() {
        for growth in [Growth::By(1), Growth::By(2), Growth::By(4)] {
            let mut one = Chain::new(10, 0.05, growth).unwrap();
            let mut many = Chain::new(10, 0.05, growth).unwrap();
            // Every key twice, near each other and far apart.
            let keys: Vec<_> =
                keys(700).chain(keys(900)).flat_map(|key| [key.clone(), key]).collect();
            let pairs: Vec<_> = keys.iter().map(|key| one.hash(key)).collect();
            let single: Vec<_> = pairs.iter().map(|pair| one.add(*pair).unwrap()).collect();
            let mut fresh = vec![false; pairs.len()];
            many.add_batch(&pairs, &mut fresh).unwrap();
            assert_eq!(fresh, single);
            assert_eq!(one.links().len(), many.links().len());
            for (a, b) in one.links().iter().zip(many.links()) {
                assert_eq!((a.plan(), a.bytes()), (b.plan(), b.bytes()));
            }
            let strangers: Vec<_> =
                (0..5_000).map(|key| one.hash(format!("x{key}").as_bytes())).collect();
            let mut found = vec![true; strangers.len()];
            one.contains_batch(&strangers, &mut found);
            let single: Vec<_> = strangers.iter().map(|pair| one.contains(*pair)).collect();
            assert_eq!(found, single);
            assert!(found.iter().any(|found| *found) && !found.iter().all(|found| *found));
        }
    }
}
