//! The location of the data set on the server, and the key of its stamp.

/// The prefix of the keys that belong to the guard.
pub(super) const RESERVED: &str = "umbel-guard:stamp:";

/// The location of the data set on the server.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Hash(Vec<u8>),
    Prefix(Vec<u8>),
}

impl Place {
    /// The type that a key of the server must have.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Hash(_) => "hash",
            Self::Prefix(_) => "string",
        }
    }

    /// The key of the stamp. For a hash, it is in the same slot of a cluster as the hash.
    pub(super) fn stamp(&self) -> Vec<u8> {
        let (tag, kind, name) = match self {
            Self::Hash(name) => (tag(name).unwrap_or_default(), "hash", name),
            Self::Prefix(prefix) => (&[][..], "prefix", prefix),
        };
        [RESERVED.as_bytes(), b"{", tag, b"}:", kind.as_bytes(), b":", name].concat()
    }
}

/// The part of a name that determines its slot in a cluster: its hash tag, or the whole name if it has none.
/// `None` if another key cannot have it as its hash tag.
pub(super) fn tag(name: &[u8]) -> Option<&[u8]> {
    if let Some(open) = name.iter().position(|byte| *byte == b'{') {
        let inner = &name[open + 1..];
        if let Some(length @ 1..) = inner.iter().position(|byte| *byte == b'}') {
            return Some(&inner[..length]);
        }
    }
    (!name.contains(&b'}')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_of_a_hash_is_in_its_slot() {
        let stamp = |name: &[u8]| Place::Hash(name.to_vec()).stamp();
        for name in [&b"users"[..], b"a{b}c", b"{}x", b"a{b", b"{{x}}"] {
            let tag = tag(name);
            if let Some(tag) = tag {
                assert_eq!(super::tag(&stamp(name)), Some(tag), "{name:?}");
            }
        }
        assert_eq!(tag(b"a{b}c"), Some(&b"b"[..]));
        assert_eq!(tag(b"{}x"), None);
        assert_eq!(tag(b"a{b"), Some(&b"a{b"[..]));
    }
}
