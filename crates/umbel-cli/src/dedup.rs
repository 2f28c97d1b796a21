//! `umbel dedup`: prints each record the first time it is seen.

use crate::amount::{Span, show_bytes, show_count, show_rate};
use crate::cli::{Dedup, Form, HashChoice};
use crate::output::{self, may_write, replace_file};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result, bail};
use serde_json::json;
use siphasher::sip128::SipHasher13;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::Write;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use umbel::any::{AnyFilter, AnyHasher};
use umbel::hash::{Digest, Digester};
use umbel::{BlockedBloomFilter, Keyed, Portable, ScalableBloomFilter, WindowBloomFilter};
use umbel::{blocked, scalable, window};

/// The rate unless another one is asked for.
const RATE: f64 = 1e-6;
/// The keys that a filter which grows begins with.
const FIRST: u64 = 1 << 20;

pub(crate) fn run(args: Dedup) -> Result<()> {
    if let Some(path) = &args.duplicates {
        may_write(path, args.force)?;
    }
    let Some(state) = &args.state else {
        return with_duplicates(&args, &mut Seen::new(&args)?);
    };
    // Nobody else may go on from the same state meanwhile, and if this fails it stays what it was.
    replace_file(state, true, |file| {
        let mut seen = Seen::of_state(state, &args)?;
        with_duplicates(&args, &mut seen)?;
        let Known::Filter(filter) = &seen.known else { bail!("only a filter has a state") };
        filter.to_writer(file, true).with_context(|| state.display().to_string())
    })
}

fn with_duplicates(args: &Dedup, seen: &mut Seen) -> Result<()> {
    match &args.duplicates {
        None => dedup(args, seen, None),
        Some(path) => replace_file(path, false, |file| dedup(args, seen, Some(file))),
    }
}

fn dedup<'a>(
    args: &Dedup,
    seen: &'a mut Seen,
    duplicates: Option<&'a mut dyn Write>,
) -> Result<()> {
    let (progress, start) = (Progress::new(true), Instant::now());
    let mut writer = Writer {
        seen,
        output: output::stdout(),
        duplicates,
        repeated: args.repeated,
        silent: args.count,
        fresh: Vec::new(),
        printed: 0,
        bytes: 0,
    };
    let records = read(args.files.clone(), &args.records, &progress, &mut writer)?;
    let printed = writer.printed;
    if args.count {
        writeln!(writer.output, "{printed}")?;
    }
    // Before anybody says that these lines were seen.
    writer.output.flush()?;
    let (bytes, seen) = (writer.bytes, writer.seen);
    seen.risk.count_all(&seen.known);
    report(args, seen, &Totals { records, printed, bytes, seconds: start.elapsed().as_secs_f64() })
}

/// What is known of the records so far.
struct Seen {
    known: Known,
    risk: Risk,
    digests: Vec<Digest>,
    /// When a window of time began, by the clock.
    timed: bool,
}

enum Known {
    Filter(Box<AnyFilter>),
    Exact(HashSet<u128, BuildHasherDefault<Taken>>, SipHasher13),
}

/// A hasher for what is one already.
#[derive(Default)]
struct Taken(u64);

impl Hasher for Taken {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are of 128 bits")
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Seen {
    fn new(args: &Dedup) -> Result<Self> {
        if args.exact {
            let secret = *Keyed::random().secret();
            let known = Known::Exact(HashSet::default(), SipHasher13::new_with_key(&secret));
            return Ok(Self::of(known, false));
        }
        let hasher = match args.hash {
            HashChoice::Keyed => AnyHasher::from(Keyed::random()),
            HashChoice::Portable => AnyHasher::from(Portable::default()),
        };
        let timed = matches!(args.window, Some(Span::Time(_)));
        Ok(Self::of(Known::Filter(new_filter(args, hasher)?.into()), timed))
    }

    /// What the last run knew, or nothing if this is the first.
    fn of_state(path: &Path, args: &Dedup) -> Result<Self> {
        if !path.exists() {
            return Self::new(args);
        }
        let mut filter =
            AnyFilter::load(path).with_context(|| format!("state {}", path.display()))?;
        if filter.as_insert().is_err() {
            bail!("{}: a {} filter takes no keys", path.display(), filter.family());
        }
        if args.size.capacity.is_some() || args.size.memory.is_some() || args.window.is_some() {
            let what = "-n, --memory and --window are for the first run";
            bail!("{}: has its size already; {what}", path.display());
        }
        let timed = match &filter {
            AnyFilter::Window(filter) => {
                matches!(filter.shape().window(), window::Window::Time(_))
            }
            _ => false,
        };
        Ok(Self::of(Known::Filter(filter.into()), timed))
    }

    fn of(known: Known, timed: bool) -> Self {
        let risk = Risk { rate: known.rate(), ..Risk::default() };
        Self { known, risk, digests: Vec::new(), timed }
    }

    /// Whether each record is seen for the first time.
    fn insert(&mut self, batch: &Batch<'_>, fresh: &mut [bool]) -> Result<()> {
        match &mut self.known {
            Known::Exact(all, hasher) => {
                let mut fresh = fresh.iter_mut();
                batch.for_keys(|key| {
                    let digest = hasher.hash(key).as_u128();
                    if let Some(fresh) = fresh.next() {
                        *fresh = all.insert(digest);
                    }
                })?;
            }
            Known::Filter(filter) => {
                if self.timed {
                    advance(filter);
                }
                self.digests.clear();
                let hasher = *filter.hasher();
                batch.for_keys(|key| self.digests.push(hasher.digest(key)))?;
                filter.insert_digests(&self.digests, fresh)?;
            }
        }
        Ok(())
    }
}

impl Known {
    fn rate(&self) -> f64 {
        match self {
            Self::Filter(filter) => filter.expected_rate(),
            Self::Exact(..) => 0.0,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Filter(filter) => filter.bytes(),
            Self::Exact(all, _) => all.capacity() as u64 * 17,
        }
    }
}

/// Tells a window of time what time it is.
fn advance(filter: &mut AnyFilter) {
    if let AnyFilter::Window(filter) = filter
        && let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH)
    {
        filter.advance(now);
    }
}

/// The filter that the arguments ask for.
fn new_filter(args: &Dedup, hasher: AnyHasher) -> Result<AnyFilter> {
    let rate = args.size.rate.unwrap_or(RATE);
    if let Some(span) = args.window {
        let shape = match (span, args.size.capacity) {
            (Span::Records(records), None) => window::Shape::for_rate(records, rate),
            (Span::Records(_), Some(_)) => bail!("a window of records has its size already"),
            (Span::Time(_), None) => {
                bail!("a window of time takes -n, the most lines that come in such a time")
            }
            (Span::Time(time), Some(capacity)) => window::Shape::for_time(time, capacity, rate),
        }?;
        within(shape.bytes(), args.size.memory)?;
        return Ok(AnyFilter::Window(WindowBloomFilter::with(shape, hasher)?));
    }
    let shape = match (args.size.capacity, args.size.memory) {
        (None, None) => {
            let filter =
                ScalableBloomFilter::with(scalable::Shape::for_rate(FIRST, rate)?, hasher)?;
            return Ok(AnyFilter::Scalable(filter));
        }
        (Some(capacity), None) => blocked::Shape::for_rate(capacity, rate)?,
        (None, Some(memory)) => blocked::Shape::for_budget(memory, rate)?,
        (Some(capacity), Some(memory)) => {
            let shape = blocked::Shape::for_memory(capacity, memory)?;
            let got = shape.expected_rate(capacity);
            if args.size.rate.is_some_and(|rate| got > rate) {
                let memory = show_bytes(memory);
                bail!("{memory} are too little: the rate would be {}", show_rate(got));
            }
            shape
        }
    };
    Ok(AnyFilter::Blocked(BlockedBloomFilter::with(shape, hasher)?))
}

fn within(bytes: u64, memory: Option<u64>) -> Result<()> {
    match memory {
        Some(memory) if bytes > memory => {
            bail!("the window takes {}, more than {}", show_bytes(bytes), show_bytes(memory))
        }
        _ => Ok(()),
    }
}

/// How many new records were probably taken for old ones.
#[derive(Debug, Default)]
struct Risk {
    /// How many were new, as far as the filter knows, and up to which of them risks are counted.
    fresh: u64,
    counted: u64,
    /// The rate when they were.
    rate: f64,
    lost: f64,
}

impl Risk {
    /// Counts when a filter has become a twelfth fuller: to know its rate it must be read.
    fn add(&mut self, fresh: u64, known: &Known) {
        self.fresh += fresh;
        if self.fresh - self.counted > self.counted / 12 + (1 << 16) {
            self.count_all(known);
        }
    }

    fn count_all(&mut self, known: &Known) {
        let rate = known.rate();
        // In between, it was in between.
        self.lost += (self.fresh - self.counted) as f64 * (self.rate + rate) / 2.0;
        (self.counted, self.rate) = (self.fresh, rate);
    }
}

struct Writer<'a> {
    seen: &'a mut Seen,
    output: std::io::BufWriter<std::io::StdoutLock<'static>>,
    duplicates: Option<&'a mut dyn Write>,
    repeated: bool,
    /// Lines are counted and not printed.
    silent: bool,
    fresh: Vec<bool>,
    printed: u64,
    bytes: u64,
}

impl Reader for Writer<'_> {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        if !self.silent {
            self.output.write_all(record)?;
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.write_all(record)?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        self.fresh.clear();
        self.fresh.resize(batch.len(), false);
        self.seen.insert(batch, &mut self.fresh)?;
        let mut from = 0;
        for run in self.fresh.chunk_by(|one, next| one == next) {
            let (new, records) = (run[0], from..from + run.len());
            from = records.end;
            let (count, bytes) = (records.len() as u64, batch.run(records));
            self.bytes += bytes.len() as u64;
            if new {
                self.seen.risk.add(count, &self.seen.known);
            }
            if new != self.repeated {
                self.printed += count;
                if !self.silent {
                    self.output.write_all(bytes)?;
                }
            } else if let Some(duplicates) = &mut self.duplicates {
                duplicates.write_all(bytes)?;
            }
        }
        Ok(true)
    }

    fn pause(&mut self) -> Result<()> {
        Ok(self.output.flush()?)
    }
}

struct Totals {
    records: u64,
    printed: u64,
    bytes: u64,
    seconds: f64,
}

/// Says what was done, and always what may have been lost.
fn report(args: &Dedup, seen: &Seen, totals: &Totals) -> Result<()> {
    let Totals { records, printed, bytes, seconds } = *totals;
    let (lost, rate, memory) = (seen.risk.lost, seen.known.rate(), seen.known.bytes());
    let mut err = std::io::stderr().lock();
    if args.stats == Some(Form::Json) {
        let stats = json!({
            "records": records,
            "printed": printed,
            "new": seen.risk.fresh,
            "repeated": records - seen.risk.fresh,
            "bytes": bytes,
            "seconds": seconds,
            "memory": memory,
            "rate": rate,
            "expected_lost": lost,
        });
        writeln!(err, "{stats}")?;
        return Ok(());
    }
    if !args.exact {
        let lost = if lost < 0.05 { "less than 0.1".into() } else { format!("about {lost:.1}") };
        writeln!(
            err,
            "umbel: {lost} new lines of {} may have been taken for repeated ones; --exact takes none",
            show_count(seen.risk.fresh)
        )?;
    }
    if args.stats == Some(Form::Text) {
        let million = records as f64 / seconds.max(1e-9) / 1e6;
        writeln!(
            err,
            "umbel: {} lines, {} new, {} repeated, {}, {:.2} s ({million:.1} million lines a second), {} of memory, rate now {}",
            show_count(records),
            show_count(seen.risk.fresh),
            show_count(records - seen.risk.fresh),
            show_bytes(bytes),
            seconds,
            show_bytes(memory),
            show_rate(rate),
        )?;
    }
    Ok(())
}
