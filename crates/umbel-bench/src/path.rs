//! The code path that our filters use during a measurement. Peers are not affected.

use serde::{Serialize, Serializer};
use std::sync::{Mutex, PoisonError};
use umbel::simd::{self, Path, Unavailable};

/// Held while a path is forced, because the switch is global to the process.
static SWITCH: Mutex<()> = Mutex::new(());

/// Runs `work` while our filters use `path`; `None` is their own choice.
///
/// # Errors
///
/// [`Unavailable`] if this processor does not support the path. `work` is not run then.
pub(crate) fn taking<R>(path: Option<Path>, work: impl FnOnce() -> R) -> Result<R, Unavailable> {
    let _held = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    let _forced = Forced::new(path)?;
    Ok(work())
}

/// A path that is forced until this is dropped.
struct Forced;

impl Forced {
    fn new(path: Option<Path>) -> Result<Self, Unavailable> {
        simd::force(path).map(|()| Self)
    }
}

impl Drop for Forced {
    fn drop(&mut self) {
        simd::force(None).expect("the choice can always be given back");
    }
}

/// The name of a path, in lower case.
pub(crate) fn name(path: Path) -> String {
    format!("{path:?}").to_lowercase()
}

/// A path in a report: its name, or nothing.
pub(crate) fn serialize<S: Serializer>(path: &Option<Path>, to: S) -> Result<S::Ok, S::Error> {
    path.map(name).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_forced_path_is_given_back_even_after_a_panic() {
        let _held = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
        let own = simd::path();
        let panicked = catch_unwind(|| {
            let _forced = Forced::new(Some(Path::Portable)).expect("everywhere");
            assert_eq!(simd::path(), Path::Portable);
            panic!("while the path is forced");
        });
        assert!(panicked.is_err());
        assert_eq!(simd::path(), own);
    }

    #[test]
    fn a_path_that_this_processor_lacks_is_refused() {
        for path in Path::ALL {
            assert_eq!(taking(Some(path), || ()).is_ok(), path.is_available(), "{path:?}");
        }
    }
}
