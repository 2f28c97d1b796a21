//! Zeroed bytes that may be refused, and what a value takes of memory. An island of `unsafe`: a zeroed
//! allocation that may fail has no safe name.

mod groups;

use core::alloc::Layout;
use core::cell::Cell;

/// `len` zero bytes, untouched pages where they are many, or `None` if there is no memory for them.
#[allow(unsafe_code, reason = "a zeroed allocation that may fail has no safe name")]
pub(crate) fn zeroed(len: usize) -> Option<Box<[u8]>> {
    if len == 0 {
        return Some(Box::new([]));
    }
    let layout = Layout::array::<u8>(len).ok()?;
    if len as u64 > MODEST && !fits(len as u64) {
        return None;
    }
    // SAFETY: the layout is not of size zero.
    let memory = may_fail(|| unsafe { std::alloc::alloc_zeroed(layout) });
    if memory.is_null() {
        return None;
    }
    // SAFETY: the memory comes from the global allocator with the layout of `[u8; len]`, nobody else
    // has it, and every byte of it is initialised.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(memory, len)) })
}

/// Requests of up to so many bytes are granted without a look at how much memory there is.
pub(crate) const MODEST: u64 = 4 << 20;

/// Whether the machine has so many bytes to give.
fn fits(bytes: u64) -> bool {
    fits_beside(bytes, 0)
}

/// Whether the allocator would give this number of bytes, in one piece or in many: it knows what else was promised. They are taken
/// and given back at once, and no page of them is touched.
pub(crate) fn can_take(bytes: u64) -> bool {
    bytes <= MODEST || usize::try_from(bytes).is_ok_and(|len| zeroed(len).is_some())
}

thread_local! {
    /// Whether the caller that asks for memory handles a refusal: see [`may_fail`].
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Does what `make` does with memory that may be refused. Only there the allocator compares a request with what is left:
/// where Rust takes a refusal for the end of the process, as for the list of a command's items, it would be a way to
/// end the server.
pub(crate) fn may_fail<R>(make: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            let _ = MAY_FAIL.try_with(|may_fail| may_fail.set(self.0));
        }
    }
    let _before = Before(MAY_FAIL.try_with(|may_fail| may_fail.replace(true)).unwrap_or(false));
    make()
}

/// Whether the request that is being made may be refused. Not those of a panic, which does not handle that.
pub(crate) fn may_refuse() -> bool {
    MAY_FAIL.try_with(Cell::get).unwrap_or(false) && !std::thread::panicking()
}

/// Whether the machine has so many bytes to give beside others that are promised already: memory that is available by the
/// kernel's own account, what is left to the control groups of this process, and address space. A kernel that promises
/// more than it has would end the server when it is used.
pub(crate) fn fits_beside(bytes: u64, promised: u64) -> bool {
    let needed = bytes.saturating_add(promised);
    let left = [available(), groups::left()].into_iter().flatten();
    left.into_iter().all(|left| needed <= left) && has_address_space(bytes)
}

/// What a file of `/proc` or of a control group begins with, read without allocating, since allocators ask.
fn read<'a>(path: &str, text: &'a mut [u8]) -> Option<&'a str> {
    let mut file = std::fs::File::open(path).ok()?;
    let len = std::io::Read::read(&mut file, text).ok()?;
    core::str::from_utf8(&text[..len]).ok()
}

/// What `/proc/meminfo` calls available.
fn available() -> Option<u64> {
    let mut text = [0; 512];
    let text = read("/proc/meminfo", &mut text)?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The bytes of this process that have a page.
#[cfg(unix)]
#[allow(unsafe_code, reason = "the size of a page has no safe name")]
pub(crate) fn resident() -> Option<u64> {
    let mut text = [0; 128];
    let pages: u64 = read("/proc/self/statm", &mut text)?.split(' ').nth(1)?.parse().ok()?;
    // SAFETY: takes a number and gives one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}

#[cfg(not(unix))]
pub(crate) fn resident() -> Option<u64> {
    None
}

/// Maps so many bytes and gives them back at once: limits of the process, which `/proc/meminfo` does not know.
#[cfg(unix)]
#[allow(unsafe_code, reason = "a mapping has no safe name")]
fn has_address_space(bytes: u64) -> bool {
    let Ok(len) = usize::try_from(bytes) else { return false };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping touches no memory that anybody has.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), len, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: this is the mapping that was just made, and nobody else knows of it.
    unsafe { libc::munmap(address, len) };
    true
}

#[cfg(not(unix))]
fn has_address_space(_: u64) -> bool {
    true
}

/// The same bytes once more, or `None` if there is no memory for them.
pub(crate) fn copied(bytes: &[u8]) -> Option<Box<[u8]>> {
    let mut copy = zeroed(bytes.len())?;
    copy.copy_from_slice(bytes);
    Some(copy)
}

thread_local! {
    /// What this thread has taken from the allocator and not given back, in bytes as the engine counts
    /// them. May be negative: a thread may free what another one took.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// Counts what was taken from the allocator, or given back if it is negative.
pub(crate) fn count(bytes: isize) {
    // A thread that is ending has no counter, and nobody who would ask for it.
    let _ = IN_USE.try_with(|in_use| in_use.set(in_use.get().wrapping_add(bytes)));
}

fn in_use() -> isize {
    IN_USE.try_with(Cell::get).unwrap_or(0)
}

/// A value, and what it takes of memory: all that was taken from the allocator while it was made and
/// changed, less what was given back.
#[derive(Debug)]
pub struct Kept<T> {
    value: T,
    footprint: isize,
}

impl<T> Kept<T> {
    /// The value that `make` makes.
    ///
    /// # Errors
    ///
    /// What `make` says.
    pub fn try_make<E>(make: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let before = in_use();
        let value = may_fail(make)?;
        Ok(Self { value, footprint: in_use().wrapping_sub(before) })
    }

    /// Lets `change` change the value. What it takes of memory and does not give back belongs to the
    /// value afterwards.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let before = in_use();
        let result = may_fail(|| change(&mut self.value));
        self.footprint = self.footprint.wrapping_add(in_use().wrapping_sub(before));
        result
    }

    /// The value.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// What is behind it, in bytes, without the value itself. 0 where nobody counts: outside of an engine.
    pub const fn footprint(&self) -> usize {
        if self.footprint < 0 { 0 } else { self.footprint as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_bytes_are_zero_and_impossible_ones_are_refused() {
        for len in [0, 1, 100, 1 << 20] {
            assert_eq!(zeroed(len).unwrap()[..], vec![0; len]);
        }
        assert!(zeroed(isize::MAX as usize).is_none());
        assert!(zeroed(usize::MAX).is_none());
        assert_eq!(copied(b"abc").unwrap()[..], *b"abc");
    }

    #[test]
    fn nothing_is_refused_to_a_panic() {
        struct Asks;
        impl Drop for Asks {
            fn drop(&mut self) {
                assert!(MAY_FAIL.get() && !may_refuse());
            }
        }
        let panics = || {
            may_fail(|| {
                let _asks = Asks;
                assert!(!may_refuse(), "it may be refused");
            });
        };
        let text = *std::panic::catch_unwind(panics).unwrap_err().downcast::<&str>().unwrap();
        assert_eq!((text, may_refuse()), ("it may be refused", false));
    }

    #[test]
    fn a_kept_value_has_what_was_counted_while_it_was_made_and_changed() {
        let made: Result<_, ()> = Kept::try_make(|| {
            count(100);
            Ok(7)
        });
        let mut kept = made.unwrap();
        count(1_000);
        kept.change(|value| {
            *value += 1;
            count(-30);
        });
        assert_eq!((*kept.value(), kept.footprint()), (8, 70));
    }
}
