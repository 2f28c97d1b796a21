//! CF.ADD, ADDNX, EXISTS, MEXISTS, DEL, COUNT: adding, looking up and deleting items in cuckoo filters.

use super::cuckoo_make::{Made, make_by_default};
use super::words::{LOADING, NOT_FOUND, WRONG_TYPE, cuckoo_refused};
use crate::cuckoo::{Cuckoo, MAX_TABLES, Place};
use crate::engine::{Argument, Arguments, Context, Fault, Key, Outcome};
use crate::error::Refused;
use crate::membership::GROUP;
use crate::memory::Kept;
use crate::own::{BATCH, OwnCuckoo, digests};
use crate::settings::{CF_MAX_EXPANSIONS, CF_MAX_MOVES};
use core::cell::LazyCell;
use core::ffi::CStr;

/// Whether an item that may be present is added again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// It is added again.
    Many,
    /// It is not added again.
    One,
}

pub(super) fn add(context: &Context, arguments: Arguments<'_>) -> Outcome {
    add_one(context, arguments, Copies::Many, c"cf.add")
}

pub(super) fn add_new(context: &Context, arguments: Arguments<'_>) -> Outcome {
    add_one(context, arguments, Copies::One, c"cf.addnx")
}

fn add_one(context: &Context, arguments: Arguments<'_>, copies: Copies, event: &CStr) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let (name, item) = (arguments.need(0)?, arguments.need(1)?);
    let mut key = context.write(name);
    let made = if key.is_empty() { Some(make_by_default(context, &mut key)?) } else { None };
    let mut results = [Ok(false)];
    put(context, &mut key, &[item.bytes()], copies, &mut results)
        .inspect_err(|_| tell_of_filter(context, name, made))?;
    let added = results[0].map_err(cuckoo_refused)?;
    if added || made.is_some() {
        tell(context, event, name, made);
    }
    context.reply_bool(added);
    Ok(())
}

/// Notifies replicas and listeners of added items. If the filter was created for them, its creation is
/// replicated first.
pub(super) fn tell(context: &Context, event: &CStr, name: Argument<'_>, made: Option<Made>) {
    if let Some(made) = made {
        made.replicate(context, name);
    }
    context.replicate();
    context.notify(event, name);
}

/// Notifies replicas and listeners of a filter whose items were then refused. The filter stays, as with
/// RedisBloom.
pub(super) fn tell_of_filter(context: &Context, name: Argument<'_>, made: Option<Made>) {
    if let Some(made) = made {
        made.replicate(context, name);
        context.notify(c"cf.reserve", name);
    }
}

/// Adds items: `true` for an added item, `false` for one that was present.
pub(super) fn put(
    context: &Context,
    key: &mut Key<'_>,
    items: &[&[u8]],
    copies: Copies,
    results: &mut [Result<bool, Refused>],
) -> Outcome {
    if let Some(kept) = key.value_mut::<Cuckoo>() {
        // As in RedisBloom, the limit is checked once, before the first item. A batch may grow past it.
        if kept.value().tables().len() as i64 >= CF_MAX_EXPANSIONS.get()
            && !context.trusts_the_sender()
        {
            return Err(cuckoo_refused(Refused::MaxExpansions));
        }
        kept.change(|cuckoo| put_plain(context, cuckoo, items, copies, results));
        return Ok(());
    }
    if let Some(kept) = key.value_mut::<OwnCuckoo>() {
        return kept.change(|own| put_own(own, items, copies, results));
    }
    Err(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE })
}

fn put_plain(
    context: &Context,
    cuckoo: &mut Cuckoo,
    items: &[&[u8]],
    copies: Copies,
    results: &mut [Result<bool, Refused>],
) {
    // The check takes as long as adding an item, so it is made only where its result matters.
    let trusted = LazyCell::new(|| context.trusts_the_sender());
    let before = cuckoo.work();
    let most = u64::try_from(CF_MAX_MOVES.get()).ok().filter(|most| *most > 0);
    let most = most.unwrap_or(u64::MAX);
    for (items, results) in items.chunks(GROUP).zip(results.chunks_mut(GROUP)) {
        let places = places(cuckoo, items);
        cuckoo.fetch(&places[..items.len()]);
        for (place, result) in places.iter().zip(results) {
            if cuckoo.work() - before > most && !*trusted {
                *result = Err(Refused::Work);
                continue;
            }
            let there = copies == Copies::One && cuckoo.contains(*place);
            if there {
                cuckoo.count_look_up();
            }
            *result = if there { Ok(false) } else { cuckoo.add(*place, MAX_TABLES).map(|()| true) };
        }
    }
}

fn put_own(
    own: &mut OwnCuckoo,
    items: &[&[u8]],
    copies: Copies,
    results: &mut [Result<bool, Refused>],
) -> Outcome {
    own.filter().ok_or(LOADING)?;
    for (item, result) in items.iter().zip(results) {
        let digest = own.digest(item);
        let there =
            copies == Copies::One && own.filter().is_some_and(|f| f.contains_digest(digest));
        *result = if there { Ok(false) } else { own.add(digest).map(|()| true) };
    }
    Ok(())
}

/// The places of up to [`GROUP`] items.
fn places(cuckoo: &Cuckoo, items: &[&[u8]]) -> [Place; GROUP] {
    let mut places = [Place::of(0); GROUP];
    for (place, item) in places.iter_mut().zip(items) {
        *place = cuckoo.place(item);
    }
    places
}

/// Looks up items. A key that is missing or of another type has none.
fn find(key: &Key<'_>, items: &[&[u8]], found: &mut [bool]) -> Outcome {
    if let Some(kept) = key.value::<Cuckoo>() {
        for (items, found) in items.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            let places = places(kept.value(), items);
            kept.value().contains_batch(&places[..items.len()], found);
        }
    } else if let Some(kept) = key.value::<OwnCuckoo>() {
        let filter = kept.value().filter().ok_or(LOADING)?;
        for (items, found) in items.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let digests = digests(filter.hasher(), items);
            filter.contains_digests(&digests[..items.len()], found);
        }
    }
    Ok(())
}

pub(super) fn exists(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let mut found = [false];
    find(&key, &[arguments.need(1)?.bytes()], &mut found)?;
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
    find(&key, &items, &mut found)?;
    context.reply_bools(&found);
    Ok(())
}

pub(super) fn remove(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let (name, item) = (arguments.need(0)?, arguments.need(1)?.bytes());
    let mut key = context.write(name);
    let removed = if let Some(kept) = key.value_mut::<Cuckoo>() {
        kept.change(|cuckoo| cuckoo.remove(cuckoo.place(item)))
    } else if let Some(kept) = key.value_mut::<OwnCuckoo>() {
        kept.value().filter().ok_or(LOADING)?;
        kept.change(|own| own.remove(own.digest(item)))
    } else {
        return Err(Fault::Text(c"Not found"));
    };
    if removed {
        context.replicate();
        context.notify(c"cf.del", name);
    }
    context.reply_bool(removed);
    Ok(())
}

pub(super) fn count(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 2 {
        return Err(Fault::Arity);
    }
    let (key, item) = (context.read(arguments.need(0)?), arguments.need(1)?.bytes());
    let count = if let Some(kept) = key.value::<Cuckoo>() {
        kept.value().count(kept.value().place(item))
    } else {
        match key.value::<OwnCuckoo>().map(Kept::value) {
            Some(own) => own.filter().ok_or(LOADING)?.estimated_count_digest(own.digest(item)),
            None => 0,
        }
    };
    context.reply_count(count);
    Ok(())
}
