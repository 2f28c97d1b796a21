//! Settings as options of `CONFIG`, where the engine supports that for modules.

use super::api::{Ctx, ERR, OK, Str, api};
use super::panic::without_panic;
use crate::command::{double, integer};
use crate::settings::{self, NUMBERS, Setting};
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::ffi::CString;

/// The flag of Redis 8 for names without the module's prefix. Older versions refuse it, and in Valkey the same
/// bit has another meaning.
const UNPREFIXED: c_uint = 1 << 9;
const FIRST_WITH_UNPREFIXED: c_int = 0x08_00_00;

/// Registers all settings with the engine, with their current values as defaults.
///
/// # Safety
///
/// `ctx` must be the context of `RedisModule_OnLoad`, and the functions of the engine be fetched.
pub(super) unsafe fn register(ctx: *mut Ctx) -> bool {
    let Some(load) = api().load_configs else { return true };
    // SAFETY: the function takes nothing.
    let version = unsafe { (api().get_server_version)() };
    let may_be_unprefixed = !api().is_valkey && version >= FIRST_WITH_UNPREFIXED;
    // SAFETY: the caller promises it.
    unsafe {
        let unprefixed = may_be_unprefixed && rate(ctx, UNPREFIXED);
        let flags = if unprefixed { UNPREFIXED } else { 0 };
        let registered = (unprefixed || rate(ctx, flags))
            && NUMBERS.iter().all(|setting| number(ctx, setting, flags));
        registered && load(ctx) == OK
    }
}

unsafe fn rate(ctx: *mut Ctx, flags: c_uint) -> bool {
    let Some(register) = api().register_string_config else { return false };
    let Ok(default) = CString::new(settings::error_rate().to_string()) else { return false };
    let (name, none) = (settings::BF_ERROR_RATE.as_ptr(), core::ptr::null_mut());
    // SAFETY: the caller promises a context; texts end with a zero, and the engine copies them.
    unsafe { register(ctx, name, default.as_ptr(), flags, get_rate, set_rate, None, none) == OK }
}

/// Numbers are registered as texts, as in RedisBloom, whose error messages these are.
unsafe fn number(ctx: *mut Ctx, setting: &'static Setting, flags: c_uint) -> bool {
    let Some(register) = api().register_string_config else { return false };
    let Ok(default) = CString::new(setting.get().to_string()) else { return false };
    let (name, data) = (setting.name.as_ptr(), core::ptr::from_ref(setting).cast_mut().cast());
    // SAFETY: the caller promises a context; the setting lives for ever, and the engine copies the texts.
    unsafe {
        register(ctx, name, default.as_ptr(), flags, get_number, set_number, None, data) == OK
    }
}

unsafe extern "C" fn get_number(_: *const c_char, setting: *mut c_void) -> *mut Str {
    // SAFETY: the engine passes the setting that it was given.
    let setting = unsafe { &*setting.cast::<Setting>() };
    shown(|| setting.get().to_string())
}

unsafe extern "C" fn set_number(
    _: *const c_char,
    value: *mut Str,
    setting: *mut c_void,
    error: *mut *mut Str,
) -> c_int {
    without_panic(ERR, || {
        // SAFETY: the engine passes the setting that it was given.
        let setting = unsafe { &*setting.cast::<Setting>() };
        let name = setting.name.to_string_lossy();
        // SAFETY: the engine passes a string.
        let Some(value) = integer(unsafe { bytes(value) }) else {
            // SAFETY: the engine passes where it looks for an error, here and below.
            return unsafe { refuse(error, &format!("Invalid value for `{name}`")) };
        };
        let (least, most) = setting.range_now();
        // Arguments of the module may have set a value that `CONFIG SET` would refuse: it stays as it is.
        if value == setting.get() || (least..=most).contains(&value) && setting.set(value) {
            return OK;
        }
        let text = format!("Value for `{name}` must be in the range [{least}, {most}]");
        // SAFETY: as above.
        unsafe { refuse(error, &text) }
    })
}

/// The text of the last setting that was returned to the engine, which reads it after the call.
static SHOWN: AtomicPtr<Str> = AtomicPtr::new(core::ptr::null_mut());

/// A text for the engine, which copies it after the call.
fn shown(text: impl FnOnce() -> String) -> *mut Str {
    without_panic(core::ptr::null_mut(), || {
        let text = text();
        // SAFETY: the engine copies the text; the old one was shown to the engine in a call that is over.
        unsafe {
            let string =
                (api().create_string)(core::ptr::null_mut(), text.as_ptr().cast(), text.len());
            let old = SHOWN.swap(string, Ordering::Relaxed);
            if !old.is_null() {
                (api().free_string)(core::ptr::null_mut(), old);
            }
            string
        }
    })
}

unsafe extern "C" fn get_rate(_: *const c_char, _: *mut c_void) -> *mut Str {
    shown(|| settings::error_rate().to_string())
}

unsafe extern "C" fn set_rate(
    _: *const c_char,
    value: *mut Str,
    _: *mut c_void,
    error: *mut *mut Str,
) -> c_int {
    without_panic(ERR, || {
        let name = settings::BF_ERROR_RATE.to_string_lossy();
        // SAFETY: the engine passes a string.
        let Some(rate) = double(unsafe { bytes(value) }) else {
            // SAFETY: the engine passes where it looks for an error, here and below.
            return unsafe { refuse(error, &format!("Invalid value for `{name}`")) };
        };
        if settings::set_error_rate(rate) {
            return OK;
        }
        let text = format!("Value for `{name}` must be in the range (0.000000, 1.000000)");
        // SAFETY: as above.
        unsafe { refuse(error, &text) }
    })
}

/// The bytes of a text of the engine.
///
/// # Safety
///
/// `text` must be a text of the engine, which lives as long as the bytes are used.
unsafe fn bytes<'a>(text: *mut Str) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller promises it; the engine tells address and length.
    unsafe {
        let bytes = (api().string_ptr_len)(text, &raw mut len);
        core::slice::from_raw_parts(bytes.cast(), len)
    }
}

/// # Safety
///
/// `error` must be where the engine looks for the text of an error, which it frees.
unsafe fn refuse(error: *mut *mut Str, text: &str) -> c_int {
    // SAFETY: the caller promises it; the engine copies the text.
    unsafe {
        *error = (api().create_string)(core::ptr::null_mut(), text.as_ptr().cast(), text.len());
    }
    ERR
}
