//! CF.RESERVE, INSERT, INSERTNX: how cuckoo filters come to be.

use super::cuckoo_keys::{Copies, put, tell};
use super::number::{double, integer};
use super::words::{EXISTS, NO_MEMORY_TO_CREATE, NOT_FOUND, WRONG_TYPE, not_created};
use crate::cuckoo::{Cuckoo, Settings};
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::memory::Kept;
use crate::own::OwnCuckoo;
use crate::settings::{self, MAX_CAPACITY, MAX_EXPANSION};

/// A plain filter that was made, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    capacity: i64,
    settings: Settings,
}

impl Made {
    fn make(self, context: &Context, key: &mut Key<'_>) -> Result<Self, Fault> {
        let make = || Cuckoo::new(self.capacity as u64, self.settings);
        let filter = Kept::try_make(make).map_err(not_created)?;
        if context.too_large(filter.value().reported_bytes()) {
            return Err(NO_MEMORY_TO_CREATE);
        }
        key.set(filter);
        Ok(self)
    }

    /// Passes on the command that makes the same filter whatever the settings are.
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

/// What the settings say.
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

fn check(made: Made, fault: Fault) -> Result<Made, Fault> {
    let least = i64::from(made.settings.bucket_size) * 2;
    if (least..=MAX_CAPACITY).contains(&made.capacity) { Ok(made) } else { Err(fault) }
}

/// Makes a filter as the settings say.
pub(super) fn make_by_default(context: &Context, key: &mut Key<'_>) -> Result<Made, Fault> {
    check(by_default(), TOO_FEW_BY_DEFAULT)?.make(context, key)
}

/// What `CF.RESERVE` was told.
struct Wishes {
    made: Made,
    error: Option<f64>,
    /// Whether anything was said that a filter with a rate of its own has no use for.
    tables: bool,
}

impl Wishes {
    fn of(arguments: Arguments<'_>) -> Result<Self, Fault> {
        let capacity = integer(arguments.need(1)?.bytes()).ok_or(Fault::Text(c"Bad capacity"))?;
        let mut wishes =
            Self { made: Made { capacity, ..by_default() }, error: None, tables: false };
        for at in (2..arguments.len()).step_by(2) {
            wishes.hear(arguments.need(at)?.bytes(), arguments.need(at + 1)?.bytes())?;
        }
        let text = c"Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
        check(wishes.made, Fault::Text(text))?;
        if wishes.error.is_some() && wishes.tables {
            let text = c"ERR ERROR goes with none of BUCKETSIZE, MAXITERATIONS and EXPANSION";
            return Err(Fault::Text(text));
        }
        Ok(wishes)
    }

    fn hear(&mut self, word: &[u8], value: &[u8]) -> Result<(), Fault> {
        let ranged = |most, least, unparsed, outside| {
            let number = integer(value).ok_or(Fault::Text(unparsed))?;
            if (least..=most).contains(&number) { Ok(number) } else { Err(Fault::Text(outside)) }
        };
        let settings = &mut self.made.settings;
        match word.to_ascii_uppercase().as_slice() {
            b"BUCKETSIZE" => {
                let outside = c"BUCKETSIZE: value must be in the range [1, 255]";
                settings.bucket_size =
                    ranged(255, 1, c"Couldn't parse BUCKETSIZE", outside)? as u16;
            }
            b"MAXITERATIONS" => {
                let outside = c"MAXITERATIONS: value must be in the range [1, 65535]";
                let steps = ranged(65_535, 1, c"Couldn't parse MAXITERATIONS", outside)?;
                settings.max_iterations = steps as u16;
            }
            b"EXPANSION" => {
                let outside = c"EXPANSION: value must be in the range [0, 32768]";
                settings.expansion =
                    rounded(ranged(MAX_EXPANSION, 0, c"Couldn't parse EXPANSION", outside)?);
            }
            b"ERROR" => {
                let rate = double(value).filter(|rate| *rate > 0.0 && *rate < 1.0);
                let text = c"ERR error rate must be in the range (0.000000, 1.000000)";
                self.error = Some(rate.ok_or(Fault::Text(text))?);
                return Ok(());
            }
            // As RedisBloom: what nobody knows is not looked at.
            _ => return Ok(()),
        }
        self.tables = true;
        Ok(())
    }
}

pub(super) fn reserve(context: &Context, arguments: Arguments<'_>) -> Outcome {
    // Options come in pairs.
    if !arguments.len().is_multiple_of(2) || arguments.len() < 2 {
        return Err(Fault::Arity);
    }
    let wishes = Wishes::of(arguments)?;
    let name = arguments.need(0)?;
    let mut key = context.write(name);
    if !key.is_empty() {
        let ours = key.value::<Cuckoo>().is_some() || key.value::<OwnCuckoo>().is_some();
        return Err(if ours { EXISTS } else { WRONG_TYPE });
    }
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
    let is = |word: Argument<'_>, name: &str| word.bytes().eq_ignore_ascii_case(name.as_bytes());
    let at =
        (1..arguments.len()).find(|at| arguments.get(*at).is_some_and(|word| is(word, "ITEMS")));
    let at = at.filter(|at| arguments.len() > at + 1).ok_or(Fault::Arity)?;
    let (mut made, mut create) = (by_default(), true);
    let mut options = (1..at).filter_map(|at| arguments.get(at));
    while let Some(word) = options.next() {
        if is(word, "NOCREATE") {
            create = false;
        } else if is(word, "CAPACITY") {
            let capacity = options.next().and_then(|value| integer(value.bytes()));
            made.capacity = capacity.ok_or(Fault::Text(c"Bad capacity"))?;
        }
    }
    let made = check(made, TOO_FEW_BY_DEFAULT)?;
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
    put(&mut key, &items, copies, &mut results)?;
    if fresh.is_some() || results.contains(&Ok(true)) {
        let event = if copies == Copies::One { c"cf.insertnx" } else { c"cf.insert" };
        tell(context, event, name, fresh);
    }
    context.reply_array(results.len());
    for result in results {
        match (result, copies) {
            (Ok(added), Copies::Many) => context.reply_bool(added),
            (Ok(added), Copies::One) => context.reply_integer(i64::from(added)),
            (Err(_), Copies::Many) if context.speaks_maps() => context.reply_bool(false),
            (Err(_), _) => context.reply_integer(-1),
        }
    }
    Ok(())
}
