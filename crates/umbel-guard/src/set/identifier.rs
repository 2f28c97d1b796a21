//! Names of tables and columns in statements of SQL.

/// A name as a quoted identifier of SQL. It may contain any character.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_they_are() {
        assert_eq!(quoted("users"), "\"users\"");
        assert_eq!(quoted("a\"; DROP TABLE b; --"), "\"a\"\"; DROP TABLE b; --\"");
    }
}
