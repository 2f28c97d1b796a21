//! Where records and their keys are found: the arguments of every verb that reads records.

use crate::amount;
use crate::input::{Cut, Limits};
use crate::key::{JsonAs, Keys, Part, Pointer, Span, columns, is_well_formed};
use crate::skipped::Skipped;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;

/// How records and keys are found.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Records and keys")]
pub(crate) struct Records {
    /// Records end with a zero byte instead of a newline
    #[arg(short = 'z', long = "null", aliases = ["null-data", "zero-terminated"])]
    pub(crate) null: bool,
    /// A carriage return before the newline is no part of the key
    #[arg(long, conflicts_with = "null")]
    pub(crate) crlf: bool,
    /// The key is this field, counted from 1, or from the end: -1 is the last; 1,3 and 2-4 and -k 1 -k 3 are keys of several fields
    #[arg(short = 'k', long = "key", value_name = "FIELDS", allow_hyphen_values = true)]
    pub(crate) field: Vec<Span>,
    /// What stands between fields [default: blanks], or columns [default: a comma]; \t is a tab
    #[arg(short = 't', long, value_name = "DELIM", alias = "field-separator")]
    pub(crate) delimiter: Option<String>,
    /// The key is this column of CSV: its name, or its number from 1 on; a,b and --csv a --csv b are keys of several columns
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["field", "json", "null"])]
    pub(crate) csv: Vec<String>,
    /// The first record of CSV is no header
    #[arg(long, requires = "csv")]
    pub(crate) no_header: bool,
    /// The longest quoted field of CSV: a longer one is probably a quote that is never closed, and an error
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "1MiB")]
    pub(crate) max_field: u64,
    /// The key is this value of a JSON record, by a pointer such as /user/id; may be repeated for a key of several values
    #[arg(long, value_name = "POINTER", conflicts_with = "field")]
    pub(crate) json: Vec<Pointer>,
    /// Whether the number 1 and the string "1" are two keys [default: typed, two keys, in dedup; text, one key, elsewhere]
    #[arg(long, value_enum, value_name = "HOW", requires = "json")]
    pub(crate) json_as: Option<JsonAs>,
    /// Upper and lower case are one
    #[arg(short = 'i', long)]
    pub(crate) ignore_case: bool,
    /// The longest record, without its end: a longer one is an error before it takes memory
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "64MiB")]
    pub(crate) max_record: u64,
    /// Skip and count records that have no key, are no CSV or JSON, or are too long; without it the first one ends the run
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Write the skipped records to this new file
    #[arg(long, value_name = "FILE", requires = "skip_bad")]
    pub(crate) bad: Option<PathBuf>,
    /// The verb cannot skip records.
    #[arg(skip)]
    pub(crate) all: bool,
    /// Every field is a key of its own.
    #[arg(skip)]
    pub(crate) each: bool,
}

impl Records {
    pub(crate) fn cut(&self) -> Cut {
        match (self.is_csv(), self.null) {
            (true, _) => Cut::Csv(self.between_columns()),
            (false, true) => Cut::At(0),
            (false, false) => Cut::At(b'\n'),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits { record: self.max_record, field: self.max_field }
    }

    /// What a record without an end gets when another one follows.
    pub(crate) fn end(&self) -> &'static [u8] {
        match (self.null, self.crlf) {
            (true, _) => b"\0",
            (false, true) => b"\r\n",
            (false, false) => b"\n",
        }
    }

    /// What is done with records that have no key.
    pub(crate) fn skipped(&self) -> Result<Skipped> {
        match &self.bad {
            Some(path) => Skipped::listed(path, self.end()),
            None if self.skip_bad => Ok(Skipped::counted()),
            None => Ok(Skipped::never(!self.all)),
        }
    }

    fn is_csv(&self) -> bool {
        !self.csv.is_empty()
    }

    /// The delimiter of CSV; [`keys`](Self::keys) refuses those that are longer.
    fn between_columns(&self) -> u8 {
        let first = |text: &str| unescaped(text).first().copied();
        self.delimiter.as_deref().and_then(first).unwrap_or(b',')
    }

    /// Whether the first record of every input is a header.
    pub(crate) fn has_header(&self) -> bool {
        self.is_csv() && !self.no_header
    }

    /// How keys are found; columns of CSV by their names once there is a header.
    pub(crate) fn keys(&self) -> Result<Keys> {
        let delimiter = self.delimiter.as_deref().map(unescaped);
        match &delimiter {
            Some(bytes) if bytes.is_empty() => {
                bail!("-t: expected at least one character, found none");
            }
            Some(_) if self.field.is_empty() && !self.is_csv() && !self.each => {
                bail!(
                    "-t is for fields or columns: say which, by -k 2 or --csv name, or by --each in check"
                );
            }
            Some(bytes) if self.is_csv() && (bytes.len() > 1 || b"\"\n\r".contains(&bytes[0])) => {
                bail!(
                    "-t: expected one byte between columns of CSV that is no quote and no end of a line, found {:?}",
                    String::from_utf8_lossy(bytes)
                );
            }
            _ => {}
        }
        let part = if self.each {
            Part::Each(delimiter)
        } else if !self.field.is_empty() {
            Part::Fields(
                self.field.iter().flat_map(|span| span.0.iter().copied()).collect(),
                delimiter,
            )
        } else if !self.json.is_empty() {
            Part::Json(self.json.clone(), self.json_as.unwrap_or(JsonAs::Text))
        } else if self.is_csv() {
            Part::Csv(self.numbers()?, self.between_columns())
        } else {
            Part::Whole
        };
        let end = if self.null { 0 } else { b'\n' };
        Ok(Keys { part, ignore_case: self.ignore_case, end, crlf: self.crlf })
    }

    /// Whether keys have one part, and not several fields, columns or values.
    pub(crate) fn has_one_part(&self) -> Result<bool> {
        Ok(if self.is_csv() { self.named().count() == 1 } else { self.keys()?.is_single() })
    }

    /// How the key is found in a record that is an argument. It has no header, so its columns are those that `--csv` names, in their order.
    pub(crate) fn item_keys(&self) -> Result<Keys> {
        let mut keys = self.keys()?;
        if let Part::Csv(columns, _) = &mut keys.part
            && self.has_header()
        {
            *columns = (0..self.named().count()).collect();
        }
        Ok(keys)
    }

    /// Refuses a record of other columns than [`item_keys`](Self::item_keys) looks for.
    pub(crate) fn fits_item(&self, keys: &Keys, item: &[u8]) -> Result<()> {
        let Part::Csv(wanted, between) = &keys.part else { return Ok(()) };
        if !is_well_formed(keys.content(item), *between) {
            bail!("a quoted value is never closed, or bytes follow its closing quote");
        }
        let found = columns(keys.content(item), *between).count();
        if self.has_header() && found != wanted.len() {
            let names: Vec<&str> = self.named().collect();
            bail!(
                "expected one value for each column of --csv, {} with {:?} between them, found {found}; a value that has this \
                 byte stands in quotes",
                names.join(", "),
                char::from(*between)
            );
        }
        Ok(())
    }

    /// What `--csv` names. Without a header, a name that has a comma is two.
    fn named(&self) -> impl Iterator<Item = &str> {
        self.csv.iter().flat_map(|column| column.split(','))
    }

    /// The numbers of columns without a header.
    fn numbers(&self) -> Result<Vec<usize>> {
        let mut numbers = Vec::new();
        for column in &self.csv {
            if !self.no_header {
                self.column_number(column)?;
                continue;
            }
            for number in column.split(',') {
                match self.column_number(number)? {
                    Some(number) => numbers.push(number),
                    None => bail!(
                        "--csv: expected the number of a column, since --no-header leaves no names, found {number:?}"
                    ),
                }
            }
        }
        Ok(numbers)
    }

    /// The number of a column from 0, if it is given by its number.
    pub(crate) fn column_number(&self, column: &str) -> Result<Option<usize>> {
        match column.parse() {
            Ok(0) => bail!("--csv: columns are counted from 1, found 0"),
            Ok(number) => Ok(Some(number - 1_usize)),
            Err(_) => Ok(None),
        }
    }
}

/// A delimiter as it is written in shells: \t is a tab.
fn unescaped(text: &str) -> Vec<u8> {
    text.replace("\\t", "\t").replace("\\0", "\0").into_bytes()
}
