//! Digests of 128 bits whose first half is what [`Keyed`] gives: SipHash-1-3 with a second word.
//!
//! SipHash of 64 bits ends when its first word is read. This goes on as SipHash of 128 bits does: 0xdd into the second word of the
//! state, three more rounds, and another word is read. Filters under the same secret find the key by the first word, so a
//! set of these digests can go over to a filter without its keys.
//!
//! [`Keyed`]: umbel::Keyed

/// The state after the secret, before any key.
#[derive(Clone, Copy)]
pub(crate) struct Sip([u64; 4]);

impl Sip {
    pub(crate) fn new(secret: &[u8; 16]) -> Self {
        let secret = u128::from_le_bytes(*secret);
        let (first, second) = (secret as u64, (secret >> 64) as u64);
        Self([
            first ^ 0x736f_6d65_7073_6575,
            second ^ 0x646f_7261_6e64_6f6d,
            first ^ 0x6c79_6765_6e65_7261,
            second ^ 0x7465_6462_7974_6573,
        ])
    }

    /// The digest of a key. Its low half is SipHash-1-3 with 64 bits.
    pub(crate) fn digest(&self, key: &[u8]) -> u128 {
        let mut state = self.0;
        let (words, rest) = key.as_chunks::<8>();
        for word in words {
            absorb(&mut state, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = key.len() as u8;
        absorb(&mut state, u64::from_le_bytes(last));
        state[2] ^= 0xff;
        let first = squeeze(&mut state);
        state[1] ^= 0xdd;
        let second = squeeze(&mut state);
        u128::from(second) << 64 | u128::from(first)
    }
}

#[inline(always)]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline(always)]
fn squeeze(state: &mut [u64; 4]) -> u64 {
    (0..3).for_each(|_| round(state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline(always)]
fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use siphasher::sip::SipHasher13;
    use umbel::Keyed;
    use umbel::any::AnyHasher;
    use umbel::hash::Digester;

    #[test]
    fn the_first_half_is_the_digest_of_a_keyed_filter() {
        let secret = *b"0123456789abcdef";
        let (sip, other) = (Sip::new(&secret), SipHasher13::new_with_key(&secret));
        let filter = AnyHasher::from(Keyed::new(secret));
        let key: Vec<u8> = (0..=255).cycle().take(600).collect();
        for length in 0..key.len() {
            let key = &key[..length];
            let digest = sip.digest(key);
            assert_eq!(digest as u64, other.hash(key), "{length}");
            assert_eq!(digest as u64, filter.digest(key).bits(), "{length}");
        }
    }

    #[test]
    fn the_second_half_depends_on_every_byte_and_on_the_secret() {
        let (one, two) = (Sip::new(&[1; 16]), Sip::new(&[2; 16]));
        let mut seen = std::collections::HashSet::new();
        for length in 0..40 {
            for changed in 0..=length {
                let mut key = vec![0; length];
                if let Some(byte) = key.get_mut(changed) {
                    *byte = 1;
                }
                let half = |sip: Sip| (sip.digest(&key) >> 64) as u64;
                assert!(seen.insert(half(one)) && seen.insert(half(two)), "{length} {changed}");
            }
        }
    }
}
