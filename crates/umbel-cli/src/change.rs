//! `umbel add` and `umbel remove`: a filter is read, changed, and put back whole.

use crate::amount::{show_count, show_rate, show_things};
use crate::build::is_full;
use crate::cli::{Add, Change, Form, Records, Remove};
use crate::copies::Copies;
use crate::dedup::is_marked;
use crate::exact;
use crate::input::{STDIN, is_standard, look_for, not_on_a_server, refuse_closed_stdin};
use crate::limit::{Fill, Limit, Overfull, Planned};
use crate::output::{Existing, may_write_filter, note, print, replace_file, warn, write_filter};
use crate::outputs::{Output, are_apart, stdout_is_apart};
use crate::progress::Progress;
use crate::reading::{Batch, Counts, Reader, read};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use umbel::InvalidBytes;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::format::{Header, Secret};
use umbel::hash::{Digest, Kind};

/// What is done with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Add,
    Remove,
}

pub(crate) fn add(args: &Add) -> Result<()> {
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(&args.change.filter) {
        return add_on_server(args);
    }
    run(&args.change, What::Add, args.overfull)
}

pub(crate) fn remove(args: &Remove) -> Result<()> {
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(&args.change.filter) {
        let address = crate::remote::Address::of(&args.change.filter)?;
        bail!("{address}: a blocked filter cannot remove keys");
    }
    run(&args.change, What::Remove, false)
}

fn run(args: &Change, what: What, overfull: bool) -> Result<()> {
    let path = &args.filter;
    let name = || path.display().to_string();
    look_for(&args.files)?;
    let outputs =
        [Output::of("the filter", Some(path)), Output::of("--bad", args.records.bad.as_ref())];
    are_apart(outputs, &args.files, "name the file with the keys")?;
    if is_standard(path) || args.report == Form::Json {
        stdout_is_apart(outputs, &args.files)?;
    }
    let (totals, filter, fill) = if is_standard(path) {
        on_streams(args, what, overfull)?
    } else {
        not_a_state(path)?;
        not_another_file(path)?;
        let secret = secret_in(&Header::read(path).with_context(name)?);
        replace_file(path, secret == Secret::Kept, |file| {
            // From here on, a filter that another program puts there is noticed.
            if secret_in(&Header::read(path).with_context(name)?) != secret {
                bail!(
                    "{}: another program has replaced it just now: run the command again",
                    name()
                );
            }
            let (totals, filter, fill) = changed(args, what, overfull)?;
            filter.to_writer(file, secret).with_context(name)?;
            Ok((totals, filter, fill))
        })?
    };
    if let Some(warning) = &totals.warning {
        warn(&format!("{}: {warning}", name()));
    }
    let planned = Planned::of(&filter);
    if args.report == Form::Json {
        return print(format!("{}\n", totals.json(&name(), what, fill, planned)));
    }
    note(&totals.text(what, fill, planned));
    Ok(())
}

/// The filter comes from standard input, and goes to standard output when it is changed.
fn on_streams(args: &Change, what: What, overfull: bool) -> Result<(Totals, AnyFilter, Fill)> {
    if args.files.is_empty() || args.files.iter().any(|path| is_standard(path)) {
        bail!(
            "standard input cannot be the filter and the keys at once: name a file for one of them"
        );
    }
    if args.report == Form::Json {
        bail!(
            "--report json writes to standard output, and so does the changed filter: name a file for the filter"
        );
    }
    may_write_filter(&args.filter, false)?;
    let (totals, filter, fill) = changed(args, what, overfull)?;
    // A filter that was read has its secret in its bytes, if it has one.
    write_filter(&args.filter, &filter, Secret::Kept, Existing::Kept)?;
    Ok((totals, filter, fill))
}

/// What was done, and the filter with the change.
fn changed(args: &Change, what: What, overfull: bool) -> Result<(Totals, AnyFilter, Fill)> {
    let name = || args.filter.display().to_string();
    let (header, mut filter) = open_for_lines(&args.filter)?;
    if is_marked(&header, &filter) {
        bail!("{}: {STATE}", name());
    }
    of_parts(filter.hasher(), &args.records).with_context(name)?;
    match what {
        What::Add => _ = filter.as_insert().with_context(name)?,
        What::Remove => _ = filter.as_remove().with_context(name)?,
    }
    let overfull = Overfull::of_filter(overfull, &filter).with_context(name)?;
    let counts = filter.as_remove().is_ok();
    let mut changer = Changer {
        limit: Limit::of(&filter, overfull),
        copies: if counts { Copies::once() } else { Copies::any() },
        filter,
        what,
        name: name(),
        digests: Vec::new(),
        totals: Totals { counts, ..Totals::default() },
    };
    let counts = read(args.files.clone(), &args.records, &Progress::alone(), &mut changer);
    let Counts { records, skipped } = counts.map_err(|error| changer.explained(error))?;
    let Changer { copies, filter, totals, limit, .. } = changer;
    let totals = Totals { records, skipped, repeated: copies.repeated, ..totals };
    let fill = match what {
        What::Add => limit.known(totals.changed, totals.offered, Fill::of(&filter)),
        What::Remove => Fill::of(&filter),
    };
    // A run that adds nothing makes nothing worse.
    if what == What::Add && totals.changed > 0 {
        let warning = limit.check(totals.changed, totals.offered, fill).with_context(name)?;
        return Ok((Totals { warning, ..totals }, filter, fill));
    }
    Ok((totals, filter, fill))
}

/// What a run has done.
#[derive(Debug, Default)]
struct Totals {
    records: u64,
    /// Records without a key.
    skipped: u64,
    /// Lines that were left out, because they came before in this run.
    repeated: u64,
    /// Keys that were handed to the filter.
    offered: u64,
    /// Keys that were certainly new, or that were removed.
    changed: u64,
    /// Keys that were removed and are found nevertheless.
    still: u64,
    /// Whether the filter counts keys, so that those that it finds are inserted too.
    counts: bool,
    warning: Option<String>,
}

impl Totals {
    fn text(&self, what: What, fill: Fill, planned: Option<Planned>) -> String {
        let found = self.offered - self.changed;
        let mut text = match what {
            What::Add if self.counts => format!("{} added", show_things(self.offered, "key")),
            What::Add => format!("{} added", show_things(self.changed, "new key")),
            What::Remove => format!("{} removed", show_things(self.changed, "key")),
        };
        let mut add = |number: u64, what: &str| {
            if number > 0 {
                text += &format!(", {} {what}", show_count(number));
            }
        };
        let were = if found == 1 { "was" } else { "were" };
        match what {
            What::Add if self.counts => {
                add(found, &format!("of them {were} already in it, or seemed to be"))
            }
            What::Add => add(found, &format!("{were} already in it, or seemed to be")),
            What::Remove => {
                add(self.still, "of them still found: added more than once, or false positives");
                add(found, "not found");
            }
        }
        add(self.repeated, if self.repeated == 1 { "repeated line" } else { "repeated lines" });
        if let Some(Planned { keys, .. }) = planned {
            text += &format!("; holds {} of {} planned keys", fill.shown(), show_count(keys));
        }
        text + &format!("; false positive rate {}", show_rate(fill.rate))
    }

    fn json(&self, file: &str, what: What, fill: Fill, planned: Option<Planned>) -> Value {
        let mut facts = json!({
            "file": file,
            "records": self.records,
            "skipped": self.skipped,
            "repeated": self.repeated,
        });
        match what {
            What::Add => {
                facts["added"] = json!(if self.counts { self.offered } else { self.changed });
                facts["found_before"] = json!(self.offered - self.changed);
            }
            What::Remove => {
                facts["removed"] = json!(self.changed);
                facts["not_found"] = json!(self.offered - self.changed);
                facts["still_found"] = json!(self.still);
            }
        }
        if let Some(Planned { keys, .. }) = planned {
            facts["keys_planned"] = json!(keys);
            facts["keys_estimated"] = json!(fill.held);
        }
        facts["rate_now"] = json!(fill.rate);
        facts
    }
}

/// A filter on a server is changed as keys come, while others ask it.
#[cfg(feature = "redis")]
fn add_on_server(args: &Add) -> Result<()> {
    let Add { change, overfull } = args;
    let address = crate::remote::Address::of(&change.filter)?;
    let filter = crate::remote::Remote::open(&address)?;
    of_parts(filter.hasher(), &change.records).with_context(|| address.to_string())?;
    let (planned, before) = (filter.planned(), filter.fill()?.held);
    let limit =
        Limit::new(planned, filter.shared().shape().bytes(), before, Overfull::of(*overfull));
    let totals = Totals::default();
    let mut adder = Adder { filter, limit, digests: Vec::new(), fresh: Vec::new(), totals };
    // Before anything is added: a filter that is past its limit already takes no more.
    adder.limit.check(0, 0, adder.filter.fill()?).with_context(|| address.to_string())?;
    let Counts { records, skipped } =
        read(change.files.clone(), &change.records, &Progress::alone(), &mut adder)?;
    let Adder { filter, limit, totals, .. } = adder;
    let (totals, fill) = (Totals { records, skipped, ..totals }, filter.fill()?);
    if let Ok(Some(warning)) = limit.check(totals.changed, totals.offered, fill) {
        warn(&format!("{address}: {warning}"));
    }
    if change.report == Form::Json {
        return print(format!("{}\n", totals.json(&address.to_string(), What::Add, fill, planned)));
    }
    note(&totals.text(What::Add, fill, planned));
    Ok(())
}

#[cfg(feature = "redis")]
struct Adder {
    filter: crate::remote::Remote,
    limit: Limit,
    digests: Vec<Digest>,
    fresh: Vec<bool>,
    totals: Totals,
}

#[cfg(feature = "redis")]
impl Reader for Adder {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(self.filter.hasher(), &mut self.digests);
        self.fresh.clear();
        self.fresh.resize(self.digests.len(), false);
        self.filter.insert(&self.digests, &mut self.fresh)?;
        self.totals.offered += self.digests.len() as u64;
        self.totals.changed += self.fresh.iter().filter(|fresh| **fresh).count() as u64;
        let (changed, offered) = (self.totals.changed, self.totals.offered);
        self.limit.watch(changed, offered, || self.filter.fill()).with_context(|| {
            format!("{}: stopped after {}", self.filter.address(), show_things(changed, "new key"))
        })?;
        Ok(true)
    }
}

/// The filter in a file, or on standard input for `-`.
pub(crate) fn load(path: &Path) -> Result<AnyFilter> {
    Ok(open(path)?.1)
}

/// The same, with its header.
pub(crate) fn open(path: &Path) -> Result<(Header, AnyFilter)> {
    if is_standard(path) {
        refuse_closed_stdin()?;
        return from_reader(io::stdin().lock()).context(STDIN);
    }
    not_on_a_server(path)?;
    not_a_state(path)?;
    not_another_file(path)?;
    let name = || path.display().to_string();
    let header = Header::read(path).with_context(name)?;
    Ok((header, AnyFilter::load(path).with_context(name)?))
}

/// Whether a file has the secret of its filter: a changed one has it then, too.
pub(crate) fn secret_in(header: &Header) -> Secret {
    if header.has_secret() { Secret::Kept } else { Secret::Left }
}

/// The one filter that a stream holds.
fn from_reader(mut reader: impl Read) -> Result<(Header, AnyFilter)> {
    let mut first = Vec::new();
    reader.by_ref().take(Header::BYTES as u64).read_to_end(&mut first)?;
    if exact::begins(&first) {
        bail!(STATE);
    }
    not_other_bytes(&first, "input")?;
    let header = Header::of(&first)?;
    let filter = AnyFilter::from_reader(first.chain(&mut reader))?;
    if io::copy(&mut reader.take(1), &mut io::sink())? > 0 {
        bail!("expected the end of the filter, found more bytes; give it one whole filter");
    }
    Ok((header, filter))
}

/// Refuses what is no filter, however long it is. A pipe is not read for that: it is read once.
fn not_another_file(path: &Path) -> Result<()> {
    let name = || path.display().to_string();
    if !path.metadata().with_context(name)?.is_file() {
        return Ok(());
    }
    let mut first = Vec::new();
    let file = File::open(path).with_context(name)?;
    file.take(Header::BYTES as u64).read_to_end(&mut first).with_context(name)?;
    not_other_bytes(&first, "a file").with_context(name)
}

/// The same of the first bytes.
fn not_other_bytes(first: &[u8], what: &str) -> Result<()> {
    // A header that is cut off is another error.
    let mut header = [0; Header::BYTES];
    header[..first.len()].copy_from_slice(first);
    if Header::of(&header) == Err(InvalidBytes::Magic) {
        bail!(
            "expected a filter, found {what} that is none (it does not begin with umbel's magic bytes)"
        );
    }
    Ok(())
}

/// Refuses to write a filter over a state of `dedup`. Anything else there may be replaced.
pub(crate) fn not_over_a_state(path: &Path) -> Result<()> {
    if is_standard(path) || !path.metadata().is_ok_and(|there| there.is_file()) {
        return Ok(());
    }
    not_a_state(path)?;
    match open(path) {
        Ok((header, filter)) if is_marked(&header, &filter) => bail!("{}: {STATE}", path.display()),
        _ => Ok(()),
    }
}

/// What a state is, where a filter is expected.
const STATE: &str = "is a state of `umbel dedup` and not a filter: `umbel dedup --state` goes on with it, `umbel info` describes it";

/// Refuses an exact state of `dedup`.
fn not_a_state(path: &Path) -> Result<()> {
    if exact::is_in(path)? {
        bail!("{}: {STATE}", path.display());
    }
    Ok(())
}

/// The same as [`load`], if its keys are bytes, as records are: a number in the filter must not be reported absent because its digits are.
pub(crate) fn load_for_lines(path: &Path) -> Result<AnyFilter> {
    Ok(open_for_lines(path)?.1)
}

fn open_for_lines(path: &Path) -> Result<(Header, AnyFilter)> {
    let (header, filter) = open(path)?;
    of_lines(filter.hasher().keys()).with_context(|| path.display().to_string())?;
    Ok((header, filter))
}

/// Refuses keys that are no bytes of a line: those that a program made of numbers, or of several parts.
pub(crate) fn of_lines(keys: Kind) -> Result<()> {
    match keys {
        Kind::Bytes | Kind::Fields => Ok(()),
        Kind::Parts => bail!(
            "expected a filter of bytes, got one whose keys are tuples or options of a program, which have other bytes than the keys of \
             several parts that -k 1,2, --csv a,b and two --json make: only the program that made it can use it"
        ),
        _ => bail!(
            "expected a filter of bytes, got one of numbers, which only the program that made it can use"
        ),
    }
}

/// Refuses keys with another number of parts than those of the filter have: each would be reported absent.
pub(crate) fn of_parts(filter: &AnyHasher, records: &Records) -> Result<()> {
    match (filter.keys(), records.has_one_part()?) {
        (Kind::Fields, true) => bail!(
            "the keys of this filter have several parts, and the keys asked for have one: name the parts with -k 1,2, --csv a,b or two --json, as for build"
        ),
        (Kind::Bytes, false) => bail!(
            "the keys of this filter have one part, and the keys asked for have several: name one part with -k, --csv or --json, as for build"
        ),
        _ => Ok(()),
    }
}

struct Changer {
    filter: AnyFilter,
    what: What,
    name: String,
    limit: Limit,
    copies: Copies,
    digests: Vec<Digest>,
    totals: Totals,
}

impl Changer {
    fn change(&mut self) -> Result<()> {
        let mut done = vec![false; self.digests.len()];
        match self.what {
            What::Add => {
                self.filter.insert_digests(&self.digests, &mut done)?;
            }
            What::Remove => {
                self.filter.remove_digests(&self.digests, &mut done)?;
                let mut found = vec![false; self.digests.len()];
                self.filter.contains_digests(&self.digests, &mut found);
                let still = done.iter().zip(&found).filter(|(done, found)| **done && **found);
                self.totals.still += still.count() as u64;
            }
        }
        self.totals.offered += self.digests.len() as u64;
        self.totals.changed += done.iter().filter(|done| **done).count() as u64;
        Ok(())
    }

    /// What is full, and what to do.
    fn explained(&self, error: anyhow::Error) -> anyhow::Error {
        if !is_full(&error) {
            return error;
        }
        let Some(planned) = Planned::of(&self.filter) else { return error };
        let (full, keys) = (Fill::of(&self.filter).held, planned.keys);
        let (name, before) = (&self.name, show_things(self.limit.before(), "key"));
        let unchanged = format!("nothing was added, the filter still holds {before}");
        if full < keys {
            let planned = show_things(keys, "key");
            anyhow!(
                "{name}: there is no room for another copy of one key, which was added by too many runs (planned for {planned}): {unchanged}"
            )
        } else {
            let (full, keys) = (show_things(full, "key"), show_count(keys));
            anyhow!(
                "{name}: full after {full} (planned for {keys}): {unchanged}. Build one with a larger -n"
            )
        }
    }
}

impl Reader for Changer {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        self.digests.clear();
        self.copies.add_digests(batch, self.filter.hasher(), &mut self.digests)?;
        self.change()?;
        if self.what == What::Add {
            let (changed, offered) = (self.totals.changed, self.totals.offered);
            let fill = || Ok(Fill::of(&self.filter));
            self.limit.watch(changed, offered, fill).with_context(|| self.name.clone())?;
        }
        Ok(true)
    }
}
