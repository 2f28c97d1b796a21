//! CF.SCANDUMP, LOADCHUNK, COMPACT: moving cuckoo filters as bytes, and compacting their tables.

use super::bloom_move::{reply_chunk, reply_own_chunk};
use super::number::integer;
use super::words::{EXISTS, HAS_A_SECRET, NO_MEMORY_TO_CREATE, NOT_FOUND, WRONG_TYPE};
use crate::cuckoo::Cuckoo;
use crate::engine::{Arguments, Context, Fault, Key, Outcome};
use crate::error::Invalid;
use crate::memory::Kept;
use crate::own::OwnCuckoo;
use crate::own::stream::{Streamed, announced};

const INVALID_POSITION: Fault = Fault::Text(c"Invalid position");

pub(super) fn dump(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let number = integer(arguments.need(1)?.bytes()).and_then(|number| u64::try_from(number).ok());
    let number = number.ok_or(INVALID_POSITION)?;
    let key = context.read(arguments.need(0)?);
    if let Some(kept) = key.value::<OwnCuckoo>() {
        if kept.value().may_have_a_secret() {
            return Err(HAS_A_SECRET);
        }
        reply_own_chunk(context, kept.value(), number);
        return Ok(());
    }
    let Some(kept) = key.value::<Cuckoo>() else {
        return Err(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE });
    };
    let cuckoo = kept.value();
    match number {
        _ if cuckoo.is_empty() => reply_end(context),
        0 => reply_chunk(context, 1, &cuckoo.header()),
        after => match cuckoo.chunk(after) {
            Some((next, chunk)) => reply_chunk(context, next, chunk),
            None => reply_end(context),
        },
    }
    Ok(())
}

fn reply_end(context: &Context) {
    context.reply_array(2);
    context.reply_integer(0);
    context.reply_null();
}

pub(super) fn load(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 3 {
        return Err(Fault::Arity);
    }
    let (name, chunk) = (arguments.need(0)?, arguments.need(2)?.bytes());
    let number = integer(arguments.need(1)?.bytes()).and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|number| *number > 0).ok_or(INVALID_POSITION)?;
    let mut key = context.write(name);
    let found = key.value::<Cuckoo>().is_some() || key.value::<OwnCuckoo>().is_some();
    if !found && !key.is_empty() {
        return Err(WRONG_TYPE);
    }
    if number == 1 {
        // A header would replace an existing filter.
        if found {
            return Err(EXISTS);
        }
        load_header(context, &mut key, chunk)?;
    } else {
        load_chunk(context, &mut key, number, chunk)?;
    }
    context.replicate();
    context.notify(c"cf.loadchunk", name);
    context.reply_ok();
    Ok(())
}

/// A header creates a filter under an empty key.
fn load_header(context: &Context, key: &mut Key<'_>, header: &[u8]) -> Outcome {
    let bad = |invalid| match invalid {
        Invalid::Length => Fault::Text(c"Invalid header"),
        Invalid::NoMemory => NO_MEMORY_TO_CREATE,
        _ => Fault::Text(c"Couldn't create filter!"),
    };
    if let Some(announced) = announced(header) {
        let own = Kept::try_make(|| announced.map(OwnCuckoo::loading)).map_err(bad)?;
        key.set(own);
        return Ok(());
    }
    if context.has_no_room_for(Cuckoo::bytes_of_header(header).map_err(bad)?) {
        return Err(NO_MEMORY_TO_CREATE);
    }
    key.set(Kept::try_make(|| Cuckoo::of_header(header)).map_err(bad)?);
    Ok(())
}

fn load_chunk(context: &Context, key: &mut Key<'_>, number: u64, chunk: &[u8]) -> Outcome {
    let result = if let Some(kept) = key.value_mut::<Cuckoo>() {
        // RedisBloom accepts a chunk for a position past the end, and overwrites the last table. A client gets
        // an error here. A command from a primary that has accepted it has the same effect here.
        let lenient = context.trusts_the_sender();
        kept.change(|cuckoo| {
            let past = cuckoo.past_the_end(number).filter(|_| lenient);
            cuckoo.load_chunk(past.unwrap_or(number), chunk)
        })
    } else if let Some(kept) = key.value_mut::<OwnCuckoo>() {
        kept.change(|own| own.load_chunk(number, chunk))
    } else {
        return Err(NOT_FOUND);
    };
    result.map_err(|_| Fault::Text(c"Couldn't load chunk!"))
}

pub(super) fn compact(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 1 {
        return Err(Fault::Arity);
    }
    let name = arguments.need(0)?;
    let mut key = context.write(name);
    if let Some(kept) = key.value_mut::<Cuckoo>() {
        kept.change(Cuckoo::compact);
        context.replicate();
        context.notify(c"cf.compact", name);
    } else if key.value::<OwnCuckoo>().is_none() {
        return Err(Fault::Text(c"Cuckoo filter was not found"));
    }
    // A filter with one table has nothing to compact.
    context.reply_ok();
    Ok(())
}
