//! Filters on a server: `redis://host:port/0?key=name` wherever a file could be.

use crate::limit::{Fill, Planned};
use crate::output::note;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use umbel::any::{AnyFilter, AnyHasher};
use umbel::blocked::Shape;
use umbel::hash::Digest;
use umbel::plan::AnyShape;
use umbel::{BlockedBloomFilter, Keyed, Portable};
use umbel_redis::{Answer, Blocking, Error, Found, Limits, Options, Reason, Server, SharedBloom};

/// How such an address begins.
const SCHEMES: [&str; 4] = ["redis://", "rediss://", "valkey://", "valkeys://"];

/// Whether this is no file but a filter on a server.
pub(crate) fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}

/// Where a filter is: the server, and what stands behind the question mark.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    url: String,
    key: String,
    cluster: bool,
    shards: Option<u32>,
    secret: Option<PathBuf>,
    /// Whether a filter is begun, for a command that would otherwise open one.
    create: bool,
}

/// As it is shown: without a password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("", &self.url));
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        write!(f, "{scheme}://{host}?key={}", self.key)
    }
}

impl Address {
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let text = path.to_str().context("an address is UTF-8")?;
        let (url, query) = text.split_once('?').unwrap_or((text, ""));
        let mut address = Self {
            url: url.into(),
            key: String::new(),
            cluster: false,
            shards: None,
            secret: None,
            create: false,
        };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = decoded(value)?;
            match name {
                "key" => address.key = value,
                "cluster" => address.cluster = value != "no",
                "shards" => {
                    address.shards = Some(value.parse().context("shards= takes a number")?);
                }
                "secret" => address.secret = Some(value.into()),
                "create" => address.create = value != "no",
                _ => bail!(
                    "unknown part {name:?} of an address: it takes key, secret, shards, cluster and create"
                ),
            }
        }
        if address.key.is_empty() {
            bail!("{address}: the address lacks the name of the filter: {url}?key=name");
        }
        Ok(address)
    }

    fn options(&self) -> Options {
        Options { shards: self.shards, ..Options::default() }
    }

    async fn connect(&self) -> Result<Server, Error> {
        // Somebody waits for a whole file, not for an answer.
        let limits = Limits { reply: std::time::Duration::from_secs(10), ..Limits::default() };
        match self.cluster {
            true => Server::cluster(&[&self.url], limits).await,
            false => Server::replicated(&[&self.url], limits).await,
        }
    }

    /// The secret that goes with the filter.
    fn keyed(&self) -> Result<Option<Keyed>> {
        let Some(path) = &self.secret else { return Ok(None) };
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        let digits = text.trim_end();
        let number = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32);
        let number = number
            .with_context(|| format!("{}: expected a secret of 32 hexadecimal digits", name()))?;
        Ok(Some(Keyed::new(number.to_be_bytes())))
    }

    /// The hasher of a filter that is made now. A new secret is kept in its file, for its owner only.
    pub(crate) fn hasher(&self, keyed: bool, seed: u64) -> Result<AnyHasher> {
        if !keyed {
            return Ok(Portable::seeded(seed).into());
        }
        let Some(path) = &self.secret else {
            bail!(
                "{self}: --hash keyed needs a file for its secret, which is not kept on the server: add &secret=FILE to the address"
            );
        };
        let name = || path.display().to_string();
        if !path.try_exists().with_context(name)? {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let digits = format!("{:032x}\n", u128::from_be_bytes(*Keyed::random().secret()));
            let mut file = options.open(path).with_context(name)?;
            file.write_all(digits.as_bytes()).and_then(|()| file.sync_all()).with_context(name)?;
        }
        Ok(self.keyed()?.context("a secret that was just written")?.into())
    }

    /// Whether an empty filter is to be created. A filter that is missing may have been lost, so this is for the
    /// caller to say, and only where it makes a difference.
    pub(crate) const fn creates(&self) -> bool {
        self.create
    }

    /// That the command opens a filter or copies one, and `&create` has nothing to say.
    fn not_created(&self) -> Result<()> {
        if self.create {
            bail!("{self}: &create is for dedup --state, which can begin a filter; leave it out");
        }
        Ok(())
    }

    /// Whether a secret was named.
    pub(crate) const fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Whether there is a filter. With `replace` there is none afterwards.
    pub(crate) fn is_taken(&self, replace: bool) -> Result<bool> {
        let found = Blocking::open(async {
            let server = self.connect().await?;
            let found = match Found::find(&server, &self.key).await {
                Ok(found) => found,
                Err(Error::Unknown(Reason::Missing)) => return Ok(false),
                Err(error) => return Err(error),
            };
            if replace {
                found.delete(&server).await?;
            }
            Ok(!replace)
        });
        found.map(|found| *found.filter()).with_context(|| self.to_string())
    }
}

/// What `%20` and the like stand for.
fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first == b'%' {
            let digits = more.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.context("a % in an address is followed by two hexadecimal digits")?);
            rest = &more[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).context("the name of a filter is UTF-8")
}

/// A filter on a server, opened.
pub(crate) struct Remote {
    filter: Blocking<SharedBloom<[u8], AnyHasher>>,
    address: Address,
}

impl Remote {
    /// The filter at this address, if there is one and its keys are bytes, as records are.
    pub(crate) fn open(address: &Address) -> Result<Self> {
        address.not_created()?;
        let secret = address.keyed()?;
        let filter = Blocking::open(async {
            let server = address.connect().await?;
            let options = address.options();
            match secret {
                Some(keyed) => {
                    SharedBloom::open(&server, &address.key, keyed.into(), &options).await
                }
                None => SharedBloom::open_as_it_is(&server, &address.key, &options).await,
            }
        });
        let filter = match filter {
            Err(Error::Hasher(_)) => {
                bail!(
                    "{address}: its keys are hashed with a secret, which is not kept on the server: add &secret=FILE to the address"
                )
            }
            other => other.with_context(|| address.to_string())?,
        };
        let remote = Self { filter, address: address.clone() };
        crate::change::of_lines(remote.hasher().keys()).with_context(|| address.to_string())?;
        Ok(remote.warned())
    }

    /// As [`open`](Self::open), for a command that could begin a filter if it were told to.
    pub(crate) fn open_state(address: &Address) -> Result<Self> {
        Self::open(address).map_err(|error| match error.downcast_ref() {
            Some(missing @ Error::Unknown(Reason::Missing)) => {
                anyhow!("{address}: {missing}; add &create to the address to begin an empty filter")
            }
            _ => error,
        })
    }

    /// A new filter of this shape without keys, which answers at once: the caller has said that it begins.
    pub(crate) fn create(address: &Address, shape: Shape, hasher: AnyHasher) -> Result<Self> {
        let filter = Blocking::open(async {
            let (server, options) = (address.connect().await?, address.options());
            let filter =
                SharedBloom::create(&server, &address.key, shape, hasher, &options).await?;
            filter.complete().await?;
            Ok(filter)
        });
        let filter = match filter {
            Err(Error::Exists) => {
                bail!("{address}: is there already; leave &create out to go on with it")
            }
            other => other.with_context(|| address.to_string())?,
        };
        Ok(Self { filter, address: address.clone() }.warned())
    }

    /// Copies a filter to a server.
    pub(crate) fn upload(
        address: &Address,
        filter: &BlockedBloomFilter<[u8], AnyHasher>,
    ) -> Result<()> {
        address.not_created()?;
        let filter = Blocking::open(async {
            let server = address.connect().await?;
            SharedBloom::upload(&server, &address.key, filter, &address.options()).await
        });
        let filter = filter.with_context(|| address.to_string())?;
        Self { filter, address: address.clone() }.warned();
        Ok(())
    }

    /// Says how the server may lose it.
    fn warned(self) -> Self {
        for hazard in self.filter.filter().hazards() {
            note(&format!("{}: {hazard}", self.address));
        }
        self
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn hasher(&self) -> &AnyHasher {
        self.filter.filter().hasher()
    }

    /// The name of its hash.
    pub(crate) fn hash(&self) -> &'static str {
        self.hasher().name()
    }

    pub(crate) fn shared(&self) -> &SharedBloom<[u8], AnyHasher> {
        self.filter.filter()
    }

    /// Whether each key was new.
    pub(crate) fn insert(&self, digests: &[Digest], fresh: &mut [bool]) -> Result<()> {
        let answers = self.filter.wait(self.shared().insert_digests(digests));
        let answers = match answers {
            Err(Error::Unknown(reason)) => return Err(self.unknown(reason)),
            answers => answers.with_context(|| self.address.to_string())?,
        };
        self.known(&answers, fresh, |answer| answer.is_absent())
    }

    /// Makes the filter at home on its server as it is now. Unless it was complete there already, which is told, it answers nothing
    /// until [`complete`](Self::complete).
    pub(crate) fn adopt(&self) -> Result<bool> {
        if self.filter.wait(self.shared().is_complete()) == Ok(true) {
            return Ok(true);
        }
        let adopted = self.filter.wait(self.shared().adopt());
        adopted.with_context(|| self.address.to_string())?;
        Ok(false)
    }

    /// Inserts keys into a filter that may be incomplete, and looks whether all of them arrived.
    pub(crate) fn insert_and_look(&self, digests: &[Digest]) -> Result<()> {
        let name = || self.address.to_string();
        self.filter.wait(self.shared().insert_digests(digests)).with_context(name)?;
        let missing = self.filter.wait(self.shared().missing_digests(digests));
        match missing.map_err(Error::Unknown).with_context(name)? {
            0 => Ok(()),
            missing => bail!("{}: {missing} keys that were inserted are not there", self.address),
        }
    }

    /// Says, for the caller, that the filter has every key that it should have.
    pub(crate) fn complete(&self) -> Result<()> {
        let completed = self.filter.wait(self.shared().complete());
        completed.with_context(|| self.address.to_string())
    }

    /// Whether each key may be there.
    pub(crate) fn contains(&self, digests: &[Digest], found: &mut [bool]) -> Result<()> {
        let answers = self.filter.wait(self.shared().contains_digests(digests));
        self.known(&answers, found, |answer| !answer.is_absent())
    }

    /// Why nothing is known, and what to do.
    fn unknown(&self, reason: Reason) -> anyhow::Error {
        let address = &self.address;
        match reason {
            Reason::History => anyhow!(
                "{address}: the server was restarted or has taken over from another one, and may have lost keys; insert them \
                 with umbel adopt, or build the filter again"
            ),
            Reason::Incomplete => anyhow!(
                "{address}: the filter does not have all keys yet, or a command that inserts them was interrupted; insert them \
                 with umbel adopt, or build the filter again"
            ),
            reason => anyhow!("{address}: {reason}"),
        }
    }

    /// That nothing is known is an error here: a line is printed or it is not.
    fn known(
        &self,
        answers: &[Answer],
        yes: &mut [bool],
        is: impl Fn(Answer) -> bool,
    ) -> Result<()> {
        for (answer, yes) in answers.iter().zip(yes) {
            if let Answer::Unknown(reason) = answer {
                return Err(self.unknown(*reason));
            }
            *yes = is(*answer);
        }
        Ok(())
    }

    /// What it was planned for.
    pub(crate) fn planned(&self) -> Option<Planned> {
        Planned::of_outline(&AnyShape::Blocked(*self.shared().shape()))
    }

    /// How full it is, judged by a part of every shard.
    pub(crate) fn fill(&self) -> Result<Fill> {
        let held =
            self.filter.wait(self.shared().estimated_len()).map_err(|error| match error {
                Error::Unknown(reason) => self.unknown(reason),
                error => anyhow::Error::new(error).context(self.address.to_string()),
            })?;
        let rate = if held == u64::MAX { 1.0 } else { self.shared().shape().expected_rate(held) };
        Ok(Fill { held, rate, exact: false })
    }

    /// A copy in memory.
    pub(crate) fn download(&self) -> Result<AnyFilter> {
        let filter = self.filter.wait(self.shared().download());
        Ok(filter.with_context(|| self.address.to_string())?.into())
    }

    /// The rate now, or, if nobody tells, the one that was planned.
    pub(crate) fn rate(&self) -> f64 {
        let shape = self.shared().shape();
        let planned = || shape.expected_rate(shape.items());
        self.download().map_or_else(|_| planned(), |filter| filter.expected_rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<Address> {
        Address::of(Path::new(text))
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let got = address("redis://user:pass%40word@host:6379/2?key=seen%20it&shards=4").unwrap();
        assert_eq!((&*got.key, got.shards, got.cluster), ("seen it", Some(4), false));
        assert_eq!(got.url, "redis://user:pass%40word@host:6379/2");
        assert_eq!(got.to_string(), "redis://host:6379/2?key=seen it");
        let cluster = address("rediss://host?cluster&key=a&secret=s").unwrap();
        assert!(cluster.cluster && cluster.has_secret() && !cluster.creates());
        assert!(address("redis://host?key=a&create").unwrap().creates());
    }

    #[test]
    fn what_is_no_address_says_what_is() {
        for (text, what) in [
            ("redis://host", "lacks the name"),
            ("redis://host?key=", "lacks the name"),
            ("redis://host?key=a&shards=x", "shards= takes a number"),
            ("redis://host?name=a", "unknown part \"name\" of an address"),
            ("redis://host?key=%zz", "two hexadecimal digits"),
            ("redis://host?key=%f", "two hexadecimal digits"),
            ("redis://host?key=%ff", "UTF-8"),
        ] {
            let error = format!("{:#}", address(text).unwrap_err());
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(is_remote(Path::new("valkeys://host")) && !is_remote(Path::new("redis.umbel")));
    }
}
