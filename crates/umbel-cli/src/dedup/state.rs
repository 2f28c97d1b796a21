//! States: what the last run knew, for the next one.
//!
//! A state is an exact set or a filter. Filters of states have a mark: the number of their secret is [`MARK`], or the seed if they
//! hash without one. By that they are told apart from filters that `umbel build` made, which others may use as they are.

use super::known::Known;
use super::plan::{FIRST, Plan, RATE};
use super::seen::{Limit, Seen};
use crate::amount::{Span, show_bytes, show_count, show_rate};
use crate::change::load_for_lines;
use crate::cli::Dedup;
use crate::exact::{self, Saved};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use umbel::Portable;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::format::{Header, Secret};
use umbel::raw::Any;
use umbel::window::Window;

/// The number of the secret in a state, or the seed: `umbel dd` in bytes.
pub(super) const MARK: u64 = u64::from_le_bytes(*b"umbel dd");

impl Seen {
    /// What the last run knew, or nothing if this is the first.
    pub(super) fn of_state(path: &Path, args: &Dedup, sets: u64) -> Result<Self> {
        let name = || path.display().to_string();
        if !path.try_exists().with_context(name)? {
            return Self::new(args, sets);
        }
        if exact::is_in(path)? {
            if let Some(option) = filter_option(args) {
                differs(path, "exact, without a filter", &option)?;
            }
            return Self::of_exact(path, Limit::of(args, sets), args).with_context(name);
        }
        let filter = load_for_lines(path)?;
        if !is_state(path, &filter)? {
            bail!(
                "{}: is a filter that `umbel dedup --state` did not write, and it stays as it is. To print the lines that are not \
                 in it, use `umbel check -v {0}`. A new state begins with the name of a file that does not exist",
                name()
            );
        }
        if args.exact {
            differs(path, "as a filter, or went over to one", "--exact")?;
        }
        if let Some((began, asked)) = difference(&filter, args)? {
            differs(path, &began, &asked)?;
        }
        Ok(Self::of(Known::Filter(filter.into()), Limit::of(args, sets), args))
    }

    /// The keys of an exact set, in a set again or, if they are more than the memory limit allows, in a filter.
    fn of_exact(path: &Path, limit: Limit, args: &Dedup) -> Result<Self> {
        let saved = Saved::open(path)?;
        let count = saved.count();
        let mut seen = Self::of(Known::Exact(saved.empty(limit.of_set()).into()), limit, args);
        let (mut some, mut fresh) = (Vec::with_capacity(2048), [false; 2048]);
        let mut insert = |seen: &mut Self, some: &mut Vec<u128>| {
            let done = seen.insert(some, 1, &mut fresh[..some.len()])?;
            match seen.stopped() {
                Some(error) if done < some.len() => Err(error),
                _ => {
                    some.clear();
                    Ok(())
                }
            }
        };
        saved.for_each(|digest| {
            some.push(digest);
            if some.len() == some.capacity() { insert(&mut seen, &mut some) } else { Ok(()) }
        })?;
        insert(&mut seen, &mut some)?;
        if let Known::Exact(exact) = &seen.known
            && exact.len() != count
        {
            bail!("is damaged: it is not what was saved");
        }
        seen.loaded(count);
        Ok(seen)
    }

    /// Writes a state.
    pub(super) fn save(&self, path: &Path, file: &mut impl Write) -> Result<()> {
        let written = match &self.known {
            Known::Filter(filter) => filter.to_writer(file, Secret::Kept),
            Known::Exact(exact) => exact.write(file),
            #[cfg(feature = "redis")]
            Known::Server(_) => unreachable!("that is no file"),
        };
        written.with_context(|| path.display().to_string())
    }

    /// What all runs with the same filter on a server know, or nothing if the address says that this is the first. A
    /// filter that is missing may have been lost, and then everything would be printed once more.
    #[cfg(feature = "redis")]
    pub(super) fn on_server(state: &Path, args: &Dedup) -> Result<Self> {
        use crate::remote::{Address, Remote};
        let address = Address::of(state)?;
        if args.exact {
            bail!("{address}: a filter on a server is never exact; leave --exact out");
        }
        let shape = match Plan::of(args)? {
            Plan::Blocked(shape) => Some(shape),
            Plan::Scalable(_) => None,
            Plan::Window(_) => bail!("{address}: a filter on a server has no window"),
        };
        let limit = Limit::of(args, 1);
        if address.creates() {
            let Some(shape) = shape else {
                bail!("{address}: does not grow: -n says how many different lines there will be")
            };
            let keyed = args
                .hash
                .map_or(address.has_secret(), |hash| hash == crate::cli::HashChoice::Keyed);
            let hasher = address.hasher(keyed, 0)?;
            let remote = Remote::create(&address, shape, hasher)?;
            return Ok(Self::of(Known::Server(remote.into()), limit, args));
        }
        let remote = Remote::open_state(&address)?;
        let got = *remote.shared().shape();
        let difference = match args.hash {
            Some(hash) if hash.name() != remote.hash() => {
                Some((format!("with --hash {}", remote.hash()), format!("--hash {}", hash.name())))
            }
            _ => blocked_difference(&got, args)?,
        };
        if let Some((began, asked)) = difference {
            bail!("{address}: {}", told(&began, &asked));
        }
        Ok(Self::of(Known::Server(remote.into()), limit, args))
    }
}

/// Whether a filter has the mark of a state.
pub(crate) fn is_marked(header: &Header, filter: &AnyFilter) -> bool {
    match filter.hasher().name() {
        "keyed" => header.has_secret() && header.secret_number() == MARK,
        _ => *filter.hasher() == AnyHasher::from(Portable::seeded(MARK)),
    }
}

/// Whether `dedup` wrote a filter.
fn is_state(path: &Path, filter: &AnyFilter) -> Result<bool> {
    let header = Header::read(path).with_context(|| path.display().to_string())?;
    let is_marked = is_marked(&header, filter);
    // The filters that earlier versions began without options had no mark. `build` would have to be told exactly their size.
    let is_old = header.has_secret()
        && header.secret_number() == 0
        && matches!(filter.raw(), Any::Scalable(filter) if filter.shape().items() == FIRST);
    Ok((is_marked || is_old) && Plan::of_filter(filter).is_some())
}

/// The same command may be run every day, but not another one.
fn differs(path: &Path, began: &str, asked: &str) -> Result<()> {
    bail!("{}: {}", path.display(), told(began, asked))
}

fn told(began: &str, asked: &str) -> String {
    let remedy = if asked.starts_with("no ") { "add it" } else { "leave that out" };
    format!(
        "the state was begun {began}, and this run has {asked}; {remedy}, or begin another state"
    )
}

/// An option that asks for a filter.
fn filter_option(args: &Dedup) -> Option<String> {
    let (size, hash) = (&args.size, args.hash);
    let capacity = size.capacity.map(|items| format!("-n {}", show_count(items)));
    let rate = size.rate.map(|rate| format!("-p {}", show_rate(rate)));
    let window = args.window.map(|window| format!("--window {}", show_span(window)));
    capacity.or(rate).or(window).or(hash.map(|hash| format!("--hash {}", hash.name())))
}

/// What the first option is in which a run differs from the one that began the filter: there and here.
fn difference(filter: &AnyFilter, args: &Dedup) -> Result<Option<(String, String)>> {
    let hasher = filter.hasher().name();
    if let Some(hash) = args.hash
        && hash.name() != hasher
    {
        return Ok(Some((format!("with --hash {hasher}"), format!("--hash {}", hash.name()))));
    }
    let window = match filter.raw() {
        Any::Window(filter) => Some(*filter.shape()),
        _ => None,
    };
    match (window, args.window) {
        (None, Some(asked)) => {
            let asked = format!("--window {}", show_span(asked));
            return Ok(Some(("without a window".to_owned(), asked)));
        }
        (Some(shape), asked) if asked.is_some() || args.size.is_given() => {
            let span = match shape.window() {
                Window::Insertions(records) => Span::Records(records),
                Window::Time(time) => Span::Time(time),
            };
            let began = format!("with --window {}", show_span(span));
            return Ok(match asked {
                None => Some((began, "no --window".to_owned())),
                Some(asked) if asked != span => {
                    Some((began, format!("--window {}", show_span(asked))))
                }
                Some(_) if Plan::of(args)? == Plan::Window(shape) => None,
                Some(_) if args.size.capacity.is_some_and(|items| items != shape.items()) => {
                    capacity_difference(shape.items(), args)
                }
                Some(_) => Some(rate_difference(shape.burst_rate(), args)),
            });
        }
        (Some(_), _) => return Ok(None),
        (None, None) => {}
    }
    match filter.raw() {
        Any::Blocked(filter) => blocked_difference(filter.shape(), args),
        Any::Scalable(filter) => {
            let shape = filter.shape();
            Ok(match (&args.size.capacity, &args.size.memory) {
                (Some(items), _) => {
                    Some(("without -n".to_owned(), format!("-n {}", show_count(*items))))
                }
                (None, Some(memory)) => Some((
                    "without --memory".to_owned(),
                    format!("--memory {}", show_bytes(*memory)),
                )),
                (None, None) if args.size.rate.is_some_and(|rate| rate != shape.rate()) => {
                    Some(rate_difference(shape.rate(), args))
                }
                (None, None) => None,
            })
        }
        _ => Ok(None),
    }
}

/// The same for a filter of a fixed size.
fn blocked_difference(
    shape: &umbel::blocked::Shape,
    args: &Dedup,
) -> Result<Option<(String, String)>> {
    let memory = |asked: u64| {
        let began = format!("with a filter of {}", show_bytes(shape.bytes()));
        Some((began, format!("--memory {}", show_bytes(asked))))
    };
    let rate = shape.expected_rate(shape.items());
    Ok(match (args.size.capacity, args.size.rate, args.size.memory) {
        (None, None, None) => None,
        // A limit, not a plan: a run that went over left the filter that had room then.
        (None, None, Some(asked)) if shape.bytes() <= asked => None,
        (None, Some(_), None) => {
            let began = format!("with -n {}", show_count(shape.items()));
            Some((began, "-p without -n".to_owned()))
        }
        (Some(items), _, _) if items != shape.items() => capacity_difference(shape.items(), args),
        _ if Plan::of(args)? == Plan::Blocked(*shape) => None,
        (_, None, Some(asked)) => memory(asked),
        (None, Some(asked), Some(bytes)) if rate <= asked => memory(bytes),
        _ => Some(rate_difference(rate, args)),
    })
}

fn capacity_difference(began: u64, args: &Dedup) -> Option<(String, String)> {
    let asked = args.size.capacity?;
    Some((format!("with -n {}", show_count(began)), format!("-n {}", show_count(asked))))
}

fn rate_difference(began: f64, args: &Dedup) -> (String, String) {
    let asked = match args.size.rate {
        Some(rate) => format!("-p {}", show_rate(rate)),
        None => format!("no -p, which means {}", show_rate(RATE)),
    };
    (format!("with a false positive rate of {}", show_rate(began)), asked)
}

/// A window as it is written on the command line.
fn show_span(span: Span) -> String {
    match span {
        Span::Records(records) => show_count(records),
        Span::Time(time) => format!("{time:?}"),
    }
}
