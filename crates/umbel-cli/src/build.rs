//! `umbel build`: a filter from keys.

use crate::amount::{show_bytes, show_count, show_rate};
use crate::cli::{Build, FamilyChoice, HashChoice, RATE, Records};
use crate::making::least_rate;
use crate::output::{may_write_filter, note, write_filter};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::frozen;
use umbel::hash::Digest;

pub(crate) fn run(args: Build) -> Result<()> {
    let family = family_of(&args);
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(&args.output) {
        return to_server(&args, family);
    }
    may_write_filter(&args.output, args.force)?;
    let hasher = args.hash.hasher(args.seed);
    let filter = built(&args, family, hasher)?;
    write_filter(&args.output, &filter, args.hash == HashChoice::Keyed)?;
    tell(&filter);
    Ok(())
}

/// Builds the filter here and copies it there.
#[cfg(feature = "redis")]
fn to_server(args: &Build, family: FamilyChoice) -> Result<()> {
    let address = crate::remote::Address::of(&args.output)?;
    if family != FamilyChoice::Blocked {
        bail!("{address}: on a server a filter is a blocked one, not {}", family.name());
    }
    if !args.force && address.is_taken(false)? {
        bail!("{address}: is there already; --force replaces it");
    }
    let hasher = address.hasher(args.hash == HashChoice::Keyed, args.seed)?;
    let filter = built(args, family, hasher)?;
    // As late as can be: until then the old one answers.
    address.is_taken(true)?;
    let AnyFilter::Blocked(blocked) = &filter else { bail!("{address}: no blocked filter") };
    crate::remote::Remote::upload(&address, blocked)?;
    tell(&filter);
    Ok(())
}

fn built(args: &Build, family: FamilyChoice, hasher: AnyHasher) -> Result<AnyFilter> {
    let progress = Progress::new(true);
    let filter = if family.is_static() {
        of_set(args, family, hasher, &progress)?
    } else if let Some(capacity) = args.size.capacity {
        streamed(
            args,
            family.empty(capacity, rate_of(args, family, capacity)?, hasher)?,
            &progress,
        )?
    } else {
        counted(args, family, hasher, &progress)?
    };
    within(args, &filter)?;
    Ok(filter)
}

/// Says what was built.
fn tell(filter: &AnyFilter) {
    note(&format!(
        "{} in {}, wrong for {}",
        filter.family(),
        show_bytes(filter.bytes()),
        show_rate(filter.expected_rate())
    ));
}

fn family_of(args: &Build) -> FamilyChoice {
    match args.family {
        Some(family) => family,
        None if args.immutable => FamilyChoice::Ribbon,
        None if args.deletable => FamilyChoice::Cuckoo,
        None => FamilyChoice::Blocked,
    }
}

/// The rate that was asked for, or the one that fills the memory.
fn rate_of(args: &Build, family: FamilyChoice, items: u64) -> Result<f64> {
    let (Some(memory), None) = (args.size.memory, args.size.rate) else {
        return Ok(args.size.rate.unwrap_or(RATE));
    };
    match least_rate(family.name(), items, memory) {
        Some((rate, _)) => Ok(rate),
        None => bail!("{} are too little for {} keys", show_bytes(memory), show_count(items)),
    }
}

fn within(args: &Build, filter: &AnyFilter) -> Result<()> {
    match args.size.memory {
        Some(memory) if filter.bytes() > memory => {
            let (bytes, memory) = (show_bytes(filter.bytes()), show_bytes(memory));
            bail!("the filter takes {bytes}, more than {memory}: a larger -p makes it smaller")
        }
        _ => Ok(()),
    }
}

/// Keys go into the filter as they come, and are asked for at once.
fn streamed(args: &Build, filter: AnyFilter, progress: &Progress) -> Result<AnyFilter> {
    let capacity = args.size.capacity.unwrap_or(u64::MAX);
    let mut into = Into {
        hasher: *filter.hasher(),
        filter,
        digests: Vec::new(),
        answers: Vec::new(),
        fresh: 0,
    };
    read(args.files.clone(), &args.records, progress, &mut into)?;
    if into.fresh > capacity {
        note(&format!(
            "at least {} different keys, more than the {} that were planned for: -n is too small",
            show_count(into.fresh),
            show_count(capacity)
        ));
    }
    Ok(into.filter)
}

struct Into {
    filter: AnyFilter,
    hasher: AnyHasher,
    digests: Vec<Digest>,
    answers: Vec<bool>,
    fresh: u64,
}

impl Into {
    /// Inserts what was digested.
    fn insert(&mut self) -> Result<()> {
        self.answers.clear();
        self.answers.resize(self.digests.len(), false);
        let planned = "-n must be as large as the number of keys, equal ones counted";
        self.filter.insert_digests(&self.digests, &mut self.answers).context(planned)?;
        self.fresh += self.answers.iter().filter(|fresh| **fresh).count() as u64;
        self.filter.contains_digests(&self.digests, &mut self.answers);
        if self.answers.iter().any(|found| !found) {
            bail!("a key that was just inserted is not found: please report this");
        }
        Ok(())
    }
}

impl Reader for Into {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(&self.hasher, &mut self.digests)?;
        self.insert()?;
        Ok(true)
    }
}

/// The digests of all keys: eight bytes each, whatever the keys are.
pub(crate) fn digests_of(
    files: &[PathBuf],
    records: &Records,
    hasher: AnyHasher,
    progress: &Progress,
) -> Result<Vec<Digest>> {
    let mut digests = Digests { hasher, all: Vec::new() };
    read(files.to_vec(), records, progress, &mut digests)?;
    Ok(digests.all)
}

/// Of equal ones, one.
pub(crate) fn distinct(mut digests: Vec<Digest>) -> Vec<Digest> {
    digests.sort_unstable();
    digests.dedup();
    digests
}

struct Digests {
    hasher: AnyHasher,
    all: Vec<Digest>,
}

impl Reader for Digests {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        if self.all.try_reserve(batch.len()).is_err() {
            bail!("there is no memory for more than {} keys", show_count(self.all.len() as u64));
        }
        batch.add_digests(&self.hasher, &mut self.all)?;
        Ok(true)
    }
}

/// All keys are read before the filter is planned for as many as are different.
fn counted(
    args: &Build,
    family: FamilyChoice,
    hasher: AnyHasher,
    progress: &Progress,
) -> Result<AnyFilter> {
    let digests = distinct(digests_of(&args.files, &args.records, hasher, progress)?);
    let items = digests.len() as u64;
    let filter = family.empty(items, rate_of(args, family, items)?, hasher)?;
    let mut into = Into { hasher, filter, digests: Vec::new(), answers: Vec::new(), fresh: 0 };
    for some in digests.chunks(1 << 16) {
        into.digests.clear();
        into.digests.extend_from_slice(some);
        into.insert()?;
    }
    Ok(into.filter)
}

/// A set that does not change: built from the digests of all keys, and every one is asked for.
fn of_set(
    args: &Build,
    family: FamilyChoice,
    hasher: AnyHasher,
    progress: &Progress,
) -> Result<AnyFilter> {
    let mut digests = digests_of(&args.files, &args.records, hasher, progress)?;
    if args.size.memory.is_some() {
        // Equal keys take no memory.
        digests = distinct(digests);
    }
    let rate = rate_of(args, family, digests.len() as u64)?;
    let threads = args.threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let how = frozen::Build::with_hasher(rate, hasher).seed(args.seed).checked();
    let how = if pool.current_num_threads() > 1 { how.parallel() } else { how };
    Ok(pool.install(|| family.of_set(how, digests.into_iter()))?)
}
