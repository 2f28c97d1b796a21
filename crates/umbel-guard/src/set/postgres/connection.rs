//! Connections to the primary server, and a pool of them.

use super::Postgres;
use super::error::{PostgresError, Result};
use super::key::{Keys, Values};
use super::stamp::Stamped;
use arc_swap::ArcSwapOption;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls, Statement};

/// A connection, and its prepared statements.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) slot: usize,
    pub(super) client: Client,
    pub(super) get: Statement,
    pub(super) put: Statement,
    pub(super) delete: Statement,
    pub(super) stamped: ArcSwapOption<Stamped>,
}

/// A slot of the pool. Its connection is opened on first use.
#[derive(Debug, Default)]
pub(super) struct Slot {
    open: ArcSwapOption<Open>,
    opening: tokio::sync::Mutex<()>,
}

/// A connection to a primary server.
pub(super) async fn connect(config: &Config) -> Result<Client> {
    let mut config = config.clone();
    if config.get_hosts().len() > 1 || config.get_hostaddrs().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    let client = connect_to_any(&config).await.map_err(|error| match error {
        PostgresError::Postgres(error) if refuses_writes(&error) => PostgresError::Standby,
        PostgresError::Postgres(error) => PostgresError::Connect(error),
        error => error,
    })?;
    let standby = client.query_one("SELECT pg_is_in_recovery()", &[]).await;
    if standby.and_then(|row| row.try_get(0)).map_err(PostgresError::Connect)? {
        return Err(PostgresError::Standby);
    }
    Ok(client)
}

/// Whether the error says that no host of the URL is a primary server.
fn refuses_writes(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Opens a connection, which lives as long as its client.
async fn connect_to_any(config: &Config) -> Result<Client> {
    #[cfg(feature = "tls")]
    if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
        let (client, connection) = config.connect(tls()?).await?;
        return Ok(carried(client, connection));
    }
    let (client, connection) = config.connect(NoTls).await?;
    Ok(carried(client, connection))
}

fn carried(
    client: Client,
    connection: impl Future<Output = std::result::Result<(), tokio_postgres::Error>> + Send + 'static,
) -> Client {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    client
}

/// Trusts the certificate authorities that this machine trusts.
#[cfg(feature = "tls")]
fn tls() -> Result<tokio_postgres_rustls::MakeRustlsConnect> {
    use rustls::crypto::ring::default_provider;
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(PostgresError::Tls)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(tokio_postgres_rustls::MakeRustlsConnect::new(config))
}

impl Postgres {
    pub(super) fn types(&self) -> [Type; 4] {
        let key = if self.keys == Keys::Bytes { Type::BYTEA } else { Type::TEXT };
        let value = if self.values == Values::Bytes { Type::BYTEA } else { Type::TEXT };
        [key, value, Type::INT8, Type::INT8]
    }

    pub(super) async fn open(&self, slot: usize) -> Result<Open> {
        let client = connect(&self.config).await?;
        let opening = async {
            // Only at this isolation level does a statement that waited for a lock see what was changed during
            // the wait.
            let set = format!(
                "SET statement_timeout = {time}; SET idle_in_transaction_session_timeout = {time};
                 SET default_transaction_isolation = 'read committed'",
                time = self.lingering.as_millis()
            );
            client.batch_execute(&set).await?;
            let types = self.types();
            let get = client.prepare_typed(&self.sql.get, &types[..1]).await?;
            let put = client.prepare_typed(&self.sql.put.plain, &types[..2]).await?;
            Ok((get, put, client.prepare_typed(&self.sql.delete.plain, &types[..1]).await?))
        };
        let (get, put, delete) = opening.await.map_err(PostgresError::Connect)?;
        Ok(Open { slot, client, get, put, delete, stamped: ArcSwapOption::empty() })
    }

    /// The next connection of the pool, round-robin.
    pub(super) async fn any(&self) -> Result<Arc<Open>> {
        let number = self.next.fetch_add(1, Relaxed) % self.slots.len();
        let slot = &self.slots[number];
        let usable = |open: &Arc<Open>| !open.client.is_closed();
        if let Some(open) = slot.open.load_full().filter(usable) {
            return Ok(open);
        }
        // Boxed: this future is large and rarely needed, and would enlarge that of every query.
        Box::pin(async {
            let _one = slot.opening.lock().await;
            if let Some(open) = slot.open.load_full().filter(usable) {
                return Ok(open);
            }
            let open = Arc::new(self.open(number).await?);
            if slot.open.swap(Some(open.clone())).is_some() {
                self.replaced.fetch_add(1, Relaxed);
            }
            Ok(open)
        })
        .await
    }
}
