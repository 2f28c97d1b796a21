//! A server with arbitrary replies: no reply makes a client answer "absent", panic or wait for ever.

use crate::servers::{Engine, Node, PATIENT};
use crate::shared::created;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use umbel::Portable;
use umbel::blocked::Shape;
use umbel_laws::split_mix;
use umbel_redis::{Answer, Error, Limits, Options, Reason, Server, SharedBloom};

/// What a proxy does with the bytes that a server sends.
type Change = Arc<Mutex<Box<dyn FnMut(Vec<u8>) -> Option<Vec<u8>> + Send>>>;

/// A proxy in front of a server. Its behaviour can be changed while it runs.
pub(crate) struct Proxy {
    port: u16,
    change: Change,
}

impl Proxy {
    pub(crate) async fn start(node: &Node) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let change: Change = Arc::new(Mutex::new(Box::new(Some)));
        let (behind, changes) = (node.port, change.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
                tokio::spawn(pass(client, server, changes.clone()));
            }
        });
        Self { port, change }
    }

    fn set(&self, change: impl FnMut(Vec<u8>) -> Option<Vec<u8>> + Send + 'static) {
        *self.change.lock().unwrap() = Box::new(change);
    }

    async fn server(&self, limits: Limits) -> Server {
        Server::replicated(&[&format!("redis://127.0.0.1:{}/0", self.port)], limits).await.unwrap()
    }
}

/// Forwards all bytes, and changes replies. `None` ends the connection.
async fn pass(client: TcpStream, server: TcpStream, change: Change) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
        let changed = (change.lock().unwrap())(buffer[..count].to_vec());
        let Some(bytes) = changed else { break };
        if to_client.write_all(&bytes).await.is_err() {
            break;
        }
    }
    up.abort();
}

const HASTY: Limits =
    Limits { connect: Duration::from_secs(2), reply: Duration::from_millis(150), retries: 1 };

async fn filter(proxy: &Proxy, limits: Limits) -> SharedBloom<u64> {
    let (server, shape) = (proxy.server(PATIENT).await, Shape::for_rate(1_000, 0.001).unwrap());
    let options = Options::default();
    let filter = created(&server, "f", shape, Portable::default(), &options).await.unwrap();
    filter.insert(&1_u64).await.unwrap();
    loop {
        // A busy machine may be too slow for the limits of the test.
        let server = server.with_limits(limits);
        match SharedBloom::open(&server, "f", Portable::default(), &options).await {
            Ok(filter) => return filter,
            Err(Error::Unknown(Reason::TimedOut | Reason::Disconnected)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks that the filter answers again, with retries for a busy machine.
async fn recovers(filter: &SharedBloom<u64>) {
    loop {
        match filter.contains(&1).await {
            Answer::Maybe => return,
            Answer::Unknown(Reason::TimedOut | Reason::Disconnected) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn garbage_is_unknown() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let proxy = Proxy::start(&node).await;
    let filter = filter(&proxy, HASTY).await;
    let replies: [&[u8]; 9] = [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\0\0\0\0\r\n",
        b"$5\r\nhello\r\n",
        b"*-7\r\n",
        b"$99999999999999999999\r\n",
        // Half a reply, and one that promises half a gigabyte.
        b"*3\r\n$128\r\nUMBELRED",
        b"$536870912\r\n",
        b"*1048576\r\n*1048576\r\n*1048576\r\n",
        // The right number of replies, all of them zero.
        b":0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
    ];
    for reply in replies {
        proxy.set(move |_| Some(reply.to_vec()));
        for answer in [filter.contains(&1).await, filter.contains(&2).await] {
            assert!(answer.is_unknown(), "{reply:?}: {answer:?}");
        }
        assert!(filter.insert(&3).await.is_err(), "{reply:?}");
        proxy.set(Some);
        recovers(&filter).await;
    }
}

#[tokio::test]
async fn errors_have_their_reasons() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let proxy = Proxy::start(&node).await;
    let filter = filter(&proxy, HASTY).await;
    for (error, reason) in [
        ("-LOADING Redis is loading the dataset in memory", Reason::Loading),
        ("-MOVED 3999 127.0.0.1:1", Reason::Moved),
        ("-ASK 3999 127.0.0.1:1", Reason::Moved),
        ("-TRYAGAIN Multiple keys request during rehashing of slot", Reason::Moved),
        ("-CLUSTERDOWN The cluster is down", Reason::Moved),
        ("-MASTERDOWN Link with MASTER is down", Reason::NotPrimary),
        ("-NOAUTH Authentication required.", Reason::NotPermitted),
        ("-BUSY Redis is busy running a script.", Reason::Busy),
        ("-ERR unknown command 'MULTI'", Reason::Unsupported),
        ("-SOMETHING new", Reason::Refused),
    ] {
        // WATCH, the header, two lines, MULTI, EXEC, INFO.
        proxy.set(move |_| Some(format!("{error}\r\n").repeat(7).into_bytes()));
        for key in [1, 2] {
            let answer = loop {
                match filter.contains(&key).await {
                    Answer::Unknown(Reason::TimedOut) => {}
                    answer => break answer,
                }
            };
            assert_eq!(answer, Answer::Unknown(reason), "{error}");
        }
        proxy.set(Some);
        recovers(&filter).await;
    }
}

/// Connections that break at any moment, and bytes that are changed or left out: acknowledged keys are never
/// absent. A single bit that is flipped inside a line cannot be detected.
#[tokio::test]
async fn connections_that_break_at_any_byte_make_nothing_absent() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let proxy = Proxy::start(&node).await;
    let patient = Limits { retries: 0, ..HASTY };
    let filter = filter(&proxy, patient).await;
    let (mut acknowledged, mut unknown) = (Vec::new(), 0);
    for round in 0..300_u64 {
        let cut = split_mix(round) % 600;
        let mut passed = 0;
        let mode = round % 3;
        proxy.set(move |mut bytes| {
            let room = (cut as usize).saturating_sub(passed);
            passed += bytes.len();
            if bytes.len() <= room {
                return Some(bytes);
            }
            match mode {
                // The end, a gap, or garbage from here on.
                0 => None,
                1 => {
                    bytes.remove(room);
                    Some(bytes)
                }
                _ => {
                    bytes.truncate(room);
                    bytes.extend_from_slice(b"\r\n$-1\r\n");
                    Some(bytes)
                }
            }
        });
        if filter.insert(&round).await.is_ok() {
            acknowledged.push(round);
        }
        let asked = filter.contains_batch(&acknowledged).await;
        assert!(asked.iter().all(|answer| !answer.is_absent()), "{round}");
        unknown += asked.iter().filter(|answer| answer.is_unknown()).count();
    }
    proxy.set(Some);
    recovers(&filter).await;
    // One more insert, in case a busy machine let none through.
    while filter.insert(&1_000).await.is_err() {}
    acknowledged.push(1_000);
    assert!(unknown > 0);
    let asked = filter.contains_batch(&acknowledged).await;
    assert_eq!(asked, vec![Answer::Maybe; acknowledged.len()]);
}
