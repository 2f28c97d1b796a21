//! The union of two chains, without their keys.
//!
//! A key is in a chain if it is in one of its links. So the links of both chains form a chain with the keys of
//! both. Two links with the same number of bits and hashes become one if it has room for the keys of both.

use super::{Chain, Growth, Link, MAX_LINKS};
use crate::error::Refused;

/// The two filters use different hashes, or are of different types, so they cannot be merged without the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlike;

impl Chain {
    /// Checks that both chains use the same hash.
    ///
    /// # Errors
    ///
    /// [`Unlike`] if they do not.
    pub fn fits(&self, other: &Self) -> Result<(), Unlike> {
        if self.hashing == other.hashing { Ok(()) } else { Err(Unlike) }
    }

    /// Adds all keys of a chain that [`fits`](Self::fits). Where links become one, the number of keys is an
    /// estimate. Elsewhere keys that both chains had count twice.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is not enough memory, there are too many links, or a filter that does not grow has
    /// no room. The chain is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(other.links.len()).map_err(|_| Refused::NoMemory)?;
        let mut taken = vec![false; self.links.len()];
        let mut united = Vec::new();
        for link in &other.links {
            let like = (0..self.links.len())
                .filter(|at| !taken[*at])
                .find_map(|at| Some((at, united_size(&self.links[at], link)?)));
            if let Some((at, size)) = like {
                taken[at] = true;
                united.push((at, link, size));
            } else if link.size() > 0 {
                fresh.push(link.try_clone().ok_or(Refused::NoMemory)?);
            }
        }
        if !fresh.is_empty() && self.growth() == Growth::None {
            return Err(Refused::Full);
        }
        if self.links.len() + fresh.len() > MAX_LINKS {
            return Err(Refused::MaxExpansions);
        }
        self.links.try_reserve(fresh.len()).map_err(|_| Refused::NoMemory)?;
        for (at, link, size) in united {
            self.links[at].unite(link);
            self.links[at].set_size(size);
        }
        // In front, so that new keys still go into the newest link of this chain.
        self.links.splice(0..0, fresh);
        self.size = self.links.iter().map(Link::size).fold(0, u64::saturating_add);
        Ok(())
    }
}

/// The estimated number of keys in the union, from its bits, if `into` has room for them.
fn united_size(into: &Link, link: &Link) -> Option<u64> {
    if into.bits() != link.bits() || into.hashes() != link.hashes() {
        return None;
    }
    let items = into.estimated_len(into.count_ones_with(link));
    // The standard deviation of the estimate is a quarter of the square root of the number of keys; this allows
    // four.
    let most = into.entries() as f64 + (into.entries() as f64).sqrt();
    let (larger, sum) = (into.size().max(link.size()), into.size().saturating_add(link.size()));
    (items <= most).then(|| (items.round() as u64).clamp(larger, sum))
}

#[cfg(test)]
mod tests {
    use super::super::Hashing;
    use super::*;
    use umbel::Keyed;

    fn chain(capacity: u64, growth: Growth, keys: core::ops::Range<u32>) -> Chain {
        let mut chain = Chain::new(capacity, 0.01, growth).unwrap();
        for key in keys {
            let pair = chain.hash(&key.to_le_bytes());
            chain.add(pair).unwrap();
        }
        chain
    }

    fn has(chain: &Chain, mut keys: core::ops::Range<u32>) -> bool {
        keys.all(|key| chain.contains(chain.hash(&key.to_le_bytes())))
    }

    #[test]
    fn a_merged_chain_has_the_keys_of_both() {
        for capacity in [10, 100, 5_000] {
            let mut one = chain(100, Growth::By(2), 0..1_000);
            let other = chain(capacity, Growth::By(2), 500..3_000);
            one.merge(&other).unwrap();
            assert!(has(&one, 0..3_000));
            let sizes: u64 = one.links().iter().map(Link::size).sum();
            assert_eq!(sizes, one.size());
        }
    }

    #[test]
    fn like_links_with_room_become_one() {
        let mut one = chain(1_000, Growth::None, 0..400);
        one.merge(&chain(1_000, Growth::None, 400..900)).unwrap();
        // Four standard deviations of the estimate.
        assert!(one.links().len() == 1 && one.size().abs_diff(900) <= 30, "{}", one.size());
        assert!(has(&one, 0..900));
        // The bits equal those of one chain with all keys.
        assert_eq!(one.links()[0].bytes(), chain(1_000, Growth::None, 0..900).links()[0].bytes());
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut one = chain(1_000, Growth::None, 0..400);
        let before = one.header();
        assert_eq!(one.merge(&chain(1_000, Growth::None, 400..1_100)), Err(Refused::Full));
        assert_eq!(one.header(), before);
        let keyed =
            Chain::hashed(10, 0.1, Growth::None, Hashing::Keyed(Keyed::new([1; 16]))).unwrap();
        assert_eq!((one.fits(&keyed), one.fits(&one)), (Err(Unlike), Ok(())));
    }

    #[test]
    fn a_merged_chain_goes_on_growing() {
        let mut one = chain(100, Growth::By(2), 0..300);
        one.merge(&chain(7, Growth::By(3), 300..900)).unwrap();
        for key in 900..5_000_u32 {
            let pair = one.hash(&key.to_le_bytes());
            one.add(pair).unwrap();
        }
        assert!(has(&one, 0..5_000));
    }
}
