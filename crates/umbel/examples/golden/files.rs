//! The golden files: their names, and what the table beside them says.

use super::filters::{
    Fuse4Segments, FuseSegments, Hashed, Numbered, Sort, Split, Visitor, visit_families,
};
use std::path::PathBuf;
use umbel::Keyed;
use umbel::hash::{City64, Farm64, Murmur3, Portable, Xxh3, Xxh64};
use umbel::split::Plain;

/// The mistakes that the table lists are the first of this many absent keys.
pub(crate) const ABSENT: u64 = 1_000;

/// How many mistakes it lists at most.
pub(crate) const MISTAKES: usize = 5;

/// Where they are.
pub(crate) fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

/// The name of the file of such a filter.
pub(crate) fn name<S, T, H>(secret: bool) -> String
where
    S: Sort<T, H>,
    T: ?Sized + Numbered,
    H: Hashed,
{
    let secret = if secret { "-secret" } else { "" };
    format!("{}-{}-{}{secret}.umbel", S::NAME, H::HASH, T::KEYS)
}

/// Every family with every hash.
pub(crate) fn visit_all(visitor: &mut impl Visitor) {
    visit_families::<u64, Portable>(visitor, false);
    visit_families::<str, Portable>(visitor, false);
    visit_families::<str, Keyed>(visitor, false);
    visit_families::<str, Keyed>(visitor, true);
    visit_families::<u128, Murmur3>(visitor, false);
    visit_families::<[u8], Xxh64>(visitor, false);
    visit_families::<u64, Xxh3>(visitor, false);
    visit_families::<str, City64>(visitor, false);
    visit_families::<u64, Farm64>(visitor, false);
    visitor.visit::<FuseSegments, u64, Portable>(false);
    visitor.visit::<Fuse4Segments, u64, Portable>(false);
    visitor.visit::<Split, i32, Plain>(false);
    visitor.visit::<Split, u64, Plain>(false);
    visitor.visit::<Split, str, Plain>(false);
    #[cfg(feature = "crc64")]
    visit_families::<u64, umbel::hash::Crc64>(visitor, false);
}

/// What the table says of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its name.
    pub(crate) name: String,
    /// XXH3 of its bytes.
    pub(crate) digest: u64,
    /// How many of the keys are found.
    pub(crate) found: usize,
    /// The numbers of the first keys that are found and were not inserted.
    pub(crate) mistakes: Vec<u64>,
}

impl Line {
    /// The line of a filter that has these bytes and gives these answers.
    pub(crate) fn of(name: String, bytes: &[u8], keys: u64, has: impl Fn(u64) -> bool) -> Self {
        let digest = umbel::hash::Digester::digest(&Xxh3::default(), bytes).bits();
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
