//! The first programs of a new user. Each is written as a user would write it: if one stops compiling, the
//! interface has become worse.

use crate::files::Directory;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::sync::Arc;
use umbel::{
    AnyFilter, AtomicBloomFilter, BinaryFuseFilter, BloomFilter, CuckooFilter, New, Portable,
    RibbonMap, Saved, ScalableBloomFilter, Std,
};

#[test]
fn the_type_of_the_keys_is_inferred_from_the_first_key() {
    let mut f = BloomFilter::new(1000, 0.01);
    f.insert("a");
    assert!(f.contains("a"));
    assert!(f.contains(&String::from("a")));

    let mut f = BloomFilter::new(1000, 0.01);
    f.insert(&7_u64);
    assert!(f.contains(&7) && !f.contains(&8));

    let mut f = CuckooFilter::new(1000, 0.01);
    f.insert(b"abc").unwrap();
    assert!(f.contains(b"abc"));

    let f = AtomicBloomFilter::new(1000, 0.01);
    f.insert("a");
    assert!(f.contains("a"));
}

#[test]
fn batches_of_owned_text_take_borrowed_text() {
    let mut out = [false; 2];
    let mut s = BloomFilter::<String>::new(1000, 0.01);
    s.extend(["a"]);
    s.contains_batch(&["a", "b"], &mut out);
    assert_eq!(out, [true, false]);
    assert!(s.contains(&String::from("a")));
    s.insert_batch(&["a", "b"], &mut out);
    assert_eq!(out, [false, true]);
}

#[test]
fn a_static_set_is_built_from_a_vector_of_strings() {
    let vec_of_strings = vec![String::from("a"), String::from("b")];
    let f = BinaryFuseFilter::<str>::build(&vec_of_strings, 0.01).unwrap();
    assert!(f.contains("a") && f.contains("b"));
    let f = BinaryFuseFilter::<str>::build(vec_of_strings, 0.01).unwrap();
    assert!(f.contains("a"));
    let map = RibbonMap::<str, u8>::build([(String::from("a"), 1), (String::from("b"), 2)]);
    assert_eq!(map.unwrap().get("b"), 2);
}

#[test]
fn tuples_options_addresses_and_numbers_are_keys() {
    let mut t = BloomFilter::<(u32, String)>::new(1000, 0.01);
    t.insert(&(1, "x".into()));
    assert!(t.contains(&(1, "x".into())) && !t.contains(&(2, "x".into())));

    let mut i = BloomFilter::<IpAddr>::new(1000, 0.01);
    i.insert(&IpAddr::from([192, 0, 2, 1]));
    assert!(i.contains(&IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))));

    let mut s = BloomFilter::<SocketAddr>::new(1000, 0.01);
    assert!(s.insert(&SocketAddr::from(([192, 0, 2, 1], 80))));
    assert!(s.insert(&SocketAddr::from(([192, 0, 2, 1], 443))));

    let mut o = BloomFilter::<Option<NonZero<u16>>>::new(1000, 0.01);
    assert!(o.insert(&None) && o.insert(&NonZero::new(1)) && !o.insert(&None));

    let mut c = BloomFilter::new(1000, 0.01);
    assert!(c.insert(&'é') && !c.contains(&'e'));
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_is_the_key_of_its_sixteen_bytes() {
    let uuid = uuid::Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
    let mut f = BloomFilter::new(1000, 0.01);
    f.insert(&uuid);
    let bytes = f.to_bytes();
    let f = BloomFilter::<[u8; 16]>::from_bytes(&bytes).unwrap();
    assert!(f.contains(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]));
}

#[derive(Hash)]
struct MyStruct {
    name: &'static str,
    size: f32_bits::F32,
}

/// Any type may implement `Hash`.
mod f32_bits {
    pub(super) struct F32(pub(super) f32);

    impl std::hash::Hash for F32 {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.to_bits().hash(state);
        }
    }
}

#[test]
fn the_standard_hasher_needs_no_argument() {
    let mut p = BloomFilter::<MyStruct, Std>::new(1000, 0.01);
    assert!(p.insert(&MyStruct { name: "a", size: f32_bits::F32(0.5) }));
    assert!(p.contains(&MyStruct { name: "a", size: f32_bits::F32(0.5) }));
    assert!(!p.contains(&MyStruct { name: "a", size: f32_bits::F32(0.25) }));
}

#[test]
fn a_filter_that_grows_is_collected() {
    let grown: ScalableBloomFilter<u64> = (0..100).collect();
    assert!((0..100).all(|key| grown.contains(&key)));
    let grown: ScalableBloomFilter<str> = ["a", "b"].iter().collect();
    assert!(grown.contains("a") && grown.contains("b"));
    let grown: ScalableBloomFilter<str> = vec![String::from("a")].into_iter().collect();
    assert!(grown.contains("a"));
}

#[test]
fn any_filter_takes_text() -> Result<(), Box<dyn std::error::Error>> {
    let directory = Directory::new("first-minutes");
    let path = directory.path("filter.umbel");
    let mut f = BloomFilter::new(1000, 0.01);
    f.insert("a");
    f.save(&path)?;
    assert!(AnyFilter::load(&path)?.contains("a")?);
    assert!(!AnyFilter::load(&path)?.contains(&String::from("b"))?);
    assert!(AnyFilter::load(&path)?.contains(b"a")?);
    Ok(())
}

#[test]
fn many_keys_are_asked_for_at_once() {
    let mut f = BloomFilter::new(1000, 0.01);
    f.insert("a");
    let mask: Vec<bool> = f.contains_many(["a", "b"]);
    assert_eq!(mask, [true, false]);
    assert_eq!(f.contains_many(&[String::from("b"), String::from("a")]), [false, true]);
    assert_eq!(f.contains_many([Arc::<str>::from("a"), Arc::from("b")]), [true, false]);
}

#[test]
fn a_core_is_taken_out_and_given_an_edge_again() {
    let mut f = BloomFilter::new(1000, 0.01);
    f.insert("a");
    let again = umbel::Filter::<str, _, _>::from_raw(f.raw().clone(), Portable::default());
    assert!(again == f && again.contains("a"));
    let raw: umbel::raw::Bloom<umbel::storage::Heap> = f.into_raw();
    assert_eq!(raw.count_ones(), again.count_ones());
}
