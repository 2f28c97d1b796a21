//! What `umbel guard` is told.

use crate::amount;
use crate::cli::{Form, RATE, Records};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use umbel_guard::Family;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Build a filter for a table, and keep it in a folder
    Attach(Attach),
    /// Print the keys that may be in the table
    Check(Check),
    /// Tell how the table and its filter are
    Stats(Stats),
    /// Answer GET, PUT and DELETE over HTTP, through the filter
    Serve(Serve),
    /// Tell how many look-ups of a log a filter would have saved
    Replay(Replay),
}

/// What is guarded.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is guarded")]
#[command(group = ArgGroup::new("target").args(["redb", "sqlite", "postgres"]))]
pub(crate) struct Target {
    /// A table of bytes in a redb file
    #[arg(long, value_name = "FILE")]
    pub(crate) redb: Option<PathBuf>,
    /// A table in a SQLite file; attach and serve put it into WAL mode
    #[arg(long, value_name = "FILE")]
    pub(crate) sqlite: Option<PathBuf>,
    /// A table of PostgreSQL, such as postgres://user@localhost/shop; without any of these, the one in UMBEL_POSTGRES
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<String>,
    /// The name of the table; before a dot its schema, in PostgreSQL
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: String,
    /// The column of keys
    #[arg(long = "key-column", value_name = "COLUMN", default_value = "key")]
    pub(crate) key: String,
    /// The column of values
    #[arg(long = "value-column", value_name = "COLUMN", default_value = "value")]
    pub(crate) value: String,
}

/// The filter.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Filter")]
pub(crate) struct Filter {
    /// The folder that the filter is kept in
    #[arg(short = 'o', long, value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// How often an absent key may reach the table, such as 0.01, 1% or 1/1000
    #[arg(short = 'p', long, value_name = "RATE", value_parser = amount::rate, default_value_t = RATE)]
    pub(crate) rate: f64,
    /// The family of the filter [default: blocked]
    #[arg(long, value_enum, value_name = "FAMILY")]
    pub(crate) family: Option<Families>,
}

/// The families a guard can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Families {
    /// For tables that grow: fast, without locks
    Blocked,
    /// Classic Bloom filter
    Classic,
    /// Grows with the table
    Scalable,
    /// Keys leave again
    Counting,
    /// Keys leave again, in little space
    Cuckoo,
    /// Keys leave again, however often they were put
    Quotient,
    /// For tables that do not change
    Xor,
    /// For tables that do not change; fast
    Fuse,
    /// The same, a little smaller
    Fuse4,
    /// For tables that do not change; the smallest
    Ribbon,
}

impl Families {
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Blocked => Family::Blocked,
            Self::Classic => Family::Classic,
            Self::Scalable => Family::Scalable,
            Self::Counting => Family::Counting,
            Self::Cuckoo => Family::Cuckoo,
            Self::Quotient => Family::Quotient,
            Self::Xor => Family::Xor,
            Self::Fuse => Family::Fuse,
            Self::Fuse4 => Family::Fuse4,
            Self::Ribbon => Family::Ribbon,
        }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
The table is scanned once; the filter and its journal are then in the folder, and the other verbs begin with them at once. \
check, stats and replay only read: they change neither the table nor the folder. \
The filter does not know rows that are written around the guard: attach again. A running `serve` notices them, on SQLite and PostgreSQL within about a second.

Examples:
  umbel guard attach --sqlite app.db --table users --key-column name --value-column mail -o users.guard
  umbel guard attach --postgres postgres://localhost/shop --table public.items -p 0.1% -o items.guard")]
pub(crate) struct Attach {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A key that is not printed is not in the table, unless it was written there past the guard since `attach`. With --ask the table is \
asked for the others, and what is printed is certainly there.
Exit status: 0 if there was such a key, 1 if there was none, 2 if something went wrong.

Example:
  umbel guard check --redb users.redb --table users -o users.guard --item ada")]
pub(crate) struct Check {
    /// Where keys come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Ask for this key instead of reading lines; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "files")]
    pub(crate) item: Vec<OsString>,
    /// Ask the table for keys that may be there
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
Exit status: 0 if the saved filter can be used and lacks no key that was looked at, 1 if not, 2 if something went wrong.

Example:
  umbel guard stats --sqlite app.db --table users --key-column name --value-column mail -o users.guard --json")]
pub(crate) struct Stats {
    /// How many keys of the table are asked of the filter
    #[arg(long, value_name = "N", value_parser = amount::count, default_value = "10000")]
    pub(crate) audit: u64,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

#[derive(Args, Debug)]
#[command(after_help = "\
GET, PUT and DELETE of /keys/KEY, whose bytes may be written as %41; 404 says that there is no such key. Answers say in \
Umbel-Answer what the filter said. /metrics is for Prometheus, /state for people.
Without --token-file, every client that reaches the address can read and write. With it, every request needs the token, whatever \
its path is. Requests are not encrypted: where others can listen, put a proxy with TLS in front. \
The server may be killed at any time. SIGINT and SIGTERM close it and save the filter; a second signal ends it at once.

Examples:
  umbel guard serve --redb users.redb --table users -o users.guard --listen 127.0.0.1:7380
  umbel guard serve --redb users.redb --table users -o users.guard --socket /run/users.sock
  (umask 077; openssl rand -hex 32 > token)
  umbel guard serve --redb users.redb --table users -o users.guard --listen 10.0.0.5:7380 --public --token-file token")]
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
  umbel guard replay --sqlite app.db --table users --key-column name --value-column mail -o users.guard -k 2 access.log")]
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
