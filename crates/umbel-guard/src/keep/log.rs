//! A journal: the digests that were added to one filter since it was saved.
//!
//! ```text
//!     header, 128 bytes    records of 16 bytes: a word, and a checksum of it, its kind and its number
//! ```
//!
//! A record never straddles a page. So a process that is killed leaves whole records and at most one truncated
//! record, for which the data set was not yet asked to write. A journal with any other damage is not used.

use crate::error::Unusable;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use umbel::Digest;

const MAGIC: [u8; 8] = *b"umbelgj\x02";
const HEADER: usize = 128;
const RECORD: usize = 16;
/// Seeds the checksum of the header, so that zeros never verify.
const SEED: u64 = 0x756d_6265_6c20_676a;
/// The longest journal that is read: 64 million records.
const LIMIT: u64 = 1 << 30;

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// A digest was added.
    Add = 1,
    /// A guard with this incarnation continues the journal.
    Begin = 2,
    /// Another filter and its journal have replaced this one.
    Retired = 3,
    /// The data set will be asked to delete a key.
    Delete = 4,
    /// The data set has reached a mark, and keys that it had before are removed from the filter.
    Floor = 5,
}

const ENTRIES: [Entry; 5] = [Entry::Add, Entry::Begin, Entry::Retired, Entry::Delete, Entry::Floor];

fn checksum(words: &[u64]) -> u64 {
    let fold = |sum, word: &u64| Digest::joint(&[sum, Digest::new(*word)]);
    words.iter().fold(Digest::new(SEED), fold).bits()
}

/// What a journal belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The check of the filter's hasher.
    pub(super) check: u64,
    /// The data set.
    pub(super) identity: u64,
    /// The guard that writes it.
    pub(super) incarnation: u64,
}

/// A journal open for writing.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    salt: u64,
    records: u64,
    owner: Owner,
    adds: u64,
}

impl Log {
    /// Creates a journal whose first write has the mark after `mark`. Keys that were deleted before the data
    /// set was at `floor` are not in the filter.
    pub(super) fn create(path: &Path, owner: Owner, mark: u64, floor: u64) -> io::Result<Self> {
        let mut file = ours(OpenOptions::new().write(true).create_new(true)).open(path)?;
        // Random, so that records of other journals never verify here.
        let salt = Digest::joint(&[Digest::new(owner.check), random()]).bits();
        let words = [salt, owner.check, owner.identity, owner.incarnation, mark, floor];
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        for (place, word) in header[8..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        header[HEADER - 8..].copy_from_slice(&checksum(&words).to_le_bytes());
        file.write_all(&header)?;
        Ok(Self { file, salt, records: 0, owner, adds: 0 })
    }

    /// Continues a journal that was read, for the guard with this incarnation. Returns after the sync.
    pub(super) fn resume(path: &Path, replay: &Replay, incarnation: u64) -> io::Result<Self> {
        let mut file = ours(OpenOptions::new().write(true)).open(path)?;
        let end = HEADER as u64 + replay.records * RECORD as u64;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        let adds = replay.digests.len() as u64;
        let (salt, records, owner) = (replay.salt, replay.records, replay.owner);
        let mut log = Self { file, salt, records, owner, adds };
        log.begin(incarnation)?;
        Ok(log)
    }

    /// Continues for the guard with this incarnation. Returns after the sync.
    pub(super) fn begin(&mut self, incarnation: u64) -> io::Result<()> {
        self.write(Entry::Begin, incarnation)?;
        self.owner.incarnation = incarnation;
        self.file.sync_data()
    }

    pub(super) fn check(&self) -> u64 {
        self.owner.check
    }

    /// The number of digests in the journal.
    pub(super) fn adds(&self) -> u64 {
        self.adds
    }

    fn write(&mut self, entry: Entry, word: u64) -> io::Result<()> {
        let sum = checksum(&[self.salt, self.records, entry as u64, word]);
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&word.to_le_bytes());
        record[8..].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&record)?;
        self.records += 1;
        Ok(())
    }

    /// Returns when the kernel has the digest, which then survives this process.
    pub(super) fn add(&mut self, digest: Digest) -> io::Result<()> {
        self.write(Entry::Add, digest.bits())?;
        self.adds += 1;
        Ok(())
    }

    /// Records that the data set will be asked to delete a key.
    pub(super) fn delete(&mut self) -> io::Result<()> {
        self.write(Entry::Delete, 0)
    }

    /// Records that the data set has reached this mark.
    pub(super) fn floor(&mut self, mark: u64) -> io::Result<()> {
        self.write(Entry::Floor, mark)
    }

    /// Records that another journal has replaced this one.
    pub(super) fn retire(&mut self) -> io::Result<()> {
        self.write(Entry::Retired, 0)
    }

    /// A second handle of the file, so that a sync does not block writers.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

#[cfg(test)]
impl Log {
    /// Makes all later writes fail, as on a full disk.
    pub(super) fn fail(&mut self) {
        self.file = File::open("/dev/null").expect("the null device");
    }
}

/// Options for all files of the guard: only the owner may access them, symbolic links are not followed, and
/// opening a pipe does not block.
pub(super) fn ours(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// 64 random bits.
pub(super) fn random() -> Digest {
    let secret = u128::from_le_bytes(*umbel::Keyed::random().secret());
    Digest::new((secret >> 64) as u64 ^ secret as u64)
}

/// The content of a journal.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) owner: Owner,
    /// The mark of the last write.
    pub(super) mark: u64,
    /// A mark that the data set had reached.
    pub(super) floor: u64,
    pub(super) digests: Vec<Digest>,
    /// The incarnation before the last one, if the last one has written nothing yet. Its guard may have ended
    /// before the data set had stored it.
    pub(super) before: Option<u64>,
    salt: u64,
    records: u64,
}

impl Replay {
    /// Reads a journal and checks every record.
    pub(super) fn read(path: &Path) -> Result<Self, Unusable> {
        let file = ours(OpenOptions::new().read(true)).open(path).map_err(Unusable::Io)?;
        let length = file.metadata().map_err(Unusable::Io)?.len();
        if length > LIMIT {
            return Err(Unusable::Journal("is longer than any"));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(LIMIT).read_to_end(&mut bytes).map_err(Unusable::Io)?;
        Self::of_bytes(&bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self, Unusable> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Unusable::Journal("has no header"));
        };
        if header[..8] != MAGIC {
            return Err(Unusable::Journal("does not begin as one"));
        }
        let (words, _) = header[8..].as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let [salt, check, identity, incarnation, mark, floor] = words[..6] else {
            unreachable!("15 words")
        };
        if checksum(&words[..6]) != words[14] || words[6..14].iter().any(|word| *word != 0) {
            return Err(Unusable::Journal("has a damaged header"));
        }
        let owner = Owner { check, identity, incarnation };
        let mut replay =
            Self { owner, mark, floor, digests: Vec::new(), before: None, salt, records: 0 };
        // The remainder is a truncated record.
        for record in rest.as_chunks::<RECORD>().0 {
            replay.take(record)?;
        }
        Ok(replay)
    }

    fn take(&mut self, record: &[u8; RECORD]) -> Result<(), Unusable> {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let (word, sum) = (number(&record[..8]), number(&record[8..]));
        let fits =
            |entry: &&Entry| checksum(&[self.salt, self.records, **entry as u64, word]) == sum;
        let before = self.before.take();
        match ENTRIES.iter().find(fits) {
            Some(Entry::Add) => {
                self.digests.push(Digest::new(word));
                self.mark += 1;
            }
            Some(Entry::Delete) => self.mark += 1,
            Some(Entry::Floor) => self.floor = self.floor.max(word),
            Some(Entry::Begin) => {
                // Several guards in a row may have ended before the data set stored their incarnation.
                self.before = Some(before.unwrap_or(self.owner.incarnation));
                self.owner.incarnation = word;
            }
            Some(Entry::Retired) => return Err(Unusable::Journal("was given up for another")),
            None => return Err(Unusable::Journal("is damaged")),
        }
        self.records += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { check: 1, identity: 2, incarnation: 3 };

    fn written() -> (tempfile::TempDir, std::path::PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("j");
        let mut log = Log::create(&path, OWNER, 40, 30).unwrap();
        for word in [7, 0, u64::MAX] {
            log.add(Digest::new(word)).unwrap();
        }
        (place, path)
    }

    #[test]
    fn a_journal_is_read_back_and_goes_on() {
        let (_place, path) = written();
        let replay = Replay::read(&path).unwrap();
        assert_eq!(replay.digests, [7, 0, u64::MAX].map(Digest::new));
        assert_eq!((replay.owner, replay.mark, replay.floor, replay.before), (OWNER, 43, 30, None));
        let mut log = Log::resume(&path, &replay, 9).unwrap();
        log.add(Digest::new(5)).unwrap();
        log.delete().unwrap();
        log.floor(45).unwrap();
        let replay = Replay::read(&path).unwrap();
        assert_eq!((replay.digests.len(), replay.owner.incarnation), (4, 9));
        assert_eq!((replay.mark, replay.floor, replay.before), (45, 45, None));
        // Guards that begin and write nothing leave the incarnation before them usable.
        drop(Log::resume(&path, &replay, 10).unwrap());
        drop(Log::resume(&path, &Replay::read(&path).unwrap(), 11).unwrap());
        let replay = Replay::read(&path).unwrap();
        assert_eq!((replay.owner.incarnation, replay.before), (11, Some(9)));
        Log::resume(&path, &replay, 12).unwrap().retire().unwrap();
        assert!(Replay::read(&path).is_err());
    }

    #[test]
    fn a_record_that_is_cut_off_was_never_there() {
        let (_place, path) = written();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            let read = Replay::of_bytes(&whole[..cut]);
            if cut < HEADER {
                assert!(read.is_err(), "{cut}");
            } else {
                assert_eq!(read.unwrap().digests.len(), (cut - HEADER) / RECORD, "{cut}");
            }
        }
    }

    #[test]
    fn no_flipped_bit_zeroed_or_swapped_record_is_read() {
        let (_place, path) = written();
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Replay::of_bytes(&bytes).is_err(), "bit {bit}");
        }
        let mut zeroed = whole.clone();
        zeroed[HEADER..HEADER + RECORD].fill(0);
        assert!(Replay::of_bytes(&zeroed).is_err());
        let mut swapped = whole.clone();
        swapped[HEADER..].rotate_left(RECORD);
        assert!(Replay::of_bytes(&swapped).is_err());
        assert!(Replay::of_bytes(&[0; 4096]).is_err());
    }
}
