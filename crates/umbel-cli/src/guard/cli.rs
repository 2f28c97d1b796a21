//! What `umbel guard` is told.

use super::family::Guarding;
use crate::amount;
use crate::cli::{Form, Records};
use clap::{ArgGroup, Args, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Build a filter for a table, and keep it in a folder
    Attach(Attach),
    /// Print the keys that may be in the table
    Check(Check),
    /// Audit the filter of a table, and print its size and its rate
    Stats(Stats),
    /// Answer GET, PUT and DELETE over HTTP, through the filter
    Serve(Serve),
    /// Print how many look-ups of a log a filter would have saved
    Replay(Replay),
}

/// What is guarded: for a folder that is attached to nothing yet.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is guarded (not needed if the folder is attached already)")]
#[command(group = ArgGroup::new("target").args(["redb", "sqlite", "postgres"]))]
pub(crate) struct Target {
    /// A table of bytes in a redb file
    #[arg(long, value_name = "FILE")]
    pub(crate) redb: Option<PathBuf>,
    /// A table in a SQLite file; attach and serve put it into WAL mode
    #[arg(long, value_name = "FILE")]
    pub(crate) sqlite: Option<PathBuf>,
    /// A table of PostgreSQL, such as postgres://user@localhost/shop; without any of these, the one in UMBEL_POSTGRES, which
    /// no list of processes shows. No password is kept in the folder
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<String>,
    /// The name of the table; before a dot its schema, in PostgreSQL
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// The column of keys [default: key]
    #[arg(long = "key-column", value_name = "COLUMN")]
    pub(crate) key: Option<String>,
    /// The column of values [default: value]
    #[arg(long = "value-column", value_name = "COLUMN")]
    pub(crate) value: Option<String>,
}

/// The filter.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Filter")]
pub(crate) struct Filter {
    /// The folder that keeps the filter, and what it is attached to
    #[arg(short = 'o', long, value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// How often an absent key may reach the table, such as 0.01, 1% or 1/1000 [default: 0.01]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = amount::rate)]
    pub(crate) rate: Option<f64>,
    /// The family of the filter [default: blocked]
    #[arg(long, value_enum, value_name = "FAMILY")]
    pub(crate) family: Option<Guarding>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The table is scanned once. The filter and its journal are then in the folder, and the other verbs start with them at once. \
The folder also remembers the data set, the table, the columns, the family and the rate, so the other verbs need only -o FOLDER. \
check, stats and replay only read: they change neither the table nor the folder. \
The filter does not know rows that other programs write: attach again. A running `serve` notices them, on SQLite and PostgreSQL within about a second.
A table of the guard, umbel_guard, is created in the database; docs/guard.md says what it holds and how to remove it.

Examples:
  umbel guard attach -o users.guard
  umbel guard attach --sqlite app.db --table users --key-column name --value-column mail -o users.guard
  umbel guard attach --postgres postgres://localhost/shop --table public.items -p 0.1% -o items.guard")]
pub(crate) struct Attach {
    /// Attach a folder that is attached to something else; its filter is replaced
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A key that is not printed is not in the table. Before it answers, check looks for rows that other programs have added: it compares all keys of the \
table with the filter, if the table has at most 100,000 rows or another number of rows than at `attach`. If the filter lacks a key, check builds another \
one for this run. In a larger table with as many rows as at `attach`, rows that replaced others are not found.
With --ask, the table has the last word on the keys that the filter reports: what is printed is certainly there.
Exit status: 0 if there was such a key, 1 if there was none, 2 if something went wrong.

Example:
  umbel guard check -o users.guard --item ada")]
pub(crate) struct Check {
    /// Where keys come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Ask for this key instead of reading lines; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "files")]
    pub(crate) item: Vec<OsString>,
    /// Look the reported keys up in the table, and drop false positives
    #[arg(long)]
    pub(crate) ask: bool,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) records: Records,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The audit reads keys of the table and looks each up in the filter: the first ones if not all, and the last ones too if keys are integers. A key that the filter lacks was written by another \
program: attach again. The number of rows is compared with the number of keys that `attach` built the filter from, if no other guard was \
started since.
Exit status: 0 if the saved filter can be read, lacks no key that was audited, and the table has not more rows than the filter was built from; \
1 if not, 2 if something went wrong.

Examples:
  umbel guard stats -o users.guard
  umbel guard stats -o users.guard --audit 2M --report json")]
pub(crate) struct Stats {
    /// How many keys of the table are looked up in the filter, or all if there are fewer [default: 1000000]
    #[arg(long, value_name = "N", value_parser = amount::count)]
    pub(crate) audit: Option<u64>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) report: Form,
    /// The same as --report json
    #[arg(long, conflicts_with = "report")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

#[derive(Args, Debug)]
#[command(after_help = "\
GET, PUT and DELETE of /keys/KEY, whose bytes may be written as %41; 404 says that there is no such key, and 409 and 422 that the \
table refuses the value. Answers say in Umbel-Answer what the filter said. /metrics is for Prometheus, /state for people. \
What happens to the filter is printed on standard error, one line for each event; -q leaves only warnings.
Without --token-file, every client that reaches the address can read and write. With it, every request needs the token, whatever \
its path is. Requests are not encrypted: where others can listen, put a proxy with TLS in front. \
The server may be killed at any time. SIGINT and SIGTERM close it and save the filter; a second signal ends it at once.

Examples:
  umbel guard serve -o users.guard --listen 127.0.0.1:7380
  umbel guard serve --redb users.redb --table users -o users.guard --socket /run/users.sock
  (umask 077; openssl rand -hex 32 > token)
  umbel guard serve -o users.guard --listen 10.0.0.5:7380 --public --token-file token")]
pub(crate) struct Serve {
    /// Where to listen; a port of 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7380")]
    pub(crate) listen: SocketAddr,
    /// Listen on this Unix socket instead
    #[cfg(unix)]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["listen", "public", "host"])]
    pub(crate) socket: Option<PathBuf>,
    /// The permissions of the socket
    #[cfg(unix)]
    #[arg(long, value_name = "MODE", value_parser = mode, default_value = "600", requires = "socket")]
    pub(crate) socket_mode: u32,
    /// Listen where other machines can reach it; takes --token-file, or --insecure
    #[arg(long)]
    pub(crate) public: bool,
    /// Let every client in that reaches the address, without a token
    #[arg(long, requires = "public", conflicts_with = "token_file")]
    pub(crate) insecure: bool,
    /// Answer only requests with the token in this file (Authorization: Bearer TOKEN), which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Refuse PUT and DELETE
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Create no table umbel_guard in the database: the filter is built at every start and kept in memory only
    #[arg(long)]
    pub(crate) no_stamp: bool,
    /// Another name by which clients know this server; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// How long a client may take to send a request, be idle, or not read an answer
    #[arg(long, value_name = "TIME", value_parser = amount::time, default_value = "30s")]
    pub(crate) timeout: Duration,
    /// How many connections there may be at a time; others wait
    #[arg(long, value_name = "N", value_parser = connections, default_value = "1024")]
    pub(crate) max_connections: usize,
    /// The largest value that is taken
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "1MiB")]
    pub(crate) max_value: u64,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

impl Serve {
    /// Whether it listens on a Unix socket.
    pub(crate) fn is_on_socket(&self) -> bool {
        #[cfg(unix)]
        return self.socket.is_some();
        #[cfg(not(unix))]
        false
    }
}

/// Permissions in octal.
#[cfg(unix)]
fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "not permissions such as 600 or 660".into())
}

fn connections(text: &str) -> Result<usize, String> {
    let number = amount::count(text)?;
    // As many as tokio counts.
    let most = usize::MAX >> 3;
    let number = usize::try_from(number).ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| "at least 1, and not that many".into())
}

#[derive(Args, Debug)]
#[command(after_help = "\
Every key of the log is asked of a filter, and of the table if it may be there: so the count of absent ones is exact, and so is \
what filters of other rates would have saved.

Example:
  umbel guard replay -o users.guard -k 2 access.log")]
pub(crate) struct Replay {
    /// Where the log comes from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) report: Form,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) records: Records,
}
