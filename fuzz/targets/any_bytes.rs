//! Any bytes are a valid filter of some family or an error, with and without correct checksums. A filter that
//! is accepted works and returns its bytes.
#![no_main]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/umbel/tests/it/forge.rs"]
mod forge;
#[path = "../../crates/umbel/tests/it/opened.rs"]
mod opened;

use forge::{KERNELS, LENGTH, WORDS, field, seal, words_of};
use libfuzzer_sys::fuzz_target;
use opened::{Opened, use_up};

fuzz_target!(|data: &[u8]| {
    check(data);
    // The fuzzer does not guess checksums and sizes, so this writes the right ones.
    if data.len() >= WORDS {
        let mut bytes = data[..data.len() / 8 * 8].to_vec();
        bytes[..10].copy_from_slice(b"umbel\0\r\n\x01\0");
        let words = words_of(&bytes) as u64;
        bytes[LENGTH..LENGTH + 8].copy_from_slice(&words.to_le_bytes());
        seal(&mut bytes);
        check(&bytes);
        if words > 0 {
            announce(&mut bytes, words / 8);
            seal(&mut bytes);
            check(&bytes);
        }
    }
});

fn check(bytes: &[u8]) {
    if let Ok(opened) = Opened::from_bytes(bytes) {
        use_up(bytes, opened);
    }
}

/// Writes fields for the family of the bytes that match this number of words.
fn announce(bytes: &mut [u8], words: u64) {
    let (bits, choice) = (words * 64, u64::from(bytes[KERNELS]));
    let mut put = |number: usize, value: u64| {
        bytes[field(number)..field(number) + 8].copy_from_slice(&value.to_le_bytes());
    };
    let cells = |width: u64| (bits / width).saturating_sub(1) | 1;
    match choice % 8 {
        0 => put(1, cells(1)),
        1 => put(1, bits),
        2 => {
            put(1, cells(4));
            put(3, 4);
        }
        3 => {
            put(1, bits / 4);
            put(3, 4);
        }
        4 => put(5, words.saturating_sub(4)),
        5 => {
            put(0, cells(3));
            put(1, 3);
        }
        6 => {
            put(1, words / 16);
            put(3, 2);
        }
        _ => put(1, words.saturating_sub(1) * 64 / 32),
    }
}
