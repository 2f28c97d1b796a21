//! BF.RESERVE and BF.INSERT: how Bloom filters come to be.

use super::bloom_keys::put_all;
use super::number::{double, integer};
use super::words::{
    EXISTS, NO_MEMORY_TO_CREATE, NOT_FOUND, UNKNOWN_ARGUMENT, WRONG_TYPE, not_created,
};
use crate::bloom::{Chain, Growth};
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::memory::Kept;
use crate::own::{Blocked, OwnBloom};
use crate::settings::{self, MAX_CAPACITY, MAX_EXPANSION};
use umbel::Keyed;

/// A plain filter that was made, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    capacity: i64,
    rate: f64,
    growth: Growth,
}

impl Made {
    fn make(self, context: &Context, key: &mut Key<'_>) -> Result<Self, Fault> {
        let make = || Chain::new(self.capacity as u64, self.rate, self.growth);
        let chain = Kept::try_make(make).map_err(not_created)?;
        if context.too_large(chain.value().reported_bytes()) {
            return Err(NO_MEMORY_TO_CREATE);
        }
        key.set(chain);
        Ok(self)
    }

    /// Passes on the command that makes the same filter whatever the settings are.
    pub(super) fn replicate(self, context: &Context, name: Argument<'_>) {
        let (rate, capacity) = (self.rate.to_string(), self.capacity.to_string());
        let (rate, capacity) = (rate.as_bytes(), capacity.as_bytes());
        match self.growth {
            Growth::By(growth) => {
                let growth = growth.to_string();
                let rest = [rate, capacity, b"EXPANSION", growth.as_bytes()];
                context.replicate_as(c"BF.RESERVE", name, &rest);
            }
            Growth::None => {
                context.replicate_as(c"BF.RESERVE", name, &[rate, capacity, b"NONSCALING"])
            }
        }
    }
}

/// What the settings say.
fn by_default() -> Made {
    Made {
        capacity: settings::BF_INITIAL_SIZE.get(),
        rate: settings::error_rate(),
        growth: growth_by(settings::BF_EXPANSION_FACTOR.get()),
    }
}

/// Makes a filter as the settings say.
pub(super) fn make_by_default(context: &Context, key: &mut Key<'_>) -> Result<Made, Fault> {
    by_default().make(context, key)
}

/// An expansion of 0 is none.
fn growth_by(expansion: i64) -> Growth {
    u32::try_from(expansion).ok().filter(|growth| *growth > 0).map_or(Growth::None, Growth::By)
}

const NO_EXPANSION: Fault = Fault::Text(c"Nonscaling filters cannot expand");

fn rate_in_range(rate: f64) -> Result<f64, Fault> {
    let text = c"ERR error rate must be in the range (0.000000, 1.000000)";
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(Fault::Text(text)) }
}

fn capacity_in_range(capacity: i64) -> Result<i64, Fault> {
    let text = c"ERR capacity must be in the range [1, 1073741824]";
    if (1..=MAX_CAPACITY).contains(&capacity) { Ok(capacity) } else { Err(Fault::Text(text)) }
}

fn expansion_in_range(expansion: i64) -> Result<i64, Fault> {
    let text = c"ERR expansion must be in the range [0, 32768]";
    if (0..=MAX_EXPANSION).contains(&expansion) { Ok(expansion) } else { Err(Fault::Text(text)) }
}

/// What `BF.RESERVE` was told beyond rate and capacity.
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
    fn of(arguments: Arguments<'_>) -> Result<Self, Fault> {
        let mut wishes = Self::default();
        let mut at = 3;
        while let Some(word) = arguments.get(at) {
            let value = arguments.get(at + 1).map(Argument::bytes);
            match word.bytes().to_ascii_uppercase().as_slice() {
                b"NONSCALING" => wishes.nonscaling = true,
                b"EXPANSION" => {
                    let value = value.ok_or(Fault::Text(c"ERR no expansion"))?;
                    let value = integer(value).ok_or(Fault::Text(c"ERR bad expansion"))?;
                    wishes.expansion = Some(expansion_in_range(value)?);
                    at += 1;
                }
                b"KEYED" => wishes.keyed = true,
                b"BLOCKED" => wishes.blocked = true,
                b"SECRET" => {
                    let secret = value.and_then(secret);
                    wishes.secret =
                        Some(secret.ok_or(Fault::Text(c"ERR SECRET takes 32 hexadecimal digits"))?);
                    at += 1;
                }
                b"WINDOW" => {
                    let window = value.and_then(integer).filter(|window| *window > 0);
                    wishes.window =
                        Some(window.ok_or(Fault::Text(c"ERR WINDOW takes a number of items"))?);
                    at += 1;
                }
                // As RedisBloom: what nobody knows is not looked at.
                _ => {}
            }
            at += 1;
        }
        wishes.check(arguments.len())?;
        Ok(wishes)
    }

    fn ours(&self) -> bool {
        self.keyed || self.blocked || self.window.is_some()
    }

    fn check(&self, arguments: usize) -> Result<(), Fault> {
        if arguments > 6 && !self.ours() {
            return Err(Fault::Arity);
        }
        if self.nonscaling && self.expansion.is_some() {
            return Err(NO_EXPANSION);
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

pub(super) fn reserve(context: &Context, arguments: Arguments<'_>) -> Outcome {
    let (name, rate, capacity) = (arguments.need(0)?, arguments.need(1)?, arguments.need(2)?);
    let rate = double(rate.bytes()).ok_or(Fault::Text(c"ERR bad error rate"))?;
    let rate = rate_in_range(rate)?;
    let capacity = integer(capacity.bytes()).ok_or(Fault::Text(c"ERR bad capacity"))?;
    let capacity = capacity_in_range(capacity)?;
    let wishes = Wishes::of(arguments)?;
    let expansion = wishes.expansion.unwrap_or_else(|| settings::BF_EXPANSION_FACTOR.get());
    let growth = if wishes.nonscaling { Growth::None } else { growth_by(expansion) };
    let mut key = context.write(name);
    if !key.is_empty() {
        let ours = key.value::<Chain>().is_some() || key.value::<OwnBloom>().is_some();
        return Err(if ours { EXISTS } else { WRONG_TYPE });
    }
    let made = Made { capacity, rate, growth };
    if wishes.ours() {
        reserve_own(context, arguments, &mut key, made, &wishes)?;
    } else {
        made.make(context, &mut key)?;
        context.replicate();
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
    let Made { capacity, rate, growth } = made;
    if wishes.window.is_some_and(|window| window != capacity) {
        return Err(Fault::Text(c"ERR the capacity of a window is its number of items"));
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

/// Passes on the command with the secret that was drawn, and with the growth that the settings gave.
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

/// What `BF.INSERT` was told before its items.
struct Insertion {
    made: Made,
    create: bool,
    /// Where the items begin.
    items: usize,
}

impl Insertion {
    /// Options go by their first letters, as with RedisBloom.
    fn of(arguments: Arguments<'_>) -> Result<Self, Fault> {
        let mut insertion = Self { made: by_default(), create: true, items: 0 };
        let (mut nonscaling, mut expansion) = (false, None);
        let mut at = 1;
        loop {
            let word = arguments.need(at)?.bytes().to_ascii_lowercase();
            let value = || arguments.need(at + 1).map(Argument::bytes);
            match word.as_slice() {
                [b'i', ..] => break,
                [b'e', b'r', ..] => {
                    let rate = double(value()?).ok_or(Fault::Text(c"Bad error rate"))?;
                    insertion.made.rate = rate_in_range(rate)?;
                    at += 1;
                }
                [b'e', ..] => {
                    let by = integer(value()?).ok_or(Fault::Text(c"Bad expansion"))?;
                    expansion = Some(expansion_in_range(by)?);
                    at += 1;
                }
                [b'c', ..] => {
                    let capacity = integer(value()?).ok_or(Fault::Text(c"Bad capacity"))?;
                    insertion.made.capacity = capacity_in_range(capacity)?;
                    at += 1;
                }
                [b'n', b'o', b'c', ..] => insertion.create = false,
                [b'n', ..] => nonscaling = true,
                _ => return Err(UNKNOWN_ARGUMENT),
            }
            at += 1;
        }
        if nonscaling && expansion.is_some() {
            return Err(NO_EXPANSION);
        }
        if let Some(expansion) = expansion {
            insertion.made.growth = growth_by(expansion);
        }
        if nonscaling {
            insertion.made.growth = Growth::None;
        }
        insertion.items = at + 1;
        if arguments.len() > insertion.items { Ok(insertion) } else { Err(Fault::Arity) }
    }
}

pub(super) fn insert(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() < 3 {
        return Err(Fault::Arity);
    }
    let insertion = Insertion::of(arguments)?;
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
