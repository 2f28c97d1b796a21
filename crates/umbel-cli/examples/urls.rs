//! Prints URLs, a share of which was printed before: the same ones for the same arguments, on every machine.
//!
//! ```text
//! cargo run --release -p umbel-cli --example urls -- [LINES] [SHARE]     2e6 lines and a share of 0.5 by default
//! ```
//!
//! Which lines are repeated, and of which earlier line, is random; how many are is exact.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

const WORDS: [&str; 16] = [
    "news", "shop", "blog", "user", "item", "tag", "archive", "image", "video", "search", "forum",
    "topic", "wiki", "help", "photo", "event",
];

/// Random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// A number that looks like none of its neighbours'; no two numbers have the same.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The URL with this number: some 50 bytes, most of them like those of others.
fn write_url(output: &mut impl Write, number: u64) -> io::Result<()> {
    let bits = mixed(number + 1);
    let word = |at: u32| WORDS[(bits >> at) as usize % WORDS.len()];
    let host = bits % 5000;
    writeln!(output, "https://www.{}{host}.example/{}/{}/{bits:x}", word(20), word(24), word(28))
}

fn print(lines: u64, share: f64) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut random = Random(1);
    let mut to_repeat = (lines as f64 * share) as u64;
    let mut new = 0;
    for left in (1..=lines).rev() {
        if new > 0 && random.below(left) < to_repeat {
            to_repeat -= 1;
            write_url(&mut output, random.below(new))?;
        } else {
            write_url(&mut output, new)?;
            new += 1;
        }
    }
    output.flush()
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: f64| match arguments.next() {
        Some(text) => text.parse().ok().filter(|number| (0.0..1e12).contains(number)),
        None => Some(default),
    };
    let (Some(lines), Some(share @ 0.0..=1.0)) = (number(2e6), number(0.5)) else {
        eprintln!("usage: urls [LINES] [SHARE], such as 2e7 0.5");
        return ExitCode::from(2);
    };
    match print(lines as u64, share) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urls: standard output: {error}");
            ExitCode::from(2)
        }
    }
}
