//! A plain bitmap with k positions per key, as other programs store their filters.
//!
//! ```text
//!     MULTI                                     one step:
//!       STRLEN key; a seal, or a config           is it still there, and the same?
//!       BITFIELD_RO key GET u1 p1 GET u1 p2 ...   one key
//!       ...                                       some hundred of them
//!     EXEC
//!     INFO replication                          is it still the same server?
//! ```
//!
//! There is no header to compare, so a bitmap proves less: see [`Guard`]. A batch first reads a few bits of
//! each key, because a single 0 is enough. It then reads the remaining bits only of keys whose first bits were
//! all set. If most keys of the last batch had all first bits set, it reads all bits at once.
//!
//! An insert is one script, which makes the same checks and sets bits only if they hold. Plain BITFIELDs in a
//! transaction would take 30 % less of the server's time, but they write before the client can check. The
//! insert that noticed a lost key would also create it again, and later clients would take it for complete.

use crate::answer::{Answer, Error, Reason};
use crate::connect::{Server, bytes_of, command, fine, transaction};
use crate::history::History;
use crate::script::{Script, own_history, script};
use redis::{Cmd, Pipeline, Value};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The maximum number of bits per transaction: half a millisecond of a server's time.
const BITS: usize = 2_800;
/// The number of bits per key that are read first, in batches of at least this number of keys.
const FIRST: usize = 4;
const MANY: usize = 16;
/// The number of keys that are sent together.
const BATCH: usize = 2048;

/// How a client recognises that a bitmap is the right one.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    /// It exists, and its length has not decreased.
    Length,
    /// It ends with bytes that only this crate writes: at `from` the seal, then the home and the state.
    Seal { from: u64, seal: [u8; SEAL] },
    /// A config hash describes it: the key of the hash, and the values of the first two fields of [`CONFIG`].
    Config { key: String, values: [String; 2], mark: Option<Marked> },
}

/// The third field of [`CONFIG`], for a bitmap that this crate created.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    /// 32 hex digits.
    pub(crate) identity: String,
    /// The number of its bytes, which it has from its creation on.
    pub(crate) bytes: u64,
}

/// The fields of a config that are compared. The first two are Redisson's. The third is ours, and Redisson does
/// not read it: `identity:home:state`, the first two in hex digits, the last one of [`STATES`].
pub(crate) const CONFIG: [&str; 3] = ["size", "hashIterations", "umbel"];
/// Being created, incomplete, complete.
pub(crate) const STATES: [&str; 3] = ["creating", "incomplete", "complete"];

/// The bytes of a seal that never change: a magic number, the number of bits, and an identity.
pub(crate) const SEAL: usize = 32;
/// The bytes of a seal with the home and the state behind it.
pub(crate) const SEALED: u64 = 56;
/// The states of a sealed bitmap.
pub(crate) const INCOMPLETE: [u8; 4] = [3, 0, 0, 0];
pub(crate) const COMPLETE: [u8; 4] = [2, 0, 0, 0];

/// A bitmap in one key.
#[derive(Debug)]
pub(crate) struct Bitmap {
    server: Server,
    key: String,
    guard: Guard,
    seen: Mutex<Seen>,
    /// Whether most keys of the last batch had all of their first bits set.
    found: AtomicBool,
}

/// The last known state of a bitmap without a seal and a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    history: History,
    length: u64,
    /// Why the bitmap was lost once. If other clients insert keys after that, it still lacks the keys from
    /// before.
    lost: Option<Reason>,
}

/// Lua: `proof()` returns why the bitmap is not the right one (or nothing), its length, and whether it is
/// complete. Arguments: the kind of its guard, the minimum length, the exact length or nothing, the history
/// that the client has seen or nothing if the bitmap stores its home, the position of the seal, the seal or the
/// identity, and the two values of the config. `home` and `state` are read from the bitmap.
/// config. `home` and `state` are what the bitmap tells.
macro_rules! proof {
    () => {
        r"
local kind, seal, home, state = ARGV[1], ARGV[6], nil, nil
local function proof()
  local length = redis.call('STRLEN', KEYS[1])
  if length == 0 then return 'missing' end
  if kind == 'seal' then
    local tail = redis.call('GETRANGE', KEYS[1], ARGV[5], ARGV[5] + 55)
    if string.sub(tail, 1, 32) ~= seal then
      return length < tonumber(ARGV[3]) and 'shrunken' or 'replaced'
    end
    home, state = string.sub(tail, 33, 52), string.sub(tail, 53, 56)
    if state ~= '\2\0\0\0' and state ~= '\3\0\0\0' then return 'replaced' end
  elseif kind == 'config' then
    local got = redis.call('HMGET', KEYS[2], 'size', 'hashIterations', 'umbel')
    if not got[1] and not got[2] then return 'missing' end
    if got[1] ~= ARGV[7] or got[2] ~= ARGV[8] then return 'replaced' end
    local mark = got[3] or ''
    if string.sub(mark, 1, 32) ~= seal then return 'replaced' end
    if seal ~= '' then
      home, state = string.sub(mark, 34, 73), string.sub(mark, 75)
      if state == 'creating' then return 'building' end
    end
  end
  if length < tonumber(ARGV[2]) then return 'shrunken' end
  if ARGV[3] ~= '' and length > tonumber(ARGV[3]) then return 'foreign' end
  return nil, length, state == nil or state == 'complete' or state == '\2\0\0\0'
end
local function is_home()
  if kind == 'seal' then return home == raw(own) end
  return (home or ARGV[4]) == own
end
"
    };
}

script! {
    /// Sets the bits of some keys, if the bitmap is the right one and at home. Further arguments: the number of
    /// bits per key, and the positions, key by key.
    ///
    /// It replies with `ok`, the length, whether the bitmap is complete, and a digit for each key, which is 1
    /// if one of its bits was not set before. Or it replies with the reason for its refusal.
    INSERT = concat!(own_history!(), proof!(), r"
local why, length, complete = proof()
if not why and not is_home() then why = 'history' end
if why then return {why} end
local probes, sets, fresh, keys = tonumber(ARGV[9]), {}, {}, 0
for probe = 1, probes do sets[4 * probe - 3], sets[4 * probe - 2], sets[4 * probe] = 'SET', 'u1', '1' end
for first = 10, #ARGV, probes do
  for probe = 1, probes do sets[4 * probe - 1] = ARGV[first + probe - 1] end
  local digit = '0'
  for _, bit in ipairs(redis.call('BITFIELD', KEYS[1], unpack(sets))) do
    if bit == 0 then digit = '1' break end
  end
  keys = keys + 1
  fresh[keys] = digit
end
return {'ok', length, complete and 1 or 0, table.concat(fresh)}
")
}

script! {
    /// Changes the state of a bitmap that has a seal or a mark. Further argument: `complete`, or `adopt`, which
    /// makes it at home here, and incomplete if it was at home elsewhere.
    CHANGE = concat!(own_history!(), proof!(), r"
local why, there = proof(), false
if not why then there = is_home() end
if not why and not there and ARGV[9] == 'complete' then why = 'history' end
if why then return {why} end
if ARGV[9] == 'complete' then
  if kind == 'seal' then redis.call('SETRANGE', KEYS[1], ARGV[5] + 52, '\2\0\0\0')
  else redis.call('HSET', KEYS[2], 'umbel', seal .. ':' .. home .. ':complete') end
elseif not there then
  if kind == 'seal' then redis.call('SETRANGE', KEYS[1], ARGV[5] + 32, raw(own) .. '\3\0\0\0')
  else redis.call('HSET', KEYS[2], 'umbel', seal .. ':' .. own .. ':incomplete') end
end
return {'ok'}
")
}

/// The number of keys per call, for this number of bits per key.
fn keys_a_call(keys: &[Vec<u64>]) -> usize {
    (BITS / keys.first().map_or(1, Vec::len).max(1)).clamp(1, 200)
}

impl Bitmap {
    /// Opens the bitmap at this key. A bitmap without a seal and without a mark must exist, and is accepted as
    /// it is.
    pub(crate) async fn open(server: &Server, key: &str, guard: Guard) -> Result<Self, Reason> {
        let seen = Mutex::new(Seen { history: History([0; 20]), length: 1, lost: None });
        let (key, found) = (key.to_owned(), AtomicBool::new(false));
        let bitmap = Self { server: server.clone(), key, guard, seen, found };
        if !bitmap.has_state() {
            bitmap.attach().await?;
        }
        Ok(bitmap)
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether the bitmap itself stores its home and whether it is complete.
    pub(crate) fn has_state(&self) -> bool {
        match &self.guard {
            Guard::Length => false,
            Guard::Seal { .. } => true,
            Guard::Config { mark, .. } => mark.is_some(),
        }
    }

    /// Makes the bitmap at home on its current server. A bitmap with a state is incomplete then.
    pub(crate) async fn adopt(&self) -> Result<(), Reason> {
        if self.has_state() { self.change("adopt").await } else { self.attach().await }
    }

    /// Marks the bitmap as complete. For one without a state this only checks that it is the right one.
    pub(crate) async fn complete(&self) -> Result<(), Reason> {
        if self.has_state() {
            return self.change("complete").await;
        }
        let (_, proven) = self.send(&[]).await?;
        proven.map(drop)
    }

    /// Whether the bitmap is complete. One without a state counts as complete.
    pub(crate) async fn is_complete(&self) -> Result<bool, Reason> {
        self.send(&[]).await?.1
    }

    async fn change(&self, what: &str) -> Result<(), Reason> {
        let mut call = self.call(&CHANGE);
        call.arg(what);
        let reply = CHANGE.run(&self.server, &self.key, call).await?;
        verdict(&reply).map(drop)
    }

    /// Accepts the current bitmap as the complete one.
    async fn attach(&self) -> Result<(), Reason> {
        let mut pipeline = Pipeline::with_capacity(5);
        self.add_transaction(&mut pipeline, &[]);
        pipeline.add_command(History::question());
        let replies = self.server.ask(&self.key, pipeline).await?;
        let [queued @ .., exec, history] = &replies[..] else { return Err(Reason::Garbage) };
        let [length, proof] = transaction(queued, exec, 2)? else { return Err(Reason::Garbage) };
        let now = Seen { history: History::of(history)?, length: count(length)?, lost: None };
        self.prove(proof, now.length, now.history, now)?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(())
    }

    /// The last known state.
    ///
    /// # Errors
    ///
    /// The reason why the bitmap was lost once.
    fn seen(&self) -> Result<Seen, Reason> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.lost.map_or(Ok(seen), Err)
    }

    /// The last known history and length.
    pub(crate) fn seen_last(&self) -> Result<(History, u64), Reason> {
        self.seen().map(|seen| (seen.history, seen.length))
    }

    /// The answers for keys with these positions.
    pub(crate) async fn contains(&self, keys: &[Vec<u64>]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            answers.extend(self.contains_some(keys).await);
        }
        answers
    }

    async fn contains_some(&self, keys: &[Vec<u64>]) -> Vec<Answer> {
        let few = |key: &Vec<u64>| key.iter().take(FIRST).copied().collect();
        if keys.len() < MANY || keys[0].len() <= 2 * FIRST || self.found.load(Relaxed) {
            let answers = self.ask(keys).await;
            self.note(&answers);
            return answers;
        }
        let mut answers = self.ask(&keys.iter().map(few).collect::<Vec<_>>()).await;
        self.note(&answers);
        let open: Vec<usize> =
            (0..keys.len()).filter(|key| answers[*key] == Answer::Maybe).collect();
        let rest: Vec<Vec<u64>> = open.iter().map(|key| keys[*key][FIRST..].to_vec()).collect();
        for (key, answer) in open.into_iter().zip(self.ask(&rest).await) {
            answers[key] = answer;
        }
        answers
    }

    fn note(&self, answers: &[Answer]) {
        let found = answers.iter().filter(|answer| **answer == Answer::Maybe).count();
        self.found.store(2 * found > answers.len(), Relaxed);
    }

    async fn ask(&self, keys: &[Vec<u64>]) -> Vec<Answer> {
        let unknown = |reason| keys.iter().map(|_| Answer::Unknown(reason)).collect();
        match self.send(keys).await {
            Ok((bits, Ok(true))) => {
                bits.into_iter().map(|bits| bits.map_or_else(Answer::Unknown, said)).collect()
            }
            Ok((_, Ok(false))) => unknown(Reason::Incomplete),
            Ok((_, Err(reason))) | Err(reason) => unknown(reason),
        }
    }

    /// Inserts keys with these positions, and returns the answers from just before.
    pub(crate) async fn insert(&self, keys: &[Vec<u64>]) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            answers.extend(self.insert_some(keys).await?);
        }
        Ok(answers)
    }

    async fn insert_some(&self, keys: &[Vec<u64>]) -> Result<Vec<Answer>, Reason> {
        let before = self.seen()?;
        let call = keys_a_call(keys);
        let calls = keys.chunks(call).map(|keys| {
            let mut call = self.call(&INSERT);
            call.arg(keys[0].len());
            for positions in keys {
                call.arg(&positions[..]);
            }
            call
        });
        let came = INSERT.run_all(&self.server, &self.key, calls.collect(), None).await?;
        let mut answers = Vec::with_capacity(keys.len());
        for (keys, reply) in keys.chunks(call).zip(&came.replies) {
            let told = verdict(reply).inspect_err(|reason| self.lose(*reason))?;
            let [length, complete, fresh] = told else { return Err(Reason::Garbage) };
            let (complete, fresh) = (count(complete)? == 1, bytes_of(fresh)?);
            if fresh.len() != keys.len() {
                return Err(Reason::Garbage);
            }
            self.remember(before, count(length)?);
            answers.extend(fresh.iter().map(|fresh| match fresh {
                _ if !complete => Answer::Unknown(Reason::Incomplete),
                b'1' => Answer::Absent,
                // The bits may have been set by this call itself, before a connection broke.
                _ if came.repeated => Answer::Unknown(Reason::Disconnected),
                _ => Answer::Maybe,
            }));
        }
        Ok(answers)
    }

    /// Reads for each key whether all of its bits are set, and checks that the bitmap is the right one and
    /// complete.
    async fn send(&self, keys: &[Vec<u64>]) -> Result<Sent, Reason> {
        let before = self.seen()?;
        let call = keys_a_call(keys);
        let mut pipeline = Pipeline::new();
        // Without keys only the checks are sent.
        let calls = || keys.chunks(call).chain(keys.is_empty().then_some(keys));
        for keys in calls() {
            self.add_transaction(&mut pipeline, keys);
        }
        pipeline.add_command(History::question());
        let replies = self.server.ask(&self.key, pipeline).await?;
        let (last, mut rest) = replies.split_last().ok_or(Reason::Garbage)?;
        let history = History::of(last);
        let mut proven = Ok(true);
        let mut all = Vec::with_capacity(keys.len());
        for keys in calls() {
            // MULTI, the length, the proof, the keys, EXEC.
            let (here, others) = rest.split_at(rest.len().min(keys.len() + 4));
            rest = others;
            let (exec, queued) = here.split_last().ok_or(Reason::Garbage)?;
            let replies = transaction(queued, exec, keys.len() + 2)?;
            let [length, proof, bits @ ..] = replies else { return Err(Reason::Garbage) };
            let right = history.and_then(|history| {
                let length = count(length)?;
                let complete = self.prove(proof, length, history, before)?;
                self.remember(before, length);
                Ok(complete)
            });
            proven = proven.and_then(|before| Ok(right? && before));
            all.extend(bits.iter().zip(keys).map(|(bits, keys)| all_set(bits, keys.len())));
        }
        if let Err(reason) = proven {
            self.lose(reason);
        }
        Ok((all, proven))
    }

    /// Records the loss: a bitmap without a state may look as before after other clients have created it again.
    fn lose(&self, reason: Reason) {
        let lost = matches!(
            reason,
            Reason::Missing | Reason::Shrunken | Reason::Replaced | Reason::Foreign
        );
        if lost && !self.has_state() {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.lost = Some(reason);
        }
    }

    fn remember(&self, before: Seen, length: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.history == before.history {
            seen.length = seen.length.max(length);
        }
    }

    /// The proof, and the bits of some keys, in one transaction.
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
            let mut bits = command("BITFIELD_RO");
            bits.arg(&self.key);
            for position in positions {
                bits.arg("GET").arg("u1").arg(*position);
            }
            pipeline.add_command(bits);
        }
        pipeline.add_command(command("EXEC"));
    }

    /// A call of a script that begins with the proof.
    fn call(&self, script: &Script) -> Cmd {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let least = if self.has_state() { self.whole() } else { Some(seen.length) };
        let home = if self.has_state() { String::new() } else { hex(&seen.history.0) };
        let (mut from, mut seal, mut values) = (0, &[][..], ["", ""]);
        let (kind, mut call) = match &self.guard {
            Guard::Length => ("length", script.call(&self.key)),
            Guard::Seal { from: at, seal: bytes } => {
                (from, seal) = (*at, &bytes[..]);
                ("seal", script.call(&self.key))
            }
            Guard::Config { key, values: both, mark } => {
                values = [&both[0], &both[1]];
                seal = mark.as_ref().map_or(&[][..], |mark| mark.identity.as_bytes());
                ("config", script.call_with(&[&self.key, key]))
            }
        };
        let whole = self.whole().map(|bytes| bytes.to_string()).unwrap_or_default();
        call.arg(kind).arg(least).arg(whole).arg(home).arg(from).arg(seal).arg(&values[..]);
        call
    }

    /// The length, if it never changes.
    fn whole(&self) -> Option<u64> {
        match &self.guard {
            Guard::Length => None,
            Guard::Seal { from, .. } => Some(from + SEALED),
            Guard::Config { mark, .. } => mark.as_ref().map(|mark| mark.bytes),
        }
    }

    /// Whether the bitmap is complete, if it is the right one, has its full length, and is at home on a server
    /// with this history. The scripts make the same checks.
    fn prove(
        &self,
        proof: &Value,
        length: u64,
        history: History,
        before: Seen,
    ) -> Result<bool, Reason> {
        let whole = self.whole();
        let mut told = None;
        if length == 0 {
            return Err(Reason::Missing);
        }
        match &self.guard {
            Guard::Length => match bytes_of(proof)? {
                b"string" => {}
                b"none" => return Err(Reason::Missing),
                _ => return Err(Reason::Foreign),
            },
            Guard::Seal { seal, .. } => {
                let Some(rest) = bytes_of(proof)?.strip_prefix(seal) else {
                    let short = whole.is_some_and(|whole| length < whole);
                    return Err(if short { Reason::Shrunken } else { Reason::Replaced });
                };
                let (home, state) = rest.split_at_checked(20).ok_or(Reason::Shrunken)?;
                let complete = state == COMPLETE;
                if !complete && state != INCOMPLETE {
                    return Err(Reason::Replaced);
                }
                told = Some((home == history.0, complete));
            }
            Guard::Config { values, mark, .. } => {
                let [size, times, text] = config(proof)?;
                if size.is_none() && times.is_none() {
                    return Err(Reason::Missing);
                }
                let same = size.as_ref() == Some(&values[0]) && times.as_ref() == Some(&values[1]);
                let identity = mark.as_ref().map_or("", |mark| &mark.identity);
                let text = text.unwrap_or_default();
                let (got, rest) = text.split_once(':').unwrap_or((&text, ""));
                if !same || got != identity {
                    return Err(Reason::Replaced);
                }
                if mark.is_some() {
                    let (home, state) = rest.split_once(':').ok_or(Reason::Replaced)?;
                    if state == STATES[0] {
                        return Err(Reason::Building);
                    }
                    told = Some((home == hex(&history.0), state == STATES[2]));
                }
            }
        }
        if length < whole.unwrap_or(before.length) {
            return Err(Reason::Shrunken);
        }
        if whole.is_some_and(|whole| length > whole) {
            return Err(Reason::Foreign);
        }
        match told.unwrap_or((before.history == history, true)) {
            (true, complete) => Ok(complete),
            (false, _) => Err(Reason::History),
        }
    }
}

/// The fields of a config, from a reply.
pub(crate) fn config(reply: &Value) -> Result<[Option<String>; 3], Reason> {
    let Value::Array(values) = reply else {
        return Err(fine(reply.clone()).err().unwrap_or(Reason::Garbage));
    };
    let text = |value: &Value| match value {
        Value::Nil => Ok(None),
        value => match std::str::from_utf8(bytes_of(value)?) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Reason::Foreign),
        },
    };
    let values = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    values.try_into().map_err(|_| Reason::Garbage)
}

/// Bytes in hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reply of a script, or the reason for its refusal.
pub(crate) fn verdict(reply: &Value) -> Result<&[Value], Reason> {
    let Value::Array(parts) = reply else {
        return Err(fine(reply.clone()).err().unwrap_or(Reason::Garbage));
    };
    let (verdict, rest) = parts.split_first().ok_or(Reason::Garbage)?;
    Err(match bytes_of(verdict)? {
        b"ok" => return Ok(rest),
        b"missing" => Reason::Missing,
        b"shrunken" => Reason::Shrunken,
        b"replaced" => Reason::Replaced,
        b"foreign" => Reason::Foreign,
        b"building" => Reason::Building,
        b"history" => Reason::History,
        _ => Reason::Garbage,
    })
}

/// For each key whether all of its bits were set, and whether the bitmap was the right one and complete.
type Sent = (Vec<Result<bool, Reason>>, Result<bool, Reason>);

/// The answer for a key.
fn said(all_set: bool) -> Answer {
    if all_set { Answer::Maybe } else { Answer::Absent }
}

fn all_set(bits: &Value, asked: usize) -> Result<bool, Reason> {
    match bits {
        Value::Array(bits) if bits.len() == asked => {
            let mut all = true;
            for bit in bits {
                match bit {
                    Value::Int(0) => all = false,
                    Value::Int(1) => {}
                    _ => return Err(Reason::Garbage),
                }
            }
            Ok(all)
        }
        other => Err(fine(other.clone()).err().unwrap_or(Reason::Garbage)),
    }
}

/// A number that is a length.
pub(crate) fn count(reply: &Value) -> Result<u64, Reason> {
    match fine(reply.clone())? {
        Value::Int(number) => u64::try_from(number).map_err(|_| Reason::Garbage),
        _ => Err(Reason::Garbage),
    }
}
