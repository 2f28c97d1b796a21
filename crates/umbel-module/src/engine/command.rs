//! Commands: what the engine is told of them, and how it calls them.

use super::api::{Begin, CommandFn, CommandInfo, Ctx, InfoVersion, KeySpec, Keyword, OK, Str, api};
use super::context::{Arguments, Context, Fault, Outcome};
use core::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A command: one row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// As clients write it.
    pub(crate) name: &'static CStr,
    /// What it does. The arguments come without the name.
    pub(crate) run: fn(&Context, Arguments<'_>) -> Outcome,
    /// How many arguments it has with its name; at least so many if negative.
    pub(crate) arity: c_int,
    /// What it does to its keys.
    pub(crate) access: Access,
    /// Whether all arguments are keys, and not only the first.
    pub(crate) all_keys: bool,
    /// The category of access lists that it belongs to.
    pub(crate) category: &'static CStr,
    /// One line of help.
    pub(crate) summary: &'static CStr,
    /// How long it takes.
    pub(crate) complexity: &'static CStr,
}

/// What a command does to its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Looks.
    Read,
    /// Takes more memory.
    Write,
    /// Gives memory back, if anything, and so is allowed when there is none left.
    Free,
}

impl Access {
    const fn flags(self) -> &'static CStr {
        match self {
            Self::Read => c"readonly fast",
            Self::Write => c"write deny-oom",
            Self::Free => c"write fast",
        }
    }

    /// Bits of the engine's flags of keys.
    const fn key_flags(self) -> u64 {
        const READ_ONLY: u64 = 1;
        const READ_WRITE: u64 = 1 << 1;
        const ACCESS: u64 = 1 << 4;
        const UPDATE: u64 = 1 << 5;
        const DELETE: u64 = 1 << 7;
        match self {
            Self::Read => READ_ONLY | ACCESS,
            Self::Write => READ_WRITE | ACCESS | UPDATE,
            Self::Free => READ_WRITE | ACCESS | DELETE,
        }
    }
}

/// The table, as long as it is.
pub(crate) use crate::command::TABLE;

/// What the engine calls for row `N`.
unsafe extern "C" fn call<const N: usize>(
    ctx: *mut Ctx,
    argv: *mut *mut Str,
    argc: c_int,
) -> c_int {
    let run = || {
        // SAFETY: the engine passes a context and arguments that live until this function returns.
        let (context, arguments) = unsafe { (Context::new(ctx), Arguments::new(argv, argc)) };
        if let Err(fault) = (TABLE[N].run)(&context, arguments.rest()) {
            context.fault(fault);
        }
    };
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        // Commands answer when they are done, so that nothing was answered yet.
        // SAFETY: as above.
        unsafe { Context::new(ctx) }
            .fault(Fault::Text(c"ERR this is a bug of the module; the key may have changed"));
    }
    OK
}

/// One function for every row.
macro_rules! calls {
    ($($row:literal)*) => { [$(call::<$row>),*] };
}

const CALLS: [CommandFn; TABLE.len()] =
    calls!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25);

/// Makes all commands known to the engine; `false` if it does not want one.
///
/// # Safety
///
/// `ctx` must be the context of `RedisModule_OnLoad`, and the functions of the engine be fetched.
pub(super) unsafe fn register_all(ctx: *mut Ctx) -> bool {
    for category in [c"bloom", c"cuckoo"] {
        if let Some(add) = api().add_acl_category {
            // SAFETY: the caller promises it. An engine that has the category already says no, and that is fine.
            unsafe { add(ctx, category.as_ptr()) };
        }
    }
    // SAFETY: the caller promises it.
    TABLE.iter().zip(CALLS).all(|(command, call)| unsafe { register(ctx, command, call) })
}

unsafe fn register(ctx: *mut Ctx, command: &Command, call: CommandFn) -> bool {
    let flags = command.access.flags();
    let last = if command.all_keys { -1 } else { 1 };
    let name = command.name.as_ptr();
    // SAFETY: the caller promises it; texts end with a zero.
    if unsafe { (api().create_command)(ctx, name, call, flags.as_ptr(), 1, last, 1) } != OK {
        return false;
    }
    let (Some(get), Some(set)) = (api().get_command, api().set_command_info) else { return true };
    // SAFETY: as above.
    let handle = unsafe { get(ctx, name) };
    if handle.is_null() {
        return false;
    }
    if let Some(set) = api().set_command_acl_categories {
        // SAFETY: as above. Help, not a condition: the category may be another module's.
        unsafe { set(handle, command.category.as_ptr()) };
    }
    let specs = [key_spec(command), END];
    let info = CommandInfo {
        version: &raw const INFO_VERSION,
        summary: command.summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: c"1.0.0".as_ptr(),
        history: core::ptr::null(),
        tips: core::ptr::null(),
        arity: command.arity,
        key_specs: specs.as_ptr(),
        arguments: core::ptr::null(),
    };
    // SAFETY: the structures are of the version that they name; the engine copies them.
    unsafe { set(handle, &raw const info) == OK }
}

static INFO_VERSION: InfoVersion = InfoVersion {
    version: 1,
    history: 2 * size_of::<*const c_void>(),
    key_spec: size_of::<KeySpec>(),
    argument: size_of_argument(),
};

/// The engine's structure of an argument, of which this module gives none: six texts or pointers, two integers that
/// share a word, two that take one each.
const fn size_of_argument() -> usize {
    size_of::<[*const c_void; 6]>() + 2 * size_of::<c_int>() + size_of::<*const c_void>()
}

const END: KeySpec = KeySpec {
    notes: core::ptr::null(),
    flags: 0,
    begin_search: 0,
    begin: Begin { keyword: Keyword { word: core::ptr::null(), from: 0 } },
    find_keys: 0,
    range: [0; 3],
};

fn key_spec(command: &Command) -> KeySpec {
    const BEGIN_INDEX: c_int = 2;
    const FIND_RANGE: c_int = 2;
    let last = if command.all_keys { -1 } else { 0 };
    KeySpec {
        flags: command.access.key_flags(),
        begin_search: BEGIN_INDEX,
        begin: Begin { index: 1 },
        find_keys: FIND_RANGE,
        range: [last, 1, 0],
        ..END
    }
}
