//! What a folder is attached to: the data set, the table and the filter, as `umbel guard attach` was told.
//!
//! It is kept in `attached.json` in the folder, so that the other verbs need only the folder:
//!
//! ```text
//! {"umbel_guard": 1, "data_set": "sqlite", "path": "/srv/app.db", "table": "users", "key_column": "name",
//!  "value_column": "mail", "family": "blocked", "rate": 0.01}
//! ```
//!
//! A path is absolute. One that is not UTF-8 is in `path_hex` instead. An address of PostgreSQL, `url`, has no password.

use super::cli::{Filter, Target};
use super::family::Guarding;
use crate::cli::RATE;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use umbel_guard::keep::{read_beside, write_beside};
use umbel_guard::set::Postgres;

/// The name of the file.
const FILE: &str = "attached.json";
/// The version of its form.
const VERSION: u64 = 1;
/// The largest file that is read.
const LIMIT: u64 = 64 << 10;
/// The variable that has an address of PostgreSQL.
pub(super) const VARIABLE: &str = "UMBEL_POSTGRES";

/// The columns of keys and values if none are named.
const COLUMNS: (&str, &str) = ("key", "value");

/// A data set, the table in it, and the filter for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attached {
    pub(super) place: Place,
    pub(super) table: String,
    /// The columns of keys and values; a table of redb has none.
    pub(super) columns: Option<(String, String)>,
    pub(super) family: Guarding,
    pub(super) rate: f64,
}

/// Where a data set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Redb(PathBuf),
    Sqlite(PathBuf),
    /// The address, with its password if it has one.
    Postgres(String),
}

/// As it is shown: without a password.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redb(path) => write!(f, "redb file {}", path.display()),
            Self::Sqlite(path) => write!(f, "SQLite file {}", path.display()),
            Self::Postgres(url) => {
                let url = Postgres::without_password(url).unwrap_or_default();
                write!(f, "PostgreSQL {url}")
            }
        }
    }
}

impl Place {
    fn agrees(&self, other: &Self) -> Result<bool> {
        let same = |one: &Path, other: &Path| {
            let found = |path: &Path| path.canonicalize().ok();
            one == other || found(one).is_some_and(|path| Some(path) == found(other))
        };
        Ok(match (self, other) {
            (Self::Redb(one), Self::Redb(other)) | (Self::Sqlite(one), Self::Sqlite(other)) => {
                same(one, other)
            }
            (Self::Postgres(one), Self::Postgres(other)) => Postgres::is_same_database(one, other)?,
            _ => false,
        })
    }
}

/// An option and what it was given.
struct Given {
    place: Place,
    by: &'static str,
}

impl Target {
    /// The data set that options name.
    fn given(&self) -> Result<Option<Given>> {
        let absolute =
            |path: &Path| std::path::absolute(path).with_context(|| path.display().to_string());
        Ok(if let Some(path) = &self.redb {
            Some(Given { place: Place::Redb(absolute(path)?), by: "--redb" })
        } else if let Some(path) = &self.sqlite {
            Some(Given { place: Place::Sqlite(absolute(path)?), by: "--sqlite" })
        } else {
            let url = self.postgres.clone();
            url.map(|url| Given { place: Place::Postgres(url), by: "--postgres" })
        })
    }
}

/// What a verb may do with what the folder is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Use it: options that are given again must agree.
    Use,
    /// Attach the same table again, with the family and the rate that are given now.
    Attach,
    /// Attach the folder to whatever is given.
    Replace,
}

impl Attached {
    /// What is guarded: options, and where they say nothing what the folder remembers.
    pub(super) fn resolve(target: &Target, filter: &Filter, purpose: Purpose) -> Result<Self> {
        let old = match Self::read(&filter.folder) {
            Err(_) if purpose == Purpose::Replace => None,
            old => old?,
        };
        let Some(old) = old else { return Self::from_options(target, filter) };
        let folder = filter.folder.display();
        let differs = |what: &dyn fmt::Display, by: &str, given: &dyn fmt::Display| {
            let next = match purpose {
                Purpose::Use => "leave the option out, or name another folder with -o",
                _ => "name another folder with -o, or replace what it is attached to with --force",
            };
            anyhow!("{folder}: is attached to {what}, and {by} names {given}; {next}")
        };
        let replaces = purpose == Purpose::Replace;
        let mut new = old.clone();
        if let Some(Given { place, by }) = target.given()? {
            if !replaces && !old.place.agrees(&place)? {
                return Err(differs(&old.place, by, &place));
            }
            new.place = place;
        } else if let Place::Postgres(_) = old.place
            && let Some(url) = variable()?
        {
            let place = Place::Postgres(url);
            if !old.place.agrees(&place)? {
                return Err(differs(&old.place, VARIABLE, &place));
            }
            new.place = place;
        }
        if let Some(table) = &target.table {
            if !replaces && *table != old.table {
                return Err(differs(&format!("table {}", old.table), "--table", table));
            }
            new.table.clone_from(table);
        }
        new.columns = match (&new.place, &old.columns) {
            (Place::Redb(_), _) => None,
            (_, old) => {
                let (key, value) = old.clone().unwrap_or_else(columns);
                let column = |old: String, by: &str, given: &Option<String>| match given {
                    Some(given) if !replaces && *given != old => {
                        Err(differs(&format!("column {old}"), by, given))
                    }
                    Some(given) => Ok(given.clone()),
                    None => Ok(old),
                };
                let key = column(key, "--key-column", &target.key)?;
                Some((key, column(value, "--value-column", &target.value)?))
            }
        };
        if let Some(family) = filter.family {
            if purpose == Purpose::Use && family != old.family {
                let name = format!("a filter of family {}", old.family.name());
                return Err(differs(&name, "--family", &family.name()));
            }
            new.family = family;
        }
        if let Some(rate) = filter.rate {
            if purpose == Purpose::Use && rate != old.rate {
                let name = format!("a filter of rate {}", old.rate);
                return Err(differs(&name, "-p", &rate));
            }
            new.rate = rate;
        }
        Ok(new)
    }

    /// What options say, for a folder that is attached to nothing.
    fn from_options(target: &Target, filter: &Filter) -> Result<Self> {
        let place = match target.given()? {
            Some(given) => given.place,
            None => {
                let url = variable()?.with_context(|| {
                    format!(
                        "{}: is attached to nothing; name the data set with --redb, --sqlite or --postgres, or with {VARIABLE}",
                        filter.folder.display()
                    )
                })?;
                Place::Postgres(url)
            }
        };
        let columns = match place {
            Place::Redb(_) => None,
            _ => {
                let (key, value) = columns();
                Some((target.key.clone().unwrap_or(key), target.value.clone().unwrap_or(value)))
            }
        };
        let table = target.table.clone().context("which table? name it with --table TABLE")?;
        let (family, rate) = (filter.family.unwrap_or_default(), filter.rate.unwrap_or(RATE));
        Ok(Self { place, table, columns, family, rate })
    }

    /// Whether both are of the same table, whatever the filters are.
    pub(super) fn is_same_table(&self, other: &Self) -> bool {
        self.place.agrees(&other.place).unwrap_or(false)
            && (&self.table, &self.columns) == (&other.table, &other.columns)
    }

    /// Whether this is the address that the folder keeps, which has no password.
    pub(super) fn lacks_password(&self, target: &Target) -> bool {
        let Place::Postgres(url) = &self.place else { return false };
        target.postgres.is_none()
            && variable().ok().flatten().is_none()
            && Postgres::without_password(url).is_ok_and(|stripped| stripped == *url)
    }

    /// What a folder is attached to; `None` if it is attached to nothing, or is not there.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let name = || folder.display().to_string();
        let Some(bytes) = read_beside(folder, FILE, LIMIT).with_context(name)? else {
            return Ok(None);
        };
        let attached = Self::parse(&bytes).map_err(|error| {
            let file = folder.join(FILE);
            anyhow!(
                "{}: {error:#}; attach the folder again with umbel guard attach --force",
                file.display()
            )
        })?;
        Ok(Some(attached))
    }

    /// Remembers this in a folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let text = format!("{}\n", self.object()?);
        write_beside(folder, FILE, text.as_bytes()).with_context(|| folder.display().to_string())
    }

    /// What programs read, without a password.
    pub(super) fn object(&self) -> Result<Value> {
        let mut object = Map::new();
        let mut add = |name: &str, value: Value| _ = object.insert(name.into(), value);
        add("umbel_guard", json!(VERSION));
        let (data_set, place) = match &self.place {
            Place::Redb(path) => ("redb", Err(path)),
            Place::Sqlite(path) => ("sqlite", Err(path)),
            Place::Postgres(url) => ("postgres", Ok(Postgres::without_password(url)?)),
        };
        add("data_set", json!(data_set));
        match place {
            Ok(url) => add("url", json!(url)),
            Err(path) => match path.to_str() {
                Some(text) => add("path", json!(text)),
                None => add("path_hex", json!(hex(path))),
            },
        }
        add("table", json!(self.table));
        if let Some((key, value)) = &self.columns {
            add("key_column", json!(key));
            add("value_column", json!(value));
        }
        add("family", json!(self.family.name()));
        add("rate", json!(self.rate));
        Ok(Value::Object(object))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let value: Value = serde_json::from_slice(bytes).context("is damaged")?;
        let Value::Object(mut object) = value else { bail!("is damaged: expected an object") };
        match object.shift_remove("umbel_guard").and_then(|version| version.as_u64()) {
            Some(VERSION) => {}
            Some(other) => bail!("expected version {VERSION}, found {other}"),
            None => bail!("is damaged: expected a version in umbel_guard"),
        }
        let mut text = |name: &str| match object.shift_remove(name) {
            Some(Value::String(text)) if !text.contains('\0') => Ok(Some(text)),
            None => Ok(None),
            Some(_) => Err(anyhow!("is damaged: expected text in {name}")),
        };
        let lacks = |name: &str| anyhow!("is damaged: expected {name}, found none");
        let set = text("data_set")?.ok_or_else(|| lacks("data_set"))?;
        let place = match &*set {
            "postgres" => {
                let url = text("url")?.ok_or_else(|| lacks("url"))?;
                if Postgres::without_password(&url)? != url {
                    bail!("is damaged: expected a URL without a password");
                }
                Place::Postgres(url)
            }
            "redb" | "sqlite" => {
                let path = match (text("path")?, text("path_hex")?) {
                    (Some(path), None) => PathBuf::from(path),
                    (None, Some(digits)) => unhex(&digits)?,
                    _ => return Err(lacks("path")),
                };
                if !path.is_absolute() {
                    bail!("is damaged: expected an absolute path, found {}", path.display());
                }
                if set == "redb" { Place::Redb(path) } else { Place::Sqlite(path) }
            }
            other => bail!("expected a data set redb, sqlite or postgres, found {other}"),
        };
        let table = text("table")?.ok_or_else(|| lacks("table"))?;
        let columns = match place {
            Place::Redb(_) => None,
            _ => Some((
                text("key_column")?.ok_or_else(|| lacks("key_column"))?,
                text("value_column")?.ok_or_else(|| lacks("value_column"))?,
            )),
        };
        let family = text("family")?.ok_or_else(|| lacks("family"))?;
        let family = Guarding::named(&family)
            .with_context(|| format!("expected a family that a guard can use, found {family}"))?;
        let rate = object.shift_remove("rate").and_then(|rate| rate.as_f64());
        let rate = rate.filter(|rate| *rate > 0.0 && *rate < 1.0);
        let rate = rate.context("is damaged: expected a rate between 0 and 1")?;
        if let Some(name) = object.keys().next() {
            bail!("is damaged: {name} is unknown");
        }
        Ok(Self { place, table, columns, family, rate })
    }
}

fn columns() -> (String, String) {
    (COLUMNS.0.to_owned(), COLUMNS.1.to_owned())
}

/// The address in the variable, which no list of processes shows.
fn variable() -> Result<Option<String>> {
    match std::env::var(VARIABLE) {
        Ok(url) => Ok(Some(url)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(anyhow!("{VARIABLE}: {error}")),
    }
}

/// The bytes of a path, as two digits each.
fn hex(path: &Path) -> String {
    path.as_os_str().as_encoded_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
fn unhex(digits: &str) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok().filter(|byte| *byte != 0)
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    let bytes = bytes.context("is damaged: expected hexadecimal digits in path_hex")?;
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn unhex(_: &str) -> Result<PathBuf> {
    bail!("expected a path of this system in path, found path_hex")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Attached> {
        let columns = Some(("name".to_owned(), "mail".to_owned()));
        let of = |place, columns| Attached {
            place,
            table: "us\"ers".into(),
            columns,
            family: Guarding::named("cuckoo").unwrap(),
            rate: 1.0 / 3.0,
        };
        let mut all = vec![
            of(Place::Redb("/a b/ä.redb".into()), None),
            of(Place::Sqlite("/app.db".into()), columns.clone()),
            of(Place::Postgres("postgres://ada@db/shop".into()), columns.clone()),
        ];
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt;
            let path = std::ffi::OsString::from_vec(b"/\xff/x".to_vec());
            all.push(of(Place::Sqlite(path.into()), columns));
        }
        all
    }

    #[test]
    fn what_was_written_is_read() {
        for attached in all() {
            let text = attached.object().unwrap().to_string();
            assert_eq!(Attached::parse(text.as_bytes()).unwrap(), attached, "{text}");
        }
    }

    #[test]
    fn a_password_is_not_written() {
        let mut attached = all().swap_remove(2);
        attached.place = Place::Postgres("postgres://ada:sesame@db/shop".into());
        assert!(!attached.object().unwrap().to_string().contains("sesame"));
        assert!(!attached.place.to_string().contains("sesame"));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let object = |change: &dyn Fn(&mut Map<String, Value>)| {
            let Value::Object(mut object) = all()[1].object().unwrap() else { panic!() };
            change(&mut object);
            Attached::parse(Value::Object(object).to_string().as_bytes())
        };
        assert!(object(&|_| {}).is_ok());
        for name in all()[1].object().unwrap().as_object().unwrap().keys() {
            assert!(object(&|object| _ = object.shift_remove(name)).is_err(), "without {name}");
            assert!(object(&|object| object[name] = json!([1])).is_err(), "{name}");
        }
        for (name, value) in [
            ("umbel_guard", json!(2)),
            ("data_set", json!("mysql")),
            ("data_set", json!("postgres")),
            ("path", json!("relative.db")),
            ("path_hex", json!("2f61")),
            ("table", json!("a\0b")),
            ("family", json!("split")),
            ("rate", json!(0)),
            ("rate", json!(1)),
            ("rate", json!("0.01")),
            ("password", json!("sesame")),
        ] {
            let changed = object(&|object| _ = object.insert(name.into(), value.clone()));
            assert!(changed.is_err(), "{name}: {value}");
        }
        let url = |url: &str| {
            let Value::Object(mut object) = all()[2].object().unwrap() else { panic!() };
            object["url"] = json!(url);
            Attached::parse(Value::Object(object).to_string().as_bytes())
        };
        assert!(url("postgres://ada@db/shop").is_ok());
        assert!(url("postgres://ada:sesame@db/shop").is_err() && url("nonsense").is_err());
        for bytes in [&b""[..], b"[]", b"{", b"null", b"\xff"] {
            assert!(Attached::parse(bytes).is_err());
        }
    }
}
