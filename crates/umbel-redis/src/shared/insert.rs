//! Inserting: one script sees the header and sets the bits.

use super::ask::{Probe, by_shard};
use super::header::prove;
use super::script::INSERT;
use super::{CALL, Shard, SharedBloom};
use crate::answer::{Answer, Error, Reason};
use crate::connect::{bytes_of, fine};
use crate::history::History;
use futures_util::future::join_all;
use redis::{Cmd, Value};
use umbel::Digest;

/// Keys that are sent before the next ones.
const BATCH: usize = 4096;

impl<T: ?Sized, H> SharedBloom<T, H> {
    /// As [`insert_batch`](crate::RemoteFilter::insert_batch), for keys that were digested elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if one of them was not acknowledged; all may be inserted again.
    pub async fn insert_digests(&self, digests: &[Digest]) -> Result<Vec<Answer>, Error> {
        let mut answers = vec![Answer::Maybe; digests.len()];
        for (digests, answers) in digests.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let shards = by_shard(&self.plan.shape, &self.shards, digests);
            let inserted = shards.into_iter().map(|(shard, probes)| self.set_bits(shard, probes));
            for told in join_all(inserted).await {
                for (key, answer) in told? {
                    answers[key] = answers[key].and(answer);
                }
            }
        }
        Ok(answers)
    }

    /// Sets bits in one shard, and tells what would have been said of the keys before.
    async fn set_bits(
        &self,
        shard: &Shard,
        probes: Vec<Probe>,
    ) -> Result<Vec<(usize, Answer)>, Reason> {
        let per_line = self.plan.shape.probes_per_line();
        let calls = probes.chunks(CALL).map(|probes| call(shard, per_line, probes)).collect();
        let before = shard.pulse();
        let last = Some(History::question());
        let came = INSERT.run_all(&self.server, &shard.key, calls, last).await?;
        let (last, replies) = came.replies.split_last().ok_or(Reason::Garbage)?;
        let history = History::of(last);
        let mut answers = Vec::with_capacity(probes.len());
        for (probes, reply) in probes.chunks(CALL).zip(replies) {
            let (head, fresh) = done(shard, reply, probes.len())?;
            let pulse = prove(head, &shard.fixed)?;
            // The bits are set, whatever can be said of what was there before.
            let sure = history.and_then(|history| shard.accept(before, pulse, history));
            if fresh.contains(&b'1') && sure.is_ok() {
                shard.remember(super::Pulse { changes: pulse.changes + 1, ..pulse });
            }
            answers.extend(probes.iter().zip(fresh).map(|(probe, fresh)| {
                let answer = match (sure, fresh) {
                    (Err(reason), _) => Answer::Unknown(reason),
                    (Ok(()), b'1') => Answer::Absent,
                    // Perhaps it was this very call that set them, before a connection broke.
                    (Ok(()), _) if came.repeated => Answer::Unknown(Reason::Disconnected),
                    (Ok(()), _) => Answer::Maybe,
                };
                (probe.key, answer)
            }));
        }
        Ok(answers)
    }
}

fn call(shard: &Shard, probes_per_line: u32, probes: &[Probe]) -> Cmd {
    let mut call = INSERT.call(&shard.key);
    call.arg(&shard.fixed[..]).arg(shard.bytes()).arg(probes_per_line);
    for probe in probes {
        let first = shard.byte(probe.line);
        for bit in probe.bits() {
            // The first bit of a byte is its highest to the server, and its lowest in a filter.
            let (byte, bit) = (first + u64::from(bit / 8), 7 - u64::from(bit % 8));
            call.arg(byte * 8 + bit);
        }
    }
    call
}

/// The header that the script saw, and for each line whether one of its bits was new.
fn done<'a>(shard: &Shard, reply: &'a Value, lines: usize) -> Result<(&'a [u8], &'a [u8]), Reason> {
    match reply {
        Value::Array(parts) => match &parts[..] {
            [head, fresh] => {
                let (head, fresh) = (bytes_of(head)?, bytes_of(fresh)?);
                if fresh.len() == lines { Ok((head, fresh)) } else { Err(Reason::Garbage) }
            }
            // The script saw another header, or a string of another length behind the right one.
            [head] => Err(prove(bytes_of(head)?, &shard.fixed).err().unwrap_or(Reason::Shrunken)),
            _ => Err(Reason::Garbage),
        },
        other => Err(fine(other.clone()).err().unwrap_or(Reason::Garbage)),
    }
}
