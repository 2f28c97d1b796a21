//! `umbel build`: a filter from keys.

use crate::amount::{show_bytes, show_count, show_rate, show_things};
use crate::cli::{Build, FamilyChoice, Form, HashChoice, RATE};
use crate::copies::Copies;
use crate::input::look_for;
use crate::limit::{Fill, Limit, NeverOverfull, Overfull};
use crate::making::{least_rate, told};
use crate::output::{
    Existing, is_standard_output, may_write_filter, note, print, warn, write_filter,
};
use crate::outputs::{Output, are_apart, stdout_is_apart};
use crate::progress::Progress;
use crate::reading::{Batch, Counts, Reader, read};
use anyhow::{Context, Result, bail};
use serde_json::json;
use umbel::any::{AnyFilter, AnyHasher, ChangeError};
use umbel::frozen;
use umbel::hash::Digest;
#[cfg(feature = "redis")]
use umbel::{BlockedBloomFilter, raw::Any};

pub(crate) fn run(args: Build) -> Result<()> {
    look_for(&args.files)?;
    let family = family_of(&args);
    refuse_idle(&args, family)?;
    let outputs =
        [Output::of("-o", Some(&args.output)), Output::of("--bad", args.records.bad.as_ref())];
    are_apart(outputs, &args.files, "name another file")?;
    if is_standard_output(&args.output) || args.report == Form::Json {
        stdout_is_apart(outputs, &args.files)?;
    }
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(&args.output) {
        return to_server(&args, family);
    }
    may_write_filter(&args.output, args.force)?;
    let hasher = of_keys(args.hash.hasher(args.seed.unwrap_or(0)), &args)?;
    let built = built(&args, family, hasher)?;
    let existing = Existing::of(args.force);
    write_filter(&args.output, &built.filter, args.hash.secret(), existing)?;
    tell(&args, &built)
}

/// Refuses options that would have no effect.
fn refuse_idle(args: &Build, family: FamilyChoice) -> Result<()> {
    let name = family.name();
    if args.seed.is_some() && args.hash == HashChoice::Keyed {
        bail!(
            "--seed has no effect with --hash keyed, which takes a random secret: leave one of them out"
        );
    }
    if args.size.capacity.is_some() && family.is_static() {
        bail!(
            "-n has no effect with {}, whose filter holds exactly the keys that are read: leave it out",
            if args.immutable { "--static".into() } else { format!("--family {name}") }
        );
    }
    if args.threads.is_some() && !family.is_static() {
        bail!(
            "-j has no effect on a {name} filter: only --static filters (ribbon, xor, fuse, fuse4) are built by several threads"
        );
    }
    if args.overfull
        && let Some(error) = NeverOverfull::of(name)
    {
        return Err(error.into());
    }
    if args.overfull && args.size.capacity.is_none() {
        bail!(
            "--overfull has no effect here: only a filter with a planned number of keys, -n, can hold too many"
        );
    }
    if args.report == Form::Json && is_standard_output(&args.output) {
        bail!(
            "--report json writes to standard output, and so does -o {}: write the filter to a file",
            args.output.display()
        );
    }
    Ok(())
}

/// How many keys are in a filter.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Exactly(u64),
    /// Some were taken for keys that were there: they were, or they are false positives.
    About(u64),
}

/// A filter that was built.
struct Built {
    filter: AnyFilter,
    keys: Keys,
    /// How many records without a key were left out.
    skipped: u64,
}

/// Builds the filter here and copies it there.
#[cfg(feature = "redis")]
fn to_server(args: &Build, family: FamilyChoice) -> Result<()> {
    let address = crate::remote::Address::of(&args.output)?;
    if family != FamilyChoice::Blocked {
        bail!(
            "{address}: a filter on a server is a blocked one: expected --family blocked, got {}",
            family.name()
        );
    }
    if !args.force && address.is_taken(false)? {
        bail!("{address}: is there already; --force replaces it");
    }
    let hasher = address.hasher(args.hash == HashChoice::Keyed, args.seed.unwrap_or(0))?;
    let hasher = of_keys(hasher, args)?;
    let built = built(args, family, hasher)?;
    // As late as can be: until then the old one answers.
    address.is_taken(true)?;
    let Any::Blocked(blocked) = built.filter.into_raw() else {
        bail!("{address}: no blocked filter")
    };
    let blocked = BlockedBloomFilter::from_raw(blocked, hasher);
    crate::remote::Remote::upload(&address, &blocked)?;
    tell(args, &Built { filter: blocked.into(), ..built })
}

/// The filter keeps whether its keys have several parts, so that keys of one part are not looked up in it.
fn of_keys(hasher: AnyHasher, args: &Build) -> Result<AnyHasher> {
    Ok(if args.records.has_one_part()? { hasher } else { hasher.of_fields() })
}

fn built(args: &Build, family: FamilyChoice, hasher: AnyHasher) -> Result<Built> {
    let progress = Progress::alone();
    let built = if family.is_static() {
        of_set(args, family, hasher, &progress)?
    } else if let Some(capacity) = args.size.capacity {
        let rate = rate_of(args, family, capacity)?;
        streamed(args, empty(family, capacity, rate, hasher)?, rate, capacity, &progress)?
    } else {
        counted(args, family, hasher, &progress)?
    };
    within(args, &built.filter)?;
    Ok(built)
}

fn empty(family: FamilyChoice, items: u64, rate: f64, hasher: AnyHasher) -> Result<AnyFilter> {
    let filter = family.empty(items, rate, hasher);
    filter.map_err(|error| told(error, &show_things(items, "key"), rate))
}

/// Says what was built.
fn tell(args: &Build, built: &Built) -> Result<()> {
    let Built { filter, keys, skipped } = built;
    let (number, about) = match *keys {
        Keys::Exactly(number) => (number, ""),
        Keys::About(number) => (number, "about "),
    };
    let rate = filter.expected_rate();
    if args.report == Form::Json {
        return print(format!(
            "{}\n",
            json!({
                "keys": number,
                "skipped": skipped,
                "keys_exact": matches!(keys, Keys::Exactly(_)),
                "family": filter.family(),
                "bytes": filter.bytes(),
                "rate_now": rate,
            })
        ));
    }
    note(&format!(
        "{about}{}, {}, {}, false positive rate {}",
        show_things(number, "key"),
        filter.family(),
        show_bytes(filter.bytes()),
        show_rate(rate)
    ));
    Ok(())
}

fn family_of(args: &Build) -> FamilyChoice {
    args.family.unwrap_or_else(|| family_for(args.immutable, args.deletable))
}

/// The family of a filter for which none was named.
pub(crate) fn family_for(immutable: bool, deletable: bool) -> FamilyChoice {
    match (immutable, deletable) {
        (true, _) => FamilyChoice::Ribbon,
        (_, true) => FamilyChoice::Cuckoo,
        _ => FamilyChoice::Blocked,
    }
}

/// The rate that was asked for, or the one that fills the memory.
fn rate_of(args: &Build, family: FamilyChoice, items: u64) -> Result<f64> {
    let (Some(memory), None) = (args.size.memory, args.size.rate) else {
        return Ok(args.size.rate.unwrap_or(RATE));
    };
    match least_rate(family.name(), items, memory) {
        Some((rate, _)) => Ok(rate),
        None => bail!(
            "a {} filter of {} does not fit into {}: use a larger --memory",
            family.name(),
            show_things(items, "key"),
            show_bytes(memory)
        ),
    }
}

fn within(args: &Build, filter: &AnyFilter) -> Result<()> {
    match args.size.memory {
        Some(memory) if filter.bytes() > memory => {
            let (bytes, memory) = (show_bytes(filter.bytes()), show_bytes(memory));
            bail!("the filter takes {bytes}, more than the {memory} of --memory: use a larger -p")
        }
        _ => Ok(()),
    }
}

/// Keys go into the filter as they come, and are asked for at once.
fn streamed(
    args: &Build,
    filter: AnyFilter,
    rate: f64,
    capacity: u64,
    progress: &Progress,
) -> Result<Built> {
    const HELP: &str = "without -n, keys are counted before the filter is made";
    let counts = family_of(args).can_remove();
    let mut into = Into {
        limit: Limit::of_rate(&filter, rate, Overfull::of(args.overfull)),
        copies: if counts { Copies::once() } else { Copies::any() },
        ..Into::new(filter)
    };
    let Counts { records, skipped } =
        match read(args.files.clone(), &args.records, progress, &mut into) {
            Ok(counts) => counts,
            Err(error) if is_full(&error) => bail!(
                "-n {} is too small: the {} filter is full after {}; {HELP}",
                show_count(capacity),
                into.filter.family(),
                show_things(into.offered, "different key"),
            ),
            Err(error) => return Err(error),
        };
    let fill = Fill::of(&into.filter);
    let warning = into.limit.check(into.fresh, into.offered, fill)?;
    let keys = match counts {
        true => Keys::Exactly(into.offered),
        // Each of them was certainly new.
        false if into.fresh == records => Keys::Exactly(records),
        false => Keys::About(into.limit.known(into.fresh, into.offered, fill).held),
    };
    if let Some(warning) = warning {
        warn(&format!("{warning}; {HELP}"));
    }
    Ok(Built { filter: into.filter, keys, skipped })
}

/// Whether there was no room for a key.
pub(crate) fn is_full(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ChangeError::Full | ChangeError::BatchFull(_)))
}

struct Into {
    filter: AnyFilter,
    hasher: AnyHasher,
    limit: Limit,
    copies: Copies,
    digests: Vec<Digest>,
    answers: Vec<bool>,
    fresh: u64,
    offered: u64,
}

impl Into {
    /// Without a limit, for keys that were counted before.
    fn new(filter: AnyFilter) -> Self {
        Self {
            hasher: *filter.hasher(),
            limit: Limit::of(&filter, Overfull::Allowed),
            copies: Copies::any(),
            filter,
            digests: Vec::new(),
            answers: Vec::new(),
            fresh: 0,
            offered: 0,
        }
    }

    /// Inserts what was digested.
    fn insert(&mut self) -> Result<()> {
        self.answers.clear();
        self.answers.resize(self.digests.len(), false);
        let inserted = self.filter.insert_digests(&self.digests, &mut self.answers);
        if let Err(ChangeError::BatchFull(full)) = &inserted {
            self.offered += full.inserted as u64;
        }
        inserted?;
        self.offered += self.digests.len() as u64;
        self.fresh += self.answers.iter().filter(|fresh| **fresh).count() as u64;
        self.filter.contains_digests(&self.digests, &mut self.answers);
        if self.answers.iter().any(|found| !found) {
            bail!(
                "the filter does not find a key that was just inserted: please report this error"
            );
        }
        self.limit.watch(self.fresh, self.offered, || Ok(Fill::of(&self.filter)))
    }
}

impl Reader for Into {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        self.digests.clear();
        self.copies.add_digests(batch, &self.hasher, &mut self.digests)?;
        self.insert()?;
        Ok(true)
    }
}

/// The digests of all keys: eight bytes each, whatever the keys are. And how many records had no key.
fn digests_of(
    args: &Build,
    hasher: AnyHasher,
    copies: Copies,
    progress: &Progress,
) -> Result<(Vec<Digest>, u64)> {
    let mut digests = Digests { hasher, copies, all: Vec::new() };
    let counts = read(args.files.clone(), &args.records, progress, &mut digests)?;
    Ok((digests.all, counts.skipped))
}

/// Of equal ones, one.
pub(crate) fn distinct(mut digests: Vec<Digest>) -> Vec<Digest> {
    digests.sort_unstable();
    digests.dedup();
    digests
}

struct Digests {
    hasher: AnyHasher,
    copies: Copies,
    all: Vec<Digest>,
}

impl Reader for Digests {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        if self.all.try_reserve(batch.len()).is_err() {
            bail!(
                "there is not enough memory for more than {}, at 8 bytes each: with -n, keys go into the filter as they are read",
                show_things(self.all.len() as u64, "key")
            );
        }
        self.copies.add_digests(batch, &self.hasher, &mut self.all)?;
        Ok(true)
    }
}

/// All keys are read before the filter is planned for as many as are different.
fn counted(
    args: &Build,
    family: FamilyChoice,
    hasher: AnyHasher,
    progress: &Progress,
) -> Result<Built> {
    let counts = family.can_remove();
    let copies = if counts { Copies::once() } else { Copies::any() };
    let (mut digests, skipped) = digests_of(args, hasher, copies, progress)?;
    digests.sort_unstable();
    // In a filter that counts, two keys with one digest stay two, as if they had been inserted one by one.
    if !counts {
        digests.dedup();
    }
    let items = digests.len() as u64;
    let filter = empty(family, items, rate_of(args, family, items)?, hasher)?;
    progress.work("inserting and verifying", Some(items), &format!("a {} filter", family.name()));
    let mut into = Into::new(filter);
    for some in digests.chunks(1 << 16) {
        into.digests.clear();
        into.digests.extend_from_slice(some);
        into.insert().context(
            "too many keys have equal hashes, as if somebody had chosen them: use --hash keyed",
        )?;
        progress.advance(some.len() as u64);
    }
    progress.done();
    Ok(Built { filter: into.filter, keys: Keys::Exactly(items), skipped })
}

/// A set that does not change: built from the digests of all keys, and every one is asked for.
fn of_set(
    args: &Build,
    family: FamilyChoice,
    hasher: AnyHasher,
    progress: &Progress,
) -> Result<Built> {
    let (mut digests, skipped) = digests_of(args, hasher, Copies::any(), progress)?;
    if args.size.memory.is_some() {
        // Equal keys take no memory.
        digests = distinct(digests);
    }
    let rate = rate_of(args, family, digests.len() as u64)?;
    let threads = args.threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let how = frozen::Build::with_hasher(rate, hasher).seed(args.seed.unwrap_or(0)).checked();
    let how = if pool.current_num_threads() > 1 { how.parallel() } else { how };
    let keys = show_things(digests.len() as u64, "line");
    progress.work("building and verifying", None, &format!("a {} filter of {keys}", family.name()));
    let filter = pool.install(|| family.of_set(how, digests.into_iter()))?;
    progress.done();
    let keys = filter.len().expect("a static filter");
    Ok(Built { filter, keys: Keys::Exactly(keys), skipped })
}
