//! Two chains in one, without the keys.
//!
//! A key is in a chain if it is in one of its links, so the links of both are a chain that has the keys
//! of both. Two links of the same bits and hashes become one where it has room for the keys of both.

use super::{Chain, Growth, Link, MAX_LINKS};
use crate::error::Refused;

/// Two filters hash their keys differently, or are of different kinds: nothing can be merged without the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlike;

impl Chain {
    /// Whether the two hash their keys alike.
    ///
    /// # Errors
    ///
    /// [`Unlike`] if they do not.
    pub fn fits(&self, other: &Self) -> Result<(), Unlike> {
        if self.hashing == other.hashing { Ok(()) } else { Err(Unlike) }
    }

    /// Takes in all keys of a chain that [`fits`](Self::fits): afterwards whatever either one had is found.
    /// Keys that both had may count twice.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no memory, too many links, or a filter that does not grow has no room. Nothing has
    /// changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(other.links.len()).map_err(|_| Refused::NoMemory)?;
        let mut taken = vec![false; self.links.len()];
        let mut united = Vec::new();
        for link in &other.links {
            let like = (0..self.links.len()).find(|at| !taken[*at] && room(&self.links[*at], link));
            if let Some(at) = like {
                taken[at] = true;
                united.push((at, link));
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
        for (at, link) in united {
            let size = self.links[at].size().saturating_add(link.size());
            self.links[at].unite(link);
            self.links[at].set_size(size);
        }
        // In front: new keys go on going into the newest link of this chain.
        self.links.splice(0..0, fresh);
        self.size = self.links.iter().map(Link::size).fold(0, u64::saturating_add);
        Ok(())
    }
}

/// Whether the keys of `link` can go into `into` without loosening its rate.
fn room(into: &Link, link: &Link) -> bool {
    let same = into.bits() == link.bits() && into.hashes() == link.hashes();
    same && into.size().saturating_add(link.size()) <= into.entries()
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
        assert_eq!((one.links().len(), one.size()), (1, 900));
        assert!(has(&one, 0..900));
        // The bits are those of adding all keys to one.
        assert_eq!(one.links()[0].bytes(), chain(1_000, Growth::None, 0..900).links()[0].bytes());
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut one = chain(1_000, Growth::None, 0..400);
        let before = one.header();
        assert_eq!(one.merge(&chain(1_000, Growth::None, 400..1_100)), Err(Refused::Full));
        assert_eq!(one.header(), before);
        let keyed = Chain::hashed(10, 0.1, Growth::None, Hashing::Keyed(Keyed::new([1; 16]))).unwrap();
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
