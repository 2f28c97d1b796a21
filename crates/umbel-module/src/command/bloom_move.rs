//! BF.SCANDUMP, LOADCHUNK, MERGE: moving Bloom filters as bytes, and merging them.

use super::number::integer;
use super::words::{
    HAS_A_SECRET, LOADING, NO_MEMORY_TO_CREATE, NOT_FOUND, WRONG_TYPE, not_created,
};
use crate::bloom::{Chain, Hashing};
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::error::{Invalid, Refused};
use crate::memory::Kept;
use crate::own::OwnBloom;
use crate::own::stream::{Streamed, announced};
use std::collections::HashSet;

const BAD_DATA: Fault = Fault::Text(c"ERR received bad data");

pub(super) fn dump(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let number = integer(arguments.need(1)?.bytes());
    let found = key.value::<Chain>().is_some() || key.value::<OwnBloom>().is_some();
    if !found {
        return Err(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE });
    }
    let number = number.ok_or(Fault::Text(c"Second argument must be numeric"))?;
    let after = u64::try_from(number).unwrap_or(u64::MAX);
    if let Some(kept) = key.value::<Chain>() {
        let chain = kept.value();
        match after {
            0 => reply_chunk(context, 1, &chain.header()),
            _ => {
                let (next, chunk) = chain.chunk(after).unwrap_or((0, &[]));
                reply_chunk(context, next, chunk);
            }
        }
    } else if let Some(kept) = key.value::<OwnBloom>() {
        if kept.value().may_have_a_secret() {
            return Err(HAS_A_SECRET);
        }
        reply_own_chunk(context, kept.value(), after);
    }
    Ok(())
}

/// A chunk of one of our own types; at the end, an empty chunk with the number 0.
pub(super) fn reply_own_chunk(context: &Context, own: &impl Streamed, after: u64) {
    if after == 0 {
        return reply_chunk(context, 1, &own.dump_header());
    }
    let (next, chunk) = own.chunk(after).unwrap_or_default();
    reply_chunk(context, next, &chunk);
}

pub(super) fn reply_chunk(context: &Context, number: u64, chunk: &[u8]) {
    context.reply_array(2);
    context.reply_count(number);
    context.reply_bytes(chunk);
}

pub(super) fn load(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 3 {
        return Err(Fault::Arity);
    }
    let (name, chunk) = (arguments.need(0)?, arguments.need(2)?.bytes());
    let number = integer(arguments.need(1)?.bytes());
    let number = number.ok_or(Fault::Text(c"ERR Second argument must be numeric"))?;
    let mut key = context.write(name);
    let found = key.value::<Chain>().is_some() || key.value::<OwnBloom>().is_some();
    if !found && !key.is_empty() {
        return Err(WRONG_TYPE);
    }
    // The key must be empty: a header would replace an existing filter.
    if number == 1 && !found {
        load_header(context, &mut key, chunk)?;
    } else {
        load_chunk(&mut key, number, chunk)?;
    }
    context.replicate();
    context.notify(c"bf.loadchunk", name);
    context.reply_ok();
    Ok(())
}

/// A header creates a filter under an empty key.
fn load_header(context: &Context, key: &mut Key<'_>, header: &[u8]) -> Outcome {
    let bad = |invalid| if invalid == Invalid::NoMemory { not_created(invalid) } else { BAD_DATA };
    if let Some(announced) = announced(header) {
        let own = Kept::try_make(|| announced.map(OwnBloom::loading)).map_err(bad)?;
        key.set(own);
        return Ok(());
    }
    let bytes = Chain::bytes_of_header(header).map_err(bad)?;
    if context.has_no_room_for(bytes) {
        return Err(NO_MEMORY_TO_CREATE);
    }
    let chain = Kept::try_make(|| Chain::of_header(header, Hashing::Murmur64)).map_err(bad)?;
    key.set(chain);
    Ok(())
}

fn load_chunk(key: &mut Key<'_>, number: i64, chunk: &[u8]) -> Outcome {
    let number = u64::try_from(number).unwrap_or(0);
    let result = if let Some(kept) = key.value_mut::<Chain>() {
        if number == 0 || number < chunk.len() as u64 {
            return Err(BAD_DATA);
        }
        kept.change(|chain| chain.load_chunk(number, chunk))
    } else if let Some(kept) = key.value_mut::<OwnBloom>() {
        if number <= 1 {
            return Err(BAD_DATA);
        }
        kept.change(|own| own.load_chunk(number, chunk))
    } else {
        return Err(NOT_FOUND);
    };
    result.map_err(|invalid| match invalid {
        Invalid::Offset => Fault::Text(c"ERR invalid offset - no link found"),
        Invalid::Chunk => Fault::Text(c"ERR invalid chunk - Too big for current filter"),
        Invalid::NoMemory => NO_MEMORY_TO_CREATE,
        _ => BAD_DATA,
    })
}

/// The target of a merge, separate from its key: if a merge fails, the key is unchanged.
enum Merged {
    Plain(Kept<Chain>),
    Own(Kept<OwnBloom>),
}

const UNLIKE: Fault = Fault::Text(
    c"ERR these filters cannot be merged: they are of different kinds, or hash differently",
);

impl Merged {
    /// A copy of the value under the key; `None` if the key is empty.
    fn copy(key: &Key<'_>) -> Result<Option<Self>, Fault> {
        if let Some(kept) = key.value::<Chain>() {
            let copy = || kept.value().try_clone().ok_or(Invalid::NoMemory);
            return Kept::try_make(copy).map(|kept| Some(Self::Plain(kept))).map_err(not_created);
        }
        if let Some(kept) = key.value::<OwnBloom>() {
            kept.value().ready().ok_or(LOADING)?;
            let copy = || kept.value().try_clone().ok_or(Invalid::NoMemory);
            return Kept::try_make(copy).map(|kept| Some(Self::Own(kept))).map_err(not_created);
        }
        if key.is_empty() { Ok(None) } else { Err(WRONG_TYPE) }
    }

    /// Stores the result under the key. An existing value is replaced in place, so that its time to live is
    /// kept.
    fn put(self, key: &mut Key<'_>) {
        match self {
            Self::Plain(merged) => match key.value_mut::<Chain>() {
                Some(kept) => *kept = merged,
                None => key.set(merged),
            },
            Self::Own(merged) => match key.value_mut::<OwnBloom>() {
                Some(kept) => *kept = merged,
                None => key.set(merged),
            },
        }
    }

    fn take_in(&mut self, key: &Key<'_>) -> Outcome {
        let result = match self {
            Self::Plain(merged) => {
                let other = key.value::<Chain>().ok_or(UNLIKE)?.value();
                merged.value().fits(other).map_err(|_| UNLIKE)?;
                merged.change(|merged| merged.merge(other))
            }
            Self::Own(merged) => {
                let other = key.value::<OwnBloom>().ok_or(UNLIKE)?.value();
                merged.value().fits(other).map_err(|_| UNLIKE)?;
                merged.change(|merged| merged.merge(other))
            }
        };
        result.map_err(|refused| match refused {
            Refused::NoMemory => NO_MEMORY_TO_CREATE,
            Refused::Full => {
                Fault::Text(c"ERR the filter does not scale and has no room for so many items")
            }
            Refused::MaxExpansions | Refused::Work => Fault::Text(c"ERR too many filters to merge"),
        })
    }
}

pub(super) fn merge(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() < 2 {
        return Err(Fault::Arity);
    }
    let name = arguments.need(0)?;
    let mut merged = Merged::copy(&context.read(name))?;
    let mut seen = HashSet::new();
    // A repeated source would add nothing, and take as much time again.
    for source in arguments.from(1).iter().filter(|source| seen.insert(source.bytes())) {
        merge_from(context, &mut merged, name, source)?;
    }
    let mut key = context.write(name);
    merged.ok_or(NOT_FOUND)?.put(&mut key);
    context.replicate();
    context.notify(c"bf.merge", name);
    context.reply_ok();
    Ok(())
}

fn merge_from(
    context: &Context,
    merged: &mut Option<Merged>,
    name: Argument<'_>,
    source: Argument<'_>,
) -> Outcome {
    let key = context.read(source);
    if key.is_empty() {
        return Err(NOT_FOUND);
    }
    match merged {
        // A filter already has its own items.
        Some(_) if source.bytes() == name.bytes() => Ok(()),
        Some(merged) => merged.take_in(&key),
        None => {
            let copy = Merged::copy(&key)?;
            if let Some(Merged::Own(own)) = &copy {
                // A type that cannot be merged with itself cannot be merged at all.
                own.value().fits(own.value()).map_err(|_| UNLIKE)?;
            }
            *merged = copy;
            Ok(())
        }
    }
}
