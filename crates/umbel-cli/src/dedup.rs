//! `umbel dedup`: prints each record the first time it is seen.

use crate::amount::{Span, show_bytes, show_count, show_rate, show_things};
use crate::change::load_for_lines;
use crate::cli::{Dedup, Form, HashChoice};
use crate::exact::Exact;
use crate::output::{Lines, Stdout, is_closed, may_write, note, replace_file, write_file};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use umbel::any::AnyFilter;
use umbel::hash::Digest;
use umbel::{BlockedBloomFilter, ScalableBloomFilter, WindowBloomFilter};
use umbel::{blocked, scalable, window};

/// The rate unless another one is asked for.
const RATE: f64 = 1e-6;
/// What must be the same when a state goes on.
const OPTIONS: &str = "-n, -p, --memory, --window, --hash and --exact";
/// The keys that a filter which grows begins with.
const FIRST: u64 = 1 << 20;

pub(crate) fn run(args: Dedup) -> Result<()> {
    if let Some(path) = &args.duplicates {
        may_write(path, args.force)?;
    }
    let done = with_state(&args);
    if done.as_ref().is_err_and(is_closed) {
        tell_unsaved(&args)?;
    }
    done
}

/// The reader of standard output has closed it, which is no error. But nobody knows which lines it has read, so files are left
/// as they were, and that is said.
fn tell_unsaved(args: &Dedup) -> Result<()> {
    const CLOSED: &str = "standard output was closed before the end";
    if let Some(state) = &args.state {
        #[cfg(feature = "redis")]
        if crate::remote::is_remote(state) {
            // Lines are inserted there before they are printed, and no run will print these.
            let address = crate::remote::Address::of(state)?;
            bail!("{address}: {CLOSED}, and lines that were not printed are marked as seen there");
        }
        let again = "and the next run prints these lines again";
        note(&format!("{CLOSED}: {} is not saved, {again}", state.display()));
    }
    if let Some(path) = &args.duplicates {
        note(&format!("{CLOSED}: {} is not written", path.display()));
    }
    Ok(())
}

fn with_state(args: &Dedup) -> Result<()> {
    let Some(state) = &args.state else {
        return with_duplicates(args, &mut Seen::new(args)?);
    };
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(state) {
        return with_duplicates(args, &mut Seen::on_server(state, args)?);
    }
    // Nobody else may go on from the same state meanwhile, and if this fails it stays what it was.
    replace_file(state, true, |file| {
        let mut seen = Seen::of_state(state, args)?;
        with_duplicates(args, &mut seen)?;
        let written = match &seen.known {
            Known::Filter(filter) => filter.to_writer(file, true),
            Known::Exact(exact) => exact.write(file),
            #[cfg(feature = "redis")]
            Known::Server(_) => unreachable!("that is no file"),
        };
        written.with_context(|| state.display().to_string())
    })
}

fn with_duplicates(args: &Dedup, seen: &mut Seen) -> Result<()> {
    let Some(path) = &args.duplicates else { return dedup(args, seen, None) };
    write_file(path, false, |file| {
        let name = path.display().to_string();
        dedup(args, seen, Some(Lines::new(file, name, args.records.end())))
    })
}

fn dedup<'a>(
    args: &Dedup,
    seen: &'a mut Seen,
    duplicates: Option<Lines<&'a mut dyn Write>>,
) -> Result<()> {
    let (progress, start) = (Progress::new(true), Instant::now());
    let mut writer = Writer {
        seen,
        output: Stdout::stdout(args.records.end()),
        duplicates,
        repeated: args.repeated,
        silent: args.count,
        fresh: Vec::new(),
        printed: 0,
        bytes: 0,
        repeated_bytes: 0,
    };
    let records = read(args.files.clone(), &args.records, &progress, &mut writer)?;
    if args.count {
        writer.output.write(format!("{}\n", writer.printed).as_bytes())?;
    }
    // Before anybody says that these lines were seen.
    writer.output.flush()?;
    let Writer { printed, bytes, repeated_bytes, seen, .. } = writer;
    seen.risk.count_all(&seen.known);
    let seconds = start.elapsed().as_secs_f64();
    report(args, seen, &Totals { records, printed, bytes, repeated_bytes, seconds });
    Ok(())
}

/// What is known of the records so far.
struct Seen {
    known: Known,
    risk: Risk,
    digests: Vec<Digest>,
    /// Whether it is a window of time, which must be told what time it is.
    timed: bool,
}

enum Known {
    Filter(Box<AnyFilter>),
    Exact(Box<Exact>),
    /// On a server, where others go on from the same state at the same time.
    #[cfg(feature = "redis")]
    Server(Box<crate::remote::Remote>),
}

impl Seen {
    fn new(args: &Dedup) -> Result<Self> {
        if args.exact {
            return Ok(Self::of_exact(Exact::new()));
        }
        let hasher = args.hash.unwrap_or(HashChoice::Keyed).hasher(0);
        let filter = match plan(args)? {
            Plan::Scalable(shape) => AnyFilter::Scalable(ScalableBloomFilter::with(shape, hasher)?),
            Plan::Blocked(shape) => AnyFilter::Blocked(BlockedBloomFilter::with(shape, hasher)?),
            Plan::Window(shape) => AnyFilter::Window(WindowBloomFilter::with(shape, hasher)?),
        };
        Ok(Self::of_filter(filter))
    }

    /// What the last run knew, or nothing if this is the first.
    fn of_state(path: &Path, args: &Dedup) -> Result<Self> {
        let name = || path.display().to_string();
        if !path.try_exists().with_context(name)? {
            return Self::new(args);
        }
        // The same command may be run every day, but not another one.
        let others = || anyhow!("{}: was begun with other {OPTIONS}; leave them out", name());
        if Exact::is_in(path)? {
            let any = args.size.is_given() || args.window.is_some() || args.hash.is_some();
            return if any { Err(others()) } else { Ok(Self::of_exact(Exact::load(path)?)) };
        }
        let mut filter = load_for_lines(path)?;
        filter.as_insert().with_context(name)?;
        let hash = args.hash.map_or(filter.hasher().name(), HashChoice::name);
        if args.exact || !is_as_planned(&filter, args)? || hash != filter.hasher().name() {
            return Err(others());
        }
        Ok(Self::of_filter(filter))
    }

    /// What all runs with the same filter on a server know, or nothing if the address says that this is the first. A
    /// filter that is missing may have been lost, and then everything would be printed once more.
    #[cfg(feature = "redis")]
    fn on_server(state: &Path, args: &Dedup) -> Result<Self> {
        use crate::remote::{Address, Remote};
        let address = Address::of(state)?;
        if args.exact {
            bail!("{address}: a filter on a server is never exact; leave --exact out");
        }
        let asked = args.size.capacity.is_some() || args.size.memory.is_some();
        let shape = match plan(args)? {
            Plan::Blocked(shape) => Some(shape),
            Plan::Scalable(_) => None,
            Plan::Window(_) => bail!("{address}: a filter on a server has no window"),
        };
        if !address.creates() {
            let remote = Remote::open_state(&address)?;
            let hash = args.hash.map_or(remote.hash(), HashChoice::name);
            let planned = if asked {
                shape == Some(*remote.shared().shape())
            } else {
                args.size.rate.is_none()
            };
            if !planned || hash != remote.hash() {
                bail!(
                    "{address}: was begun with other -n, -p, --memory and --hash; leave them out"
                );
            }
            return Ok(Self::of(Known::Server(remote.into()), false));
        }
        let Some(shape) = shape else {
            bail!("{address}: does not grow: -n says how many different lines there will be")
        };
        let keyed = args.hash.map_or(address.has_secret(), |hash| hash == HashChoice::Keyed);
        let hasher = address.hasher(keyed, 0)?;
        let remote = Remote::create(&address, shape, hasher)?;
        Ok(Self::of(Known::Server(remote.into()), false))
    }

    fn of_filter(filter: AnyFilter) -> Self {
        let timed = match &filter {
            AnyFilter::Window(filter) => {
                matches!(filter.shape().window(), window::Window::Time(_))
            }
            _ => false,
        };
        Self::of(Known::Filter(filter.into()), timed)
    }

    fn of_exact(exact: Exact) -> Self {
        Self::of(Known::Exact(exact.into()), false)
    }

    fn of(known: Known, timed: bool) -> Self {
        let mut risk = Risk::default();
        risk.count_all(&known);
        Self { known, risk, digests: Vec::new(), timed }
    }

    /// Whether each record is seen for the first time.
    fn insert(&mut self, batch: &Batch<'_>, fresh: &mut [bool]) -> Result<()> {
        match &mut self.known {
            Known::Exact(exact) => {
                // All have a key before any is known.
                let mut digests = Vec::with_capacity(batch.len());
                batch.for_keys(|key| digests.push(exact.digest(key)))?;
                for (digest, fresh) in digests.into_iter().zip(fresh) {
                    *fresh = exact.insert(digest);
                }
            }
            Known::Filter(filter) => {
                if self.timed {
                    advance(filter);
                }
                batch.digests(filter.hasher(), &mut self.digests)?;
                filter.insert_digests(&self.digests, fresh)?;
            }
            #[cfg(feature = "redis")]
            Known::Server(remote) => {
                batch.digests(remote.hasher(), &mut self.digests)?;
                remote.insert(&self.digests, fresh)?;
            }
        }
        Ok(())
    }
}

impl Known {
    fn rate(&self) -> f64 {
        match self {
            Self::Filter(filter) => filter.expected_rate(),
            Self::Exact(_) => 0.0,
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.rate(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Filter(filter) => filter.bytes(),
            Self::Exact(exact) => exact.bytes(),
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.shared().shape().bytes(),
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
#[derive(PartialEq)]
enum Plan {
    Scalable(scalable::Shape),
    Blocked(blocked::Shape),
    Window(window::Shape),
}

/// Whether the filter is what the arguments ask for, if they ask for something.
fn is_as_planned(filter: &AnyFilter, args: &Dedup) -> Result<bool> {
    if !args.size.is_given() && args.window.is_none() {
        return Ok(true);
    }
    let got = match filter {
        AnyFilter::Scalable(filter) => Plan::Scalable(*filter.shape()),
        AnyFilter::Blocked(filter) => Plan::Blocked(*filter.shape()),
        AnyFilter::Window(filter) => Plan::Window(*filter.shape()),
        _ => return Ok(false),
    };
    Ok(got == plan(args)?)
}

fn plan(args: &Dedup) -> Result<Plan> {
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
        return Ok(Plan::Window(shape));
    }
    let shape = match (args.size.capacity, args.size.memory) {
        (None, None) => return Ok(Plan::Scalable(scalable::Shape::for_rate(FIRST, rate)?)),
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
    Ok(Plan::Blocked(shape))
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
    /// How many are new when they are counted again.
    next: u64,
    lost: f64,
}

impl Risk {
    /// Counts when a filter has become a twelfth fuller: to know its rate it must be read, which may
    /// cost a line of it for every new record.
    fn add(&mut self, fresh: u64, known: &Known) {
        self.fresh += fresh;
        if self.fresh > self.next {
            self.count_all(known);
        }
    }

    fn count_all(&mut self, known: &Known) {
        let rate = known.rate().min(ALWAYS);
        let between = mean(self.rate, rate);
        // The records that were found to be new are all new ones but a share of this rate.
        self.lost += (self.fresh - self.counted) as f64 * between / (1.0 - between);
        (self.counted, self.rate) = (self.fresh, rate);
        self.next = self.fresh + self.fresh / 12 + known.bytes() / 64;
    }
}

/// A rate that is as good as one.
const ALWAYS: f64 = 1.0 - 1e-9;

/// The mean of a rate while it rose from one to another as a power of the number of keys, which on
/// so short a way is nearly an exponential.
fn mean(from: f64, to: f64) -> f64 {
    if from > 0.0 && to > from * 1.001 { (to - from) / (to / from).ln() } else { (from + to) / 2.0 }
}

struct Writer<'a> {
    seen: &'a mut Seen,
    output: Stdout,
    duplicates: Option<Lines<&'a mut dyn Write>>,
    repeated: bool,
    /// Lines are counted and not printed.
    silent: bool,
    fresh: Vec<bool>,
    printed: u64,
    bytes: u64,
    repeated_bytes: u64,
}

impl Reader for Writer<'_> {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        if !self.silent {
            self.output.write(record)?;
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.write(record)?;
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
            } else {
                self.repeated_bytes += bytes.len() as u64;
            }
            if new != self.repeated {
                self.printed += count;
                if !self.silent {
                    self.output.write(bytes)?;
                }
            } else if let Some(duplicates) = &mut self.duplicates {
                duplicates.write(bytes)?;
            }
        }
        Ok(true)
    }

    fn pause(&mut self) -> Result<()> {
        self.output.flush()
    }
}

struct Totals {
    records: u64,
    printed: u64,
    bytes: u64,
    repeated_bytes: u64,
    seconds: f64,
}

/// Says what was done, and always what may have been lost.
fn report(args: &Dedup, seen: &Seen, totals: &Totals) {
    let Totals { records, printed, bytes, repeated_bytes, seconds } = *totals;
    let (new, repeated) = (seen.risk.fresh, records - seen.risk.fresh);
    // What was lost is among the repeated ones.
    let lost = seen.risk.lost.min(repeated as f64);
    let (rate, memory) = (seen.known.rate(), seen.known.bytes());
    if args.stats == Some(Form::Json) {
        let stats = json!({
            "records": records,
            "printed": printed,
            "new": new,
            "repeated": repeated,
            "bytes": bytes,
            "repeated_bytes": repeated_bytes,
            "seconds": seconds,
            "memory": memory,
            "rate": rate,
            "expected_lost": lost,
        });
        // A program reads this, so nothing else is said.
        let _ = writeln!(std::io::stderr(), "{stats}");
        return;
    }
    if !matches!(seen.known, Known::Exact(_)) {
        let lost = if lost < 0.05 { "less than 0.1".into() } else { format!("about {lost:.1}") };
        note(&format!(
            "{}; {lost} more may have been taken for repeated ones (none with --exact)",
            show_things(new, "new line")
        ));
    }
    if args.stats == Some(Form::Text) {
        let million = records as f64 / seconds.max(1e-9) / 1e6;
        note(&format!(
            "{}, {} new, {} repeated ({} of {}); {seconds:.2} s ({million:.1} million lines a second), {} of memory, rate now {}",
            show_things(records, "line"),
            show_count(new),
            show_count(repeated),
            show_bytes(repeated_bytes),
            show_bytes(bytes),
            show_bytes(memory),
            show_rate(rate),
        ));
    }
}
