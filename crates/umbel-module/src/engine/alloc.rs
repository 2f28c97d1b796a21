//! All memory of the module comes from the engine, so that `used_memory`, `maxmemory` and `MEMORY USAGE`
//! include it.
//!
//! Until an engine has loaded the module, as in tests, the system allocates. Memory from before is never freed
//! after: the switch is the first step of loading.

use super::api::{Api, Ctx, DefragHandle, loaded};
use super::context::Context;
use crate::memory::{MODEST, count, fits_beside, may_refuse, resident};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::alloc::System;

/// The alignment of memory from the engine.
const ALIGNED: usize = 16;

/// Requests of at least this number of bytes may be refused. A smaller one that fails ends the server, as
/// everywhere in it.
const LARGE: usize = 1 << 20;

struct Engine;

#[global_allocator]
static ALLOCATOR: Engine = Engine;

// SAFETY: memory comes from the system or from the engine, each of which has an allocator that any thread may use,
// and goes back to where it came from; layouts are met, see `take`.
unsafe impl GlobalAlloc for Engine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match loaded() {
            // SAFETY: the caller promises that the layout is not of size zero.
            Some(api) => unsafe { take(api, layout, Fill::Anything) },
            // SAFETY: as above.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match loaded() {
            // SAFETY: the caller promises that the layout is not of size zero.
            Some(api) => unsafe { take(api, layout, Fill::Zero) },
            // SAFETY: as above.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match loaded() {
            // SAFETY: the caller promises that `memory` came from here with this layout.
            Some(api) => unsafe { give_back(api, memory, layout) },
            // SAFETY: as above.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(api) = loaded() else {
            // SAFETY: the caller promises that `memory` came from here with this layout.
            return unsafe { System.realloc(memory, layout, size) };
        };
        if layout.align() > ALIGNED {
            // SAFETY: the size is not zero, and the alignment is that of a layout.
            let layout_after = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
            // SAFETY: as above; what is copied fits into both.
            unsafe {
                let after = self.alloc(layout_after);
                if !after.is_null() {
                    core::ptr::copy_nonoverlapping(memory, after, layout.size().min(size));
                    self.dealloc(memory, layout);
                }
                return after;
            }
        }
        // SAFETY: `memory` came from the engine, unshifted, since its alignment is an ordinary one.
        unsafe { resize(api, memory.cast(), size).cast() }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Zero,
    Anything,
}

/// Memory for this layout. If the alignment is unusual, the word before the memory has the address of the whole
/// allocation.
///
/// # Safety
///
/// The layout must not be of size zero.
unsafe fn take(api: &Api, layout: Layout, fill: Fill) -> *mut u8 {
    if layout.align() <= ALIGNED {
        // SAFETY: the size is not zero.
        return unsafe { raw(api, layout.size(), fill) }.cast();
    }
    let Some(size) = layout.size().checked_add(layout.align()) else {
        return core::ptr::null_mut();
    };
    // SAFETY: the size is not zero.
    let whole = unsafe { raw(api, size, fill) }.cast::<u8>();
    if whole.is_null() {
        return whole;
    }
    // Aligned to 16 itself, so at least 16 bytes are before the next multiple of more.
    let shift = layout.align() - whole.addr() % layout.align();
    // SAFETY: `shift` is from 16 to the alignment, and that much more was asked for.
    unsafe {
        let memory = whole.add(shift);
        memory.cast::<*mut u8>().sub(1).write(whole);
        memory
    }
}

/// # Safety
///
/// `memory` must come from [`take`] with this layout.
unsafe fn give_back(api: &Api, memory: *mut u8, layout: Layout) {
    let whole = if layout.align() <= ALIGNED {
        memory
    } else {
        // SAFETY: `take` left it there.
        unsafe { memory.cast::<*mut u8>().sub(1).read() }
    };
    // SAFETY: this is what the engine gave.
    unsafe {
        count(-((api.malloc_size)(whole.cast()) as isize));
        (api.free)(whole.cast());
    }
}

/// Memory of this size, or null if the request is large and cannot be satisfied.
///
/// # Safety
///
/// The size must not be zero.
unsafe fn raw(api: &Api, size: usize, fill: Fill) -> *mut c_void {
    if refused(api, size, fill) {
        return core::ptr::null_mut();
    }
    // An engine without `TryAlloc` ends the process when there is no memory, so smaller requests are checked
    // too. They are not checked where a refusal would also end the process.
    let granted = size as u64 > MODEST || !may_refuse();
    // SAFETY: these are the engine's functions, and any size may be asked for.
    let memory = unsafe {
        match (fill, size < LARGE) {
            (Fill::Zero, true) => (api.calloc)(1, size),
            (Fill::Anything, true) => (api.alloc)(size),
            (Fill::Zero, false) => match api.try_calloc {
                Some(try_calloc) => try_calloc(1, size),
                // `calloc` returns untouched zero pages, where `TryAlloc` and writing zeros would touch every
                // page.
                None if granted || affordable(api, size) => (api.calloc)(1, size),
                None => core::ptr::null_mut(),
            },
            (Fill::Anything, false) => match api.try_alloc {
                Some(try_alloc) => try_alloc(size),
                None if granted || affordable(api, size) => (api.alloc)(size),
                None => core::ptr::null_mut(),
            },
        }
    };
    let memory = placed(api, memory);
    if !memory.is_null() {
        // SAFETY: the engine has just given it.
        count(unsafe { (api.malloc_size)(memory) } as isize);
    }
    memory
}

thread_local! {
    /// The defragmentation run for which this thread copies a value, or null.
    static PLACING: Cell<*mut DefragHandle> = const { Cell::new(core::ptr::null_mut()) };
}

/// Runs `copy`, with memory at the places that the engine prefers in this defragmentation run.
pub(super) fn placing<R>(run: *mut DefragHandle, copy: impl FnOnce() -> R) -> R {
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            PLACING.set(core::ptr::null_mut());
        }
    }
    PLACING.set(run);
    let _over = Over;
    copy()
}

/// New memory. It is moved at once if a value is being copied for defragmentation and this is a bad place.
fn placed(api: &Api, memory: *mut c_void) -> *mut c_void {
    let run = PLACING.try_with(Cell::get).unwrap_or(core::ptr::null_mut());
    if run.is_null() || memory.is_null() {
        return memory;
    }
    // SAFETY: the run lasts as long as `placing`, and nothing else has the address of the memory yet.
    let moved = unsafe { (api.defrag_alloc)(run, memory) };
    if moved.is_null() { memory } else { moved }
}

/// The context of the command that runs, or null. Commands run one at a time.
static COMMAND: AtomicPtr<Ctx> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the command that runs, for [`affordable`]; null when it has ended.
#[inline(always)]
pub(super) fn runs(command: *mut Ctx) {
    COMMAND.store(command, Ordering::Relaxed);
}

/// Zeroed requests of at least this size are added up: many small filters can reserve as much as a large one.
const ADDED_UP: usize = 64 << 10;

/// The request that takes their sum past this is checked. A check takes a tenth of a millisecond.
const MANY: usize = 64 << 20;

/// The bytes of zeroed requests since the last one that was checked and granted.
static UNJUDGED: AtomicUsize = AtomicUsize::new(0);

/// Whether a request must be refused. Only large ones are checked, and the one at which the sum of smaller ones
/// is too large.
#[inline]
fn refused(api: &Api, size: usize, fill: Fill) -> bool {
    if size < ADDED_UP || !may_refuse() {
        return false;
    }
    if size as u64 > MODEST {
        return !affordable(api, size);
    }
    if fill == Fill::Anything {
        return false;
    }
    let sum = UNJUDGED.load(Ordering::Relaxed).saturating_add(size);
    let refused = sum > MANY && !affordable(api, size);
    // After a refusal the next request is checked too.
    UNJUDGED.store(if sum > MANY && !refused { 0 } else { sum }, Ordering::Relaxed);
    refused
}

/// Whether the machine can provide this number of bytes. A client's command gets only memory that is not
/// reserved: a filter that was created and not filled yet occupies no pages, but will. Commands of a primary
/// and data of a file are checked against the occupied pages alone.
fn affordable(api: &Api, size: usize) -> bool {
    let command = COMMAND.load(Ordering::Relaxed);
    // SAFETY: a command that runs has a context, and this is called while it runs.
    let client = !command.is_null() && !unsafe { Context::new(command) }.trusts_the_sender();
    fits_beside(size as u64, if client { untouched(api) } else { 0 })
}

/// The bytes that the engine has allocated and that have no page yet.
fn untouched(api: &Api) -> u64 {
    let Some(resident) = resident() else { return 0 };
    let mut error = 0;
    // SAFETY: engines take this call without a context; names end with a zero, and what the engine made it takes back.
    let used = unsafe {
        let none = core::ptr::null_mut();
        let data = (api.get_server_info)(none, c"memory".as_ptr());
        let field: &CStr = c"used_memory";
        let used = (api.server_info_get_field_unsigned)(data, field.as_ptr(), &raw mut error);
        (api.free_server_info)(none, data);
        used
    };
    if error == 0 { used.saturating_sub(resident) } else { 0 }
}

/// # Safety
///
/// `memory` must come from [`raw`], and the size must not be zero.
unsafe fn resize(api: &Api, memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller promises it.
    let before = unsafe { (api.malloc_size)(memory) };
    let grows = size > before;
    if grows && refused(api, size, Fill::Anything) {
        return core::ptr::null_mut();
    }
    let judged = size as u64 > MODEST || !grows || !may_refuse();
    // SAFETY: the caller promises it.
    unsafe {
        let after = match api.try_realloc {
            Some(try_realloc) if size >= LARGE => try_realloc(memory, size),
            None if size >= LARGE && !judged && !affordable(api, size) => core::ptr::null_mut(),
            _ => (api.realloc)(memory, size),
        };
        if !after.is_null() {
            count((api.malloc_size)(after) as isize - before as isize);
        }
        after
    }
}

/// Whether boxes of this type begin at the start of the engine's allocation: see [`take`].
pub(super) const fn has_ordinary_alignment<T>() -> bool {
    align_of::<T>() <= ALIGNED
}

/// The engine's size of a box.
pub(super) fn size_of_box<T>(value: &T) -> usize {
    const { assert!(has_ordinary_alignment::<T>()) };
    // SAFETY: callers pass what is in a box of this allocator, whose alignment is an ordinary one.
    loaded()
        .map_or(0, |api| unsafe { (api.malloc_size)(core::ptr::from_ref(value).cast_mut().cast()) })
}
