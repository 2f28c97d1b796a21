//! Panics: none unwinds into the engine, and each writes one line to the engine's log.
//!
//! The standard library would print a backtrace if `RUST_BACKTRACE` is set, which allocates megabytes. If the
//! panic came from a refused request for memory, that allocation would fail too and end the process.

use super::api::api;
use core::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

/// The result of `call`, or `otherwise` if it panics: a panic must not unwind into the engine.
pub(super) fn without_panic<R>(otherwise: R, call: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// From here on panics are written to the engine's log. The module has a separate copy of the standard library,
/// so no other module is affected.
/// concerned.
pub(super) fn log_panics() {
    set_hook(Box::new(|info| log(&Line::of(info))));
}

/// Panics if a test requested a panic at this point.
#[cfg(debug_assertions)]
#[track_caller]
pub(super) fn panic_if_wanted(place: &str) {
    let wanted = std::env::var_os("UMBEL_TEST_PANIC").is_some_and(|wanted| wanted == place);
    assert!(!wanted, "a test wants this panic");
}

fn log(line: &Line) {
    // SAFETY: engines take a log line without a context; the format takes one text that ends with a zero.
    unsafe {
        (api().log)(core::ptr::null_mut(), c"warning".as_ptr(), c"%s".as_ptr(), line.text.as_ptr())
    };
}

/// A line on the stack. Longer text is truncated.
struct Line {
    /// The text ends with a zero: the last byte is never written.
    text: [u8; 512],
    len: usize,
}

impl Line {
    fn of(info: &PanicHookInfo<'_>) -> Self {
        let mut line = Self { text: [0; 512], len: 0 };
        // A truncated line is acceptable.
        let _ = line.describe(info);
        line
    }

    fn describe(&mut self, info: &PanicHookInfo<'_>) -> fmt::Result {
        let text = info.payload().downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied());
        self.write_str("a bug of the module, please report it: ")?;
        self.write_str(text.unwrap_or("a panic"))?;
        match info.location() {
            Some(place) => write!(self, ", at {place}"),
            None => Ok(()),
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.len() - 1 - self.len;
        for (place, byte) in self.text[self.len..].iter_mut().zip(text.bytes().take(room)) {
            *place = if byte.is_ascii_control() { b' ' } else { byte };
            self.len += 1;
        }
        if text.len() <= room { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_off_and_stay_one_line() {
        let mut line = Line { text: [0; 512], len: 0 };
        write!(line, "one\ntwo\0{}", "x".repeat(400)).unwrap();
        assert_eq!(&line.text[..9], b"one two x");
        assert!(write!(line, "{}", "y".repeat(400)).is_err());
        assert_eq!((line.text[510], line.text[511]), (b'y', 0));
    }
}
