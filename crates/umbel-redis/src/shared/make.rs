//! Making a filter, opening it, moving it to another history, taking it away.

use super::header::{BYTES, FIXED, Header, prove};
use super::script::{ADOPT, DELETE, GROW};
use super::{Options, Shard, SharedBloom, shards};
use crate::answer::{Error, Reason};
use crate::connect::{Server, bytes_of, command, fine, transaction};
use crate::health::{self, Hazard};
use crate::history::History;
use futures_util::future::{join_all, try_join_all};
use redis::{Cmd, Pipeline, Value};
use std::marker::PhantomData;
use umbel::blocked::Shape;
use umbel::format::{Mark, Stored};

/// How many bytes a shard grows by in one step: a few milliseconds for the server, also if all of the shard
/// has to move.
const STEP: u64 = 2 << 20;

/// A filter that is somewhere, as its header tells.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) header: Header,
    name: String,
    ready: bool,
}

impl Found {
    /// The filter with this name.
    ///
    /// # Errors
    ///
    /// [`Reason::Missing`] if there is none, [`Reason::Foreign`] if there is something else.
    pub async fn find(server: &Server, name: &str) -> Result<Self, Error> {
        // One shard has the name of the filter; the first of several is always in the same key.
        let (one, several) = (shards::key(name, 1, 0), shards::key(name, 2, 0));
        let [one, several] = [read_head(server, &one).await, read_head(server, &several).await];
        let (header, ready) = match (one, several) {
            (Ok(found), Err(Reason::Missing)) | (Err(Reason::Missing), Ok(found)) => found,
            (Ok(_), Ok(_)) => return Err(Reason::Foreign.into()),
            (Err(Reason::Missing), Err(reason)) | (Err(reason), _) | (Ok(_), Err(reason)) => {
                return Err(reason.into());
            }
        };
        Ok(Self { header, name: name.to_owned(), ready })
    }

    /// Its shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// What it says of its hasher.
    #[must_use]
    pub const fn mark(&self) -> &Mark {
        &self.header.mark
    }

    /// In how many keys it is.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.header.shards
    }

    /// Its generation.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.header.generation
    }

    /// Whether it was made to the end.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Takes all of its shards away, also those that an earlier filter of this name has left in its keys, and
    /// nothing else: keys that have become somebody else's stay.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a server did not say that it did.
    pub async fn delete(&self, server: &Server) -> Result<(), Error> {
        for shard in Shard::all(&self.header, &self.name) {
            let call = DELETE.call(&shard.key);
            DELETE.run(server, &shard.key, call).await?;
        }
        Ok(())
    }
}

/// What the header at a key says.
async fn read_head(server: &Server, key: &str) -> Result<(Header, bool), Reason> {
    let mut get = command("GETRANGE");
    get.arg(key).arg(0).arg(BYTES - 1);
    Header::parse(bytes_of(&server.ask_one(key, get).await?)?)
}

impl<T: ?Sized, H: Stored<T>> SharedBloom<T, H> {
    /// Makes an empty filter of this shape, or opens it if it is there already: whoever else makes the same
    /// one at the same time gets the same filter. It grows on the server in small steps, so that nobody waits
    /// for a large one.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there is another filter, [`Error::Unknown`] with [`Reason::Foreign`] if
    /// there is something else; [`Error::Address`] if it cannot be in so many shards.
    pub async fn create(
        server: &Server,
        name: &str,
        shape: Shape,
        hasher: H,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut plan = Header::plan(server, name, shape, &hasher, options).await?;
        for shard in 0..plan.shards {
            plan.shard = shard;
            let header = grow(server, &shards::key(name, plan.shards, shard), &plan).await?;
            if shard == 0 {
                // Whoever was first has given the filter its identity.
                plan.identity = header.identity;
            }
            plan.expect(&header)?;
        }
        Self::of(server, name, plan, hasher, options).await
    }

    /// Opens a filter that is there, and compares its header with what is expected: the hasher, and whatever
    /// the options say.
    ///
    /// That all shards are there is looked at when they are asked for; [`check`](Self::check) looks at
    /// all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if it is another filter, [`Error::Unknown`] if there is none, or if it is not
    /// ready.
    pub async fn open(
        server: &Server,
        name: &str,
        hasher: H,
        options: &Options,
    ) -> Result<Self, Error> {
        let found = Found::find(server, name).await?;
        Self::open_found(server, found, hasher, options).await
    }

    /// As [`open`](Self::open), with the hasher that the header tells: not possible with a secret, which
    /// no server knows.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::Hasher`] if the header does not tell enough.
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
        if !found.ready {
            return Err(Reason::Building.into());
        }
        Self::of(server, &found.name, got, hasher, options).await
    }

    pub(super) async fn of(
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
    /// Whether all shards are there, whole, and at home where they are.
    ///
    /// # Errors
    ///
    /// Why not: what [`contains`](crate::RemoteFilter::contains) would tell.
    pub async fn check(&self) -> Result<(), Reason> {
        try_join_all(self.shards.iter().map(|shard| shard.look(&self.server))).await?;
        Ok(())
    }

    /// Says that the filter is whole where it is now: after a failover, a restart or a move to another server,
    /// when everything that may have been lost was inserted again, or was not. For all clients, answers are
    /// known again from now on.
    ///
    /// Whoever calls this without inserting what was lost makes keys [`Absent`](crate::Answer::Absent)
    /// that were acknowledged.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a shard is missing or is not this filter's, or a server did not answer.
    pub async fn adopt(&self) -> Result<(), Error> {
        try_join_all(self.shards.iter().map(|shard| shard.adopt(&self.server))).await?;
        self.remember_all().await;
        Ok(())
    }

    /// Sees how far all shards are, so that none can go back from there. What cannot be seen is not
    /// remembered, and is unknown to whoever asks.
    async fn remember_all(&self) {
        join_all(self.shards.iter().map(|shard| shard.look(&self.server))).await;
    }
}

impl Shard {
    /// Whether it is there, whole and at home.
    async fn look(&self, server: &Server) -> Result<(), Reason> {
        let mut length = command("STRLEN");
        length.arg(&self.key);
        match self.ask_with_header(server, length).await? {
            Value::Int(length) if length as u64 == self.bytes() => Ok(()),
            _ => Err(Reason::Shrunken),
        }
    }

    /// The reply to a command about it, in one step with the header, if that proves that it is at home.
    pub(super) async fn ask_with_header(
        &self,
        server: &Server,
        question: Cmd,
    ) -> Result<Value, Reason> {
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
        fine(reply.clone())
    }

    async fn adopt(&self, server: &Server) -> Result<(), Reason> {
        let history = history_at(server, &self.key).await?;
        let mut call = ADOPT.call(&self.key);
        call.arg(&self.fixed[..]).arg(&history.0[..]);
        let reply = ADOPT.run(server, &self.key, call).await?;
        prove(bytes_of(&reply)?, &self.fixed)?;
        Ok(())
    }
}

/// The history of the server that has this key.
pub(super) async fn history_at(server: &Server, key: &str) -> Result<History, Reason> {
    History::of(&server.ask_one(key, History::question()).await?)
}

impl Header {
    /// The header of the first shard of a new filter. If there is one with this name, in how many shards it
    /// is decides: there are never two.
    pub(super) async fn plan<T: ?Sized>(
        server: &Server,
        name: &str,
        shape: Shape,
        hasher: &impl Stored<T>,
        options: &Options,
    ) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::Address("a filter has a name".into()));
        }
        let there = match Found::find(server, name).await {
            Ok(found) => Some(found.header.shards),
            Err(Error::Unknown(Reason::Missing)) => None,
            Err(error) => return Err(error),
        };
        let default = shards::default_count(&shape, server.is_cluster());
        let shards = options.shards.or(there).unwrap_or(default);
        if there.is_some_and(|there| there != shards) {
            return Err(Error::Mismatch { what: "number of shards" });
        }
        if !shards::fits(&shape, shards) {
            let lines = shape.lines();
            return Err(Error::Address(format!("{lines} lines cannot be in {shards} shards")));
        }
        let mut identity = [0; 16];
        getrandom::fill(&mut identity)
            .map_err(|_| Error::Address("the system has no random numbers".into()))?;
        Ok(Self {
            shape,
            mark: Mark { secret: None, ..hasher.mark() },
            shards,
            shard: 0,
            generation: options.generation.unwrap_or(1),
            identity,
        })
    }
}

/// Makes a shard grow until it is ready, and tells its header.
async fn grow(server: &Server, key: &str, plan: &Header) -> Result<Header, Error> {
    let fixed: [u8; FIXED] = plan.fixed();
    let lines = shards::lines(&plan.shape, plan.shards, plan.shard);
    let whole = super::shard_bytes(&lines);
    let history = history_at(server, key).await?;
    // So many steps, and twice as many if somebody takes it away meanwhile.
    for _ in 0..2 * whole.div_ceil(STEP) + 2 {
        let mut call = GROW.call(key);
        call.arg(&fixed[..]).arg(whole).arg(STEP).arg(&history.0[..]);
        let reply = GROW.run(server, key, call).await?;
        let (header, ready) = Header::parse(bytes_of(&reply)?)?;
        let same = Header { identity: plan.identity, ..header };
        plan.expect(&same)?;
        if ready {
            return Ok(header);
        }
    }
    Err(Reason::Building.into())
}
