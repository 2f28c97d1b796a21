//! Xor and binary fuse filters: every key found, for every size, however keys repeat.

use umbel::frozen::{Build, BuildError, Frozen, Map, Peeled, Progress, Shape, Stage};
use umbel::fuse::Fused;
use umbel::xor::Thirds;
use umbel::{BinaryFuseFilter, Digest, InvalidShape, Portable, XorFilter};
use umbel_laws::split_mix;

type Filter<M> = Frozen<u64, Portable, Peeled<M>>;

/// The filter of these keys, if every one of them is found in it, alone and in a batch.
fn exact<M: Map>(keys: &[u64], err_rate: f64) -> Filter<M> {
    let filter = Filter::<M>::build(keys, err_rate).unwrap();
    let mut found = vec![false; keys.len()];
    filter.contains_batch(keys, &mut found);
    assert!(found.iter().all(|found| *found), "{} keys at {err_rate}", keys.len());
    assert!(keys.iter().all(|key| filter.contains(key)), "{} keys at {err_rate}", keys.len());
    filter
}

fn keys(first: u64, len: u64) -> Vec<u64> {
    (first..first + len).map(split_mix).collect()
}

fn every_small_size<M: Map>() {
    let all = keys(1 << 40, 2_001);
    let mut attempts = 0;
    for len in 0..=2_000 {
        let filter = exact::<M>(&all[..len], 1.0 / 256.0);
        assert_eq!(filter.len(), len as u64);
        attempts += filter.shape().attempts();
    }
    assert!(attempts < 2 * 2_001, "{attempts} attempts");
}

#[test]
fn every_small_size_can_be_built() {
    every_small_size::<Thirds>();
    every_small_size::<Fused<3>>();
    every_small_size::<Fused<4>>();
}
