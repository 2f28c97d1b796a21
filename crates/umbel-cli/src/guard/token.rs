//! The token that `umbel guard serve --token-file` asks for.

use anyhow::{Context, Result, bail};
use axum::http::{HeaderMap, header};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use subtle::ConstantTimeEq;

/// The shortest and the longest token.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=4096;

/// A secret that clients send as `Authorization: Bearer TOKEN`. It has no `Debug`, and no message shows it.
pub(super) struct Token(Vec<u8>);

impl Token {
    /// Reads a token from a file that only its owner may read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        if !path.metadata().with_context(name)?.is_file() {
            bail!("{}: a token is read from a regular file, and this is none", path.display());
        }
        let file = File::open(path).with_context(name)?;
        private(&file, path)?;
        let mut bytes = Vec::new();
        file.take(*LENGTH.end() as u64 + 2).read_to_end(&mut bytes).with_context(name)?;
        Self::of(bytes.trim_ascii_end()).with_context(name)
    }

    fn of(token: &[u8]) -> Result<Self> {
        if !LENGTH.contains(&token.len()) {
            bail!(
                "a token has {} to {} characters, this one has {}; `openssl rand -hex 32` makes one",
                LENGTH.start(),
                LENGTH.end(),
                if token.len() > *LENGTH.end() {
                    "more".to_owned()
                } else {
                    token.len().to_string()
                }
            );
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            bail!(
                "a token is one line of visible ASCII characters; `openssl rand -hex 32` makes one"
            );
        }
        Ok(Self(token.to_vec()))
    }

    /// Whether a request has it. How long the comparison takes tells at most the length of the token.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (given.next(), given.next()) else { return false };
        let Some((scheme, token)) = value.as_bytes().split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(token.ct_eq(&self.0))
    }
}

/// Refuses a file that other users may read.
#[cfg(unix)]
fn private(file: &File, path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let name = path.display();
    let mode = file.metadata().with_context(|| name.to_string())?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        bail!(
            "{name}: has mode {mode:03o}, so that other users may use the token: chmod 600 {name}"
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn private(_: &File, _: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_enough_and_visible() {
        for good in ["0123456789abcdef", &"x".repeat(4096), "a+b/c=d_e-f~g.h!#"] {
            assert!(Token::of(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["", "short", "0123456789 abcdef", "0123456789\nabcdef", "0123456789abcdeä"] {
            let error = format!("{:#}", Token::of(bad.as_bytes()).err().expect("refused"));
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
        assert!(Token::of("x".repeat(4097).as_bytes()).is_err());
    }

    #[test]
    fn only_one_header_with_the_whole_token_is_taken() {
        let token = Token::of(b"0123456789abcdef").expect("a token");
        let with = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().expect("a header"));
            }
            token.is_in(&headers)
        };
        assert!(with(&["Bearer 0123456789abcdef"]) && with(&["bearer 0123456789abcdef"]));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdee",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789ABCDEF",
        ] {
            assert!(!with(&[wrong]), "{wrong}");
        }
        assert!(!with(&[]) && !with(&["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"]));
    }
}
