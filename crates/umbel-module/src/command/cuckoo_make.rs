//! CF.RESERVE, INSERT, INSERTNX: creating cuckoo filters.

use super::bloom_make::position;
use super::cuckoo_keys::{Copies, put, tell, tell_of_filter};
use super::number::{double, integer};
use super::words::{
    EXISTS, NO_MEMORY_TO_CREATE, NOT_FOUND, UNKNOWN_ARGUMENT, WRONG_TYPE, cuckoo_refused,
    not_created,
};
use crate::cuckoo::{Cuckoo, Settings};
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::error::{Invalid, Refused};
use crate::memory::Kept;
use crate::own::OwnCuckoo;
use crate::settings::{self, MAX_CAPACITY, MAX_EXPANSION};
use core::ops::RangeInclusive;

/// The parameters of a plain filter that was created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    capacity: i64,
    settings: Settings,
}

impl Made {
    fn make(self, context: &Context, key: &mut Key<'_>) -> Result<Self, Fault> {
        let make = || {
            let capacity = u64::try_from(self.capacity).map_err(|_| Invalid::Field("capacity"))?;
            Cuckoo::new(capacity, self.settings)
        };
        let filter = Kept::try_make(make).map_err(not_created)?;
        if context.too_large(filter.value().reported_bytes()) {
            return Err(NO_MEMORY_TO_CREATE);
        }
        key.set(filter);
        Ok(self)
    }

    /// Replicates the command that creates the same filter under any settings.
    pub(super) fn replicate(self, context: &Context, name: Argument<'_>) {
        let Settings { bucket_size, max_iterations, expansion } = self.settings;
        let numbers = [self.capacity, bucket_size.into(), max_iterations.into(), expansion.into()];
        let [capacity, bucket_size, max_iterations, expansion] =
            numbers.map(|number| number.to_string());
        let rest = [
            capacity.as_bytes(),
            b"BUCKETSIZE",
            bucket_size.as_bytes(),
            b"MAXITERATIONS",
            max_iterations.as_bytes(),
            b"EXPANSION",
            expansion.as_bytes(),
        ];
        context.replicate_as(c"CF.RESERVE", name, &rest);
    }
}

/// Expansions are powers of two; others are rounded up.
fn rounded(expansion: i64) -> u16 {
    let expansion = u16::try_from(expansion).unwrap_or(0);
    if expansion == 0 { 0 } else { expansion.checked_next_power_of_two().unwrap_or(1 << 15) }
}

/// The parameters from the settings.
fn by_default() -> Made {
    let short = |number| u16::try_from(number).unwrap_or(1);
    Made {
        capacity: settings::CF_INITIAL_SIZE.get(),
        settings: Settings {
            bucket_size: short(settings::CF_BUCKET_SIZE.get()),
            max_iterations: short(settings::CF_MAX_ITERATIONS.get()),
            expansion: rounded(settings::CF_EXPANSION_FACTOR.get()),
        },
    }
}

const TOO_FEW_BY_DEFAULT: Fault =
    Fault::Text(c"Capacity must be in the range [cf-bucket-size * 2, 1073741824]");

/// The capacity must be within the limits. They apply to clients: an older primary may have had none.
fn check(context: &Context, made: Made, fault: Fault) -> Result<Made, Fault> {
    let least = i64::from(made.settings.bucket_size) * 2;
    let fits = (least..=MAX_CAPACITY).contains(&made.capacity);
    if fits || context.trusts_the_sender() { Ok(made) } else { Err(fault) }
}

/// Creates a filter with the default settings.
pub(super) fn make_by_default(context: &Context, key: &mut Key<'_>) -> Result<Made, Fault> {
    check(context, by_default(), TOO_FEW_BY_DEFAULT)?.make(context, key)
}

/// The arguments of `CF.RESERVE`.
struct Wishes {
    made: Made,
    error: Option<f64>,
    /// Whether an option was given that a filter with a custom rate does not use.
    tables: bool,
}

impl Wishes {
    /// The first occurrence of every word counts, as with RedisBloom, which searches for each word in turn.
    /// Unknown words are ignored.
    fn of(context: &Context, arguments: Arguments<'_>) -> Result<Self, Fault> {
        let capacity = integer(arguments.need(1)?.bytes()).ok_or(Fault::Text(c"Bad capacity"))?;
        let Made { mut settings, .. } = by_default();
        let trusted = context.trusts_the_sender();
        let mut tables = false;
        let mut number = |word, range: RangeInclusive<i64>, unparsed, outside| {
            let Some(at) = position(arguments, 2, word) else { return Ok(None) };
            tables = true;
            let value = arguments.get(at + 1).and_then(|value| integer(value.bytes()));
            let value = value.ok_or(Fault::Text(unparsed))?;
            if range.contains(&value) { Ok(Some(value)) } else { Err(Fault::Text(outside)) }
        };
        let outside = c"MAXITERATIONS: value must be in the range [1, 65535]";
        let unparsed = c"Couldn't parse MAXITERATIONS";
        if let Some(steps) = number("MAXITERATIONS", 1..=65_535, unparsed, outside)? {
            settings.max_iterations = steps as u16;
        }
        let outside = c"BUCKETSIZE: value must be in the range [1, 255]";
        if let Some(size) = number("BUCKETSIZE", 1..=255, c"Couldn't parse BUCKETSIZE", outside)? {
            settings.bucket_size = size as u16;
        }
        let outside = c"EXPANSION: value must be in the range [0, 32768]";
        let range = 0..=if trusted { 65_535 } else { MAX_EXPANSION };
        if let Some(by) = number("EXPANSION", range, c"Couldn't parse EXPANSION", outside)? {
            settings.expansion = rounded(by);
        }
        let text = c"Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
        let made = check(context, Made { capacity, settings }, Fault::Text(text))?;
        Ok(Self { made, error: None, tables })
    }

    /// Our own option. It is checked after everything that RedisBloom checks.
    fn with_error(mut self, arguments: Arguments<'_>) -> Result<Self, Fault> {
        let word = |at: &usize| {
            arguments.get(*at).is_some_and(|word| word.bytes().eq_ignore_ascii_case(b"ERROR"))
        };
        let Some(at) = (2..arguments.len()).step_by(2).find(word) else { return Ok(self) };
        let rate = double(arguments.need(at + 1)?.bytes());
        let text = c"ERR error rate must be in the range (0.000000, 1.000000)";
        let rate = rate.filter(|rate| *rate > 0.0 && *rate < 1.0).ok_or(Fault::Text(text))?;
        if self.tables {
            let text = c"ERR ERROR goes with none of BUCKETSIZE, MAXITERATIONS and EXPANSION";
            return Err(Fault::Text(text));
        }
        self.error = Some(rate);
        Ok(self)
    }
}

pub(super) fn reserve(context: &Context, arguments: Arguments<'_>) -> Outcome {
    // Options come in pairs.
    if !arguments.len().is_multiple_of(2) || arguments.len() < 2 {
        return Err(Fault::Arity);
    }
    let wishes = Wishes::of(context, arguments)?;
    let name = arguments.need(0)?;
    let mut key = context.write(name);
    if !key.is_empty() {
        let ours = key.value::<Cuckoo>().is_some() || key.value::<OwnCuckoo>().is_some();
        return Err(if ours { EXISTS } else { WRONG_TYPE });
    }
    let wishes = wishes.with_error(arguments)?;
    match wishes.error {
        Some(rate) => {
            let capacity = wishes.made.capacity as u64;
            let filter = Kept::try_make(|| OwnCuckoo::new(capacity, rate)).map_err(not_created)?;
            if context.too_large(filter.value().bytes()) {
                return Err(NO_MEMORY_TO_CREATE);
            }
            key.set(filter);
            context.replicate();
        }
        None => wishes.made.make(context, &mut key)?.replicate(context, name),
    }
    context.notify(c"cf.reserve", name);
    context.reply_ok();
    Ok(())
}

pub(super) fn insert(context: &Context, arguments: Arguments<'_>) -> Outcome {
    insert_as(context, arguments, Copies::Many)
}

pub(super) fn insert_new(context: &Context, arguments: Arguments<'_>) -> Outcome {
    insert_as(context, arguments, Copies::One)
}

fn insert_as(context: &Context, arguments: Arguments<'_>, copies: Copies) -> Outcome {
    if arguments.len() < 3 {
        return Err(Fault::Arity);
    }
    let (mut made, mut create, mut at) = (by_default(), true, 1);
    // Options are recognised by their first letter, as with RedisBloom, and checked in their order.
    loop {
        match arguments.need(at)?.bytes().first().map(u8::to_ascii_lowercase) {
            Some(b'i') => break,
            Some(b'n') => create = false,
            Some(b'c') => {
                let capacity = integer(arguments.need(at + 1)?.bytes());
                made.capacity = capacity.ok_or(Fault::Text(c"Bad capacity"))?;
                check(context, made, TOO_FEW_BY_DEFAULT)?;
                at += 1;
            }
            _ => return Err(UNKNOWN_ARGUMENT),
        }
        at += 1;
    }
    if arguments.len() == at + 1 {
        return Err(Fault::Arity);
    }
    let made = check(context, made, TOO_FEW_BY_DEFAULT)?;
    let name = arguments.need(0)?;
    let mut key = context.write(name);
    let mut fresh = None;
    if key.is_empty() {
        if !create {
            return Err(NOT_FOUND);
        }
        fresh = Some(made.make(context, &mut key)?);
    }
    let items: Vec<&[u8]> = arguments.from(at + 1).iter().map(Argument::bytes).collect();
    let mut results = vec![Ok(false); items.len()];
    put(context, &mut key, &items, copies, &mut results)
        .inspect_err(|_| tell_of_filter(context, name, fresh))?;
    if fresh.is_some() || results.contains(&Ok(true)) {
        let (command, event) = match copies {
            Copies::One => (c"cf.insertnx", c"cf.insertnx"),
            Copies::Many => (c"cf.insert", c"cf.insert"),
        };
        if results.iter().any(Result::is_err) {
            // Only the items that were taken: a replica may have room for more, and has no limit to stop at.
            fresh.iter().for_each(|made| made.replicate(context, name));
            let mut rest = vec![b"NOCREATE".as_slice(), b"ITEMS"];
            let taken = items.iter().zip(&results).filter(|(_, result)| **result == Ok(true));
            rest.extend(taken.map(|(item, _)| item));
            if rest.len() > 2 {
                context.replicate_as(command, name, &rest);
            }
            context.notify(event, name);
        } else {
            tell(context, event, name, fresh);
        }
    }
    if let Some(done) = results.iter().position(|result| *result == Err(Refused::Work)) {
        results.truncate(done + 1);
    }
    context.reply_array(results.len());
    for result in results {
        match (result, copies) {
            (Err(Refused::Work), _) => context.fault(cuckoo_refused(Refused::Work)),
            (Ok(added), Copies::Many) => context.reply_bool(added),
            (Ok(added), Copies::One) => context.reply_integer(i64::from(added)),
            (Err(_), Copies::Many) if context.speaks_maps() => context.reply_bool(false),
            (Err(_), _) => context.reply_integer(-1),
        }
    }
    Ok(())
}
