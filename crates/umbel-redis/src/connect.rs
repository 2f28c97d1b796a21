//! One thing to send pipelines to: a server, the primary among its replicas, or a cluster.
//!
//! | | addresses | who is asked |
//! |---|---|---|
//! | [`Server::connect`] | one | that server |
//! | [`Server::replicated`] | some, without Sentinel | whichever says that it is the primary |
//! | [`Server::cluster`] | some of the nodes | the primary of a key's slot |
//!
//! Addresses are URLs of the redis crate: `redis://user:password@host:port/db`, `rediss://` with the
//! feature `tls`, `valkey://` likewise. Nothing waits longer than [`Limits`] say, and nothing is tried more
//! often; whatever is sent here may be sent twice.

use crate::answer::{Error, Reason};
use crate::history::History;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, SingleNodeRoutingInfo, SlotAddr};
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, Value};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// How long is waited, and how often tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a connection.
    pub connect: Duration,
    /// For the reply to a pipeline.
    pub reply: Duration,
    /// How often something is tried again when a connection broke or a slot moved.
    pub retries: u32,
}

impl Default for Limits {
    /// One second to connect, a quarter of one for a reply, two retries.
    fn default() -> Self {
        Self { connect: Duration::from_secs(1), reply: Duration::from_millis(250), retries: 2 }
    }
}

impl Limits {
    /// What a call takes at most, with all that it may wait for.
    pub(crate) fn total(&self) -> Duration {
        self.connect + self.reply * (self.retries + 1)
    }
}

/// A connection that may be cloned and shared by any number of filters and tasks.
#[derive(Clone)]
pub struct Server {
    link: Arc<Link>,
    limits: Limits,
}

enum Link {
    Primary(Primary),
    Cluster(Box<Cluster>),
}

struct Cluster {
    connection: ClusterConnection,
    /// One that sends nothing twice, made when it is first needed.
    once: OnceCell<ClusterConnection>,
    client: ClusterClient,
}

/// One primary, wherever it is.
struct Primary {
    clients: Vec<Client>,
    open: Mutex<Open>,
}

/// The connection in use. Connections never come back by themselves: whoever answers on one is the
/// process that answered first.
#[derive(Default)]
struct Open {
    connection: Option<MultiplexedConnection>,
    /// How many there have been.
    number: u64,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs have passwords in them.
        let kind = if self.is_cluster() { "cluster" } else { "primary" };
        f.debug_struct("Server").field("kind", &kind).field("limits", &self.limits).finish()
    }
}

impl Server {
    /// The server at this URL.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if it is no URL, [`Error::Unknown`] if nobody answers.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::replicated(&[url], Limits::default()).await
    }

    /// The primary among these servers, and the one that is it later, when it has become another.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), also if none of them is a primary.
    pub async fn replicated(urls: &[&str], limits: Limits) -> Result<Self, Error> {
        let clients = urls.iter().map(|url| Client::open(*url).map_err(|error| address(&error)));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let primary = Primary { clients, open: Mutex::default() };
        within(limits.total(), primary.get(&limits)).await?;
        Ok(Self { link: Arc::new(Link::Primary(primary)), limits })
    }

    /// The cluster that these nodes belong to.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn cluster(urls: &[&str], limits: Limits) -> Result<Self, Error> {
        let client = |retries| {
            let builder = ClusterClientBuilder::new(urls.iter().copied())
                .retries(retries)
                .min_retry_wait(5)
                .max_retry_wait(50)
                .connection_timeout(limits.connect)
                .response_timeout(limits.reply)
                .overall_response_timeout(Some(limits.total()));
            builder.build().map_err(|error| address(&error))
        };
        let (often, client) = (client(limits.retries)?, client(0)?);
        let connection = within(limits.total() + limits.connect, open(&often)).await?;
        let cluster = Cluster { connection, once: OnceCell::new(), client };
        Ok(Self { link: Arc::new(Link::Cluster(cluster.into())), limits })
    }

    /// What it is limited by.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The same connection with other limits.
    ///
    /// Only what is sent to a single server or a replica set is limited by them; a cluster keeps those
    /// that it was connected with.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { link: Arc::clone(&self.link), limits }
    }

    /// Whether keys are spread over servers.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(*self.link, Link::Cluster(_))
    }

    /// The replies to a pipeline that is about one key, or about keys of its slot; errors of single
    /// commands are among the replies. Whatever it was, all replies are from one server.
    pub(crate) async fn ask(&self, key: &str, pipeline: Pipeline) -> Result<Vec<Value>, Reason> {
        Ok(self.ask_noting_retries(key, pipeline).await?.0)
    }

    /// The same, and whether it was sent twice because a connection broke. A cluster does not tell.
    pub(crate) async fn ask_noting_retries(
        &self,
        key: &str,
        pipeline: Pipeline,
    ) -> Result<(Vec<Value>, bool), Reason> {
        let asked = pipeline.len();
        let replies = within(self.limits.total(), async {
            match &*self.link {
                Link::Primary(primary) => primary.ask(&pipeline, &self.limits).await,
                Link::Cluster(cluster) => {
                    Ok((route(cluster.connection.clone(), key, pipeline).await?, false))
                }
            }
        });
        let (replies, repeated) = replies.await?;
        if replies.len() == asked { Ok((replies, repeated)) } else { Err(Reason::Garbage) }
    }

    /// The reply to one command about a key that must not be sent twice.
    pub(crate) async fn ask_once(&self, key: &str, command: Cmd) -> Result<Value, Reason> {
        let mut pipeline = Pipeline::with_capacity(1);
        pipeline.add_command(command);
        let replies = within(self.limits.total(), async {
            match &*self.link {
                Link::Primary(primary) => {
                    let limits = Limits { retries: 0, ..self.limits };
                    Ok(primary.ask(&pipeline, &limits).await?.0)
                }
                Link::Cluster(cluster) => {
                    let once = cluster.once.get_or_try_init(|| open(&cluster.client)).await?;
                    route(once.clone(), key, pipeline).await
                }
            }
        });
        replies.await?.pop().ok_or(Reason::Garbage)
    }

    /// The reply to one command about a key.
    pub(crate) async fn ask_one(&self, key: &str, command: Cmd) -> Result<Value, Reason> {
        let mut pipeline = Pipeline::with_capacity(1);
        pipeline.add_command(command);
        let reply = self.ask(key, pipeline).await?.pop();
        fine(reply.ok_or(Reason::Garbage)?)
    }
}

impl Primary {
    async fn ask(
        &self,
        pipeline: &Pipeline,
        limits: &Limits,
    ) -> Result<(Vec<Value>, bool), Reason> {
        let mut tries = 0;
        loop {
            let (mut connection, number) = self.get(limits).await?;
            connection.set_response_timeout(limits.reply);
            let replies = connection.req_packed_commands(pipeline, 0, pipeline.len()).await;
            let reason = match replies {
                // Among several servers another one may be the primary by now.
                Ok(replies) if self.clients.len() > 1 && replies.iter().any(is_of_replica) => {
                    if tries == limits.retries {
                        return Ok((replies, tries > 0));
                    }
                    Reason::ReadOnly
                }
                Ok(replies) => return Ok((replies, tries > 0)),
                Err(error) => reason_of(&error),
            };
            // A late reply, or half of one, is for nobody.
            self.drop(number).await;
            let again = matches!(reason, Reason::Disconnected | Reason::ReadOnly);
            if !again || tries == limits.retries {
                return Err(reason);
            }
            tries += 1;
        }
    }

    /// The connection in use, or a new one.
    async fn get(&self, limits: &Limits) -> Result<(MultiplexedConnection, u64), Reason> {
        let mut open = self.open.lock().await;
        if let Some(connection) = &open.connection {
            return Ok((connection.clone(), open.number));
        }
        let connection = self.find(limits).await?;
        open.connection = Some(connection.clone());
        open.number += 1;
        Ok((connection, open.number))
    }

    /// A new connection to the primary. A single server is taken for what it is.
    async fn find(&self, limits: &Limits) -> Result<MultiplexedConnection, Reason> {
        let mut reason = Reason::Disconnected;
        for client in &self.clients {
            match connect(client, limits).await {
                Ok(connection) if self.clients.len() == 1 => return Ok(connection),
                Ok(mut connection) => match is_primary(&mut connection).await {
                    Ok(true) => return Ok(connection),
                    Ok(false) => reason = Reason::NotPrimary,
                    Err(other) => reason = other,
                },
                Err(other) => reason = other,
            }
        }
        Err(reason)
    }

    /// Never uses a connection again.
    async fn drop(&self, number: u64) {
        let mut open = self.open.lock().await;
        if open.number == number {
            open.connection = None;
        }
    }
}

async fn open(client: &ClusterClient) -> Result<ClusterConnection, Reason> {
    client.get_async_connection().await.map_err(|error| reason_of(&error))
}

/// Sends a pipeline to the primary that has this key.
async fn route(
    mut connection: ClusterConnection,
    key: &str,
    pipeline: Pipeline,
) -> Result<Vec<Value>, Reason> {
    let (asked, route) = (pipeline.len(), Route::with_key(key, SlotAddr::Master));
    let route = SingleNodeRoutingInfo::SpecificNode(route);
    let replies = connection.route_pipeline(pipeline, 0, asked, route).await;
    replies.map_err(|error| reason_of(&error))
}

async fn connect(client: &Client, limits: &Limits) -> Result<MultiplexedConnection, Reason> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limits.connect))
        .set_response_timeout(Some(limits.reply));
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    connection.map_err(|error| reason_of(&error))
}

async fn is_primary(connection: &mut MultiplexedConnection) -> Result<bool, Reason> {
    let info = connection.req_packed_command(redis::cmd("INFO").arg("replication")).await;
    match History::of(&info.map_err(|error| reason_of(&error))?) {
        Ok(_) => Ok(true),
        Err(Reason::NotPrimary) => Ok(false),
        Err(reason) => Err(reason),
    }
}

async fn within<T>(
    time: Duration,
    work: impl Future<Output = Result<T, Reason>>,
) -> Result<T, Reason> {
    tokio::time::timeout(time, work).await.unwrap_or(Err(Reason::TimedOut))
}

fn address(error: &RedisError) -> Error {
    // What was wrong with it, but not the URL: there may be a password in it.
    Error::Address(format!("this is no address of a server: {}", error.category()))
}

/// Whether only a replica replies like this: it takes no writes, or says what it is.
fn is_of_replica(reply: &Value) -> bool {
    match reply {
        Value::ServerError(error) => error.code() == "READONLY",
        Value::BulkString(text) if text.starts_with(b"# Replication") => {
            History::of(reply) == Err(Reason::NotPrimary)
        }
        _ => false,
    }
}

/// A reply that is no error.
pub(crate) fn fine(reply: Value) -> Result<Value, Reason> {
    match reply {
        Value::ServerError(error) => Err(reason_of_code(error.code(), error.details())),
        reply => Ok(reply),
    }
}

/// Whether this reply says that a script is not known to the server.
pub(crate) fn is_no_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT")
}

fn reason_of(error: &RedisError) -> Reason {
    if error.is_timeout() {
        return Reason::TimedOut;
    }
    match error.kind() {
        ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Reason::Disconnected,
        ErrorKind::AuthenticationFailed => Reason::NotPermitted,
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Reason::Garbage,
        _ => match error.code() {
            Some(code) => reason_of_code(code, error.detail()),
            None => Reason::Refused,
        },
    }
}

fn reason_of_code(code: &str, details: Option<&str>) -> Reason {
    match code {
        "LOADING" => Reason::Loading,
        "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "CROSSSLOT" => Reason::Moved,
        "READONLY" | "NOREPLICAS" | "MISCONF" => Reason::ReadOnly,
        "MASTERDOWN" => Reason::NotPrimary,
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => Reason::NotPermitted,
        "WRONGTYPE" => Reason::Foreign,
        "OOM" => Reason::OutOfMemory,
        "BUSY" => Reason::Busy,
        "ERR" if details.is_some_and(|text| text.starts_with("unknown command")) => {
            Reason::Unsupported
        }
        // Redis 6.2 wraps an error of a command in one of the script that sent it.
        "ERR" if details.is_some_and(|text| text.contains(": WRONGTYPE ")) => Reason::Foreign,
        _ => Reason::Refused,
    }
}

/// The bytes of a reply, if it is some.
pub(crate) fn bytes_of(reply: &Value) -> Result<&[u8], Reason> {
    match reply {
        Value::BulkString(bytes) => Ok(bytes),
        Value::VerbatimString { text, .. } => Ok(text.as_bytes()),
        Value::SimpleString(text) => Ok(text.as_bytes()),
        Value::ServerError(error) => Err(reason_of_code(error.code(), error.details())),
        _ => Err(Reason::Garbage),
    }
}

/// The replies to what was sent between MULTI and EXEC, of which there must be as many. EXEC does not say
/// why it refuses: the commands that were queued before it do.
pub(crate) fn transaction<'a>(
    queued: &[Value],
    exec: &'a Value,
    asked: usize,
) -> Result<&'a [Value], Reason> {
    match exec {
        Value::Array(replies) if replies.len() == asked => Ok(replies),
        Value::ServerError(error) => {
            let refused = queued.iter().find_map(|reply| fine(reply.clone()).err());
            Err(refused.unwrap_or_else(|| reason_of_code(error.code(), error.details())))
        }
        _ => Err(Reason::Garbage),
    }
}

/// A command of some arguments.
pub(crate) fn command(name: &str) -> Cmd {
    redis::cmd(name)
}
