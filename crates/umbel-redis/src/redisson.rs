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
//! Choose it only to share a filter with Redisson. Keys are the bytes that its codec writes: the bytes of the
//! text for `StringCodec`, the bytes unchanged for `ByteArrayCodec`, the decimal digits of the number for
//! `LongCodec`. The default codec, Kryo, frames every type differently, so only a caller that has Kryo's bytes
//! can share its keys.
//!
//! # Where it breaks
//!
//! The bits and their config are two keys, and each can be lost without the other. A client notices a lost
//! config, a changed config and missing bits. An insert never creates missing bits again.
//!
//! A filter that was [created](RedissonBloom::create) here has one more field in its config, `umbel`, which
//! Redisson does not read: an identity, the home and the state. Its bits have their full length from the
//! beginning. If the bits are lost and a Java program creates them again, clients notice it while the bits are
//! shorter. They do not notice it after Java has set a bit in the last byte.
//!
//! A filter that Java created has no such field. If its bits were lost and a Java program created them again
//! before this client opened it, the client cannot notice that. So [`open`](RedissonBloom::open) accepts them
//! as complete. A filter into which Redisson has not inserted a key yet looks like one whose bits are missing:
//! see [`create_bits`](RedissonBloom::create_bits).
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

use crate::answer::{Answer, Error, Opening, Reason};
use crate::bitmap::{Bitmap, CONFIG, Guard, Marked, STATES, config, count, hex};
use crate::connect::{Server, command, transaction};
use crate::health::{self, Hazard, Policy};
use crate::history::History;
use crate::script::{own_history, script};
use redis::{Pipeline, Value};
use std::borrow::Borrow;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use umbel::InvalidShape;
use umbel::hash::Digester;
use umbel::kernels::Kernels;
use umbel_foreign::redisson::{self, MAX_BITS, MAX_PROBES};

/// A filter of Redisson. The [module](crate::redisson) describes its layout and its guarantees.
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
    /// [`Reason::Missing`] if the config or the bits do not exist, [`Reason::Foreign`] if the config is
    /// invalid, [`Reason::Building`] if another client is creating the filter.
    pub async fn open(server: &Server, name: &str, policy: Policy) -> Result<Self, Error> {
        let found = Found::find(server, name).await?;
        if found.length == 0 {
            return Err(Reason::Missing.into());
        }
        let mark = match found.mark.as_deref().map(|mark| mark.split(':').collect::<Vec<_>>()) {
            None => None,
            Some(parts) => match parts[..] {
                [identity, _, state] if STATES[1..].contains(&state) => {
                    let bytes = found.size.div_ceil(8);
                    Some(Marked { identity: identity.to_owned(), bytes })
                }
                [_, _, state] if state == STATES[0] => return Err(Reason::Building.into()),
                _ => return Err(Reason::Foreign.into()),
            },
        };
        let guard = Guard::Config { key: config_of(name), values: found.values, mark };
        let bitmap = Bitmap::open(server, name, guard).await?;
        let hazards = health::apply(policy, health::hazards(server, name).await?)?;
        Ok(Self { bitmap, size: found.size, probes: found.probes, hazards })
    }

    /// Creates an empty filter for `capacity` keys at an error rate of `err_rate`, with the parameters of
    /// Redisson's `tryInit`.
    ///
    /// The filter is incomplete: it accepts keys, also from Java programs, and answers
    /// [`Unknown`](Answer::Unknown) here until [`complete`](Self::complete) is called.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if the config or the bits exist, [`Error::Shape`] if Redisson would refuse the
    /// parameters.
    pub async fn create(
        server: &Server,
        name: &str,
        capacity: u64,
        err_rate: f64,
        policy: Policy,
    ) -> Result<Self, Error> {
        let (size, probes) = Self::plan(capacity, err_rate)?;
        let (capacity, rate) = (capacity.to_string(), java_double(err_rate));
        let values = [&size.to_string(), &probes.to_string(), &*capacity, &*rate];
        make(server, name, size, &values, policy).await?;
        Self::open(server, name, policy).await
    }

    /// Creates empty bits for an existing config without bits. Either Java has called `tryInit` and not
    /// inserted a key yet, or the bits were lost. Only the caller knows which.
    ///
    /// The filter is incomplete, as after [`create`](Self::create).
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if the bits exist, [`Reason::Missing`] if the config does not.
    pub async fn create_bits(server: &Server, name: &str, policy: Policy) -> Result<Self, Error> {
        let found = Found::find(server, name).await?;
        let [size, probes] = &found.values;
        make(server, name, found.size, &[size, probes], policy).await?;
        Self::open(server, name, policy).await
    }

    /// Opens the filter, or creates it if neither the config nor the bits exist, and returns which. A created
    /// filter is incomplete, as after [`create`](Self::create), because it may be one that was lost.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) and of [`create`](Self::create). [`Reason::Missing`] if one of the two
    /// keys is missing, and [`Error::Mismatch`] if the filter has other parameters.
    pub async fn open_or_create(
        server: &Server,
        name: &str,
        capacity: u64,
        err_rate: f64,
        policy: Policy,
    ) -> Result<(Self, Opening), Error> {
        let planned = Self::plan(capacity, err_rate)?;
        let (end, mut taken) = (Instant::now() + server.limits().total(), false);
        loop {
            match Self::open(server, name, policy).await {
                Ok(filter) if (filter.size, filter.probes) == planned => {
                    return Ok((filter, Opening::Opened));
                }
                Ok(_) => {
                    return Err(Error::Mismatch { what: "size or number of hash iterations" });
                }
                Err(Error::Unknown(Reason::Building)) if Instant::now() < end => {
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
                // Both keys are created in one step, so one of them was lost.
                Err(error @ Error::Unknown(Reason::Missing)) if taken => return Err(error),
                Err(Error::Unknown(Reason::Missing)) => {}
                Err(error) => return Err(error),
            }
            match Self::create(server, name, capacity, err_rate, policy).await {
                Ok(filter) => return Ok((filter, Opening::Created)),
                Err(Error::Exists) => taken = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Marks the filter as complete for all clients: it has every key that it should have. See
    /// [`SharedBloom::complete`](crate::SharedBloom::complete). A filter that Java created has no state to
    /// change.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the filter was lost, or is at home on another server.
    pub async fn complete(&self) -> Result<(), Error> {
        Ok(self.bitmap.complete().await?)
    }

    /// Whether a caller has marked the filter as complete. One that Java created counts as complete.
    ///
    /// # Errors
    ///
    /// The reason why the filter cannot tell.
    pub async fn is_complete(&self) -> Result<bool, Reason> {
        self.bitmap.is_complete().await
    }

    /// The number of bits and of hash iterations that Redisson computes for `capacity` keys at this rate. Like
    /// Redisson, it treats a rate of 0 as the smallest rate above 0.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if the rate is not between 0 and 1, or there would be no bits or too many.
    pub fn plan(capacity: u64, err_rate: f64) -> Result<(u64, u64), InvalidShape> {
        redisson::plan(capacity, err_rate)
    }

    /// The positions of a key in a filter of `size` bits.
    #[must_use]
    pub fn positions(size: u64, probes: u64, key: &[u8]) -> Vec<u64> {
        let positions = redisson::Positions.positions(redisson::Hash.digest(key), size);
        positions.take(probes as usize).collect()
    }

    /// The number of bits.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The number of bits per key, Redisson's `hashIterations`.
    #[must_use]
    pub const fn hash_iterations(&self) -> u64 {
        self.probes
    }

    /// How the server may lose the filter.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    /// Makes the filter at home on its current server, after a failover or a restart: see
    /// [`SharedBloom::adopt`](crate::SharedBloom::adopt). A filter that was created here is incomplete then.
    /// This client accepts a filter that Java created as complete.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the filter does not exist, or the server does not answer.
    pub async fn adopt(&self) -> Result<(), Error> {
        Ok(self.bitmap.adopt().await?)
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

script! {
    /// Writes a config and extends its bits, until they have their full length. Arguments: the identity, the
    /// bytes of the bits, the maximum number of bytes to add, and the values of the config: all four, or two if
    /// the config exists.
    ///
    /// It replies with the length, or with -1 if another client created one of the keys. Only the first call,
    /// with 1 as its last argument, creates keys.
    CREATE = concat!(own_history!(), r"
local bits, config, identity, bytes = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local got = redis.call('HMGET', config, 'size', 'hashIterations', 'umbel')
local size, mark = redis.call('STRLEN', bits), got[3] or ''
if string.sub(mark, 1, 32) ~= identity then
  if ARGV[#ARGV] ~= '1' or size > 0 then return -1 end
  if #ARGV == 8 then
    if redis.call('EXISTS', config) == 1 then return -1 end
    redis.call('HSET', config, 'size', ARGV[4], 'hashIterations', ARGV[5], 'expectedInsertions', ARGV[6],
      'falseProbability', ARGV[7])
  elseif got[1] ~= ARGV[4] or got[2] ~= ARGV[5] then return -1 end
  redis.call('HSET', config, 'umbel', identity .. '::creating')
elseif string.sub(mark, -9) ~= ':creating' then
  return size
elseif size == 0 and ARGV[#ARGV] ~= '1' then
  return -1
end
if size < bytes then
  size = math.min(bytes, size + tonumber(ARGV[3]))
  redis.call('SETRANGE', bits, size - 1, '\0')
end
if size == bytes then redis.call('HSET', config, 'umbel', identity .. ':' .. own .. ':incomplete') end
return size
")
}

/// The number of bytes that the bits grow by in one step.
const STEP: u64 = 4 << 20;

/// Creates the bits, and the config if all four values are given.
async fn make(
    server: &Server,
    name: &str,
    size: u64,
    values: &[&str],
    policy: Policy,
) -> Result<(), Error> {
    let mut identity = [0; 16];
    getrandom::fill(&mut identity)
        .map_err(|_| Error::Address("the system has no random numbers".into()))?;
    // The hazards and the history are checked before the first write.
    health::apply(policy, health::hazards(server, name).await?)?;
    History::of(&server.ask_one(name, History::question()).await?)?;
    let (config, bytes) = (config_of(name), size.div_ceil(8));
    for step in 0..bytes.div_ceil(STEP) {
        let mut call = CREATE.call_with(&[name, &config]);
        call.arg(hex(&identity)).arg(bytes).arg(STEP).arg(values).arg(u8::from(step == 0));
        match CREATE.run(server, name, call).await? {
            Value::Int(-1) => return Err(Error::Exists),
            size if count(&size)? == bytes => return Ok(()),
            _ => {}
        }
    }
    Err(Reason::Building.into())
}

/// An existing filter, read from its config.
struct Found {
    values: [String; 2],
    size: u64,
    probes: u64,
    mark: Option<String>,
    /// The bytes of its bits.
    length: u64,
}

impl Found {
    async fn find(server: &Server, name: &str) -> Result<Self, Error> {
        let (mut get, mut length) = (command("HMGET"), command("STRLEN"));
        get.arg(config_of(name)).arg(&CONFIG[..]);
        length.arg(name);
        let mut pipeline = Pipeline::with_capacity(4);
        pipeline.add_command(command("MULTI")).add_command(get).add_command(length);
        pipeline.add_command(command("EXEC"));
        let replies = server.ask(name, pipeline).await?;
        let (exec, queued) = replies.split_last().ok_or(Reason::Garbage)?;
        let [got, length] = transaction(queued, exec, 2)? else {
            return Err(Reason::Garbage.into());
        };
        let [Some(size), Some(probes), mark] = config(got)? else {
            return Err(Reason::Missing.into());
        };
        let number = |text: &str, most: u64| {
            let number = text.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or(Reason::Foreign)
        };
        let (bits, times) = (number(&size, MAX_BITS)?, number(&probes, MAX_PROBES.into())?);
        let (values, length) = ([size, probes], count(length)?);
        Ok(Self { values, size: bits, probes: times, mark, length })
    }
}

/// The key of a filter's config, which is in the same slot as its bits.
fn config_of(name: &str) -> String {
    if name.contains('{') { format!("{name}:config") } else { format!("{{{name}}}:config") }
}

/// A rate in Java's decimal format.
fn java_double(rate: f64) -> String {
    // Java writes digits from 0.001 on, and an exponent below that.
    if rate >= 0.001 || rate == 0.0 { format!("{:?}", rate.abs()) } else { java_exponent(rate) }
}

fn java_exponent(rate: f64) -> String {
    let text = format!("{rate:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

crate::answer::remote_in_batches!(RedissonBloom);

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions from a Java program with Redisson's `HighwayHash.java`.
    #[test]
    fn positions_are_those_of_redisson() {
        let positions = [1904273, 5703746, 1001831, 4801304, 99389, 3898862, 8782005];
        assert_eq!(RedissonBloom::positions(9_585_058, 7, b"hello"), positions);
    }

    #[test]
    fn sizes_are_those_of_redisson() {
        assert_eq!(RedissonBloom::plan(1_000_000, 0.01), Ok((9_585_058, 7)));
        // Redisson takes these rates too: -ln(1e-300) / ln²2 is 1437.8, -ln(4.9e-324) / ln²2 is 1549.5.
        assert_eq!(RedissonBloom::plan(1, 1e-300), Ok((1_437, 996)));
        assert_eq!(RedissonBloom::plan(1, 0.0), Ok((1_549, 1_074)));
        assert_eq!(RedissonBloom::plan(1, -0.0), Ok((1_549, 1_074)));
        assert_eq!(RedissonBloom::plan(1_000, 0.999), Ok((2, 1)));
        for (capacity, rate) in
            [(0, 0.01), (1, 1.0), (1, 1.1), (1, -0.1), (1, f64::NAN), (1 << 40, 0.01)]
        {
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
        for (rate, text) in [
            (0.01, "0.01"),
            (0.001, "0.001"),
            (1e-4, "1.0E-4"),
            (2.5e-7, "2.5E-7"),
            (0.0, "0.0"),
            (1e-300, "1.0E-300"),
        ] {
            assert_eq!(java_double(rate), text);
        }
    }
}
