//! Saving on a disk that loses, tears and reorders unsynced writes, and that fails at any call. Afterwards the
//! old filter or the new one exists, complete.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use umbel::format::disk::{Disk, replace};
use umbel::{BlockedBloomFilter, Saved};
use umbel_laws::split_mix;

const PATH: &str = "some/where/seen.umbel";

/// A call to the disk.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Create(usize, PathBuf),
    Write(usize, Vec<u8>),
    Sync(usize),
    Rename(PathBuf, PathBuf),
    SyncDirectory,
    Remove(PathBuf),
}

/// Records the calls, and fails at a given one.
#[derive(Clone, Default)]
struct Simulated {
    calls: Rc<RefCell<Vec<Call>>>,
    fails_at: Option<usize>,
    /// Whether another writer has locked the file on the disk.
    busy: bool,
}

impl Simulated {
    fn call(&self, call: Call) -> io::Result<()> {
        if self.fails_at == Some(self.calls.borrow().len()) {
            // The call after it may succeed: only this call fails.
            self.calls.borrow_mut().push(Call::SyncDirectory);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.calls.borrow_mut().push(call);
        Ok(())
    }
}

struct Open {
    disk: Simulated,
    number: usize,
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // At most 3,000 bytes, so that some writes end in the middle of a block.
        let now = &bytes[..bytes.len().min(3_000)];
        self.disk.call(Call::Write(self.number, now.to_vec()))?;
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for Simulated {
    type File = Open;

    fn create(&self, path: &Path, _: bool) -> io::Result<Open> {
        if self.busy {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let number = self.calls.borrow().len();
        self.call(Call::Create(number, path.into()))?;
        Ok(Open { disk: self.clone(), number })
    }

    fn sync(&self, file: &mut Open) -> io::Result<()> {
        self.call(Call::Sync(file.number))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Rename(from.into(), to.into()))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        assert_eq!(directory, Path::new("some/where"));
        self.call(Call::SyncDirectory)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove(path.into()))
    }

    fn close(&self, _: Self::File) {}
}

/// The part of the unsynced writes that survives a power failure.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Everything,
    Nothing,
    /// Any of the pages of 4 KiB, any of the names.
    Pages(u64),
    /// Any of the sectors of 512 bytes, any of the names.
    Sectors(u64),
}

impl Loss {
    fn keeps(self, what: u64) -> bool {
        match self {
            Self::Everything => false,
            Self::Nothing => true,
            Self::Pages(seed) | Self::Sectors(seed) => split_mix(seed ^ what) & 1 == 1,
        }
    }

    fn unit(self) -> usize {
        if matches!(self, Self::Sectors(_)) { 512 } else { 4_096 }
    }
}

/// The content of the files after these calls and a power failure.
fn after_power_cut(old: &[u8], calls: &[Call], loss: Loss) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut names = BTreeMap::from([(PathBuf::from(PATH), usize::MAX)]);
    let mut files = BTreeMap::from([(usize::MAX, old.to_vec())]);
    let last = |wanted: &dyn Fn(&Call) -> bool| calls.iter().rposition(wanted);
    let names_synced = last(&|call| *call == Call::SyncDirectory);
    for (at, call) in calls.iter().enumerate() {
        let name_is_there = names_synced.is_some_and(|synced| at < synced) || loss.keeps(at as u64);
        match call {
            Call::Create(number, path) => {
                files.insert(*number, Vec::new());
                if name_is_there {
                    names.insert(path.clone(), *number);
                }
            }
            Call::Write(number, bytes) => {
                let file = files.get_mut(number).unwrap();
                let synced = last(&|call| *call == Call::Sync(*number));
                let start = file.len();
                file.extend_from_slice(bytes);
                if synced.is_none_or(|synced| at > synced) {
                    // Lost units are zeros, as in a file that grew without its data.
                    for (at, byte) in file.iter_mut().enumerate().skip(start) {
                        let unit = at / loss.unit();
                        if !loss.keeps(*number as u64 ^ (unit as u64) << 20) {
                            *byte = 0;
                        }
                    }
                }
            }
            Call::Rename(from, to) => {
                // A name that never reached the disk cannot be renamed; the file then has the new name.
                let number = names.get(from).copied().or_else(|| created(calls, from));
                if name_is_there && let Some(number) = number {
                    names.remove(from);
                    names.insert(to.clone(), number);
                }
            }
            Call::Remove(path) => {
                if name_is_there {
                    names.remove(path);
                }
            }
            Call::Sync(_) | Call::SyncDirectory => {}
        }
    }
    names.into_iter().map(|(path, number)| (path, files[&number].clone())).collect()
}

fn created(calls: &[Call], path: &Path) -> Option<usize> {
    calls.iter().find_map(|call| match call {
        Call::Create(number, created) if created == path => Some(*number),
        _ => None,
    })
}

fn filter_of(keys: std::ops::Range<u64>) -> BlockedBloomFilter<u64> {
    let mut filter = BlockedBloomFilter::new(20_000, 0.01);
    filter.extend(keys);
    filter
}

fn save(disk: &Simulated, filter: &BlockedBloomFilter<u64>) -> io::Result<()> {
    replace(disk, Path::new(PATH), false, |file| filter.to_writer(file))
}

#[test]
fn after_a_power_cut_the_old_filter_is_there_or_the_new_one() {
    let (old, new) = (filter_of(0..10_000), filter_of(5_000..20_000));
    let disk = Simulated::default();
    save(&disk, &new).unwrap();
    let calls = disk.calls.borrow();
    let (mut olds, mut news, mut states) = (0, 0, 0);
    for cut in 0..=calls.len() {
        let losses = [Loss::Everything, Loss::Nothing].into_iter();
        let torn = (0..330).flat_map(|seed| [Loss::Pages(seed), Loss::Sectors(seed)]);
        for loss in losses.chain(torn) {
            let files = after_power_cut(&old.to_bytes(), &calls[..cut], loss);
            let there = BlockedBloomFilter::<u64>::from_bytes(&files[Path::new(PATH)]);
            let there = there.unwrap_or_else(|error| panic!("{error} at {cut}, {loss:?}"));
            assert!(there == old || there == new, "{cut}, {loss:?}");
            if there == old {
                olds += 1
            } else {
                news += 1
            }
            states += 1;
        }
        let finished = cut == calls.len();
        let files = after_power_cut(&old.to_bytes(), &calls[..cut], Loss::Everything);
        let there = BlockedBloomFilter::<u64>::from_bytes(&files[Path::new(PATH)]).unwrap();
        assert_eq!(there == new, finished, "what was reported as saved is saved");
    }
    assert!(states >= 10_000 && olds > 1_000 && news > 100, "{states}: {olds} {news}");
}

#[test]
fn whichever_call_fails_the_old_filter_is_there_and_nothing_else() {
    let (old, new) = (filter_of(0..10_000), filter_of(5_000..20_000));
    let whole = Simulated::default();
    save(&whole, &new).unwrap();
    let all = whole.calls.borrow().len();
    for call in 0..all {
        let disk = Simulated { fails_at: Some(call), ..Simulated::default() };
        let error = save(&disk, &new).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let files = after_power_cut(&old.to_bytes(), &disk.calls.borrow(), Loss::Nothing);
        assert_eq!(files.len(), 1, "a file was left behind by call {call}");
        let there = BlockedBloomFilter::<u64>::from_bytes(&files[Path::new(PATH)]).unwrap();
        // After the last call only the sync of the directory could fail.
        assert!(there == old || call == all - 1 && there == new, "call {call}");
    }
}

#[test]
fn nothing_is_renamed_before_it_is_synced() {
    let disk = Simulated::default();
    save(&disk, &filter_of(0..10)).unwrap();
    let calls = disk.calls.borrow();
    let at = |wanted: &dyn Fn(&Call) -> bool| calls.iter().position(wanted).unwrap();
    let synced = at(&|call| matches!(call, Call::Sync(_)));
    let renamed = at(&|call| matches!(call, Call::Rename(..)));
    let last_write = calls.iter().rposition(|call| matches!(call, Call::Write(..))).unwrap();
    assert!(last_write < synced && synced < renamed);
    assert_eq!(calls.last(), Some(&Call::SyncDirectory));
}

#[test]
fn a_disk_that_another_writer_has_is_left_alone() {
    let disk = Simulated { busy: true, ..Simulated::default() };
    let error = save(&disk, &filter_of(0..10)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    assert!(disk.calls.borrow().is_empty());
}
