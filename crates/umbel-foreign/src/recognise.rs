//! Recognising the system of bytes by their content.
//!
//! ```
//! use umbel_foreign::recognise::{System, recognise};
//!
//! let mut filter = umbel_foreign::guava::new::<str>(1_000, 0.01)?;
//! filter.insert("umbel");
//! let found = recognise(&umbel_foreign::guava::write(&filter))?;
//! assert_eq!(found.system, System::Guava);
//! assert_eq!((found.filters[0].bits, found.filters[0].probes), (9_600, 7));
//! # Ok::<(), umbel_foreign::Invalid>(())
//! ```
//!
//! Strings of go-zero and Redisson, filters of rbloom and of SlateDB cannot be recognised: they are bits, with
//! at most a number before them. A `BF.SCANDUMP` consists of several chunks. Read those with their modules.

use crate::error::Invalid;
use crate::fastfilter::{BinaryFuse, FuseLayout, Width, Xor8, XorLayout};
use crate::{
    BloomFilter, bits_and_blooms, cassandra, datasketches, dcso, guava, hadoop, hudi, milvus,
    parquet, pybloomfilter, rdb, rocksdb, spark,
};
use core::fmt;
use umbel::InvalidShape;
use umbel::kernels::Kernels;

/// A system, and one of its formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum System {
    /// Guava's `BloomFilter`.
    Guava,
    /// Apache Spark's `BloomFilter`, version 1.
    SparkV1,
    /// Apache Spark's `BloomFilter`, version 2.
    SparkV2,
    /// bits-and-blooms for Go, as bytes.
    BitsAndBlooms,
    /// bits-and-blooms for Go, as JSON.
    BitsAndBloomsJson,
    /// DCSO's bloom for Go, compressed or not.
    Dcso,
    /// Apache DataSketches.
    DataSketches,
    /// Hadoop's `BloomFilter`.
    Hadoop,
    /// Hadoop's `DynamicBloomFilter`.
    HadoopDynamic,
    /// Apache Hudi's `SIMPLE` filter.
    Hudi,
    /// Apache Hudi's `DYNAMIC_V0` filter.
    HudiDynamic,
    /// Apache Cassandra's `Filter.db`, in the old or the new format, which cannot be distinguished.
    Cassandra,
    /// Python's pybloomfiltermmap3.
    PyBloomFilter,
    /// Milvus' MBF1.
    Milvus,
    /// A file of Parquet, with or without filters.
    Parquet,
    /// An SST of RocksDB.
    RocksDbTable,
    /// A full filter block of RocksDB, extracted from an SST.
    RocksDbBlock,
    /// A file of Redis or Valkey.
    Rdb,
    /// A reply of `DUMP`.
    RedisDump,
    /// A binary fuse filter of FastFilter.
    BinaryFuse(FuseLayout, Width),
    /// An xor filter of FastFilter.
    Xor(XorLayout),
    /// A filter of this library.
    Umbel,
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guava => "Guava BloomFilter",
            Self::SparkV1 => "Spark BloomFilter version 1",
            Self::SparkV2 => "Spark BloomFilter version 2",
            Self::BitsAndBlooms => "bits-and-blooms (Go)",
            Self::BitsAndBloomsJson => "bits-and-blooms (Go), JSON",
            Self::Dcso => "DCSO bloom (Go)",
            Self::DataSketches => "DataSketches Bloom filter",
            Self::Hadoop => "Hadoop BloomFilter",
            Self::HadoopDynamic => "Hadoop DynamicBloomFilter",
            Self::Hudi => "Hudi Bloom filter, SIMPLE",
            Self::HudiDynamic => "Hudi Bloom filter, DYNAMIC_V0",
            Self::Cassandra => "Cassandra Filter.db",
            Self::PyBloomFilter => "pybloomfiltermmap3 (Python)",
            Self::Milvus => "Milvus MBF1",
            Self::Parquet => "Parquet file",
            Self::RocksDbTable => "RocksDB SST",
            Self::RocksDbBlock => "RocksDB filter block",
            Self::Rdb => "RDB file of Redis or Valkey",
            Self::RedisDump => "DUMP payload of Redis or Valkey",
            Self::BinaryFuse(FuseLayout::C, _) => "FastFilter binary fuse (C)",
            Self::BinaryFuse(FuseLayout::Go, _) => "FastFilter binary fuse (Go)",
            Self::BinaryFuse(FuseLayout::Xorf, _) => "FastFilter binary fuse (Rust, xorf)",
            Self::Xor(XorLayout::C) => "FastFilter xor8 (C)",
            Self::Xor(XorLayout::Go) => "FastFilter xor8 (Go)",
            Self::Xor(XorLayout::Java) => "FastFilter xor8 (Java)",
            Self::Umbel => "umbel filter",
        })
    }
}

/// The result of recognising bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognised {
    /// The system that wrote them.
    pub system: System,
    /// The Bloom filters in the bytes. Static filters do not have these parameters, and are not listed.
    pub filters: Vec<Facts>,
}

/// The parameters of a Bloom filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name in its system: the name of a key, or a column and a row group. Empty if there is only one
    /// filter.
    pub name: String,
    /// The number of bits.
    pub bits: u64,
    /// The number of positions per key.
    pub probes: u32,
    /// The number of set bits.
    pub set: u64,
    /// The estimated number of keys.
    pub keys: u64,
    /// The false positive rate, from the fill.
    pub rate: f64,
}

impl Facts {
    fn of<T: ?Sized, H, K: Kernels>(name: String, filter: &BloomFilter<T, H, K>) -> Self {
        let shape = filter.shape();
        Self {
            name,
            bits: shape.bits(),
            probes: shape.probes(),
            set: filter.count_ones(),
            keys: filter.estimated_len(),
            rate: filter.expected_rate(),
        }
    }

    fn of_blocks(name: String, filter: &umbel::SplitBlockBloomFilter<[u8]>) -> Self {
        Self {
            name,
            bits: filter.bytes() * 8,
            probes: 8,
            set: filter.count_ones(),
            keys: filter.estimated_len(),
            rate: filter.expected_rate(),
        }
    }
}

/// Recognises the system of these bytes.
///
/// A format with a signature is recognised by it, and then has to be valid. Any other format is recognised by
/// its lengths, which must be those that its fields announce.
///
/// # Errors
///
/// [`Invalid::Unknown`] if the bytes match no known format. Any other error if they have a signature and are
/// invalid.
pub fn recognise(bytes: &[u8]) -> Result<Recognised, Invalid> {
    signed(bytes).unwrap_or_else(|| unsigned(bytes))
}

/// Recognises formats with a signature.
fn signed(bytes: &[u8]) -> Option<Result<Recognised, Invalid>> {
    let found = |system, filters: Result<Vec<Facts>, Invalid>| {
        Some(filters.map(|filters| Recognised { system, filters }))
    };
    match bytes {
        _ if bytes.starts_with(b"umbel\0\r\n") => found(System::Umbel, Ok(Vec::new())),
        _ if bytes.starts_with(pybloomfilter::MAGIC) => {
            let read = pybloomfilter::read::<[u8]>(bytes);
            found(System::PyBloomFilter, read.map(|file| one(&file.filter)))
        }
        _ if bytes.starts_with(milvus::MAGIC) => {
            let read = milvus::Envelope::<[u8]>::read(bytes);
            let facts = |envelope: milvus::Envelope<[u8]>| {
                vec![Facts::of_blocks(String::new(), envelope.filter())]
            };
            found(System::Milvus, read.map(facts))
        }
        _ if bytes.starts_with(parquet::MAGIC) && bytes.ends_with(parquet::MAGIC) => {
            found(System::Parquet, of_parquet(bytes))
        }
        _ if bytes.starts_with(rdb::REDIS) || bytes.starts_with(rdb::VALKEY) => {
            let facts = |entries: Vec<rdb::Entry>| {
                let name = |entry: &rdb::Entry| String::from_utf8_lossy(&entry.key).into_owned();
                entries.iter().flat_map(|entry| of_value(&name(entry), &entry.value)).collect()
            };
            found(System::Rdb, rdb::read(bytes).map(facts))
        }
        _ if bytes.ends_with(&rocksdb::MAGIC) => found(System::RocksDbTable, of_sst(bytes)),
        _ if bytes.starts_with(&dcso::GZIP) => {
            let read = dcso::read::<[u8]>(bytes);
            found(System::Dcso, read.map(|file| one(&file.filter)))
        }
        [b'{', ..] => {
            let filter =
                bits_and_blooms::read_json::<[u8]>(std::str::from_utf8(bytes).ok()?).ok()?;
            found(System::BitsAndBloomsJson, Ok(one(&filter)))
        }
        _ => None,
    }
}

/// The first format that matches all of these bytes, the strictest first.
fn unsigned(bytes: &[u8]) -> Result<Recognised, Invalid> {
    let found = |system, filters| Ok(Recognised { system, filters });
    if let Ok(filter) = bits_and_blooms::read::<[u8]>(bytes) {
        return found(System::BitsAndBlooms, one(&filter));
    }
    match datasketches::read::<[u8]>(bytes, 0) {
        Ok(sketch) => return found(System::DataSketches, one(&sketch.filter)),
        // An empty sketch, which announces bits without containing them: none are allocated here.
        Err(Invalid::Shape(InvalidShape::TooLarge { max: 0, .. })) => {
            return found(System::DataSketches, Vec::new());
        }
        Err(_) => {}
    }
    if let Ok(file) = dcso::read::<[u8]>(bytes) {
        return found(System::Dcso, one(&file.filter));
    }
    if let Ok(filter) = hadoop::read::<[u8]>(bytes) {
        return found(System::Hadoop, one(&filter));
    }
    if let Ok(filter) = hadoop::Dynamic::<[u8]>::read(bytes) {
        return found(System::HadoopDynamic, of_rows(filter.rows()));
    }
    if let Ok(filter) = spark::read::<[u8]>(bytes) {
        let system = match filter.raw().kernels() {
            spark::Version::V1 => System::SparkV1,
            spark::Version::V2 => System::SparkV2,
        };
        return found(system, one(&filter));
    }
    if let Ok(filter) = guava::read::<[u8]>(bytes) {
        return found(System::Guava, one(&filter));
    }
    if let Ok(filter) = cassandra::read::<[u8]>(bytes, cassandra::Format::New) {
        return found(System::Cassandra, one(&filter));
    }
    for layout in [FuseLayout::Go, FuseLayout::C, FuseLayout::Xorf] {
        for width in [Width::Bits8, Width::Bits16, Width::Bits32] {
            if BinaryFuse::read(bytes, layout, width).is_ok() {
                return found(System::BinaryFuse(layout, width), Vec::new());
            }
        }
    }
    for layout in [XorLayout::C, XorLayout::Go, XorLayout::Java] {
        if Xor8::read(bytes, layout).is_ok() {
            return found(System::Xor(layout), Vec::new());
        }
    }
    if let Ok(value) = rdb::read_dump(bytes) {
        return found(System::RedisDump, of_value("", &value));
    }
    if let Ok(block) = rocksdb::read(bytes) {
        return found(System::RocksDbBlock, of_block(&block));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(filter) = hudi::read(text) {
            return found(System::Hudi, one(&filter));
        }
        if let Ok(filter) = hudi::read_dynamic(text) {
            return found(System::HudiDynamic, of_rows(filter.rows()));
        }
    }
    Err(Invalid::Unknown)
}

fn one<T: ?Sized, H, K: Kernels>(filter: &BloomFilter<T, H, K>) -> Vec<Facts> {
    vec![Facts::of(String::new(), filter)]
}

fn of_rows<T: ?Sized>(rows: &[hadoop::BloomFilter<T>]) -> Vec<Facts> {
    let named = |(number, row)| Facts::of(format!("row {number}"), row);
    rows.iter().enumerate().map(named).collect()
}

fn of_value(name: &str, value: &rdb::Value) -> Vec<Facts> {
    match value {
        rdb::Value::RedisBloom(chain) => {
            chain.links().iter().map(|(link, _)| Facts::of(name.to_owned(), link)).collect()
        }
        rdb::Value::ValkeyBloom(chain) => {
            chain.links().iter().map(|link| Facts::of(name.to_owned(), link)).collect()
        }
    }
}

fn of_parquet(file: &[u8]) -> Result<Vec<Facts>, Invalid> {
    let mut facts = Vec::new();
    for column in parquet::columns(file)? {
        if column.filter.is_some() {
            let name = format!("{}, row group {}", column.path.join("."), column.row_group);
            facts.push(Facts::of_blocks(name, &parquet::read::<[u8]>(file, &column)?));
        }
    }
    Ok(facts)
}

fn of_sst(sst: &[u8]) -> Result<Vec<Facts>, Invalid> {
    match rocksdb::find(sst)? {
        Some(block) => Ok(of_block(&rocksdb::read(&sst[block])?)),
        None => Ok(Vec::new()),
    }
}

fn of_block(block: &rocksdb::Block) -> Vec<Facts> {
    match block {
        rocksdb::Block::Bloom(filter) => one(filter),
        rocksdb::Block::Ribbon(_) => Vec::new(),
    }
}

/// A filter of one system cannot be converted to another, because the two use different bits for a key. It has
/// to be rebuilt from the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedsKeys {
    /// The system of the filter.
    pub from: System,
    /// The requested system.
    pub to: System,
}

impl fmt::Display for NeedsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "a filter of {from} cannot become one of {to} without its keys: build it from them"
        )
    }
}

impl core::error::Error for NeedsKeys {}

impl System {
    /// Checks that a filter of this system can be converted to another without its keys: both use the same bits
    /// for a key.
    ///
    /// # Errors
    ///
    /// [`NeedsKeys`] if it cannot.
    pub fn becomes(self, to: Self) -> Result<(), NeedsKeys> {
        use System::{BitsAndBlooms, BitsAndBloomsJson, Hadoop, HadoopDynamic, Hudi, HudiDynamic};
        let alike = match (self, to) {
            (from, to) if from == to => true,
            (BitsAndBlooms, BitsAndBloomsJson) | (BitsAndBloomsJson, BitsAndBlooms) => true,
            (Hadoop, Hudi) | (Hudi, Hadoop) => true,
            (HadoopDynamic, HudiDynamic) | (HudiDynamic, HadoopDynamic) => true,
            (Self::BinaryFuse(_, one), Self::BinaryFuse(_, other)) => one == other,
            // Java's fingerprints are different bits of the hash.
            (Self::Xor(one), Self::Xor(other)) => {
                (one == XorLayout::Java) == (other == XorLayout::Java)
            }
            (Self::RocksDbTable, Self::RocksDbBlock) => true,
            _ => false,
        };
        if alike { Ok(()) } else { Err(NeedsKeys { from: self, to }) }
    }
}
