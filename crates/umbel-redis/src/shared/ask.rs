//! Asking: lines and the header that proves them, in one step.
//!
//! ```text
//!     MULTI                                 nobody comes between these:
//!       GETRANGE key 0 127                    whose bits are these?
//!       GETRANGE key a a+63                   one line
//!       ...                                   at most 200 of them
//!     EXEC
//!     INFO replication                      and has this server had them all along?
//! ```
//!
//! A line counts only if the header that came with it is the one that was opened, to the byte, is at home on
//! the server that answered, and has not gone back in time. INFO may come after EXEC: a primary that has an id when
//! it is asked has had it since before the filter was at home there (see the `history` room).

use super::header::{BYTES, Pulse, prove};
use super::script::READ;
use super::shards::of_line;
use super::{CALL, Shard, SharedBloom};
use crate::answer::{Answer, Reason};
use crate::connect::{bytes_of, command, transaction};
use crate::history::History;
use futures_util::future::join_all;
use redis::{Pipeline, Value};
use umbel::Digest;
use umbel::blocked::Shape;

/// Keys that are asked for before the next ones are sent.
const BATCH: usize = 4096;

/// The bits of a key in one of its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// The place of the key in its batch.
    pub(super) key: usize,
    pub(super) line: u64,
    /// The places of its bits in the line, as many as the shape says.
    bits: [u16; 8],
    count: usize,
}

impl Probe {
    /// All lines of some keys.
    fn of(shape: &Shape, digests: &[Digest]) -> Vec<Self> {
        let per_line = shape.probes_per_line() as usize;
        let mut all: Vec<Self> = Vec::with_capacity(digests.len() * shape.lines_per_key() as usize);
        for (key, digest) in digests.iter().enumerate() {
            let mut seen = 0;
            shape.for_each_bit(*digest, |line, bit| {
                if seen % per_line == 0 {
                    all.push(Self { key, line, bits: [0; 8], count: 0 });
                }
                seen += 1;
                if let Some(probe) = all.last_mut() {
                    probe.bits[probe.count] = bit as u16;
                    probe.count += 1;
                }
            });
        }
        all
    }

    pub(super) fn bits(&self) -> &[u16] {
        &self.bits[..self.count]
    }

    /// Whether a line has all of its bits.
    fn is_in(&self, line: &[u8; 64]) -> bool {
        self.bits().iter().all(|bit| line[usize::from(bit / 8)] >> (bit % 8) & 1 == 1)
    }
}

/// Probes by the shard that they are in.
pub(super) fn by_shard<'a>(
    shape: &Shape,
    shards: &'a [Shard],
    digests: &[Digest],
) -> Vec<(&'a Shard, Vec<Probe>)> {
    let mut sorted: Vec<(&Shard, Vec<Probe>)> =
        shards.iter().map(|shard| (shard, Vec::new())).collect();
    for probe in Probe::of(shape, digests) {
        let shard = of_line(shape, shards.len() as u32, probe.line);
        sorted[shard as usize].1.push(probe);
    }
    sorted.retain(|(_, probes)| !probes.is_empty());
    sorted
}

impl<T: ?Sized, H> SharedBloom<T, H> {
    /// As [`contains_batch`](crate::RemoteFilter::contains_batch), for keys that were digested
    /// elsewhere.
    pub async fn contains_digests(&self, digests: &[Digest]) -> Vec<Answer> {
        let mut answers = vec![Answer::Maybe; digests.len()];
        for (digests, answers) in digests.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let probes = by_shard(&self.plan.shape, &self.shards, digests);
            // Servers of a cluster are asked at the same time, a single one once.
            let pipelines = if self.server.is_cluster() {
                probes.into_iter().map(|one| vec![one]).collect()
            } else {
                vec![probes]
            };
            let found = join_all(pipelines.into_iter().map(|shards| self.ask_lines(shards))).await;
            for (key, answer) in found.into_iter().flatten() {
                answers[key] = answers[key].and(answer);
            }
        }
        answers
    }

    /// Asks one server for lines of some shards, and tells what they say of the keys.
    async fn ask_lines(&self, shards: Vec<(&Shard, Vec<Probe>)>) -> Vec<(usize, Answer)> {
        let Some((first, _)) = shards.first() else { return Vec::new() };
        let mut pipeline = Pipeline::new();
        let mut calls = Vec::new();
        for (shard, probes) in &shards {
            for probes in probes.chunks(CALL) {
                add_transaction(&mut pipeline, shard, probes);
                calls.push((*shard, probes, shard.pulse()));
            }
        }
        pipeline.add_command(History::question());
        let replies = self.server.ask(&first.key, pipeline).await;
        let mut answers = Vec::new();
        let mut rest: &[Value] = match &replies {
            Ok(replies) => replies,
            Err(_) => &[],
        };
        let history = match (&replies, rest.split_last()) {
            (Err(reason), _) => Err(*reason),
            (Ok(_), None) => Err(Reason::Garbage),
            (Ok(_), Some((last, _))) => History::of(last),
        };
        for (shard, probes, before) in calls {
            // MULTI, the header, the lines, EXEC.
            let (here, others) = rest.split_at(rest.len().min(probes.len() + 3));
            rest = others;
            let lines = history.and_then(|history| proven(shard, probes, here, before, history));
            match lines {
                Ok(lines) => answers.extend(told(probes, lines)),
                Err(Reason::OutOfMemory) => answers.extend(self.run_for_lines(shard, probes).await),
                Err(reason) => answers.extend(untold(probes, reason)),
            }
        }
        answers
    }

    /// As [`ask_lines`](Self::ask_lines), by a script: for servers that have no memory left for a transaction.
    async fn run_for_lines(&self, shard: &Shard, probes: &[Probe]) -> Vec<(usize, Answer)> {
        let mut call = READ.call(&shard.key);
        for probe in probes {
            let from = shard.byte(probe.line);
            call.arg(from).arg(from + 63);
        }
        let before = shard.pulse();
        let last = Some(History::question());
        let came = READ.run_all(&self.server, &shard.key, vec![call], last).await;
        let lines = came.as_ref().map_err(|reason| *reason).and_then(|came| {
            let [lines, history] = &came.replies[..] else { return Err(Reason::Garbage) };
            let lines = transaction(&[], lines, probes.len() + 1)?;
            accepted(shard, lines, before, History::of(history)?)
        });
        match lines {
            Ok(lines) => told(probes, lines).collect(),
            Err(reason) => untold(probes, reason).collect(),
        }
    }
}

/// What the replies to the header and to all lines say, when the header is proven.
fn told<'a>(
    probes: &'a [Probe],
    lines: &'a [Value],
) -> impl Iterator<Item = (usize, Answer)> + use<'a> {
    probes.iter().zip(&lines[1..]).map(|(probe, line)| (probe.key, probe.answer(line)))
}

fn untold(probes: &[Probe], reason: Reason) -> impl Iterator<Item = (usize, Answer)> + use<'_> {
    probes.iter().map(move |probe| (probe.key, Answer::Unknown(reason)))
}

impl Probe {
    /// What a reply to its GETRANGE says, when the header that came with it is proven.
    fn answer(&self, line: &Value) -> Answer {
        match bytes_of(line).map(<&[u8; 64]>::try_from) {
            Ok(Ok(line)) if self.is_in(line) => Answer::Maybe,
            Ok(Ok(_)) => Answer::Absent,
            Ok(Err(_)) => Answer::Unknown(Reason::Shrunken),
            Err(reason) => Answer::Unknown(reason),
        }
    }
}

/// The header and the lines of some probes, in one step.
fn add_transaction(pipeline: &mut Pipeline, shard: &Shard, probes: &[Probe]) {
    pipeline.add_command(command("MULTI"));
    let mut range = |from: u64, bytes: u64| {
        let mut get = command("GETRANGE");
        get.arg(&shard.key).arg(from).arg(from + bytes - 1);
        pipeline.add_command(get);
    };
    range(0, BYTES as u64);
    for probe in probes {
        range(shard.byte(probe.line), 64);
    }
    pipeline.add_command(command("EXEC"));
}

/// The replies to the header and to all lines, if the header is the one that was opened and is at home.
fn proven<'a>(
    shard: &Shard,
    probes: &[Probe],
    replies: &'a [Value],
    before: Pulse,
    history: History,
) -> Result<&'a [Value], Reason> {
    let (exec, queued) = replies.split_last().ok_or(Reason::Garbage)?;
    accepted(shard, transaction(queued, exec, probes.len() + 1)?, before, history)
}

/// The same for replies that are known to be those to the header and to the lines.
fn accepted<'a>(
    shard: &Shard,
    lines: &'a [Value],
    before: Pulse,
    history: History,
) -> Result<&'a [Value], Reason> {
    let head = lines.first().ok_or(Reason::Garbage)?;
    let pulse = prove(bytes_of(head)?, &shard.fixed)?;
    shard.accept(before, pulse, history)?;
    Ok(lines)
}
