//! Filters behind the interface of the laws.

use crate::independent::ManyHashes;
use std::any::{Any, TypeId};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use umbel::any::{AnyFilter, ChangeError};
use umbel::blocked::{self, ArrayBlockedBloomFilter, Lines};
use umbel::bloom::Bloom;
use umbel::counting::{Anywhere, CellLayout, InLine};
use umbel::format::{Saved, Stored, StoredCore};
use umbel::frozen::{Arrangement, Build, Frozen};
use umbel::hash::{City64, Digest, Digester, Farm64, Murmur3, Xxh3, Xxh64};
use umbel::kernels::Digits;
use umbel::layout::{Layout, Probing, StoredLayout};
use umbel::multi::Multi;
use umbel::raw::{self, Make, Probe, RemoveEach, Shaped};
use umbel::sizing::Shape;
use umbel::split;
use umbel::stable;
use umbel::storage::{Allocate, Heap, SharedHeap};
use umbel::window;
use umbel::{ArrayBloomFilter, BlockedBloomFilter, BloomFilter, Edge, Filter, Insert};
use umbel::{Keyed, MultiBloomFilter, Portable, Std, words_for};
use umbel::{cuckoo, quotient, scalable};
use umbel_laws::{Ages, Batches, Forgets, Removes, Saves, Subject, Unites};

pub(crate) const ARRAY_ITEMS: u64 = 1_000;
pub(crate) const ARRAY_RATE: f64 = 0.01;
pub(crate) const WORDS: usize = words_for(ARRAY_ITEMS, ARRAY_RATE);
pub(crate) const BLOCKED_WORDS: usize = blocked::words_for(ARRAY_ITEMS, ARRAY_RATE);

/// The shape for this capacity and rate. It is cached, because laws create many thousand filters of one shape.
fn remembered<K: 'static, P: Copy + 'static>(
    capacity: u64,
    err_rate: f64,
    plan: impl FnOnce() -> P,
) -> P {
    type Plans = HashMap<(TypeId, u64, u64), Box<dyn Any>>;
    thread_local!(static PLANS: RefCell<Plans> = RefCell::default());
    PLANS.with_borrow_mut(|plans| {
        let plan = plans
            .entry((TypeId::of::<K>(), capacity, err_rate.to_bits()))
            .or_insert_with(|| Box::new(plan()));
        *plan.downcast_ref().unwrap()
    })
}

fn planned<P: Shape>(capacity: u64, err_rate: f64) -> P {
    remembered::<P, P>(capacity, err_rate, || P::for_rate(capacity, err_rate).unwrap())
}

/// A filter of integers on the heap.
pub(crate) struct Plain<H = Portable, L: Layout = Digits>(Bloom<u64, H, Heap, L>);

impl<H: Seeded, L: Layout + Default> Plain<H, L> {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(Bloom::with(planned(capacity, err_rate), H::seeded(seed)).unwrap())
    }
}

/// A filter of strings with a common prefix.
pub(crate) struct Strings<L: Layout = Digits>(Bloom<str, Portable, Heap, L>);

impl<L: Layout + Default> Strings<L> {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(Bloom::with(planned(capacity, err_rate), Portable::seeded(seed)).unwrap())
    }
}

fn address(key: u64) -> String {
    format!("https://example.org/a/rather/long/common/prefix/{key}")
}

/// A filter of integers in an array.
pub(crate) struct Array(ArrayBloomFilter<u64, WORDS>);

impl Array {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let hasher = Portable::seeded(seed);
        Self(ArrayBloomFilter::try_with_hasher(capacity, err_rate, hasher).unwrap())
    }
}

/// A blocked filter of integers in an array.
pub(crate) struct BlockedArray(ArrayBlockedBloomFilter<u64, BLOCKED_WORDS>);

impl BlockedArray {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let hasher = Portable::seeded(seed);
        Self(ArrayBlockedBloomFilter::try_with_hasher(capacity, err_rate, hasher).unwrap())
    }
}

/// A filter of integers for many threads.
pub(crate) struct Atomic<H = Portable, L: Layout = Digits>(Bloom<u64, H, SharedHeap, L>);

impl<H: Seeded, L: Layout + Default> Atomic<H, L> {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(Bloom::with(planned(capacity, err_rate), H::seeded(seed)).unwrap())
    }
}

/// A family whose filters are planned for a capacity and a rate, used through the traits that all families
/// share.
pub(crate) trait Family: 'static {
    /// The core of its filters.
    type Core: Make<Shape: Copy + 'static> + Probe<Digest = Digest> + Insert + PartialEq;

    /// Whether they refuse keys when they are full.
    const FILLS: bool = false;

    fn plan(capacity: u64, err_rate: f64) -> <Self::Core as Shaped>::Shape;

    fn unite<H: Digester<u64>>(_: &mut Keys<Self, H>, _: &Keys<Self, H>) -> Result<(), String> {
        Err("filters of this family cannot be united".into())
    }

    /// Whether the two give the same answers. A counting filter united with itself has every key twice.
    fn same<H: Digester<u64>>(one: &Keys<Self, H>, other: &Keys<Self, H>) -> bool {
        one == other
    }
}

/// A filter of integers of a family.
type Keys<F, H> = Filter<u64, H, <F as Family>::Core>;

/// A filter of integers of a family, as a subject.
pub(crate) struct Of<F: Family + ?Sized, H = Portable>(Keys<F, H>);

/// A full filter may refuse keys that no law requires. If it refuses a required key, the law fails.
impl<F: Family, H: Seeded + Digester<u64>> Subject for Of<F, H> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let plan = || F::plan(capacity, err_rate);
        let shape = remembered::<F, _>(capacity, err_rate, plan);
        Self(Filter::with(shape, H::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.insert_one(key).unwrap_or(false)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

impl<F: Family, H: Seeded + Digester<u64>> Batches for Of<F, H> {
    const FILLS: bool = F::FILLS;
    fn insert_one(&mut self, key: u64) -> Option<bool> {
        let digest = Edge::digest(&self.0, &key);
        Insert::insert_digest(&mut self.0, digest).ok()
    }
    fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize> {
        let digests: Vec<Digest> = keys.iter().map(|key| Edge::digest(&self.0, key)).collect();
        Insert::insert_digests(&mut self.0, &digests, fresh).map_err(|full| full.inserted)
    }
    fn equals(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<F: Family<Core: RemoveEach>, H: Seeded + Digester<u64>> Removes for Of<F, H> {
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key)
    }
    fn holds_as_much(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<F: Family, H: Seeded + Digester<u64>> Unites for Of<F, H> {
    fn unite(&mut self, other: &Self) -> Result<(), String> {
        F::unite(&mut self.0, &other.0)
    }
    fn same(&self, other: &Self) -> bool {
        F::same(&self.0, &other.0)
    }
}

impl<F, H> Saves for Of<F, H>
where
    F: Family<Core: StoredCore<Storage: Allocate>>,
    H: Seeded + Digester<u64> + Stored<u64>,
{
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        Saved::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Counting filters of a layout.
pub(crate) struct Cells<L>(PhantomData<L>);

/// A counting filter of integers.
pub(crate) type Counting<H = Portable, L = Anywhere> = Of<Cells<L>, H>;

/// A counting filter whose keys have all cells in one line.
pub(crate) type BlockedCounting<H = Portable> = Counting<H, InLine>;

impl<L: CellLayout<Shape: PartialEq>> Family for Cells<L> {
    type Core = raw::Counting<Heap, L>;

    fn plan(capacity: u64, err_rate: f64) -> L::Shape {
        L::Shape::for_rate(capacity, err_rate).unwrap()
    }

    fn unite<H: Digester<u64>>(
        one: &mut Keys<Self, H>,
        other: &Keys<Self, H>,
    ) -> Result<(), String> {
        one.merge_with(other).map_err(text)
    }

    fn same<H: Digester<u64>>(one: &Keys<Self, H>, other: &Keys<Self, H>) -> bool {
        let shape = one.shape();
        let bits = u64::from(shape.cell_bits());
        let found = |filter: &Keys<Self, H>| -> Vec<bool> {
            let words = filter.words();
            let cell = |bit: u64| words[(bit / 64) as usize] >> (bit % 64) & shape.cell_max();
            (0..shape.places()).map(|number| cell(number * bits) != 0).collect()
        };
        shape == other.shape()
            && one.hasher().check() == other.hasher().check()
            && found(one) == found(other)
    }
}

/// Cuckoo filters with room for `TIMES` times the promised number of keys.
pub(crate) struct Buckets<const TIMES: u64>;

/// A cuckoo filter of integers.
pub(crate) type Cuckoo<H = Portable, const TIMES: u64 = 1> = Of<Buckets<TIMES>, H>;

impl<const TIMES: u64> Family for Buckets<TIMES> {
    type Core = raw::Cuckoo<Heap>;

    const FILLS: bool = true;

    fn plan(capacity: u64, err_rate: f64) -> cuckoo::Shape {
        cuckoo::Shape::for_rate(capacity * TIMES, err_rate).unwrap()
    }

    fn unite<H: Digester<u64>>(
        one: &mut Keys<Self, H>,
        other: &Keys<Self, H>,
    ) -> Result<(), String> {
        one.merge_with(other).map_err(text)
    }

    fn same<H: Digester<u64>>(one: &Keys<Self, H>, other: &Keys<Self, H>) -> bool {
        one.shape() == other.shape()
            && one.hasher().check() == other.hasher().check()
            && one.fingerprints().all(|place| other.contains_digest(digest_of(one.shape(), place)))
            && other.fingerprints().all(|place| one.contains_digest(digest_of(one.shape(), place)))
    }
}

/// A digest with this fingerprint and this first bucket.
fn digest_of(shape: &cuckoo::Shape, (bucket, fingerprint): (u64, u32)) -> Digest {
    let fingerprints = (1_u128 << shape.fingerprint_bits()) - 1;
    let rest = ((u128::from(fingerprint - 1) << 64) + (1 << 63)) / fingerprints;
    let digest = ((u128::from(bucket) << 64) + rest) / u128::from(shape.buckets());
    Digest::new(digest as u64)
}

/// Quotient filters.
pub(crate) struct Quotients;

/// A quotient filter of integers.
pub(crate) type Quotient<H = Portable> = Of<Quotients, H>;

impl Family for Quotients {
    type Core = raw::Quotient;

    const FILLS: bool = true;

    fn plan(capacity: u64, err_rate: f64) -> quotient::Shape {
        quotient::Shape::for_rate(capacity, err_rate).unwrap()
    }

    fn unite<H: Digester<u64>>(
        one: &mut Keys<Self, H>,
        other: &Keys<Self, H>,
    ) -> Result<(), String> {
        one.merge_with(other).map_err(text)
    }

    fn same<H: Digester<u64>>(one: &Keys<Self, H>, other: &Keys<Self, H>) -> bool {
        let different = |filter: &Keys<Self, H>| {
            let mut prefixes: Vec<u64> = filter.prefixes().collect();
            prefixes.dedup();
            prefixes
        };
        one.shape().prefixes() == other.shape().prefixes()
            && one.hasher().check() == other.hasher().check()
            && different(one) == different(other)
    }
}

/// Scalable filters whose first level has room for one of `FOLD` keys. With 0 the first level has room for all
/// keys, and there is no second level, because it would exceed the memory of any machine.
pub(crate) struct Levels<const FOLD: u64>;

/// One that starts with room for a 64th of the keys.
pub(crate) type Grown = Of<Levels<64>>;

/// One that starts with the smallest size.
pub(crate) type GrownFromOne = Of<Levels<{ u64::MAX }>>;

/// One that cannot grow.
pub(crate) type Stunted = Of<Levels<0>>;

impl<const FOLD: u64> Family for Levels<FOLD> {
    type Core = raw::Scalable;

    const FILLS: bool = FOLD == 0;

    fn plan(capacity: u64, err_rate: f64) -> scalable::Shape {
        if FOLD == 0 {
            let shape = scalable::Shape::for_rate(capacity, err_rate).unwrap();
            return shape.with_growth(1e300).unwrap();
        }
        scalable::Shape::for_rate(capacity.div_ceil(FOLD), err_rate).unwrap()
    }
}

/// Window filters of insertions.
pub(crate) struct Windows;

/// A filter of the last integers.
pub(crate) type Recent<H = Portable> = Of<Windows, H>;

impl Family for Windows {
    type Core = raw::Window;

    fn plan(capacity: u64, err_rate: f64) -> window::Shape {
        window::Shape::for_rate(capacity, err_rate).unwrap()
    }
}

impl<H: Seeded + Digester<u64>> Forgets for Recent<H> {
    fn longest(&self) -> u64 {
        match self.0.shape().longest() {
            window::Window::Insertions(longest) => longest,
            window::Window::Time(_) => unreachable!("the window is one of insertions"),
        }
    }
}

/// Stable filters that are planned for a number of cells of `WIDTH` bits. With 0 bits they are planned for a
/// number of remembered keys, or with room for many more where no key may be lost.
pub(crate) struct Ageing<const WIDTH: u32, const ROOM: u64>;

/// A stable filter of integers.
pub(crate) type Aged<const WIDTH: u32, const ROOM: u64 = 1> = Of<Ageing<WIDTH, ROOM>>;

impl<const WIDTH: u32, const ROOM: u64> Family for Ageing<WIDTH, ROOM> {
    type Core = raw::Stable<Heap>;

    fn plan(capacity: u64, err_rate: f64) -> stable::Shape {
        match WIDTH {
            0 => stable::Shape::for_rate(capacity * ROOM, err_rate).unwrap(),
            _ => stable::Shape::for_cells(capacity, WIDTH, err_rate).unwrap(),
        }
    }
}

impl<const WIDTH: u32, const ROOM: u64> Ages for Aged<WIDTH, ROOM> {
    fn stable_rate(&self) -> f64 {
        self.0.shape().stable_rate()
    }
    fn settles_after(&self) -> u64 {
        self.0.shape().settles_after(1e-4)
    }
}

/// A blocked filter of integers.
pub(crate) type Blocked<H = Portable> = Plain<H, Lines>;

/// A split-block filter of integers.
pub(crate) type Split<H = split::Plain> = Plain<H, split::Blocks>;

/// A split-block filter of integers for many threads.
pub(crate) type AtomicSplit<H = split::Plain> = Atomic<H, split::Blocks>;

/// The common part of all wrappers; `$argument` is the argument of the filter's methods.
macro_rules! subject {
    ($subject:ty, [$($generics:tt)*], $key:ident => $argument:expr) => {
        subject!(@ $subject, [$($generics)*], $key => $argument);
        impl<$($generics)*> Unites for $subject {
            fn unite(&mut self, other: &Self) -> Result<(), String> {
                self.0.union_with(&other.0).map_err(|error| error.to_string())
            }
            fn same(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
    };
    (@ $subject:ty, [$($generics:tt)*], $key:ident => $argument:expr) => {
        impl<$($generics)*> Subject for $subject {
            fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
                Self::made(capacity, err_rate, seed)
            }
            fn insert(&mut self, $key: u64) -> bool {
                self.0.insert($argument)
            }
            fn contains(&self, $key: u64) -> bool {
                self.0.contains($argument)
            }
            fn rate_now(&self) -> f64 {
                self.0.expected_rate()
            }
        }
    };
}

subject!(Plain<H, L>, [H: Seeded + Digester<u64, L::Digest>, L: Layout + Default], key => &key);
subject!(Strings<L>, [L: Layout<Digest = Digest> + Default], key => address(key).as_str());
subject!(Array, [], key => &key);
subject!(BlockedArray, [], key => &key);
subject!(Atomic<H, L>, [H: Seeded + Digester<u64, L::Digest>, L: Layout + Default], key => &key);

/// Records of one number in three dimensions, with the false positive rate of one filter.
pub(crate) struct Records(MultiBloomFilter<BloomFilter<u64>, 3>);

/// Records of one number in three dimensions of different families and keys, and a joint filter.
pub(crate) struct JoinedRecords(Multi<Unlike, BlockedBloomFilter<u64>>);

type Unlike = (BloomFilter<u64>, BlockedBloomFilter<str>, BloomFilter<[u8; 8]>);

/// A filter for this share of the digits of the rate. Each has different false positives.
fn share<T: ?Sized, L: Layout + Default>(
    (capacity, err_rate, seed): (u64, f64, u64),
    (at, of): (u64, u64),
) -> Bloom<T, Portable, Heap, L> {
    let shape = planned(capacity, err_rate.powf(1.0 / of as f64));
    Bloom::with(shape, Portable::seeded(seed * of + at)).unwrap()
}

impl Subject for Records {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let plan = (capacity, err_rate, seed);
        Self(Multi::of([0, 1, 2].map(|at| share(plan, (at, 3)))))
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert([&key; 3]).unwrap()
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains([&key; 3])
    }
    fn rate_now(&self) -> f64 {
        self.0.iter().map(Bloom::expected_rate).product()
    }
}

impl Subject for JoinedRecords {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let plan = (capacity, err_rate, seed);
        let dimensions = (share(plan, (0, 4)), share(plan, (1, 4)), share(plan, (2, 4)));
        Self(Multi::with_joint(dimensions, share(plan, (3, 4))))
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert((&key, &address(key), &key.to_be_bytes())).unwrap()
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains((&key, &address(key), &key.to_be_bytes()))
    }
    fn rate_now(&self) -> f64 {
        let (a, b, c) = self.0.dimensions();
        let dimensions = a.expected_rate() * b.expected_rate() * c.expected_rate();
        dimensions * self.0.joint().expected_rate()
    }
}

/// Bloom filters, which are never full.
macro_rules! batches {
    ($($subject:ident),*) => {$(
        impl<H, L> Batches for $subject<H, L>
        where
            H: Seeded + Digester<u64, L::Digest>,
            L: Layout + Default,
        {
            const FILLS: bool = false;
            fn insert_one(&mut self, key: u64) -> Option<bool> {
                Some(self.0.insert(&key))
            }
            fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize> {
                self.0.insert_batch(keys, fresh);
                Ok(())
            }
            fn equals(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
    )*};
}

batches!(Plain, Atomic);

/// A filter that was opened from the bytes of `S` as a filter of any family.
pub(crate) struct Opened<S>(AnyFilter, PhantomData<S>);

impl<S: Saves> Subject for Opened<S> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let bytes = S::make(capacity, err_rate, seed).save();
        Self(AnyFilter::from_bytes(&bytes).unwrap(), PhantomData)
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key.to_le_bytes()).unwrap_or(false)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key.to_le_bytes()).unwrap()
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

impl<S: Saves + Batches> Batches for Opened<S> {
    const FILLS: bool = S::FILLS;
    fn insert_one(&mut self, key: u64) -> Option<bool> {
        match self.0.insert(&key.to_le_bytes()) {
            Ok(fresh) => Some(fresh),
            Err(ChangeError::Full) => None,
            Err(other) => panic!("{other}"),
        }
    }
    fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize> {
        let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        match self.0.insert_batch(&keys, fresh) {
            Ok(()) => Ok(()),
            Err(ChangeError::BatchFull(full)) => Err(full.inserted),
            Err(other) => panic!("{other}"),
        }
    }
    fn equals(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// The union is the same for both.
macro_rules! unites {
    ($($subject:ty),*) => {$(
        impl Unites for $subject {
            fn unite(&mut self, other: &Self) -> Result<(), String> {
                self.0.union_with(&other.0).map_err(|error| error.to_string())
            }
            fn same(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
    )*};
}

unites!(Records, JoinedRecords);

/// The common part of all wrappers that can be saved.
macro_rules! saves {
    ($subject:ty, [$($generics:tt)*]) => {
        impl<$($generics)*> Saves for $subject {
            fn save(&self) -> Vec<u8> {
                self.0.to_bytes()
            }
            fn load(bytes: &[u8]) -> Result<Self, String> {
                Bloom::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
            }
        }
    };
}

saves!(Plain<H, L>, [H: Seeded + Digester<u64, L::Digest> + Stored<u64>, L: StoredLayout]);
saves!(Strings<L>, [L: StoredLayout<Digest = Digest>]);
saves!(Array, []);
saves!(BlockedArray, []);

/// Saved and loaded as filters for one thread.
impl<H, L> Saves for Atomic<H, L>
where
    H: Seeded + Digester<u64, L::Digest> + Stored<u64> + Clone,
    L: StoredLayout + Clone,
{
    fn save(&self) -> Vec<u8> {
        let bytes = self.0.to_bytes();
        assert!(bytes == self.0.snapshot().to_bytes(), "a snapshot has other bytes");
        bytes
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        let text = |error: umbel::InvalidBytes| error.to_string();
        let plain = Bloom::<u64, H, Heap, L>::from_bytes(bytes).map_err(text)?;
        let shared = Self(Bloom::from_bytes(bytes).map_err(text)?);
        assert!(shared.0 == plain.into(), "the bytes have two meanings");
        Ok(shared)
    }
}

/// A hasher that can be created from a number.
pub(crate) trait Seeded {
    fn seeded(seed: u64) -> Self;
}

macro_rules! seeded {
    ($($hasher:ty = $make:expr),* $(,)?) => {$(
        impl Seeded for $hasher {
            fn seeded(seed: u64) -> Self {
                $make(seed)
            }
        }
    )*};
}

seeded! {
    Portable = Portable::seeded,
    Keyed = |seed: u64| Keyed::new(u128::from(seed).to_le_bytes()),
    Murmur3 = |seed| Murmur3::seeded(seed as u32),
    Xxh64 = Xxh64::seeded,
    Xxh3 = Xxh3::seeded,
    City64 = City64::seeded,
    Farm64 = |_| Farm64,
    Std<BuildHasherDefault<Identity>> = |_| Std::default(),
    ManyHashes = ManyHashes::seeded,
    split::Plain = |_| split::Plain,
}

#[cfg(feature = "crc64")]
seeded!(umbel::hash::Crc64 = |_| umbel::hash::Crc64);

/// The weakest possible hasher.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// A static filter, rebuilt when it is queried after an insertion.
pub(crate) struct Built<A: Arrangement> {
    keys: Vec<u64>,
    err_rate: f64,
    seed: u64,
    filter: OnceCell<Frozen<u64, Portable, A>>,
}

impl<A: Arrangement> Built<A> {
    fn filter(&self) -> &Frozen<u64, Portable, A> {
        self.filter.get_or_init(|| {
            let how = Build::with_hasher(self.err_rate, Portable::seeded(self.seed));
            Frozen::build_with(how, &self.keys).unwrap()
        })
    }
}

impl<A: Arrangement> Subject for Built<A> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let keys = Vec::with_capacity(capacity as usize);
        Self { keys, err_rate, seed, filter: OnceCell::new() }
    }
    fn insert(&mut self, key: u64) -> bool {
        // There was no query since the last insertion, so no filter is built for this answer.
        let fresh = self.filter.take().is_none_or(|filter| !filter.contains(&key));
        self.keys.push(key);
        fresh
    }
    fn contains(&self, key: u64) -> bool {
        self.filter().contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.filter().expected_rate()
    }
}
