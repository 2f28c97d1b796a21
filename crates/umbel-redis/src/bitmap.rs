//! A plain bitmap with k positions a key, as other programs keep their filters.
//!
//! ```text
//!     MULTI                                   nobody comes between these:
//!       STRLEN key; a seal, or a config         is it still there, and the same?
//!       BITFIELD_RO key GET u1 p1 GET u1 p2 ... one key
//!       ...                                     at most 200 of them
//!     EXEC
//!     INFO replication                        is it still the same server?
//! ```
//!
//! There is no header to compare, so what is proven is less: see [`Guard`].

use crate::answer::{Answer, Error, Reason};
use crate::connect::{Server, bytes_of, command, fine, transaction};
use crate::history::History;
use crate::script::{Replies, script};
use redis::{Cmd, Pipeline, Value};
use std::sync::{Mutex, PoisonError};

/// Bits that one script or transaction is about, at most: Lua takes 8,000 arguments, and a bit is four.
const BITS: usize = 1_600;
/// Keys that are sent before the next ones.
const BATCH: usize = 2048;

/// What shows that a bitmap is the one that it should be.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    /// It is there, and as long as it was.
    Length,
    /// It ends with bytes that only this client's kind writes: from here on, these, and then the history of
    /// the server that it is whole on.
    Seal { from: u64, seal: [u8; 24] },
    /// Another key describes it: this hash, with these values of these two fields.
    Config { key: String, values: [String; 2] },
}

/// The fields of a config that are compared: Redisson's names.
pub(crate) const CONFIG: [&str; 2] = ["size", "hashIterations"];

/// A bitmap in one key.
#[derive(Debug)]
pub(crate) struct Bitmap {
    server: Server,
    key: String,
    guard: Guard,
    seen: Mutex<Seen>,
}

/// How it was when it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    history: History,
    length: u64,
}

script! {
    /// Sets bits. Keys: the bitmap, and the one that describes it, or the bitmap again. Arguments: how long the
    /// bitmap is at least, what else shows that it is the right one, in three parts, the number of probes, and
    /// then the positions, key by key.
    ///
    /// It replies with a digit for each key of the filter, 1 if one of its bits was not set before; or with
    /// nothing, if it is not the right one.
    SET = r"
if redis.call('STRLEN', KEYS[1]) < tonumber(ARGV[1]) then return false end
if ARGV[2] == 'seal' then
  if redis.call('GETRANGE', KEYS[1], ARGV[3], ARGV[3] + 23) ~= ARGV[4] then return false end
elseif ARGV[2] == 'config' then
  local config = redis.call('HMGET', KEYS[2], 'size', 'hashIterations')
  if config[1] ~= ARGV[3] or config[2] ~= ARGV[4] then return false end
end
local sets, last = {}, 0
for position = 6, #ARGV do
  sets[last + 1], sets[last + 2], sets[last + 3], sets[last + 4] = 'SET', 'u1', ARGV[position], '1'
  last = last + 4
end
local old = redis.call('BITFIELD', KEYS[1], unpack(sets))
local probes, fresh, bit = tonumber(ARGV[5]), {}, 0
for key = 1, #old / probes do
  local digit = '0'
  for _ = 1, probes do
    bit = bit + 1
    if old[bit] == 0 then digit = '1' end
  end
  fresh[key] = digit
end
return table.concat(fresh)
"
}

script! {
    /// Makes a sealed bitmap at home on a server. Arguments: where the seal is, the seal, where the history is,
    /// and the history of the server. It replies with 1, or with 0 if there is another seal.
    ADOPT = r"
if redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 23) ~= ARGV[2] then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[3], ARGV[4])
return 1
"
}

/// How many keys of so many bits one call is about.
fn keys_a_call(keys: &[Vec<u64>]) -> usize {
    (BITS / keys.first().map_or(1, Vec::len).max(1)).clamp(1, 200)
}

impl Bitmap {
    /// The bitmap at this key, if it is there; with a config it may also be empty still.
    pub(crate) async fn open(server: &Server, key: &str, guard: Guard) -> Result<Self, Reason> {
        let seen = Mutex::new(Seen { history: History([0; 20]), length: 0 });
        let bitmap = Self { server: server.clone(), key: key.to_owned(), guard, seen };
        bitmap.attach().await?;
        Ok(bitmap)
    }

    /// A bitmap whose seal is of another history: nothing is known of it until it is adopted.
    pub(crate) fn unattached(
        server: &Server,
        key: &str,
        from: u64,
        seal: Option<[u8; 24]>,
    ) -> Self {
        let guard = seal.map_or(Guard::Length, |seal| Guard::Seal { from, seal });
        let seen = Mutex::new(Seen { history: History([0; 20]), length: 1 });
        Self { server: server.clone(), key: key.to_owned(), guard, seen }
    }

    /// Makes a sealed bitmap at home on its server.
    pub(crate) async fn adopt(&self) -> Result<(), Reason> {
        let Guard::Seal { from, seal } = &self.guard else { return Ok(()) };
        let history = History::of(&self.server.ask_one(&self.key, History::question()).await?)?;
        let mut call = ADOPT.call(&self.key);
        call.arg(*from).arg(&seal[..]).arg(*from + 24).arg(&history.0[..]);
        match ADOPT.run(&self.server, &self.key, call).await? {
            Value::Int(1) => Ok(()),
            _ => Err(Reason::Replaced),
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Takes the bitmap as it is for the whole one.
    pub(crate) async fn attach(&self) -> Result<(), Reason> {
        let mut pipeline = Pipeline::with_capacity(5);
        self.add_transaction(&mut pipeline, &[]);
        pipeline.add_command(History::question());
        let replies = self.server.ask(&self.key, pipeline).await?;
        let [queued @ .., exec, history] = &replies[..] else { return Err(Reason::Garbage) };
        let [length, proof] = transaction(queued, exec, 2)? else { return Err(Reason::Garbage) };
        let now = Seen { history: History::of(history)?, length: count(length)? };
        // What a config describes may be empty still.
        if now.length == 0 && !matches!(self.guard, Guard::Config { .. }) {
            return Err(Reason::Missing);
        }
        self.prove(proof, now.history)?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(())
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is said of keys that have these positions.
    pub(crate) async fn contains(&self, keys: &[Vec<u64>]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            match self.ask(keys).await {
                Ok(more) => answers.extend(more),
                Err(reason) => answers.extend(keys.iter().map(|_| Answer::Unknown(reason))),
            }
        }
        answers
    }

    async fn ask(&self, keys: &[Vec<u64>]) -> Result<Vec<Answer>, Reason> {
        let mut pipeline = Pipeline::new();
        let call = keys_a_call(keys);
        for keys in keys.chunks(call) {
            self.add_transaction(&mut pipeline, keys);
        }
        pipeline.add_command(History::question());
        let before = self.seen();
        let replies = self.server.ask(&self.key, pipeline).await?;
        let (last, mut rest) = replies.split_last().ok_or(Reason::Garbage)?;
        let history = History::of(last)?;
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(call) {
            // MULTI, the length, what proves it, the keys, EXEC.
            let (here, others) = rest.split_at(rest.len().min(keys.len() + 4));
            rest = others;
            let known = here.split_last().ok_or(Reason::Garbage).and_then(|(exec, queued)| {
                let replies = transaction(queued, exec, keys.len() + 2)?;
                let [length, proof, bits @ ..] = replies else { return Err(Reason::Garbage) };
                self.same(before, history)?;
                self.prove(proof, history)?;
                self.accept(count(length)?, before)?;
                Ok(bits)
            });
            match known {
                Ok(bits) => answers.extend(bits.iter().zip(keys).map(answer)),
                Err(reason) => answers.extend(keys.iter().map(|_| Answer::Unknown(reason))),
            }
        }
        Ok(answers)
    }

    /// Inserts keys that have these positions, and tells what would have been said of them before.
    pub(crate) async fn insert(&self, keys: &[Vec<u64>]) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            answers.extend(self.set(keys).await?);
        }
        Ok(answers)
    }

    async fn set(&self, keys: &[Vec<u64>]) -> Result<Vec<Answer>, Reason> {
        let before = self.seen();
        let call = keys_a_call(keys);
        let calls = keys.chunks(call).map(|keys| self.call(keys, before)).collect();
        let last = Some(History::question());
        let Replies { replies, repeated } =
            SET.run_all(&self.server, &self.key, calls, last).await?;
        let (last, replies) = replies.split_last().ok_or(Reason::Garbage)?;
        let sure = History::of(last).and_then(|history| self.same(before, history));
        let mut answers = Vec::with_capacity(keys.len());
        for (keys, reply) in keys.chunks(call).zip(replies) {
            let fresh = match reply {
                Value::Nil => return Err(Reason::Missing),
                reply => bytes_of(reply)?,
            };
            if fresh.len() != keys.len() {
                return Err(Reason::Garbage);
            }
            answers.extend(fresh.iter().map(|fresh| match (sure, fresh) {
                (Err(reason), _) => Answer::Unknown(reason),
                (Ok(()), b'1') => Answer::Absent,
                (Ok(()), _) if repeated => Answer::Unknown(Reason::Disconnected),
                (Ok(()), _) => Answer::Maybe,
            }));
        }
        Ok(answers)
    }

    fn call(&self, keys: &[Vec<u64>], seen: Seen) -> Cmd {
        let described = match &self.guard {
            Guard::Config { key, .. } => key,
            _ => &self.key,
        };
        let mut call = SET.call_with(&[&self.key, described]);
        call.arg(seen.length);
        match &self.guard {
            Guard::Length => call.arg("length").arg("").arg(""),
            Guard::Seal { from, seal } => call.arg("seal").arg(*from).arg(&seal[..]),
            Guard::Config { values, .. } => call.arg("config").arg(&values[0]).arg(&values[1]),
        };
        call.arg(keys.first().map_or(1, Vec::len));
        for position in keys.iter().flatten() {
            call.arg(*position);
        }
        call
    }

    /// What proves it, and the bits of some keys, in one step.
    fn add_transaction(&self, pipeline: &mut Pipeline, keys: &[Vec<u64>]) {
        let mut length = command("STRLEN");
        length.arg(&self.key);
        pipeline.add_command(command("MULTI")).add_command(length);
        let mut proof;
        match &self.guard {
            Guard::Length => {
                proof = command("TYPE");
                proof.arg(&self.key);
            }
            Guard::Seal { from, .. } => {
                proof = command("GETRANGE");
                proof.arg(&self.key).arg(*from).arg(*from + SEALED - 1);
            }
            Guard::Config { key, .. } => {
                proof = command("HMGET");
                proof.arg(key).arg(&CONFIG[..]);
            }
        }
        pipeline.add_command(proof);
        for positions in keys {
            let mut get = command("BITFIELD_RO");
            get.arg(&self.key);
            for position in positions {
                get.arg("GET").arg("u1").arg(*position);
            }
            pipeline.add_command(get);
        }
        pipeline.add_command(command("EXEC"));
    }

    /// Whether it is as long as it was.
    fn accept(&self, length: u64, before: Seen) -> Result<(), Reason> {
        if length == 0 {
            return Err(Reason::Missing);
        }
        if length < before.length {
            return Err(Reason::Shrunken);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.history == before.history {
            seen.length = seen.length.max(length);
        }
        Ok(())
    }

    /// A seal tells the history by itself.
    fn same(&self, before: Seen, history: History) -> Result<(), Reason> {
        let sealed = matches!(self.guard, Guard::Seal { .. });
        if sealed || before.history == history { Ok(()) } else { Err(Reason::History) }
    }

    fn prove(&self, proof: &Value, history: History) -> Result<(), Reason> {
        match &self.guard {
            Guard::Length => match bytes_of(proof)? {
                b"string" => Ok(()),
                b"none" => Err(Reason::Missing),
                _ => Err(Reason::Foreign),
            },
            Guard::Seal { seal, .. } => {
                let bytes = bytes_of(proof)?;
                if bytes.is_empty() {
                    return Err(Reason::Missing);
                }
                let home = bytes.strip_prefix(seal).ok_or(Reason::Replaced)?;
                if home == history.0 { Ok(()) } else { Err(Reason::History) }
            }
            Guard::Config { values, .. } => {
                let Value::Array(got) = proof else {
                    return Err(fine(proof.clone()).err().unwrap_or(Reason::Garbage));
                };
                if got.iter().all(|value| *value == Value::Nil) {
                    return Err(Reason::Missing);
                }
                let got = got.iter().map(bytes_of).collect::<Result<Vec<_>, _>>();
                let same = got.is_ok_and(|got| got == [values[0].as_bytes(), values[1].as_bytes()]);
                if same { Ok(()) } else { Err(Reason::Replaced) }
            }
        }
    }
}

/// The bytes of a seal and of the history behind it.
pub(crate) const SEALED: u64 = 44;

fn answer((bits, positions): (&Value, &Vec<u64>)) -> Answer {
    match bits {
        Value::Array(bits) if bits.len() == positions.len() => {
            let is = |wanted: i64| move |bit: &Value| *bit == Value::Int(wanted);
            if !bits.iter().all(|bit| is(0)(bit) || is(1)(bit)) {
                Answer::Unknown(Reason::Garbage)
            } else if bits.iter().all(is(1)) {
                Answer::Maybe
            } else {
                Answer::Absent
            }
        }
        other => Answer::Unknown(fine(other.clone()).err().unwrap_or(Reason::Garbage)),
    }
}

/// A number that is a length.
pub(crate) fn count(reply: &Value) -> Result<u64, Reason> {
    match fine(reply.clone())? {
        Value::Int(number) => u64::try_from(number).map_err(|_| Reason::Garbage),
        _ => Err(Reason::Garbage),
    }
}
