//! Zeroed memory whose allocation may fail, and the memory of a value. An island of `unsafe`: a zeroed
//! allocation that may fail has no safe name.

mod groups;

use core::alloc::Layout;
use core::cell::Cell;

/// `len` zero bytes, or `None` if there is not enough memory. A large allocation consists of untouched pages.
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
    // SAFETY: the memory comes from the global allocator with the layout of `[u8; len]`, there is no other
    // reference to it, and every byte of it is initialised.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(memory, len)) })
}

/// Requests of up to this number of bytes are granted without checking the available memory.
pub(crate) const MODEST: u64 = 4 << 20;

/// Whether the machine has this number of bytes available.
fn fits(bytes: u64) -> bool {
    fits_beside(bytes, 0)
}

/// Whether the allocator can provide this number of bytes, in one piece or in many: it takes other reservations
/// into account. The bytes are allocated and freed at once, and none of their pages is touched.
pub(crate) fn can_take(bytes: u64) -> bool {
    bytes <= MODEST || usize::try_from(bytes).is_ok_and(|len| zeroed(len).is_some())
}

thread_local! {
    /// Whether the code that allocates handles a refusal: see [`may_fail`].
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `make`, with allocations that may be refused. Only there does the allocator compare a request with the
/// available memory. Elsewhere Rust ends the process on a refusal, as for the list of a command's items, so a
/// client could end the server.
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

/// Whether the current request may be refused. A panic does not handle refusals, so its requests may not.
pub(crate) fn may_refuse() -> bool {
    MAY_FAIL.try_with(Cell::get).unwrap_or(false) && !std::thread::panicking()
}

/// Whether the machine has this number of bytes available beside `promised` reserved bytes. It compares with
/// the memory that the kernel reports as available, with the limits of this process's control groups, and with
/// the address space. A kernel that overcommits memory would end the server when the memory is used.
pub(crate) fn fits_beside(bytes: u64, promised: u64) -> bool {
    let needed = bytes.saturating_add(promised);
    let left = [available(), groups::left()].into_iter().flatten();
    left.into_iter().all(|left| needed <= left) && has_address_space(bytes)
}

/// The beginning of a file of `/proc` or of a control group, read without allocating, because allocators call
/// this.
fn read<'a>(path: &str, text: &'a mut [u8]) -> Option<&'a str> {
    let mut file = std::fs::File::open(path).ok()?;
    let len = std::io::Read::read(&mut file, text).ok()?;
    core::str::from_utf8(&text[..len]).ok()
}

/// The available memory in `/proc/meminfo`.
fn available() -> Option<u64> {
    let mut text = [0; 512];
    let text = read("/proc/meminfo", &mut text)?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The resident bytes of this process.
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

/// Maps this number of bytes and unmaps them at once, to detect limits of the process that `/proc/meminfo` does
/// not show.
#[cfg(unix)]
#[allow(unsafe_code, reason = "a mapping has no safe name")]
fn has_address_space(bytes: u64) -> bool {
    let Ok(len) = usize::try_from(bytes) else { return false };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping touches no existing memory.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), len, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: this is the mapping that was just made, and there is no other reference to it.
    unsafe { libc::munmap(address, len) };
    true
}

#[cfg(not(unix))]
fn has_address_space(_: u64) -> bool {
    true
}

/// A copy of the bytes, or `None` if there is not enough memory.
pub(crate) fn copied(bytes: &[u8]) -> Option<Box<[u8]>> {
    let mut copy = zeroed(bytes.len())?;
    copy.copy_from_slice(bytes);
    Some(copy)
}

thread_local! {
    /// The memory that this thread has allocated and not freed, in bytes as the engine counts them. It may be
    /// negative: a thread may free the memory of another one.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// Counts allocated bytes, or freed bytes if it is negative.
pub(crate) fn count(bytes: isize) {
    // A thread that is ending has no counter, and its value is never read.
    let _ = IN_USE.try_with(|in_use| in_use.set(in_use.get().wrapping_add(bytes)));
}

fn in_use() -> isize {
    IN_USE.try_with(Cell::get).unwrap_or(0)
}

/// A value with its memory: everything that was allocated while it was created and changed, minus what was
/// freed.
#[derive(Debug)]
pub struct Kept<T> {
    value: T,
    footprint: isize,
}

impl<T> Kept<T> {
    /// Creates the value with `make`.
    ///
    /// # Errors
    ///
    /// The error of `make`.
    pub fn try_make<E>(make: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let before = in_use();
        let value = may_fail(make)?;
        Ok(Self { value, footprint: in_use().wrapping_sub(before) })
    }

    /// Changes the value with `change`. Memory that `change` allocates and does not free is counted for the
    /// value.
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

    /// The memory behind the value in bytes, without the value itself. 0 outside of an engine, where no memory
    /// is counted.
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
