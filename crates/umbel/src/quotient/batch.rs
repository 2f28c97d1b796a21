//! Operations on one key, and on batches with prefetched slots.

use super::table::RunTable;
use crate::error::Full;
use crate::hash::Digest;
use crate::parts::select::{Ranked, Select};

/// How many keys of a batch are in flight.
const AHEAD: usize = 32;

/// Tables of up to this many bytes fit into the core's private cache, where prefetching only costs
/// time.
const CACHED: usize = 1 << 20;

/// Words of tables larger than this are prefetched into the second-level cache, which allows more
/// outstanding requests.
const FAR: usize = 8 << 20;

/// An operation on one key. The methods must be `#[inline(always)]`, so that they are compiled with
/// the instructions of the selected path.
pub(super) trait RunWork {
    /// The result.
    type Answer;

    fn table(&self) -> &RunTable;

    /// Runs the operation.
    fn touch(&mut self, select: impl Select, digest: Digest) -> Self::Answer;
}

/// Makes a [`RunWork`] from a method of the table that takes an entry.
macro_rules! touch {
    ($name:ident, $table:ty, $method:ident $(::<$unique:literal>)?, $answer:ty, $what:literal) => {
        #[doc = $what]
        pub(super) struct $name<'a>(pub(super) $table);

        impl RunWork for $name<'_> {
            type Answer = $answer;

            #[inline(always)]
            fn table(&self) -> &RunTable {
                self.0
            }

            #[inline(always)]
            fn touch(&mut self, select: impl Select, digest: Digest) -> $answer {
                RunTable::$method$(::<$unique>)?(self.0, select, digest)
            }
        }
    };
}
touch!(RunLookUp, &'a RunTable, contains, bool, "Whether the key is there.");
touch!(
    FarRunLookUp,
    &'a RunTable,
    far_contains,
    bool,
    "The same, for a run that is not in one block."
);
touch!(Count, &'a RunTable, count, u64, "How many times the key is there.");
touch!(RunInsert, &'a mut RunTable, insert::<false>, Result<bool, Full>, "Inserts it; whether it is new.");
touch!(FarRunInsert, &'a mut RunTable, far_insert::<false>, Result<bool, Full>, "The same, far away.");
touch!(RunInsertUnique, &'a mut RunTable, insert::<true>, Result<bool, Full>, "Unless it is found.");
touch!(FarRunInsertUnique, &'a mut RunTable, far_insert::<true>, Result<bool, Full>, "The same, far away.");
touch!(
    RunRemove,
    &'a mut RunTable,
    remove,
    bool,
    "Takes one copy of the key away; whether it did."
);
touch!(FarRunRemove, &'a mut RunTable, far_remove, bool, "The same, far away.");

/// One key.
pub(super) struct One<T>(pub(super) T, pub(super) Digest);

impl<T: RunWork> Ranked for One<T> {
    type Answer = T::Answer;

    #[inline(always)]
    fn run<S: Select>(mut self, select: S) -> T::Answer {
        self.0.touch(select, self.1)
    }
}

/// Many keys in order, until `each` stops accepting answers.
pub(super) struct Many<T, I, E> {
    pub(super) touch: T,
    pub(super) digests: I,
    pub(super) each: E,
}

impl<T, I, E> Ranked for Many<T, I, E>
where
    T: RunWork,
    I: Iterator<Item = Digest>,
    E: FnMut(T::Answer) -> bool,
{
    type Answer = ();

    #[inline(always)]
    fn run<S: Select>(mut self, select: S) {
        let bytes = self.touch.table().bytes();
        if bytes <= CACHED {
            for digest in self.digests {
                if !(self.each)(self.touch.touch(select, digest)) {
                    return;
                }
            }
        } else if bytes <= FAR {
            self.go::<S, false>(select);
        } else {
            self.go::<S, true>(select);
        }
    }
}

impl<T, I, E> Many<T, I, E>
where
    T: RunWork,
    I: Iterator<Item = Digest>,
    E: FnMut(T::Answer) -> bool,
{
    #[inline(always)]
    fn go<S: Select, const FAR: bool>(self, select: S) {
        let Self { mut touch, mut digests, mut each } = self;
        let (mut ring, mut len) = ([Digest::new(0); AHEAD], 0);
        for (slot, digest) in ring.iter_mut().zip(&mut digests) {
            touch.table().fetch::<FAR>(digest);
            *slot = digest;
            len += 1;
        }
        let mut first = 0;
        for digest in digests {
            if !each(touch.touch(select, ring[first])) {
                return;
            }
            touch.table().fetch::<FAR>(digest);
            ring[first] = digest;
            first = (first + 1) % AHEAD;
        }
        for place in 0..len {
            if !each(touch.touch(select, ring[(first + place) % AHEAD])) {
                return;
            }
        }
    }
}
