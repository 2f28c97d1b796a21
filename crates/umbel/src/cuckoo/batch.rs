//! Many keys: both buckets of one are asked for while another is worked on.

use super::table::Table;
use crate::hash::Digest;
use crate::layout::ring::{self, Touch};
use crate::simd::{Choice, Isa};

/// What is done with a table for one key after the other.
struct Each<T, F> {
    table: T,
    work: F,
}

impl<V, F> Touch for Each<Table<V>, F>
where
    V: AsRef<[u64]>,
    F: FnMut(&mut Table<V>, Digest) -> bool,
{
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.table.words.as_ref())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        self.table.fetch(digest, |words, word| ring::fetch::<_, AHEAD>(words, word));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        (self.work)(&mut self.table, digest)
    }
}

impl<V: AsRef<[u64]>> Table<V> {
    /// Does the work for every key, in their order: `answers[i]` is for `keys[i]`.
    #[inline(always)]
    pub(super) fn for_each<A>(
        self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        answers: &mut [bool],
        work: impl FnMut(&mut Self, Digest) -> bool,
    ) {
        ring::batch(Choice::OPEN, Each { table: self, work }, keys, digest, answers);
    }
}
