//! The floor for all look-ups: random cache lines, read as fast as the memory delivers them.
//!
//! ```text
//!     for each key:
//!         sum += one word of line[ahead[i % 64]]
//!         ahead[i % 64] = mix(key) * lines / 2^64, and ask for that line
//! ```
//!
//! Keys are read, mixed and scaled to a line as a blocked Bloom filter does in a batch, but no bit is tested
//! and no answer is stored. The lines are the memory of such a filter, so they begin on a cache line and are in
//! huge pages wherever the filter's are. No filter that waits for one line per key can be faster.

use crate::{
    Failure,
    args::FloorArgs,
    keys::Key,
    machine::Machine,
    number::short,
    report::{self, Columns},
    stats::Quartiles,
    threads::{Readable, crew},
};
use serde::Serialize;
use std::hint::black_box;
use umbel::{BlockedBloomFilter, Digest, InvalidShape, Portable, blocked::Shape};

/// Its name as a peer.
pub(crate) const NAME: &str = "prefetched random lines";

/// The number of lines that are prefetched before the first one is read.
const AHEAD: usize = 64;

/// The number of lines that all threads together read in one round.
const READS: u64 = 20_000_000;

/// Lines to be read at random.
#[derive(Debug)]
pub(crate) struct Lines(BlockedBloomFilter<u64>);

impl Lines {
    /// The lines of a blocked filter for `items` keys at `rate`.
    pub(crate) fn of_filter(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::of_shape(Shape::for_rate(items, rate)?)
    }

    /// `bytes`, rounded up to whole lines.
    fn of_bytes(bytes: u64) -> Result<Self, InvalidShape> {
        Self::of_shape(Shape::with(0, bytes.div_ceil(64), 1, 1)?)
    }

    fn of_shape(shape: Shape) -> Result<Self, InvalidShape> {
        let mut memory = BlockedBloomFilter::with(shape, Portable::default())?;
        // Writes every word: pages that were never written all map to the same page of zeros.
        black_box(&mut memory).clear();
        Ok(Self(memory))
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

impl Readable for Lines {
    fn look_up(&self, keys: &[u64]) -> u64 {
        sum_lines(self.0.words().as_chunks().0, keys)
    }
}

/// The sum of the first words of the lines of `keys`.
#[inline(never)]
fn sum_lines(lines: &[[u64; 8]], keys: &[u64]) -> u64 {
    let ask = |key: &u64| {
        let line = place(*key, lines.len());
        prefetch(lines, line);
        line
    };
    let (first, rest) = keys.split_at(keys.len().min(AHEAD));
    let mut ahead = [0; AHEAD];
    for (line, key) in ahead.iter_mut().zip(first) {
        *line = ask(key);
    }
    let mut sum = 0u64;
    for keys in rest.chunks(AHEAD) {
        for (line, key) in ahead.iter_mut().zip(keys) {
            sum = sum.wrapping_add(lines[*line][0]);
            *line = ask(key);
        }
    }
    ahead[..first.len()].iter().fold(sum, |sum, line| sum.wrapping_add(lines[*line][0]))
}

/// The line of `key`, by the mixing and the scaling of a blocked filter.
#[inline]
fn place(key: u64, lines: usize) -> usize {
    ((u128::from(Digest::mixed(key).bits()) * lines as u128) >> 64) as usize
}

/// Prefetches `lines[index]`. Where there is no such hint it does nothing, and the result is not a floor.
#[inline(always)]
fn prefetch(lines: &[[u64; 8]], index: usize) {
    let line = lines.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that never faults, whatever the address; x86-64 has SSE.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T1 }>(line.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `prfm` is a hint that never faults, whatever the address; it changes no register.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// Nanoseconds per line, for all threads together.
fn measure(lines: &Lines, keys: &[u64], threads: usize, rounds: usize) -> Quartiles {
    let pass = || crew(keys, threads, |part| black_box(lines).look_up(part));
    // The first round is not counted.
    pass();
    let times: Vec<f64> = (0..rounds).map(|_| pass()).collect();
    Quartiles::of(&times)
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    clock: &'static str,
    machine: &'a Machine,
    bytes: u64,
    threads: usize,
    rounds: usize,
    reads: u64,
    /// Nanoseconds per line.
    nanos: Quartiles,
}

/// `umbel-bench floor`.
pub(crate) fn run(args: FloorArgs) -> Result<(), Failure> {
    let FloorArgs { threads, rounds, output, .. } = args;
    let lines = match args.bytes {
        Some(bytes) => Lines::of_bytes(bytes),
        None => Lines::of_filter(100_000_000, 0.01),
    }?;
    let keys: Vec<u64> = (0..READS).map(u64::nth).collect();
    let nanos = measure(&lines, &keys, threads, rounds);
    let (bytes, machine) = (lines.bytes(), &Machine::new(output.date));
    if output.json {
        let (mode, clock, reads) = ("floor", "wall time", READS);
        return report::json(&Report {
            mode,
            clock,
            machine,
            bytes,
            threads,
            rounds,
            reads,
            nanos,
        });
    }
    report::line(&machine.summary())?;
    report::line(&format!(
        "{NAME}: {bytes} bytes, {threads} threads, {rounds} rounds of {} lines, wall time",
        short(READS)
    ))?;
    let columns = Columns::new(&["ns a line", "quartiles"]).widths(&[9, 12]);
    report::line(&columns.header())?;
    report::line(&columns.row(&[format!("{:.2}", nanos.median), report::quartiles(&nanos)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_reads_its_line_once() {
        let lines: Vec<[u64; 8]> = (0..97).map(|line| [1 << (line % 50); 8]).collect();
        for count in [0, 1, 63, 64, 65, 128, 200, 1_000] {
            let keys: Vec<u64> = (0..count).map(u64::nth).collect();
            let one_by_one: u64 = keys.iter().map(|key| lines[place(*key, 97)][0]).sum();
            assert_eq!(sum_lines(&lines, &keys), one_by_one, "{count} keys");
        }
    }

    #[test]
    fn keys_spread_over_all_lines() {
        let mut seen = [false; 64];
        (0..10_000).for_each(|number| seen[place(u64::nth(number), 64)] = true);
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn one_thread_and_two_read_a_small_buffer() {
        let lines = Lines::of_bytes(1_000_000).unwrap();
        assert_eq!(lines.bytes(), 1_000_000);
        let keys: Vec<u64> = (0..10_001).map(u64::nth).collect();
        for threads in [1, 2] {
            assert!(measure(&lines, &keys, threads, 3).median > 0.0);
        }
    }

    #[test]
    fn it_has_the_lines_of_the_filter_it_is_held_against() {
        let filter = BlockedBloomFilter::<u64>::new(10_000, 0.01);
        let lines = Lines::of_filter(10_000, 0.01).unwrap();
        assert_eq!(lines.bytes(), filter.bytes());
        assert_eq!(Lines::of_bytes(65).unwrap().bytes(), 128);
    }
}
