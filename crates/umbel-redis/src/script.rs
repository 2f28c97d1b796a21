//! Sending scripts to the server.
//!
//! A script checks a filter and changes its bits in one atomic step. Scripts only compare strings and count to
//! a few thousand. The client computes positions, because numbers in Lua are doubles. A server caches a script
//! under its hash, and may drop it from the cache at any time.

use crate::answer::Reason;
use crate::connect::{Server, is_no_script};
use redis::{Cmd, Pipeline, Value};
use std::sync::LazyLock;

/// A script, and its hash on the server.
pub(crate) struct Script {
    pub(crate) text: &'static str,
    pub(crate) name: LazyLock<String>,
}

/// Declares a script. Its hash is computed on first use.
macro_rules! script {
    ($(#[$doc:meta])* $name:ident = $text:expr) => {
        $(#[$doc])*
        pub(crate) static $name: $crate::script::Script = $crate::script::Script {
            text: $text,
            name: std::sync::LazyLock::new(|| redis::Script::new($text).get_hash().to_owned()),
        };
    };
}
pub(crate) use script;

/// Lua: `own` is the replication id of the server that runs the script, in 40 hex digits, and `raw(own)` is the
/// same in 20 bytes. A server that is not a primary refuses, as it refuses writes. The script reads the id
/// itself, so it is the history at the moment of the write, even if a slot has moved since the client last
/// looked.
macro_rules! own_history {
    () => {
        r"
local info = redis.call('INFO', 'replication')
local own = string.match(info, 'master_replid:(%x+)') or ''
if #own ~= 40 or not string.find(info, 'role:master', 1, true) then
  return redis.error_reply('READONLY the server is not a primary with a replication id')
end
local function raw(id)
  return (string.gsub(id, '%x%x', function(digits) return string.char(tonumber(digits, 16)) end))
end
"
    };
}
pub(crate) use own_history;

impl Script {
    /// A call for this key; the caller appends the arguments.
    pub(crate) fn call(&self, key: &str) -> Cmd {
        self.call_with(&[key])
    }

    /// As [`call`](Self::call), for several keys of one slot.
    pub(crate) fn call_with(&self, keys: &[&str]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&*self.name).arg(keys.len()).arg(keys);
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
    pub(crate) async fn run(&self, server: &Server, key: &str, call: Cmd) -> Result<Value, Reason> {
        match self.run_all(server, key, vec![call], None).await?.replies.pop() {
            Some(reply) => crate::connect::fine(reply),
            None => Err(Reason::Garbage),
        }
    }

    /// The replies to some calls on one server, and to one more command after them. Calls whose script the
    /// server did not know are sent again with the text. The others are not sent again, so their replies
    /// describe what they did.
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
    /// Whether a call was sent twice because a connection broke. It may have been carried out the first time.
    pub(crate) repeated: bool,
}
