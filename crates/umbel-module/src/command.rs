//! The commands: one table, and a room for each thing that is done.

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

use crate::engine::{Access, Command};

const fn bloom(command: Command) -> Command {
    Command { category: c"bloom", ..command }
}

const fn cuckoo(command: Command) -> Command {
    Command { category: c"cuckoo", ..command }
}

/// What most rows have in common.
const ROW: Command = Command {
    name: c"",
    run: |_, _| Err(crate::engine::Fault::Arity),
    arity: 0,
    access: Access::Read,
    all_keys: false,
    category: c"",
    summary: c"",
    complexity: c"O(k), where k is the number of hash functions",
};

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
            name: c"BF.RESERVE",
            run: bloom_make::reserve,
            arity: -4,
            access: Write,
            summary: c"Creates a new Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.ADD",
            run: bloom_keys::add,
            arity: 3,
            access: Write,
            summary: c"Adds an item to a Bloom filter",
            ..ROW
        }),
        bloom(Command {
            name: c"BF.MADD",
            run: bloom_keys::add_many,
            arity: -3,
            access: Write,
            summary: c"Adds items to a Bloom filter, which is created if there is none",
            complexity: EACH,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.INSERT",
            run: bloom_make::insert,
            arity: -4,
            access: Write,
            summary: c"Adds items to a Bloom filter, which is created as the options say if there is none",
            complexity: EACH,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.EXISTS",
            run: bloom_keys::exists,
            arity: 3,
            access: Read,
            summary: c"Says whether an item may be in a Bloom filter",
            ..ROW
        }),
        bloom(Command {
            name: c"BF.MEXISTS",
            run: bloom_keys::exist_many,
            arity: -3,
            access: Read,
            summary: c"Says which items may be in a Bloom filter",
            complexity: EACH,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.CARD",
            run: bloom_info::card,
            arity: 2,
            access: Read,
            summary: c"Returns how many items were added to a Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.INFO",
            run: bloom_info::info,
            arity: -2,
            access: Read,
            summary: c"Returns information about a Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.SCANDUMP",
            run: bloom_move::dump,
            arity: 3,
            access: Read,
            summary: c"Returns the next chunk of a Bloom filter",
            complexity: ALL,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.LOADCHUNK",
            run: bloom_move::load,
            arity: 4,
            access: Write,
            summary: c"Loads a chunk of a Bloom filter",
            complexity: ALL,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.DEBUG",
            run: bloom_info::debug,
            arity: 2,
            access: Read,
            summary: c"Describes every link of a Bloom filter",
            complexity: ONE,
            ..ROW
        }),
        bloom(Command {
            name: c"BF.MERGE",
            run: bloom_move::merge,
            arity: -3,
            access: Write,
            all_keys: true,
            summary: c"Puts all items of Bloom filters into the first one",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.RESERVE",
            run: cuckoo_make::reserve,
            arity: -3,
            access: Write,
            summary: c"Creates a new cuckoo filter",
            complexity: ONE,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.ADD",
            run: cuckoo_keys::add,
            arity: 3,
            access: Write,
            summary: c"Adds an item to a cuckoo filter",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.ADDNX",
            run: cuckoo_keys::add_new,
            arity: 3,
            access: Write,
            summary: c"Adds an item to a cuckoo filter unless it may be there",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.INSERT",
            run: cuckoo_make::insert,
            arity: -4,
            access: Write,
            summary: c"Adds items to a cuckoo filter, which is created if there is none",
            complexity: TWO_EACH,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.INSERTNX",
            run: cuckoo_make::insert_new,
            arity: -4,
            access: Write,
            summary: c"Adds items to a cuckoo filter unless they may be there",
            complexity: TWO_EACH,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.EXISTS",
            run: cuckoo_keys::exists,
            arity: 3,
            access: Read,
            summary: c"Says whether an item may be in a cuckoo filter",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.MEXISTS",
            run: cuckoo_keys::exist_many,
            arity: -3,
            access: Read,
            summary: c"Says which items may be in a cuckoo filter",
            complexity: TWO_EACH,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.DEL",
            run: cuckoo_keys::remove,
            arity: 3,
            access: Free,
            summary: c"Removes an item from a cuckoo filter, once",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.COUNT",
            run: cuckoo_keys::count,
            arity: 3,
            access: Read,
            summary: c"Returns how often an item may be in a cuckoo filter",
            complexity: TWO,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.INFO",
            run: cuckoo_info::info,
            arity: -2,
            access: Read,
            summary: c"Returns information about a cuckoo filter",
            complexity: ONE,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.SCANDUMP",
            run: cuckoo_move::dump,
            arity: 3,
            access: Read,
            summary: c"Returns the next chunk of a cuckoo filter",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.LOADCHUNK",
            run: cuckoo_move::load,
            arity: 4,
            access: Write,
            summary: c"Loads a chunk of a cuckoo filter",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.COMPACT",
            run: cuckoo_move::compact,
            arity: 2,
            access: Write,
            summary: c"Puts sub-filters of a cuckoo filter together",
            complexity: ALL,
            ..ROW
        }),
        cuckoo(Command {
            name: c"CF.DEBUG",
            run: cuckoo_info::debug,
            arity: 2,
            access: Read,
            summary: c"Describes a cuckoo filter",
            complexity: ONE,
            ..ROW
        }),
    ]
};
