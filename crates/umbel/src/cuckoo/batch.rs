//! Many keys: both buckets of one are asked for while another is worked on.

use super::table::Table;
use crate::hash::Digest;
use crate::layout::ring::{self, Touch};
use crate::simd::{Choice, Isa};

/// What is done in a table with one key. A closure would not be inlined into the loop.
pub(super) trait Work<V> {
    fn answer(&mut self, table: &mut Table<V>, digest: Digest) -> bool;
}

/// Looks keys up.
pub(super) struct LookUp;

impl<V: AsRef<[u64]>> Work<V> for LookUp {
    #[inline(always)]
    fn answer(&mut self, table: &mut Table<V>, digest: Digest) -> bool {
        table.contains(digest)
    }
}

/// Inserts keys, until the table is full.
#[derive(Default)]
pub(super) struct Insert {
    pub(super) inserted: usize,
    pub(super) full: bool,
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> Work<V> for &mut Insert {
    #[inline(always)]
    fn answer(&mut self, table: &mut Table<V>, digest: Digest) -> bool {
        if self.full {
            return false;
        }
        let fresh = table.insert(table.place(digest));
        self.full = fresh.is_err();
        self.inserted += usize::from(fresh.is_ok());
        fresh.unwrap_or_default()
    }
}

/// Removes keys.
pub(super) struct Remove;

impl<V: AsRef<[u64]> + AsMut<[u64]>> Work<V> for Remove {
    #[inline(always)]
    fn answer(&mut self, table: &mut Table<V>, digest: Digest) -> bool {
        table.remove(table.place(digest))
    }
}

struct Each<T, W> {
    table: T,
    work: W,
}

impl<V: AsRef<[u64]>, W: Work<V>> Touch for Each<Table<V>, W> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.table.words.as_ref())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        for word in self.table.words_of(digest) {
            ring::fetch::<_, AHEAD>(self.table.words.as_ref(), word);
        }
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        self.work.answer(&mut self.table, digest)
    }
}

impl<V: AsRef<[u64]>> Table<V> {
    /// Does the work for every key, in their order: `answers[i]` is for `keys[i]`.
    #[inline(always)]
    pub(super) fn for_each<A>(
        self,
        work: impl Work<V>,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        answers: &mut [bool],
    ) {
        ring::batch(Choice::OPEN, Each { table: self, work }, keys, digest, answers);
    }
}
