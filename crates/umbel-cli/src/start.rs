//! What the process was started with and the runtime of Rust hides: which standard streams were open, and which signals are ignored.
//!
//! This is the only module of the command with `unsafe` code.

#![allow(
    unsafe_code,
    reason = "three calls of the system that have no safe wrapper, and a function that runs before main"
)]

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether descriptors 0 and 1 were closed when the process began.
static STDIN_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard input was closed when the process began, as `<&-` closes it. It would read as an empty input.
pub(crate) fn stdin_was_closed() -> bool {
    STDIN_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Whether standard output was closed when the process began, as `>&-` closes it.
///
/// Before `main`, the runtime of Rust opens the null device in place of a standard stream that is closed. What is printed is lost then,
/// and every write succeeds. The device alone does not tell: other programs (Python's `subprocess.DEVNULL`, Node's `'ignore'`)
/// start commands with the null device on purpose, opened in the same way.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Looks at descriptors 0 and 1 before the runtime of Rust does.
#[cfg(unix)]
extern "C" fn look() {
    for (descriptor, was_closed) in [(0, &STDIN_WAS_CLOSED), (1, &STDOUT_WAS_CLOSED)] {
        // SAFETY: F_GETFD takes no third argument and changes nothing; a descriptor that is not open gives an error.
        let closed = unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1;
        was_closed.store(closed, Ordering::Relaxed);
    }
}

/// Lets a write past the limit of a file's size (`ulimit -f`) fail with an error. The signal would end the process, and leave a half-written file.
#[cfg(unix)]
pub(crate) fn ignore_file_size_signal() {
    // SAFETY: the disposition of this signal is changed to one that runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

// SAFETY: the loader calls every function in this section once, before `main` and on one thread. `look` takes no arguments, needs
// nothing of the runtime of Rust, and cannot panic.
#[cfg(unix)]
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;

/// Whether the process ignores a signal, as one that `nohup` started ignores SIGHUP. Such a signal stays ignored.
#[cfg(unix)]
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action nothing is changed; the old one is written to memory that is large enough for it.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: all zeros are a valid `sigaction`, also where the call has failed.
    known && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
