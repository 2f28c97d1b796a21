//! Filters that the `parquet` crate writes, read by umbel, and vice versa.

use parquet::bloom_filter::Sbbf;
use parquet::data_type::{AsBytes, ByteArray};
use std::borrow::Borrow;
use umbel::SplitBlockBloomFilter;
use umbel::hash::Digester;
use umbel::split::{Plain, Shape};

/// The numbers of the keys that are inserted; the rest up to `ASKED` are absent.
const INSERTED: std::ops::Range<i64> = 0..5_000;
const ASKED: i64 = 50_000;

fn parquet_bytes(theirs: &Sbbf) -> Vec<u8> {
    let mut bytes = Vec::new();
    theirs.write(&mut bytes).unwrap();
    bytes
}

/// Keys made by `key` have the same bits and the same answers in both implementations, whichever of them wrote
/// the filter. A key is a `T` for umbel and an `A` for parquet.
fn agree<A, T>(name: &str, key: impl Fn(i64) -> A)
where
    A: AsBytes + Borrow<T>,
    T: ?Sized,
    Plain: Digester<T>,
{
    for blocks in [1, 2, 64, 256, 1_024] {
        let mut theirs = Sbbf::new_with_num_of_bytes(blocks * 32);
        let shape = Shape::with(INSERTED.end as u64, blocks as u64).unwrap();
        let mut ours = SplitBlockBloomFilter::<T>::with(shape, Plain).unwrap();
        assert_eq!(theirs.num_blocks() as u64, ours.shape().blocks());
        for number in INSERTED {
            theirs.insert(&key(number));
            ours.insert(key(number).borrow());
        }
        let bytes = parquet_bytes(&theirs);
        assert!(ours.to_parquet() == bytes, "{name}: {blocks} blocks differ");

        let read_by_us = SplitBlockBloomFilter::<T>::from_parquet(&bytes).unwrap();
        let read_by_them = Sbbf::from_bytes(&ours.to_parquet()).unwrap();
        assert!(read_by_us == ours && parquet_bytes(&read_by_them) == bytes);
        let mut found = 0;
        for number in 0..ASKED {
            let key = key(number);
            let expected = theirs.check(&key);
            assert_eq!(read_by_us.contains(key.borrow()), expected, "{name} {number}");
            assert_eq!(read_by_them.check(&key), expected, "{name} {number}");
            assert!(expected || !INSERTED.contains(&number), "{name} {number}");
            found += u64::from(expected);
        }
        // Not vacuous: the largest filter reports nearly all absent keys absent.
        assert!(blocks < 1_024 || found < INSERTED.end as u64 + ASKED as u64 / 100, "{found}");
    }
}

#[test]
fn text_has_the_bits_that_parquet_gives_it() {
    agree::<_, str>("str", |number| Text(format!("key {number}")));
    agree::<_, str>("long str", |number| Text(format!("{number:>100}")));
}

#[test]
fn bytes_have_the_bits_that_parquet_gives_them() {
    let bytes = |number: i64| number.to_le_bytes().repeat(1 + number as usize % 40);
    agree::<_, [u8]>("Vec<u8>", bytes);
    agree::<_, [u8]>("ByteArray", |number| Bytes(ByteArray::from(bytes(number))));
}

#[test]
fn integers_have_the_bits_that_parquet_gives_them() {
    agree::<_, i32>("i32", |number| number as i32 - 2_500);
    agree::<_, i64>("i64", |number| (number - 2_500) << 33);
    agree::<_, u32>("u32", |number| u32::MAX - number as u32);
    agree::<_, u64>("u64", |number| u64::MAX - number as u64);
}

#[test]
fn fractions_have_the_bits_that_parquet_gives_them() {
    agree::<_, f32>("f32", |number| number as f32 / 3.0);
    agree::<_, f64>("f64", |number| number as f64 / 7.0 - 100.0);
}

/// Parquet has no `AsBytes` for owned text.
struct Text(String);

impl AsBytes for Text {
    fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Parquet's bytes do not say that they are `[u8]`.
struct Bytes(ByteArray);

impl AsBytes for Bytes {
    fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self.0.data()
    }
}

#[test]
fn filters_that_parquet_plans_are_read_by_umbel() {
    for (items, rate) in [(1, 0.5), (100, 0.1), (10_000, 0.01), (1_000, 1e-4)] {
        let mut theirs = Sbbf::new_with_ndv_fpp(items, rate).unwrap();
        for key in 0..items {
            theirs.insert(&key);
        }
        let bytes = parquet_bytes(&theirs);
        let ours = SplitBlockBloomFilter::<u64>::from_parquet(&bytes).unwrap();
        assert_eq!(ours.shape().blocks(), theirs.num_blocks() as u64);
        assert!((0..items).all(|key| ours.contains(&key)));
    }
}

#[test]
fn filters_that_umbel_plans_are_read_by_parquet() {
    for (items, rate) in [(0, 0.5), (100, 0.1), (10_000, 0.01), (1_000, 1e-4)] {
        let mut ours = SplitBlockBloomFilter::<u64>::new(items, rate);
        ours.extend(0..items);
        let theirs = Sbbf::from_bytes(&ours.to_parquet()).unwrap();
        assert!((0..items).all(|key| theirs.check(&key)));
    }
}

#[test]
fn folding_gives_the_blocks_that_parquet_folds_to() {
    let mut theirs = Sbbf::new_with_num_of_bytes(1 << 20);
    let mut ours =
        SplitBlockBloomFilter::<u64>::with(Shape::for_memory(0, 1 << 20).unwrap(), Plain).unwrap();
    for key in 0..3_000_u64 {
        theirs.insert(&key);
        ours.insert(&key);
    }
    // Both fold while they see no harm; they judge it a little differently.
    theirs.fold_to_target_fpp(0.01);
    while ours.shape().blocks() > theirs.num_blocks() as u64 {
        ours.fold().unwrap();
    }
    assert!(ours.to_parquet() == parquet_bytes(&theirs) && theirs.num_blocks() < 1 << 15);
}
