//! BF.RESERVE and BF.INSERT: creating Bloom filters.

use super::bloom_keys::put_all;
use super::number::{double, integer};
use super::words::{
    EXISTS, NO_MEMORY_TO_CREATE, NO_SECRET_IN_A_SCRIPT, NOT_FOUND, UNKNOWN_ARGUMENT, WRONG_TYPE,
    not_created,
};
use crate::bloom::{Chain, Growth, Hashing, MAX_RATE};
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::error::Invalid;
use crate::memory::Kept;
use crate::own::{Blocked, OwnBloom};
use crate::settings::{self, MAX_CAPACITY, MAX_EXPANSION};
use umbel::Keyed;

/// The parameters of a plain filter that was created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    capacity: i64,
    rate: f64,
    /// The growth that is stored, even for a filter that does not scale.
    growth: u32,
    scales: bool,
}

impl Made {
    /// The growth that RedisBloom stores for a filter that does not grow. It is independent of the settings.
    const IDLE: u32 = 2;

    fn make(mut self, context: &Context, key: &mut Key<'_>) -> Result<Self, Fault> {
        if self.rate > MAX_RATE && self.rate < 1.0 && !context.keeps_loose_rates() {
            self.rate = MAX_RATE;
        }
        let make = || {
            let Self { capacity, rate, growth, scales } = self;
            let capacity = u64::try_from(capacity).map_err(|_| Invalid::Field("capacity"))?;
            Chain::recorded(capacity, rate, growth, scales, Hashing::Murmur64)
        };
        let chain = Kept::try_make(make).map_err(not_created)?;
        if context.too_large(chain.value().reported_bytes()) {
            return Err(NO_MEMORY_TO_CREATE);
        }
        key.set(chain);
        Ok(self)
    }

    /// Replicates the command that creates the same filter under any settings.
    pub(super) fn replicate(self, context: &Context, name: Argument<'_>) {
        let Self { capacity, rate, growth, scales } = self;
        let [rate, capacity, growth] = [rate.to_string(), capacity.to_string(), growth.to_string()];
        let mut rest = vec![rate.as_bytes(), capacity.as_bytes()];
        if scales || self.growth == 0 {
            rest.extend([b"EXPANSION", growth.as_bytes()]);
        } else {
            rest.push(b"NONSCALING");
        }
        context.replicate_as(c"BF.RESERVE", name, &rest);
    }

    /// Whether `BF.RESERVE` cannot express this, neither here nor in RedisBloom: only `BF.INSERT` accepts
    /// `NONSCALING` and an expansion together.
    const fn needs_insert(self) -> bool {
        !self.scales && self.growth != 0 && self.growth != Self::IDLE
    }

    /// Replicates the `BF.INSERT` that creates the same filter under any settings, and adds these items.
    pub(super) fn replicate_with(
        self,
        context: &Context,
        name: Argument<'_>,
        items: &[&[u8]],
    ) -> bool {
        if !self.needs_insert() || items.is_empty() {
            return false;
        }
        let Self { capacity, rate, growth, .. } = self;
        let [rate, capacity, growth] = [rate.to_string(), capacity.to_string(), growth.to_string()];
        let mut rest: Vec<&[u8]> =
            vec![b"CAPACITY", capacity.as_bytes(), b"ERROR", rate.as_bytes()];
        rest.extend([&b"EXPANSION"[..], growth.as_bytes(), b"NONSCALING", b"ITEMS"]);
        rest.extend(items);
        context.replicate_as(c"BF.INSERT", name, &rest);
        true
    }

    fn growth(self) -> Growth {
        if self.scales { Growth::By(self.growth) } else { Growth::None }
    }
}

/// The parameters from the settings.
fn by_default() -> Made {
    let made = Made {
        capacity: settings::BF_INITIAL_SIZE.get(),
        rate: settings::error_rate(),
        growth: Made::IDLE,
        scales: true,
    };
    expanding(made, settings::BF_EXPANSION_FACTOR.get(), false)
}

/// Creates a filter with the default settings.
pub(super) fn make_by_default(context: &Context, key: &mut Key<'_>) -> Result<Made, Fault> {
    by_default().make(context, key)
}

/// Sets the expansion; 0 means no growth. RedisBloom keeps 32 bits of it.
fn expanding(made: Made, expansion: i64, nonscaling: bool) -> Made {
    Made { growth: expansion as u32, scales: expansion != 0 && !nonscaling, ..made }
}

/// The allowed range of a number. Clients have limits. A primary has none: it may have been an older RedisBloom
/// with other limits, or one that ignored the options for an existing filter.
#[derive(Clone, Copy)]
struct Limits<'a>(&'a Context);

impl Limits<'_> {
    /// The origin of a command is only checked for numbers beyond a limit.
    fn or_trusted(self, fits: bool) -> bool {
        fits || self.0.trusts_the_sender()
    }

    fn has_capacity(self, capacity: i64) -> bool {
        self.or_trusted((1..=MAX_CAPACITY).contains(&capacity))
    }

    fn has_expansion(self, expansion: i64) -> bool {
        self.or_trusted((0..=MAX_EXPANSION).contains(&expansion))
    }

    fn has_rate(self, rate: f64) -> bool {
        self.or_trusted(rate > 0.0 && rate < 1.0)
    }
}

/// The position of this word among the arguments, ignoring case.
pub(super) fn position(arguments: Arguments<'_>, from: usize, word: &str) -> Option<usize> {
    let is = |at: &usize| {
        arguments.get(*at).is_some_and(|found| found.bytes().eq_ignore_ascii_case(word.as_bytes()))
    };
    (from..arguments.len()).find(is)
}

/// The arguments of `BF.RESERVE` after rate and capacity.
#[derive(Default)]
struct Wishes {
    nonscaling: bool,
    expansion: Option<i64>,
    keyed: bool,
    secret: Option<Keyed>,
    blocked: bool,
    window: Option<i64>,
}

impl Wishes {
    /// The first occurrence of every word counts, as with RedisBloom, and unknown words are ignored.
    fn of(arguments: Arguments<'_>, limits: Limits<'_>) -> Result<Self, Fault> {
        const FROM: usize = 3;
        let find = |word| position(arguments, FROM, word);
        let after = |at: usize| arguments.get(at + 1).map(Argument::bytes);
        let mut wishes = Self {
            nonscaling: find("NONSCALING").is_some(),
            keyed: find("KEYED").is_some(),
            blocked: find("BLOCKED").is_some(),
            ..Self::default()
        };
        if let Some(at) = find("EXPANSION") {
            let value = after(at).ok_or(Fault::Text(c"ERR no expansion"))?;
            let value = integer(value).ok_or(Fault::Text(c"ERR bad expansion"))?;
            if !limits.has_expansion(value) {
                return Err(Fault::Text(c"ERR expansion must be in the range [0, 32768]"));
            }
            wishes.expansion = Some(value);
        }
        if let Some(at) = find("SECRET") {
            let secret = after(at).and_then(secret);
            wishes.secret =
                Some(secret.ok_or(Fault::Text(c"ERR SECRET takes 32 hexadecimal digits"))?);
        }
        if let Some(at) = find("WINDOW") {
            let window = after(at).and_then(integer).filter(|window| *window > 0);
            wishes.window = Some(window.ok_or(Fault::Text(c"ERR WINDOW takes a number of items"))?);
        }
        wishes.check()?;
        Ok(wishes)
    }

    fn ours(&self) -> bool {
        self.keyed || self.blocked || self.window.is_some()
    }

    fn check(&self) -> Result<(), Fault> {
        if self.nonscaling && self.expansion.is_some_and(|by| by > 0) {
            return Err(Fault::Text(c"Nonscaling filters cannot expand"));
        }
        if self.secret.is_some() && !self.keyed {
            return Err(Fault::Text(c"ERR SECRET goes with KEYED"));
        }
        if self.window.is_some() && (self.blocked || self.expansion.is_some_and(|by| by > 0)) {
            return Err(Fault::Text(c"ERR WINDOW goes with neither BLOCKED nor EXPANSION"));
        }
        Ok(())
    }
}

/// Sixteen bytes in hexadecimal.
fn secret(digits: &[u8]) -> Option<Keyed> {
    let digits: &[u8; 32] = digits.try_into().ok()?;
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let mut secret = [0; 16];
    for (byte, [high, low]) in secret.iter_mut().zip(digits.as_chunks().0) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(Keyed::new(secret))
}

fn hexadecimal(secret: Keyed) -> String {
    secret.secret().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The maximum number of arguments of RedisBloom's `BF.RESERVE`. Ours accepts more, for `KEYED`, `BLOCKED` and
/// `WINDOW`.
const PLAIN_ARGUMENTS: usize = 6;
const OWN_WORDS: [&str; 4] = ["KEYED", "BLOCKED", "SECRET", "WINDOW"];

pub(super) fn reserve(context: &Context, arguments: Arguments<'_>) -> Outcome {
    let own = || OWN_WORDS.iter().any(|word| position(arguments, 3, word).is_some());
    if arguments.len() > PLAIN_ARGUMENTS && !own() {
        return Err(Fault::Arity);
    }
    let (name, rate, capacity) = (arguments.need(0)?, arguments.need(1)?, arguments.need(2)?);
    let limits = Limits(context);
    let rate = double(rate.bytes()).ok_or(Fault::Text(c"ERR bad error rate"))?;
    if !limits.has_rate(rate) {
        return Err(Fault::Text(c"ERR error rate must be in the range (0.000000, 1.000000)"));
    }
    let capacity = integer(capacity.bytes()).ok_or(Fault::Text(c"ERR bad capacity"))?;
    if !limits.has_capacity(capacity) {
        return Err(Fault::Text(c"ERR capacity must be in the range [1, 1073741824]"));
    }
    let wishes = Wishes::of(arguments, limits)?;
    let mut made = Made { capacity, rate, ..by_default() };
    match wishes.expansion {
        Some(expansion) => made = expanding(made, expansion, wishes.nonscaling),
        None if wishes.nonscaling => made = Made { growth: Made::IDLE, scales: false, ..made },
        None => {}
    }
    let mut key = context.write(name);
    if !key.is_empty() {
        let ours = key.value::<Chain>().is_some() || key.value::<OwnBloom>().is_some();
        return Err(if ours { EXISTS } else { WRONG_TYPE });
    }
    if wishes.ours() {
        reserve_own(context, arguments, &mut key, made, &wishes)?;
    } else {
        made.make(context, &mut key)?.replicate(context, name);
    }
    context.notify(c"bf.reserve", name);
    context.reply_ok();
    Ok(())
}

fn reserve_own(
    context: &Context,
    arguments: Arguments<'_>,
    key: &mut Key<'_>,
    made: Made,
    wishes: &Wishes,
) -> Outcome {
    let (Made { capacity, rate, .. }, growth) = (made, made.growth());
    if wishes.window.is_some_and(|window| window != capacity) {
        return Err(Fault::Text(c"ERR the capacity of a window is its number of items"));
    }
    if wishes.keyed && wishes.secret.is_none() && context.may_be_run_again() {
        return Err(NO_SECRET_IN_A_SCRIPT);
    }
    let secret = wishes.keyed.then(|| wishes.secret.unwrap_or_else(Keyed::random));
    let capacity = capacity as u64;
    let filter = Kept::try_make(|| match secret {
        _ if wishes.window.is_some() => OwnBloom::window(capacity, rate, secret),
        _ if wishes.blocked => Blocked::new(capacity, rate, growth, secret).map(OwnBloom::Blocked),
        Some(secret) => OwnBloom::keyed(capacity, rate, growth, secret),
        None => Err(crate::error::Invalid::Field("kind")),
    });
    let filter = filter.map_err(not_created)?;
    if context.too_large(filter.value().bytes()) {
        return Err(NO_MEMORY_TO_CREATE);
    }
    key.set(filter);
    replicate_own(context, arguments, secret.filter(|_| wishes.secret.is_none()), growth, wishes)
}

/// Replicates the command with the secret that was drawn, and with the growth from the settings.
fn replicate_own(
    context: &Context,
    arguments: Arguments<'_>,
    drawn: Option<Keyed>,
    growth: Growth,
    wishes: &Wishes,
) -> Outcome {
    let mut rest: Vec<&[u8]> = arguments.from(1).iter().map(Argument::bytes).collect();
    let (hexadecimal, expansion) = (
        drawn.map(hexadecimal),
        match growth {
            Growth::By(growth) => growth.to_string(),
            Growth::None => "0".to_owned(),
        },
    );
    if let Some(digits) = &hexadecimal {
        rest.extend([b"SECRET", digits.as_bytes()]);
    }
    if !wishes.nonscaling && wishes.expansion.is_none() && wishes.window.is_none() {
        rest.extend([b"EXPANSION", expansion.as_bytes()]);
    }
    context.replicate_as(c"BF.RESERVE", arguments.need(0)?, &rest);
    Ok(())
}

/// The arguments of `BF.INSERT` before its items.
struct Insertion {
    made: Made,
    create: bool,
    /// The index of the first item.
    items: usize,
}

impl Insertion {
    /// Options are recognised by their first letters, as with RedisBloom, and checked in their order.
    fn of(arguments: Arguments<'_>, limits: Limits<'_>) -> Result<Self, Fault> {
        let mut insertion = Self { made: by_default(), create: true, items: 0 };
        let (mut nonscaling, mut expansion) = (false, None);
        let mut at = 1;
        loop {
            let word = arguments.need(at)?.bytes().to_ascii_lowercase();
            let value = || arguments.need(at + 1).map(Argument::bytes);
            match word.as_slice() {
                [b'i', ..] => break,
                [b'e', b'r', ..] => {
                    let rate = double(value()?).filter(|rate| limits.has_rate(*rate));
                    insertion.made.rate = rate.ok_or(Fault::Text(c"Bad error rate"))?;
                    at += 1;
                }
                [b'e', ..] => {
                    let by = integer(value()?).filter(|by| limits.has_expansion(*by));
                    expansion = Some(by.ok_or(Fault::Text(c"Bad expansion"))?);
                    at += 1;
                }
                [b'c', ..] => {
                    let capacity = integer(value()?).filter(|to| limits.has_capacity(*to));
                    insertion.made.capacity = capacity.ok_or(Fault::Text(c"Bad capacity"))?;
                    at += 1;
                }
                [b'n', b'o', b'c', ..] => insertion.create = false,
                [b'n', ..] => nonscaling = true,
                _ => return Err(UNKNOWN_ARGUMENT),
            }
            at += 1;
        }
        match expansion {
            Some(expansion) => insertion.made = expanding(insertion.made, expansion, nonscaling),
            None if nonscaling => {
                insertion.made = Made { growth: Made::IDLE, scales: false, ..insertion.made };
            }
            None => {}
        }
        insertion.items = at + 1;
        if arguments.len() > insertion.items { Ok(insertion) } else { Err(Fault::Arity) }
    }
}

pub(super) fn insert(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() < 3 {
        return Err(Fault::Arity);
    }
    let insertion = Insertion::of(arguments, Limits(context))?;
    let name = arguments.need(0)?;
    let mut key = context.write(name);
    let mut made = None;
    if key.is_empty() {
        if !insertion.create {
            return Err(NOT_FOUND);
        }
        made = Some(insertion.made.make(context, &mut key)?);
    }
    put_all(context, name, &mut key, arguments.from(insertion.items), made, c"bf.insert")
}
