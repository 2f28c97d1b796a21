//! `umbel guard`: a filter before a table of SQLite, redb or PostgreSQL.

mod attach;
mod check;
pub(crate) mod cli;
mod http;
mod patient;
mod replay;
mod serve;
#[cfg(unix)]
mod socket;
mod stats;
mod token;

use anyhow::{Context, Result};
use cli::{Filter, Target, Verb};
use umbel_guard::set::{Postgres, Redb, Sqlite};
use umbel_guard::{DataSet, Family, Guard, Local, State};

/// Whether the answer is yes, for verbs that have one.
pub(crate) fn run(verb: Verb) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("threads")?.block_on(run_in_time(verb))
}

/// Opens what is guarded, whatever it is, and goes on with it: `open` for verbs that may write to it, `read_only` for others.
macro_rules! with_set {
    ($target:expr, $open:ident, $set:ident => $do:expr) => {{
        let target: &Target = $target;
        if let Some(path) = &target.redb {
            let opened = Redb::$open(path, &target.table);
            let $set = opened.with_context(|| path.display().to_string())?;
            $do
        } else if let Some(path) = &target.sqlite {
            let opened = Sqlite::$open(path, &target.table, &target.key, &target.value);
            let $set = opened.with_context(|| path.display().to_string())?;
            $do
        } else {
            let url = target.postgres()?;
            // The URL may have a password in it, and is not told. What is only read is left to the guard.
            let opened = Postgres::connect(&url, &target.table, &target.key, &target.value);
            let $set = opened.await.context("PostgreSQL")?;
            $do
        }
    }};
}

async fn run_in_time(verb: Verb) -> Result<bool> {
    match &verb {
        Verb::Attach(args) => with_set!(&args.target, open, set => attach::run(set, args).await),
        Verb::Check(args) => with_set!(&args.target, read_only, set => check::run(set, args).await),
        Verb::Stats(args) => with_set!(&args.target, read_only, set => stats::run(set, args).await),
        Verb::Serve(args) => {
            let token = serve::prepare(args)?;
            with_set!(&args.target, open, set => serve::run(set, args, token).await)
        }
        Verb::Replay(args) => {
            with_set!(&args.target, read_only, set => replay::run(set, args).await)
        }
    }
}

impl Target {
    /// The address of the server, which may be in a variable so that no list of processes shows its password.
    fn postgres(&self) -> Result<String> {
        let told = self.postgres.clone().or_else(|| std::env::var("UMBEL_POSTGRES").ok());
        told.context("what is to be guarded? --redb, --sqlite or --postgres, or UMBEL_POSTGRES")
    }
}

impl Filter {
    fn kind(&self) -> Local {
        Local::new(self.family.map_or(Family::Blocked, cli::Families::family), self.rate)
    }

    /// A guard that changes nothing, with the filter that is saved in its folder; one is built in memory if there is none.
    async fn guard<D: DataSet>(&self, set: D) -> Result<Guard<D, Local>> {
        let guard = self.reading(set).await?;
        if guard.state() != State::Active {
            crate::output::note(
                "there is no saved filter that can be used: one is built for this run; guard attach saves one",
            );
            guard.rebuild().await.context("the filter")?;
        }
        Ok(guard)
    }

    /// The same without building one.
    async fn reading<D: DataSet>(&self, set: D) -> Result<Guard<D, Local>> {
        let builder = Guard::builder(set, self.kind()).folder(&self.folder).read_only();
        let started = builder.without_background().start().await;
        started.with_context(|| self.folder.display().to_string())
    }

    /// A guard whose filter is saved in its folder, without building one.
    async fn opened<D: DataSet>(&self, set: D) -> Result<Guard<D, Local>> {
        let builder = Guard::builder(set, self.kind()).folder(&self.folder).without_background();
        builder.start().await.with_context(|| self.folder.display().to_string())
    }
}
