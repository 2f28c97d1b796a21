//! The checksum at the end of a DUMP payload: CRC-64 of Jones, reflected, from zero.

const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| (crc >> 1) ^ (POLYNOMIAL * (crc & 1)))
    })
}

/// Writes the correct checksum at the end of a payload.
pub(crate) fn seal(payload: &mut [u8]) {
    let at = payload.len() - 8;
    let crc = crc64(&payload[..at]);
    payload[at..].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn the_checksum_is_that_of_the_engines() {
    // The value in the self-test of Redis.
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}
