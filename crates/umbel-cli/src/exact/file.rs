//! An exact set as a file.
//!
//! ```text
//! 0  "umbelx\r\n"   8  version, zeros   16  secret   32  how many   40  zeros   48  check   64  digests ...
//! ```
//!
//! Numbers are little-endian. The check is SipHash-1-3-128 under the secret of all bytes before it and of all digests, so a file that
//! was cut, changed or mixed up is refused. Version 1 has digests of SipHash-1-3-128, version 2 those of [`Sip`](super::Sip).

use super::{Exact, Hashing};
use anyhow::{Context, Result, bail};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use umbel::Keyed;

const MAGIC: [u8; 8] = *b"umbelx\r\n";
const WIDE: u8 = 1;
const LONG: u8 = 2;
const SECRET: usize = 16;
const COUNT: usize = 32;
const CHECK: usize = 48;
const HEADER: usize = 64;

const DAMAGED: &str = "is damaged: it is not what was saved";

/// Whether bytes begin as those of an exact set.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Whether a file begins as an exact set does.
pub(crate) fn is_in(path: &Path) -> Result<bool> {
    let name = || path.display().to_string();
    // Only a file: to open a pipe is to wait for whoever writes to it.
    if !path.metadata().with_context(name)?.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    let file = File::open(path).with_context(name)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut start).with_context(name)?;
    Ok(begins(&start))
}

/// A file whose header was read.
pub(crate) struct Saved<R> {
    secret: Keyed,
    version: u8,
    count: u64,
    /// Of the header.
    check: SipHasher13,
    expected: [u8; 16],
    digests: R,
}

impl Saved<BufReader<File>> {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let file = File::open(path).with_context(name)?;
        let length = file.metadata().with_context(name)?.len();
        Self::read(BufReader::with_capacity(1 << 20, file), length).with_context(name)
    }
}

impl<R: Read> Saved<R> {
    fn read(mut from: R, length: u64) -> Result<Self> {
        let mut header = [0; HEADER];
        from.read_exact(&mut header).context("ends in its header")?;
        let version = header[8];
        if ![WIDE, LONG].contains(&version) {
            bail!(
                "has version {version} of the format of exact states, and this program reads {WIDE} and {LONG}"
            );
        }
        if header[9..SECRET] != [0; 7] || header[COUNT + 8..CHECK] != [0; 8] {
            bail!(DAMAGED);
        }
        let mut secret = [0; 16];
        secret.copy_from_slice(&header[SECRET..COUNT]);
        let mut count = [0; 8];
        count.copy_from_slice(&header[COUNT..COUNT + 8]);
        let count = u64::from_le_bytes(count);
        // Before there is memory for them.
        if count.checked_mul(16).and_then(|bytes| bytes.checked_add(HEADER as u64)) != Some(length)
        {
            bail!("does not hold the {count} digests it announces");
        }
        let mut check = SipHasher13::new_with_key(&secret);
        check.write(&header[..CHECK]);
        let mut expected = [0; 16];
        expected.copy_from_slice(&header[CHECK..]);
        Ok(Self { secret: Keyed::new(secret), version, count, check, expected, digests: from })
    }

    /// The version of the format.
    pub(crate) const fn version(&self) -> u8 {
        self.version
    }

    /// How many digests there are.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// An empty set whose digests are those of the file.
    pub(crate) fn empty(&self, limit: u64) -> Exact {
        let exact = Exact::new(self.secret, limit);
        match self.version {
            WIDE => {
                let hashing = Hashing::Wide(SipHasher13::new_with_key(self.secret.secret()));
                Exact { hashing, ..exact }
            }
            _ => exact,
        }
    }

    /// Calls `each` with all digests. What it was called with counts only if this returns well.
    pub(crate) fn for_each(mut self, mut each: impl FnMut(u128) -> Result<()>) -> Result<()> {
        for _ in 0..self.count {
            let mut digest = [0; 16];
            self.digests.read_exact(&mut digest)?;
            self.check.write(&digest);
            each(u128::from_le_bytes(digest))?;
        }
        if self.expected != sum(self.check) {
            bail!(DAMAGED);
        }
        Ok(())
    }

    /// Reads all of it, to compare its check.
    pub(crate) fn verify(self) -> Result<()> {
        self.for_each(|_| Ok(()))
    }

    /// All digests in memory.
    #[cfg(test)]
    fn load(self) -> Result<Exact> {
        let count = self.count;
        let mut exact = self.empty(u64::MAX);
        self.for_each(|digest| {
            let inserted = exact.insert(digest);
            inserted.map(drop).map_err(|no_room| anyhow::anyhow!("{no_room:?}"))
        })?;
        if exact.len() != count {
            bail!(DAMAGED);
        }
        Ok(exact)
    }
}

impl Exact {
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8] = match self.hashing {
            Hashing::Wide(_) => WIDE,
            Hashing::Long(_) => LONG,
        };
        header[SECRET..COUNT].copy_from_slice(self.secret.secret());
        header[COUNT..COUNT + 8].copy_from_slice(&self.len().to_le_bytes());
        let mut check = SipHasher13::new_with_key(self.secret.secret());
        check.write(&header[..CHECK]);
        for digest in self.digests() {
            check.write(&digest.to_le_bytes());
        }
        header[CHECK..].copy_from_slice(&sum(check));
        to.write_all(&header)?;
        self.digests().try_for_each(|digest| to.write_all(&digest.to_le_bytes()))
    }
}

fn sum(hasher: SipHasher13) -> [u8; 16] {
    hasher.finish128().as_u128().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(keys: u8, version: u8) -> Vec<u8> {
        let secret = [7; 16];
        let mut exact = Exact::new(Keyed::new(secret), u64::MAX);
        if version == WIDE {
            exact.hashing = Hashing::Wide(SipHasher13::new_with_key(&secret));
        }
        for key in 0..keys {
            let digest = exact.hashing().digest(&[key]);
            assert_eq!(exact.insert(digest), Ok(true));
            assert_eq!(exact.insert(digest), Ok(false));
        }
        let mut bytes = Vec::new();
        exact.write(&mut bytes).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Exact> {
        Saved::read(bytes, bytes.len() as u64)?.load()
    }

    #[test]
    fn what_was_written_is_read() {
        for version in [WIDE, LONG] {
            for keys in [0, 1, 100] {
                let bytes = bytes_of(keys, version);
                assert_eq!(bytes.len(), HEADER + 16 * usize::from(keys));
                assert_eq!(bytes[8], version);
                let mut exact = read(&bytes).unwrap();
                assert_eq!(exact.hasher().is_some(), version == LONG);
                for key in 0..=keys {
                    let digest = exact.hashing().digest(&[key]);
                    assert_eq!(exact.insert(digest), Ok(key == keys));
                }
            }
        }
    }

    #[test]
    fn what_was_cut_or_changed_is_refused() {
        let bytes = bytes_of(5, LONG);
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
