//! Files, digests and defragmentation: the engine's arguments to the callbacks of a type.

use super::alloc::{has_ordinary_alignment, placing};
use super::api::{DefragHandle, DigestHandle, Io, Str, api};
use crate::error::Invalid;
use crate::memory::count;
use core::ffi::{CStr, c_longlong};

/// An RDB file, or the payload of a `RESTORE`, that is being read.
#[derive(Debug)]
pub(crate) struct Loader {
    io: *mut Io,
}

impl Loader {
    /// # Safety
    ///
    /// `io` must be what the engine reads from, and live as long as this value.
    pub(super) unsafe fn new(io: *mut Io) -> Self {
        Self { io }
    }

    fn checked<R>(&self, value: R) -> Result<R, Invalid> {
        // SAFETY: the file is open, here and below.
        if unsafe { (api().is_io_error)(self.io) } == 0 { Ok(value) } else { Err(Invalid::Read) }
    }

    pub(crate) fn unsigned(&mut self) -> Result<u64, Invalid> {
        // SAFETY: see above.
        let value = unsafe { (api().load_unsigned)(self.io) };
        self.checked(value)
    }

    pub(crate) fn double(&mut self) -> Result<f64, Invalid> {
        // SAFETY: see above.
        let value = unsafe { (api().load_double)(self.io) };
        self.checked(value)
    }

    /// A string, in the memory into which the engine has read it.
    pub(crate) fn bytes(&mut self) -> Result<Box<[u8]>, Invalid> {
        let mut len = 0;
        // SAFETY: see above; the engine writes the length.
        let bytes = unsafe { (api().load_string_buffer)(self.io, &raw mut len) }.cast::<u8>();
        if bytes.is_null() {
            return Err(Invalid::Read);
        }
        if len == 0 {
            // SAFETY: the engine has given it; a box of nothing has no memory.
            unsafe { (api().free)(bytes.cast()) };
            return self.checked(Box::new([]));
        }
        // SAFETY: the engine has given `len` bytes of its own memory, which is where this module's boxes come from
        // and go to; it is counted as those are.
        let bytes = unsafe {
            count((api().malloc_size)(bytes.cast()) as isize);
            Box::from_raw(core::ptr::slice_from_raw_parts_mut(bytes, len))
        };
        self.checked(bytes)
    }
}

/// An RDB file that is being written. The engine handles errors: it discards the file.
#[derive(Debug)]
pub(crate) struct Saver {
    io: *mut Io,
}

impl Saver {
    /// # Safety
    ///
    /// `io` must be what the engine writes to, and live as long as this value.
    pub(super) unsafe fn new(io: *mut Io) -> Self {
        Self { io }
    }

    pub(crate) fn unsigned(&mut self, value: u64) {
        // SAFETY: the file is open, here and below.
        unsafe { (api().save_unsigned)(self.io, value) };
    }

    pub(crate) fn double(&mut self, value: f64) {
        // SAFETY: see above.
        unsafe { (api().save_double)(self.io, value) };
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: see above; the engine copies the bytes.
        unsafe { (api().save_string_buffer)(self.io, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// An AOF file that is being rewritten.
#[derive(Debug)]
pub(crate) struct Rewriter {
    io: *mut Io,
    key: *mut Str,
}

impl Rewriter {
    /// # Safety
    ///
    /// `io` must be what the engine writes to and `key` the name of the value; both live as long as this one.
    pub(super) unsafe fn new(io: *mut Io, key: *mut Str) -> Self {
        Self { io, key }
    }

    /// A command that loads this chunk.
    pub(crate) fn chunk(&mut self, command: &CStr, number: u64, chunk: &[u8]) {
        let number = number as c_longlong;
        // SAFETY: the file is open, and the format names what follows: the key, a number, bytes and their length.
        unsafe {
            (api().emit_aof)(
                self.io,
                command.as_ptr(),
                c"slb".as_ptr(),
                self.key,
                number,
                chunk.as_ptr(),
                chunk.len(),
            );
        }
    }
}

/// A digest that is being computed.
#[derive(Debug)]
pub(crate) struct Digester {
    handle: *mut DigestHandle,
}

impl Digester {
    /// # Safety
    ///
    /// `handle` must be the engine's digest, and live as long as this value.
    pub(super) unsafe fn new(handle: *mut DigestHandle) -> Self {
        Self { handle }
    }

    /// Adds these bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the digest is alive, here and below; the engine reads the bytes.
        unsafe {
            (api().digest_add_string_buffer)(self.handle, bytes.as_ptr().cast(), bytes.len())
        };
    }

    /// Ends the sequence.
    pub(crate) fn end(&mut self) {
        // SAFETY: see above.
        unsafe { (api().digest_end_sequence)(self.handle) };
    }
}

/// A run of active defragmentation.
#[derive(Debug)]
pub(crate) struct Mover {
    handle: *mut DefragHandle,
}

impl Mover {
    /// # Safety
    ///
    /// `handle` must be the engine's run, and live as long as this value.
    pub(super) unsafe fn new(handle: *mut DefragHandle) -> Self {
        Self { handle }
    }

    /// Lets the engine move these bytes to a better place.
    pub(crate) fn bytes(&mut self, bytes: &mut Box<[u8]>) {
        let len = bytes.len();
        if len == 0 {
            return;
        }
        // SAFETY: the memory is the engine's own, from its start. If it is moved, the old place is free already, so
        // that the old box is forgotten without being dropped.
        unsafe {
            if let Some(moved) = self.moved(bytes.as_mut_ptr()) {
                let after = Box::from_raw(core::ptr::slice_from_raw_parts_mut(moved, len));
                core::mem::forget(core::mem::replace(bytes, after));
            }
        }
    }

    /// Lets the engine move the elements of a vector to a better place.
    pub(crate) fn vector<T>(&mut self, vector: &mut Vec<T>) {
        const { assert!(has_ordinary_alignment::<T>() && size_of::<T>() > 0) };
        let (len, capacity) = (vector.len(), vector.capacity());
        if capacity == 0 {
            return;
        }
        // SAFETY: as above. The new place is as large as the old one, so the capacity is the same.
        unsafe {
            if let Some(moved) = self.moved(vector.as_mut_ptr().cast()) {
                let after = Vec::from_raw_parts(moved.cast(), len, capacity);
                core::mem::forget(core::mem::replace(vector, after));
            }
        }
    }

    /// The result of `copy`, in better places if the engine has any.
    pub(crate) fn copied<R>(&mut self, copy: impl FnOnce() -> R) -> R {
        placing(self.handle, copy)
    }

    /// The new address of this memory, or `None` if it stays. The old memory is freed then.
    ///
    /// # Safety
    ///
    /// `memory` must be where an allocation of the engine begins.
    unsafe fn moved(&mut self, memory: *mut u8) -> Option<*mut u8> {
        // SAFETY: the caller promises it.
        unsafe {
            let before = (api().malloc_size)(memory.cast()) as isize;
            let moved = (api().defrag_alloc)(self.handle, memory.cast()).cast::<u8>();
            if moved.is_null() {
                return None;
            }
            count((api().malloc_size)(moved.cast()) as isize - before);
            Some(moved)
        }
    }
}
