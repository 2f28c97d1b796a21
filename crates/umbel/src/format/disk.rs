//! Replaces a file atomically: after any failure, either the old or the new file exists in full.
//!
//! ```text
//!     create .name.umbel-part, alone   write   sync it   rename it to name   sync the directory
//! ```
//!
//! All disk accesses go through [`Disk`], so that the tests run the same code on a disk that loses,
//! tears and reorders unsynced writes.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file system operations that replacing a file needs.
pub trait Disk {
    /// A file that is being written.
    type File: io::Write;

    /// Creates a file for one writer. If `private`, only its owner may read it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::ResourceBusy`] if another writer has it. A file that a dead writer left
    /// behind is removed first.
    fn create(&self, path: &Path, private: bool) -> io::Result<Self::File>;

    /// Returns after all written bytes are on the disk.
    ///
    /// # Errors
    ///
    /// If they are not. Do not retry: a system may report success the second time although the
    /// bytes are lost.
    fn sync(&self, file: &mut Self::File) -> io::Result<()>;

    /// Renames a file, and replaces an existing file of the new name.
    ///
    /// # Errors
    ///
    /// If that is not possible. Nothing has changed then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns after the names in a directory are on the disk.
    ///
    /// # Errors
    ///
    /// If they are not.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Closes a file and releases the writer's lock, even if another thread has just forked a
    /// process that inherited the file.
    fn close(&self, file: Self::File);
}

/// Replaces the file at `path` with a new one.
///
/// # Errors
///
/// The first error. The old file at `path` is then unchanged, unless only the sync of the directory
/// failed: then it is either the old file or the new one.
pub fn replace<D: Disk>(
    disk: &D,
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut D::File) -> io::Result<()>,
) -> io::Result<()> {
    let part = part_of(path)?;
    let mut file = disk.create(&part, private)?;
    let done = write(&mut file)
        .and_then(|()| disk.sync(&mut file))
        .and_then(|()| disk.rename(&part, path));
    if done.is_err() {
        // Report the first error, not one of the cleanup.
        let _ = disk.remove(&part);
    }
    disk.close(file);
    done?;
    disk.sync_directory(directory_of(path))
}

/// The temporary name of the file while it is written. It is in the same directory and always the
/// same, so that two writers conflict and a file of a dead writer is found.
fn part_of(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let mut part = OsString::from(".");
    part.push(name);
    part.push(".umbel-part");
    Ok(path.with_file_name(part))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

/// How many times to retry if another writer removes the new file before it is locked.
const TRIES: u32 = 16;

impl Disk for System {
    type File = File;

    fn create(&self, path: &Path, private: bool) -> io::Result<File> {
        for _ in 0..TRIES {
            match create_new(path, private) {
                Ok(file) => match lock(&file) {
                    Ok(true) if is_at(&file, path) => return Ok(file),
                    Ok(_) => {}
                    Err(error) => {
                        // No other writer can have it: where locks fail, they fail for all.
                        if is_at(&file, path) {
                            let _ = std::fs::remove_file(path);
                        }
                        return Err(error);
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // Opening a pipe would wait for its writer.
                    if std::fs::symlink_metadata(path).is_ok_and(|left| !left.is_file()) {
                        return Err(io::Error::other(alloc::format!(
                            "{} is in the way, and is not a file that a writer left behind: remove it",
                            path.display()
                        )));
                    }
                    let left = OpenOptions::new().read(true).open(path);
                    match left {
                        Ok(file) if lock(&file)? => {
                            let removed = match is_at(&file, path) {
                                true => std::fs::remove_file(path),
                                false => Ok(()),
                            };
                            self.close(file);
                            removed?;
                        }
                        Ok(_) => return Err(io::ErrorKind::ResourceBusy.into()),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn close(&self, file: File) {
        // Without this the lock would last until every inherited copy of the file is closed. If it
        // fails, closing the file releases the lock.
        let _ = file.unlock();
    }
}

fn create_new(path: &Path, private: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path)
}

/// Tries to lock the file. Returns `false` if another process has the lock.
fn lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the file still has this name: another writer may have removed it before it was locked.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(file), Ok(there)) => identity(file) == identity(there),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
