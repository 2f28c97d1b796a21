//! go-zero's Bloom filter, so that programs in Rust and in Go share one key.
//!
//! ```text
//!     key "seen"     [ bits 0 to m - 1, the first of a byte its highest | a seal, if umbel made it ]
//!     positions      MurmurHash3_x64_128(key ‖ byte i), first half, mod m      i = 0 to 13
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 20, as go-zero advises: 0.0067 % | 14 bits | no | no | no | no |
//!
//! Choose it only to share a key with go-zero's `core/bloom`. [`SharedBloom`](crate::SharedBloom) costs the
//! server an eighth.
//!
//! # Where it breaks
//!
//! The key does not describe itself: its users have to agree on the number of bits, and with a different number
//! every answer is wrong. A key that was [created](GoZeroBloom::create) or [sealed](GoZeroBloom::seal) here
//! ends with 56 bytes that go-zero never reads: the number of bits, an identity, the home and the state. With a
//! seal, a wrong number of bits is refused, and all clients recognise a key that was lost, as with a
//! [`SharedBloom`](crate::SharedBloom).
//!
//! Without a seal, a client notices that the key is gone, that it is shorter, and that the server is another
//! one or was restarted. It cannot notice that the key was lost and created again by a Go program before this
//! client opened it. So [`open`](GoZeroBloom::open) accepts a key without a seal as complete.
//!
//! # Reference
//!
//! zeromicro/go-zero, `core/bloom`, of August 2026.
//!
//! ```
//! use umbel_redis::GoZeroBloom;
//!
//! let positions = GoZeroBloom::positions(20_000_000, b"hello");
//! assert_eq!(positions[..3], [7_974_195, 15_487_778, 3_939_938]);
//! ```

use crate::answer::{Answer, Error, Opening, Reason};
use crate::bitmap::{Bitmap, Guard, SEAL, SEALED, count, hex, verdict};
use crate::connect::{Server, bytes_of, command, transaction};
use crate::health::{self, Hazard, Policy};
use crate::history::History;
use crate::script::{own_history, script};
use crate::shared::beside;
use redis::Pipeline;
use std::borrow::Borrow;
use umbel::hash::Digester;
use umbel::kernels::Kernels;
use umbel_foreign::gozero;

/// The maximum number of bits of a string on a server.
const MAX_BITS: u64 = 1 << 32;
/// The magic number of a seal.
const MAGIC: &[u8; 8] = b"UMBELGZ2";
/// The number of bytes that a key grows by in one step.
const STEP: u64 = 4 << 20;

script! {
    /// Creates a bitmap with a seal under a temporary name, and renames it when it has its full length, if the
    /// name is free. Arguments: the bytes of its bits, the maximum number of bytes to add, and the seal. It
    /// replies with the length, or with -1 if the name is taken.
    ///
    /// A partial bitmap never has the name that clients open.
    CREATE = concat!(own_history!(), r"
local making, key, bytes = KEYS[1], KEYS[2], tonumber(ARGV[1])
if redis.call('EXISTS', key) == 1 then
  -- This very call, sent twice.
  if redis.call('TYPE', key).ok == 'string' and redis.call('GETRANGE', key, bytes, bytes + 31) == ARGV[3] then
    return bytes + 56
  end
  redis.call('UNLINK', making)
  return -1
end
local size, home = redis.call('STRLEN', making), raw(own)
if size < bytes then
  size = math.min(bytes, size + tonumber(ARGV[2]))
  redis.call('SETRANGE', making, size - 1, '\0')
end
if size == bytes then
  redis.call('SETRANGE', making, bytes, ARGV[3] .. home .. '\3\0\0\0')
  redis.call('PERSIST', making)
  redis.call('RENAMENX', making, key)
  return bytes + 56
end
redis.call('PEXPIRE', making, 60000)
return size
")
}

script! {
    /// Seals a bitmap that has no seal. Arguments: the bytes of its bits, the maximum number of bytes to add,
    /// the seal, the minimum length, and the history that the client has seen. It replies with `ok`, with
    /// `more` if the bitmap has to grow further, or with the reason for its refusal.
    SEAL_IT = concat!(own_history!(), r"
local bytes, size = tonumber(ARGV[1]), redis.call('STRLEN', KEYS[1])
if size == 0 then return {'missing'} end
if redis.call('GETRANGE', KEYS[1], bytes, bytes + 31) == ARGV[3] then return {'ok'} end
if string.sub(redis.call('GETRANGE', KEYS[1], -56, -1), 1, 8) == 'UMBELGZ2' or size > bytes then return {'foreign'} end
if size < tonumber(ARGV[4]) then return {'shrunken'} end
if own ~= ARGV[5] then return {'history'} end
if size < bytes then
  size = math.min(bytes, size + tonumber(ARGV[2]))
  redis.call('SETRANGE', KEYS[1], size - 1, '\0')
end
if size < bytes then return {'ok', 0} end
redis.call('SETRANGE', KEYS[1], bytes, ARGV[3] .. raw(own) .. '\3\0\0\0')
return {'ok'}
")
}

/// A filter of go-zero. The [module](crate::gozero) describes its layout and its guarantees.
#[derive(Debug)]
pub struct GoZeroBloom {
    bitmap: Bitmap,
    bits: u64,
    hazards: Vec<Hazard>,
}

impl GoZeroBloom {
    /// Opens an existing key. All of its users must use the same number of bits.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] if the key does not exist, also if go-zero has not inserted a key yet.
    /// [`Error::Bits`] if the key is sealed for a different number of bits. [`Error::Mismatch`] if it has no
    /// seal and is longer than `bits`. [`Error::Address`] if a string cannot have `bits` bits.
    pub async fn open(
        server: &Server,
        key: &str,
        bits: u64,
        policy: Policy,
    ) -> Result<Self, Error> {
        check(bits)?;
        let seal = read_seal(server, key, bits).await?;
        let guard = match seal {
            Some(seal) => Guard::Seal { from: bits.div_ceil(8), seal },
            None => Guard::Length,
        };
        let bitmap = Bitmap::open(server, key, guard).await?;
        let hazards = health::apply(policy, health::hazards(server, key).await?)?;
        Ok(Self { bitmap, bits, hazards })
    }

    /// Creates a key with `bits` zero bits and a seal, in small steps.
    ///
    /// The filter is incomplete: it accepts keys, also from Go programs, and answers
    /// [`Unknown`](Answer::Unknown) here until [`complete`](Self::complete) is called.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if a key with this name exists, of any type. [`Error::Address`] if a string cannot
    /// have `bits` bits.
    pub async fn create(
        server: &Server,
        key: &str,
        bits: u64,
        policy: Policy,
    ) -> Result<Self, Error> {
        check(bits)?;
        let (seal, bytes) = (new_seal(bits)?, bits.div_ceil(8));
        // The hazards and the history are checked before the first write.
        health::apply(policy, health::hazards(server, key).await?)?;
        History::of(&server.ask_one(key, History::question()).await?)?;
        let making = beside(key, &format!("making:{}", hex(&seal[16..])));
        for _ in 0..bytes.div_ceil(STEP) + 1 {
            let mut call = CREATE.call_with(&[&making, key]);
            call.arg(bytes).arg(STEP).arg(&seal[..]);
            match CREATE.run(server, key, call).await? {
                redis::Value::Int(-1) => return Err(Error::Exists),
                size if count(&size)? == bytes + SEALED => {
                    return Self::open(server, key, bits, policy).await;
                }
                _ => {}
            }
        }
        Err(Reason::Building.into())
    }

    /// Opens the key, or creates it if it does not exist, and returns which. A created key is incomplete, as
    /// after [`create`](Self::create), because it may be one that was lost.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) and of [`create`](Self::create). [`Error::Exists`] if the key is an empty string.
    pub async fn open_or_create(
        server: &Server,
        key: &str,
        bits: u64,
        policy: Policy,
    ) -> Result<(Self, Opening), Error> {
        let mut taken = false;
        loop {
            match Self::open(server, key, bits, policy).await {
                Ok(filter) => return Ok((filter, Opening::Opened)),
                // An empty string is an existing key without bits.
                Err(Error::Unknown(Reason::Missing)) if taken => return Err(Error::Exists),
                Err(Error::Unknown(Reason::Missing)) => {}
                Err(error) => return Err(error),
            }
            match Self::create(server, key, bits, policy).await {
                Ok(filter) => return Ok((filter, Opening::Created)),
                Err(Error::Exists) => taken = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds a seal to a key that go-zero created. From then on all clients notice when it is lost, and when
    /// they use a different number of bits.
    ///
    /// The key is incomplete then, because earlier losses cannot be noticed: see [`complete`](Self::complete).
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the key was lost since it was opened, or if another client has sealed it.
    pub async fn seal(self) -> Result<Self, Error> {
        if self.is_sealed() {
            return Ok(self);
        }
        let (server, key) = (self.bitmap.server(), self.bitmap.key());
        let (seal, bytes) = (new_seal(self.bits)?, self.bits.div_ceil(8));
        let (history, length) = self.bitmap.seen_last()?;
        for _ in 0..bytes.div_ceil(STEP) + 1 {
            let mut call = SEAL_IT.call(key);
            call.arg(bytes).arg(STEP).arg(&seal[..]).arg(length).arg(hex(&history.0));
            let reply = SEAL_IT.run(server, key, call).await?;
            if verdict(&reply)?.is_empty() {
                return Self::open(server, key, self.bits, Policy::Warn).await;
            }
        }
        Err(Reason::Building.into())
    }

    /// Marks a sealed key as complete for all clients: it has every key that it should have. See
    /// [`SharedBloom::complete`](crate::SharedBloom::complete). A key without a seal has no state to change.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the key was lost, or is at home on another server.
    pub async fn complete(&self) -> Result<(), Error> {
        Ok(self.bitmap.complete().await?)
    }

    /// Whether a caller has marked the filter as complete. A key without a seal counts as complete.
    ///
    /// # Errors
    ///
    /// The reason why the filter cannot tell.
    pub async fn is_complete(&self) -> Result<bool, Reason> {
        self.bitmap.is_complete().await
    }

    /// Makes the key at home on its current server, after a failover or a restart: see
    /// [`SharedBloom::adopt`](crate::SharedBloom::adopt). A sealed key is incomplete then. Without a seal, this
    /// client accepts the key as complete.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the key does not exist, or the server does not answer.
    pub async fn adopt(&self) -> Result<(), Error> {
        Ok(self.bitmap.adopt().await?)
    }

    /// The positions of a key in a filter of `bits` bits.
    #[must_use]
    pub fn positions(bits: u64, key: &[u8]) -> [u64; 14] {
        let mut hashes = gozero::Hash.digest(key);
        std::array::from_fn(|_| gozero::Positions::default().step(&mut hashes, bits))
    }

    /// The number of bits.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Whether the key has a seal, so that all clients notice its loss.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.bitmap.has_state()
    }

    /// How the server may lose the filter, as found when it was opened.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    async fn ask_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Answer> {
        self.bitmap.contains(&self.all_positions(keys)).await
    }

    async fn add_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        self.bitmap.insert(&self.all_positions(keys)).await
    }

    fn all_positions<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Vec<u64>> {
        keys.iter().map(|key| Self::positions(self.bits, key.borrow()).to_vec()).collect()
    }
}

fn check(bits: u64) -> Result<(), Error> {
    // The seal must fit too.
    if bits == 0 || bits > MAX_BITS - SEALED * 8 {
        return Err(Error::Address(format!("a string cannot have {bits} bits")));
    }
    Ok(())
}

/// A new seal with a random identity.
fn new_seal(bits: u64) -> Result<[u8; SEAL], Error> {
    let mut seal = [0; SEAL];
    seal[..8].copy_from_slice(MAGIC);
    seal[8..16].copy_from_slice(&bits.to_le_bytes());
    getrandom::fill(&mut seal[16..])
        .map_err(|_| Error::Address("the system has no random numbers".into()))?;
    Ok(seal)
}

/// The seal of a key, if it has one for this number of bits. It is searched at the end of the key, where a seal
/// for any number of bits is, and where the seal for this number would be, because a program with a different
/// number may have made the key longer.
async fn read_seal(server: &Server, key: &str, bits: u64) -> Result<Option<[u8; SEAL]>, Error> {
    let bytes = bits.div_ceil(8);
    let range = |from: i64, to: i64| {
        let mut get = command("GETRANGE");
        get.arg(key).arg(from).arg(to);
        get
    };
    let mut length = command("STRLEN");
    length.arg(key);
    let mut pipeline = Pipeline::with_capacity(5);
    pipeline.add_command(command("MULTI")).add_command(length);
    pipeline.add_command(range(-(SEALED as i64), -1));
    pipeline.add_command(range(bytes as i64, (bytes + SEALED) as i64 - 1));
    pipeline.add_command(command("EXEC"));
    let replies = server.ask(key, pipeline).await?;
    let (exec, queued) = replies.split_last().ok_or(Reason::Garbage)?;
    let [length, last, here] = transaction(queued, exec, 3)? else {
        return Err(Reason::Garbage.into());
    };
    let (length, last, here) = (count(length)?, bytes_of(last)?, bytes_of(here)?);
    if length == 0 {
        return Err(Reason::Missing.into());
    }
    if let Some(seal) = last.first_chunk::<SEAL>().filter(|seal| seal.starts_with(MAGIC)) {
        let found = u64::from_le_bytes(std::array::from_fn(|at| seal[8 + at]));
        return match found == bits && length == bytes + SEALED {
            true => Ok(Some(*seal)),
            false if found == bits => Err(Reason::Foreign.into()),
            false => Err(Error::Bits { expected: bits, found }),
        };
    }
    if here.starts_with(MAGIC) || length > bytes {
        return Err(Error::Mismatch { what: "number of bits: the key is longer" });
    }
    Ok(None)
}

crate::answer::remote_in_batches!(GoZeroBloom);

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions from a Go program with the real package.
    #[test]
    fn positions_are_those_of_go_zero() {
        let golden: [(&[u8], u64, [u64; 14]); 4] = [
            (
                b"hello",
                20_000_000,
                [
                    7974195, 15487778, 3939938, 5782931, 2566359, 3791362, 9298058, 13010240,
                    11632212, 12481248, 3685389, 15347865, 4070195, 19866485,
                ],
            ),
            (
                b"hello",
                8_388_608,
                [
                    438579, 4636450, 3396450, 1312659, 6038487, 1825538, 6127754, 3239488, 2510420,
                    479456, 6113037, 6850713, 2147123, 3054965,
                ],
            ),
            (
                b"user:1",
                20_000_000,
                [
                    3471781, 9091321, 3849346, 922071, 18005713, 8887338, 13685675, 16095132,
                    16931567, 12388392, 15570943, 14861876, 13859104, 13790666,
                ],
            ),
            (
                b"",
                20_000_000,
                [
                    415669, 131862, 19582706, 17455449, 9949229, 10310392, 12466035, 15854359,
                    5240702, 13802853, 2948632, 8392167, 369457, 8348838,
                ],
            ),
        ];
        for (key, bits, positions) in golden {
            assert_eq!(GoZeroBloom::positions(bits, key), positions, "{key:?} {bits}");
        }
    }

    #[test]
    fn a_filter_has_bits_and_fits_into_a_string() {
        assert!(check(1).is_ok() && check(MAX_BITS - SEALED * 8).is_ok());
        assert!(check(0).is_err() && check(MAX_BITS).is_err() && check(u64::MAX).is_err());
    }
}
