//! `umbel guard serve`: a small HTTP endpoint before a table.

use super::cli::Serve;
use super::http::{App, router};
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use umbel_guard::{DataSet, Guard};

/// Connections at a time.
const CONNECTIONS: usize = 1_024;
/// How long a header may take.
const HEADER: Duration = Duration::from_secs(10);

/// Whether it may listen there.
pub(super) fn may_listen(args: &Serve) -> Result<()> {
    if !args.listen.ip().is_loopback() && !args.public {
        bail!("{}: other machines could write there; --public allows it", args.listen);
    }
    Ok(())
}

pub(super) async fn run<D: DataSet>(set: D, args: &Serve) -> Result<bool> {
    let builder = Guard::builder(set, args.filter.kind()).folder(&args.filter.folder);
    let builder = builder.remember_absences(10_000, Duration::from_secs(5));
    let name = || args.filter.folder.display().to_string();
    let guard = builder.start().await.with_context(name)?;
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| args.listen.to_string())?;
    let address = listener.local_addr().context("the address")?;
    let limit = usize::try_from(args.max_value)?;
    let app = App::new(guard.clone(), address, &args.host, limit);
    print(format!("http://{address}/\n"))?;
    tokio::select! {
        () = accept(listener, Arc::new(app)) => {}
        () = told_to_stop() => {}
    }
    note("closing");
    guard.close().await.context("the filter")?;
    Ok(true)
}

async fn accept<D: DataSet>(listener: TcpListener, app: Arc<App<D>>) {
    let (router, places) = (router(app), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, for example: others may close some.
                note(&format!("a connection was not taken: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEADER).max_headers(64);
        tokio::spawn(async move {
            // Whoever breaks off knows best why.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

/// Returns when the process is asked to end.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
