//! Types of values: their callbacks, and how they are called without unwinding into the engine.

use super::alloc::{has_ordinary_alignment, size_of_box};
use super::api::{Ctx, DefragHandle, DigestHandle, Io, Str, TypeHandle, TypeMethods, api};
#[cfg(debug_assertions)]
use super::panic::panic_if_wanted;
use super::panic::without_panic;
use super::rdb::{Digester, Loader, Mover, Rewriter, Saver};
use crate::error::Invalid;
use crate::memory::Kept;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The storage for the engine's handle of a type.
#[derive(Debug)]
pub(crate) struct Slot(AtomicPtr<TypeHandle>);

impl Slot {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> *mut TypeHandle {
        self.0.load(Ordering::Relaxed)
    }
}

/// A type of values that an engine keeps under keys, as [`Kept`] ones.
pub(crate) trait Stored: Sized + 'static {
    /// Nine letters, the permanent name in files.
    const NAME: &'static CStr;
    /// The version of its encoding in files.
    const VERSION: c_int;

    /// The storage for its handle.
    fn slot() -> &'static Slot;

    /// Reads the next value from a file of this version.
    fn load(from: &mut Loader, version: c_int) -> Result<Self, Invalid>;

    /// Writes the value for [`load`](Self::load).
    fn save(&self, to: &mut Saver);

    /// Writes commands that create the value.
    fn rewrite(&self, to: &mut Rewriter);

    /// Adds everything that defines equality of values.
    fn digest(&self, to: &mut Digester);

    /// The approximate work of freeing it. Above 64 the engine frees in the background.
    fn effort(&self) -> usize;

    /// A copy, or `None` if there is not enough memory.
    fn try_clone(&self) -> Option<Self>;

    /// Lets the engine move its memory.
    fn defrag(&mut self, mover: &mut Mover);
}

/// Registers the type with the engine; `false` if it refuses.
///
/// # Safety
///
/// `ctx` must be the context of `RedisModule_OnLoad`, and the functions of the engine be fetched.
pub(super) unsafe fn register<T: Stored>(ctx: *mut Ctx) -> bool {
    const METHODS_OF_6_2: u64 = 3;
    // `size_of_box` and `defrag` pass the addresses of values to the engine as its own.
    const { assert!(has_ordinary_alignment::<Kept<T>>()) };
    let mut methods = TypeMethods {
        version: METHODS_OF_6_2,
        rdb_load: Some(load::<T>),
        rdb_save: Some(save::<T>),
        aof_rewrite: Some(rewrite::<T>),
        mem_usage: Some(memory_usage::<T>),
        digest: Some(digest::<T>),
        free: Some(free::<T>),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: Some(effort::<T>),
        unlink: None,
        copy: Some(copy::<T>),
        defrag: Some(defrag::<T>),
    };
    // SAFETY: the caller promises it; the engine copies the methods.
    let handle =
        unsafe { (api().create_data_type)(ctx, T::NAME.as_ptr(), T::VERSION, &raw mut methods) };
    T::slot().0.store(handle, Ordering::Relaxed);
    !handle.is_null()
}

/// The process that loaded the module. Its children write files.
static PROCESS: AtomicU32 = AtomicU32::new(0);

pub(super) fn remember_process() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// Runs `call`, which writes a value, to its end. After a panic the engine would take a partial value for a
/// complete one: it would report success, and the file could not be read again. So the process that writes the
/// file ends, and the last good file stays. Mostly that is a child of the server, whose end the server reports
/// as an error.
fn all_or_end(call: impl FnOnce()) {
    let whole = catch_unwind(AssertUnwindSafe(|| {
        #[cfg(debug_assertions)]
        panic_if_wanted("save");
        call();
    }));
    if whole.is_ok() {
        return;
    }
    let text =
        c"a bug of the module: a value could not be saved, so this process ends without a file";
    // SAFETY: engines take a log line without a context; the format takes one text that ends with a zero.
    unsafe {
        (api().log)(core::ptr::null_mut(), c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr())
    };
    #[cfg(unix)]
    if std::process::id() != PROCESS.load(Ordering::Relaxed) {
        // SAFETY: ends this process, and nothing of it runs after that.
        unsafe { libc::_exit(1) };
    }
    std::process::abort()
}

/// The value behind a pointer that the engine keeps.
///
/// # Safety
///
/// `value` must be one that this type gave to the engine.
unsafe fn of<'a, T>(value: *const c_void) -> &'a Kept<T> {
    // SAFETY: the caller promises it.
    unsafe { &*value.cast() }
}

unsafe extern "C" fn load<T: Stored>(io: *mut Io, version: c_int) -> *mut c_void {
    without_panic(core::ptr::null_mut(), || {
        // SAFETY: the engine passes what it reads from.
        let mut from = unsafe { Loader::new(io) };
        match Kept::try_make(|| T::load(&mut from, version)) {
            Ok(value) => Box::into_raw(Box::new(value)).cast(),
            Err(_) => core::ptr::null_mut(),
        }
    })
}

unsafe extern "C" fn save<T: Stored>(io: *mut Io, value: *mut c_void) {
    // SAFETY: the engine passes what it writes to, and a value of this type.
    all_or_end(|| unsafe { of::<T>(value).value().save(&mut Saver::new(io)) });
}

unsafe extern "C" fn rewrite<T: Stored>(io: *mut Io, key: *mut Str, value: *mut c_void) {
    // SAFETY: as above.
    all_or_end(|| unsafe { of::<T>(value).value().rewrite(&mut Rewriter::new(io, key)) });
}

unsafe extern "C" fn memory_usage<T: Stored>(value: *const c_void) -> usize {
    // SAFETY: the engine passes a value of this type.
    let kept = unsafe { of::<T>(value) };
    size_of_box(kept) + kept.footprint()
}

unsafe extern "C" fn digest<T: Stored>(handle: *mut DigestHandle, value: *mut c_void) {
    // SAFETY: the engine passes its digest, and a value of this type.
    without_panic((), || unsafe { of::<T>(value).value().digest(&mut Digester::new(handle)) });
}

unsafe extern "C" fn free<T: Stored>(value: *mut c_void) {
    // SAFETY: the engine gives a value of this type back, once, and has no other reference to it.
    without_panic((), || drop(unsafe { Box::<Kept<T>>::from_raw(value.cast()) }));
}

unsafe extern "C" fn effort<T: Stored>(_: *mut Str, value: *const c_void) -> usize {
    // SAFETY: the engine passes a value of this type.
    without_panic(1, || unsafe { of::<T>(value) }.value().effort())
}

unsafe extern "C" fn copy<T: Stored>(
    _: *mut Str,
    _: *mut Str,
    value: *const c_void,
) -> *mut c_void {
    without_panic(core::ptr::null_mut(), || {
        // SAFETY: the engine passes a value of this type.
        let value = unsafe { of::<T>(value) }.value();
        match Kept::try_make(|| value.try_clone().ok_or(Invalid::NoMemory)) {
            Ok(copy) => Box::into_raw(Box::new(copy)).cast(),
            Err(_) => core::ptr::null_mut(),
        }
    })
}

/// The result of a defragmentation run that is finished.
const NOTHING_LEFT: c_int = 0;

unsafe extern "C" fn defrag<T: Stored>(
    handle: *mut DefragHandle,
    _: *mut Str,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the engine passes the only pointer to a value of this type; it moves memory that this module took from
    // it, and frees what it moved, so that the old pointer is not used again.
    unsafe {
        let moved = (api().defrag_alloc)(handle, *value);
        if !moved.is_null() {
            *value = moved;
        }
        let kept = &mut *(*value).cast::<Kept<T>>();
        without_panic((), || kept.change(|value| value.defrag(&mut Mover::new(handle))));
    }
    NOTHING_LEFT
}
