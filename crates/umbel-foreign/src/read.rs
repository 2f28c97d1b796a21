//! A reader for fields, whose errors name what is missing.

use crate::error::Invalid;

/// Bytes, and the position of the reader.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

macro_rules! numbers {
    ($($name:ident: $number:ty, $from:ident;)*) => {$(
        pub(crate) fn $name(&mut self) -> Result<$number, Invalid> {
            Ok(<$number>::$from(self.array()?))
        }
    )*};
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes that were read.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// The unread bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], Invalid> {
        let rest = self.rest();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let Some(taken) = taken else {
            let expected = (self.at as u64).saturating_add(len);
            return Err(Invalid::Length { expected, got: self.bytes.len() as u64 });
        };
        self.at += taken.len();
        Ok(taken)
    }

    /// The next `len` bytes. Fails if more bytes follow.
    pub(crate) fn take_last(&mut self, len: u64) -> Result<&'a [u8], Invalid> {
        let last = self.take(len)?;
        self.end()?;
        Ok(last)
    }

    /// Checks that everything was read.
    pub(crate) fn end(&self) -> Result<(), Invalid> {
        let (expected, got) = (self.at as u64, self.bytes.len() as u64);
        if expected == got { Ok(()) } else { Err(Invalid::Length { expected, got }) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    numbers! {
        u8: u8, from_le_bytes;
        u16_le: u16, from_le_bytes;
        u16_be: u16, from_be_bytes;
        u32_le: u32, from_le_bytes;
        u32_be: u32, from_be_bytes;
        u64_le: u64, from_le_bytes;
        u64_be: u64, from_be_bytes;
        f64_le: f64, from_le_bytes;
    }
}
