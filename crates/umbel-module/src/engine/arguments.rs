//! Arguments of commands, as `COMMAND DOCS` describes them.

use core::ffi::{CStr, c_char, c_int};

/// One argument of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described {
    name: &'static CStr,
    kind: Kind,
    token: Option<&'static CStr>,
    flags: c_int,
}

/// The type of an argument, by the engine's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text = 0,
    Integer = 1,
    Double = 2,
    Key = 3,
    Token = 6,
}

const OPTIONAL: c_int = 1;
const MULTIPLE: c_int = 1 << 1;

impl Described {
    pub(crate) const KEY: Self = Self::new(c"key", Kind::Key);

    pub(crate) const fn new(name: &'static CStr, kind: Kind) -> Self {
        Self { name, kind, token: None, flags: 0 }
    }

    /// One or more of them.
    pub(crate) const fn many(self) -> Self {
        Self { flags: self.flags | MULTIPLE, ..self }
    }

    /// It is optional.
    pub(crate) const fn optional(self) -> Self {
        Self { flags: self.flags | OPTIONAL, ..self }
    }

    /// It comes after this word, or is this word.
    pub(crate) const fn after(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }
    }
}

/// The engine's structure of an argument. Redis 7.0 lacks the last field, and uses the size that it is given.
#[repr(C)]
pub(super) struct RawArgument {
    name: *const c_char,
    kind: c_int,
    key_spec: c_int,
    token: *const c_char,
    summary: *const c_char,
    since: *const c_char,
    flags: c_int,
    deprecated_since: *const c_char,
    parts: *const RawArgument,
    display_text: *const c_char,
}

impl RawArgument {
    /// The end of a list has no name.
    const END: Self = Self {
        name: core::ptr::null(),
        kind: 0,
        key_spec: -1,
        token: core::ptr::null(),
        summary: core::ptr::null(),
        since: core::ptr::null(),
        flags: 0,
        deprecated_since: core::ptr::null(),
        parts: core::ptr::null(),
        display_text: core::ptr::null(),
    };
}

/// The list for the engine, which copies it.
pub(super) fn raw(arguments: &[Described]) -> Vec<RawArgument> {
    let mut keys = 0..;
    let raw = |argument: &Described| RawArgument {
        name: argument.name.as_ptr(),
        kind: argument.kind as c_int,
        // The first key gets the first specification, and so on.
        key_spec: if argument.kind == Kind::Key { keys.next().unwrap_or(-1) } else { -1 },
        token: argument.token.map_or(core::ptr::null(), CStr::as_ptr),
        flags: argument.flags,
        ..RawArgument::END
    };
    let mut list: Vec<_> = arguments.iter().map(raw).collect();
    list.push(RawArgument::END);
    list
}
