//! What runs on the server.

use crate::script::script;

script! {
    /// Sets bits of a shard. Arguments: the fixed part of the header, the length of the shard, the number of
    /// probes in a line, and then the positions of the bits, line by line.
    ///
    /// It replies with the header as it was and a digit for each line, 1 if one of its bits was not set before;
    /// or only with the header, if that is not the one that was expected.
    INSERT = r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if string.sub(head, 1, 96) ~= ARGV[1] or string.sub(head, 117, 120) ~= '\2\0\0\0'
    or redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[2]) then
  return {head}
end
local sets, last = {}, 0
for position = 4, #ARGV do
  sets[last + 1], sets[last + 2], sets[last + 3], sets[last + 4] = 'SET', 'u1', ARGV[position], '1'
  last = last + 4
end
local old = redis.call('BITFIELD', KEYS[1], unpack(sets))
local probes, fresh, any, bit = tonumber(ARGV[3]), {}, false, 0
for line = 1, #old / probes do
  local digit = '0'
  for _ = 1, probes do
    bit = bit + 1
    if old[bit] == 0 then digit, any = '1', true end
  end
  fresh[line] = digit
end
if any then redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', '960', '1') end
return {head, table.concat(fresh)}
"
}

script! {
    /// Makes a shard, or makes it longer. Arguments: the fixed part of the header, the length of the whole
    /// shard, how many bytes may be added, and the history of the server.
    ///
    /// It replies with the header. A shard that has its length is ready. One with the same plan that somebody
    /// else has begun is continued.
    GROW = r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if head == '' then
  redis.call('SETRANGE', KEYS[1], 0, ARGV[1] .. string.rep('\0', 20) .. '\1\0\0\0' .. string.rep('\0', 8))
elseif string.sub(head, 1, 72) ~= string.sub(ARGV[1], 1, 72) or string.sub(head, 117, 120) ~= '\1\0\0\0' then
  return head
end
local whole, size = tonumber(ARGV[2]), redis.call('STRLEN', KEYS[1])
if size < whole then
  size = math.min(whole, size + tonumber(ARGV[3]))
  redis.call('SETRANGE', KEYS[1], size - 1, '\0')
end
if size == whole then redis.call('SETRANGE', KEYS[1], 96, ARGV[4] .. '\2\0\0\0') end
return redis.call('GETRANGE', KEYS[1], 0, 127)
"
}

script! {
    /// Writes a piece of a shard that is being made. Arguments: the fixed part of the header, where the piece
    /// begins, the piece, the length of the whole shard, and the history of the server.
    ///
    /// It replies with the header. A shard that has its length is ready.
    FILL = r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if head == '' and ARGV[2] == '128' then
  redis.call('SETRANGE', KEYS[1], 0, ARGV[1] .. string.rep('\0', 20) .. '\1\0\0\0' .. string.rep('\0', 8))
elseif string.sub(head, 1, 96) ~= ARGV[1] or string.sub(head, 117, 120) ~= '\1\0\0\0' then
  return head
end
redis.call('SETRANGE', KEYS[1], ARGV[2], ARGV[3])
if redis.call('STRLEN', KEYS[1]) == tonumber(ARGV[4]) then
  redis.call('SETRANGE', KEYS[1], 96, ARGV[5] .. '\2\0\0\0')
end
return redis.call('GETRANGE', KEYS[1], 0, 127)
"
}

script! {
    /// Makes a shard at home on a server. Arguments: the fixed part of the header, and the history of the
    /// server. It replies with the header as it was.
    ADOPT = r"
local head = redis.call('GETRANGE', KEYS[1], 0, 127)
if string.sub(head, 1, 96) == ARGV[1] and string.sub(head, 117, 120) == '\2\0\0\0' then
  redis.call('SETRANGE', KEYS[1], 96, ARGV[2])
end
return head
"
}

script! {
    /// Takes a shard away. It replies with how many keys it took away: one, or none if there is no shard.
    DELETE = r"
if redis.call('GETRANGE', KEYS[1], 0, 7) == 'UMBELRED' then return redis.call('UNLINK', KEYS[1]) end
return 0
"
}
