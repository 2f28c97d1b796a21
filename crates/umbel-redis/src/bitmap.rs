//! A plain bitmap with k positions a key, as other programs keep their filters.
//!
//! ```text
//!     MULTI                                     nobody comes between these:
//!       STRLEN key; a seal, or a config           is it still there, and the same?
//!       BITFIELD_RO key GET u1 p1 GET u1 p2 ...   one key
//!       ...                                       some hundred of them
//!     EXEC
//!     INFO replication                          is it still the same server?
//! ```
//!
//! There is no header to compare, so what is proven is less: see [`Guard`]. Keys of a batch are asked for a few
//! bits first, since one that is 0 will do, and only those that have them all for the others; unless most had them
//! all in the batch before.
//!
//! Inserting is the same with BITFIELD and SET: no script, which would take twice the server's time. So a key
//! that is gone is begun anew by whoever inserts, as these programs do; but it is seen in the same step, and from then
//! on nothing is known until somebody adopts the bitmap.

use crate::answer::{Answer, Error, Reason};
use crate::connect::{Server, bytes_of, command, fine, transaction};
use crate::history::History;
use crate::script::script;
use redis::{Pipeline, Value};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Bits that one transaction is about, at most: half a millisecond of a server's time.
const BITS: usize = 2_800;
/// How many bits of a key are asked for first, in a batch of at least so many keys.
const FIRST: usize = 4;
const MANY: usize = 16;
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
    /// Whether most keys of the last batch had all of their first bits.
    found: AtomicBool,
}

/// How it was when it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    history: History,
    length: u64,
    /// Whether it was gone once.
    lost: Option<Reason>,
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
        let seen = Mutex::new(Seen { history: History([0; 20]), length: 0, lost: None });
        let (key, found) = (key.to_owned(), AtomicBool::new(false));
        let bitmap = Self { server: server.clone(), key, guard, seen, found };
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
        let seen = Mutex::new(Seen { history: History([0; 20]), length: 1, lost: None });
        let (key, found) = (key.to_owned(), AtomicBool::new(false));
        Self { server: server.clone(), key, guard, seen, found }
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
        self.add_transaction(&mut pipeline, &[], &[], "", None);
        pipeline.add_command(History::question());
        let replies = self.server.ask(&self.key, pipeline).await?;
        let [queued @ .., exec, history] = &replies[..] else { return Err(Reason::Garbage) };
        let [length, proof] = transaction(queued, exec, 2)? else { return Err(Reason::Garbage) };
        let now = Seen { history: History::of(history)?, length: count(length)?, lost: None };
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
        let asked = self.send(keys, &["GET", "u1"], "BITFIELD_RO", None).await;
        match asked {
            Ok((bits, Ok(()))) => {
                bits.into_iter().map(|bits| bits.map_or_else(Answer::Unknown, said)).collect()
            }
            Ok((_, Err(reason))) | Err(reason) => {
                keys.iter().map(|_| Answer::Unknown(reason)).collect()
            }
        }
    }

    /// Inserts keys that have these positions, and tells what would have been said of them before.
    pub(crate) async fn insert(&self, keys: &[Vec<u64>]) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            let (bits, proven) = self.send(keys, &["SET", "u1"], "BITFIELD", Some(1)).await?;
            for bits in bits {
                answers.push(match (proven, bits) {
                    // The bits are set, but it is not known what was there before.
                    (Err(reason @ Reason::History), _)
                    | (Ok(()), Err(reason @ Reason::Disconnected)) => Answer::Unknown(reason),
                    (Err(reason), _) | (Ok(()), Err(reason)) => return Err(reason.into()),
                    (Ok(()), Ok(set)) => said(set),
                });
            }
        }
        Ok(answers)
    }

    /// Sends a command for each key. Whether all bits of each were set, and whether the bitmap is the right
    /// one.
    async fn send(
        &self,
        keys: &[Vec<u64>],
        operation: &[&str],
        name: &str,
        value: Option<u8>,
    ) -> Result<Sent, Reason> {
        let before = self.seen();
        if let Some(lost) = before.lost {
            return Err(lost);
        }
        let call = keys_a_call(keys);
        let mut pipeline = Pipeline::new();
        for keys in keys.chunks(call) {
            self.add_transaction(&mut pipeline, keys, operation, name, value);
        }
        pipeline.add_command(History::question());
        let (replies, repeated) = self.server.ask_noting_retries(&self.key, pipeline).await?;
        let (last, mut rest) = replies.split_last().ok_or(Reason::Garbage)?;
        let history = History::of(last);
        let mut proven = history.and_then(|history| self.same(before, history));
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(call) {
            // MULTI, the length, what proves it, the keys, EXEC.
            let (here, others) = rest.split_at(rest.len().min(keys.len() + 4));
            rest = others;
            let (exec, queued) = here.split_last().ok_or(Reason::Garbage)?;
            let replies = transaction(queued, exec, keys.len() + 2)?;
            let [length, proof, bits @ ..] = replies else { return Err(Reason::Garbage) };
            let right = history.and_then(|history| self.prove(proof, history));
            let right = right.and_then(|()| self.accept(count(length)?, before, value.is_some()));
            proven = proven.and(right);
            all.extend(bits.iter().zip(keys).map(|(bits, positions)| {
                // Perhaps it was this very call that set them, before a connection broke.
                match all_set(bits, positions.len())? {
                    true if repeated && value.is_some() => Err(Reason::Disconnected),
                    set => Ok(set),
                }
            }));
        }
        if let Err(reason @ (Reason::Missing | Reason::Shrunken | Reason::Replaced)) = proven {
            self.lose(reason, value.is_some());
        }
        Ok((all, proven))
    }

    /// Remembers that it was gone: what somebody inserts from now on is not all that was ever inserted. If it was
    /// this client who began it anew, it looks as if it had never been gone.
    fn lose(&self, reason: Reason, written: bool) {
        let sealed = matches!(self.guard, Guard::Seal { .. });
        if written && !sealed {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.lost = Some(reason);
        }
    }

    /// What proves it, and the bits of some keys, in one step.
    fn add_transaction(
        &self,
        pipeline: &mut Pipeline,
        keys: &[Vec<u64>],
        operation: &[&str],
        name: &str,
        value: Option<u8>,
    ) {
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
            let mut bits = command(name);
            bits.arg(&self.key);
            for position in positions {
                bits.arg(operation).arg(*position).arg(value);
            }
            pipeline.add_command(bits);
        }
        pipeline.add_command(command("EXEC"));
    }

    /// Whether it is as long as it was. One that was never there is begun by inserting.
    fn accept(&self, length: u64, before: Seen, written: bool) -> Result<(), Reason> {
        if length == 0 && !(written && before.length == 0) {
            return Err(Reason::Missing);
        }
        if length < before.length {
            return Err(Reason::Shrunken);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.history == before.history {
            seen.length = seen.length.max(length).max(1);
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

/// Whether all bits of each key were set, and whether the bitmap was the right one.
type Sent = (Vec<Result<bool, Reason>>, Result<(), Reason>);

/// What is said of a key.
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
