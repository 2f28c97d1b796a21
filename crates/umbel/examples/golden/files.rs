//! The golden files: their names, and the content of the table beside them.

use super::filters::{
    Fuse4Segments, FuseSegments, Hashed, Numbered, RibbonLayers, Split, Visitor, visit_families,
};
use std::borrow::Borrow;
use std::path::PathBuf;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::format::Stored;
use umbel::hash::{City64, Digester, Farm64, Murmur3, Portable, Xxh3, Xxh64};
use umbel::split::Plain;
use umbel::{BloomFilter, Keyed, Saved};

/// The table lists false positives among this number of absent keys.
pub(crate) const ABSENT: u64 = 1_000;

/// The maximum number of false positives in the table.
pub(crate) const MISTAKES: usize = 5;

/// The directory of the files.
pub(crate) fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

/// A hash and a type of keys, chosen at run time: a tenth of the code that a type for each would need.
pub(crate) struct Hashing {
    pub(crate) hash: &'static str,
    pub(crate) keys: &'static str,
    pub(crate) hasher: AnyHasher,
    /// The bytes of the key with a number.
    pub(crate) key: fn(u64) -> Vec<u8>,
    /// Whether the secret is in the file.
    pub(crate) secret: bool,
}

impl Hashing {
    fn of<T, H>(secret: bool) -> Self
    where
        T: ?Sized + Numbered,
        H: Hashed + Digester<T> + Stored<T>,
    {
        // Any filter stores its hasher.
        let bytes = BloomFilter::<T, H>::with_hasher(1, 0.5, H::hasher()).to_bytes();
        let filter = match H::HASH {
            "keyed" => AnyFilter::from_bytes_with_secret(&bytes, Keyed::hasher()),
            _ => AnyFilter::from_bytes(&bytes),
        };
        let hasher = *filter.unwrap().hasher();
        let key = |number| T::numbered(number).borrow().to_bytes();
        Self { hash: H::HASH, keys: T::KEYS, hasher, key, secret }
    }

    /// The name of the file of such a filter.
    pub(crate) fn name(&self, family: &str) -> String {
        name(family, self.hash, self.keys, self.secret)
    }
}

/// The name of the file of such a filter.
pub(crate) fn name(family: &str, hash: &str, keys: &str, secret: bool) -> String {
    let secret = if secret { "-secret" } else { "" };
    format!("{family}-{hash}-{keys}{secret}.umbel")
}

/// Every family with every hash.
pub(crate) fn visit_all(visitor: &mut impl Visitor<[u8], AnyHasher, Hashing>) {
    for hashing in [
        Hashing::of::<u64, Portable>(false),
        Hashing::of::<str, Portable>(false),
        Hashing::of::<str, Keyed>(false),
        Hashing::of::<str, Keyed>(true),
        Hashing::of::<u128, Murmur3>(false),
        Hashing::of::<[u8], Xxh64>(false),
        Hashing::of::<u64, Xxh3>(false),
        Hashing::of::<str, City64>(false),
        Hashing::of::<u64, Farm64>(false),
    ] {
        visit_families(visitor, &hashing);
    }
    let portable = Hashing::of::<u64, Portable>(false);
    visitor.visit::<FuseSegments>(&portable);
    visitor.visit::<Fuse4Segments>(&portable);
    visitor.visit::<RibbonLayers>(&portable);
    visitor.visit::<Split>(&Hashing::of::<i32, Plain>(false));
    visitor.visit::<Split>(&Hashing::of::<u64, Plain>(false));
    visitor.visit::<Split>(&Hashing::of::<str, Plain>(false));
    #[cfg(feature = "crc64")]
    visit_families(visitor, &Hashing::of::<u64, umbel::hash::Crc64>(false));
}

/// The entry of a file in the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its name.
    pub(crate) name: String,
    /// XXH3 of its bytes.
    pub(crate) digest: u64,
    /// The number of keys that are found.
    pub(crate) found: usize,
    /// The numbers of the first false positives.
    pub(crate) mistakes: Vec<u64>,
}

impl Line {
    /// The entry of a filter with these bytes and these answers.
    pub(crate) fn of(name: String, bytes: &[u8], keys: u64, has: impl Fn(u64) -> bool) -> Self {
        let digest = Xxh3::default().digest(bytes).bits();
        let found = (0..keys).filter(|number| has(*number)).count();
        let absent = keys..keys + ABSENT;
        let mistakes = absent.filter(|number| has(*number)).take(MISTAKES).collect();
        Self { name, digest, found, mistakes }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, digest, found, mistakes } = self;
        write!(f, "{name} {digest:016x} {found} {mistakes:?}")
    }
}
