//! Clients of modules, against a server that speaks their commands and fails on demand. `umbel-module` tests them
//! against real ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use umbel_redis::{Answer, Error, Limits, ModuleBloom, ModuleCuckoo, Policy, Reason, Server};

/// The content of the server: exact multisets, because these tests are about commands and replies.
#[derive(Default)]
struct Store {
    blooms: HashMap<String, Vec<Vec<u8>>>,
    cuckoos: HashMap<String, Vec<Vec<u8>>>,
    strings: HashMap<String, Vec<u8>>,
    /// The maximum number of items in a filter.
    room: usize,
    history: u8,
    /// The number of commands that removed a key.
    removals: u32,
    /// The number of replies that will still be lost: the connection ends instead.
    lost: u32,
}

type Shared = Arc<Mutex<Store>>;

async fn start() -> (Shared, Server) {
    let store: Shared = Arc::new(Mutex::new(Store { room: 1_000, history: 1, ..Store::default() }));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let shared = store.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, shared.clone()));
        }
    });
    let limits = Limits { retries: 1, ..crate::servers::PATIENT };
    let server =
        Server::replicated(&[&format!("redis://127.0.0.1:{port}/")], limits).await.unwrap();
    (store, server)
}

/// Reads commands and writes replies until the client goes.
async fn serve(socket: TcpStream, store: Shared) {
    let (reader, mut writer) = socket.into_split();
    let mut reader = BufReader::new(reader);
    let mut queued: Option<Vec<String>> = None;
    while let Some(command) = read_command(&mut reader).await {
        let name = String::from_utf8_lossy(&command[0]).to_uppercase();
        let reply = match (name.as_str(), &mut queued) {
            ("MULTI", _) => {
                queued = Some(Vec::new());
                "+OK\r\n".to_owned()
            }
            ("EXEC", Some(replies)) => {
                let reply = format!("*{}\r\n{}", replies.len(), replies.concat());
                queued = None;
                reply
            }
            (_, queued) => {
                let reply = store.lock().unwrap().run(&name, &command[1..]);
                match queued {
                    Some(replies) => {
                        replies.push(reply);
                        "+QUEUED\r\n".to_owned()
                    }
                    None => reply,
                }
            }
        };
        let lost = {
            let mut store = store.lock().unwrap();
            let lost = name == "CF.DEL" && store.lost > 0;
            store.lost -= u32::from(lost);
            lost
        };
        if lost || writer.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_command(
    reader: &mut BufReader<tokio::net::tcp::OwnedReadHalf>,
) -> Option<Vec<Vec<u8>>> {
    let mut line = String::new();
    reader.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let count: usize = line.trim_end().strip_prefix('*')?.parse().ok()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        line.clear();
        reader.read_line(&mut line).await.ok()?;
        let mut part = vec![0; line.trim_end().strip_prefix('$')?.parse::<usize>().ok()? + 2];
        reader.read_exact(&mut part).await.ok()?;
        part.truncate(part.len() - 2);
        parts.push(part);
    }
    Some(parts)
}

impl Store {
    fn run(&mut self, name: &str, arguments: &[Vec<u8>]) -> String {
        let key = arguments
            .first()
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .unwrap_or_default();
        let items = match arguments.iter().position(|argument| argument == b"ITEMS") {
            Some(at) => &arguments[at + 1..],
            None => arguments.get(1..).unwrap_or_default(),
        };
        let room = self.room;
        let (map, family) = match name.split_once('.') {
            Some(("BF", family)) => (&mut self.blooms, family),
            Some(("CF", family)) => (&mut self.cuckoos, family),
            _ => return self.plain(name, &key),
        };
        let integers = |answers: Vec<i64>| {
            let lines: String = answers.iter().map(|answer| format!(":{answer}\r\n")).collect();
            format!("*{}\r\n{lines}", answers.len())
        };
        match (family, map.get_mut(&key)) {
            ("RESERVE", Some(_)) => "-ERR item exists\r\n".to_owned(),
            ("RESERVE", None) => {
                map.insert(key, Vec::new());
                "+OK\r\n".to_owned()
            }
            // Zero without an error, as RedisBloom replies.
            ("CARD", got) => format!(":{}\r\n", got.map_or(0, |got| got.len())),
            ("EXISTS", got) => {
                format!(":{}\r\n", i64::from(got.is_some_and(|got| got.contains(&items[0]))))
            }
            ("MEXISTS", got) => {
                let got: &[Vec<u8>] = got.map_or(&[], |got| got);
                integers(items.iter().map(|item| i64::from(got.contains(item))).collect())
            }
            ("INSERT", None) => "-ERR not found\r\n".to_owned(),
            ("INSERT", Some(got)) => {
                let mut answers = Vec::new();
                for item in items {
                    if got.len() == room {
                        if name == "BF.INSERT" {
                            // The reply ends with the error.
                            let lines: String =
                                answers.iter().map(|answer| format!(":{answer}\r\n")).collect();
                            return format!(
                                "*{}\r\n{lines}-ERR non scaling filter is full\r\n",
                                answers.len() + 1
                            );
                        }
                        answers.push(-1);
                        continue;
                    }
                    let new = name == "CF.INSERT" || !got.contains(item);
                    if new {
                        got.push(item.clone());
                    }
                    answers.push(i64::from(new));
                }
                integers(answers)
            }
            ("DEL", None) => "-Not found\r\n".to_owned(),
            ("DEL", Some(got)) => {
                self.removals += 1;
                let at = got.iter().position(|item| *item == items[0]);
                format!(":{}\r\n", i64::from(at.map(|at| got.remove(at)).is_some()))
            }
            _ => format!("-ERR unknown command '{name}'\r\n"),
        }
    }

    fn plain(&mut self, name: &str, key: &str) -> String {
        let bulk = |text: String| format!("${}\r\n{text}\r\n", text.len());
        match name {
            "TYPE" if self.blooms.contains_key(key) => "+MBbloom--\r\n".to_owned(),
            "TYPE" if self.cuckoos.contains_key(key) => "+MBbloomCF\r\n".to_owned(),
            "TYPE" if self.strings.contains_key(key) => "+string\r\n".to_owned(),
            "TYPE" => "+none\r\n".to_owned(),
            "PTTL" => ":-1\r\n".to_owned(),
            "INFO" if key == "memory" => bulk("maxmemory_policy:noeviction\r\n".into()),
            "INFO" => bulk(format!("role:master\r\nmaster_replid:{:040x}\r\n", self.history)),
            _ => "+OK\r\n".to_owned(),
        }
    }
}

#[tokio::test]
async fn a_bloom_filter_of_a_module_is_never_made_by_accident() {
    let (store, server) = start().await;
    let open = ModuleBloom::open(&server, "f", Policy::Refuse).await;
    assert_eq!(open.err(), Some(Error::Unknown(Reason::Missing)));
    let filter = ModuleBloom::reserve(&server, "f", 100, 0.01, Policy::Refuse).await.unwrap();
    let keys: Vec<Vec<u8>> = (0..500).map(|key| format!("{key}").into_bytes()).collect();
    assert_eq!(filter.insert_batch(&keys).await, Ok(vec![Answer::Absent; 500]));
    assert_eq!(filter.insert(b"7").await, Ok(Answer::Maybe));
    assert_eq!(filter.contains_batch(&keys).await, vec![Answer::Maybe; 500]);
    assert_eq!(filter.contains(b"x").await, Answer::Absent);
    assert_eq!(filter.items().await, Ok(500));
    let again = ModuleBloom::reserve(&server, "f", 100, 0.01, Policy::Refuse).await;
    assert_eq!(again.err(), Some(Error::Exists));

    let taken = store.lock().unwrap().blooms.remove("f").unwrap();
    assert_eq!(filter.contains(b"7").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.insert(b"7").await, Err(Error::Unknown(Reason::Missing)));
    store.lock().unwrap().strings.insert("f".into(), Vec::new());
    assert_eq!(filter.contains(b"7").await, Answer::Unknown(Reason::Foreign));
    store.lock().unwrap().strings.clear();
    // Created again by another client, the filter has fewer items than before.
    store.lock().unwrap().blooms.insert("f".into(), vec![b"y".to_vec()]);
    assert_eq!(filter.contains(b"7").await, Answer::Unknown(Reason::Older));
    store.lock().unwrap().blooms.insert("f".into(), taken);
    assert_eq!(filter.contains(b"7").await, Answer::Maybe);
    store.lock().unwrap().history = 2;
    assert_eq!(filter.contains(b"x").await, Answer::Unknown(Reason::History));
    assert_eq!(filter.insert(b"7").await, Err(Error::Unknown(Reason::History)));
    filter.adopt().await.unwrap();
    assert_eq!(filter.contains(b"x").await, Answer::Absent);
    store.lock().unwrap().room = 501;
    let full = filter.insert_batch(&[&b"new"[..], b"newer"]).await;
    assert_eq!(full, Err(Error::Unknown(Reason::Full)));
}

#[tokio::test]
async fn a_cuckoo_filter_of_a_module_removes_once() {
    let (store, server) = start().await;
    let filter = ModuleCuckoo::reserve(&server, "f", 100, Policy::Refuse).await.unwrap();
    let again = ModuleCuckoo::reserve(&server, "f", 100, Policy::Refuse).await;
    assert_eq!(again.err(), Some(Error::Exists));
    // Every copy counts. Otherwise removing one key could remove another.
    for _ in 0..2 {
        assert_eq!(filter.insert(b"a").await, Ok(Answer::Maybe));
    }
    assert_eq!(filter.remove(b"a").await, Ok(true));
    assert_eq!(filter.contains_batch(&[&b"a"[..], b"b"]).await, [Answer::Maybe, Answer::Absent]);
    // A command whose reply is lost is not sent again.
    store.lock().unwrap().lost = 1;
    let before = store.lock().unwrap().removals;
    assert_eq!(filter.remove(b"a").await, Err(Error::Unknown(Reason::Disconnected)));
    assert_eq!(store.lock().unwrap().removals, before + 1);
    assert_eq!(filter.remove(b"a").await, Ok(false));
    store.lock().unwrap().room = 0;
    assert_eq!(filter.insert(b"c").await, Err(Error::Unknown(Reason::Full)));
    store.lock().unwrap().cuckoos.clear();
    assert_eq!(filter.contains(b"a").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.remove(b"a").await, Err(Error::Unknown(Reason::Missing)));
}

#[tokio::test]
async fn a_stock_server_has_no_module() {
    let Some(node) = crate::servers::Node::start(crate::servers::Engine::Redis, &[]) else {
        return;
    };
    let server = node.server().await;
    let open = ModuleBloom::open(&server, "f", Policy::Warn).await;
    assert_eq!(open.err(), Some(Error::Unknown(Reason::Unsupported)));
    let made = ModuleCuckoo::reserve(&server, "f", 100, Policy::Warn).await;
    assert_eq!(made.err(), Some(Error::Unknown(Reason::Unsupported)));
}
