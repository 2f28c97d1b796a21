//! Database addresses as users write them: removing the password, and comparing two addresses.

use super::Postgres;
use super::error::{PostgresError, Result};
use tokio_postgres::Config;

impl Postgres {
    /// The address of a database without its password, for logs and files.
    ///
    /// # Errors
    ///
    /// [`PostgresError`] if this is not an address, or if it still has a password after every known form of
    /// password was removed.
    pub fn without_password(url: &str) -> Result<String> {
        let _valid: Config = url.parse().map_err(|_| PostgresError::Url)?;
        let stripped = match url.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", stripped_url(rest)),
            None => stripped_settings(url).ok_or(PostgresError::Url)?,
        };
        let config: Config = stripped.parse().map_err(|_| PostgresError::Url)?;
        match config.get_password() {
            Some(_) => Err(PostgresError::Url),
            None => Ok(stripped),
        }
    }

    /// Whether two addresses name the same database on the same server. The user, the password and other
    /// settings may differ.
    ///
    /// # Errors
    ///
    /// [`PostgresError`] if one of them is not an address.
    pub fn is_same_database(one: &str, other: &str) -> Result<bool> {
        let [one, other] = [one, other].map(|url| url.parse::<Config>());
        let (Ok(one), Ok(other)) = (one, other) else { return Err(PostgresError::Url) };
        // The server uses the user name as the database name if none is given.
        let database =
            |config: &Config| config.get_dbname().or(config.get_user()).map(str::to_owned);
        let ports = |config: &Config| match config.get_ports() {
            [] => vec![5432],
            ports => ports.to_vec(),
        };
        Ok(one.get_hosts() == other.get_hosts()
            && one.get_hostaddrs() == other.get_hostaddrs()
            && ports(&one) == ports(&other)
            && database(&one) == database(&other))
    }
}

/// The part after `postgres://`, without `:password` before the `@` and without `password=` after the question
/// mark.
fn stripped_url(rest: &str) -> String {
    let (user, rest) = match rest.split_once('@') {
        Some((user, rest)) => (Some(user.split(':').next().unwrap_or_default()), rest),
        None => (None, rest),
    };
    let mut stripped = user.map(|user| format!("{user}@")).unwrap_or_default();
    match rest.split_once('?') {
        None => stripped += rest,
        Some((place, settings)) => {
            let kept: Vec<&str> =
                settings.split('&').filter(|setting| !setting.starts_with("password=")).collect();
            stripped += place;
            if !kept.is_empty() {
                stripped += "?";
                stripped += &kept.join("&");
            }
        }
    }
    stripped
}

/// Settings such as `host=a password='b c'`, without the password. `None` if they cannot be parsed.
fn stripped_settings(text: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let name = rest.split('=').next()?.trim_end();
        let value = rest.split_once('=')?.1.trim_start();
        let end = rest.len() - value.len() + value_end(value)?;
        if name != "password" {
            kept.push(&rest[..end]);
        }
        rest = rest[end..].trim_start();
    }
    Some(kept.join(" "))
}

/// The end of a value, quoted or not. A backslash escapes the next character.
fn value_end(value: &str) -> Option<usize> {
    let quoted = value.starts_with('\'');
    let mut letters = value.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => _ = letters.next()?,
            '\'' if quoted => return Some(at + 1),
            blank if !quoted && blank.is_whitespace() => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_password_and_nothing_else() {
        for (url, stripped) in [
            ("postgres://ada@db/shop", "postgres://ada@db/shop"),
            ("postgres://ada:se%40cret@db:5433/shop", "postgres://ada@db:5433/shop"),
            (
                "postgresql://ada:a:b@db/shop?sslmode=require",
                "postgresql://ada@db/shop?sslmode=require",
            ),
            ("postgres://db/shop?user=ada&password=secret", "postgres://db/shop?user=ada"),
            ("postgres://db/shop?password=secret", "postgres://db/shop"),
            ("host=/run/postgresql user=ada password=secret", "host=/run/postgresql user=ada"),
            ("password = 'se\\'c ret' host=db user=ada", "host=db user=ada"),
            ("host=db password=se\\ cret user='ada'", "host=db user='ada'"),
        ] {
            assert_eq!(Postgres::without_password(url).unwrap(), stripped, "{url}");
        }
        // A percent-encoded parameter name is not recognised, so the address is refused.
        for url in ["postgres://db/shop?pass%77ord=secret", "nonsense", "postgres://db/shop?x=y"] {
            assert!(Postgres::without_password(url).is_err(), "{url}");
        }
    }

    #[test]
    fn addresses_of_one_database_agree() {
        let same = |one, other| Postgres::is_same_database(one, other).unwrap();
        assert!(same("postgres://ada:a@db/shop", "postgres://bob@db:5432/shop?sslmode=require"));
        assert!(same("postgres://ada@db", "host=db user=eve dbname=ada"));
        for other in
            ["postgres://ada@db/other", "postgres://ada@db2/shop", "postgres://ada@db:5433/shop"]
        {
            assert!(!same("postgres://ada@db/shop", other), "{other}");
        }
    }
}
