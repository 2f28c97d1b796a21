//! Apache Hudi's Bloom filters: those of Hadoop, in base64.
//!
//! ```text
//!     SIMPLE      base64 of `org.apache.hadoop.util.bloom.BloomFilter`
//!     DYNAMIC_V0  base64 of a dynamic filter that makes no more rows once they take a number of keys together
//! ```
//!
//! The text does not say which of the two it is: the footer of the Parquet file does, as
//! `hoodie_bloom_filter_type_code`. It does not store the maximum number of keys of a dynamic filter either. So
//! Hudi itself does not respect it once a filter has been read. Keys are texts.

use crate::error::Invalid;
use crate::hadoop;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

fn decode(text: &str) -> Result<Vec<u8>, Invalid> {
    STANDARD.decode(text.trim_ascii()).map_err(|_| Invalid::Encoding { expected: "base64" })
}

/// Reads the `SIMPLE` filter from this text.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with it.
pub fn read(text: &str) -> Result<hadoop::BloomFilter<str>, Invalid> {
    hadoop::read(&decode(text)?)
}

/// The text that `serializeToString` returns for a `SIMPLE` filter.
#[must_use]
pub fn write(filter: &hadoop::BloomFilter<str>) -> String {
    STANDARD.encode(hadoop::write(filter))
}

/// Reads the `DYNAMIC_V0` filter from this text.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with it.
pub fn read_dynamic(text: &str) -> Result<hadoop::Dynamic<str>, Invalid> {
    hadoop::Dynamic::read(&decode(text)?)
}

/// The text that `serializeToString` returns for a `DYNAMIC_V0` filter.
#[must_use]
pub fn write_dynamic(filter: &hadoop::Dynamic<str>) -> String {
    STANDARD.encode(filter.write())
}
