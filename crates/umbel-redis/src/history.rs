//! The history of a server, as its replication id shows it.
//!
//! ```text
//!     a primary that acknowledged K      replid 5f1e..   ---x  dies
//!     its replica, which K never reached replid 5f1e..   ---- promoted: replid 08aa..
//! ```
//!
//! Replication is asynchronous, so a promoted replica may lack acknowledged inserts. So may a server that
//! restarts from its disk. Both can be recognised: a primary draws a new random replication id when it starts
//! and when it is promoted, and a replica takes the id of its primary. So the id of a primary was drawn by that
//! server, and the server has been a primary with all of its data in memory ever since. A filter stores the id
//! of the server on which it is complete.
//!
//! The id also changes without a loss: when a first replica joins, or an hour after the last one left. Filters
//! then answer `Unknown` until a caller [adopts](crate::SharedBloom::adopt) them. That is the safe direction.

use crate::answer::Reason;
use crate::connect::bytes_of;
use redis::{Cmd, Value};

/// The replication id of a server that is a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History(pub(crate) [u8; 20]);

impl History {
    /// The command that returns it.
    pub(crate) fn question() -> Cmd {
        let mut command = redis::cmd("INFO");
        command.arg("replication");
        command
    }

    /// Parses the reply. An error if the server is not a primary.
    pub(crate) fn of(reply: &Value) -> Result<Self, Reason> {
        let text = std::str::from_utf8(bytes_of(reply)?).map_err(|_| Reason::Garbage)?;
        match field(text, "role") {
            Some("master") => {}
            Some(_) => return Err(Reason::NotPrimary),
            None => return Err(Reason::Garbage),
        }
        let id = field(text, "master_replid").ok_or(Reason::Unsupported)?;
        let mut bytes = [0; 20];
        if id.len() != 40 || !id.is_ascii() {
            return Err(Reason::Garbage);
        }
        for (byte, number) in bytes.iter_mut().zip(0..) {
            let digits = &id[2 * number..2 * number + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| Reason::Garbage)?;
        }
        // A filter that is at home nowhere stores zeros.
        if bytes == [0; 20] { Err(Reason::Garbage) } else { Ok(Self(bytes)) }
    }
}

/// The value of a line of INFO.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (got, value) = line.split_once(':')?;
        (got == name).then(|| value.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Result<History, Reason> {
        History::of(&Value::BulkString(text.into()))
    }

    #[test]
    fn only_a_primary_has_a_history() {
        let id = "5f1e000000000000000000000000000000000a0b";
        let mut bytes = [0; 20];
        (bytes[0], bytes[1], bytes[18], bytes[19]) = (0x5f, 0x1e, 0x0a, 0x0b);
        let primary = format!("# Replication\r\nrole:master\r\nmaster_replid:{id}\r\n");
        assert_eq!(info(&primary), Ok(History(bytes)));
        let replica = format!("# Replication\r\nrole:slave\r\nmaster_replid:{id}\r\n");
        assert_eq!(info(&replica), Err(Reason::NotPrimary));
    }

    #[test]
    fn what_is_no_history_is_none() {
        for text in ["", "role", "master_replid:5f1e", "role:master\r\nmaster_replid:5f1e\r\n"] {
            assert_eq!(info(text), Err(Reason::Garbage), "{text}");
        }
        let zeros = "0".repeat(40);
        for id in [&zeros, &"é".repeat(20), &"+".repeat(40)] {
            let text = format!("role:master\r\nmaster_replid:{id}\r\n");
            assert_eq!(info(&text), Err(Reason::Garbage), "{id}");
        }
        assert_eq!(info("role:master\r\n"), Err(Reason::Unsupported));
        assert_eq!(History::of(&Value::Int(1)), Err(Reason::Garbage));
    }
}
