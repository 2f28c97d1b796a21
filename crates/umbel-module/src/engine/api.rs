//! The functions of the engine, fetched by name when the module is loaded.
//!
//! Redis and Valkey pass a module one function, which finds all others by name. Functions that every engine
//! from Redis 6.2 on has are required. Later ones are an `Option`, so that one library loads in all engines.
//! The names begin with `RedisModule_` in Valkey too.

use core::ffi::{
    c_char, c_double, c_float, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void,
};
use core::ptr::NonNull;
use std::sync::OnceLock;

/// Handles that only the engine can look into.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* #[repr(C)] #[derive(Debug)] pub(super) struct $name { _private: [u8; 0] })*
    };
}

opaque! {
    /// A call of the engine into the module.
    Ctx
    /// A string of the engine.
    Str
    /// An open key.
    KeyHandle
    /// An RDB or AOF file that is being read or written.
    Io
    /// A type of values.
    TypeHandle
    /// A digest that is being computed.
    DigestHandle
    /// A command.
    CommandHandle
    /// A run of active defragmentation over one value.
    DefragHandle
    /// A section of `INFO`.
    InfoData
}

/// A command, as the engine calls it.
pub(super) type CommandFn = unsafe extern "C" fn(*mut Ctx, *mut *mut Str, c_int) -> c_int;
pub(super) type GetString = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut Str;
pub(super) type SetString =
    unsafe extern "C" fn(*const c_char, *mut Str, *mut c_void, *mut *mut Str) -> c_int;
pub(super) type Apply = unsafe extern "C" fn(*mut Ctx, *mut c_void, *mut *mut Str) -> c_int;

pub(super) const OK: c_int = 0;
pub(super) const ERR: c_int = 1;

/// The methods of a type of values, version 3 of the engine's structure: what Redis 6.2 knows.
#[repr(C)]
pub(super) struct TypeMethods {
    pub(super) version: u64,
    pub(super) rdb_load: Option<unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void>,
    pub(super) rdb_save: Option<unsafe extern "C" fn(*mut Io, *mut c_void)>,
    pub(super) aof_rewrite: Option<unsafe extern "C" fn(*mut Io, *mut Str, *mut c_void)>,
    pub(super) mem_usage: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub(super) digest: Option<unsafe extern "C" fn(*mut DigestHandle, *mut c_void)>,
    pub(super) free: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) aux_load: Option<unsafe extern "C" fn(*mut Io, c_int, c_int) -> c_int>,
    pub(super) aux_save: Option<unsafe extern "C" fn(*mut Io, c_int)>,
    pub(super) aux_save_triggers: c_int,
    pub(super) free_effort: Option<unsafe extern "C" fn(*mut Str, *const c_void) -> usize>,
    pub(super) unlink: Option<unsafe extern "C" fn(*mut Str, *const c_void)>,
    pub(super) copy: Option<unsafe extern "C" fn(*mut Str, *mut Str, *const c_void) -> *mut c_void>,
    pub(super) defrag:
        Option<unsafe extern "C" fn(*mut DefragHandle, *mut Str, *mut *mut c_void) -> c_int>,
}

/// How the engine finds the keys of a command.
#[repr(C)]
pub(super) struct KeySpec {
    pub(super) notes: *const c_char,
    pub(super) flags: u64,
    pub(super) begin_search: c_int,
    pub(super) begin: Begin,
    pub(super) find_keys: c_int,
    pub(super) range: [c_int; 3],
}

/// Where keys begin: at an index, or after a word. This module uses no words.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union Begin {
    pub(super) index: c_int,
    pub(super) keyword: Keyword,
}

/// A word, and where the engine searches it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Keyword {
    pub(super) word: *const c_char,
    pub(super) from: c_int,
}

/// The version and the size of the structures below.
#[repr(C)]
pub(super) struct InfoVersion {
    pub(super) version: c_int,
    pub(super) history: usize,
    pub(super) key_spec: usize,
    pub(super) argument: usize,
}

/// The content of `COMMAND INFO` and `COMMAND DOCS`.
#[repr(C)]
pub(super) struct CommandInfo {
    pub(super) version: *const InfoVersion,
    pub(super) summary: *const c_char,
    pub(super) complexity: *const c_char,
    pub(super) since: *const c_char,
    pub(super) history: *const c_void,
    pub(super) tips: *const c_char,
    pub(super) arity: c_int,
    pub(super) key_specs: *const KeySpec,
    pub(super) arguments: *const super::arguments::RawArgument,
}

/// Finds a function by name; 0 if there is one.
type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// The table of functions: first the required ones, then the optional ones.
macro_rules! functions {
    (required { $($need:ident: $need_name:literal, $need_type:ty;)* }
     optional { $($may:ident: $may_name:literal, $may_type:ty;)* }) => {
        /// The functions of the engine that loaded the module.
        #[allow(missing_debug_implementations, reason = "a table of addresses")]
        pub(super) struct Api {
            $(pub(super) $need: $need_type,)*
            $(pub(super) $may: Option<$may_type>,)*
            /// Whether the engine is Valkey, which also exports all functions under its own prefix.
            pub(super) is_valkey: bool,
        }

        impl Api {
            /// Fetches every function; `None` if a required one is missing.
            ///
            /// # Safety
            ///
            /// `get` must be the engine's own function for it.
            unsafe fn fetch(get: GetApi) -> Option<Self> {
                Some(Self {
                    // SAFETY: the caller promises it, and the types are those of the engine's documentation.
                    $($need: unsafe {
                        let address = find(get, concat!("RedisModule_", $need_name, "\0"))?;
                        core::mem::transmute::<NonNull<c_void>, $need_type>(address)
                    },)*
                    // SAFETY: as above.
                    $($may: unsafe {
                        find(get, concat!("RedisModule_", $may_name, "\0"))
                            .map(|address| core::mem::transmute::<NonNull<c_void>, $may_type>(address))
                    },)*
                    // SAFETY: the caller promises it.
                    is_valkey: unsafe { find(get, "ValkeyModule_Alloc\0") }.is_some(),
                })
            }
        }
    };
}

/// The address of a function.
///
/// # Safety
///
/// `get` must be the engine's own function for it, and `name` must end with a zero.
unsafe fn find(get: GetApi, name: &str) -> Option<NonNull<c_void>> {
    let mut address = core::ptr::null_mut();
    // SAFETY: the caller promises it; the engine writes one pointer.
    let found = unsafe { get(name.as_ptr().cast(), &raw mut address) } == OK;
    NonNull::new(address).filter(|_| found)
}

functions! {
    required {
        alloc: "Alloc", unsafe extern "C" fn(usize) -> *mut c_void;
        calloc: "Calloc", unsafe extern "C" fn(usize, usize) -> *mut c_void;
        realloc: "Realloc", unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        free: "Free", unsafe extern "C" fn(*mut c_void);
        malloc_size: "MallocSize", unsafe extern "C" fn(*mut c_void) -> usize;
        set_module_attribs: "SetModuleAttribs", unsafe extern "C" fn(*mut Ctx, *const c_char, c_int, c_int);
        is_module_name_busy: "IsModuleNameBusy", unsafe extern "C" fn(*const c_char) -> c_int;
        set_module_options: "SetModuleOptions", unsafe extern "C" fn(*mut Ctx, c_int);
        log: "Log", unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...);
        create_command: "CreateCommand",
            unsafe extern "C" fn(*mut Ctx, *const c_char, CommandFn, *const c_char, c_int, c_int, c_int) -> c_int;
        create_data_type: "CreateDataType",
            unsafe extern "C" fn(*mut Ctx, *const c_char, c_int, *mut TypeMethods) -> *mut TypeHandle;
        wrong_arity: "WrongArity", unsafe extern "C" fn(*mut Ctx) -> c_int;
        string_ptr_len: "StringPtrLen", unsafe extern "C" fn(*const Str, *mut usize) -> *const c_char;
        create_string: "CreateString", unsafe extern "C" fn(*mut Ctx, *const c_char, usize) -> *mut Str;
        free_string: "FreeString", unsafe extern "C" fn(*mut Ctx, *mut Str);
        open_key: "OpenKey", unsafe extern "C" fn(*mut Ctx, *mut Str, c_int) -> *mut KeyHandle;
        close_key: "CloseKey", unsafe extern "C" fn(*mut KeyHandle);
        key_type: "KeyType", unsafe extern "C" fn(*mut KeyHandle) -> c_int;
        module_type_get_type: "ModuleTypeGetType", unsafe extern "C" fn(*mut KeyHandle) -> *mut TypeHandle;
        module_type_get_value: "ModuleTypeGetValue", unsafe extern "C" fn(*mut KeyHandle) -> *mut c_void;
        module_type_set_value: "ModuleTypeSetValue",
            unsafe extern "C" fn(*mut KeyHandle, *mut TypeHandle, *mut c_void) -> c_int;
        reply_with_long_long: "ReplyWithLongLong", unsafe extern "C" fn(*mut Ctx, c_longlong) -> c_int;
        reply_with_error: "ReplyWithError", unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
        reply_with_simple_string: "ReplyWithSimpleString", unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
        reply_with_array: "ReplyWithArray", unsafe extern "C" fn(*mut Ctx, c_long) -> c_int;
        reply_with_string_buffer: "ReplyWithStringBuffer",
            unsafe extern "C" fn(*mut Ctx, *const c_char, usize) -> c_int;
        reply_with_null: "ReplyWithNull", unsafe extern "C" fn(*mut Ctx) -> c_int;
        reply_with_double: "ReplyWithDouble", unsafe extern "C" fn(*mut Ctx, c_double) -> c_int;
        replicate_verbatim: "ReplicateVerbatim", unsafe extern "C" fn(*mut Ctx) -> c_int;
        replicate: "Replicate", unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...) -> c_int;
        notify_keyspace_event: "NotifyKeyspaceEvent",
            unsafe extern "C" fn(*mut Ctx, c_int, *const c_char, *mut Str) -> c_int;
        signal_modified_key: "SignalModifiedKey", unsafe extern "C" fn(*mut Ctx, *mut Str) -> c_int;
        get_context_flags: "GetContextFlags", unsafe extern "C" fn(*mut Ctx) -> c_int;
        get_server_info: "GetServerInfo", unsafe extern "C" fn(*mut Ctx, *const c_char) -> *mut InfoData;
        server_info_get_field_unsigned: "ServerInfoGetFieldUnsigned",
            unsafe extern "C" fn(*mut InfoData, *const c_char, *mut c_int) -> c_ulonglong;
        server_info_get_field_c: "ServerInfoGetFieldC",
            unsafe extern "C" fn(*mut InfoData, *const c_char) -> *const c_char;
        free_server_info: "FreeServerInfo", unsafe extern "C" fn(*mut Ctx, *mut InfoData);
        save_unsigned: "SaveUnsigned", unsafe extern "C" fn(*mut Io, u64);
        load_unsigned: "LoadUnsigned", unsafe extern "C" fn(*mut Io) -> u64;
        save_double: "SaveDouble", unsafe extern "C" fn(*mut Io, c_double);
        load_double: "LoadDouble", unsafe extern "C" fn(*mut Io) -> c_double;
        save_string_buffer: "SaveStringBuffer", unsafe extern "C" fn(*mut Io, *const c_char, usize);
        load_string_buffer: "LoadStringBuffer", unsafe extern "C" fn(*mut Io, *mut usize) -> *mut c_char;
        is_io_error: "IsIOError", unsafe extern "C" fn(*mut Io) -> c_int;
        emit_aof: "EmitAOF", unsafe extern "C" fn(*mut Io, *const c_char, *const c_char, ...);
        digest_add_string_buffer: "DigestAddStringBuffer",
            unsafe extern "C" fn(*mut DigestHandle, *const c_char, usize);
        digest_end_sequence: "DigestEndSequence", unsafe extern "C" fn(*mut DigestHandle);
        defrag_alloc: "DefragAlloc", unsafe extern "C" fn(*mut DefragHandle, *mut c_void) -> *mut c_void;
        get_server_version: "GetServerVersion", unsafe extern "C" fn() -> c_int;
        get_used_memory_ratio: "GetUsedMemoryRatio", unsafe extern "C" fn() -> c_float;
    }
    optional {
        try_alloc: "TryAlloc", unsafe extern "C" fn(usize) -> *mut c_void;
        try_calloc: "TryCalloc", unsafe extern "C" fn(usize, usize) -> *mut c_void;
        try_realloc: "TryRealloc", unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        reply_with_bool: "ReplyWithBool", unsafe extern "C" fn(*mut Ctx, c_int) -> c_int;
        reply_with_map: "ReplyWithMap", unsafe extern "C" fn(*mut Ctx, c_long) -> c_int;
        get_command: "GetCommand", unsafe extern "C" fn(*mut Ctx, *const c_char) -> *mut CommandHandle;
        set_command_info: "SetCommandInfo",
            unsafe extern "C" fn(*mut CommandHandle, *const CommandInfo) -> c_int;
        add_acl_category: "AddACLCategory", unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
        set_command_acl_categories: "SetCommandACLCategories",
            unsafe extern "C" fn(*mut CommandHandle, *const c_char) -> c_int;
        register_string_config: "RegisterStringConfig",
            unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, c_uint,
                GetString, SetString, Option<Apply>, *mut c_void) -> c_int;
        load_configs: "LoadConfigs", unsafe extern "C" fn(*mut Ctx) -> c_int;
    }
}

static API: OnceLock<Api> = OnceLock::new();

/// The functions of the engine, if one has loaded the module.
#[inline(always)]
pub(super) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The functions of the engine.
///
/// # Panics
///
/// If no engine has loaded the module. A value of this module's wrappers only exists after an engine has.
#[inline(always)]
pub(super) fn api() -> &'static Api {
    match loaded() {
        Some(api) => api,
        None => panic!("no engine has loaded this module"),
    }
}

/// Fetches all functions; `false` if a required one is missing.
///
/// # Safety
///
/// `ctx` must be what the engine passed to `RedisModule_OnLoad`.
pub(super) unsafe fn load(ctx: *mut Ctx) -> bool {
    // SAFETY: the first word of a context is the engine's function to find others: that is how modules are
    // bootstrapped, in every version.
    let get = unsafe { *ctx.cast::<Option<GetApi>>() };
    let Some(get) = get else { return false };
    // SAFETY: `get` comes from the engine.
    let Some(fetched) = (unsafe { Api::fetch(get) }) else { return false };
    API.get_or_init(|| fetched);
    true
}
