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
//! Choose it only to share a key with go-zero's `core/bloom`; [`SharedBloom`](crate::SharedBloom) costs the
//! server an eighth.
//!
//! # Where it breaks
//!
//! The key says nothing of itself: how many bits it has is agreed elsewhere, and with another number every
//! answer is wrong. A key that was [made](GoZeroBloom::create) or [sealed](GoZeroBloom::seal) here ends with
//! 44 bytes that go-zero never looks at, by which it is known again, for all clients, like a
//! [`SharedBloom`](crate::SharedBloom). Without a seal, a key that was lost and made again by somebody else
//! while nobody looked cannot be told from the one that was lost; what can be told is that it is gone, that it is
//! shorter, and that the server is another one or was started anew.
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

use crate::answer::{Answer, Error, Reason};
use crate::bitmap::{Bitmap, Guard, SEALED, count};
use crate::connect::{Server, bytes_of, command};
use crate::health::{self, Hazard, Policy};
use crate::history::History;
use crate::script::script;
use std::borrow::Borrow;
use umbel::hash::Murmur3;

/// The probes of every key.
const PROBES: u8 = 14;
/// The most bits that a string of a server has.
const MAX_BITS: u64 = 1 << 32;
/// How a seal begins.
const MAGIC: &[u8; 8] = b"UMBELGZ1";
/// How many bytes a key grows by in one step.
const STEP: u64 = 4 << 20;

script! {
    /// Makes a bitmap longer. Arguments: the bytes of its bits, how many may be added, and a seal. It replies
    /// with how long it is. Only a bitmap that has its length gets the seal.
    GROW = r"
local bytes, size = tonumber(ARGV[1]), redis.call('STRLEN', KEYS[1])
if size < bytes then
  size = math.min(bytes, size + tonumber(ARGV[2]))
  redis.call('SETRANGE', KEYS[1], size - 1, '\0')
end
if size == bytes then
  redis.call('SETRANGE', KEYS[1], bytes, ARGV[3])
  size = redis.call('STRLEN', KEYS[1])
end
return size
"
}

/// A filter of go-zero's. The [module](crate::gozero) tells what it is and what it proves.
#[derive(Debug)]
pub struct GoZeroBloom {
    bitmap: Bitmap,
    bits: u64,
    hazards: Vec<Hazard>,
    sealed: bool,
}

impl GoZeroBloom {
    /// Opens a key that is there, whoever made it, with the number of bits that all of its users have agreed
    /// on.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] if there is none, also if go-zero has not inserted anything yet;
    /// [`Error::Address`] if a string cannot have so many bits.
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
        let bitmap = Bitmap::open(server, key, guard).await;
        // That the seal is of another history is for whoever asks to know.
        let bitmap = match bitmap {
            Err(Reason::History) => Bitmap::unattached(server, key, bits.div_ceil(8), seal),
            other => other?,
        };
        let hazards = health::apply(policy, health::hazards(server, key).await?)?;
        Ok(Self { bitmap, bits, hazards, sealed: seal.is_some() })
    }

    /// Makes a key with so many bits and a seal, in small steps, or opens it if it is there. If it has no seal
    /// it gets one.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::Mismatch`] if there is a longer string.
    pub async fn create(
        server: &Server,
        key: &str,
        bits: u64,
        policy: Policy,
    ) -> Result<Self, Error> {
        check(bits)?;
        seal(server, key, bits).await?;
        Self::open(server, key, bits, policy).await
    }

    /// Gives a key a seal that go-zero made, if it has none, so that from now on all clients see when it is
    /// lost. What was lost before is not seen.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub async fn seal(self) -> Result<Self, Error> {
        let (server, key) = (self.bitmap.server().clone(), self.bitmap.key().to_owned());
        Self::create(&server, &key, self.bits, Policy::Warn).await
    }

    /// Says that the key is whole where it is now, after a failover or a restart: see
    /// [`SharedBloom::adopt`](crate::SharedBloom::adopt). Without a seal it says so for this client only.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the key is not there, or nobody answers.
    pub async fn adopt(&self) -> Result<(), Error> {
        if self.sealed {
            self.bitmap.adopt().await?;
        }
        Ok(self.bitmap.attach().await?)
    }

    /// The bits of a key in a filter of so many.
    #[must_use]
    pub fn positions(bits: u64, key: &[u8]) -> [u64; 14] {
        let mut data = Vec::with_capacity(key.len() + 1);
        data.extend_from_slice(key);
        data.push(0);
        let mut number = 0;
        [(); PROBES as usize].map(|()| {
            data[key.len()] = number;
            number += 1;
            Murmur3::default().hash128(&data).0 % bits
        })
    }

    /// How many bits it has.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Whether it is known again when it was lost and made anew.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// How the server may lose it.
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
    // The seal has to fit as well.
    if bits == 0 || bits > MAX_BITS - SEALED * 8 {
        return Err(Error::Address(format!("a string cannot have {bits} bits")));
    }
    Ok(())
}

/// The seal of a key, if it has one.
async fn read_seal(server: &Server, key: &str, bits: u64) -> Result<Option<[u8; 24]>, Reason> {
    let mut get = command("GETRANGE");
    get.arg(key).arg(bits.div_ceil(8)).arg(bits.div_ceil(8) + 23);
    let reply = server.ask_one(key, get).await?;
    match bytes_of(&reply)? {
        [] => Ok(None),
        bytes if bytes.starts_with(MAGIC) => {
            bytes.try_into().map(Some).map_err(|_| Reason::Foreign)
        }
        _ => Err(Reason::Foreign),
    }
}

/// Makes a key as long as it has to be, and seals it unless somebody has.
async fn seal(server: &Server, key: &str, bits: u64) -> Result<(), Error> {
    let history = History::of(&server.ask_one(key, History::question()).await?)?;
    let mut identity = [0; 16];
    getrandom::fill(&mut identity)
        .map_err(|_| Error::Address("the system has no random numbers".into()))?;
    let seal = [&MAGIC[..], &identity, &history.0].concat();
    let bytes = bits.div_ceil(8);
    for _ in 0..2 * bytes.div_ceil(STEP) + 2 {
        let mut call = GROW.call(key);
        call.arg(bytes).arg(STEP).arg(&seal[..]);
        let size = count(&GROW.run(server, key, call).await?)?;
        if size == bytes + SEALED {
            return Ok(());
        }
        if size > bytes {
            return Err(Error::Mismatch { what: "length: it has more bits" });
        }
    }
    Err(Reason::Building.into())
}

crate::answer::remote_in_batches!(GoZeroBloom);

#[cfg(test)]
mod tests {
    use super::*;

    /// From a Go program with the real package.
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
