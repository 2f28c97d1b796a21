//! The table of commands, with one module per group of commands.

mod bloom_info;
mod bloom_keys;
mod bloom_make;
mod bloom_move;
mod cuckoo_info;
mod cuckoo_keys;
mod cuckoo_make;
mod cuckoo_move;
mod number;
mod words;

pub(crate) use number::{double, integer};

use crate::engine::{Access, Command, Described, Kind};

const fn bloom(command: Command) -> Command {
    Command { category: c"bloom", ..command }
}

const fn cuckoo(command: Command) -> Command {
    Command { category: c"cuckoo", ..command }
}

/// The fields that most rows share.
const ROW: Command = Command {
    name: c"",
    run: |_, _| Err(crate::engine::Fault::Arity),
    arity: 0,
    access: Access::Read,
    all_keys: false,
    category: c"",
    arguments: &[Described::KEY],
    summary: c"",
    complexity: c"O(k), where k is the number of hash functions",
};

/// Arguments, as `COMMAND DOCS` describes them.
mod takes {
    use super::{Described, Kind};
    use core::ffi::CStr;

    const KEY: Described = Described::KEY;
    const ITEM: Described = Described::new(c"item", Kind::Text);
    const CAPACITY: Described = Described::new(c"capacity", Kind::Integer);

    const fn word(name: &'static CStr, token: &'static CStr) -> Described {
        Described::new(name, Kind::Token).after(token).optional()
    }

    const fn number(name: &'static CStr, token: &'static CStr) -> Described {
        Described::new(name, Kind::Integer).after(token).optional()
    }

    const EXPANSION: Described = number(c"expansion", c"EXPANSION");
    const NONSCALING: Described = word(c"nonscaling", c"NONSCALING");
    const NOCREATE: Described = word(c"nocreate", c"NOCREATE");
    const ITEMS: Described = ITEM.after(c"ITEMS").many();

    pub(super) const ONE: &[Described] = &[KEY, ITEM];
    pub(super) const MANY: &[Described] = &[KEY, ITEM.many()];
    pub(super) const BLOOM_RESERVE: &[Described] = &[
        KEY,
        Described::new(c"error_rate", Kind::Double),
        CAPACITY,
        EXPANSION,
        NONSCALING,
        word(c"keyed", c"KEYED"),
        Described::new(c"secret", Kind::Text).after(c"SECRET").optional(),
        word(c"blocked", c"BLOCKED"),
        number(c"window", c"WINDOW"),
    ];
    pub(super) const BLOOM_INSERT: &[Described] = &[
        KEY,
        CAPACITY.after(c"CAPACITY").optional(),
        Described::new(c"error", Kind::Double).after(c"ERROR").optional(),
        EXPANSION,
        NOCREATE,
        NONSCALING,
        ITEMS,
    ];
    pub(super) const FIELD: &[Described] = &[KEY, Described::new(c"field", Kind::Text).optional()];
    pub(super) const DUMP: &[Described] = &[KEY, Described::new(c"iterator", Kind::Integer)];
    pub(super) const LOAD: &[Described] =
        &[KEY, Described::new(c"iterator", Kind::Integer), Described::new(c"data", Kind::Text)];
    /// All keys of a merge have one specification.
    pub(super) const MERGE: &[Described] = &[KEY, Described::new(c"source", Kind::Text).many()];
    pub(super) const CUCKOO_RESERVE: &[Described] = &[
        KEY,
        CAPACITY,
        number(c"bucketsize", c"BUCKETSIZE"),
        number(c"maxiterations", c"MAXITERATIONS"),
        EXPANSION,
        Described::new(c"error", Kind::Double).after(c"ERROR").optional(),
    ];
    pub(super) const CUCKOO_INSERT: &[Described] =
        &[KEY, CAPACITY.after(c"CAPACITY").optional(), NOCREATE, ITEMS];
}

const EACH: &core::ffi::CStr =
    c"O(k * n), where k is the number of hash functions and n the number of items";
const TWO: &core::ffi::CStr = c"O(k), where k is the number of sub-filters";
const TWO_EACH: &core::ffi::CStr =
    c"O(n * (k + i)), where n is the number of items, k of sub-filters, i of iterations";
const ONE: &core::ffi::CStr = c"O(1)";
const ALL: &core::ffi::CStr = c"O(n), where n is the capacity";

/// Every command.
pub(crate) static TABLE: [Command; 26] = {
    use Access::{Free, Read, Write};
    [
        bloom(Command {
            name: c"bf.reserve",
            run: bloom_make::reserve,
            arity: -4,
            access: Write,
            arguments: takes::BLOOM_RESERVE,
            summary: c"Creates a new Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.add",
            run: bloom_keys::add,
            arity: 3,
            access: Write,
            arguments: takes::ONE,
            summary: c"Adds an item to a Bloom filter",
            ..ROW
        }),
        bloom(Command {
            name: c"bf.madd",
            run: bloom_keys::add_many,
            arity: -3,
            access: Write,
            arguments: takes::MANY,
            summary: c"Adds items to a Bloom filter, which is created if there is none",
            complexity: EACH,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.insert",
            run: bloom_make::insert,
            arity: -4,
            access: Write,
            arguments: takes::BLOOM_INSERT,
            summary: c"Adds items to a Bloom filter, which is created as the options say if there is none",
            complexity: EACH,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.exists",
            run: bloom_keys::exists,
            arity: 3,
            access: Read,
            arguments: takes::ONE,
            summary: c"Says whether an item may be in a Bloom filter",
            ..ROW
        }),
        bloom(Command {
            name: c"bf.mexists",
            run: bloom_keys::exist_many,
            arity: -3,
            access: Read,
            arguments: takes::MANY,
            summary: c"Says which items may be in a Bloom filter",
            complexity: EACH,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.card",
            run: bloom_info::card,
            arity: 2,
            access: Read,
            summary: c"Returns how many items were added to a Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.info",
            run: bloom_info::info,
            arity: -2,
            access: Read,
            arguments: takes::FIELD,
            summary: c"Returns information about a Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.scandump",
            run: bloom_move::dump,
            arity: 3,
            access: Read,
            arguments: takes::DUMP,
            summary: c"Returns the next chunk of a Bloom filter",
            complexity: ALL,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.loadchunk",
            run: bloom_move::load,
            arity: 4,
            access: Write,
            arguments: takes::LOAD,
            summary: c"Loads a chunk of a Bloom filter",
            complexity: ALL,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.debug",
            run: bloom_info::debug,
            arity: 2,
            access: Read,
            summary: c"Describes every link of a Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"bf.merge",
            run: bloom_move::merge,
            arity: -3,
            access: Write,
            all_keys: true,
            arguments: takes::MERGE,
            summary: c"Puts all items of Bloom filters into the first one",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.reserve",
            run: cuckoo_make::reserve,
            arity: -3,
            access: Write,
            arguments: takes::CUCKOO_RESERVE,
            summary: c"Creates a new cuckoo filter",
            complexity: ONE,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.add",
            run: cuckoo_keys::add,
            arity: 3,
            access: Write,
            arguments: takes::ONE,
            summary: c"Adds an item to a cuckoo filter",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.addnx",
            run: cuckoo_keys::add_new,
            arity: 3,
            access: Write,
            arguments: takes::ONE,
            summary: c"Adds an item to a cuckoo filter unless it may be there",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.insert",
            run: cuckoo_make::insert,
            arity: -4,
            access: Write,
            arguments: takes::CUCKOO_INSERT,
            summary: c"Adds items to a cuckoo filter, which is created if there is none",
            complexity: TWO_EACH,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.insertnx",
            run: cuckoo_make::insert_new,
            arity: -4,
            access: Write,
            arguments: takes::CUCKOO_INSERT,
            summary: c"Adds items to a cuckoo filter unless they may be there",
            complexity: TWO_EACH,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.exists",
            run: cuckoo_keys::exists,
            arity: 3,
            access: Read,
            arguments: takes::ONE,
            summary: c"Says whether an item may be in a cuckoo filter",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.mexists",
            run: cuckoo_keys::exist_many,
            arity: -3,
            access: Read,
            arguments: takes::MANY,
            summary: c"Says which items may be in a cuckoo filter",
            complexity: TWO_EACH,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.del",
            run: cuckoo_keys::remove,
            arity: 3,
            access: Free,
            arguments: takes::ONE,
            summary: c"Removes an item from a cuckoo filter, once",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.count",
            run: cuckoo_keys::count,
            arity: 3,
            access: Read,
            arguments: takes::ONE,
            summary: c"Returns how often an item may be in a cuckoo filter",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.info",
            run: cuckoo_info::info,
            arity: -2,
            access: Read,
            arguments: takes::FIELD,
            summary: c"Returns information about a cuckoo filter",
            complexity: ONE,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.scandump",
            run: cuckoo_move::dump,
            arity: 3,
            access: Read,
            arguments: takes::DUMP,
            summary: c"Returns the next chunk of a cuckoo filter",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.loadchunk",
            run: cuckoo_move::load,
            arity: 4,
            access: Write,
            arguments: takes::LOAD,
            summary: c"Loads a chunk of a cuckoo filter",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.compact",
            run: cuckoo_move::compact,
            arity: 2,
            access: Write,
            summary: c"Puts sub-filters of a cuckoo filter together",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"cf.debug",
            run: cuckoo_info::debug,
            arity: 2,
            access: Read,
            summary: c"Describes a cuckoo filter",
            complexity: ONE,
            ..ROW
        }),
    ]
};
