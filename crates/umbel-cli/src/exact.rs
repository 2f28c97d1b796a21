//! What `dedup --exact` keeps: 128 bits of every key, under a secret; and their file.
//!
//! ```text
//! 0  "umbelx\r\n"   8  version 1, zeros   16  secret   32  how many   40  zeros   48  check   64  digests ...
//! ```
//!
//! Numbers are little-endian. The check is SipHash-1-3-128 under the secret of all bytes before it and of
//! all digests, so a file that was cut, changed or mixed up is refused.

use anyhow::{Context, Result, bail};
use siphasher::sip128::SipHasher13;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufReader, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"umbelx\r\n";
const VERSION: u8 = 1;
const SECRET: usize = 16;
const COUNT: usize = 32;
const CHECK: usize = 48;
const HEADER: usize = 64;

/// A set of keys that takes one for another once in 2^128.
pub(crate) struct Exact {
    digests: HashSet<u128, BuildHasherDefault<Taken>>,
    hasher: SipHasher13,
    secret: [u8; 16],
}

/// A hasher for what is one already.
#[derive(Default)]
struct Taken(u64);

impl Hasher for Taken {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are of 128 bits")
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Exact {
    pub(crate) fn new() -> Self {
        Self::with(*crate::secret::fresh().secret())
    }

    fn with(secret: [u8; 16]) -> Self {
        let hasher = SipHasher13::new_with_key(&secret);
        Self { digests: HashSet::default(), hasher, secret }
    }

    pub(crate) fn digest(&self, key: &[u8]) -> u128 {
        self.hasher.hash(key).as_u128()
    }

    /// Whether it is seen for the first time.
    pub(crate) fn insert(&mut self, digest: u128) -> bool {
        self.digests.insert(digest)
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.digests.capacity() as u64 * 17
    }

    /// Whether a file begins as one that [`write`](Self::write) wrote.
    pub(crate) fn is_in(path: &Path) -> Result<bool> {
        let name = || path.display().to_string();
        // Only a file: to open a pipe is to wait for whoever writes to it.
        if !path.metadata().with_context(name)?.is_file() {
            return Ok(false);
        }
        let mut start = Vec::new();
        let file = File::open(path).with_context(name)?;
        file.take(MAGIC.len() as u64).read_to_end(&mut start).with_context(name)?;
        Ok(start == MAGIC)
    }

    pub(crate) fn load(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let file = File::open(path).with_context(name)?;
        let length = file.metadata().with_context(name)?.len();
        Self::read(BufReader::with_capacity(1 << 20, file), length).with_context(name)
    }

    fn read(mut from: impl Read, length: u64) -> Result<Self> {
        const DAMAGED: &str = "is damaged: it is not what was saved";
        let mut header = [0; HEADER];
        if length < HEADER as u64 {
            bail!("ends in its header");
        }
        from.read_exact(&mut header)?;
        if header[8] != VERSION || header[9..SECRET].iter().any(|byte| *byte != 0) {
            bail!("was written by another version of umbel");
        }
        let count = u64::from_le_bytes(*header[COUNT..].first_chunk().context(DAMAGED)?);
        // Before there is memory for them.
        if count.checked_mul(16).and_then(|bytes| bytes.checked_add(HEADER as u64)) != Some(length)
        {
            bail!("does not hold the {count} digests it announces");
        }
        let mut exact = Self::with(*header[SECRET..].first_chunk().context(DAMAGED)?);
        exact.digests.try_reserve(usize::try_from(count)?)?;
        let mut check = exact.hasher;
        check.write(&header[..CHECK]);
        for _ in 0..count {
            let mut digest = [0; 16];
            from.read_exact(&mut digest)?;
            check.write(&digest);
            exact.digests.insert(u128::from_le_bytes(digest));
        }
        if header[CHECK..] != sum(check) || exact.digests.len() as u64 != count {
            bail!(DAMAGED);
        }
        Ok(exact)
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8] = VERSION;
        header[SECRET..COUNT].copy_from_slice(&self.secret);
        header[COUNT..COUNT + 8].copy_from_slice(&(self.digests.len() as u64).to_le_bytes());
        let mut check = self.hasher;
        check.write(&header[..CHECK]);
        for digest in &self.digests {
            check.write(&digest.to_le_bytes());
        }
        header[CHECK..].copy_from_slice(&sum(check));
        to.write_all(&header)?;
        self.digests.iter().try_for_each(|digest| to.write_all(&digest.to_le_bytes()))
    }
}

fn sum(hasher: SipHasher13) -> [u8; 16] {
    use siphasher::sip128::Hasher128;
    hasher.finish128().as_u128().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(keys: u8) -> Vec<u8> {
        let mut exact = Exact::with([7; 16]);
        for key in 0..keys {
            let digest = exact.digest(&[key]);
            assert!(exact.insert(digest));
            assert!(!exact.insert(digest));
        }
        let mut bytes = Vec::new();
        exact.write(&mut bytes).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Exact> {
        Exact::read(bytes, bytes.len() as u64)
    }

    #[test]
    fn what_was_written_is_read() {
        for keys in [0, 1, 100] {
            let bytes = bytes_of(keys);
            assert_eq!(bytes.len(), HEADER + 16 * usize::from(keys));
            let mut exact = read(&bytes).unwrap();
            for key in 0..=keys {
                assert_eq!(exact.insert(exact.digest(&[key])), key == keys);
            }
        }
    }

    #[test]
    fn what_was_cut_or_changed_is_refused() {
        let bytes = bytes_of(5);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "cut at {length}");
        }
        // The magic was compared by whoever chose to read it as this.
        for bit in MAGIC.len() * 8..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&other).is_err(), "bit {bit}");
        }
        let mut swapped = bytes.clone();
        swapped[HEADER..HEADER + 32].rotate_left(16);
        assert!(read(&swapped).is_err());
        let mut twice = bytes;
        twice.copy_within(HEADER..HEADER + 16, HEADER + 16);
        assert!(read(&twice).is_err());
    }
}
