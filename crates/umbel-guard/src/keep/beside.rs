//! A small file that a program stores in the folder of a guard, for example the settings of the guard.
//!
//! It is as private as the filter: the folder must belong to this user and must not be writable by others,
//! symbolic links are not followed, and the file has mode 600. A write replaces the whole file or leaves it
//! unchanged.

use super::log::ours;
use super::{check_private, make_private};
use crate::error::StartError;
use std::convert::Infallible;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;
use umbel::format::disk::{System, replace};

/// The content of the file `name` in a folder; `None` if the file or the folder does not exist.
///
/// # Errors
///
/// [`StartError`] if the folder is not private, or if the file cannot be read or has more than `limit` bytes.
pub fn read_beside(
    folder: &Path,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, StartError<Infallible>> {
    let file = match ours(OpenOptions::new().read(true)).open(folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StartError::Io(error)),
    };
    check_private(folder)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(StartError::Io)?;
    if bytes.len() as u64 > limit {
        let what = format!("{name}: expected at most {limit} bytes");
        return Err(StartError::Io(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    Ok(Some(bytes))
}

/// Writes the file, and replaces an existing one. The folder is created if it does not exist.
///
/// # Errors
///
/// [`StartError`] if the folder is not private, or if the file cannot be written; the old file is then unchanged.
pub fn write_beside(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StartError<Infallible>> {
    make_private(folder)?;
    let write = |file: &mut std::fs::File| file.write_all(bytes);
    replace(&System, &folder.join(name), true, write).map_err(StartError::Io)
}
