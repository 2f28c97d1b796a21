//! The interface of a measured filter, and the loops that time it.
//!
//! A filter takes part by implementing [`Contender`] for one or both kinds of key. [`Track`] runs it: its loops
//! are compiled once per filter, without dynamic calls inside, from the same source for all filters. [`Lane`]
//! hides the filter's type, at one dynamic call per pass.

use crate::{HEAP, clock, keys::Key};
use std::hint::black_box;

/// A filter to be measured with keys of one kind.
///
/// The constants say which of the optional methods are implemented. A filter that can insert implements `empty`
/// and `insert`; one that is built from all keys at once overrides `build` instead.
pub(crate) trait Contender<K: Key>: Sized + 'static {
    /// Whether `clear` works and keeps the memory. Otherwise all keys are removed, if the filter can remove.
    const CLEARS: bool = false;
    /// Whether `contains_batch` is more than a loop.
    const BATCHES: bool = false;
    /// Whether `insert_batch` is more than a loop.
    const BATCHES_INSERTS: bool = false;
    /// Whether `remove` works.
    const REMOVES: bool = false;
    /// Whether it can be filled again as if it were new, which is not so if it has grown in between.
    const REFILLS: bool = Self::CLEARS || Self::REMOVES;

    /// A filter without keys, with room for `items` of them.
    fn empty(items: usize, rate: f64) -> Self {
        unreachable!("a static filter was asked for room for {items} keys at {rate}")
    }

    /// Adds `key`. The answer of the filter is not used.
    fn insert(&mut self, key: &K) {
        unreachable!("a static filter was asked to insert {key:?}")
    }

    /// Builds a filter with `keys`.
    fn build(keys: &[K], rate: f64) -> Self {
        let mut filter = Self::empty(keys.len(), rate);
        for key in keys {
            filter.insert(key);
        }
        filter
    }

    /// Whether `key` may be in the set.
    fn contains(&self, key: &K) -> bool;

    /// Writes the answers for `keys` into `found`.
    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        for (key, found) in keys.iter().zip(found) {
            *found = self.contains(key);
        }
    }

    /// Adds each of `keys`; `fresh` receives answers that are not used.
    fn insert_batch(&mut self, keys: &[K], fresh: &mut [bool]) {
        let _ = fresh;
        for key in keys {
            self.insert(key);
        }
    }

    /// Adds all of `keys`, without answers.
    fn extend(&mut self, keys: &[K]) {
        for key in keys {
            self.insert(key);
        }
    }

    /// Forgets every key.
    fn clear(&mut self) {
        unreachable!("CLEARS is false")
    }

    /// Removes `key`, which is in the set; returns whether the filter found it.
    fn remove(&mut self, key: &K) -> bool {
        unreachable!("REMOVES is false, yet {key:?} was to go")
    }
}

/// One timed pass over keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// Nanoseconds per key.
    pub(crate) nanos: f64,
    /// The number of keys that were reported present.
    pub(crate) hits: usize,
}

impl Pass {
    fn over(keys: usize, pass: impl FnOnce() -> usize) -> Self {
        let (nanos, hits) = clock::time(|| black_box(pass()));
        Self { nanos: nanos / keys as f64, hits }
    }
}

/// The optional operations of a contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    pub(crate) clears: bool,
    pub(crate) batches: bool,
    pub(crate) batches_inserts: bool,
    pub(crate) removes: bool,
}

/// A contender with its type hidden. Each call is one pass.
pub(crate) trait Lane<K> {
    /// What the filter can do.
    fn can(&self) -> Abilities;
    /// Builds the filter from nothing. The previous one is dropped before the clock starts.
    fn build(&mut self, keys: &[K]) -> Pass;
    /// Clears the filter, then inserts `keys` one by one into memory that was touched before. Only the inserts
    /// are timed. The filter must be able to clear.
    fn refill(&mut self, keys: &[K]) -> Pass;
    /// Like `refill`, through the batch interface, or one by one if there is none.
    fn refill_batch(&mut self, keys: &[K], batch: usize) -> Pass;
    /// Like `refill`, by extending, or one by one if there is no better way.
    fn refill_by_extending(&mut self, keys: &[K]) -> Pass;
    /// Looks up every key, one by one.
    fn look_up(&self, keys: &[K]) -> Pass;
    /// Looks up every key through the batch interface, or one by one if there is none.
    fn look_up_batch(&self, keys: &[K], batch: usize) -> Pass;
    /// Removes `keys`. The filter must be able to remove.
    fn remove(&mut self, keys: &[K]) -> Pass;
    /// The heap memory of the filter in bytes, as counted by the allocator.
    fn heap(&self) -> usize;
}

/// A contender, the rate it is asked for, and the filter last built.
#[derive(Debug)]
pub(crate) struct Track<C> {
    rate: f64,
    filter: Option<C>,
    heap: usize,
}

impl<C> Track<C> {
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate, filter: None, heap: usize::MAX }
    }

    fn filter(&self) -> &C {
        self.filter.as_ref().expect("built before it is looked at")
    }

    fn filter_mut(&mut self) -> &mut C {
        self.filter.as_mut().expect("built before it is changed")
    }

    /// The filter without any of `keys`, which must include all of its keys, in memory that was touched.
    fn emptied<K: Key>(&mut self, keys: &[K]) -> &mut C
    where
        C: Contender<K>,
    {
        let filter = self.filter_mut();
        if C::CLEARS {
            filter.clear();
        } else {
            remove_each(filter, keys);
        }
        filter
    }
}

impl<K: Key, C: Contender<K>> Lane<K> for Track<C> {
    fn can(&self) -> Abilities {
        Abilities {
            clears: C::REFILLS,
            batches: C::BATCHES,
            batches_inserts: C::BATCHES_INSERTS,
            removes: C::REMOVES,
        }
    }

    fn build(&mut self, keys: &[K]) -> Pass {
        self.filter = None;
        let before = HEAP.allocated();
        let rate = self.rate;
        let (nanos, filter) = clock::time(|| black_box(C::build(keys, rate)));
        // The first build may start a thread pool, so the smallest reading is the filter's own.
        self.heap = self.heap.min(HEAP.allocated().saturating_sub(before));
        self.filter = Some(filter);
        Pass { nanos: nanos / keys.len() as f64, hits: keys.len() }
    }

    fn refill(&mut self, keys: &[K]) -> Pass {
        let filter = self.emptied(keys);
        Pass::over(keys.len(), || insert_each(black_box(filter), keys))
    }

    fn refill_batch(&mut self, keys: &[K], batch: usize) -> Pass {
        if !C::BATCHES_INSERTS {
            return self.refill(keys);
        }
        let filter = self.emptied(keys);
        Pass::over(keys.len(), || insert_batches(black_box(filter), keys, batch))
    }

    fn refill_by_extending(&mut self, keys: &[K]) -> Pass {
        if !C::BATCHES_INSERTS {
            return self.refill(keys);
        }
        let filter = self.emptied(keys);
        Pass::over(keys.len(), || {
            black_box(filter).extend(keys);
            keys.len()
        })
    }

    fn look_up(&self, keys: &[K]) -> Pass {
        let filter = self.filter();
        Pass::over(keys.len(), || count_each(black_box(filter), keys))
    }

    fn look_up_batch(&self, keys: &[K], batch: usize) -> Pass {
        if !C::BATCHES {
            return self.look_up(keys);
        }
        let filter = self.filter();
        Pass::over(keys.len(), || count_batches(black_box(filter), keys, batch))
    }

    fn remove(&mut self, keys: &[K]) -> Pass {
        let filter = self.filter_mut();
        Pass::over(keys.len(), || remove_each(black_box(filter), keys))
    }

    fn heap(&self) -> usize {
        self.heap
    }
}

#[inline(never)]
fn insert_each<K: Key, C: Contender<K>>(filter: &mut C, keys: &[K]) -> usize {
    for key in keys {
        filter.insert(key);
    }
    keys.len()
}

#[inline(never)]
fn insert_batches<K: Key, C: Contender<K>>(filter: &mut C, keys: &[K], batch: usize) -> usize {
    let mut fresh = vec![false; batch];
    for keys in keys.chunks(batch) {
        filter.insert_batch(keys, &mut fresh[..keys.len()]);
    }
    keys.len()
}

#[inline(never)]
fn count_each<K: Key, C: Contender<K>>(filter: &C, keys: &[K]) -> usize {
    let mut hits = 0;
    for key in keys {
        if filter.contains(key) {
            hits += 1;
        }
    }
    hits
}

/// Looks up `batch` keys at a time; returns the number that were reported present.
#[inline(never)]
pub(crate) fn count_batches<K: Key, C: Contender<K>>(
    filter: &C,
    keys: &[K],
    batch: usize,
) -> usize {
    let mut found = vec![false; batch];
    let mut hits = 0;
    for keys in keys.chunks(batch) {
        let found = &mut found[..keys.len()];
        filter.contains_batch(keys, found);
        hits += found.iter().filter(|found| **found).count();
    }
    hits
}

#[inline(never)]
fn remove_each<K: Key, C: Contender<K>>(filter: &mut C, keys: &[K]) -> usize {
    let mut hits = 0;
    for key in keys {
        if filter.remove(key) {
            hits += 1;
        }
    }
    hits
}
