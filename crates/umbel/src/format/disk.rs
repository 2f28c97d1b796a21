//! A file that is replaced as a whole: whatever happens, the old one is there or the new one.
//!
//! ```text
//!     create .name.umbel-part, alone   write   sync it   rename it to name   sync the directory
//! ```
//!
//! All that touches a disk goes through [`Disk`], so that the same lines run on one that loses, tears
//! and reorders what was not synced.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// What replacing a file takes of a file system.
pub trait Disk {
    /// A file that is being written.
    type File: io::Write;

    /// A new file for one writer: `private` ones only their owner may read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::ResourceBusy`] if another writer has it. One that a dead writer left behind
    /// is taken away first.
    fn create(&self, path: &Path, private: bool) -> io::Result<Self::File>;

    /// Returns when all that was written is on the disk.
    ///
    /// # Errors
    ///
    /// If it is not. It must not be tried again: the second time a system may lie.
    fn sync(&self, file: &mut Self::File) -> io::Result<()>;

    /// Gives a file another name, in place of what had that name.
    ///
    /// # Errors
    ///
    /// If that is not possible. Nothing has changed then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns when the names in a directory are on the disk.
    ///
    /// # Errors
    ///
    /// If they are not.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Takes a file away.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Closes a file and releases the writer's lock, even if a process that another thread is
    /// starting has inherited the file.
    fn close(&self, file: Self::File);
}

/// Puts a new file in the place of what is at `path`.
///
/// # Errors
///
/// The first thing that went wrong. What was at `path` is there still, unless it is only the
/// directory that could not be synced: then the old file or the new one is.
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
        // The first error is the one to report.
        let _ = disk.remove(&part);
    }
    disk.close(file);
    done?;
    disk.sync_directory(directory_of(path))
}

/// The name of the file while it is written: in the same directory, and always the same, so that two
/// writers meet and what a dead one left is found.
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

/// How often a file is made that another writer takes away before it is locked.
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
                        // Nobody else can have it: where locks fail, they fail for all.
                        if is_at(&file, path) {
                            let _ = std::fs::remove_file(path);
                        }
                        return Err(error);
                    }
                },
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // To open a pipe is to wait for its writer.
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
        // Without this the lock would last until every inherited copy of the file is closed.
        // If it fails, closing the file releases the lock.
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

/// Whether nobody else has it.
fn lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether it still has this name: another writer may have taken it away before it was locked.
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
