//! The scripts that run on the server.
//!
//! Each script compares the header with its argument before it writes. Scripts that insert keys or mark a
//! filter as complete also compare its home with the replication id of the server that runs them. A reply
//! begins with a word: `ok`, or the reason for a refusal (`header`, `length`, `home`, `older`). Then follows
//! the header.

use crate::script::{own_history, script};

/// Lua: `head` is the header; `refused()` returns why the shard is not the expected one. Arguments: the fixed
/// part of the header, and the length of the shard.
macro_rules! shard {
    () => {
        r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
local function refused()
  local state = string.sub(head, 117, 120)
  if string.sub(head, 1, 96) ~= ARGV[1] or (state ~= '\2\0\0\0' and state ~= '\3\0\0\0') then return 'header' end
  if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[2]) then return 'length' end
end
"
    };
}

script! {
    /// Sets bits of a shard. Further arguments: the home and the number of changes that the client has seen, the
    /// number of probes in a line, and the positions of the bits, line by line.
    ///
    /// Its reply has a digit for each line, which is 1 if one of its bits was not set before.
    INSERT = concat!(own_history!(), shard!(), r"
local why = refused()
if why then return {why, head} end
local home = string.sub(head, 97, 116)
if home ~= raw(own) then return {'home', head} end
if home == ARGV[3] then
  local changes = 0
  for byte = 121, 128 do changes = changes * 256 + string.byte(head, byte) end
  if changes < tonumber(ARGV[4]) then return {'older', head} end
end
local sets, last = {}, 0
for position = 6, #ARGV do
  sets[last + 1], sets[last + 2], sets[last + 3], sets[last + 4] = 'SET', 'u1', ARGV[position], '1'
  last = last + 4
end
local old = redis.call('BITFIELD', KEYS[1], unpack(sets))
local probes, fresh, any, bit = tonumber(ARGV[5]), {}, false, 0
for line = 1, #old / probes do
  local digit = '0'
  for _ = 1, probes do
    bit = bit + 1
    if old[bit] == 0 then digit, any = '1', true end
  end
  fresh[line] = digit
end
if any then redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', '960', '1') end
return {'ok', head, table.concat(fresh)}
")
}

script! {
    /// Writes the header of a shard if the key does not exist, in the state of creation. Arguments: the fixed
    /// part of the header, and 1 to remove a shard of another filter. It replies with the header that the key
    /// has then.
    ///
    /// Only this script creates a key. The others never create a lost key again.
    BEGIN = r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if ARGV[2] == '1' and string.sub(head, 1, 8) == 'UMBELRED' and string.sub(head, 1, 96) ~= ARGV[1] then
  redis.call('UNLINK', KEYS[1])
  head = ''
end
if head == '' then
  redis.call('SETRANGE', KEYS[1], 0, ARGV[1] .. string.rep('\0', 20) .. '\1\0\0\0' .. string.rep('\0', 8))
end
return redis.call('GETRANGE', KEYS[1], 0, 127)
"
}

script! {
    /// Extends a shard that is being created. Arguments: the fixed part of the header, the full length of the
    /// shard, and the maximum number of bytes to add. It replies with the header. A shard that has reached its
    /// full length is incomplete and at home.
    GROW = concat!(own_history!(), r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if string.sub(head, 1, 96) ~= ARGV[1] or string.sub(head, 117, 120) ~= '\1\0\0\0' then return head end
local whole, size = tonumber(ARGV[2]), redis.call('STRLEN', KEYS[1])
if size < whole then
  size = math.min(whole, size + tonumber(ARGV[3]))
  redis.call('SETRANGE', KEYS[1], size - 1, '\0')
end
local home = raw(own)
if size == whole then redis.call('SETRANGE', KEYS[1], 96, home .. '\3\0\0\0') end
return redis.call('GETRANGE', KEYS[1], 0, 127)
")
}

script! {
    /// Writes a piece of a shard that is being created. Arguments: the fixed part of the header, the full
    /// length of the shard, the position of the piece, and the piece. It replies as GROW does.
    FILL = concat!(own_history!(), r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if string.sub(head, 1, 96) ~= ARGV[1] or string.sub(head, 117, 120) ~= '\1\0\0\0' then return head end
redis.call('SETRANGE', KEYS[1], ARGV[3], ARGV[4])
local home = raw(own)
if redis.call('STRLEN', KEYS[1]) == tonumber(ARGV[2]) then
  redis.call('SETRANGE', KEYS[1], 96, home .. '\3\0\0\0')
end
return redis.call('GETRANGE', KEYS[1], 0, 127)
")
}

script! {
    /// Marks a shard as complete.
    COMPLETE = concat!(own_history!(), shard!(), r"
local why = refused()
if why then return {why, head} end
if string.sub(head, 97, 116) ~= raw(own) then return {'home', head} end
redis.call('SETRANGE', KEYS[1], 116, '\2\0\0\0')
return {'ok', head}
")
}

script! {
    /// Makes a shard at home on this server. A shard that was at home elsewhere is incomplete then.
    ADOPT = concat!(own_history!(), shard!(), r"
local why, home = refused(), raw(own)
if why then return {why, head} end
if string.sub(head, 97, 116) ~= home then redis.call('SETRANGE', KEYS[1], 96, home .. '\3\0\0\0') end
return {'ok', head}
")
}

script! {
    /// Deletes a shard of exactly this filter. Argument: the fixed part of the header. It replies with the
    /// number of deleted keys.
    DELETE = r"
if redis.call('GETRANGE', KEYS[1], 0, 95) == ARGV[1] then return redis.call('UNLINK', KEYS[1]) end
return 0
"
}
