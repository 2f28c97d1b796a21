//! Commands: how they are registered with the engine, and how it calls them.

use super::alloc::runs;
use super::api::{Begin, CommandFn, CommandInfo, Ctx, InfoVersion, KeySpec, Keyword, OK, Str, api};
use super::arguments::{Described, RawArgument, raw};
use super::context::{Arguments, Context, Fault, Outcome};
#[cfg(debug_assertions)]
use super::panic::panic_if_wanted;
#[cfg(debug_assertions)]
use crate::memory::may_fail;
use crate::sketches;
use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A command: one row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// The name, as clients write it.
    pub(crate) name: &'static CStr,
    /// The function. Its arguments do not include the name.
    pub(crate) run: fn(&Context, Arguments<'_>) -> Outcome,
    /// The number of arguments including the name; a minimum if negative.
    pub(crate) arity: c_int,
    /// The access to its keys.
    pub(crate) access: Access,
    /// Whether all arguments are keys, and not only the first.
    pub(crate) all_keys: bool,
    /// Its category in access lists.
    pub(crate) category: &'static CStr,
    /// Its arguments.
    pub(crate) arguments: &'static [Described],
    /// One line of help.
    pub(crate) summary: &'static CStr,
    /// Its time complexity.
    pub(crate) complexity: &'static CStr,
}

/// The access of a command to its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads.
    Read,
    /// May allocate memory.
    Write,
    /// Only frees memory, if anything, so it is allowed when no memory is left.
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

    /// The engine's key flags.
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

/// The table of commands.
pub(crate) use crate::command::TABLE;

/// The callback of the engine for row `N`.
unsafe extern "C" fn call<const N: usize>(
    ctx: *mut Ctx,
    argv: *mut *mut Str,
    argc: c_int,
) -> c_int {
    let run = || {
        // SAFETY: the engine passes a context and arguments that live until this function returns.
        let (context, arguments) = unsafe { (Context::new(ctx), Arguments::new(argv, argc)) };
        // Simulates a refusal by the allocator in the middle of a change.
        #[cfg(debug_assertions)]
        may_fail(|| panic_if_wanted(&TABLE[N].name.to_string_lossy()));
        if let Err(fault) = (TABLE[N].run)(&context, arguments.rest()) {
            context.fault(fault);
        }
    };
    runs(ctx);
    let ended = catch_unwind(AssertUnwindSafe(run));
    runs(core::ptr::null_mut());
    if ended.is_err() {
        // Commands reply at their end, so no reply was sent yet.
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

/// Registers all commands with the engine; `false` if it refuses one.
///
/// # Safety
///
/// `ctx` must be the context of `RedisModule_OnLoad`, and the functions of the engine be fetched.
pub(super) unsafe fn register_all(ctx: *mut Ctx) -> bool {
    // Includes those of sketches: an engine does not start with an access list that names an unknown category.
    for category in [c"bloom", c"cuckoo", c"cms", c"topk", c"tdigest"] {
        if let Some(add) = api().add_acl_category {
            // SAFETY: the caller promises it. An engine that already has the category refuses, which is fine.
            unsafe { add(ctx, category.as_ptr()) };
        }
    }
    // SAFETY: the caller promises it.
    let serve = |(command, call): (&Command, CommandFn)| unsafe { register(ctx, command, call) };
    // SAFETY: the caller promises it.
    let explain = |name: &&CStr| unsafe { refuse(ctx, name) };
    TABLE.iter().zip(CALLS).all(serve) && sketches::COMMANDS.iter().all(explain)
}

/// Registers a command that is not served, so that clients read why.
///
/// # Safety
///
/// As [`register_all`].
unsafe fn refuse(ctx: *mut Ctx, name: &CStr) -> bool {
    let flags = c"readonly fast".as_ptr();
    // SAFETY: the caller promises it; texts end with a zero.
    if unsafe { (api().create_command)(ctx, name.as_ptr(), not_served, flags, 1, 1, 1) } != OK {
        return false;
    }
    let Some((get, set)) = api().get_command.zip(api().set_command_acl_categories) else {
        return true;
    };
    let family = name.to_bytes().split(|byte| *byte == b'.').next().unwrap_or_default();
    let Ok(category) = CString::new(family) else { return true };
    // SAFETY: as above; the engine copies the list. An engine that cannot add categories refuses, which is
    // fine.
    unsafe {
        let handle = get(ctx, name.as_ptr());
        if !handle.is_null() {
            set(handle, category.as_ptr());
        }
    }
    true
}

/// The callback of the engine for commands of sketches.
unsafe extern "C" fn not_served(ctx: *mut Ctx, _: *mut *mut Str, _: c_int) -> c_int {
    // SAFETY: the engine passes a context that lives until this function returns.
    let context = unsafe { Context::new(ctx) };
    if context.replays_an_aof() {
        // The engine ignores replies while it replays, so the write would be lost silently. This ends the
        // engine, as an unknown command does.
        context.warn(sketches::NOT_REPLAYED);
        std::process::exit(1);
    }
    context.fault(sketches::NOT_SERVED);
    OK
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
        let categories = categories(command);
        // An engine that cannot add categories refuses a list with ours, and accepts one without.
        let own = [command.category.to_bytes(), b" ", categories.as_bytes()].concat();
        let lists = [CString::new(own), CString::new(categories)];
        // SAFETY: as above; the engine copies the list.
        let set = |list: &CString| unsafe { set(handle, list.as_ptr()) } == OK;
        if !lists.iter().flatten().any(set) {
            return false;
        }
    }
    let specs = key_specs(command);
    let arguments = raw(command.arguments);
    let info = CommandInfo {
        version: &raw const INFO_VERSION,
        summary: command.summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: c"1.0.0".as_ptr(),
        history: core::ptr::null(),
        tips: core::ptr::null(),
        arity: command.arity,
        key_specs: specs.as_ptr(),
        arguments: arguments.as_ptr(),
    };
    // SAFETY: the structures are of the version that they name; the engine copies them.
    unsafe { set(handle, &raw const info) == OK }
}

static INFO_VERSION: InfoVersion = InfoVersion {
    version: 1,
    history: 2 * size_of::<*const c_void>(),
    key_spec: size_of::<KeySpec>(),
    argument: size_of::<RawArgument>(),
};

const END: KeySpec = KeySpec {
    notes: core::ptr::null(),
    flags: 0,
    begin_search: 0,
    begin: Begin { keyword: Keyword { word: core::ptr::null(), from: 0 } },
    find_keys: 0,
    range: [0; 3],
};

/// The engine's categories, which access lists grant by `+@read`, `+@write` and `+@fast`. RedisBloom has
/// exactly these commands in the last one.
fn categories(command: &Command) -> &'static str {
    let name = command.name.to_bytes().to_ascii_lowercase();
    let fast = [".reserve", ".info", ".card"].iter().any(|end| name.ends_with(end.as_bytes()));
    match (command.access, fast) {
        (Access::Read, true) => "read fast",
        (Access::Read, false) => "read",
        (_, true) => "write fast",
        (_, false) => "write",
    }
}

/// The first argument is a key. If all arguments are keys, a command changes the first and only reads the
/// others.
fn key_specs(command: &Command) -> [KeySpec; 3] {
    let first = key_spec(1, 0, command.access);
    let others = if command.all_keys { key_spec(2, -1, Access::Read) } else { END };
    [first, others, END]
}

fn key_spec(begin: c_int, last: c_int, access: Access) -> KeySpec {
    const BEGIN_INDEX: c_int = 2;
    const FIND_RANGE: c_int = 2;
    KeySpec {
        flags: access.key_flags(),
        begin_search: BEGIN_INDEX,
        begin: Begin { index: begin },
        find_keys: FIND_RANGE,
        range: [last, 1, 0],
        ..END
    }
}
