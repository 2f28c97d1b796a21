//! Secrets of new filters.

use umbel::Keyed;

/// A random secret.
///
/// Builds with debug assertions, which are what `cargo test` runs, take it from `UMBEL_TEST_SECRET` if that is set, so that what
/// tests expect does not depend on chance. Release builds do not look at the variable: a secret that is left in an
/// environment by mistake would let strangers choose keys that collide.
pub(crate) fn fresh() -> Keyed {
    let for_tests = cfg!(debug_assertions).then(|| std::env::var("UMBEL_TEST_SECRET").ok());
    match for_tests.flatten() {
        None => Keyed::random(),
        Some(digits) => {
            let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
            Keyed::new(number.expect("UMBEL_TEST_SECRET has 32 hexadecimal digits").to_be_bytes())
        }
    }
}
