//! Error replies. Their texts are RedisBloom's, because programs parse them.

use crate::engine::Fault;
use crate::error::{Invalid, Refused};
use core::ffi::CStr;

const fn text(text: &'static CStr) -> Fault {
    Fault::Text(text)
}

pub(super) const WRONG_TYPE: Fault =
    text(c"WRONGTYPE Operation against a key holding the wrong kind of value");
pub(super) const NOT_FOUND: Fault = text(c"ERR not found");
pub(super) const EXISTS: Fault = text(c"ERR item exists");
pub(super) const BAD_INFO: Fault = text(c"Invalid information value");
pub(super) const UNKNOWN_ARGUMENT: Fault = text(c"Unknown argument received");
pub(super) const NO_MEMORY_TO_CREATE: Fault = text(c"ERR Insufficient memory to create filter");
pub(super) const CANNOT_CREATE: Fault = text(c"ERR could not create filter");

/// Our own: the chunks of the filter are still being loaded.
pub(super) const LOADING: Fault =
    text(c"ERR the filter is being loaded: BF.LOADCHUNK or CF.LOADCHUNK brings the rest");

/// Our own: the chunks of such a filter contain its secret.
pub(super) const HAS_A_SECRET: Fault = text(
    c"ERR a filter with a secret is not dumped in chunks, nor is one that is being loaded: use DUMP and RESTORE",
);

/// Not in RedisBloom: a replica that runs the script again would draw another secret.
pub(super) const NO_SECRET_IN_A_SCRIPT: Fault = text(
    c"ERR this engine may pass on the script, and every server would draw a secret of its own: give SECRET and 32 hexadecimal digits, or call BF.RESERVE outside of the script",
);

/// The reply when a filter cannot be created.
pub(super) const fn not_created(invalid: Invalid) -> Fault {
    match invalid {
        Invalid::NoMemory => NO_MEMORY_TO_CREATE,
        _ => CANNOT_CREATE,
    }
}

/// The reply when an item cannot be added to a Bloom filter.
pub(super) const fn bloom_refused(refused: Refused) -> &'static CStr {
    match refused {
        Refused::Full => c"ERR non scaling filter is full",
        _ => c"ERR problem inserting into filter",
    }
}

/// The reply when an item cannot be added to a cuckoo filter.
pub(super) const fn cuckoo_refused(refused: Refused) -> Fault {
    text(match refused {
        Refused::Full => c"Filter is full",
        Refused::MaxExpansions => c"Maximum expansions reached",
        Refused::NoMemory => c"ERR Insufficient memory",
        Refused::Work => {
            c"ERR this batch moves too many fingerprints and stops before this item: send the rest again, or raise cf-max-moves"
        }
    })
}
