//! Clients for the filters of a module: `BF.*` and `CF.*`.
//!
//! ```text
//!     MULTI   TYPE key   BF.CARD key   BF.MEXISTS key a b c ...   EXEC   INFO replication
//! ```
//!
//! | | server | bits per key at 1 % | remove |
//! |---|---|---|---|
//! | [`ModuleBloom`] | RedisBloom, valkey-bloom, umbel's module | 9.6 to 11 | no |
//! | [`ModuleCuckoo`] | RedisBloom, umbel's module | 16.8 at 1.5 % | yes |
//!
//! Choose them where a module may be loaded: they cost the server the least. RedisBloom answers 0, without an
//! error, for a key that does not exist and for one of another type. Here both are
//! [`Unknown`](crate::Answer::Unknown). An insert never creates a filter.
//!
//! # Where it breaks
//!
//! A client notices that a filter was lost and created again by another client only while it has fewer items
//! than this client has seen in it. With a cuckoo filter, which may shrink, a client does not notice it at all.
//! A filter of a module cannot store a state, so an empty one answers at once: see [`ModuleBloom::reserve`].
//! After a failover or a restart, look-ups are unknown and inserts are errors until the filter is adopted, and
//! each client has to adopt it separately. An insert that is refused for that reason may have been performed.

use crate::answer::{Answer, Error, Reason};
use crate::bitmap::count;
use crate::connect::{Server, bytes_of, command, fine, transaction};
use crate::health::{self, Hazard, Policy};
use crate::history::History;
use redis::{Cmd, Pipeline, Value};
use std::borrow::Borrow;
use std::sync::{Mutex, PoisonError};

/// The maximum number of keys per command.
const CALL: usize = 200;
/// The number of keys that are sent together.
const BATCH: usize = 4096;
/// The key types of the server itself.
const BUILT_IN: [&[u8]; 6] = [b"string", b"list", b"set", b"zset", b"hash", b"stream"];

/// The part that both filters share.
#[derive(Debug)]
struct Module {
    server: Server,
    key: String,
    /// The prefix of its commands.
    prefix: &'static str,
    seen: Mutex<Seen>,
    hazards: Vec<Hazard>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    history: History,
    /// The largest number of items seen in it; always 0 if items can be removed.
    items: u64,
}

impl Module {
    async fn open(
        server: &Server,
        key: &str,
        prefix: &'static str,
        policy: Policy,
    ) -> Result<Self, Error> {
        let seen = Mutex::new(Seen { history: History([0; 20]), items: 0 });
        let (server, key) = (server.clone(), key.to_owned());
        let mut module = Self { server, key, prefix, seen, hazards: Vec::new() };
        module.attach().await?;
        let hazards = health::hazards(&module.server, &module.key).await?;
        module.hazards = health::apply(policy, hazards)?;
        Ok(module)
    }

    fn command(&self, name: &str) -> Cmd {
        let mut command = command(&format!("{}.{name}", self.prefix));
        command.arg(&self.key);
        command
    }

    /// Sends a command that creates a filter, once: a second copy would find the filter of the first.
    async fn make(server: &Server, key: &str, command: Cmd) -> Result<(), Error> {
        let mut kind = redis::cmd("TYPE");
        kind.arg(key);
        let made = fine(server.ask_once(key, command).await?);
        match (made, is_module(&server.ask_one(key, kind).await?)) {
            (Ok(_), there) => Ok(there?),
            (Err(_), Ok(())) => Err(Error::Exists),
            (Err(reason), Err(_)) => Err(reason.into()),
        }
    }

    /// Accepts the current filter as the complete one.
    async fn attach(&self) -> Result<(), Reason> {
        let mut pipeline = Pipeline::with_capacity(5);
        self.add_transaction(&mut pipeline, None);
        pipeline.add_command(History::question());
        let replies = self.server.ask(&self.key, pipeline).await?;
        let [queued @ .., exec, history] = &replies[..] else { return Err(Reason::Garbage) };
        let [kind, items] = transaction(queued, exec, 2)? else { return Err(Reason::Garbage) };
        is_module(kind)?;
        let now = Seen { history: History::of(history)?, items: self.items(items)? };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(())
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of items in a reply.
    fn items(&self, reply: &Value) -> Result<u64, Reason> {
        if self.prefix == "BF" { count(reply) } else { fine(reply.clone()).map(|_| 0) }
    }

    /// The type, the number of items and the query, in one transaction.
    fn add_transaction(&self, pipeline: &mut Pipeline, question: Option<Cmd>) {
        let mut kind = command("TYPE");
        kind.arg(&self.key);
        // A cuckoo filter has no cheap counter that only grows.
        let items = if self.prefix == "BF" { self.command("CARD") } else { self.exists_nothing() };
        pipeline.add_command(command("MULTI")).add_command(kind).add_command(items);
        if let Some(question) = question {
            pipeline.add_command(question);
        }
        pipeline.add_command(command("EXEC"));
    }

    /// A query that only a server with the module can answer.
    fn exists_nothing(&self) -> Cmd {
        let mut exists = self.command("EXISTS");
        exists.arg("");
        exists
    }

    async fn contains<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            match self.ask(keys).await {
                Ok(more) => answers.extend(more),
                Err(reason) => answers.extend(keys.iter().map(|_| Answer::Unknown(reason))),
            }
        }
        answers
    }

    async fn ask<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Reason> {
        let mut pipeline = Pipeline::new();
        for keys in keys.chunks(CALL) {
            let mut question = self.command("MEXISTS");
            for key in keys {
                question.arg(key.borrow());
            }
            self.add_transaction(&mut pipeline, Some(question));
        }
        pipeline.add_command(History::question());
        let before = self.seen();
        let replies = self.server.ask(&self.key, pipeline).await?;
        let (last, rest) = replies.split_last().ok_or(Reason::Garbage)?;
        self.same(before, History::of(last)?)?;
        let mut answers = Vec::with_capacity(keys.len());
        // MULTI, three queued commands, EXEC.
        for (keys, replies) in keys.chunks(CALL).zip(rest.chunks(5)) {
            match self.found(replies, before, keys.len()) {
                Ok(more) => answers.extend(more),
                Err(reason) => answers.extend(keys.iter().map(|_| Answer::Unknown(reason))),
            }
        }
        Ok(answers)
    }

    fn found(&self, replies: &[Value], before: Seen, keys: usize) -> Result<Vec<Answer>, Reason> {
        let (exec, queued) = replies.split_last().ok_or(Reason::Garbage)?;
        let [kind, items, found] = transaction(queued, exec, 3)? else {
            return Err(Reason::Garbage);
        };
        is_module(kind)?;
        let items = self.items(items)?;
        if items < before.items {
            return Err(Reason::Older);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.items = seen.items.max(items);
        let Value::Array(found) = found else {
            return Err(fine(found.clone()).err().unwrap_or(Reason::Garbage));
        };
        if found.len() != keys {
            return Err(Reason::Garbage);
        }
        found
            .iter()
            .map(|found| Ok(if yes(found)? { Answer::Maybe } else { Answer::Absent }))
            .collect()
    }

    fn same(&self, before: Seen, history: History) -> Result<(), Reason> {
        if before.history == history { Ok(()) } else { Err(Reason::History) }
    }

    async fn insert<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            answers.extend(self.add(keys).await?);
        }
        Ok(answers)
    }

    async fn add<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Reason> {
        let mut pipeline = Pipeline::new();
        for keys in keys.chunks(CALL) {
            let mut add = self.command("INSERT");
            add.arg("NOCREATE").arg("ITEMS");
            for key in keys {
                add.arg(key.borrow());
            }
            pipeline.add_command(add);
        }
        pipeline.add_command(History::question());
        let before = self.seen();
        let (replies, repeated) = self.server.ask_noting_retries(&self.key, pipeline).await?;
        let (last, rest) = replies.split_last().ok_or(Reason::Garbage)?;
        // These commands cannot be restricted to the home server. A write elsewhere is not acknowledged.
        self.same(before, History::of(last)?)?;
        let mut answers = Vec::with_capacity(keys.len());
        for (keys, reply) in keys.chunks(CALL).zip(rest) {
            let Value::Array(added) = reply else { return Err(not_added(reply)) };
            for added in added {
                let new = match added {
                    Value::Int(number) if *number < 0 => return Err(Reason::Full),
                    Value::ServerError(_) => return Err(not_added(added)),
                    added => yes(added)?,
                };
                answers.push(match new {
                    // A cuckoo filter does not report whether the key was present.
                    true if self.prefix == "BF" => Answer::Absent,
                    _ if repeated => Answer::Unknown(Reason::Disconnected),
                    _ => Answer::Maybe,
                });
            }
            // A full filter truncates its reply.
            if added.len() != keys.len() {
                return Err(Reason::Full);
            }
        }
        Ok(answers)
    }
}

/// Why a key was not added. The modules have special errors for this.
fn not_added(reply: &Value) -> Reason {
    let Value::ServerError(error) = reply else { return Reason::Garbage };
    // Some errors begin without a code.
    let text = format!("{} {}", error.code(), error.details().unwrap_or_default()).to_lowercase();
    if text.contains("not found") {
        Reason::Missing
    } else if text.contains("full") || text.contains("maximum expansions") {
        Reason::Full
    } else {
        fine(reply.clone()).err().unwrap_or(Reason::Garbage)
    }
}

/// Whether a key has the type of a module.
fn is_module(kind: &Value) -> Result<(), Reason> {
    match bytes_of(kind)? {
        b"none" => Err(Reason::Missing),
        kind if BUILT_IN.contains(&kind) => Err(Reason::Foreign),
        _ => Ok(()),
    }
}

/// A boolean, in either version of the protocol.
fn yes(reply: &Value) -> Result<bool, Reason> {
    match reply {
        Value::Int(0) | Value::Boolean(false) => Ok(false),
        Value::Int(1) | Value::Boolean(true) => Ok(true),
        other => Err(fine(other.clone()).err().unwrap_or(Reason::Garbage)),
    }
}

/// A Bloom filter of a module. The [module](crate::module) describes its guarantees.
#[derive(Debug)]
pub struct ModuleBloom(Module);

impl ModuleBloom {
    /// Opens an existing filter.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] or [`Reason::Foreign`] if the key has no such filter, [`Reason::Unsupported`] if the
    /// server has no such module.
    pub async fn open(server: &Server, key: &str, policy: Policy) -> Result<Self, Error> {
        Module::open(server, key, "BF", policy).await.map(Self)
    }

    /// Creates a filter for `capacity` keys at an error rate of `err_rate`. It grows by adding filters of twice
    /// the size.
    ///
    /// A filter of a module cannot store a state, so it answers at once, and an empty filter answers
    /// [`Absent`](Answer::Absent) for every key. Call this only if there are no keys yet, or insert all of them
    /// before other clients open the filter. After a loss, fill a filter under another name, then `RENAME` it.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if the filter exists, or if the server refuses the parameters. The command is sent
    /// only once: after [`Reason::Disconnected`] the filter may have been created.
    pub async fn reserve(
        server: &Server,
        key: &str,
        capacity: u64,
        err_rate: f64,
        policy: Policy,
    ) -> Result<Self, Error> {
        let mut reserve = command("BF.RESERVE");
        reserve.arg(key).arg(err_rate).arg(capacity);
        Module::make(server, key, reserve).await?;
        Self::open(server, key, policy).await
    }

    /// The number of inserted keys that were new.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the server does not answer. A missing filter has no items.
    pub async fn items(&self) -> Result<u64, Error> {
        let reply = self.0.server.ask_one(&self.0.key, self.0.command("CARD")).await?;
        Ok(count(&reply)?)
    }

    /// Accepts the filter as complete on its current server, for this client: after a failover or a restart.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn adopt(&self) -> Result<(), Error> {
        Ok(self.0.attach().await?)
    }

    /// How the server may lose the filter.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.0.hazards
    }

    async fn ask_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Answer> {
        self.0.contains(keys).await
    }

    async fn add_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        self.0.insert(keys).await
    }
}

/// A cuckoo filter of a module, which supports deletion. The [module](crate::module) describes its guarantees.
///
/// Every [`insert`](crate::RemoteFilter::insert) adds a copy, so the same number of copies can be removed. Only
/// then is it safe to remove a key without removing another one. It never answers `Absent`. If a connection
/// breaks, one copy too many may remain.
#[derive(Debug)]
pub struct ModuleCuckoo(Module);

impl ModuleCuckoo {
    /// Opens an existing filter.
    ///
    /// # Errors
    ///
    /// As [`ModuleBloom::open`].
    pub async fn open(server: &Server, key: &str, policy: Policy) -> Result<Self, Error> {
        Module::open(server, key, "CF", policy).await.map(Self)
    }

    /// Creates a filter for `capacity` keys, under the conditions of [`ModuleBloom::reserve`].
    ///
    /// # Errors
    ///
    /// As [`ModuleBloom::reserve`].
    pub async fn reserve(
        server: &Server,
        key: &str,
        capacity: u64,
        policy: Policy,
    ) -> Result<Self, Error> {
        let mut reserve = command("CF.RESERVE");
        reserve.arg(key).arg(capacity);
        Module::make(server, key, reserve).await?;
        Self::open(server, key, policy).await
    }

    /// Removes one copy of a key. Returns `false` if there was none. Only remove keys that were certainly
    /// inserted: removing any other key may remove one with the same fingerprint.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the server did not acknowledge the removal. The command is sent only once.
    /// Repeating it may remove a copy too many, so prefer not to repeat it.
    pub async fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut remove = self.0.command("DEL");
        remove.arg(key);
        let reply = self.0.server.ask_once(&self.0.key, remove).await?;
        match reply {
            Value::ServerError(_) => Err(not_added(&reply).into()),
            reply => Ok(yes(&reply)?),
        }
    }

    /// Accepts the filter as complete on its current server, for this client: after a failover or a restart.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn adopt(&self) -> Result<(), Error> {
        Ok(self.0.attach().await?)
    }

    /// How the server may lose the filter.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.0.hazards
    }

    async fn ask_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Vec<Answer> {
        self.0.contains(keys).await
    }

    async fn add_batch<A: Borrow<[u8]>>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        self.0.insert(keys).await
    }
}

crate::answer::remote_in_batches!(ModuleBloom, ModuleCuckoo);
