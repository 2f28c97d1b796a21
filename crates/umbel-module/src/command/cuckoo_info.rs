//! CF.INFO, DEBUG: information about a cuckoo filter.

use super::bloom_info::{named, reply_fields};
use super::words::{LOADING, NOT_FOUND, WRONG_TYPE};
use crate::cuckoo::{Cuckoo, CuckooFields};
use crate::engine::{Arguments, Context, Fault, Key, Outcome};
use crate::memory::Kept;
use crate::own::OwnCuckoo;
use core::ffi::CStr;

/// The content of `CF.INFO`.
struct About {
    bytes: u64,
    fields: CuckooFields,
    layout: &'static str,
    fill: f64,
    rate: f64,
}

/// The fields of `CF.INFO`: the word in the command, and the name in the reply. The first eight are
/// RedisBloom's.
const FIELDS: [(&str, &CStr); 12] = [
    ("SIZE", c"Size"),
    ("BUCKETS", c"Number of buckets"),
    ("FILTERS", c"Number of filters"),
    ("ITEMS", c"Number of items inserted"),
    ("DELETED", c"Number of items deleted"),
    ("BUCKETSIZE", c"Bucket size"),
    ("EXPANSION", c"Expansion rate"),
    ("MAXITERATIONS", c"Max iterations"),
    ("LAYOUT", c"Layout"),
    ("FILL", c"Fill"),
    ("ESTIMATE", c"Estimated number of items"),
    ("RATE", c"Current error rate"),
];

/// The number of fields in the reply to a command without a field.
const PLAIN: usize = 8;

fn about(key: &Key<'_>) -> Result<About, Fault> {
    if let Some(kept) = key.value::<Cuckoo>() {
        return Ok(about_plain(kept.value()));
    }
    match key.value::<OwnCuckoo>().map(Kept::value) {
        Some(own) => about_own(own),
        None => Err(if key.is_empty() { NOT_FOUND } else { WRONG_TYPE }),
    }
}

fn about_plain(cuckoo: &Cuckoo) -> About {
    let (mut taken, mut slots, mut no) = (0, 0, 1.0);
    let fields = cuckoo.fields();
    for table in cuckoo.tables() {
        (taken, slots) = (taken + table.items(), slots + table.slots().len() as u64);
        let load = table.items() as f64 / table.slots().len() as f64;
        // An absent key is a false positive if one of the fingerprints in its two buckets equals its own.
        no *= (1.0 - load / 255.0).powi(2 * i32::from(fields.settings.bucket_size));
    }
    About {
        bytes: cuckoo.reported_bytes(),
        fields,
        layout: "classic",
        fill: taken as f64 / slots as f64,
        rate: 1.0 - no,
    }
}

fn about_own(own: &OwnCuckoo) -> Result<About, Fault> {
    let OwnCuckoo::Filter(filter, deletes) = own else { return Err(LOADING) };
    let shape = filter.shape();
    let settings = crate::cuckoo::Settings {
        bucket_size: (shape.slots() / shape.buckets()) as u16,
        max_iterations: 0,
        expansion: 0,
    };
    let (items, buckets, deletes) = (filter.len(), shape.buckets(), *deletes);
    Ok(About {
        bytes: filter.bytes(),
        fields: CuckooFields { items, buckets, deletes, tables: 1, settings },
        layout: "rated",
        fill: filter.load(),
        rate: filter.expected_rate(),
    })
}

pub(super) fn info(context: &Context, arguments: Arguments<'_>) -> Outcome {
    // RedisBloom accepts no word here.
    let fields = match arguments.get(1) {
        None => &FIELDS[..PLAIN],
        Some(word) if arguments.len() == 2 => named(&FIELDS, word.bytes()).ok_or(Fault::Arity)?,
        Some(_) => return Err(Fault::Arity),
    };
    let about = about(&context.read(arguments.need(0)?))?;
    reply_fields(context, fields, |word| reply_field(context, word, &about));
    Ok(())
}

fn reply_field(context: &Context, word: &str, about: &About) {
    let CuckooFields { items, buckets, deletes, tables, settings } = about.fields;
    match word {
        "SIZE" => context.reply_count(about.bytes),
        "BUCKETS" => context.reply_count(buckets),
        "FILTERS" => context.reply_count(tables),
        "ITEMS" | "ESTIMATE" => context.reply_count(items),
        "DELETED" => context.reply_count(deletes),
        "BUCKETSIZE" => context.reply_integer(settings.bucket_size.into()),
        "EXPANSION" => context.reply_integer(settings.expansion.into()),
        "MAXITERATIONS" => context.reply_integer(settings.max_iterations.into()),
        "LAYOUT" => context.reply_bytes(about.layout.as_bytes()),
        "FILL" => context.reply_double(about.fill),
        _ => context.reply_double(about.rate),
    }
}

pub(super) fn debug(context: &Context, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() != 1 {
        return Err(Fault::Arity);
    }
    let CuckooFields { items, buckets, deletes, tables, settings } =
        about(&context.read(arguments.need(0)?))?.fields;
    let text = format!(
        "bktsize:{} buckets:{buckets} items:{items} deletes:{deletes} filters:{tables} max_iterations:{} expansion:{}",
        settings.bucket_size, settings.max_iterations, settings.expansion,
    );
    context.reply_bytes(text.as_bytes());
    Ok(())
}
