//! Many threads, one filter. `tests/loom.rs` has the models.

use umbel::{AtomicBloomFilter, BloomFilter};
use umbel_laws::split_mix;

#[test]
fn many_threads_set_the_bits_that_one_sets() {
    const KEYS: u64 = 450_000;
    const THREADS: u64 = 8;
    let shared = AtomicBloomFilter::<u64>::new(KEYS, 0.001);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                // Neighbours overlap by half, so that threads fight over the same bits.
                let first = thread * KEYS / (THREADS + 1);
                let keys: Vec<u64> =
                    (first..first + 2 * KEYS / (THREADS + 1)).map(split_mix).collect();
                if thread % 2 == 0 {
                    shared.insert_batch(&keys, &mut vec![false; keys.len()]);
                } else {
                    for key in &keys {
                        shared.insert(key);
                        assert!(shared.contains(key));
                    }
                }
            });
        }
    });
    let mut alone = BloomFilter::<u64>::new(KEYS, 0.001);
    alone.extend((0..KEYS).map(split_mix));
    assert!(shared.snapshot() == alone);
    assert!(AtomicBloomFilter::from(alone) == shared);
}

#[test]
fn filters_move_between_threads() {
    fn assert_send_and_sync<F: Send + Sync + 'static>() {}
    assert_send_and_sync::<BloomFilter<str>>();
    assert_send_and_sync::<BloomFilter<std::rc::Rc<str>>>();
    assert_send_and_sync::<AtomicBloomFilter<[u8]>>();
    assert_send_and_sync::<umbel::ArrayBloomFilter<u64, 4>>();
    assert_send_and_sync::<umbel::InvalidBytes>();
}
