//! Creating a filter, opening it, marking it as complete, moving it to another history, deleting it.
//!
//! ```text
//!     create ----> creating ----> incomplete --- complete() ---> complete
//!                                     ^                              |
//!                                     '----- adopt(), elsewhere -----'
//! ```
//!
//! To a server, an empty filter and a filter that lost its keys look the same. Only the caller knows the
//! difference, and [`SharedBloom::complete`] is the one place where the caller states it. The state is in the
//! header of each shard, beside the bits, so all clients agree on it. The client that creates the filter draws
//! the identity, and no other client writes it, so a lost shard is never created again under the same identity.

use super::header::{BYTES, Header, Pulse, State, prove};
use super::script::{ADOPT, BEGIN, COMPLETE, DELETE, GROW};
use super::{Options, Shard, SharedBloom, shards};
use crate::answer::{Error, Opening, Reason};
use crate::connect::{Server, bytes_of, command, fine, transaction};
use crate::health::{self, Hazard};
use crate::history::History;
use crate::script::Script;
use futures_util::future::{join_all, try_join_all};
use redis::{Cmd, Pipeline, Value};
use std::marker::PhantomData;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use umbel::blocked::Shape;
use umbel::format::{Mark, Stored};

/// The number of bytes that a shard grows by in one step. The server needs a few milliseconds for it, even if
/// it has to move the whole shard.
const STEP: u64 = 2 << 20;

/// An existing filter, as its header describes it.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) header: Header,
    name: String,
    state: State,
}

impl Found {
    /// Finds the filter with this name.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] if the key does not exist, [`Reason::Foreign`] if it holds something else.
    pub async fn find(server: &Server, name: &str) -> Result<Self, Error> {
        // A single shard has the name of the filter; the first of several is always in the same key.
        let (one, several) = (shards::key(name, 1, 0), shards::key(name, 2, 0));
        let [one, several] = [read_head(server, &one).await, read_head(server, &several).await];
        let (header, state) = match (one, several) {
            (Ok(found), Err(Reason::Missing)) | (Err(Reason::Missing), Ok(found)) => found,
            (Ok(_), Ok(_)) => return Err(Reason::Foreign.into()),
            (Err(Reason::Missing), Err(reason)) | (Err(reason), _) | (Ok(_), Err(reason)) => {
                return Err(reason.into());
            }
        };
        Ok(Self { header, name: name.to_owned(), state })
    }

    /// The shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// The hasher, as the header describes it.
    #[must_use]
    pub const fn mark(&self) -> &Mark {
        &self.header.mark
    }

    /// The number of shards.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.header.shards
    }

    /// The generation.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.header.generation
    }

    /// Whether its creation was finished, so that it can be opened.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state != State::Creating
    }

    /// Deletes all shards of this filter and nothing else. It does not delete another filter that has replaced
    /// it, or keys of another program.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a server did not acknowledge the deletion.
    pub async fn delete(&self, server: &Server) -> Result<(), Error> {
        for shard in Shard::all(&self.header, &self.name) {
            let mut call = DELETE.call(&shard.key);
            call.arg(&shard.fixed[..]);
            DELETE.run(server, &shard.key, call).await?;
        }
        Ok(())
    }
}

/// The header at a key.
async fn read_head(server: &Server, key: &str) -> Result<(Header, State), Reason> {
    let mut get = command("GETRANGE");
    get.arg(key).arg(0).arg(BYTES - 1);
    Header::parse(bytes_of(&server.ask_one(key, get).await?)?)
}

impl<T: ?Sized, H: Stored<T>> SharedBloom<T, H> {
    /// Opens an existing filter, and compares its header with the hasher and the options.
    ///
    /// An incomplete filter is opened too. It answers [`Unknown`](crate::Answer::Unknown) and accepts keys.
    ///
    /// A shard is checked when it is first read. [`check`](Self::check) checks all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] with [`Reason::Missing`] if the filter does not exist and with [`Reason::Building`]
    /// if it is being created; [`Error::Mismatch`] if it is another filter.
    pub async fn open(
        server: &Server,
        name: &str,
        hasher: H,
        options: &Options,
    ) -> Result<Self, Error> {
        let found = Found::find(server, name).await?;
        Self::open_found(server, found, hasher, options).await
    }

    /// Creates an empty filter of this shape. It grows on the server in small steps, so that a large filter
    /// does not block other clients.
    ///
    /// The filter is incomplete: it accepts keys, and answers [`Unknown`](crate::Answer::Unknown) until
    /// [`complete`](Self::complete) is called. If keys exist already, insert them into the new filter first. If
    /// there are no keys yet, call `complete` at once, which states that an empty filter is right.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if a filter with this name exists, [`Error::Unknown`] with [`Reason::Foreign`] if the
    /// key holds something else, [`Error::Address`] if the filter cannot have this number of shards.
    pub async fn create(
        server: &Server,
        name: &str,
        shape: Shape,
        hasher: H,
        options: &Options,
    ) -> Result<Self, Error> {
        let plan = Header::claim(server, name, shape, &hasher, options).await?;
        let made = Self::make(server, name, plan, hasher, options, None).await;
        plan.or_delete(server, name, made).await
    }

    /// Opens the filter with this name, or creates it if it does not exist, and returns which. If several
    /// clients call this at the same time, one creates the filter and all get the same one.
    ///
    /// [`Opening::Created`] also follows the loss of a filter, so a created filter is incomplete, as after
    /// [`create`](Self::create), for all clients. An opened filter keeps its state.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) and of [`create`](Self::create). [`Reason::Building`] if another client does not
    /// finish its creation within the [limits](crate::Limits) of one call.
    pub async fn open_or_create(
        server: &Server,
        name: &str,
        shape: Shape,
        hasher: H,
        options: &Options,
    ) -> Result<(Self, Opening), Error> {
        let end = Instant::now() + server.limits().total();
        loop {
            match Found::find(server, name).await {
                Ok(found) if found.is_ready() => {
                    let options = Options { shape: Some(shape), ..*options };
                    let opened = Self::open_found(server, found, hasher, &options).await?;
                    return Ok((opened, Opening::Opened));
                }
                Ok(_) if Instant::now() > end => return Err(Reason::Building.into()),
                Ok(_) => sleep(Duration::from_millis(10)).await,
                Err(Error::Unknown(Reason::Missing)) => {
                    match Header::claim(server, name, shape, &hasher, options).await {
                        Ok(plan) => {
                            let made = Self::make(server, name, plan, hasher, options, None).await;
                            let made = plan.or_delete(server, name, made).await?;
                            return Ok((made, Opening::Created));
                        }
                        Err(Error::Exists) if Instant::now() < end => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// As [`open`](Self::open), with the hasher that the header describes. This is not possible with a secret,
    /// which is not on the server.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::Hasher`] if the header does not describe the hasher sufficiently.
    pub async fn open_as_it_is(
        server: &Server,
        name: &str,
        options: &Options,
    ) -> Result<Self, Error> {
        let found = Found::find(server, name).await?;
        let hasher = H::restore(found.mark()).map_err(Error::Hasher)?;
        Self::open_found(server, found, hasher, options).await
    }

    async fn open_found(
        server: &Server,
        found: Found,
        hasher: H,
        options: &Options,
    ) -> Result<Self, Error> {
        let got = found.header;
        let expected = Header {
            shape: options.shape.unwrap_or(got.shape),
            mark: hasher.mark(),
            shards: options.shards.unwrap_or(got.shards),
            generation: options.generation.unwrap_or(got.generation),
            ..got
        };
        expected.expect(&got)?;
        if !found.is_ready() {
            return Err(Reason::Building.into());
        }
        Self::of(server, &found.name, got, hasher, options).await
    }

    /// Creates the shards of a filter whose first shard was claimed, and writes `words` into it, if given. The
    /// first shard is finished last, so a filter whose first shard is ready was created completely.
    pub(super) async fn make(
        server: &Server,
        name: &str,
        plan: Header,
        hasher: H,
        options: &Options,
        words: Option<&[u64]>,
    ) -> Result<Self, Error> {
        let shards = Shard::all(&plan, name);
        for shard in shards.iter().skip(1).chain(shards.first()) {
            if shard.fixed != plan.fixed() {
                shard.begin(server, true).await?;
            }
            match words {
                None => shard.grow(server).await?,
                Some(words) => shard.fill(server, words).await?,
            }
        }
        // A filter in one key and one in several do not conflict before this point.
        match Found::find(server, name).await {
            Ok(found) if found.header.identity == plan.identity => {}
            Ok(_) | Err(Error::Unknown(Reason::Foreign)) => return Err(Error::Exists),
            Err(error) => return Err(error),
        }
        Self::of(server, name, plan, hasher, options).await
    }

    async fn of(
        server: &Server,
        name: &str,
        plan: Header,
        hasher: H,
        options: &Options,
    ) -> Result<Self, Error> {
        let shards = Shard::all(&plan, name);
        let looked = join_all(shards.iter().map(|shard| health::hazards(server, &shard.key))).await;
        let mut hazards: Vec<Hazard> = Vec::new();
        let unchecked = |_| vec![Hazard::Unchecked];
        for hazard in looked.into_iter().flat_map(|looked| looked.unwrap_or_else(unchecked)) {
            if !hazards.contains(&hazard) {
                hazards.push(hazard);
            }
        }
        let hazards = health::apply(options.policy, hazards)?;
        let filter = Self {
            server: server.clone(),
            name: name.to_owned(),
            plan,
            hasher,
            shards,
            hazards,
            keys: PhantomData,
        };
        filter.remember_all().await;
        Ok(filter)
    }
}

impl<T: ?Sized, H> SharedBloom<T, H> {
    /// Whether all shards exist, have their full length, are at home, and are complete.
    ///
    /// # Errors
    ///
    /// The reason that [`contains`](crate::RemoteFilter::contains) would return.
    pub async fn check(&self) -> Result<(), Reason> {
        if self.is_complete().await? { Ok(()) } else { Err(Reason::Incomplete) }
    }

    /// Whether a caller has marked the filter as complete: see [`complete`](Self::complete).
    ///
    /// # Errors
    ///
    /// The reason why the filter cannot tell: a shard is missing, does not belong to this filter, or is at home
    /// elsewhere.
    pub async fn is_complete(&self) -> Result<bool, Reason> {
        let looks = self.shards.iter().map(|shard| shard.look(&self.server));
        Ok(try_join_all(looks).await?.iter().all(|pulse| pulse.complete))
    }

    /// Marks the filter as complete: it has every key that it should have. From now on it answers
    /// [`Absent`](crate::Answer::Absent) and [`Maybe`](crate::Answer::Maybe), to all clients.
    ///
    /// Call it when all existing keys were successfully inserted since the filter was created or
    /// [adopted](Self::adopt). On an empty filter it states that there are no keys. If keys are missing, the
    /// filter answers `Absent` for them.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a shard is missing, does not belong to this filter, or is at home elsewhere. Some
    /// inserted keys may then be lost, and no shard is marked.
    pub async fn complete(&self) -> Result<(), Error> {
        self.is_complete().await?;
        let marks = self.shards.iter().map(|shard| shard.run(&COMPLETE, &self.server));
        try_join_all(marks).await?;
        Ok(())
    }

    /// Makes the filter at home on its current server: after a failover, a restart or a move to another server,
    /// when acknowledged keys may be missing.
    ///
    /// Shards that were at home elsewhere are incomplete then, for all clients. Insert every key that may have
    /// been lost, and call [`complete`](Self::complete).
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a shard is missing or does not belong to this filter, or if a server did not
    /// answer.
    pub async fn adopt(&self) -> Result<(), Error> {
        let homes = self.shards.iter().map(|shard| shard.run(&ADOPT, &self.server));
        try_join_all(homes).await?;
        self.remember_all().await;
        Ok(())
    }

    /// Reads the state of all shards, so that older states are refused from now on. A shard that cannot be read
    /// is skipped, and look-ups in it are unknown.
    async fn remember_all(&self) {
        join_all(self.shards.iter().map(|shard| shard.look(&self.server))).await;
    }
}

impl Shard {
    /// The state of the shard, if it exists, has its full length and is at home.
    async fn look(&self, server: &Server) -> Result<Pulse, Reason> {
        let mut length = command("STRLEN");
        length.arg(&self.key);
        match self.ask_with_header(server, length).await? {
            (pulse, Value::Int(length)) if length as u64 == self.bytes() => Ok(pulse),
            _ => Err(Reason::Shrunken),
        }
    }

    /// The reply to a command about the shard, read atomically with a header that proves that it is at home.
    pub(super) async fn ask_with_header(
        &self,
        server: &Server,
        question: Cmd,
    ) -> Result<(Pulse, Value), Reason> {
        let before = self.pulse();
        let mut head = command("GETRANGE");
        head.arg(&self.key).arg(0).arg(BYTES - 1);
        let mut pipeline = Pipeline::with_capacity(5);
        pipeline.add_command(command("MULTI")).add_command(head).add_command(question);
        pipeline.add_command(command("EXEC")).add_command(History::question());
        let replies = server.ask(&self.key, pipeline).await?;
        let [queued @ .., exec, history] = &replies[..] else { return Err(Reason::Garbage) };
        let [head, reply] = transaction(queued, exec, 2)? else { return Err(Reason::Garbage) };
        let pulse = prove(bytes_of(head)?, &self.fixed)?;
        self.accept(before, pulse, History::of(history)?)?;
        Ok((pulse, fine(reply.clone())?))
    }

    /// A call of a script that checks the header and the length.
    pub(super) fn call(&self, script: &Script) -> Cmd {
        let mut call = script.call(&self.key);
        call.arg(&self.fixed[..]).arg(self.bytes());
        call
    }

    /// The header that a script read, and the rest of its reply, or the reason for its refusal.
    pub(super) fn verdict<'a>(&self, reply: &'a Value) -> Result<(Pulse, &'a [Value]), Reason> {
        let Value::Array(parts) = reply else {
            return Err(fine(reply.clone()).err().unwrap_or(Reason::Garbage));
        };
        let [verdict, head, rest @ ..] = &parts[..] else { return Err(Reason::Garbage) };
        let pulse = prove(bytes_of(head)?, &self.fixed)?;
        match bytes_of(verdict)? {
            b"ok" => Ok((pulse, rest)),
            b"length" => Err(Reason::Shrunken),
            b"home" => Err(Reason::History),
            b"older" => Err(Reason::Older),
            _ => Err(Reason::Garbage),
        }
    }

    async fn run(&self, script: &Script, server: &Server) -> Result<(), Reason> {
        let reply = script.run(server, &self.key, self.call(script)).await?;
        self.verdict(&reply).map(drop)
    }

    /// Writes the header if the key does not exist. With `replace`, removes a shard of an earlier filter.
    async fn begin(&self, server: &Server, replace: bool) -> Result<(), Error> {
        let mut call = BEGIN.call(&self.key);
        call.arg(&self.fixed[..]).arg(u8::from(replace));
        let reply = BEGIN.run(server, &self.key, call).await?;
        let (header, _) = Header::parse(bytes_of(&reply)?)?;
        if header.fixed() == self.fixed { Ok(()) } else { Err(Error::Exists) }
    }

    /// Extends the shard to its full length.
    async fn grow(&self, server: &Server) -> Result<(), Error> {
        let steps = self.bytes().div_ceil(STEP);
        for step in 1..=steps {
            let mut call = self.call(&GROW);
            call.arg(STEP);
            let reply = GROW.run(server, &self.key, call).await?;
            self.is_growing(&reply, step == steps)?;
        }
        Ok(())
    }

    /// Fails if a shard that is being created is not this one any more, or is not ready though `ready` requires
    /// it.
    pub(super) fn is_growing(&self, reply: &Value, ready: bool) -> Result<(), Error> {
        let (header, state) = Header::parse(bytes_of(reply)?)?;
        if header.fixed() != self.fixed {
            return Err(Reason::Replaced.into());
        }
        match (ready, state) {
            (true, State::Creating) => Err(Reason::Building.into()),
            _ => Ok(()),
        }
    }
}

impl Header {
    /// Writes the header of the first shard of a new filter to the server. If several clients do this at the
    /// same time, one of them succeeds.
    pub(super) async fn claim<T: ?Sized>(
        server: &Server,
        name: &str,
        shape: Shape,
        hasher: &impl Stored<T>,
        options: &Options,
    ) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::Address("a filter has a name".into()));
        }
        let shards =
            options.shards.unwrap_or_else(|| shards::default_count(&shape, server.is_cluster()));
        if !shards::fits(&shape, shards) {
            let lines = shape.lines();
            return Err(Error::Address(format!("{lines} lines cannot be in {shards} shards")));
        }
        match Found::find(server, name).await {
            Ok(_) => return Err(Error::Exists),
            Err(Error::Unknown(Reason::Missing)) => {}
            Err(error) => return Err(error),
        }
        let mut identity = [0; 16];
        getrandom::fill(&mut identity)
            .map_err(|_| Error::Address("the system has no random numbers".into()))?;
        let plan = Self {
            shape,
            mark: Mark { secret: None, ..hasher.mark() },
            shards,
            shard: 0,
            generation: options.generation.unwrap_or(1),
            identity,
        };
        // The history is read before the first write.
        let key = shards::key(name, shards, 0);
        History::of(&server.ask_one(&key, History::question()).await?)?;
        match Shard::all(&plan, name).first() {
            Some(shard) => shard.begin(server, false).await?,
            None => return Err(Reason::Garbage.into()),
        }
        Ok(plan)
    }

    /// The filter, if its creation succeeded. Otherwise deletes its shards, as far as the server permits.
    pub(super) async fn or_delete<F>(
        self,
        server: &Server,
        name: &str,
        made: Result<F, Error>,
    ) -> Result<F, Error> {
        if made.is_err() {
            let found = Found { header: self, name: name.to_owned(), state: State::Creating };
            // A remaining shard stays in the state of creation, and answers nothing.
            let _ = found.delete(server).await;
        }
        made
    }
}
