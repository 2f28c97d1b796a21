//! An open key, and the value in it.

use super::api::{KeyHandle, api};
use super::context::{Argument, Context};
use super::datatype::Stored;
use crate::memory::Kept;
use core::ffi::c_int;
use core::marker::PhantomData;

const READ: c_int = 1;
const WRITE: c_int = 2;
const TYPE_EMPTY: c_int = 0;

/// A key that is open for reading or for writing, until it is dropped.
#[derive(Debug)]
pub(crate) struct Key<'a> {
    handle: *mut KeyHandle,
    context: PhantomData<&'a Context>,
}

impl Context {
    /// Opens a key for reading.
    #[inline]
    pub(crate) fn read(&self, name: Argument<'_>) -> Key<'_> {
        self.open(name, READ)
    }

    /// Opens a key for writing.
    #[inline]
    pub(crate) fn write(&self, name: Argument<'_>) -> Key<'_> {
        self.open(name, READ | WRITE)
    }

    fn open(&self, name: Argument<'_>, mode: c_int) -> Key<'_> {
        // SAFETY: context and argument are alive.
        let handle = unsafe { (api().open_key)(self.ctx, name.string, mode) };
        Key { handle, context: PhantomData }
    }
}

impl Key<'_> {
    /// Whether the key is empty.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: the key is open, or null, which is how an engine says that there is none.
        self.handle.is_null() || unsafe { (api().key_type)(self.handle) } == TYPE_EMPTY
    }

    /// The value, if it is one of this type.
    #[inline]
    fn pointer<T: Stored>(&self) -> Option<*mut Kept<T>> {
        if self.handle.is_null() {
            return None;
        }
        // SAFETY: the key is open. Of a key without a value of a module the engine says null.
        unsafe {
            let handle = (api().module_type_get_type)(self.handle);
            (!handle.is_null() && handle == T::slot().get())
                .then(|| (api().module_type_get_value)(self.handle).cast())
        }
    }

    /// The value, if it is one of this type.
    #[inline]
    pub(crate) fn value<T: Stored>(&self) -> Option<&Kept<T>> {
        // SAFETY: values of this type are boxes of `Kept<T>`, made by `set` or by loading; the engine keeps them
        // while the key is open, and commands run one at a time.
        self.pointer::<T>().map(|value| unsafe { &*value })
    }

    /// The value for changes, if it is one of this type. The key must be open for writing.
    #[inline]
    pub(crate) fn value_mut<T: Stored>(&mut self) -> Option<&mut Kept<T>> {
        // SAFETY: as in `value`. No command opens one key twice while it has the value of it.
        self.pointer::<T>().map(|value| unsafe { &mut *value })
    }

    /// Stores a value here, and replaces an existing one.
    pub(crate) fn set<T: Stored>(&mut self, value: Kept<T>) {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the key is open for writing, and the type is that of the value, which the engine owns from here on.
        unsafe { (api().module_type_set_value)(self.handle, T::slot().get(), value.cast()) };
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the key is open, and not used any more.
            unsafe { (api().close_key)(self.handle) };
        }
    }
}
