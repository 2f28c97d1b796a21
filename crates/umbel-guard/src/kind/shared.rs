//! A filter that a fleet of guards shares, in Redis or Valkey.
//!
//! ```text
//!     guard 1 --.
//!     guard 2 ---- Redis or Valkey --- "users"   the filter, of one generation; its header says whether it is complete
//!     guard 3 --'
//! ```
//!
//! Every guard adds a key to the shared filter before it writes the key to the data set, so each guard sees the
//! keys of all. A filter can be lost: evicted, flushed, or missing on a server that took over. Then no guard
//! can add keys to it, so no guard writes new keys, and all of them query the data set. The first guard that
//! notices creates a new generation for the whole fleet. It waits until the writes that were added to the old
//! filter have ended, scans the data set into the new one, and marks it as complete in its header. Guards that
//! start later, or wait for the same generation, need no scan.
//!
//! A filter that has become too full is deleted. Until the next one is complete, all guards query the data set.
//! Writes wait until the next one begins, at most as long as a write may take.
//!
//! The maximum duration of a write, [`set_timeout`](crate::Builder::set_timeout), must be the same for all
//! guards of a fleet. Otherwise [`grace`](Shared::grace) must be set to the longest of them.

use super::{Generation, Kind, Measure};
use crate::error::Trouble;
use std::io;
use std::path::Path;
use std::time::Duration;
use umbel::blocked::Shape;
use umbel::format::OpenError;
use umbel::hash::Digester;
use umbel::{Digest, Keyed};
use umbel_redis::shared::{Found, Options};
use umbel_redis::{Answer, Error, Reason, Server, SharedBloom};

/// Creates filters that are shared through a server. All guards of a fleet must use the same name, rate and
/// secret.
#[derive(Clone)]
pub struct Shared {
    server: Server,
    name: String,
    rate: f64,
    secret: Keyed,
    grace: Duration,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("name", &self.name)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

/// One generation of a shared filter.
pub struct SharedGeneration {
    filter: SharedBloom<[u8], Keyed>,
    generation: u64,
    rate: f64,
}

impl std::fmt::Debug for SharedGeneration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedGeneration")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Shares the filter `name` on the server at `url`. All guards of the fleet must pass the same secret.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn connect(url: &str, name: &str, rate: f64, secret: Keyed) -> Result<Self, Error> {
        Ok(Self::new(Server::connect(url).await?, name, rate, secret))
    }

    /// As [`connect`](Self::connect), for servers with replicas or a cluster.
    #[must_use]
    pub fn new(server: Server, name: &str, rate: f64, secret: Keyed) -> Self {
        let (name, grace) = (name.to_owned(), Duration::from_secs(10));
        Self { server, name, rate, secret, grace }
    }

    /// The longest time that a write of any guard of the fleet may take. The default is 10 seconds, twice the
    /// default of [`set_timeout`](crate::Builder::set_timeout).
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// The existing filter, if it is complete or being filled, on its own server, and large enough.
    async fn find(&self, items: u64) -> Result<Option<SharedGeneration>, Error> {
        let found = match Found::find(&self.server, &self.name).await {
            Ok(found) => found,
            Err(Error::Unknown(Reason::Missing)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let large = found.shape().items() >= items / 2;
        let options = Options::default();
        let opened = SharedBloom::open(&self.server, &self.name, self.secret, &options).await;
        match opened {
            // Another guard is filling an incomplete filter, which accepts keys.
            Ok(filter) => match filter.is_complete().await {
                Ok(_) if large => return Ok(Some(self.generation(filter))),
                Err(reason) if !is_gone(reason) => return Err(reason.into()),
                _ => {}
            },
            Err(Error::Unknown(reason)) if is_gone(reason) => {}
            // The filter may answer later, or has another secret and belongs to another application.
            Err(error) => return Err(error),
        }
        // No guard can use this filter. Only this filter is deleted, not one that another guard has created
        // since.
        found.delete(&self.server).await?;
        Ok(None)
    }

    fn generation(&self, filter: SharedBloom<[u8], Keyed>) -> SharedGeneration {
        SharedGeneration { generation: filter.generation(), filter, rate: self.rate }
    }

    async fn make(&self, items: u64) -> Result<SharedGeneration, Error> {
        // A second guard finds the filter of the first one, or finds that the first one is creating it.
        for _ in 0..100 {
            match self.find(items).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(Error::Unknown(Reason::Building)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let shape = Shape::for_rate(items, self.rate)?;
            // A new random number, which distinguishes this filter from earlier ones.
            let secret = u128::from_le_bytes(*Keyed::random().secret());
            let generation = secret as u64;
            let options = Options { generation: Some(generation), ..Options::default() };
            let made = SharedBloom::create(&self.server, &self.name, shape, self.secret, &options);
            match made.await {
                Ok(filter) => return Ok(self.generation(filter)),
                Err(Error::Exists) => {}
                Err(error) => return Err(error),
            }
        }
        // The guard that was creating the filter has ended before it was done. The next attempt finds no
        // filter.
        if let Ok(found) = Found::find(&self.server, &self.name).await
            && !found.is_ready()
        {
            found.delete(&self.server).await?;
        }
        Err(Reason::Building.into())
    }
}

/// Whether the filter is lost, and not only unreachable.
fn is_gone(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Missing
            | Reason::Foreign
            | Reason::Replaced
            | Reason::Shrunken
            | Reason::Older
            | Reason::History
    )
}

fn trouble(error: &Error) -> Trouble {
    match error {
        Error::Unknown(reason) if is_gone(*reason) => Trouble::Gone,
        Error::Unknown(Reason::Full) => Trouble::Full,
        other => Trouble::Unavailable(other.to_string().into()),
    }
}

impl Kind for Shared {
    type Generation = SharedGeneration;

    const SHARED: bool = true;

    fn target(&self) -> f64 {
        self.rate
    }

    async fn begin(&self, items: u64) -> Result<SharedGeneration, Trouble> {
        self.make(items).await.map_err(|error| trouble(&error))
    }

    fn load(&self, _: &Path) -> Result<SharedGeneration, OpenError> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }

    fn grace(&self) -> Duration {
        self.grace
    }

    async fn discard(&self, generation: &SharedGeneration) -> Result<(), Trouble> {
        let discard = async {
            match Found::find(&self.server, &self.name).await {
                Ok(found) if found.generation() == generation.generation => {
                    found.delete(&self.server).await
                }
                // Another guard has already done that.
                Ok(_) | Err(Error::Unknown(Reason::Missing)) => Ok(()),
                Err(error) => Err(error),
            }
        };
        discard.await.map_err(|error| trouble(&error))
    }
}

impl Generation for SharedGeneration {
    fn digest(&self, key: &[u8]) -> Digest {
        self.filter.hasher().digest(key)
    }

    fn check(&self) -> u64 {
        self.generation
    }

    async fn contains(&self, digest: Digest) -> Result<bool, Trouble> {
        match self.filter.contains_digest(digest).await {
            Answer::Absent => Ok(false),
            Answer::Maybe => Ok(true),
            Answer::Unknown(reason) => Err(trouble(&reason.into())),
        }
    }

    async fn add(&self, digest: Digest) -> Result<(), Trouble> {
        self.add_all(&[digest]).await
    }

    /// An insert that succeeds has reached exactly this filter, on its own server, complete or not.
    async fn add_all(&self, digests: &[Digest]) -> Result<(), Trouble> {
        self.filter.insert_digests(digests).await.map(drop).map_err(|error| trouble(&error))
    }

    async fn missing(&self, digests: &[Digest]) -> Result<u64, Trouble> {
        self.filter.missing_digests(digests).await.map_err(|reason| trouble(&reason.into()))
    }

    async fn is_complete(&self) -> Result<bool, Trouble> {
        self.filter.is_complete().await.map_err(|reason| trouble(&reason.into()))
    }

    async fn activate(&self) -> Result<(), Trouble> {
        self.filter.complete().await.map_err(|error| trouble(&error))
    }

    /// The planned values: counting its bits would read the whole filter.
    fn measure(&self) -> Measure {
        let shape = self.filter.shape();
        Measure {
            bytes: shape.bytes(),
            capacity: shape.items(),
            items: 0,
            fill: 0.0,
            rate: self.rate,
        }
    }
}
