//! Look-ups: reading lines together with the header that proves them.
//!
//! ```text
//!     WATCH key                             has anybody touched it from here ...
//!     GETRANGE key 0 127                      whose bits are these?
//!     GETRANGE key a a+63                     one line
//!     ...                                     at most 500 of them
//!     MULTI EXEC                            ... to here? then EXEC says nil
//!     INFO replication                      and has this server had them all along?
//! ```
//!
//! A line counts only if the header that was read with it is identical to the one that was opened, is at home
//! on the server that answered, and is not older than one seen before. INFO may come after EXEC: a primary that
//! has an id now has had it since before the filter was at home there (see the module `history`).
//!
//! MULTI and EXEC around all commands would make them atomic, but queueing a command costs a quarter more of
//! the server's time. So the commands are watched instead: other clients are not excluded, and EXEC shows
//! whether one of them wrote. A bit that was read as set stays valid even then. Only keys with a bit that was
//! read as 0 are read again, between MULTI and EXEC.

use super::header::{BYTES, prove};
use super::shards::of_line;
use super::{CALL, Shard, SharedBloom};
use crate::answer::{Answer, Reason};
use crate::connect::{bytes_of, command, fine, transaction};
use crate::history::History;
use futures_util::future::join_all;
use redis::{Pipeline, Value};
use umbel::Digest;
use umbel::blocked::Shape;

/// The number of keys that are sent together.
const BATCH: usize = 4096;
/// The number of lines that are watched together. They block no other client, but the more lines are watched,
/// the likelier a concurrent write is.
const WATCHED: usize = 500;

/// The bits of a key in one of its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// The index of the key in its batch.
    pub(super) key: usize,
    pub(super) line: u64,
    /// The positions of its bits in the line. The shape determines their number.
    bits: [u16; 8],
    count: usize,
}

impl Probe {
    /// The probes of some keys.
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

    /// Whether a line has all of the bits.
    fn is_in(&self, line: &[u8; 64]) -> bool {
        self.bits().iter().all(|bit| line[usize::from(bit / 8)] >> (bit % 8) & 1 == 1)
    }
}

/// Probes grouped by their shard.
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

/// How lines and their header are read atomically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By WATCH: a concurrent write is detected afterwards.
    Watched,
    /// Between MULTI and EXEC: a concurrent write is impossible.
    Queued,
}

/// What a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Keys: only a complete filter can answer.
    Complete,
    /// Bits, whether or not the filter is complete.
    Bits,
}

/// The result of a read.
#[derive(Default)]
struct Asked<'a> {
    answers: Vec<(usize, Answer)>,
    /// Probes without a result, because another client wrote.
    again: Vec<(&'a Shard, Vec<Probe>)>,
}

impl<T: ?Sized, H> SharedBloom<T, H> {
    /// As [`contains_batch`](crate::RemoteFilter::contains_batch), for digests that were computed elsewhere.
    pub async fn contains_digests(&self, digests: &[Digest]) -> Vec<Answer> {
        self.ask_digests(digests, Trust::Complete).await
    }

    /// The number of these keys that the filter does not contain, complete or not. A client that fills a filter
    /// can verify with this that every key arrived, before it calls [`complete`](Self::complete).
    ///
    /// # Errors
    ///
    /// The reason why the filter cannot tell.
    pub async fn missing_digests(&self, digests: &[Digest]) -> Result<u64, Reason> {
        let mut missing = 0;
        for answer in self.ask_digests(digests, Trust::Bits).await {
            match answer {
                Answer::Absent => missing += 1,
                Answer::Maybe => {}
                Answer::Unknown(reason) => return Err(reason),
            }
        }
        Ok(missing)
    }

    async fn ask_digests(&self, digests: &[Digest], trust: Trust) -> Vec<Answer> {
        let mut answers = vec![Answer::Maybe; digests.len()];
        for (digests, answers) in digests.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let probes = by_shard(&self.plan.shape, &self.shards, digests);
            let first = self.ask_all(probes, Way::Watched, trust).await;
            let second = self.ask_all(first.again, Way::Queued, trust).await;
            for (key, answer) in first.answers.into_iter().chain(second.answers) {
                answers[key] = answers[key].and(answer);
            }
        }
        answers
    }

    /// Sends the reads to all servers. Those of a cluster run concurrently.
    async fn ask_all<'a>(
        &self,
        probes: Vec<(&'a Shard, Vec<Probe>)>,
        way: Way,
        trust: Trust,
    ) -> Asked<'a> {
        let pipelines = if self.server.is_cluster() {
            probes.into_iter().map(|one| vec![one]).collect()
        } else {
            vec![probes]
        };
        let mut all = Asked::default();
        for asked in
            join_all(pipelines.into_iter().map(|shards| self.ask_lines(shards, way, trust))).await
        {
            all.answers.extend(asked.answers);
            all.again.extend(asked.again);
        }
        all
    }

    /// Reads lines of some shards from one server, and records the answers of the keys.
    async fn ask_lines<'a>(
        &self,
        shards: Vec<(&'a Shard, Vec<Probe>)>,
        way: Way,
        trust: Trust,
    ) -> Asked<'a> {
        let mut asked = Asked::default();
        let Some((first, _)) = shards.first() else { return asked };
        let mut pipeline = Pipeline::new();
        let mut calls = Vec::new();
        for (shard, probes) in &shards {
            for probes in probes.chunks(way.most()) {
                way.add(&mut pipeline, shard, probes);
                calls.push((*shard, probes, shard.pulse()));
            }
        }
        pipeline.add_command(History::question());
        let replies = self.server.ask(&first.key, pipeline).await;
        let mut rest: &[Value] = replies.as_deref().unwrap_or_default();
        let history = match (&replies, rest.split_last()) {
            (Err(reason), _) => Err(*reason),
            (Ok(_), None) => Err(Reason::Garbage),
            (Ok(_), Some((last, _))) => History::of(last),
        };
        for (shard, probes, before) in calls {
            let (here, others) = rest.split_at(rest.len().min(way.replies(probes.len())));
            rest = others;
            let lines = history.and_then(|history| {
                let (lines, alone) = way.lines(here, probes.len() + 1)?;
                let head = lines.first().ok_or(Reason::Garbage)?;
                let pulse = prove(bytes_of(head)?, &shard.fixed)?;
                shard.accept(before, pulse, history)?;
                match trust {
                    Trust::Complete if !pulse.complete => Err(Reason::Incomplete),
                    _ => Ok((lines, alone)),
                }
            });
            let mut again = Vec::new();
            asked.answers.extend(probes.iter().enumerate().filter_map(|(at, probe)| {
                let answer = match lines {
                    Ok((lines, alone)) => match probe.answer(&lines[at + 1]) {
                        Answer::Absent if !alone => {
                            again.push(*probe);
                            return None;
                        }
                        answer => answer,
                    },
                    Err(reason) => Answer::Unknown(reason),
                };
                Some((probe.key, answer))
            }));
            if !again.is_empty() {
                asked.again.push((shard, again));
            }
        }
        asked
    }
}

impl Way {
    /// The maximum number of lines per read.
    fn most(self) -> usize {
        match self {
            Self::Watched => WATCHED,
            Self::Queued => CALL,
        }
    }

    /// The header and the lines of some probes.
    fn add(self, pipeline: &mut Pipeline, shard: &Shard, probes: &[Probe]) {
        match self {
            Self::Watched => {
                let mut watch = command("WATCH");
                watch.arg(&shard.key);
                pipeline.add_command(watch);
            }
            Self::Queued => _ = pipeline.add_command(command("MULTI")),
        }
        let mut range = |from: u64, bytes: u64| {
            let mut get = command("GETRANGE");
            get.arg(&shard.key).arg(from).arg(from + bytes - 1);
            pipeline.add_command(get);
        };
        range(0, BYTES as u64);
        for probe in probes {
            range(shard.byte(probe.line), 64);
        }
        if self == Self::Watched {
            pipeline.add_command(command("MULTI"));
        }
        pipeline.add_command(command("EXEC"));
    }

    /// The number of replies to a read of this number of lines.
    fn replies(self, lines: usize) -> usize {
        match self {
            // WATCH, the header, the lines, MULTI, EXEC.
            Self::Watched => lines + 4,
            Self::Queued => lines + 3,
        }
    }

    /// The replies to the header and to the `asked` lines, and whether no other client wrote in between.
    fn lines(self, replies: &[Value], asked: usize) -> Result<(&[Value], bool), Reason> {
        let (exec, before) = replies.split_last().ok_or(Reason::Garbage)?;
        if self == Self::Queued {
            return Ok((transaction(before, exec, asked)?, true));
        }
        let [watch, lines @ .., multi] = before else { return Err(Reason::Garbage) };
        for reply in [watch, multi] {
            if *reply != Value::Okay {
                return Err(fine(reply.clone()).err().unwrap_or(Reason::Garbage));
            }
        }
        match exec {
            Value::Nil => Ok((lines, false)),
            exec => transaction(&[], exec, 0).map(|_| (lines, true)),
        }
    }
}

impl Probe {
    /// The answer in a reply to a GETRANGE, after its header was proven.
    fn answer(&self, line: &Value) -> Answer {
        match bytes_of(line).map(<&[u8; 64]>::try_from) {
            Ok(Ok(line)) if self.is_in(line) => Answer::Maybe,
            Ok(Ok(_)) => Answer::Absent,
            Ok(Err(_)) => Answer::Unknown(Reason::Shrunken),
            Err(reason) => Answer::Unknown(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(bytes: &[u8]) -> Value {
        Value::BulkString(bytes.to_vec())
    }

    #[test]
    fn lines_are_taken_for_what_they_are_only_if_nobody_came() {
        let (head, line) = (bulk(b"head"), bulk(b"line"));
        let came = |exec: Value| [Value::Okay, head.clone(), line.clone(), Value::Okay, exec];
        let lines = [head.clone(), line.clone()];
        let alone = came(Value::Array(Vec::new()));
        assert_eq!(Way::Watched.lines(&alone, 2), Ok((&lines[..], true)));
        assert_eq!(Way::Watched.lines(&came(Value::Nil), 2), Ok((&lines[..], false)));
        for exec in [Value::Okay, Value::Int(0), Value::Array(vec![Value::Nil])] {
            assert_eq!(Way::Watched.lines(&came(exec), 2), Err(Reason::Garbage));
        }
        assert_eq!(Way::Watched.lines(&[], 2), Err(Reason::Garbage));
        let mut unwatched = alone.clone();
        unwatched[0] = Value::Nil;
        assert_eq!(Way::Watched.lines(&unwatched, 2), Err(Reason::Garbage));
        let queued = Value::SimpleString("QUEUED".into());
        let all = [Value::Okay, queued.clone(), queued, Value::Array(lines.to_vec())];
        assert_eq!(Way::Queued.lines(&all, 2), Ok((&lines[..], true)));
        assert_eq!(Way::Queued.lines(&all, 3), Err(Reason::Garbage));
        for way in [Way::Watched, Way::Queued] {
            let replies = if way == Way::Watched { alone.len() } else { all.len() };
            assert_eq!(way.replies(1), replies);
        }
    }

    #[test]
    fn a_line_answers_for_the_bits_of_its_key() {
        let probe = Probe { key: 0, line: 9, bits: [0, 9, 511, 0, 0, 0, 0, 0], count: 3 };
        let mut line = [0; 64];
        (line[0], line[1]) = (1, 2);
        assert_eq!(probe.answer(&bulk(&line)), Answer::Absent);
        line[63] = 0x80;
        assert_eq!(probe.answer(&bulk(&line)), Answer::Maybe);
        assert_eq!(probe.answer(&bulk(&line[1..])), Answer::Unknown(Reason::Shrunken));
        assert_eq!(probe.answer(&Value::Int(0)), Answer::Unknown(Reason::Garbage));
    }
}
