//! Prints each line of standard input the first time it is seen, in bounded memory.
//!
//! ```text
//! cargo run --release --example dedup -- [CAPACITY] [ERR_RATE] < lines > lines-once
//! ```
//!
//! A line seen before is never printed again. A new line is lost with the probability ERR_RATE at
//! most, as long as there are no more than CAPACITY different ones; standard error tells how many
//! that may have been.

use std::error::Error;
use std::io::{self, BufRead, BufWriter, ErrorKind, Write};
use umbel::BloomFilter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let capacity: u64 = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let err_rate: f64 = arguments.next().map_or(Ok(1e-6), |text| text.parse())?;
    let mut seen = BloomFilter::<[u8]>::try_new(capacity, err_rate)?;

    let (mut input, mut output) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let (mut line, mut lines, mut printed) = (Vec::new(), 0_u64, 0_u64);
    while input.read_until(b'\n', &mut line)? > 0 {
        lines += 1;
        if seen.insert(line.strip_suffix(b"\n").unwrap_or(&line)) {
            printed += 1;
            match output.write_all(&line) {
                // Whoever reads has seen enough, as `head` does.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                result => result?,
            }
        }
        line.clear();
    }
    output.flush()?;
    eprintln!(
        "{lines} lines, {printed} printed, {} KiB, about {:.3} new lines lost",
        seen.bytes() / 1024,
        seen.expected_rate() * printed as f64,
    );
    Ok(())
}
