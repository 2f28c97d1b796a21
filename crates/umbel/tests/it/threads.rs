//! Many threads, one filter. `tests/loom.rs` has the models.

use umbel::blocked::{self, AtomicArrayBlockedBloomFilter, Lines};
use umbel::bloom::Bloom;
use umbel::hash::{Digest, Portable};
use umbel::kernels::Digits;
use umbel::layout::Layout;
use umbel::storage::{Heap, SharedHeap};
use umbel::{AtomicBlockedBloomFilter, AtomicBloomFilter, BlockedBloomFilter, BloomFilter};
use umbel_laws::split_mix;

#[test]
fn many_threads_set_the_bits_that_one_sets() {
    fill::<Digits>(0.001);
    fill::<Lines>(0.01); // one line per key
    fill::<Lines>(0.001); // two lines per key
}

fn fill<L: Layout<Digest = Digest, Shape: Sync> + Default + Clone + Sync>(rate: f64) {
    const KEYS: u64 = 450_000;
    const THREADS: u64 = 8;
    let shared = Bloom::<u64, Portable, SharedHeap, L>::new(KEYS, rate);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                // The ranges of neighbouring threads overlap by half, so that threads contend for the same
                // bits.
                let first = thread * KEYS / (THREADS + 1);
                let keys: Vec<u64> =
                    (first..first + 2 * KEYS / (THREADS + 1)).map(split_mix).collect();
                match thread % 3 {
                    0 => shared.insert_batch(&keys, &mut vec![false; keys.len()]),
                    1 => (&*shared).extend(&keys),
                    _ => keys.iter().for_each(|key| {
                        shared.insert(key);
                        assert!(shared.contains(key));
                    }),
                }
            });
        }
    });
    let mut alone = Bloom::<u64, Portable, Heap, L>::new(KEYS, rate);
    alone.extend((0..KEYS).map(split_mix));
    assert!(shared.snapshot() == alone);
    assert!(Bloom::from(alone) == shared);
}

#[test]
fn filters_move_between_threads() {
    fn assert_send_and_sync<F: Send + Sync + 'static>() {}
    assert_send_and_sync::<BloomFilter<str>>();
    assert_send_and_sync::<BloomFilter<std::rc::Rc<str>>>();
    assert_send_and_sync::<AtomicBloomFilter<[u8]>>();
    assert_send_and_sync::<umbel::ArrayBloomFilter<u64, 4>>();
    assert_send_and_sync::<BlockedBloomFilter<std::rc::Rc<str>>>();
    assert_send_and_sync::<AtomicBlockedBloomFilter<[u8]>>();
    assert_send_and_sync::<blocked::ArrayBlockedBloomFilter<u64, 8>>();
    assert_send_and_sync::<AtomicArrayBlockedBloomFilter<u64, 8>>();
    assert_send_and_sync::<umbel::InvalidBytes>();
}

#[test]
fn a_static_is_filled_by_many_threads() {
    static SEEN: AtomicArrayBlockedBloomFilter<u64, { blocked::words_for(1_000, 0.01) }> =
        AtomicArrayBlockedBloomFilter::new(1_000, 0.01);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || (&SEEN).extend(250 * thread..250 * (thread + 1)));
        }
    });
    let mut alone = BlockedBloomFilter::<u64>::new(1_000, 0.01);
    alone.extend(0..1_000_u64);
    assert!(SEEN.snapshot() == alone);
}
