//! The shared filter: a blocked Bloom filter in the strings of a stock server.
//!
//! ```text
//!     key "seen"   [ header 128 B | line 0 | line 1 | ...      | line L-1 ]
//!                        ^                      ^ 64 bytes
//!     contains           '---- read together ---'     one GETRANGE for a line, a header for 500 of them
//!     insert             '---- seen and set by one script
//! ```
//!
//! | bits per key | a look-up | an insert | remove | union | can building fail |
//! |---|---|---|---|---|---|
//! | 9.9 at 1 %, 14.6 at 0.1 % | 64 bytes, or twice 64 | one script, for 200 keys | no | by copying | if the server refuses |
//!
//! Choose it when many processes share one filter and no module may be loaded. Prefer
//! [`ModuleBloom`](crate::ModuleBloom) where a module may be loaded, and [`GoZeroBloom`](crate::GoZeroBloom) or
//! [`RedissonBloom`](crate::RedissonBloom) when programs in Go or Java use the same key.
//!
//! The lines are exactly those of [`umbel::BlockedBloomFilter`] with the same shape and hasher. So a filter
//! that was built offline can be [uploaded](SharedBloom::upload), and a filter with very many look-ups can be
//! [downloaded](SharedBloom::download). Large filters are spread over several keys, and over the servers of a
//! cluster. `docs/redis.md` specifies every byte of the layout.
//!
//! # What is proven
//!
//! The filter answers `Absent` only if all of these hold:
//!
//! * In one atomic step of one server, a bit of the key was 0 and the header beside it was identical to the one
//!   that was opened: shape, hash, seed or secret, generation, and a random identity that no other filter has.
//! * The server has been a primary without interruption since the filter was created there or
//!   [adopted](SharedBloom::adopt), so that everything it has acknowledged is in its memory.
//! * Since then, a caller has marked the filter as [complete](SharedBloom::complete).
//! * The filter is not older than the state that this client has already seen.
//!
//! Everything else is [`Unknown`](crate::Answer::Unknown), for every client, also for one that was started
//! later.
//!
//! # Where it breaks
//!
//! A primary that is cut off and does not know that another server was promoted continues to answer from its
//! memory. Clients that can only reach that primary do not see what the new one acknowledges. If a key was
//! overwritten with an older copy of itself (`RESTORE`, `COPY`) on the same server, only clients that have seen
//! a newer state notice it. Like any Bloom filter, it accepts keys past its capacity, at a rising false
//! positive rate.
//!
//! ```no_run
//! # async fn example() -> Result<(), umbel_redis::Error> {
//! use umbel::{Keyed, blocked::Shape};
//! use umbel_redis::{Answer, Options, Server, SharedBloom};
//!
//! let server = Server::connect("redis://127.0.0.1:6379/0").await?;
//! let (shape, secret) = (Shape::for_rate(1_000_000, 0.01)?, Keyed::new(*b"16 secret bytes!"));
//! let seen = SharedBloom::<str, _>::create(&server, "seen", shape, secret, &Options::default()).await?;
//! seen.complete().await?; // there are no keys yet
//! seen.insert("https://example.org/").await?;
//! assert_ne!(seen.contains("https://example.org/").await, Answer::Absent);
//! # Ok(())
//! # }
//! ```

mod ask;
mod copy;
mod header;
mod insert;
mod make;
mod script;
mod shards;

pub use make::Found;
pub use shards::MAX_SHARDS;
pub(crate) use shards::beside;

use crate::answer::{Answer, Error, Reason, RemoteFilter};
use crate::connect::Server;
use crate::health::{Hazard, Policy};
use crate::history::History;
use header::{BYTES, FIXED, Header, Pulse};
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use umbel::blocked::Shape;
use umbel::hash::Digester;
use umbel::{Digest, Portable};

/// The maximum number of lines per script or transaction: less than a millisecond of a server's time.
const CALL: usize = 200;

/// Options for creating or opening a filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What to do if the server may lose the filter.
    pub policy: Policy,
    /// The number of shards (keys). When a filter is created, the default is the number of shards of 8 MiB that
    /// it needs, and at least twelve in a cluster. When it is opened, the default accepts any number.
    pub shards: Option<u32>,
    /// The generation. When a filter is created, the default is 1. When it is opened, the default accepts any.
    pub generation: Option<u64>,
    /// The shape that an opened filter must have. The default accepts any.
    pub shape: Option<Shape>,
}

/// A blocked Bloom filter of keys `T` on a server, hashed by `H`. The [module](crate::shared) describes its
/// layout and its guarantees.
pub struct SharedBloom<T: ?Sized, H = Portable> {
    server: Server,
    name: String,
    plan: Header,
    hasher: H,
    shards: Vec<Shard>,
    hazards: Vec<Hazard>,
    keys: PhantomData<fn(&T)>,
}

/// A shard: a range of the lines, in one key.
#[derive(Debug)]
struct Shard {
    key: String,
    fixed: [u8; FIXED],
    lines: Range<u64>,
    /// The last known state of the shard.
    seen: Mutex<Pulse>,
}

/// The number of bytes of a shard with these lines.
fn shard_bytes(lines: &Range<u64>) -> u64 {
    BYTES as u64 + (lines.end - lines.start) * 64
}

impl Shard {
    /// All shards of a filter.
    fn all(plan: &Header, name: &str) -> Vec<Self> {
        let shard = |shard| Self {
            key: shards::key(name, plan.shards, shard),
            fixed: Header { shard, ..*plan }.fixed(),
            lines: shards::lines(&plan.shape, plan.shards, shard),
            seen: Mutex::new(Pulse { home: History([0; 20]), changes: 0, complete: false }),
        };
        (0..plan.shards).map(shard).collect()
    }

    fn bytes(&self) -> u64 {
        shard_bytes(&self.lines)
    }

    /// The position of a line in the key.
    fn byte(&self, line: u64) -> u64 {
        BYTES as u64 + (line - self.lines.start) * 64
    }

    /// The last known state of the shard. Later reads must not be older.
    fn pulse(&self) -> Pulse {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, pulse: Pulse) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.home != pulse.home || seen.changes < pulse.changes {
            *seen = pulse;
        }
    }

    /// Whether a header is at home and not older than `before`. It was read from a server with this history.
    fn accept(&self, before: Pulse, now: Pulse, history: History) -> Result<(), Reason> {
        if now.home != history {
            return Err(Reason::History);
        }
        if now.home == before.home && now.changes < before.changes {
            return Err(Reason::Older);
        }
        self.remember(now);
        Ok(())
    }
}

impl<T: ?Sized, H> SharedBloom<T, H> {
    /// The shape of the filter.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.plan.shape
    }

    /// The hasher of the filter.
    #[must_use]
    pub const fn hasher(&self) -> &H {
        &self.hasher
    }

    /// The name of the filter on the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server of the filter.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// The number of shards.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.plan.shards
    }

    /// The keys of the shards.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().map(|shard| &*shard.key)
    }

    /// The generation.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.plan.generation
    }

    /// How the servers may lose the filter, as found when it was opened.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    /// Whether a key with this digest may have been inserted.
    pub async fn contains_digest(&self, digest: Digest) -> Answer {
        self.contains_digests(&[digest]).await.pop().unwrap_or(Answer::Unknown(Reason::Garbage))
    }

    /// Inserts a key by its digest, and returns the answer from just before.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the server did not acknowledge the insert.
    pub async fn insert_digest(&self, digest: Digest) -> Result<Answer, Error> {
        let answers = self.insert_digests(&[digest]).await?;
        answers.first().copied().ok_or(Error::Unknown(Reason::Garbage))
    }
}

impl<T: ?Sized, H> fmt::Debug for SharedBloom<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The hasher is omitted, because it may have a secret.
        f.debug_struct("SharedBloom")
            .field("name", &self.name)
            .field("shape", &self.plan.shape)
            .field("shards", &self.plan.shards)
            .field("generation", &self.plan.generation)
            .finish_non_exhaustive()
    }
}

crate::answer::remote_methods!(impl[T: ?Sized + Sync, H: Digester<T> + Sync] SharedBloom<T, H>: T);

impl<T: ?Sized + Sync, H: Digester<T> + Sync> RemoteFilter for SharedBloom<T, H> {
    type Key = T;

    async fn contains(&self, key: &T) -> Answer {
        self.contains_digest(self.hasher.digest(key)).await
    }

    /// `Absent` is proof that the key is new. Of several clients that insert a new key at the same time, at
    /// least one receives it. If the lines of the key are in two shards, more than one client may receive it.
    async fn insert(&self, key: &T) -> Result<Answer, Error> {
        self.insert_digest(self.hasher.digest(key)).await
    }

    async fn contains_batch<A: Borrow<T> + Sync>(&self, keys: &[A]) -> Vec<Answer> {
        let digests: Vec<Digest> =
            keys.iter().map(|key| self.hasher.digest(key.borrow())).collect();
        self.contains_digests(&digests).await
    }

    async fn insert_batch<A: Borrow<T> + Sync>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        let digests: Vec<Digest> =
            keys.iter().map(|key| self.hasher.digest(key.borrow())).collect();
        self.insert_digests(&digests).await
    }
}
