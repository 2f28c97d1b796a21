//! The hot paths of our filters: `cargo bench -p umbel-bench`. The program measures peers; this benchmark is
//! for observing one change at a time.

#[path = "../src/keys.rs"]
#[allow(dead_code, reason = "the program uses all of it, this bench only the keys")]
mod keys;

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use keys::{Key, Queries, Workload};
use std::{hint::black_box, time::Duration};
use umbel::{
    Digest, Portable, blocked::Lines, bloom::Bloom, kernels::Digits, layout::Layout, storage::Heap,
};

const SIZES: [u64; 2] = [100_000, 1_000_000];
const RATE: f64 = 0.01;
const BATCH: usize = 1024;

/// Bloom filters of one layout.
trait Family: Layout<Digest = Digest> + Default {
    const NAME: &'static str;
}

impl Family for Digits {
    const NAME: &'static str = "bloom";
}

impl Family for Lines {
    const NAME: &'static str = "blocked";
}

type Filter<K, L> = Bloom<K, Portable, Heap, L>;

fn filters(criterion: &mut Criterion) {
    family::<Digits>(criterion);
    family::<Lines>(criterion);
}

fn family<L: Family>(criterion: &mut Criterion) {
    for items in SIZES {
        measure::<u64, L>(criterion, "u64", items);
        measure::<[u8; 32], L>(criterion, "bytes32", items);
    }
}

fn measure<K: Key + umbel::Key, L: Family>(criterion: &mut Criterion, kind: &str, items: u64) {
    let queries = Queries { least: items as usize, most: items as usize };
    let work = Workload::<K>::new(items, queries);
    let mut group = criterion.benchmark_group(format!("{}/{kind}/{items}", L::NAME));
    group.throughput(Throughput::Elements(items));
    group.warm_up_time(Duration::from_secs(1));
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    inserts::<K, L>(&mut group, &work);
    look_ups::<K, L>(&mut group, &work);
    group.finish();
}

/// Inserts into a cleared filter, so that no page is touched for the first time.
fn inserts<K: Key + umbel::Key, L: Family>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    work: &Workload<K>,
) {
    let mut filter = Filter::<K, L>::new(work.keys.len() as u64, RATE);
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

fn look_ups<K: Key + umbel::Key, L: Family>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    work: &Workload<K>,
) {
    let mut filter = Filter::<K, L>::new(work.keys.len() as u64, RATE);
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

criterion_group!(benches, filters);
criterion_main!(benches);
