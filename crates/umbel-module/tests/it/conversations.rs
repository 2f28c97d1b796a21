//! 24,000 commands that were sent to the real RedisBloom, valid and invalid. This module gives the same
//! replies, and has the same bytes under the key after every write.
//!
//! `tests/golden/redisbloom/README.md` describes the files. After a difference, the replies of that key are not compared
//! until it is deleted. `docs/module.md` has [`ON_PURPOSE`] as a table.

use super::client::{Client, command};
use super::server::{Engine, Server, engines};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// One command, the reply of RedisBloom, and the hash of the dump afterwards, if it was recorded.
pub(crate) struct Line {
    pub(crate) send: Vec<Vec<u8>>,
    pub(crate) reply: Value,
    pub(crate) dump: Option<Value>,
}

impl Line {
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.send[0]).to_ascii_uppercase()
    }

    fn key(&self) -> &[u8] {
        self.send.get(1).map_or(&[], Vec::as_slice)
    }

    /// Whether one of the arguments after the key is this word.
    fn has(&self, word: &str) -> bool {
        self.send.iter().skip(2).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The words after each appearance of this one.
    fn after<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.send
            .windows(2)
            .filter(move |pair| pair[0].eq_ignore_ascii_case(word.as_bytes()))
            .map(|pair| core::str::from_utf8(&pair[1]).unwrap_or_default())
    }

    /// A short form, to find the line.
    fn short(&self) -> String {
        let words = self.send.iter().take(9).map(|word| word.escape_ascii().to_string());
        let line = words.collect::<Vec<_>>().join(" ");
        line.chars().take(120).collect()
    }
}

/// The bytes of a string in which each character is one byte.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).expect("Latin-1")).collect()
}

pub(crate) fn lines(name: &str) -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/redisbloom")
        .join(format!("replies-{name}.jsonl.gz"));
    let file = std::fs::File::open(&path).expect("the conversation is in the tree");
    let line = |line: io::Result<String>| {
        let value: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let send = value["send"].as_array().expect("arguments");
        Line {
            send: send.iter().map(|word| latin1(word.as_str().expect("a word"))).collect(),
            reply: value["reply"].clone(),
            dump: value.get("dump").cloned(),
        }
    };
    BufReader::new(GzDecoder::new(file)).lines().map(line).collect()
}

/// The next reply, in the format of the conversations.
fn reply(client: &mut Client) -> io::Result<Value> {
    let mut line = Vec::new();
    client.stream.read_until(b'\n', &mut line)?;
    let text: String = line[1..line.len() - 2].iter().map(|byte| char::from(*byte)).collect();
    let number = || text.parse::<i64>().map_err(io::Error::other);
    let several = |client: &mut Client, count| {
        (0..count).map(|_| reply(client)).collect::<io::Result<Vec<_>>>()
    };
    Ok(match line[0] {
        b'+' => json!({ "status": text }),
        b'-' => json!({ "error": text }),
        b':' => json!(number()?),
        b'#' => json!({ "bool": text == "t" }),
        b',' => json!({ "double": text.parse::<f64>().map_err(io::Error::other)? }),
        b'_' => Value::Null,
        b'$' | b'*' if number()? < 0 => Value::Null,
        b'$' => {
            let mut bytes = vec![0; number()? as usize + 2];
            client.stream.read_exact(&mut bytes)?;
            let bytes = &bytes[..bytes.len() - 2];
            json!({ "bulk": bytes.iter().map(|byte| char::from(*byte)).collect::<String>() })
        }
        b'*' => several(client, number()?).map(Value::Array)?,
        b'%' => json!({ "map": several(client, number()? * 2).map(Value::Array)? }),
        other => return Err(io::Error::other(format!("reply of type {}", char::from(other)))),
    })
}

fn call(client: &mut Client, words: &[&[u8]]) -> Value {
    client.send(&command(words)).expect("the server listens");
    reply(client).expect("the server answers")
}

/// The SHA-256 of the key's dump without version and checksum; null if there is no key.
pub(crate) fn dump(client: &mut Client, key: &[u8]) -> Value {
    let Value::Object(dump) = call(client, &[b"DUMP", key]) else { return Value::Null };
    let bytes = latin1(dump["bulk"].as_str().expect("a payload"));
    let hash = Sha256::digest(&bytes[..bytes.len() - 10]);
    json!(hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// A difference between the reply and that of RedisBloom.
struct Difference {
    line: usize,
    ours: Value,
    /// Whether only the bytes differ, and not the replies.
    in_dump: bool,
}

impl Difference {
    fn text(reply: &Value) -> Option<&str> {
        reply["error"].as_str()
    }
}

/// Replays a conversation. Returns the number of compared replies and dumps, and the differences.
fn replay(engine: Engine, name: &str, lines: &[Line]) -> ((usize, usize), Vec<Difference>) {
    let server = Server::start(engine);
    let mut client = server.client();
    client.ask("SET str x");
    client.ask("RPUSH lst a");
    if name.ends_with("resp3") {
        call(&mut client, &[b"HELLO", b"3"]);
    }
    let (mut astray, mut differences) = (HashSet::new(), Vec::new());
    let (mut replies, mut dumps) = (0, 0);
    for (number, line) in lines.iter().enumerate() {
        let words: Vec<&[u8]> = line.send.iter().map(Vec::as_slice).collect();
        let mut ours = call(&mut client, &words);
        if let Some(text) = Difference::text(&ours).filter(|_| engine == Engine::Redis62)
            && text.starts_with("ERR wrong number of arguments")
        {
            // This engine writes the name as the client sent it, later ones as the module registered it.
            ours =
                json!({ "error": text.replace(&line.name(), &line.name().to_ascii_lowercase()) });
        }
        if line.name() == "DEL" && line.send[1..].iter().any(|key| astray.remove(key)) {
            continue;
        }
        if astray.contains(line.key()) {
            continue;
        }
        replies += 1;
        let same_bytes = line.dump.as_ref().is_none_or(|real| {
            dumps += 1;
            dump(&mut client, line.key()) == *real
        });
        if ours == line.reply && same_bytes {
            continue;
        }
        let both_refuse = ours.get("error").is_some() && line.reply.get("error").is_some();
        if !(both_refuse && same_bytes) {
            astray.insert(line.key().to_vec());
        }
        let in_dump = ours == line.reply;
        if in_dump && engine == Engine::Redis62 {
            // It stores bytes that are digits differently from later engines, so its dumps may differ where the
            // filters do not.
            continue;
        }
        differences.push(Difference { line: number, ours, in_dump });
    }
    ((replies, dumps), differences)
}

/// An intended difference.
struct Purpose {
    /// Its name in `docs/module.md`.
    what: &'static str,
    /// The lines that it explains, by the command and the reply of this module.
    explains: fn(&Line, &Value) -> bool,
}

/// All intended differences from 8.8.0. `docs/module.md` gives the reasons.
const ON_PURPOSE: [Purpose; 3] = [
    Purpose {
        what: "`CF.LOADCHUNK` for a place past the end",
        explains: |line, ours| {
            let refused = Difference::text(ours) == Some("Couldn't load chunk!");
            line.name() == "CF.LOADCHUNK" && refused && line.reply["status"] == "OK"
        },
    },
    Purpose {
        what: "`CF.RESERVE ... ERROR rate`",
        explains: |line, _| line.name() == "CF.RESERVE" && line.has("ERROR"),
    },
    Purpose {
        what: "`CF.INFO key WORD`",
        explains: |line, _| line.name() == "CF.INFO" && line.send.len() == 3,
    },
];

fn differences_by_command(lines: &[Line], differences: &[Difference]) -> String {
    let mut groups = BTreeMap::<String, Vec<String>>::new();
    for Difference { line: number, ours, in_dump } in differences {
        let line = &lines[*number];
        let show = |value: &Value| value.to_string().chars().take(80).collect::<String>();
        let text = if *in_dump {
            format!("  line {number}: {}: the dumps differ", line.short())
        } else {
            format!(
                "  line {number}: {}: {} instead of {}",
                line.short(),
                show(ours),
                show(&line.reply)
            )
        };
        groups.entry(line.name()).or_default().push(text);
    }
    let group = |(name, lines): (&String, &Vec<String>)| {
        format!("{name}: {}\n{}\n", lines.len(), lines[..lines.len().min(5)].join("\n"))
    };
    groups.iter().map(group).collect()
}

/// Fails if there are unintended differences.
fn compare(name: &str, at_least: (usize, usize), is_intended: impl Fn(&Line, &Value) -> bool) {
    let lines = lines(name);
    for engine in engines() {
        if name.ends_with("resp3") && engine == Engine::Redis62 {
            // This engine has neither booleans nor maps for modules.
            continue;
        }
        let (compared, differences) = replay(engine, name, &lines);
        let (intended, rest): (Vec<_>, Vec<_>) = differences
            .into_iter()
            .partition(|Difference { line, ours, .. }| is_intended(&lines[*line], ours));
        eprintln!(
            "{engine:?}, {name}: {} replies and {} dumps compared, {} differ on purpose, {} otherwise",
            compared.0,
            compared.1,
            intended.len(),
            rest.len(),
        );
        assert!(
            rest.is_empty(),
            "{engine:?} and RedisBloom {name} differ:\n{}",
            differences_by_command(&lines, &rest)
        );
        assert!(compared.0 >= at_least.0 && compared.1 >= at_least.1, "{engine:?}: {compared:?}");
    }
}

fn on_purpose(line: &Line, ours: &Value) -> bool {
    ON_PURPOSE.iter().any(|purpose| (purpose.explains)(line, ours))
}

#[test]
fn replies_and_bytes_are_those_of_redisbloom_8_8_in_resp2() {
    compare("8.8.0-resp2", (9_700, 5_200), on_purpose);
}

#[test]
fn replies_and_bytes_are_those_of_redisbloom_8_8_in_resp3() {
    compare("8.8.0-resp3", (4_800, 2_600), on_purpose);
}

/// The errors of each command in a conversation.
fn errors(lines: &[Line]) -> HashSet<(String, String)> {
    let error = |line: &Line| Some((line.name(), Difference::text(&line.reply)?.to_owned()));
    lines.iter().filter_map(error).collect()
}

/// Changes in 8.8.0 that do not show in its errors.
fn changed_since_2_6(line: &Line, ours: &Value) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let any = |word: &str, is: fn(i64) -> bool| line.after(word).filter_map(number).any(is);
    let rate = |text: &str| text.parse::<f64>().ok();
    match line.name().as_str() {
        // Each option is checked when it is read. 2.6 checks the remaining ones at the end, and only for a new
        // key.
        "BF.INSERT" if matches!(Difference::text(ours), Some(text) if text.starts_with("Bad ")) => {
            any("CAPACITY", |capacity| !(1..=1 << 30).contains(&capacity))
                || any("EXPANSION", |by| !(0..=32_768).contains(&by))
                || line.after("ERROR").filter_map(rate).any(|rate| !(rate > 0.0 && rate < 1.0))
        }
        "BF.RESERVE" => {
            let loose = line.send.get(2).and_then(|rate| core::str::from_utf8(rate).ok());
            // An expansion of 0 is allowed. Rates above a quarter become a quarter. The expansion is parsed
            // before NONSCALING is searched.
            any("EXPANSION", |by| by == 0)
                || line.has("NONSCALING") && line.has("EXPANSION")
                || loose.and_then(rate).is_some_and(|rate| rate > 0.25 && rate < 1.0)
        }
        _ => false,
    }
}

#[test]
fn only_what_8_8_changed_differs_from_redisbloom_2_6() {
    let old = errors(&lines("2.6.28-resp2"));
    let new: HashSet<_> =
        errors(&lines("8.8.0-resp2")).union(&errors(&lines("8.8.0-resp3"))).cloned().collect();
    let is_intended = |line: &Line, ours: &Value| {
        let says =
            |reply: &Value| Difference::text(reply).map(|text| (line.name(), text.to_owned()));
        // An error that only one of the two versions returns for this command was changed by 8.8.
        let gone = says(&line.reply).is_some_and(|error| !new.contains(&error));
        let came = says(ours).is_some_and(|error| new.contains(&error) && !old.contains(&error));
        gone || came || changed_since_2_6(line, ours) || on_purpose(line, ours)
    };
    compare("2.6.28-resp2", (9_000, 5_000), is_intended);
}

#[test]
fn the_documentation_has_every_difference_on_purpose() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/module.md");
    let docs = std::fs::read_to_string(docs).expect("the documentation is in the tree");
    let (_, table) =
        docs.split_once("## Different from RedisBloom, on purpose").expect("a chapter");
    let table = table.split("\n## ").next().unwrap_or_default();
    for Purpose { what, .. } in ON_PURPOSE {
        assert!(table.contains(&format!("| {what} |")), "no row for {what}");
    }
}
