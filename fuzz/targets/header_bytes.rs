//! Any header is refused or gives a filter: with the number of words that it announces, all of them zero,
//! through a stream, and with no more memory than the limit.
#![no_main]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/umbel/tests/it/forge.rs"]
mod forge;
#[path = "../../crates/umbel/tests/it/opened.rs"]
mod opened;

use forge::{WORDS, seal};
use libfuzzer_sys::fuzz_target;
use opened::{Opened, use_up};
use umbel::any::AnyFilter;
use umbel::format::{OpenError, Opening};
use umbel::{InvalidBytes, Keyed};

const LIMIT: u64 = 1 << 14;

fuzz_target!(|data: &[u8]| {
    let mut header = [0; WORDS];
    let len = data.len().min(WORDS - 18);
    header[..10].copy_from_slice(b"umbel\0\r\n\x01\0");
    header[10..10 + len].copy_from_slice(&data[..len]);
    seal(&mut header);
    let Err(error) = AnyFilter::from_reader_as(&header[..], Opening::new().limit(LIMIT)) else {
        return use_up(&header, Opened::from_bytes(&header).unwrap());
    };
    let _ = AnyFilter::from_bytes_with_secret(&header, Keyed::new([7; 16]));
    if let OpenError::Invalid(InvalidBytes::Length { expected, .. }) = error {
        // The bytes have the length that the header announces, up to the limit.
        let mut bytes = header.to_vec();
        bytes.resize(expected as usize, 0);
        seal(&mut bytes);
        if let Ok(opened) = Opened::from_bytes(&bytes) {
            use_up(&bytes, opened);
            assert!(AnyFilter::from_reader(&bytes[..]).is_ok());
        }
    }
});
