//! The preview of XXH3 that RocksDB has frozen (xxHash 0.7.2, by Yann Collet, BSD 2-clause), with seed 0. Its
//! hashes differ from those of XXH3.

const P32: [u64; 3] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d];
const P64: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 4].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}

/// Both halves of a product, XORed.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn avalanche(h: u64) -> u64 {
    let h = (h ^ h >> 37).wrapping_mul(P64[2]);
    h ^ h >> 32
}

/// The hash of a key.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let len = key.len();
    let mix = |at: usize, secret: usize| {
        fold(
            u64_at(key, at) ^ u64_at(&SECRET, secret),
            u64_at(key, at + 8) ^ u64_at(&SECRET, secret + 8),
        )
    };
    let sum = |acc: u64, mixed: u64| acc.wrapping_add(mixed);
    match len {
        // This constant is RocksDB's own.
        0 => fold(u64_at(&SECRET, 0), P64[1]),
        1..=3 => {
            let [first, middle, last] = [key[0], key[len >> 1], key[len - 1]].map(u64::from);
            let all = first | middle << 8 | last << 16 | (len as u64) << 24;
            avalanche((all ^ u32_at(&SECRET, 0)).wrapping_mul(P64[0]))
        }
        4..=8 => {
            let word = u32_at(key, 0) | u32_at(key, len - 4) << 32;
            let keyed = word ^ u64_at(&SECRET, 0);
            let mixed = (keyed ^ keyed >> 51).wrapping_mul(P32[0]).wrapping_add(len as u64);
            avalanche((mixed ^ mixed >> 47).wrapping_mul(P64[1]))
        }
        9..=16 => {
            let low = u64_at(key, 0) ^ u64_at(&SECRET, 0);
            let high = u64_at(key, len - 8) ^ u64_at(&SECRET, 8);
            let all = (len as u64).wrapping_add(low).wrapping_add(high);
            avalanche(all.wrapping_add(fold(low, high)))
        }
        17..=128 => {
            // From both ends to the middle, 16 bytes each.
            let pairs = (len - 1) / 32;
            let ends = (0..=pairs)
                .flat_map(|i| [mix(16 * i, 32 * i), mix(len - 16 * (i + 1), 32 * i + 16)]);
            avalanche(ends.fold((len as u64).wrapping_mul(P64[0]), sum))
        }
        129..=240 => {
            let start = (len as u64).wrapping_mul(P64[0]);
            let first = avalanche((0..8).map(|i| mix(16 * i, 16 * i)).fold(start, sum));
            let rest = (8..len / 16).map(|i| mix(16 * i, 16 * (i - 8) + 3)).fold(first, sum);
            avalanche(sum(rest, mix(len - 16, 136 - 17)))
        }
        _ => long(key),
    }
}

/// More than 240 bytes: stripes of 64 bytes, in blocks of 16.
fn long(key: &[u8]) -> u64 {
    let mut acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]];
    let accumulate = |acc: &mut [u64; 8], stripe: &[u8], secret: usize| {
        for (lane, acc) in acc.iter_mut().enumerate() {
            let data = u64_at(stripe, 8 * lane);
            let keyed = data ^ u64_at(&SECRET, secret + 8 * lane);
            let product = (keyed & 0xffff_ffff) * (keyed >> 32);
            *acc = acc.wrapping_add(data).wrapping_add(product);
        }
    };
    for block in key.chunks(1_024) {
        for (number, stripe) in block.chunks_exact(64).enumerate() {
            accumulate(&mut acc, stripe, 8 * number);
        }
        if block.len() == 1_024 {
            for (lane, acc) in acc.iter_mut().enumerate() {
                *acc = (*acc ^ *acc >> 47 ^ u64_at(&SECRET, 128 + 8 * lane)).wrapping_mul(P32[0]);
            }
        }
    }
    if !key.len().is_multiple_of(64) {
        accumulate(&mut acc, &key[key.len() - 64..], 192 - 64 - 7);
    }
    let merged = (0..4).map(|pair| {
        fold(
            acc[2 * pair] ^ u64_at(&SECRET, 11 + 16 * pair),
            acc[2 * pair + 1] ^ u64_at(&SECRET, 11 + 16 * pair + 8),
        )
    });
    let start = (key.len() as u64).wrapping_mul(P64[0]);
    avalanche(merged.fold(start, u64::wrapping_add))
}
