//! Redisson's `RBloomFilter`, so that programs in Rust and in Java share one filter.
//!
//! ```text
//!     key "seen"            the bits, the first of a byte its highest
//!     hash "{seen}:config"  size, hashIterations, expectedInsertions, falseProbability
//!     positions             h1, h1 + h2, h1 + h2 + h1, ... each without its sign, mod size
//!                           (h1, h2) = HighwayHash-128 of what the codec makes of a key
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 9.6 at 1 % | 7 bits at 1 % | no | no | no | if there is a config already |
//!
//! Choose it only to share a filter with Redisson. Keys are the bytes that its codec writes: those of
//! the text for `StringCodec`, as they are for `ByteArrayCodec`. The default codec, Kryo, frames every type in
//! its own way and cannot be shared.
//!
//! # Where it breaks
//!
//! The bits and their description are two keys, and each can be lost without the other. A lost config is
//! seen, bits that are gone are seen, and a config that was changed is seen; but bits that were lost and begun anew
//! by a Java program while nobody looked cannot be told from those that were lost. That Redisson has not inserted
//! anything yet looks like bits that are gone: [`Unknown`](crate::Answer::Unknown).
//!
//! # Reference
//!
//! redisson/redisson, `RedissonBloomFilter.java`, of August 2026.
//!
//! ```
//! use umbel_redis::RedissonBloom;
//!
//! let positions = RedissonBloom::positions(9_585_058, 7, b"hello");
//! assert_eq!(positions[..3], [1_904_273, 5_703_746, 1_001_831]);
//! ```

use crate::answer::{Answer, Error, Reason};
use crate::bitmap::{Bitmap, CONFIG, Guard};
use crate::connect::{Server, bytes_of, command};
use crate::health::{self, Hazard, Policy};
use highway::{HighwayHash, HighwayHasher, Key};
use redis::Value;
use std::borrow::Borrow;
use std::f64::consts::LN_2;
use umbel::InvalidShape;

/// The key of HighwayHash in Redisson's `Hash.java`.
const KEY: Key = Key([
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
]);
/// The most bits that Redisson takes: twice the largest `int`.
const MAX_BITS: u64 = 2 * (i32::MAX as u64);
/// The most probes that are taken from a config: as many as any rate that can be written as a `double` needs.
const MAX_PROBES: u64 = 1_100;

/// A filter of Redisson's. The [module](crate::redisson) tells what it is and what it proves.
#[derive(Debug)]
pub struct RedissonBloom {
    bitmap: Bitmap,
    size: u64,
    probes: u64,
    hazards: Vec<Hazard>,
}

impl RedissonBloom {
    /// Opens the filter with this name, by its config.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] if there is no config, [`Reason::Foreign`] if it makes no sense.
    pub async fn open(server: &Server, name: &str, policy: Policy) -> Result<Self, Error> {
        let config = config_of(name);
        let mut get = command("HMGET");
        get.arg(&config).arg(&CONFIG[..]);
        let reply = server.ask_one(&config, get).await?;
        let Value::Array(values) = reply else { return Err(Reason::Garbage.into()) };
        if values.contains(&Value::Nil) {
            return Err(Reason::Missing.into());
        }
        let values = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let [size, probes] = &values[..] else { return Err(Reason::Garbage.into()) };
        let number = |text: &str, most: u64| {
            let number = text.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or(Reason::Foreign)
        };
        let (bits, times) = (number(size, MAX_BITS)?, number(probes, MAX_PROBES)?);
        let guard = Guard::Config { key: config, values: [size.clone(), probes.clone()] };
        let bitmap = Bitmap::open(server, name, guard).await?;
        let hazards = health::apply(policy, health::hazards(server, name).await?)?;
        Ok(Self { bitmap, size: bits, probes: times, hazards })
    }

    /// Makes a filter for `capacity` keys at an error rate of `err_rate` as Redisson's `tryInit` does, or
    /// opens it if it is there with the same numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there is one with others, [`Error::Shape`] if Redisson would refuse
    /// them.
    pub async fn create(
        server: &Server,
        name: &str,
        capacity: u64,
        err_rate: f64,
        policy: Policy,
    ) -> Result<Self, Error> {
        let (size, probes) = Self::plan(capacity, err_rate)?;
        let config = config_of(name);
        let mut call = INIT.call(&config);
        call.arg(size).arg(probes).arg(capacity).arg(java_double(err_rate));
        INIT.run(server, &config, call).await?;
        let filter = Self::open(server, name, policy).await?;
        if (filter.size, filter.probes) != (size, probes) {
            return Err(Error::Mismatch { what: "size or number of hash iterations" });
        }
        Ok(filter)
    }

    /// The bits and the hash iterations that Redisson takes for so many keys at this rate.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if the rate is not above 0 and below 1, or there would be too many bits.
    pub fn plan(capacity: u64, err_rate: f64) -> Result<(u64, u64), InvalidShape> {
        umbel::sizing::Rate::new(err_rate)?;
        let size = (-(capacity as f64) * err_rate.ln() / (LN_2 * LN_2)) as u64;
        if size == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: 1 });
        }
        if size > MAX_BITS {
            return Err(InvalidShape::TooLarge { bits: size, max: MAX_BITS });
        }
        let probes = (size as f64 / capacity as f64 * LN_2).round() as u64;
        Ok((size, probes.max(1)))
    }

    /// The bits of a key in a filter of so many.
    #[must_use]
    pub fn positions(size: u64, probes: u64, key: &[u8]) -> Vec<u64> {
        let [h1, h2] = HighwayHasher::new(KEY).hash128(key);
        let mut hash = h1;
        let mut positions = Vec::with_capacity(probes as usize);
        for probe in 0..probes {
            positions.push((hash & (u64::MAX >> 1)) % size);
            hash = hash.wrapping_add(if probe % 2 == 0 { h2 } else { h1 });
        }
        positions
    }

    /// How many bits it has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// How many bits a key has.
    #[must_use]
    pub const fn hash_iterations(&self) -> u64 {
        self.probes
    }

    /// How the server may lose it.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    /// Says that the filter is whole where it is now, for this client: after a failover or a restart.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if it is not there, or nobody answers.
    pub async fn adopt(&self) -> Result<(), Error> {
        Ok(self.bitmap.attach().await?)
    }

    async fn ask_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Answer> {
        self.bitmap.contains(&self.all_positions(keys)).await
    }

    async fn add_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        self.bitmap.insert(&self.all_positions(keys)).await
    }

    fn all_positions<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Vec<u64>> {
        let positions = |key: &A| Self::positions(self.size, self.probes, key.borrow());
        keys.iter().map(positions).collect()
    }
}

crate::script::script! {
    /// Writes a config where there is none. Arguments: its four values.
    INIT = r"
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'size', ARGV[1], 'hashIterations', ARGV[2], 'expectedInsertions', ARGV[3],
    'falseProbability', ARGV[4])
end
return 1
"
}

/// The key of a filter's config: in the same slot as its bits.
fn config_of(name: &str) -> String {
    if name.contains('{') { format!("{name}:config") } else { format!("{{{name}}}:config") }
}

/// A rate as Java writes it.
fn java_double(rate: f64) -> String {
    // From 0.001 on Java writes digits, and below that an exponent.
    if rate >= 0.001 { format!("{rate:?}") } else { java_exponent(rate) }
}

fn java_exponent(rate: f64) -> String {
    let text = format!("{rate:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

fn text(value: &Value) -> Result<String, Reason> {
    let bytes = bytes_of(value)?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Reason::Foreign)
}

crate::answer::remote_in_batches!(RedissonBloom);

#[cfg(test)]
mod tests {
    use super::*;

    /// From a Java program with Redisson's `HighwayHash.java`.
    #[test]
    fn hashes_and_positions_are_those_of_redisson() {
        let hash = HighwayHasher::new(KEY).hash128(b"hello");
        assert_eq!(hash, [9_210_372_222_324_082_145, 8_139_643_753_120_311_257]);
        let positions = [1904273, 5703746, 1001831, 4801304, 99389, 3898862, 8782005];
        assert_eq!(RedissonBloom::positions(9_585_058, 7, b"hello"), positions);
    }

    #[test]
    fn sizes_are_those_of_redisson() {
        assert_eq!(RedissonBloom::plan(1_000_000, 0.01), Ok((9_585_058, 7)));
        for (capacity, rate) in [(0, 0.01), (1, 0.0), (1, 1.0), (1, f64::NAN), (1 << 40, 0.01)] {
            assert!(RedissonBloom::plan(capacity, rate).is_err(), "{capacity} {rate}");
        }
    }

    #[test]
    fn a_config_is_in_the_slot_of_its_bits() {
        assert_eq!(config_of("seen"), "{seen}:config");
        assert_eq!(config_of("{user}seen"), "{user}seen:config");
    }

    #[test]
    fn rates_are_written_as_java_writes_them() {
        for (rate, text) in [(0.01, "0.01"), (0.001, "0.001"), (1e-4, "1.0E-4"), (2.5e-7, "2.5E-7")]
        {
            assert_eq!(java_double(rate), text);
        }
    }
}
