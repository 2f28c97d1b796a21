//! `umbel guard serve`: a small HTTP endpoint in front of a table.

use super::Task;
use super::attach::claim;
use super::attached::{Attached, Purpose};
use super::cli::Serve;
use super::http::{App, Door, router};
use super::log::Log;
use super::patient::Patient;
use super::token::Token;
use crate::output::print;
use anyhow::{Context, Result, bail};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use umbel_guard::{Builder, DataSet, Guard, Local};

/// The token, before anything is opened. Refuses to listen where clients that were not meant could write, unless that was
/// asked for.
pub(super) fn prepare(args: &Serve) -> Result<Option<Token>> {
    let (listen, token) = (args.listen, args.token_file.as_deref().map(Token::read).transpose()?);
    if args.is_on_socket() || listen.ip().is_loopback() {
        return Ok(token);
    }
    if !args.public {
        bail!("{listen}: other machines can reach this address; --public allows it");
    }
    if token.is_none() && !args.insecure {
        bail!(
            "{listen}: every client that reaches this address could read and write: ask for a token with --token-file FILE, or \
             allow it with --insecure"
        );
    }
    Ok(token)
}

pub(super) async fn run<D: DataSet>(
    set: D,
    task: &Task<'_>,
    args: &Serve,
    token: Option<Token>,
) -> Result<bool> {
    let log = Log::start();
    let events = log.clone();
    let mut builder = Guard::builder(set, task.kind()).observe(move |event| events.event(event));
    if !args.no_stamp {
        builder = builder.folder(task.folder);
    }
    let builder = builder.remember_absences(10_000, Duration::from_secs(5));
    let mut stop = Stop::new().context("signals")?;
    // First: a server that cannot listen must not take the data set away from the guard that runs.
    let (listener, at) = Listener::open(args).await?;
    let at = Arc::new(at);
    let (table, place) = (&task.attached.table, &task.attached.place);
    log.note(format!("started: {at} for table {table} of {place}"));
    let guard = match started(builder, task, args).await {
        Ok(guard) => guard,
        Err(error) => {
            at.leave();
            log.end();
            return Err(error);
        }
    };
    let door = Door { hosts: at.hosts(&args.host), token, read_only: args.read_only };
    let limit = usize::try_from(args.max_value)?;
    let app = App::new(guard.clone(), door, limit, args.timeout);
    print(format!("{at}\n"))?;
    tokio::select! {
        () = accept(listener, Arc::new(app), args, &log) => {}
        () = stop.told() => {}
    }
    log.note("closing; a second signal ends the process at once");
    // In a task of its own: saving may keep this one busy.
    let (left, last) = (at.clone(), log.clone());
    let again = tokio::spawn(async move {
        stop.told().await;
        left.leave();
        last.warn("ended before the filter was saved; the next start reads the journal");
        last.end();
        std::process::exit(130);
    });
    let closed = guard.close().await.context("the filter");
    again.abort();
    at.leave();
    log.end();
    closed?;
    Ok(true)
}

/// The guard; its folder remembers what it is attached to.
async fn started<D: DataSet>(
    builder: Builder<D, Local>,
    task: &Task<'_>,
    args: &Serve,
) -> Result<Guard<D, Local>> {
    let guard = builder.start().await.with_context(|| task.name())?;
    if !args.no_stamp {
        claim(task, Purpose::Use)?;
        if Attached::read(task.folder)?.is_none() {
            task.attached.write(task.folder)?;
        }
    }
    Ok(guard)
}

/// A connection, whatever it is made of.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What connections come from.
enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
}

/// Where clients find it.
enum At {
    Address(std::net::SocketAddr),
    #[cfg(unix)]
    Socket(super::socket::Name),
}

impl Listener {
    async fn open(args: &Serve) -> Result<(Self, At)> {
        #[cfg(unix)]
        if let Some(path) = &args.socket {
            let (listener, name) = super::socket::listen(path, args.socket_mode)?;
            let listener = tokio::net::UnixListener::from_std(listener);
            let listener = listener.with_context(|| path.display().to_string())?;
            return Ok((Self::Unix(listener), At::Socket(name)));
        }
        let listener = TcpListener::bind(args.listen).await;
        let listener = listener.with_context(|| args.listen.to_string())?;
        let address = listener.local_addr().context("the address")?;
        Ok((Self::Tcp(listener), At::Address(address)))
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            #[cfg(unix)]
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

impl At {
    /// The names that requests may be for; any, on a socket that no browser can reach.
    fn hosts(&self, names: &[String]) -> Option<Vec<String>> {
        let address = match self {
            Self::Address(address) => address,
            #[cfg(unix)]
            Self::Socket(_) => return None,
        };
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        for name in names {
            hosts.extend([name.to_lowercase(), format!("{}:{port}", name.to_lowercase())]);
        }
        Some(hosts)
    }

    fn leave(&self) {
        #[cfg(unix)]
        if let Self::Socket(name) = self {
            name.remove();
        }
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "http://{address}/"),
            #[cfg(unix)]
            Self::Socket(name) => write!(f, "unix:{}", name.path().display()),
        }
    }
}

async fn accept<D: DataSet>(listener: Listener, app: Arc<App<D>>, args: &Serve, log: &Log) {
    let places = Arc::new(Semaphore::new(args.max_connections));
    let router = router(app);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok(stream) => Patient::new(stream, args.timeout),
            Err(error) => {
                // Out of file descriptors, for example: other connections may close some.
                log.warn(format!("a connection was not taken: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let mut server = http1::Builder::new();
        // It runs from the end of the last answer, so it is the time of an idle connection too.
        server.timer(TokioTimer::new()).header_read_timeout(args.timeout).max_headers(64);
        tokio::spawn(async move {
            // A client that breaks off is not our error.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

/// Signals that ask the process to end.
struct Stop {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Stop {
    /// From here on a signal does not end the process by itself.
    fn new() -> io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?],
        })
    }

    /// Returns when the process is asked to end, once for every signal.
    async fn told(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
