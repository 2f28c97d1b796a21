//! BF.ADD, MADD, EXISTS, MEXISTS: adding items to Bloom filters, and looking them up.

use super::bloom_make::{Made, make_by_default};
use super::words::{LOADING, NOT_FOUND, WRONG_TYPE, bloom_refused};
use crate::bloom::Chain;
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::error::Refused;
use crate::membership::Membership;
use crate::own::OwnBloom;
use core::ffi::CStr;

pub(super) fn add(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let (name, item) = (arguments.need(0)?, arguments.need(1)?);
    let mut key = context.write(name);
    let made = make_if_missing(context, &mut key)?;
    let mut fresh = [false];
    match put(&mut key, &[item.bytes()], &mut fresh)? {
        Ok(()) => {
            tell(context, c"bf.add", name, made);
            context.reply_bool(fresh[0]);
        }
        Err((_, refused)) => context.reply_error(bloom_refused(refused)),
    }
    Ok(())
}

pub(super) fn add_many(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() < 2 {
        return Err(Fault::Arity);
    }
    let name = arguments.need(0)?;
    let mut key = context.write(name);
    let made = make_if_missing(context, &mut key)?;
    put_all(context, name, &mut key, arguments.from(1), made, c"bf.madd")
}

/// Creates a filter with the default settings if the key is empty.
fn make_if_missing(context: &Context, key: &mut Key<'_>) -> Result<Option<Made>, Fault> {
    let missing = key.value::<Chain>().is_none() && key.is_empty();
    if missing { make_by_default(context, key).map(Some) } else { Ok(None) }
}

/// Adds items, and replies with a value for each of them.
pub(super) fn put_all(
    context: &Context,
    name: Argument<'_>,
    key: &mut Key<'_>,
    arguments: Arguments<'_>,
    made: Option<Made>,
    event: &CStr,
) -> Outcome {
    let items: Vec<&[u8]> = arguments.iter().map(Argument::bytes).collect();
    let mut fresh = vec![false; items.len()];
    let result = put(key, &items, &mut fresh)?;
    let done = result.map_or_else(|(done, _)| done, |()| items.len());
    if done > 0 || made.is_some() {
        pass_on(context, name, &items, done, made);
        context.notify(event, name);
    }
    context.reply_array(done + usize::from(result.is_err()));
    fresh[..done].iter().for_each(|fresh| context.reply_bool(*fresh));
    if let Err((_, refused)) = result {
        context.reply_error(bloom_refused(refused));
    }
    Ok(())
}

/// Replicates the items of a batch that were taken, which are the first ones. A replica that got the others would answer
/// with the error that the client got, and write its backlog to its log.
fn pass_on(
    context: &Context,
    name: Argument<'_>,
    items: &[&[u8]],
    done: usize,
    made: Option<Made>,
) {
    if made.is_some_and(|made| made.replicate_with(context, name, &items[..done])) {
        return;
    }
    if let Some(made) = made {
        made.replicate(context, name);
    }
    if done == items.len() {
        context.replicate();
    } else if done > 0 {
        context.replicate_as(c"BF.MADD", name, &items[..done]);
    }
}

/// Notifies replicas and listeners of added items. If the filter was created for them, its creation is
/// replicated first, because a replica's settings may differ.
fn tell(context: &Context, event: &CStr, name: Argument<'_>, made: Option<Made>) {
    if let Some(made) = made {
        made.replicate(context, name);
    }
    context.replicate();
    context.notify(event, name);
}

type Put = Result<(), (usize, Refused)>;

fn put(key: &mut Key<'_>, items: &[&[u8]], fresh: &mut [bool]) -> Result<Put, Fault> {
    if let Some(kept) = key.value_mut::<Chain>() {
        return Ok(kept.change(|chain| chain.put(items, fresh)));
    }
    if let Some(kept) = key.value_mut::<OwnBloom>() {
        let put = kept.change(|own| own.ready_mut().map(|filter| filter.put(items, fresh)));
        return put.ok_or(LOADING);
    }
    Err(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE })
}

/// The filter under a key that is read. A key that is missing or of another type has no items.
pub(super) fn filter<'a>(key: &'a Key<'_>) -> Result<Option<&'a dyn Membership>, Fault> {
    if let Some(kept) = key.value::<Chain>() {
        return Ok(Some(kept.value()));
    }
    match key.value::<OwnBloom>() {
        Some(kept) => kept.value().ready().map(Some).ok_or(LOADING),
        None => Ok(None),
    }
}

/// The filter under a key that must have one.
pub(super) fn need_filter<'a>(key: &'a Key<'_>) -> Result<&'a dyn Membership, Fault> {
    filter(key)?.ok_or(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE })
}

pub(super) fn exists(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let mut found = [false];
    if let Some(filter) = filter(&key)? {
        filter.find(&[arguments.need(1)?.bytes()], &mut found);
    }
    context.reply_bool(found[0]);
    Ok(())
}

pub(super) fn exist_many(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() < 2 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let items: Vec<&[u8]> = arguments.from(1).iter().map(Argument::bytes).collect();
    let mut found = vec![false; items.len()];
    if let Some(filter) = filter(&key)? {
        filter.find(&items, &mut found);
    }
    context.reply_bools(&found);
    Ok(())
}
