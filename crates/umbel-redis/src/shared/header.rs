//! The 128-byte header of every shard.
//!
//! ```text
//!      0  magic     8   "UMBELRED"
//!      8  version   2   1
//!     10  kernels   2   2: a key has one line; 3: two (docs/hashing.md)
//!     12  hash      2   keys      2   numbers of the hash and of the kind of keys (docs/format.md)
//!     16  check     8   the seed; for a secret, a check value that does not give it away
//!     24  key id    8   which secret, as its owner numbers them
//!     32  items     8   that the filter was planned for
//!     40  lines     8   of 64 bytes, in all shards
//!     48  probes    4   in a line
//!     52  shards    4   how many
//!     56  shard     4   which one; then 4 zero bytes
//!     64  generation 8
//!     72  identity  16  random, the same in all shards of a filter
//!     88  checksum  8   XXH3 of the bytes before it
//!     -- up to here a header never changes
//!     96  home      20  the replication id of the server that the filter is whole on
//!    116  state     4   1: being created, 3: takes keys but is not complete, 2: complete
//!    120  changes   8   how many scripts have set a bit here (big-endian, as BITFIELD counts)
//! ```
//!
//! All numbers are little-endian but the last one.

use crate::answer::{Error, Reason};
use crate::history::History;
use umbel::blocked::Shape;
use umbel::format::Mark;
use umbel::hash::{Digester, Xxh3};

/// The bytes of a header.
pub(crate) const BYTES: usize = 128;
/// The bytes of a header that never change.
pub(crate) const FIXED: usize = 96;
/// The start of the part that distinguishes filters with the same plan.
pub(crate) const PLAN: usize = 72;

const MAGIC: &[u8; 8] = b"UMBELRED";
const VERSION: u16 = 1;

/// The description of a shard in its header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) shape: Shape,
    pub(crate) mark: Mark,
    pub(crate) shards: u32,
    pub(crate) shard: u32,
    pub(crate) generation: u64,
    pub(crate) identity: [u8; 16],
}

/// The part of a header that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pulse {
    pub(crate) home: History,
    pub(crate) changes: u64,
    /// Whether a caller has marked the filter as complete.
    pub(crate) complete: bool,
}

/// The state of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its keys are still growing to their full length.
    Creating,
    /// It accepts keys. No caller has marked it as complete.
    Incomplete,
    Complete,
}

impl State {
    fn of(bytes: &[u8]) -> Self {
        match bytes[116..120] {
            [2, 0, 0, 0] => Self::Complete,
            [3, 0, 0, 0] => Self::Incomplete,
            _ => Self::Creating,
        }
    }
}

impl Header {
    /// The bytes that never change.
    pub(crate) fn fixed(&self) -> [u8; FIXED] {
        let mut bytes = [0; FIXED];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(MAGIC);
        put(&VERSION.to_le_bytes());
        put(&kernels(&self.shape).to_le_bytes());
        put(&self.mark.hash.to_le_bytes());
        put(&self.mark.keys.to_le_bytes());
        put(&self.mark.check.to_le_bytes());
        put(&self.mark.key_id.to_le_bytes());
        put(&self.shape.items().to_le_bytes());
        put(&self.shape.lines().to_le_bytes());
        put(&self.shape.probes_per_line().to_le_bytes());
        put(&self.shards.to_le_bytes());
        put(&self.shard.to_le_bytes());
        put(&[0; 4]);
        put(&self.generation.to_le_bytes());
        put(&self.identity);
        let sum = checksum(&bytes[..FIXED - 8]);
        bytes[FIXED - 8..].copy_from_slice(&sum);
        bytes
    }

    /// Parses the header and the state of the filter.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] for no bytes, as of a key that does not exist. [`Reason::Foreign`] for bytes that
    /// are not a header.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, State), Reason> {
        if bytes.is_empty() {
            return Err(Reason::Missing);
        }
        let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| Reason::Foreign)?;
        let whole = bytes.starts_with(MAGIC) && bytes[FIXED - 8..FIXED] == checksum(&bytes[..88]);
        if !whole || short(bytes, 8) != VERSION || int(bytes, 60) != 0 {
            return Err(Reason::Foreign);
        }
        let lines_per_key = match short(bytes, 10) {
            2 => 1,
            3 => 2,
            _ => return Err(Reason::Foreign),
        };
        let shape = Shape::with(long(bytes, 32), long(bytes, 40), lines_per_key, int(bytes, 48));
        let mark = Mark {
            hash: short(bytes, 12),
            keys: short(bytes, 14),
            check: long(bytes, 16),
            key_id: long(bytes, 24),
            secret: None,
        };
        let header = Self {
            shape: shape.map_err(|_| Reason::Foreign)?,
            mark,
            shards: int(bytes, 52),
            shard: int(bytes, 56),
            generation: long(bytes, 64),
            identity: std::array::from_fn(|at| bytes[PLAN + at]),
        };
        if header.shard >= header.shards || !super::shards::fits(&header.shape, header.shards) {
            return Err(Reason::Foreign);
        }
        Ok((header, State::of(bytes)))
    }

    /// Fails if another header is not the expected one, and names the difference.
    pub(crate) fn expect(&self, other: &Self) -> Result<(), Error> {
        let mismatch = |what| Err(Error::Mismatch { what });
        if self.shape != other.shape {
            return mismatch("shape: number of keys, of lines, or of probes");
        }
        if (self.mark.hash, self.mark.keys) != (other.mark.hash, other.mark.keys) {
            return mismatch("hash, or another kind of keys");
        }
        if self.mark.check != other.mark.check {
            return mismatch("seed or secret");
        }
        if self.shards != other.shards {
            return mismatch("number of shards");
        }
        if self.generation != other.generation {
            return mismatch("generation");
        }
        if (self.shard, self.identity) != (other.shard, other.identity) {
            return mismatch("identity: its shards are of different filters");
        }
        Ok(())
    }
}

/// The changing part of a header, if the fixed part is identical to the expected one and the filter accepts
/// keys. The caller decides whether an incomplete filter is acceptable.
///
/// # Errors
///
/// The reason for a refusal. These bytes come with every answer.
pub(crate) fn prove(bytes: &[u8], fixed: &[u8; FIXED]) -> Result<Pulse, Reason> {
    if bytes.len() == BYTES && bytes.starts_with(fixed) {
        let complete = match State::of(bytes) {
            State::Creating => return Err(Reason::Building),
            state => state == State::Complete,
        };
        let home = History(std::array::from_fn(|at| bytes[FIXED + at]));
        let changes = u64::from_be_bytes(std::array::from_fn(|at| bytes[120 + at]));
        return Ok(Pulse { home, changes, complete });
    }
    let (header, _) = Header::parse(bytes)?;
    // The same filter with another identity, or another filter altogether.
    let same = header.fixed()[..64] == fixed[..64];
    Err(if same { Reason::Replaced } else { Reason::Foreign })
}

fn kernels(shape: &Shape) -> u16 {
    if shape.lines_per_key() == 1 { 2 } else { 3 }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    Xxh3::default().digest(bytes).bits().to_le_bytes()
}

fn short(bytes: &[u8; BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn int(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn long(bytes: &[u8; BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::Portable;
    use umbel::format::Stored;

    fn header() -> Header {
        Header {
            shape: Shape::for_rate(1_000_000, 0.001).unwrap(),
            mark: Stored::<str>::mark(&Portable::seeded(7)),
            shards: 12,
            shard: 3,
            generation: 5,
            identity: *b"sixteen  letters",
        }
    }

    fn in_state(fixed: [u8; FIXED], home: u8, state: u8, changes: u64) -> Vec<u8> {
        [&fixed[..], &[home; 20], &[state, 0, 0, 0], &changes.to_be_bytes()].concat()
    }

    fn ready(fixed: [u8; FIXED], home: u8, changes: u64) -> Vec<u8> {
        in_state(fixed, home, 2, changes)
    }

    #[test]
    fn a_header_says_what_it_was_told() {
        let bytes = ready(header().fixed(), 9, 300);
        assert_eq!(Header::parse(&bytes), Ok((header(), State::Complete)));
        let pulse = Pulse { home: History([9; 20]), changes: 300, complete: true };
        assert_eq!(prove(&bytes, &header().fixed()), Ok(pulse));
    }

    /// Both `parse` and `prove` detect every change of a single bit in the fixed part.
    #[test]
    fn no_other_bytes_are_this_header() {
        let fixed = header().fixed();
        for bit in 0..FIXED * 8 {
            let mut bytes = ready(fixed, 1, 0);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&bytes), Err(Reason::Foreign), "bit {bit}");
            assert_eq!(prove(&bytes, &fixed), Err(Reason::Foreign), "bit {bit}");
        }
        for length in 0..BYTES {
            let bytes = &ready(fixed, 1, 0)[..length];
            let reason = if length == 0 { Reason::Missing } else { Reason::Foreign };
            assert_eq!(Header::parse(bytes), Err(reason));
            assert_eq!(prove(bytes, &fixed), Err(reason));
        }
    }

    #[test]
    fn the_same_plan_with_another_identity_or_generation_is_a_replacement() {
        let fixed = header().fixed();
        let replaced = [
            Header { identity: [0; 16], ..header() },
            Header { generation: 4, ..header() },
            Header { generation: 6, identity: [1; 16], ..header() },
        ];
        for other in replaced {
            let bytes = ready(other.fixed(), 1, 0);
            assert_eq!(prove(&bytes, &fixed), Err(Reason::Replaced), "{other:?}");
        }
        let other = Header { shards: 13, ..header() };
        assert_eq!(prove(&ready(other.fixed(), 1, 0), &fixed), Err(Reason::Foreign));
    }

    #[test]
    fn a_filter_that_is_being_created_proves_nothing_and_an_incomplete_one_says_so() {
        let fixed = header().fixed();
        for state in [0, 1, 4, 255] {
            let bytes = in_state(fixed, 1, state, 0);
            assert_eq!(prove(&bytes, &fixed), Err(Reason::Building));
            assert_eq!(Header::parse(&bytes), Ok((header(), State::Creating)));
        }
        let bytes = in_state(fixed, 1, 3, 0);
        assert_eq!(prove(&bytes, &fixed).map(|pulse| pulse.complete), Ok(false));
        assert_eq!(Header::parse(&bytes), Ok((header(), State::Incomplete)));
    }

    #[test]
    fn what_differs_is_told() {
        let shape = Shape::for_rate(1_000_000, 0.01).unwrap();
        let mark = |seed| Stored::<str>::mark(&Portable::seeded(seed));
        for (other, word) in [
            (Header { shape, ..header() }, "shape"),
            (Header { mark: mark(8), ..header() }, "seed"),
            (Header { mark: Mark { keys: 1, ..mark(7) }, ..header() }, "hash"),
            (Header { shards: 4, ..header() }, "shards"),
            (Header { generation: 1, ..header() }, "generation"),
            (Header { identity: [0; 16], ..header() }, "identity"),
        ] {
            let error = header().expect(&other).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(header().expect(&header()), Ok(()));
    }
}
