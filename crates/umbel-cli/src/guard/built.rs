//! How many keys the saved filter was built from, so that a later run notices rows that were added past the guard.
//!
//! `umbel guard attach` keeps the number in `built.json` in the folder:
//!
//! ```text
//! {"umbel_guard": 1, "keys": 30000, "incarnation": "00c0ffee00c0ffee"}
//! ```
//!
//! It holds only while the data set has the same incarnation: a guard that starts later may write keys through the filter. A file that is
//! missing or damaged means that the number is not known; nothing else depends on it.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use umbel_guard::DataSet;
use umbel_guard::keep::{read_beside, write_beside};

/// The name of the file.
const FILE: &str = "built.json";
/// The version of its form.
const VERSION: u64 = 1;
/// The largest file that is read.
const LIMIT: u64 = 4 << 10;

/// Remembers the number of keys, if the data set keeps a stamp that shows how long it holds.
pub(super) async fn write<D: DataSet>(folder: &Path, set: &D, keys: u64) -> Result<()> {
    let Some(stamp) = set.stamp().await? else { return Ok(()) };
    let incarnation = format!("{:016x}", stamp.incarnation);
    let built = json!({"umbel_guard": VERSION, "keys": keys, "incarnation": incarnation});
    let text = format!("{built}\n");
    write_beside(folder, FILE, text.as_bytes()).with_context(|| folder.display().to_string())
}

/// The number of keys that the saved filter has; `None` if it is not known.
pub(super) async fn read<D: DataSet>(folder: &Path, set: &D) -> Result<Option<u64>> {
    let Ok(Some(bytes)) = read_beside(folder, FILE, LIMIT) else { return Ok(None) };
    let Some(stamp) = set.stamp().await? else { return Ok(None) };
    let Some((keys, incarnation)) = parse(&bytes) else { return Ok(None) };
    Ok((incarnation == stamp.incarnation).then_some(keys))
}

fn parse(bytes: &[u8]) -> Option<(u64, u64)> {
    let built: Value = serde_json::from_slice(bytes).ok()?;
    if built["umbel_guard"].as_u64()? != VERSION {
        return None;
    }
    let incarnation = built["incarnation"].as_str().filter(|digits| digits.len() == 16)?;
    Some((built["keys"].as_u64()?, u64::from_str_radix(incarnation, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_form_says_nothing() {
        let whole = br#"{"umbel_guard": 1, "keys": 30, "incarnation": "00c0ffee00c0ffee"}"#;
        assert_eq!(parse(whole), Some((30, 0x00c0_ffee_00c0_ffee)));
        for bytes in [
            &b""[..],
            b"[]",
            b"{}",
            br#"{"umbel_guard": 2, "keys": 30, "incarnation": "00c0ffee00c0ffee"}"#,
            br#"{"umbel_guard": 1, "keys": -1, "incarnation": "00c0ffee00c0ffee"}"#,
            br#"{"umbel_guard": 1, "keys": 30, "incarnation": "ffee"}"#,
            br#"{"umbel_guard": 1, "keys": 30, "incarnation": "00c0ffee00c0ffeg"}"#,
        ] {
            assert_eq!(parse(bytes), None, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
