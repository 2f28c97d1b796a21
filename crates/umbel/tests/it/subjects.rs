//! Filters as subjects of the law.

use crate::independent::ManyHashes;
use std::any::{Any, TypeId};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use umbel::any::{AnyFilter, ChangeError};
use umbel::blocked::{self, ArrayBlockedBloomFilter, Lines};
use umbel::bloom::Bloom;
use umbel::counting::{self, Anywhere, CellLayout, CellPlan, InLine};
use umbel::format::{Saved, Stored};
use umbel::frozen::{Arrangement, Build, Frozen};
use umbel::hash::{City64, Digest, Digester, Farm64, Murmur3, Xxh3, Xxh64};
use umbel::kernels::Digits;
use umbel::layout::{Layout, Plan, StoredLayout};
use umbel::multi::Multi;
use umbel::scalable;
use umbel::split;
use umbel::stable;
use umbel::storage::{Heap, SharedHeap};
use umbel::window::{self, WindowBloomFilter};
use umbel::{ArrayBloomFilter, BlockedBloomFilter, BloomFilter, CuckooFilter};
use umbel::{
    BatchFull, Keyed, MultiBloomFilter, Portable, QuotientFilter, ScalableBloomFilter,
    StableBloomFilter, Std, words_for,
};
use umbel_laws::{Ages, Batches, Forgets, Removes, Saves, Subject, Unites};

pub(crate) const ARRAY_ITEMS: u64 = 1_000;
pub(crate) const ARRAY_RATE: f64 = 0.01;
pub(crate) const WORDS: usize = words_for(ARRAY_ITEMS, ARRAY_RATE);
pub(crate) const BLOCKED_WORDS: usize = blocked::words_for(ARRAY_ITEMS, ARRAY_RATE);

/// The shape for this capacity and rate. Laws make many thousand filters of one shape, so that it is
/// worth remembering.
fn planned<P: Plan>(capacity: u64, err_rate: f64) -> P {
    type Plans = HashMap<(TypeId, u64, u64), Box<dyn Any>>;
    thread_local!(static PLANS: RefCell<Plans> = RefCell::default());
    PLANS.with_borrow_mut(|plans| {
        let plan = plans
            .entry((TypeId::of::<P>(), capacity, err_rate.to_bits()))
            .or_insert_with(|| Box::new(P::for_rate(capacity, err_rate).unwrap()));
        *plan.downcast_ref().unwrap()
    })
}

/// A filter of integers in memory of its own.
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

/// A counting filter of integers.
pub(crate) struct Counting<H = Portable, L: CellLayout = Anywhere>(
    counting::Counting<u64, H, Heap, L>,
);

/// One whose keys have all cells in one line.
pub(crate) type BlockedCounting<H = Portable> = Counting<H, InLine>;

impl<H: Seeded, L: CellLayout> Counting<H, L> {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(counting::Counting::with(planned(capacity, err_rate), H::seeded(seed)).unwrap())
    }
}

impl<H: Seeded + Digester<u64>, L: CellLayout> Removes for Counting<H, L> {
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key)
    }
    fn holds_as_much(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// By adding: a filter united with itself counts twice, and answers the same.
impl<H: Seeded + Digester<u64>, L: CellLayout<Shape: PartialEq>> Unites for Counting<H, L> {
    fn unite(&mut self, other: &Self) -> Result<(), String> {
        self.0.merge_with(&other.0).map_err(|error| error.to_string())
    }
    fn same(&self, other: &Self) -> bool {
        let (shape, hasher) = (self.0.shape(), self.0.hasher());
        let bits = u64::from(shape.width().bits());
        let found = |filter: &Self| -> Vec<bool> {
            let words = filter.0.words();
            let cell = |bit: u64| words[(bit / 64) as usize] >> (bit % 64) & shape.width().max();
            (0..shape.bits()).map(|number| cell(number * bits) != 0).collect()
        };
        shape == other.0.shape()
            && hasher.check() == other.0.hasher().check()
            && found(self) == found(other)
    }
}

impl<H, L> Saves for Counting<H, L>
where
    H: Seeded + Digester<u64> + Stored<u64>,
    L: CellLayout<Shape: PartialEq>,
{
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        counting::Counting::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// A cuckoo filter of integers with room for `TIMES` as many keys as are promised.
pub(crate) struct Cuckoo<H = Portable, const TIMES: u64 = 1>(CuckooFilter<u64, H>);

/// What is full refuses keys that no law says it has to take; one that it has to is missed by the law.
impl<H: Seeded + Digester<u64>, const TIMES: u64> Subject for Cuckoo<H, TIMES> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(CuckooFilter::with(planned(capacity * TIMES, err_rate), H::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key).unwrap_or(false)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

impl<H: Seeded + Digester<u64>> Removes for Cuckoo<H> {
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key)
    }
    fn holds_as_much(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// By adding: a filter united with itself holds everything twice, and answers the same.
impl<H: Seeded + Digester<u64>, const TIMES: u64> Unites for Cuckoo<H, TIMES> {
    fn unite(&mut self, other: &Self) -> Result<(), String> {
        self.0.merge_with(&other.0).map_err(|error| error.to_string())
    }
    fn same(&self, other: &Self) -> bool {
        let (mine, yours) = (&self.0, &other.0);
        mine.shape() == yours.shape()
            && mine.hasher().check() == yours.hasher().check()
            && mine.fingerprints().all(|place| yours.contains_digest(digest_of(mine, place)))
            && yours.fingerprints().all(|place| mine.contains_digest(digest_of(mine, place)))
    }
}

/// A digest with this fingerprint that begins in this bucket.
fn digest_of<H>(filter: &CuckooFilter<u64, H>, (bucket, fingerprint): (u64, u32)) -> Digest {
    let fingerprints = (1_u128 << filter.shape().fingerprint_bits()) - 1;
    let rest = ((u128::from(fingerprint - 1) << 64) + (1 << 63)) / fingerprints;
    let digest = ((u128::from(bucket) << 64) + rest) / u128::from(filter.shape().buckets());
    Digest::new(digest as u64)
}

impl<H: Seeded + Digester<u64> + Stored<u64>> Saves for Cuckoo<H> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        CuckooFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// A quotient filter of integers; one that is full refuses and has no news.
pub(crate) struct Quotient<H = Portable>(QuotientFilter<u64, H>);

impl<H: Seeded + Digester<u64>> Subject for Quotient<H> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(QuotientFilter::with(planned(capacity, err_rate), H::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key).unwrap_or(false)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

impl<H: Seeded + Digester<u64>> Removes for Quotient<H> {
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key)
    }
    fn holds_as_much(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// By adding: a filter united with itself has every key twice, and answers the same.
impl<H: Seeded + Digester<u64>> Unites for Quotient<H> {
    fn unite(&mut self, other: &Self) -> Result<(), String> {
        self.0.merge_with(&other.0).map_err(|error| error.to_string())
    }
    fn same(&self, other: &Self) -> bool {
        let different = |filter: &Self| {
            let mut prefixes: Vec<u64> = filter.0.prefixes().collect();
            prefixes.dedup();
            prefixes
        };
        self.0.shape().prefixes() == other.0.shape().prefixes()
            && self.0.hasher().check() == other.0.hasher().check()
            && different(self) == different(other)
    }
}

impl<H: Seeded + Digester<u64> + Stored<u64>> Saves for Quotient<H> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        QuotientFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// A blocked filter of integers.
pub(crate) type Blocked<H = Portable> = Plain<H, Lines>;

/// A split-block filter of integers.
pub(crate) type Split<H = split::Plain> = Plain<H, split::Blocks>;

/// A split-block filter of integers for many threads.
pub(crate) type AtomicSplit<H = split::Plain> = Atomic<H, split::Blocks>;

/// A scalable filter of integers that starts with room for one of `FOLD` keys.
pub(crate) struct Scalable<const FOLD: u64>(ScalableBloomFilter<u64>);

/// One that starts with room for a 64th of the keys.
pub(crate) type Grown = Scalable<64>;

/// One that starts as small as can be.
pub(crate) type GrownFromOne = Scalable<{ u64::MAX }>;

impl<const FOLD: u64> Subject for Scalable<FOLD> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        type Plans = HashMap<(u64, u64), scalable::Shape>;
        thread_local!(static PLANS: RefCell<Plans> = RefCell::default());
        let first = capacity.div_ceil(FOLD);
        let shape = PLANS.with_borrow_mut(|plans| {
            let plan = || scalable::Shape::for_rate(first, err_rate).unwrap();
            *plans.entry((first, err_rate.to_bits())).or_insert_with(plan)
        });
        Self(ScalableBloomFilter::with(shape, Portable::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key).unwrap()
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

/// What it knows of union is that it has none.
impl<const FOLD: u64> Unites for Scalable<FOLD> {
    fn unite(&mut self, _: &Self) -> Result<(), String> {
        Err("levels of two filters do not unite".into())
    }
    fn same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<const FOLD: u64> Saves for Scalable<FOLD> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        ScalableBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// What all wrappers have in common; `$argument` is what the filter's methods take.
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
subject!(@ Counting<H, L>, [H: Seeded + Digester<u64>, L: CellLayout], key => &key);
subject!(Array, [], key => &key);
subject!(BlockedArray, [], key => &key);
subject!(Atomic<H, L>, [H: Seeded + Digester<u64, L::Digest>, L: Layout + Default], key => &key);

/// Records of one number in three dimensions, which find an absent one as often as one filter would.
pub(crate) struct Records(MultiBloomFilter<BloomFilter<u64>, 3>);

/// Records of one number in three dimensions of different families and keys, and a joint filter.
pub(crate) struct JoinedRecords(Multi<Unlike, BlockedBloomFilter<u64>>);

type Unlike = (BloomFilter<u64>, BlockedBloomFilter<str>, BloomFilter<[u8; 8]>);

/// A filter for this share of the digits of the rate; each has other mistakes.
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

/// A filter of the last integers.
pub(crate) struct Recent<H = Portable>(WindowBloomFilter<u64, H>);

impl<H: Seeded + Digester<u64>> Subject for Recent<H> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(WindowBloomFilter::with(planned(capacity, err_rate), H::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
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

/// Windows are not united: this is for the laws of bytes.
impl<H: Seeded + Digester<u64>> Unites for Recent<H> {
    fn unite(&mut self, _: &Self) -> Result<(), String> {
        Err("windows cannot be united".into())
    }
    fn same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<H: Seeded + Digester<u64> + Stored<u64>> Saves for Recent<H> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        WindowBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// A stable filter of integers that is made for so many cells of `WIDTH` bits; of 0 bits, for so many
/// keys to remember, or with room for many more where nothing may be lost.
pub(crate) struct Aged<const WIDTH: u32, const ROOM: u64 = 1>(pub(crate) StableBloomFilter<u64>);

impl<const WIDTH: u32, const ROOM: u64> Subject for Aged<WIDTH, ROOM> {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let shape = match WIDTH {
            0 => stable::Shape::for_capacity(capacity * ROOM, err_rate),
            _ => stable::Shape::for_rate(capacity, WIDTH, err_rate),
        };
        Self(StableBloomFilter::with(shape.unwrap(), Portable::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
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

/// For the laws about bytes: no two stable filters can be united.
impl<const WIDTH: u32, const ROOM: u64> Unites for Aged<WIDTH, ROOM> {
    fn unite(&mut self, _: &Self) -> Result<(), String> {
        Err("what is old in one filter is not old in the other".into())
    }
    fn same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<const WIDTH: u32, const ROOM: u64> Saves for Aged<WIDTH, ROOM> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        StableBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// A scalable filter that never gets a second level, since no machine has the memory for it.
pub(crate) struct Stunted(ScalableBloomFilter<u64>);

impl Subject for Stunted {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let shape = scalable::Shape::for_rate(capacity, err_rate).unwrap();
        let shape = shape.with_growth(1e300).unwrap();
        Self(ScalableBloomFilter::with(shape, Portable::seeded(seed)).unwrap())
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key).unwrap_or(false)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

/// For the laws about bytes: scalable filters cannot be united.
impl Unites for Stunted {
    fn unite(&mut self, _: &Self) -> Result<(), String> {
        Err("levels of two filters do not unite".into())
    }
    fn same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Saves for Stunted {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        ScalableBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// Filters that are never full, and those that are.
macro_rules! batches {
    ($($subject:ty, [$($generics:tt)*], $fills:literal, $one:expr, $many:expr;)*) => {$(
        impl<$($generics)*> Batches for $subject {
            const FILLS: bool = $fills;
            fn insert_one(&mut self, key: u64) -> Option<bool> {
                $one(self.0.insert(&key))
            }
            fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize> {
                $many(self.0.insert_batch(keys, fresh))
            }
            fn equals(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
    )*};
}

fn inserted(result: Result<(), BatchFull>) -> Result<(), usize> {
    result.map_err(|full| full.inserted)
}

batches! {
    Plain<H, L>, [H: Seeded + Digester<u64, L::Digest>, L: Layout + Default], false, Some, Ok;
    Atomic<H, L>, [H: Seeded + Digester<u64, L::Digest>, L: Layout + Default], false, Some, Ok;
    Counting<H, L>, [H: Seeded + Digester<u64>, L: CellLayout], false, Some, Ok;
    Recent<H>, [H: Seeded + Digester<u64>], false, Some, Ok;
    Aged<WIDTH, ROOM>, [const WIDTH: u32, const ROOM: u64], false, Some, Ok;
    Scalable<FOLD>, [const FOLD: u64], false, Result::ok, inserted;
    Stunted, [], true, Result::ok, inserted;
    Cuckoo<H>, [H: Seeded + Digester<u64>], true, Result::ok, inserted;
    Quotient<H>, [H: Seeded + Digester<u64>], true, Result::ok, inserted;
}

/// A filter that was opened from the bytes of `S` without being told the family.
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
        let digests: Vec<Digest> =
            keys.iter().map(|key| self.0.digest(&key.to_le_bytes()).unwrap()).collect();
        match self.0.insert_digests(&digests, fresh) {
            Ok(()) => Ok(()),
            Err(ChangeError::BatchFull(full)) => Err(full.inserted),
            Err(other) => panic!("{other}"),
        }
    }
    fn equals(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Uniting is the same for both.
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

/// What all wrappers that have a form in bytes have in common.
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

/// There and back through filters for one thread.
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

/// A hasher that can be made from a number.
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

/// The weakest hasher there is.
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

/// A filter for a set that does not change, built anew when it is asked after an insertion.
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
        // Nobody has asked since the last insertion: the answer is not worth a filter.
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
