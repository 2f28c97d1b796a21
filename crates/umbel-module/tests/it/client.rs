//! A minimal client, so that tests see every byte.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A reply of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Text(Vec<u8>),
    Error(String),
    Integer(i64),
    Null,
    Array(Vec<Reply>),
    Other(String),
}

impl Reply {
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub(crate) fn integer(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            other => panic!("not an integer: {other:?}"),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) => bytes,
            other => panic!("not a string: {other:?}"),
        }
    }

    pub(crate) fn array(&self) -> &[Reply] {
        match self {
            Self::Array(array) => array,
            other => panic!("not an array: {other:?}"),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream) })
    }

    /// Sends bytes unchanged.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn try_call(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        self.send(&command(words))?;
        self.reply()
    }

    /// The reply to a command, given as words.
    pub(crate) fn call(&mut self, words: &[&[u8]]) -> Reply {
        self.try_call(words).expect("the server answers")
    }

    /// The reply to a command, given as a line.
    pub(crate) fn say(&mut self, line: &str) -> Reply {
        self.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// As [`say`](Self::say), for a command that succeeds.
    pub(crate) fn ask(&mut self, line: &str) -> Reply {
        let reply = self.say(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        reply
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        std::io::BufRead::read_until(&mut self.stream, b'\n', &mut line)?;
        if line.len() < 3 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.len() - 2);
        Ok(line)
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let text = String::from_utf8_lossy(&line[1..]).into_owned();
        let number = || text.parse::<i64>().map_err(io::Error::other);
        Ok(match line[0] {
            b'+' => Reply::Text(line[1..].to_vec()),
            b'-' => Reply::Error(text),
            b':' => Reply::Integer(number()?),
            b'$' if number()? < 0 => Reply::Null,
            b'$' => {
                let mut bytes = vec![0; number()? as usize + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Reply::Text(bytes)
            }
            b'*' if number()? < 0 => Reply::Null,
            b'*' => Reply::Array((0..number()?).map(|_| self.reply()).collect::<Result<_, _>>()?),
            _ => Reply::Other(text),
        })
    }
}

/// A command as bytes.
pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    bytes
}
