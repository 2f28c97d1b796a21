//! Filters as bytes and as files, with one specification of every field and checksum and one
//! reading path.
//!
//! ```text
//!     header, 192 bytes    words, as many as the header says    a checksum for each block of words
//! ```
//!
//! `docs/format.md` specifies every byte. Files, slices, streams and serde use the same reading
//! path. It checks the header, compares the size that follows from the header with the number of
//! bytes, and only then allocates memory.

mod blocks;
mod bytes;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod disk;
mod family;
#[cfg(feature = "std")]
mod file;
mod header;
#[cfg(feature = "mmap")]
mod map;
#[cfg(feature = "std")]
mod open;
mod saved;
#[cfg(feature = "serde")]
mod through_serde;

#[cfg(feature = "alloc")]
pub use bytes::Secret;
#[cfg(feature = "alloc")]
pub(crate) use bytes::planned;
#[cfg(feature = "alloc")]
pub(crate) use family::ANY_FAMILY;
pub use family::{Family, Mark, Stored, StoredCore};
pub(crate) use family::{NOT_COUNTED, hashes};
pub use header::Header;
#[cfg(feature = "alloc")]
pub(crate) use header::LEN as HEADER;
#[cfg(feature = "mmap")]
pub use map::{
    FileWords, FileWordsMut, InFile, Mappable, MappableCore, MappableMut, MappableMutCore, Mapped,
    MappedMut, Writes,
};
#[cfg(feature = "std")]
pub use open::{OpenError, Opening};
pub use saved::Saved;
#[cfg(feature = "serde")]
pub(crate) use through_serde::{deserialize, serialize, through_serde};
