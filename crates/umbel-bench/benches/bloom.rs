//! The hot paths of our Bloom filter: `cargo bench -p umbel-bench`. Peers are measured by the
//! program, not here; this is for watching one change at a time.

#[path = "../src/keys.rs"]
#[allow(dead_code, reason = "the program uses all of it, this bench only the keys")]
mod keys;

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use keys::{Key, Queries, Workload};
use std::{hint::black_box, time::Duration};
use umbel::BloomFilter;

const SIZES: [u64; 2] = [100_000, 1_000_000];
const RATE: f64 = 0.01;
const BATCH: usize = 1024;

fn bloom(criterion: &mut Criterion) {
    for items in SIZES {
        measure::<u64>(criterion, "u64", items);
        measure::<[u8; 32]>(criterion, "bytes32", items);
    }
}

fn measure<K: Key + umbel::Key>(criterion: &mut Criterion, kind: &str, items: u64) {
    let queries = Queries { least: items as usize, most: items as usize };
    let work = Workload::<K>::new(items, queries);
    let mut group = criterion.benchmark_group(format!("bloom/{kind}/{items}"));
    group.throughput(Throughput::Elements(items));
    group.warm_up_time(Duration::from_secs(1));
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    inserts(&mut group, &work);
    look_ups(&mut group, &work);
    group.finish();
}

/// Into a filter that was cleared, so that no page is touched for the first time.
fn inserts<K: Key + umbel::Key>(group: &mut BenchmarkGroup<'_, WallTime>, work: &Workload<K>) {
    let mut filter = BloomFilter::<K>::new(work.keys.len() as u64, RATE);
    let mut fresh = [false; BATCH];
    group.bench_function("insert", |bencher| {
        bencher.iter(|| {
            filter.clear();
            for key in &work.keys {
                filter.insert(key);
            }
        });
    });
    group.bench_function("insert_batch", |bencher| {
        bencher.iter(|| {
            filter.clear();
            for keys in work.keys.chunks(BATCH) {
                filter.insert_batch(keys, &mut fresh[..keys.len()]);
            }
        });
    });
}

fn look_ups<K: Key + umbel::Key>(group: &mut BenchmarkGroup<'_, WallTime>, work: &Workload<K>) {
    let mut filter = BloomFilter::<K>::new(work.keys.len() as u64, RATE);
    filter.extend(&work.keys);
    let mut found = [false; BATCH];
    for (name, queries) in [("absent", &work.absent), ("present", &work.present)] {
        group.bench_with_input(BenchmarkId::new("contains", name), queries, |bencher, queries| {
            bencher.iter(|| queries.iter().filter(|key| filter.contains(*key)).count());
        });
        let id = BenchmarkId::new("contains_batch", name);
        group.bench_with_input(id, queries, |bencher, queries| {
            bencher.iter(|| {
                for keys in queries.chunks(BATCH) {
                    filter.contains_batch(keys, &mut found[..keys.len()]);
                    black_box(&found);
                }
            });
        });
    }
}

criterion_group!(benches, bloom);
criterion_main!(benches);
