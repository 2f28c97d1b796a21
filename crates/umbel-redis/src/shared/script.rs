//! What runs on the server, and how it gets there.
//!
//! A script sees the header and changes bits in one step, and no other client can be in between. Scripts
//! compare strings and count to a few thousand: positions are computed in the client, since numbers in Lua are
//! doubles.

use crate::answer::Reason;
use crate::connect::{Server, is_no_script};
use redis::{Cmd, Pipeline, Value};
use std::sync::LazyLock;

/// A script, and the name that servers know it by.
pub(crate) struct Script {
    text: &'static str,
    name: LazyLock<String>,
}

/// The names are made when they are first needed.
macro_rules! script {
    ($(#[$doc:meta])* $name:ident = $text:expr) => {
        $(#[$doc])*
        pub(crate) static $name: Script = Script {
            text: $text,
            name: LazyLock::new(|| redis::Script::new($text).get_hash().to_owned()),
        };
    };
}

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
    /// Takes a shard away. Argument: the fixed part of the header. It replies with how many keys it took
    /// away: one, or none if something else is there.
    DELETE = r"
if redis.call('GETRANGE', KEYS[1], 0, 95) == ARGV[1] then return redis.call('UNLINK', KEYS[1]) end
return 0
"
}

impl Script {
    /// A call for this key, to which arguments are added.
    pub(crate) fn call(&self, key: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&*self.name).arg(1).arg(key);
        command
    }

    /// The same call with the text of the script.
    fn with_text(&self, call: &Cmd) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.text);
        for argument in call.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }

    /// The reply to one call.
    pub(crate) async fn run(
        &self,
        server: &Server,
        key: &str,
        call: Cmd,
    ) -> Result<Value, Reason> {
        match self.run_all(server, key, vec![call], None).await?.replies.pop() {
            Some(reply) => crate::connect::fine(reply),
            None => Err(Reason::Garbage),
        }
    }

    /// The replies to some calls that one server gets, and to one more command after them. Calls that the
    /// server did not know are sent again, with the text; the others are not, so that what they replied is
    /// what they did.
    pub(crate) async fn run_all(
        &self,
        server: &Server,
        key: &str,
        calls: Vec<Cmd>,
        last: Option<Cmd>,
    ) -> Result<Replies, Reason> {
        let mut pipeline = Pipeline::with_capacity(calls.len() + 1);
        for call in calls.iter().chain(&last) {
            pipeline.add_command(call.clone());
        }
        let (mut replies, mut repeated) = server.ask_noting_retries(key, pipeline).await?;
        let unknown: Vec<usize> =
            (0..calls.len()).filter(|call| is_no_script(&replies[*call])).collect();
        if !unknown.is_empty() {
            let mut pipeline = Pipeline::with_capacity(unknown.len() + 1);
            for call in &unknown {
                pipeline.add_command(self.with_text(&calls[*call]));
            }
            if let Some(last) = &last {
                pipeline.add_command(last.clone());
            }
            let (again, more) = server.ask_noting_retries(key, pipeline).await?;
            repeated |= more;
            let places = unknown.into_iter().chain(last.iter().map(|_| calls.len()));
            for (place, reply) in places.zip(again) {
                replies[place] = reply;
            }
        }
        Ok(Replies { replies, repeated })
    }
}

/// What came back.
pub(crate) struct Replies {
    pub(crate) replies: Vec<Value>,
    /// Whether something was sent twice because a connection broke: it may have been done the first time.
    pub(crate) repeated: bool,
}
