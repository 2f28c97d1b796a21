//! A Unix socket that `umbel guard serve` listens on.
//!
//! The socket is made in a folder that only its owner can enter, gets its permissions there, and is then linked to its name. So
//! no other user can connect before the permissions are set, and nothing that has this name is replaced.

use anyhow::{Context, Result, bail};
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// How often a name is tried that another process takes at the same time.
const TRIES: u32 = 8;

/// The name of a socket that this process listens on.
#[derive(Debug)]
pub(super) struct Name {
    path: PathBuf,
    file: (u64, u64),
}

impl Name {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the name away, unless it belongs to another socket by now.
    pub(super) fn remove(&self) {
        if self.path.symlink_metadata().is_ok_and(|there| id(&there) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// A folder for its owner only, gone when it is dropped.
struct Private(PathBuf);

impl Private {
    fn beside(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else { return Err(ErrorKind::InvalidInput.into()) };
        let name = name.to_string_lossy();
        // Short, since the name of a socket has at most 107 bytes.
        let folder = path.with_file_name(format!(".{name}.{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        for name in ["s", "old"] {
            let _ = fs::remove_file(self.0.join(name));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Listens at `path` with these permissions. A socket that a dead process left there is replaced; anything else is an error.
pub(super) fn listen(path: &Path, mode: u32) -> Result<(UnixListener, Name)> {
    let name = || path.display().to_string();
    let folder = Private::beside(path).with_context(name)?;
    let made = folder.0.join("s");
    let listener = UnixListener::bind(&made).with_context(name)?;
    fs::set_permissions(&made, Permissions::from_mode(mode)).with_context(name)?;
    listener.set_nonblocking(true).with_context(name)?;
    let file = id(&made.symlink_metadata().with_context(name)?);
    for _ in 0..TRIES {
        match fs::hard_link(&made, path) {
            Ok(()) => return Ok((listener, Name { path: path.to_owned(), file })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                remove_dead(path, &folder.0.join("old"))?;
            }
            Err(error) => return Err(error).with_context(name),
        }
    }
    bail!("{}: other processes listen and end there all the time", path.display())
}

/// Takes a socket away on which no process listens.
fn remove_dead(path: &Path, aside: &Path) -> Result<()> {
    let name = || path.display().to_string();
    let there = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        there => there.with_context(name)?,
    };
    if !there.file_type().is_socket() {
        bail!("{}: is there already and is no socket; choose another --socket", path.display());
    }
    match UnixStream::connect(path) {
        Ok(_) => bail!("{}: another process listens on this socket", path.display()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(name),
    }
    // Another process may have put a socket of its own there since. Moved aside, it can be looked at once more.
    match fs::rename(path, aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        moved => moved.with_context(name)?,
    }
    if id(&aside.symlink_metadata().with_context(name)?) != id(&there) {
        fs::hard_link(aside, path).with_context(name)?;
        fs::remove_file(aside).with_context(name)?;
        bail!("{}: another process listens on this socket", path.display());
    }
    fs::remove_file(aside).with_context(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().expect("it is there").permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_socket_has_its_permissions_and_goes_away_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guard.sock");
        for permissions in [0o600, 0o660] {
            let (listener, name) = listen(&path, permissions).expect("it listens");
            assert_eq!(mode(&path), permissions);
            assert_eq!(names(folder.path()), ["guard.sock"]);
            UnixStream::connect(&path).expect("the name leads to the socket");
            drop(listener);
            name.remove();
            assert!(names(folder.path()).is_empty());
        }
    }

    #[test]
    fn only_a_dead_socket_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guard.sock");
        let (live, first) = listen(&path, 0o600).expect("it listens");
        let error = listen(&path, 0o600).expect_err("refused").to_string();
        assert!(error.ends_with("guard.sock: another process listens on this socket"), "{error}");
        UnixStream::connect(&path).expect("the first one is there still");
        drop(live);
        let (_second, name) = listen(&path, 0o600).expect("the dead one is replaced");
        UnixStream::connect(&path).expect("the second one is there");
        // A process that ends late does not take the name of the next one away.
        first.remove();
        UnixStream::connect(&path).expect("the second one is there");
        name.remove();
        fs::write(&path, "mine").expect("a file");
        let error = listen(&path, 0o600).expect_err("refused").to_string();
        assert!(
            error.ends_with("is there already and is no socket; choose another --socket"),
            "{error}"
        );
        assert_eq!(fs::read(&path).expect("the file"), b"mine");
        // Nor what a link leads to.
        let other = folder.path().join("other.sock");
        drop(UnixListener::bind(&other).expect("a dead socket"));
        fs::remove_file(&path).expect("the file");
        std::os::unix::fs::symlink(&other, &path).expect("a link");
        assert!(listen(&path, 0o600).is_err());
        assert!(other.symlink_metadata().is_ok() && path.symlink_metadata().is_ok());
    }
}
