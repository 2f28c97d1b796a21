//! Models of the atomic filters: loom runs them under every order of events that Relaxed allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p umbel --test loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use umbel::blocked::{self, Lines};
use umbel::bloom::{self, Bloom};
use umbel::kernels::Digits;
use umbel::layout::Layout;
use umbel::storage::{Heap, SharedHeap};
use umbel::{Digest, Portable};

/// A family with its smallest filters: few bits and few probes, because loom tries all interleavings.
trait Small: Layout<Digest = Digest> + Default + Clone {
    /// A shape with `words` words, or at least a line, and `probes` probes.
    fn shape(words: u64, probes: u32) -> Self::Shape;
}

impl Small for Digits {
    fn shape(words: u64, probes: u32) -> bloom::Shape {
        bloom::Shape::with(1, words * 64 - 1, probes).unwrap()
    }
}

/// One line per key; two where the probes can be divided between them.
impl Small for Lines {
    fn shape(words: u64, probes: u32) -> blocked::Shape {
        let lines_per_key = if probes.is_multiple_of(2) && words == 2 { 2 } else { 1 };
        blocked::Shape::with(1, 1, lines_per_key, probes / lines_per_key).unwrap()
    }
}

fn shared<L: Small>(shape: L::Shape) -> Arc<Bloom<u64, Portable, SharedHeap, L>> {
    Arc::new(Bloom::with(shape, Portable::default()).unwrap())
}

fn plain<L: Small>(shape: L::Shape, digests: &[Digest]) -> Bloom<u64, Portable, Heap, L> {
    let mut filter: Bloom<u64, Portable, Heap, L> =
        Bloom::with(shape, Portable::default()).unwrap();
    for &digest in digests {
        filter.insert_digest(digest);
    }
    filter
}

// Two keys that share words, and no bits.
const A: Digest = Digest::new(0x1234_5678_9abc_def1);
const B: Digest = Digest::new(0xfedc_ba98_7654_321f);

#[test]
fn the_keys_of_the_models_share_a_word_and_no_bits() {
    fn check<L: Small>() {
        for words in [1, 2] {
            let key = |digest| plain::<L>(L::shape(words, 2), &[digest]);
            let (a, b) = (key(A), key(B));
            let both = || a.words().iter().zip(b.words());
            assert!(both().any(|(a, b)| *a != 0 && *b != 0) && both().all(|(a, b)| a & b == 0));
        }
    }
    check::<Digits>();
    check::<Lines>();
}

/// The same models for every family.
macro_rules! models {
    ($($model:ident)*) => {
        mod classic {
            $(#[test] fn $model() { super::$model::<super::Digits>(); })*
        }
        mod blocked_lines {
            $(#[test] fn $model() { super::$model::<super::Lines>(); })*
        }
    };
}

models! {
    joined_threads_leave_the_bits_of_one_after_another
    one_of_two_who_insert_the_same_key_is_told_that_it_is_new
    a_key_is_found_by_whoever_knows_that_it_was_inserted
    a_thread_finds_its_own_keys_while_others_insert
    a_union_loses_nothing_that_is_inserted_meanwhile
    a_snapshot_holds_what_was_inserted_before
}

fn joined_threads_leave_the_bits_of_one_after_another<L: Small>() {
    for words in [1, 2] {
        loom::model(move || {
            let shape = L::shape(words, 2);
            let filter = shared::<L>(shape);
            let other = filter.clone();
            let thread = thread::spawn(move || other.insert_digest(A));
            let fresh_b = filter.insert_digest(B);
            let fresh_a = thread.join().unwrap();
            assert!(filter.contains_digest(A) && filter.contains_digest(B));
            assert!(filter.snapshot() == plain(shape, &[A, B]));
            assert!(fresh_a || fresh_b);
        });
    }
}

fn one_of_two_who_insert_the_same_key_is_told_that_it_is_new<L: Small>() {
    loom::model(|| {
        let filter = shared::<L>(L::shape(2, 3));
        let other = filter.clone();
        let thread = thread::spawn(move || other.insert_digest(A));
        let here = filter.insert_digest(A);
        assert!(thread.join().unwrap() || here);
        assert!(!filter.insert_digest(A));
    });
}

fn a_key_is_found_by_whoever_knows_that_it_was_inserted<L: Small>() {
    loom::model(|| {
        let filter = shared::<L>(L::shape(2, 2));
        let known = Arc::new(AtomicBool::new(false));
        let (writer, tell) = (filter.clone(), known.clone());
        let thread = thread::spawn(move || {
            writer.insert_digest(A);
            tell.store(true, Ordering::Release);
        });
        if known.load(Ordering::Acquire) {
            assert!(filter.contains_digest(A));
        }
        thread.join().unwrap();
        assert!(filter.contains_digest(A));
    });
}

fn a_thread_finds_its_own_keys_while_others_insert<L: Small>() {
    loom::model(|| {
        let filter = shared::<L>(L::shape(1, 2));
        let other = filter.clone();
        let thread = thread::spawn(move || {
            other.insert_digest(B);
            assert!(other.contains_digest(B));
        });
        filter.insert_digest(A);
        assert!(filter.contains_digest(A));
        thread.join().unwrap();
    });
}

fn a_union_loses_nothing_that_is_inserted_meanwhile<L: Small>() {
    loom::model(|| {
        let shape = L::shape(1, 2);
        let (filter, united) = (shared::<L>(shape), shared::<L>(shape));
        united.insert_digest(A);
        let other = filter.clone();
        let thread = thread::spawn(move || {
            other.insert_digest(B);
        });
        filter.union_with(&united).unwrap();
        thread.join().unwrap();
        assert!(filter.snapshot() == plain(shape, &[A, B]));
    });
}

fn a_snapshot_holds_what_was_inserted_before<L: Small>() {
    loom::model(|| {
        let filter = shared::<L>(L::shape(2, 2));
        filter.insert_digest(A);
        let other = filter.clone();
        let thread = thread::spawn(move || {
            other.insert_digest(B);
        });
        assert!(filter.snapshot().contains_digest(A));
        thread.join().unwrap();
    });
}
