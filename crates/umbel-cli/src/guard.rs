//! `umbel guard`: a filter before a table of SQLite, redb or PostgreSQL.

mod attach;
mod attached;
mod audit;
mod built;
mod check;
pub(crate) mod cli;
mod family;
mod http;
mod log;
mod open;
mod patient;
mod replay;
mod serve;
#[cfg(unix)]
mod socket;
mod stats;
mod token;

use anyhow::{Context, Result, anyhow};
use attached::{Attached, Place, Purpose};
use audit::{End, audit};
use cli::Verb;
use open::Opening;
use std::path::Path;
use umbel_guard::{DataSet, Guard, Local, StartError, State};

/// Whether the answer is yes, for verbs that have one.
pub(crate) fn run(verb: Verb) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("threads")?.block_on(run_in_time(verb))
}

/// Opens what is guarded, whatever it is, and goes on with it.
macro_rules! with_set {
    ($task:expr, $opening:expr, $set:ident => $do:expr) => {{
        let (task, opening): (&Task<'_>, Opening) = ($task, $opening);
        match &task.attached.place {
            Place::Redb(path) => {
                let $set = open::redb(path, task, opening)?;
                $do
            }
            Place::Sqlite(path) => {
                let $set = open::sqlite(path, task, opening)?;
                $do
            }
            Place::Postgres(url) => {
                let $set = open::postgres(url, task, opening).await?;
                $do
            }
        }
    }};
}

async fn run_in_time(verb: Verb) -> Result<bool> {
    let (target, filter) = match &verb {
        Verb::Attach(args) => (&args.target, &args.filter),
        Verb::Check(args) => (&args.target, &args.filter),
        Verb::Stats(args) => (&args.target, &args.filter),
        Verb::Serve(args) => (&args.target, &args.filter),
        Verb::Replay(args) => (&args.target, &args.filter),
    };
    let purpose = match &verb {
        Verb::Attach(args) if args.force => Purpose::Replace,
        Verb::Attach(_) => Purpose::Attach,
        _ => Purpose::Use,
    };
    let attached = Attached::resolve(target, filter, purpose)?;
    let lacks_password = attached.lacks_password(target);
    let task = &Task { attached, folder: &filter.folder, lacks_password };
    match &verb {
        Verb::Attach(_) => {
            with_set!(task, Opening::Writing, set => attach::run(set, task, purpose).await)
        }
        Verb::Check(args) => {
            with_set!(task, Opening::Reading, set => check::run(set, task, args).await)
        }
        Verb::Stats(args) => {
            with_set!(task, Opening::Reading, set => stats::run(set, task, args).await)
        }
        Verb::Serve(args) => {
            let token = serve::prepare(args)?;
            let opening = if args.no_stamp { Opening::WritingUnstamped } else { Opening::Writing };
            with_set!(task, opening, set => serve::run(set, task, args, token).await)
        }
        Verb::Replay(args) => {
            with_set!(task, Opening::Reading, set => replay::run(set, task, args).await)
        }
    }
}

/// What verbs say that build a filter because the saved one lacks rows.
const LACKS: &str = "the saved filter lacks keys that other programs wrote: another one is built for this run; guard attach saves one";

/// What a verb works on.
struct Task<'a> {
    attached: Attached,
    folder: &'a Path,
    /// Whether the address is the one in the folder, which keeps no password.
    lacks_password: bool,
}

impl Task<'_> {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn kind(&self) -> Local {
        Local::new(self.attached.family.family(), self.attached.rate)
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

    /// Compares all keys of the table with the filter, and builds another one in memory if it lacks some. The statistics of the guard
    /// count these look-ups too.
    async fn complete<D: DataSet>(&self, guard: &Guard<D, Local>) -> Result<()> {
        let mut scan = guard.data_set().scan(None).await?;
        let audited = audit(guard, &mut scan, End::AtMiss).await?;
        drop(scan);
        if audited.missed > 0 {
            crate::output::note(LACKS);
            guard.rebuild().await.context("the filter")?;
        }
        Ok(())
    }

    /// A guard that changes nothing, without building one.
    async fn reading<D: DataSet>(&self, set: D) -> Result<Guard<D, Local>> {
        let builder = Guard::builder(set, self.kind()).folder(self.folder).read_only();
        builder.without_background().start().await.map_err(|error| match error {
            StartError::Locked => anyhow!(
                "{}: another guard uses this folder: while `umbel guard serve` runs, ask its /state and /metrics; or stop it, or choose another folder",
                self.name()
            ),
            error => anyhow::Error::new(error).context(self.name()),
        })
    }

    /// A guard whose filter is saved in its folder, without building one.
    async fn opened<D: DataSet>(&self, set: D) -> Result<Guard<D, Local>> {
        let builder = Guard::builder(set, self.kind()).folder(self.folder).without_background();
        builder.start().await.with_context(|| self.name())
    }
}
