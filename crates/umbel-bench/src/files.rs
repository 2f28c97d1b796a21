//! Filters in files: loading one against reading and checksumming it, and the time until a mapped one answers.

use crate::{Failure, args::FilesArgs, machine::Machine, report, stats::Quartiles};
use std::{fs, hint::black_box, io::Read, path::Path, time::Instant};
use twox_hash::XxHash3_64;
use umbel::{BlockedBloomFilter, Saved, blocked::Shape};

/// The limit for loading, relative to reading and checksumming, both into fresh memory.
const LOAD: f64 = 1.0 / 0.7;
/// The limit for the first answer of a mapped filter, in milliseconds.
const ANSWER: f64 = 5.0;

/// `umbel-bench files`. Returns whether the bars were met.
pub(crate) fn run(args: FilesArgs) -> Result<bool, Failure> {
    report::line(&Machine::new(args.output.date).summary())?;
    let directory = std::env::temp_dir().join(format!("umbel-bench-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let measured = measure(&directory.join("filter.umbel"), args.bytes, args.rounds);
    fs::remove_dir_all(&directory)?;
    measured
}

fn measure(path: &Path, bytes: u64, rounds: usize) -> Result<bool, Failure> {
    let mut filter =
        BlockedBloomFilter::<u64>::with(Shape::with(1, bytes / 64, 1, 6)?, Default::default())?;
    filter.extend(0..bytes / 64);
    let start = Instant::now();
    filter.save(path)?;
    let gigabytes = bytes as f64 / 1e9;
    let save = gigabytes / start.elapsed().as_secs_f64();
    report::line(&format!("{bytes} bytes of words; saved, synced: {save:.2} GB/s"))?;
    let (mut whole, mut streamed, mut loads, mut answers) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        let read = millis(|| read_whole(path))?;
        let stream = millis(|| read_through_a_buffer(path))?;
        let load = millis(|| Ok(BlockedBloomFilter::<u64>::load(path)?.contains(&1).into()))?;
        whole.push(load / read);
        streamed.push(load / stream);
        loads.push(gigabytes / load * 1e3);
        answers.push(millis(|| first_answer(path))?);
    }
    print("load: GB/s", &loads)?;
    let load = print("load / reading it into memory and checksumming it", &whole)?;
    print("load / reading it through a buffer and checksumming it", &streamed)?;
    let answer = print("map and first answer: milliseconds", &answers)?;
    let met = load <= LOAD && answer <= ANSWER;
    let verdict = if met { "yes" } else { "NO" };
    report::line(&format!("at most {LOAD:.2}, and {ANSWER} milliseconds: {verdict}"))?;
    Ok(met)
}

/// The wall time of `work`.
fn millis(work: impl FnOnce() -> Result<u64, Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn read_whole(path: &Path) -> Result<u64, Failure> {
    Ok(fs::read(path)?.chunks(8 << 10).map(XxHash3_64::oneshot).fold(0, |sum, one| sum ^ one))
}

fn read_through_a_buffer(path: &Path) -> Result<u64, Failure> {
    let (mut file, mut buffer, mut sum) = (fs::File::open(path)?, vec![0; 256 << 10], 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(sum);
        }
        sum ^=
            buffer[..read].chunks(8 << 10).map(XxHash3_64::oneshot).fold(0, |sum, one| sum ^ one);
    }
}

#[allow(unsafe_code, reason = "a mapping takes a promise")]
fn first_answer(path: &Path) -> Result<u64, Failure> {
    // SAFETY: the file is in a directory of this process alone, which does not change it.
    let mapped = unsafe { BlockedBloomFilter::<u64>::map(path)? };
    Ok(mapped.contains(&1).into())
}

fn print(what: &str, sample: &[f64]) -> Result<f64, Failure> {
    let quartiles = Quartiles::of(sample);
    let around = report::quartiles(&quartiles);
    report::line(&format!("{what:<60} {:.3}  {around}", quartiles.median))?;
    Ok(quartiles.median)
}
