//! A call of a command: its arguments, its reply, and its replication.

use super::api::{Api, Ctx, Str, api};
use core::ffi::{CStr, c_char, c_int};
use core::marker::PhantomData;

/// The reply of a command that was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The number of arguments is wrong.
    Arity,
    /// This text. Clients parse its first word.
    Text(&'static CStr),
}

/// The result of a command: a reply that was sent, or an error to send.
pub(crate) type Outcome = Result<(), Fault>;

/// One argument of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument<'a> {
    pub(super) string: *mut Str,
    lives: PhantomData<&'a Str>,
}

impl<'a> Argument<'a> {
    /// Its bytes.
    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the engine keeps the arguments of a command while it runs, and gives address and length of one.
        unsafe {
            let bytes = (api().string_ptr_len)(self.string, &raw mut len);
            core::slice::from_raw_parts(bytes.cast(), len)
        }
    }
}

/// The arguments of a command, without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    strings: &'a [*mut Str],
}

impl<'a> Arguments<'a> {
    /// # Safety
    ///
    /// These must be the arguments that the engine passed to a command that runs.
    pub(super) unsafe fn new(argv: *mut *mut Str, argc: c_int) -> Self {
        let strings = match usize::try_from(argc) {
            Ok(count) if count > 0 => {
                // SAFETY: the caller promises it.
                unsafe { core::slice::from_raw_parts(argv, count) }
            }
            _ => &[],
        };
        Self { strings }
    }

    /// The arguments without the first one.
    pub(super) fn rest(self) -> Self {
        Self { strings: self.strings.get(1..).unwrap_or(&[]) }
    }

    pub(crate) fn len(self) -> usize {
        self.strings.len()
    }

    pub(crate) fn get(self, at: usize) -> Option<Argument<'a>> {
        self.strings.get(at).map(|string| Argument { string: *string, lives: PhantomData })
    }

    /// The argument at `at`, or an arity error.
    pub(crate) fn need(self, at: usize) -> Result<Argument<'a>, Fault> {
        self.get(at).ok_or(Fault::Arity)
    }

    /// The arguments from `at` on.
    pub(crate) fn from(self, at: usize) -> Self {
        Self { strings: self.strings.get(at..).unwrap_or(&[]) }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Argument<'a>> {
        self.strings.iter().map(|string| Argument { string: *string, lives: PhantomData })
    }
}

/// A call from the engine.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) ctx: *mut Ctx,
    api: &'static Api,
}

/// The engine's context flags.
const SCRIPT: c_int = 1 << 0;
const REPLICATED: c_int = 1 << 12;
const LOADING: c_int = 1 << 13;

/// The class of keyspace events for `g`.
const NOTIFY_GENERIC: c_int = 1 << 2;

impl core::fmt::Debug for Api {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Api")
    }
}

/// Replies.
impl Context {
    /// # Safety
    ///
    /// `ctx` must be a context of the engine, and live as long as this value.
    pub(super) unsafe fn new(ctx: *mut Ctx) -> Self {
        Self { ctx, api: api() }
    }

    #[inline]
    pub(crate) fn reply_integer(&self, value: i64) {
        // SAFETY: the context is alive, here and below.
        unsafe { (self.api.reply_with_long_long)(self.ctx, value) };
    }

    /// Counts that are too large for a client become the largest valid one.
    pub(crate) fn reply_count(&self, value: u64) {
        self.reply_integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A boolean if the client and the engine support it, otherwise 1 or 0.
    #[inline]
    pub(crate) fn reply_bool(&self, value: bool) {
        match self.api.reply_with_bool {
            // SAFETY: see above.
            Some(reply) => unsafe { reply(self.ctx, c_int::from(value)) },
            None => {
                self.reply_integer(i64::from(value));
                0
            }
        };
    }

    /// An array of booleans.
    pub(crate) fn reply_bools(&self, values: &[bool]) {
        self.reply_array(values.len());
        values.iter().for_each(|value| self.reply_bool(*value));
    }

    pub(crate) fn reply_error(&self, text: &CStr) {
        // SAFETY: see above; the text ends with a zero.
        unsafe { (self.api.reply_with_error)(self.ctx, text.as_ptr()) };
    }

    pub(crate) fn reply_ok(&self) {
        // SAFETY: see above; the text ends with a zero.
        unsafe { (self.api.reply_with_simple_string)(self.ctx, c"OK".as_ptr()) };
    }

    pub(crate) fn reply_text(&self, text: &CStr) {
        // SAFETY: see above; the text ends with a zero.
        unsafe { (self.api.reply_with_simple_string)(self.ctx, text.as_ptr()) };
    }

    pub(crate) fn reply_array(&self, len: usize) {
        // SAFETY: see above. No command has more than 2^31 arguments, nor a reply more elements.
        unsafe { (self.api.reply_with_array)(self.ctx, len as _) };
    }

    /// Begins a map if the client and the engine support it, otherwise an array of twice the number of
    /// elements.
    pub(crate) fn reply_map(&self, pairs: usize) {
        match self.api.reply_with_map {
            // SAFETY: see above.
            Some(reply) => unsafe { reply(self.ctx, pairs as _) },
            None => {
                self.reply_array(pairs * 2);
                0
            }
        };
    }

    /// Whether the engine and the client support maps.
    pub(crate) fn speaks_maps(&self) -> bool {
        const RESP3: c_int = 1 << 22;
        // SAFETY: see above.
        self.api.reply_with_map.is_some()
            && unsafe { (self.api.get_context_flags)(self.ctx) } & RESP3 != 0
    }

    pub(crate) fn reply_bytes(&self, bytes: &[u8]) {
        // SAFETY: see above; the engine copies the bytes.
        unsafe {
            (self.api.reply_with_string_buffer)(self.ctx, bytes.as_ptr().cast(), bytes.len())
        };
    }

    pub(crate) fn reply_double(&self, value: f64) {
        // SAFETY: see above.
        unsafe { (self.api.reply_with_double)(self.ctx, value) };
    }

    pub(crate) fn reply_null(&self) {
        // SAFETY: see above.
        unsafe { (self.api.reply_with_null)(self.ctx) };
    }

    /// Sends an error that was not sent yet.
    pub(crate) fn fault(&self, fault: Fault) {
        match fault {
            // SAFETY: see above.
            Fault::Arity => _ = unsafe { (self.api.wrong_arity)(self.ctx) },
            Fault::Text(text) => self.reply_error(text),
        }
    }
}

/// Effects beyond the client.
impl Context {
    /// Replicates the command unchanged, and writes it to the AOF.
    #[inline]
    pub(crate) fn replicate(&self) {
        // SAFETY: see above.
        unsafe { (self.api.replicate_verbatim)(self.ctx) };
    }

    /// Replicates a command with these arguments in place of the received one.
    pub(crate) fn replicate_as(&self, command: &CStr, key: Argument<'_>, rest: &[&[u8]]) {
        let make = |bytes: &[u8]| {
            // SAFETY: the engine copies the bytes.
            unsafe {
                (self.api.create_string)(core::ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())
            }
        };
        let mut strings: Vec<*mut Str> = rest.iter().map(|bytes| make(bytes)).collect();
        let (vector, len): (*mut *mut Str, usize) = (strings.as_mut_ptr(), strings.len());
        // SAFETY: the format names a string and a vector of strings with its length, and these are that; the
        // engine takes references of its own.
        unsafe {
            (self.api.replicate)(
                self.ctx,
                command.as_ptr(),
                c"sv".as_ptr(),
                key.string,
                vector,
                len,
            );
        }
        for string in strings {
            // SAFETY: made above, and not used any more.
            unsafe { (self.api.free_string)(core::ptr::null_mut(), string) };
        }
    }

    /// Announces the event to keyspace listeners, to transactions that watch the key, and to clients that cache
    /// it. Every write that changes a key ends with this. Refused writes do not.
    #[inline]
    pub(crate) fn notify(&self, event: &CStr, key: Argument<'_>) {
        // SAFETY: see above; the event ends with a zero.
        unsafe {
            (self.api.signal_modified_key)(self.ctx, key.string);
            (self.api.notify_keyspace_event)(self.ctx, NOTIFY_GENERIC, event.as_ptr(), key.string)
        };
    }

    /// Whether the command comes from a primary or from the AOF. A server has already accepted and performed
    /// it, so the limits for clients of this server do not apply: refusing it would lose data.
    pub(crate) fn trusts_the_sender(&self) -> bool {
        // SAFETY: see above.
        let flags = unsafe { (self.api.get_context_flags)(self.ctx) };
        flags & (REPLICATED | LOADING) != 0
    }

    /// Whether replicas and an AOF may get the script that this command is called in, and not what the command passes on:
    /// engines before Redis 7.0, with `lua-replicate-commands no`. A command must not do then what each run would do differently.
    pub(crate) fn may_be_run_again(&self) -> bool {
        const REDIS_7: c_int = 0x0007_0000;
        // SAFETY: see above; the version is a number.
        let (flags, version) =
            unsafe { ((self.api.get_context_flags)(self.ctx), (self.api.get_server_version)()) };
        flags & SCRIPT != 0 && !self.api.is_valkey && version < REDIS_7
    }

    /// Whether a rate above a quarter is kept as it was sent. RedisBloom up to 2.8 keeps it, and 8.0 and later
    /// reduce it to a quarter. A stream can only come from the latter if the engine is also a Redis 8: older
    /// engines and Valkey cannot read its RDB files. A primary with this module sends the rate that it used.
    pub(crate) fn keeps_loose_rates(&self) -> bool {
        const REDIS_8: c_int = 0x0008_0000;
        // SAFETY: the function takes nothing and returns a number.
        let version = unsafe { (self.api.get_server_version)() };
        self.trusts_the_sender() && (self.api.is_valkey || version < REDIS_8)
    }

    /// Whether the command comes from the AOF.
    pub(super) fn replays_an_aof(&self) -> bool {
        // SAFETY: see above.
        unsafe { (self.api.get_context_flags)(self.ctx) & LOADING != 0 }
    }

    /// Whether a filter of this number of bytes, already allocated, exceeds `maxmemory`. A command that a
    /// primary or the AOF has accepted is never too large.
    pub(crate) fn too_large(&self, bytes: u64) -> bool {
        self.exceeds(bytes, 0)
    }

    /// As [`too_large`](Self::too_large), before the filter is allocated.
    pub(crate) fn has_no_room_for(&self, bytes: u64) -> bool {
        self.exceeds(bytes, bytes)
    }

    /// Whether a filter of `bytes` bytes is too large, of which `still` are not allocated yet.
    fn exceeds(&self, bytes: u64, still: u64) -> bool {
        const WORTH_ASKING: u64 = 1 << 20;
        if bytes < WORTH_ASKING || self.trusts_the_sender() {
            return false;
        }
        // SAFETY: see above. 0 if there is no limit.
        let ratio = f64::from(unsafe { (self.api.get_used_memory_ratio)() });
        if ratio == 0.0 {
            return false;
        }
        let mut error = 0;
        // SAFETY: names end with a zero, the text of a field lives as long as what it is in, and what the engine made it
        // takes back.
        let (limit, keeps) = unsafe {
            let data = (self.api.get_server_info)(self.ctx, c"memory".as_ptr());
            let field: *const c_char = c"maxmemory".as_ptr();
            let limit = (self.api.server_info_get_field_unsigned)(data, field, &raw mut error);
            let policy = (self.api.server_info_get_field_c)(data, c"maxmemory_policy".as_ptr());
            let keeps = !policy.is_null() && CStr::from_ptr(policy) == c"noeviction";
            (self.api.free_server_info)(self.ctx, data);
            (limit, keeps)
        };
        if error != 0 || limit == 0 {
            return false;
        }
        // An engine that evicts keys makes room for any filter below the limit.
        bytes > limit || keeps && ratio * limit as f64 + still as f64 > limit as f64
    }

    /// A line in the engine's log.
    pub(crate) fn warn(&self, text: &CStr) {
        // SAFETY: the format takes one text that ends with a zero.
        unsafe { (self.api.log)(self.ctx, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
    }
}
