//! BF.CARD, INFO, DEBUG: information about a Bloom filter.

use super::bloom_keys::{filter, need_filter};
use super::number::general;
use super::words::{BAD_INFO, NOT_FOUND, WRONG_TYPE};
use crate::bloom::{Chain, Link};
use crate::engine::{Arguments, Context, Fault, Outcome};
use crate::membership::{About, Measure, Membership};
use crate::own::OwnBloom;
use core::ffi::CStr;

pub(super) fn card(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 1 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let items = match filter(&key)? {
        Some(filter) => filter.about().items,
        None if key.is_empty() => 0,
        None => return Err(WRONG_TYPE),
    };
    context.reply_count(items);
    Ok(())
}

/// The fields of `BF.INFO`: the word in the command, and the name in the reply. The first five are
/// RedisBloom's.
const FIELDS: [(&str, &CStr); 9] = [
    ("CAPACITY", c"Capacity"),
    ("SIZE", c"Size"),
    ("FILTERS", c"Number of filters"),
    ("ITEMS", c"Number of items inserted"),
    ("EXPANSION", c"Expansion rate"),
    ("LAYOUT", c"Layout"),
    ("FILL", c"Fill"),
    ("ESTIMATE", c"Estimated number of items"),
    ("RATE", c"Current error rate"),
];

/// The number of fields in the reply to a command without a field.
const PLAIN: usize = 5;

pub(super) fn info(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() > 2 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let filter = need_filter(&key)?;
    let fields = match arguments.get(1) {
        None => &FIELDS[..PLAIN],
        Some(word) => named(&FIELDS, word.bytes()).ok_or(BAD_INFO)?,
    };
    let about = filter.about();
    let measure = fields.iter().any(|(word, _)| MEASURED.contains(word)).then(|| filter.measure());
    reply_fields(context, fields, |word| reply_field(context, word, &about, measure));
    Ok(())
}

/// Fields that require reading all bits.
const MEASURED: [&str; 3] = ["FILL", "ESTIMATE", "RATE"];

/// The field with this word, or all fields.
pub(super) fn named<'a>(
    fields: &'a [(&'static str, &'static CStr)],
    word: &[u8],
) -> Option<&'a [(&'static str, &'static CStr)]> {
    if word.eq_ignore_ascii_case(b"ALL") {
        return Some(fields);
    }
    let at = fields.iter().position(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))?;
    Some(&fields[at..=at])
}

/// Pairs of a name and a value. A single value has no name if the client does not support maps.
pub(super) fn reply_fields(
    context: &Context,
    fields: &[(&'static str, &'static CStr)],
    reply: impl Fn(&str),
) {
    if let [(word, _)] = fields
        && !context.speaks_maps()
    {
        context.reply_array(1);
        reply(word);
        return;
    }
    context.reply_map(fields.len());
    for (word, name) in fields {
        context.reply_text(name);
        reply(word);
    }
}

fn reply_field(context: &Context, word: &str, about: &About, measure: Option<Measure>) {
    match (word, measure) {
        ("CAPACITY", _) => context.reply_count(about.capacity),
        ("SIZE", _) => context.reply_count(about.bytes),
        ("FILTERS", _) => context.reply_count(about.filters),
        ("ITEMS", _) => context.reply_count(about.items),
        ("EXPANSION", _) => match about.expansion {
            Some(expansion) => context.reply_integer(i64::from(expansion)),
            None => context.reply_null(),
        },
        ("LAYOUT", _) => context.reply_bytes(about.layout.as_bytes()),
        ("FILL", Some(measure)) => context.reply_double(measure.fill),
        ("ESTIMATE", Some(measure)) => context.reply_count(measure.items as u64),
        ("RATE", Some(measure)) => context.reply_double(measure.rate),
        _ => context.reply_null(),
    }
}

pub(super) fn debug(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 1 {
        return Err(Fault::Arity);
    }
    let key = context.read(arguments.need(0)?);
    let lines = if let Some(kept) = key.value::<Chain>() {
        lines(kept.value())
    } else {
        match key.value::<OwnBloom>().map(|kept| kept.value()) {
            Some(OwnBloom::Keyed(chain)) => lines(chain),
            Some(own) => {
                vec![own.ready().map_or("loading".to_owned(), |filter| one_line(&filter.about()))]
            }
            None => return Err(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE }),
        }
    };
    context.reply_array(lines.len());
    lines.iter().for_each(|line| context.reply_bytes(line.as_bytes()));
    Ok(())
}

fn lines(chain: &Chain) -> Vec<String> {
    let first = format!("size:{}", chain.about().items);
    core::iter::once(first).chain(chain.links().iter().map(line)).collect()
}

/// A filter without links.
fn one_line(about: &About) -> String {
    let About { capacity, bytes, filters, items, layout, .. } = about;
    format!("layout:{layout} bytes:{bytes} filters:{filters} capacity:{capacity} size:{items}")
}

fn line(link: &Link) -> String {
    format!(
        "bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{}",
        link.plan().bytes(),
        link.bits(),
        link.hashes(),
        link.entries(),
        link.size(),
        general(link.error()),
    )
}
