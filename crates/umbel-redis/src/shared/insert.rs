//! Inserts: one script checks the header and the server, and sets the bits only if both are right.

use super::ask::{Probe, by_shard};
use super::script::INSERT;
use super::{CALL, Shard, SharedBloom};
use crate::answer::{Answer, Error, Reason};
use crate::connect::bytes_of;
use futures_util::future::join_all;
use redis::Cmd;
use umbel::Digest;

/// The number of keys that are sent together.
const BATCH: usize = 4096;

impl<T: ?Sized, H> SharedBloom<T, H> {
    /// As [`insert_batch`](crate::RemoteFilter::insert_batch), for digests that were computed elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if one of them was not acknowledged. Inserting all of them again is safe.
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

    /// Sets bits in one shard, and returns the answers from just before.
    async fn set_bits(
        &self,
        shard: &Shard,
        probes: Vec<Probe>,
    ) -> Result<Vec<(usize, Answer)>, Reason> {
        let per_line = self.plan.shape.probes_per_line();
        let calls = probes.chunks(CALL).map(|probes| call(shard, per_line, probes)).collect();
        let came = INSERT.run_all(&self.server, &shard.key, calls, None).await?;
        let mut answers = Vec::with_capacity(probes.len());
        for (probes, reply) in probes.chunks(CALL).zip(&came.replies) {
            let (pulse, fresh) = match shard.verdict(reply)? {
                (pulse, [fresh]) => (pulse, bytes_of(fresh)?),
                _ => return Err(Reason::Garbage),
            };
            if fresh.len() != probes.len() {
                return Err(Reason::Garbage);
            }
            let changes = pulse.changes + u64::from(fresh.contains(&b'1'));
            shard.remember(super::Pulse { changes, ..pulse });
            answers.extend(probes.iter().zip(fresh).map(|(probe, fresh)| {
                let answer = match fresh {
                    _ if !pulse.complete => Answer::Unknown(Reason::Incomplete),
                    b'1' => Answer::Absent,
                    // The bits may have been set by this call itself, before a connection broke.
                    _ if came.repeated => Answer::Unknown(Reason::Disconnected),
                    _ => Answer::Maybe,
                };
                (probe.key, answer)
            }));
        }
        Ok(answers)
    }
}

fn call(shard: &Shard, probes_per_line: u32, probes: &[Probe]) -> Cmd {
    let (seen, mut call) = (shard.pulse(), shard.call(&INSERT));
    call.arg(&seen.home.0[..]).arg(seen.changes).arg(probes_per_line);
    for probe in probes {
        let first = shard.byte(probe.line);
        for bit in probe.bits() {
            // Bit 0 of a byte is the highest on the server, and the lowest in a filter.
            let (byte, bit) = (first + u64::from(bit / 8), 7 - u64::from(bit % 8));
            call.arg(byte * 8 + bit);
        }
    }
    call
}
