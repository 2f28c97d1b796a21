//! The entry point of the module.

use super::api::{Ctx, ERR, OK, Str, api, load};
use super::context::{Arguments, Context};
use super::datatype::{register, remember_process};
use super::panic::{log_panics, without_panic};
use super::{command, config};
use crate::bloom::Chain;
use crate::cuckoo::Cuckoo;
use crate::own::{OwnBloom, OwnCuckoo};
use crate::settings;
use crate::sketches::{CountMin, Sketch, TDigest, TopK};
use core::ffi::{CStr, c_int};

/// RedisBloom's name, so that clients that ask for it find it, and the two modules are never loaded together.
const NAME: &CStr = c"bf";

/// The version in `MODULE LIST`: that of the RedisBloom whose replies these are. Clients use it to detect the
/// features of a server.
/// out what a server can do.
const VERSION: c_int = 80_800;

/// The module handles read errors, announces changed keys itself, and keeps working while a replica loads a new
/// data set.
/// replica takes in a new data set.
const HANDLE_IO_ERRORS: c_int = 1;
const NO_IMPLICIT_SIGNAL_MODIFIED: c_int = 1 << 1;
const HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;

/// The engine calls this when it loads the module. Valkey uses the same name.
///
/// # Safety
///
/// For the engine only.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the engine's name")]
pub(super) unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut Ctx,
    argv: *mut *mut Str,
    argc: c_int,
) -> c_int {
    // SAFETY: the engine passes its context. Nothing is allocated before this: see `alloc`.
    if !unsafe { load(ctx) } {
        return ERR;
    }
    log_panics();
    // SAFETY: as above, and the functions are there.
    without_panic(ERR, || if unsafe { start(ctx, argv, argc) } { OK } else { ERR })
}

unsafe fn start(ctx: *mut Ctx, argv: *mut *mut Str, argc: c_int) -> bool {
    let engine = api();
    // SAFETY: the caller passes what the engine did.
    unsafe {
        if (engine.is_module_name_busy)(NAME.as_ptr()) != 0 {
            return false;
        }
        (engine.set_module_attribs)(ctx, NAME.as_ptr(), VERSION, 1);
        let options = HANDLE_IO_ERRORS | NO_IMPLICIT_SIGNAL_MODIFIED | HANDLE_REPL_ASYNC_LOAD;
        (engine.set_module_options)(ctx, options);
        remember_process();
        let context = Context::new(ctx);
        if !take_arguments(Arguments::new(argv, argc)) {
            context.warn(c"arguments are pairs of a setting and its value: see docs/module.md");
            return false;
        }
        register::<Chain>(ctx)
            && register::<Cuckoo>(ctx)
            && register::<OwnBloom>(ctx)
            && register::<OwnCuckoo>(ctx)
            && register::<Sketch<CountMin>>(ctx)
            && register::<Sketch<TopK>>(ctx)
            && register::<Sketch<TDigest>>(ctx)
            && command::register_all(ctx)
            && config::register(ctx)
    }
}

fn take_arguments(arguments: Arguments<'_>) -> bool {
    (0..arguments.len()).step_by(2).all(|at| {
        let pair = arguments.get(at).zip(arguments.get(at + 1));
        pair.is_some_and(|(name, value)| settings::set_by_name(name.bytes(), value.bytes()))
    })
}
