//! Connections to a server, to the primary among replicas, or to a cluster.
//!
//! | | addresses | target |
//! |---|---|---|
//! | [`Server::connect`] | one | that server |
//! | [`Server::replicated`] | several, without Sentinel | the one that reports itself as the primary |
//! | [`Server::cluster`] | some of the nodes | the primary of a key's slot |
//!
//! Addresses are URLs of the redis crate: `redis://user:password@host:port/db`, `rediss://` with the feature
//! `tls`, `valkey://` likewise. [`Limits`] bound every wait and the number of retries. A command may be sent
//! twice.

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

/// Time-outs and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time-out for opening a connection.
    pub connect: Duration,
    /// The time-out for the reply to a pipeline.
    pub reply: Duration,
    /// The number of retries after a broken connection or a moved slot.
    pub retries: u32,
}

impl Default for Limits {
    /// One second to connect, a quarter of a second for a reply, two retries.
    fn default() -> Self {
        Self { connect: Duration::from_secs(1), reply: Duration::from_millis(250), retries: 2 }
    }
}

impl Limits {
    /// The maximum duration of a call, with all of its waits.
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
    /// A connection that sends nothing twice, opened on first use.
    once: OnceCell<ClusterConnection>,
    client: ClusterClient,
}

/// A primary server, at any of these addresses.
struct Primary {
    clients: Vec<Client>,
    open: Mutex<Open>,
}

/// The connection in use. A broken connection is never reopened by itself, so all replies on one connection
/// come from the same server process.
#[derive(Default)]
struct Open {
    connection: Option<MultiplexedConnection>,
    /// The number of connections so far.
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
    /// Connects to the server at this URL.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if the URL is invalid, [`Error::Unknown`] if the server does not answer.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::replicated(&[url], Limits::default()).await
    }

    /// Connects to the primary among these servers, and after a failover to the new primary.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), also if none of the servers is a primary.
    pub async fn replicated(urls: &[&str], limits: Limits) -> Result<Self, Error> {
        let clients = urls.iter().map(|url| Client::open(*url).map_err(|error| address(&error)));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let primary = Primary { clients, open: Mutex::default() };
        within(limits.total(), primary.get(&limits)).await?;
        Ok(Self { link: Arc::new(Link::Primary(primary)), limits })
    }

    /// Connects to the cluster that these nodes belong to.
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

    /// The limits of this connection.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The same connection with other limits.
    ///
    /// The limits apply to a single server or a replica set. A cluster keeps the limits that it was connected
    /// with.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { link: Arc::clone(&self.link), limits }
    }

    /// Whether keys are distributed over several servers.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(*self.link, Link::Cluster(_))
    }

    /// The replies to a pipeline about one key, or about keys of its slot. Errors of single commands are among
    /// the replies. All replies are from the same server.
    pub(crate) async fn ask(&self, key: &str, pipeline: Pipeline) -> Result<Vec<Value>, Reason> {
        Ok(self.ask_noting_retries(key, pipeline).await?.0)
    }

    /// As [`ask`](Self::ask), and whether the pipeline was sent twice because a connection broke. A cluster
    /// does not report that.
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
                // With several servers, another one may be the primary by now.
                Ok(replies) if self.clients.len() > 1 && replies.iter().any(is_of_replica) => {
                    if tries == limits.retries {
                        return Ok((replies, tries > 0));
                    }
                    Reason::ReadOnly
                }
                Ok(replies) => return Ok((replies, tries > 0)),
                Err(error) => reason_of(&error),
            };
            // A late or partial reply must not reach a later call.
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

    /// Opens a connection to the primary. With one address, the server is not checked.
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

    /// Discards a connection.
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

/// Sends a pipeline to the primary of this key's slot.
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
    // The message omits the URL, which may contain a password.
    Error::Address(format!("this is no address of a server: {}", error.category()))
}

/// Whether only a replica replies like this: it refuses writes, or reports its role.
fn is_of_replica(reply: &Value) -> bool {
    match reply {
        Value::ServerError(error) => error.code() == "READONLY",
        Value::BulkString(text) if text.starts_with(b"# Replication") => {
            History::of(reply) == Err(Reason::NotPrimary)
        }
        _ => false,
    }
}

/// The reply, unless it is an error.
pub(crate) fn fine(reply: Value) -> Result<Value, Reason> {
    match reply {
        Value::ServerError(error) => Err(reason_of_code(error.code(), error.details())),
        reply => Ok(reply),
    }
}

/// Whether the reply says that the server does not know the script.
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
        // Redis 6.2 wraps the error of a command in an error of the script that sent it.
        "ERR" if details.is_some_and(|text| text.contains(": WRONGTYPE ")) => Reason::Foreign,
        _ => Reason::Refused,
    }
}

/// The bytes of a reply, if it has any.
pub(crate) fn bytes_of(reply: &Value) -> Result<&[u8], Reason> {
    match reply {
        Value::BulkString(bytes) => Ok(bytes),
        Value::VerbatimString { text, .. } => Ok(text.as_bytes()),
        Value::SimpleString(text) => Ok(text.as_bytes()),
        Value::ServerError(error) => Err(reason_of_code(error.code(), error.details())),
        _ => Err(Reason::Garbage),
    }
}

/// The replies to the commands between MULTI and EXEC, whose number must match. EXEC does not say why it
/// refuses: the replies of the queued commands do.
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

/// A command with its arguments.
pub(crate) fn command(name: &str) -> Cmd {
    redis::cmd(name)
}
