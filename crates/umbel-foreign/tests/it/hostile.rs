//! Bytes that no program wrote: cut off, flipped, or any at all. Every reader gives a filter or an error, and what it
//! accepts is asked and written without a panic.

use crate::cases;
use crate::recognised::all;
use crate::samples::bytes;
use proptest::prelude::*;

#[path = "readers.rs"]
mod readers;

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn cut_off_and_flipped_samples_are_refused_or_work(
        sample in 0..64_usize,
        keep in 0.0..=1.0_f64,
        flips in prop::collection::vec((0.0..1.0_f64, 0..8_u32), 0..4),
        early in any::<bool>(),
    ) {
        let samples = all();
        let (name, _) = samples[sample % samples.len()];
        let mut bytes = bytes(name);
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        // Most of what can go wrong is at the beginning or at the end.
        let reach = if early { bytes.len().min(80) } else { bytes.len() };
        for (place, bit) in flips {
            if reach > 0 {
                bytes[(reach as f64 * place) as usize] ^= 1 << bit;
            }
        }
        readers::every(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_work(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        readers::every(&bytes);
    }

    #[test]
    fn any_fields_with_as_many_bytes_as_they_announce_work(
        head in prop::collection::vec(any::<u8>(), 8),
        words in 1..40_u8,
        probes in 1..70_u8,
        fill in any::<u8>(),
    ) {
        // The headers of the simple formats, with lengths that are right.
        let body = vec![fill; usize::from(words) * 8];
        readers::every(&[&[1, probes, 0, 0, 0, words], &body[..]].concat());
        readers::every(&[&[0, 0, 0, probes, 0, 0, 0, words], &body[..]].concat());
        readers::every(&[&[0, 0, 0, 1, 0, 0, 0, probes, 0, 0, 0, words], &body[..]].concat());
        let seeded = [&[0, 0, 0, 2, 0, 0, 0, probes], &head[..4], &[0, 0, 0, words], &body];
        readers::every(&seeded.concat());
        let sketch = [&[4, 1, 21, 0, probes, 0, 0, 0], &head[..], &[words, 0, 0, 0, 0, 0, 0, 0]];
        readers::every(&[&sketch.concat()[..], &[255; 8], &body].concat());
        readers::every(&[&head[..], &[words, 0, 0, 0], &vec![fill; usize::from(words) * 3]].concat());
        readers::every(&[&vec![fill; usize::from(words) * 64][..], &[255, 0, probes % 32, 0, 0]].concat());
        readers::every(&[&body[..], &body, &[254, probes, words, 0, 0]].concat());
    }
}
