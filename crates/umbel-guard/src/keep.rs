//! Persistent state: a saved filter, and the journal (write-ahead log) of the keys that were added to it since.
//!
//! ```text
//!     folder/lock                       one guard at a time
//!     folder/17.umbel  17.journal       a filter, and every digest that was added since it was saved
//!     folder/18.umbel  18.journal       the next pair, while it takes over
//! ```
//!
//! The guard adds a key to the filter, then to the journal, and only then asks the data set to store it. So a
//! pair whose journal is complete has every key that the data set can have. Two numbers show that it is
//! complete: the data set stores a [`Stamp`], which it changes in the transaction of every write, and the
//! journal stores the same numbers.
//!
//! | the journal and the data set | what happened | the saved filter |
//! |---|---|---|
//! | have the same incarnation, and the journal has the data set's mark | an ordinary restart, or `kill -9` | is used |
//! | the data set's mark is higher | the end of the journal was lost: a power failure, or a folder restored from a backup | is built again |
//! | the data set's mark is below a delete that the journal knows | the data set was restored from a backup | is built again |
//! | have different incarnations | another guard has written to the data set, or to a copy that replaced it | is built again |
//! | the data set keeps no stamp | nothing can be known | is built again |
//!
//! A guard chooses a random incarnation at its start. It writes it to the journal, then to the data set.
//! Files that are missing, damaged or of another data set are not used either.
//!
//! The folder must belong to the user that runs the guard, and only that user may write to it, because the
//! files contain the secret of the filter. Files are never opened through symbolic links.
//!
//! A new pair takes over in four steps. The new journal begins, and both journals get every digest. The new
//! filter is saved. The old journal is retired. The old pair is removed. Wherever this is interrupted, the pair
//! with the highest number that has a filter is complete.
//!
//! Removals are not journaled. A filter that is opened again holds the keys that were removed since it was
//! saved: too many keys, never too few.

mod beside;
mod log;

pub use beside::{read_beside, write_beside};

use crate::data_set::Stamp;
use crate::error::{StartError, Unusable};
use crate::kind::{Generation, Kind};
use log::{Log, Owner, Replay, ours, random};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::OwnedMutexGuard;
use umbel::hash::Digester;
use umbel::{Digest, Portable};

/// How durable a journal record must be before the data set is asked to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has the record, so it survives the process. 16 bytes are written per record.
    #[default]
    Written,
    /// The disk has the record, so it survives a power failure. Concurrent writes share one sync.
    Synced,
}

/// The maximum number of copies of one digest that a replay adds. More copies come from one key that was put
/// repeatedly.
const COPIES: u8 = 3;

#[derive(Debug)]
pub(crate) struct Keep {
    folder: PathBuf,
    durability: Durability,
    logs: Mutex<Logs>,
    /// The number of records on the disk. The lock is held during a sync.
    synced: Mutex<u64>,
    /// Held by the thread that saves a filter.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Keeps other guards out of the folder.
    _lock: Lock,
}

#[derive(Debug, Default)]
struct Logs {
    /// The data set, as a hash of its identity.
    identity: u64,
    /// The incarnation of the guard.
    incarnation: u64,
    /// The mark of the last write.
    mark: u64,
    current: Option<(u64, Log)>,
    next: Option<(u64, Log)>,
    /// The pair that is being saved, and whether its filter differs from the current one.
    saving: Option<(u64, bool)>,
    /// A mark that the data set had reached when a key left the filter.
    floor: u64,
    /// The highest number of a pair so far.
    number: u64,
    /// Saved files exist that lack a key. They must be removed before the next write.
    stale: bool,
}

impl Logs {
    /// Writes to all journals.
    fn each(&mut self, write: impl Fn(&mut Log) -> io::Result<()>) -> io::Result<()> {
        let mut written = Ok(());
        for (_, log) in [&mut self.current, &mut self.next].into_iter().flatten() {
            written = written.and(write(log));
        }
        written
    }

    /// Fails if this pair is no longer being saved.
    fn is_saving(&self, number: u64) -> io::Result<()> {
        match self.saving {
            Some((saving, _)) if saving == number => Ok(()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// A pair that is being saved. It is given up if this value is dropped before the pair is put to use.
#[derive(Debug)]
pub(crate) struct Pair {
    keep: Arc<Keep>,
    number: u64,
}

impl Pair {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.keep.give_up(self.number);
    }
}

/// The digests of one key in the filters in use.
pub(crate) type Digests = [Option<(u64, Digest)>; 2];

impl Keep {
    /// Opens and locks the folder, and creates it if it does not exist.
    pub(crate) fn open<E>(
        folder: &Path,
        durability: Durability,
        identity: &[u8],
    ) -> Result<Self, StartError<E>> {
        make_private(folder)?;
        let lock = ours(OpenOptions::new().write(true).create(true)).open(folder.join("lock"));
        let lock = lock.map_err(StartError::Io)?;
        locked(lock.try_lock())?;
        let logs = Logs { identity: number_of(identity), ..Logs::default() };
        Ok(Self {
            folder: folder.to_owned(),
            durability,
            logs: Mutex::new(logs),
            synced: Mutex::default(),
            turn: Arc::default(),
            _lock: Lock(lock),
        })
    }

    /// Waits until no thread saves a filter. The next save may start only after the guard that this returns is
    /// dropped.
    pub(crate) async fn saving_turn(&self) -> OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    fn filter_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.umbel"))
    }

    fn log_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.journal"))
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All files of pairs, with their numbers.
    fn files(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        files_in(&self.folder)
    }

    /// The filter that was last in use, with all keys that were added to it, if the [`Stamp`] of the data set
    /// shows that it is complete. The journal then continues for the guard with this incarnation. New marks are
    /// higher than those of the journal and of the data set.
    pub(crate) fn restore<K: Kind>(
        &self,
        kind: &K,
        stamp: Option<Stamp>,
        incarnation: u64,
    ) -> Result<K::Generation, Unusable> {
        let mut logs = self.logs();
        logs.incarnation = incarnation;
        logs.mark = stamp.map_or(0, |stamp| stamp.mark);
        let files = self.files().map_err(Unusable::Io)?;
        logs.number = files.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let (number, replay, filter) = open_pair(&self.folder, logs.identity, kind, stamp)?;
        let path = self.log_path(number);
        let log = Log::resume(&path, &replay, incarnation).map_err(Unusable::Io)?;
        (logs.mark, logs.floor) = (logs.mark.max(replay.mark), replay.floor);
        self.remove_all_but(Some(number)).map_err(Unusable::Io)?;
        logs.current = Some((number, log));
        Ok(filter)
    }

    /// Gives the guard a new incarnation. The journals continue for it.
    pub(crate) fn renew(&self, incarnation: u64) {
        let mut logs = self.logs();
        logs.incarnation = incarnation;
        let written = logs.each(|log| log.begin(incarnation));
        self.remove_unless(&mut logs, written);
    }

    /// Binds the folder to another data set, or to another incarnation of the same one. Everything saved before
    /// is unusable.
    pub(crate) fn move_to(&self, identity: &[u8], incarnation: u64) -> io::Result<()> {
        {
            let mut logs = self.logs();
            (logs.identity, logs.incarnation) = (number_of(identity), incarnation);
            (logs.next, logs.saving) = (None, None);
        }
        self.distrust()
    }

    /// Records an added key, and returns the mark of the write once the record is as durable as required.
    pub(crate) fn append(&self, digests: Digests) -> io::Result<u64> {
        let mark = self.write(|log| {
            let digest = digests.iter().flatten().find(|(check, _)| *check == log.check());
            digest.map_or(Err(io::ErrorKind::NotFound.into()), |(_, digest)| log.add(*digest))
        })?;
        if self.durability == Durability::Synced {
            self.sync(mark)?;
        }
        Ok(mark)
    }

    /// Records that the data set will be asked to delete a key, and returns the mark. This does not wait for
    /// the disk: a journal without this record is older than the set, and the filter then holds too many keys.
    pub(crate) fn deleting(&self) -> io::Result<u64> {
        self.write(Log::delete)
    }

    /// Records that the delete has happened, so the filter may remove the key.
    pub(crate) fn deleted(&self, mark: u64) {
        let mut logs = self.logs();
        logs.floor = logs.floor.max(mark);
        let written = logs.each(|log| log.floor(mark));
        // Without this record, a data set that is restored from a backup could not be told apart from this one.
        self.remove_unless(&mut logs, written);
    }

    /// Records that the data set has reached this mark. Later marks are higher.
    pub(crate) fn raise(&self, mark: u64) {
        let mut logs = self.logs();
        logs.mark = logs.mark.max(mark);
    }

    /// Removes the saved files if `written` is an error.
    fn remove_unless(&self, logs: &mut Logs, written: io::Result<()>) {
        if let Err(error) = written {
            // No saved filter is better than one that lacks a key.
            tracing::warn!(%error, "the journal cannot be written; the saved filter is removed");
            (logs.current, logs.next, logs.saving) = (None, None, None);
            logs.stale = self.remove_all_but(None).is_err();
        }
    }

    /// Writes a record to all journals, and returns the mark of the write.
    fn write(&self, record: impl Fn(&mut Log) -> io::Result<()>) -> io::Result<u64> {
        let mut logs = self.logs();
        logs.mark += 1;
        let mark = logs.mark;
        let written = logs.each(record);
        self.remove_unless(&mut logs, written);
        if logs.stale {
            self.remove_all_but(None)?;
            logs.stale = false;
        }
        Ok(mark)
    }

    /// Syncs all records up to this mark. A concurrent caller waits for the sync in progress, and mostly has
    /// nothing left to sync.
    fn sync(&self, mark: u64) -> io::Result<()> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced >= mark {
            return Ok(());
        }
        let (last, files) = {
            let logs = self.logs();
            let pairs = [&logs.current, &logs.next].into_iter().flatten();
            (logs.mark, pairs.map(|(_, log)| log.handle()).collect::<io::Result<Vec<_>>>()?)
        };
        for file in files {
            file.sync_data()?;
        }
        *synced = last;
        Ok(())
    }

    /// The number of digests that were added to the filter since it was saved; `None` if no filter is saved.
    pub(crate) fn journaled(&self) -> Option<u64> {
        self.logs().current.as_ref().map(|(_, log)| log.adds())
    }

    /// Prepares the next pair. `other` says whether it is for a new filter or for the current one.
    pub(crate) fn prepare(self: &Arc<Self>, other: bool) -> Pair {
        let mut logs = self.logs();
        logs.number += 1;
        logs.saving = Some((logs.number, other));
        Pair { keep: self.clone(), number: logs.number }
    }

    /// Begins the journal of a pair and saves its filter, unless the pair was given up. The filter must contain
    /// every digest that was recorded before the new journal begins. It must not contain keys that were deleted
    /// before the data set was at `floor`.
    ///
    /// The save continues if the task that waits for it is dropped.
    pub(crate) fn save(
        &self,
        number: u64,
        filter: &impl Generation,
        floor: Option<u64>,
    ) -> io::Result<()> {
        {
            let mut logs = self.logs();
            logs.is_saving(number)?;
            let (identity, incarnation) = (logs.identity, logs.incarnation);
            let owner = Owner { check: filter.check(), identity, incarnation };
            let floor = logs.floor.max(floor.unwrap_or(0));
            let log = Log::create(&self.log_path(number), owner, logs.mark, floor)?;
            if self.durability == Durability::Synced {
                log.handle()?.sync_all()?;
            }
            logs.next = Some((number, log));
            logs.floor = floor;
        }
        filter.save(&self.filter_path(number))?;
        let still = self.logs().is_saving(number);
        if still.is_err() {
            // The pair was given up during the save. Its journal was removed, so no guard would use this file.
            let _ = fs::remove_file(self.filter_path(number));
        }
        still
    }

    /// Replaces the current pair with this one, whose filter is saved.
    pub(crate) fn take_over(&self, pair: &Pair) -> io::Result<()> {
        let mut logs = self.logs();
        logs.is_saving(pair.number)?;
        logs.saving = None;
        let Some(next) = logs.next.take() else { return Err(io::ErrorKind::NotFound.into()) };
        if let Some((_, old)) = &mut logs.current {
            // The old pair is removed below. If that fails, the new pair still has the higher number.
            let _ = old.retire();
        }
        let number = next.0;
        logs.current = Some(next);
        self.remove_all_but(Some(number))
    }

    /// Gives up a pair, unless it was put to use. The current pair is unaffected.
    fn give_up(&self, number: u64) {
        let mut logs = self.logs();
        if logs.is_saving(number).is_err() {
            return;
        }
        (logs.next, logs.saving) = (None, None);
        let _ = fs::remove_file(self.filter_path(number));
        let _ = fs::remove_file(self.log_path(number));
    }

    /// Removes the saved filter, which is no longer trusted. A save of the same filter is given up.
    pub(crate) fn distrust(&self) -> io::Result<()> {
        // Held until the files are removed, so that no concurrent write finishes before.
        let mut logs = self.logs();
        logs.current = None;
        if !logs.saving.is_some_and(|(_, other)| other) {
            (logs.next, logs.saving) = (None, None);
        }
        let next = logs.saving.map(|(number, _)| number);
        let removed = self.remove_all_but(next);
        logs.stale |= removed.is_err();
        removed
    }

    /// Syncs the journal.
    pub(crate) fn sync_journal(&self) -> io::Result<()> {
        let handle = self.logs().current.as_ref().map(|(_, log)| log.handle()).transpose()?;
        handle.map_or(Ok(()), |file| file.sync_all())
    }

    /// Removes files of pairs, filters first, and syncs the folder.
    fn remove_all_but(&self, number: Option<u64>) -> io::Result<()> {
        let mut files = self.files()?;
        files.retain(|(other, _)| Some(*other) != number);
        files.sort_by_key(|(_, path)| path.extension().is_some_and(|end| end == "journal"));
        for (_, path) in &files {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if files.is_empty() { Ok(()) } else { File::open(&self.folder)?.sync_all() }
    }
}

/// Adds the digests of a journal. The filter is in memory, and no other task uses it yet.
fn apply(filter: &impl Generation, digests: &[Digest], removes: bool) -> Result<(), Unusable> {
    if digests.is_empty() {
        return Ok(());
    }
    let mut copies: HashMap<Digest, u8> = HashMap::new();
    let mut digests = digests.to_vec();
    if removes {
        digests.retain(|digest| {
            let copies = copies.entry(*digest).or_default();
            *copies = copies.saturating_add(1);
            *copies <= COPIES
        });
    }
    let adding = pin!(filter.add_all(&digests));
    match adding.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => Ok(()),
        _ => Err(Unusable::Full),
    }
}

/// The lock of a folder. It is released explicitly, because closing the file is not enough. A process that
/// another thread is spawning holds a copy of the file, and would keep the lock until it executes its own
/// program.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A hash of the identity of a data set.
fn number_of(identity: &[u8]) -> u64 {
    Portable::seeded(0).digest(identity).bits()
}

/// A random incarnation.
pub(crate) fn incarnation() -> u64 {
    random().bits().max(1)
}

fn locked<E>(lock: Result<(), TryLockError>) -> Result<(), StartError<E>> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StartError::Locked),
        Err(TryLockError::Error(error)) => Err(StartError::Io(error)),
    }
}

/// Creates a folder that only this user can access. An existing folder must be private already.
fn make_private<E>(folder: &Path) -> Result<(), StartError<E>> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(StartError::Io)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(StartError::Io(error)),
        _ => check_private(folder),
    }
}

/// Fails if another user can change files in the folder.
fn check_private<E>(folder: &Path) -> Result<(), StartError<E>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(folder).map_err(StartError::Io)?;
        let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
        if owner != user {
            return Err(StartError::Owner { owner, user });
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(StartError::Writable { mode: metadata.mode() & 0o7777 });
        }
    }
    Ok(())
}

/// All files of pairs in a folder, with their numbers.
fn files_in(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A save that was killed leaves `.N.umbel.umbel-part`.
        let part = path.extension().is_some_and(|end| end == "umbel-part");
        let ours = part || path.extension().is_some_and(|end| end == "umbel" || end == "journal");
        let number = path.file_stem().and_then(|stem| {
            let stem = stem.to_str()?;
            let stem = if part { stem.strip_prefix('.')?.strip_suffix(".umbel")? } else { stem };
            stem.parse().ok()
        });
        if let (true, Some(number)) = (ours, number) {
            files.push((number, path));
        }
    }
    Ok(files)
}

/// The newest filter of a folder and its journal, if they are complete. Does not change the folder.
fn open_pair<K: Kind>(
    folder: &Path,
    identity: u64,
    kind: &K,
    stamp: Option<Stamp>,
) -> Result<(u64, Replay, K::Generation), Unusable> {
    let files = files_in(folder).map_err(Unusable::Io)?;
    let is_filter = |path: &Path| path.extension().is_some_and(|end| end == "umbel");
    let filters = files.iter().filter(|(_, path)| is_filter(path));
    let (number, path) = filters.max_by_key(|(number, _)| *number).ok_or(Unusable::Missing)?;
    let replay = Replay::read(&path.with_extension("journal"))?;
    trust(&replay, identity, stamp)?;
    let filter = kind.load(path).map_err(Unusable::Filter)?;
    if replay.owner.check != filter.check() {
        return Err(Unusable::Journal("is of another filter"));
    }
    apply(&filter, &replay.digests, kind.removes())?;
    Ok((*number, replay, filter))
}

/// Whether a journal has all keys that the data set can have, by the table of the [module](self).
fn trust(replay: &Replay, identity: u64, stamp: Option<Stamp>) -> Result<(), Unusable> {
    let Some(stamp) = stamp else { return Err(Unusable::Stampless) };
    if replay.owner.identity != identity {
        return Err(Unusable::Identity);
    }
    if stamp.incarnation != replay.owner.incarnation && Some(stamp.incarnation) != replay.before {
        return Err(Unusable::Incarnation);
    }
    if stamp.mark > replay.mark {
        return Err(Unusable::Stale { set: stamp.mark, journal: replay.mark });
    }
    if stamp.mark < replay.floor {
        return Err(Unusable::RolledBack { set: stamp.mark, floor: replay.floor });
    }
    Ok(())
}

/// A saved filter, or why it cannot be used, and the lock that keeps other guards out during its use.
pub(crate) type Looked<G> = (Result<G, Unusable>, Option<Lock>);

/// The filter that is saved in a folder, for a guard that does not change the folder.
pub(crate) fn look<K: Kind, E>(
    folder: &Path,
    identity: &[u8],
    kind: &K,
    stamp: Option<Stamp>,
) -> Result<Looked<K::Generation>, StartError<E>> {
    let lock = match ours(OpenOptions::new().read(true)).open(folder.join("lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Err(Unusable::Missing), None));
        }
        Err(error) => return Err(StartError::Io(error)),
    };
    check_private(folder)?;
    locked(lock.try_lock_shared())?;
    let lock = Lock(lock);
    let opened = open_pair(folder, number_of(identity), kind, stamp);
    Ok((opened.map(|(_, _, filter)| filter), Some(lock)))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::kind::Local;

    /// A folder with a filter and its journal.
    async fn kept() -> (tempfile::TempDir, Arc<Keep>) {
        let place = tempfile::tempdir().unwrap();
        let opened = Keep::open::<io::Error>(&place.path().join("f"), Durability::Written, b"set");
        let keep = Arc::new(opened.unwrap());
        let pair = keep.prepare(true);
        keep.save(pair.number(), &filter().await, None).unwrap();
        keep.take_over(&pair).unwrap();
        drop(pair);
        assert_eq!(numbers(&keep), [1, 1]);
        (place, keep)
    }

    async fn filter() -> <Local as Kind>::Generation {
        Local::blocked(0.01).begin(10).await.unwrap()
    }

    /// The numbers of all files.
    fn numbers(keep: &Keep) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            keep.files().unwrap().iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[tokio::test]
    async fn a_pair_that_was_given_up_is_not_saved_afterwards() {
        let (_place, keep) = kept().await;
        let filter = filter().await;
        // Given up before the saving thread has started.
        let number = keep.prepare(true).number();
        assert!(keep.save(number, &filter, None).is_err());
        assert_eq!(numbers(&keep), [1, 1]);
        // Given up, while another pair is being saved.
        let late = keep.prepare(true).number();
        let pair = keep.prepare(false);
        assert!(keep.save(late, &filter, None).is_err());
        keep.save(pair.number(), &filter, None).unwrap();
        assert_eq!(numbers(&keep), [1, 1, pair.number(), pair.number()]);
        drop(pair);
        assert_eq!(numbers(&keep), [1, 1]);
    }

    #[tokio::test]
    async fn a_filter_that_is_not_trusted_is_not_saved_by_a_checkpoint() {
        let (_place, keep) = kept().await;
        let filter = filter().await;
        let checkpoint = keep.prepare(false);
        keep.save(checkpoint.number(), &filter, None).unwrap();
        keep.distrust().unwrap();
        assert!(keep.files().unwrap().is_empty());
        assert!(keep.take_over(&checkpoint).is_err());
        // A different filter, which a rebuild saves, stays.
        let rebuilt = keep.prepare(true);
        keep.save(rebuilt.number(), &filter, None).unwrap();
        keep.distrust().unwrap();
        assert_eq!(numbers(&keep), [rebuilt.number(); 2]);
        keep.take_over(&rebuilt).unwrap();
    }

    #[tokio::test]
    async fn what_a_killed_save_left_is_removed() {
        let (_place, keep) = kept().await;
        let part = keep.folder.join(".7.umbel.umbel-part");
        fs::write(&part, b"part").unwrap();
        keep.distrust().unwrap();
        assert!(!part.exists());
    }

    fn fail(keep: &Keep) {
        keep.logs().current.as_mut().expect("a journal").1.fail();
    }

    #[tokio::test]
    async fn a_journal_that_cannot_be_written_takes_its_filter_with_it() {
        let (_place, keep) = kept().await;
        fail(&keep);
        keep.deleting().unwrap();
        assert!(keep.files().unwrap().is_empty() && keep.journaled().is_none());
        let (_place, keep) = kept().await;
        fail(&keep);
        keep.renew(9);
        assert!(keep.files().unwrap().is_empty() && keep.journaled().is_none());
        let (_place, keep) = kept().await;
        fail(&keep);
        keep.deleted(1);
        assert!(keep.files().unwrap().is_empty() && keep.journaled().is_none());
    }

    #[tokio::test]
    async fn nothing_is_written_before_files_that_lack_a_key_are_gone() {
        let (_place, keep) = kept().await;
        // A directory with the name of a filter cannot be removed as a file.
        let stuck = keep.filter_path(7);
        fs::create_dir(&stuck).unwrap();
        assert!(keep.distrust().is_err());
        for _ in 0..2 {
            assert!(keep.deleting().is_err());
        }
        fs::remove_dir(&stuck).unwrap();
        keep.deleting().unwrap();
        assert!(keep.files().unwrap().is_empty());
    }
}
