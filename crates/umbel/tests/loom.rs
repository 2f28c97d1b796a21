//! Models of the atomic filter: loom runs them under every order of events that Relaxed allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p umbel --test loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use umbel::atomic::AtomicBloomFilter;
use umbel::bloom::{BloomFilter, Shape};
use umbel::{Digest, Portable};

/// Few bits and few probes: loom tries all interleavings.
fn shape(words: u64, probes: u32) -> Shape {
    Shape::with(1, words * 64 - 1, probes).unwrap()
}

fn shared(shape: Shape) -> Arc<AtomicBloomFilter<u64>> {
    Arc::new(AtomicBloomFilter::with(shape, Portable::default()).unwrap())
}

fn plain(shape: Shape, digests: &[Digest]) -> BloomFilter<u64> {
    let mut filter = BloomFilter::with(shape, Portable::default()).unwrap();
    for &digest in digests {
        filter.insert_digest(digest);
    }
    filter
}

const A: Digest = Digest::new(0x1234_5678_9abc_def1);
const B: Digest = Digest::new(0xfedc_ba98_7654_3211);

#[test]
fn joined_threads_leave_the_bits_of_one_after_another() {
    for words in [1, 2] {
        loom::model(move || {
            let shape = shape(words, 2);
            let filter = shared(shape);
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

#[test]
fn one_of_two_who_insert_the_same_key_is_told_that_it_is_new() {
    loom::model(|| {
        let filter = shared(shape(2, 3));
        let other = filter.clone();
        let thread = thread::spawn(move || other.insert_digest(A));
        let here = filter.insert_digest(A);
        assert!(thread.join().unwrap() || here);
        assert!(!filter.insert_digest(A));
    });
}

#[test]
fn a_key_is_found_by_whoever_knows_that_it_was_inserted() {
    loom::model(|| {
        let filter = shared(shape(2, 2));
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

#[test]
fn a_thread_finds_its_own_keys_while_others_insert() {
    loom::model(|| {
        let filter = shared(shape(1, 2));
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

#[test]
fn a_union_loses_nothing_that_is_inserted_meanwhile() {
    loom::model(|| {
        let shape = shape(1, 2);
        let (filter, united) = (shared(shape), shared(shape));
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

#[test]
fn a_snapshot_holds_what_was_inserted_before() {
    loom::model(|| {
        let filter = shared(shape(2, 2));
        filter.insert_digest(A);
        let other = filter.clone();
        let thread = thread::spawn(move || {
            other.insert_digest(B);
        });
        assert!(filter.snapshot().contains_digest(A));
        thread.join().unwrap();
    });
}
