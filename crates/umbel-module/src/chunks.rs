//! Chunks of a filter with several parts. A chunk never crosses from one part into the next. Its number is one
//! more than the bytes up to its end.

use crate::error::Invalid;

/// The longest chunk.
pub(crate) const MAX_CHUNK: usize = 16 << 20;

/// The chunk after this number, with its own number. `None` at the end, or if there is no such position.
pub(crate) fn after<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    number: u64,
) -> Option<(u64, &'a [u8])> {
    let mut offset = usize::try_from(number.checked_sub(1)?).ok()?;
    for part in parts {
        if offset < part.len() {
            let rest = &part[offset..];
            let chunk = &rest[..rest.len().min(MAX_CHUNK)];
            return Some((number + chunk.len() as u64, chunk));
        }
        offset -= part.len();
    }
    None
}

/// The part that a chunk of this number and length belongs to, and its position there.
///
/// # Errors
///
/// [`Invalid::Offset`] if there is no part at this position, [`Invalid::Chunk`] if the chunk is longer than the
/// rest of it.
pub(crate) fn place(
    parts: impl Iterator<Item = usize>,
    number: u64,
    chunk: usize,
) -> Result<(usize, usize), Invalid> {
    let offset = number.checked_sub(chunk as u64).and_then(|end| end.checked_sub(1));
    let offset = offset.and_then(|offset| usize::try_from(offset).ok());
    let mut offset = offset.ok_or(Invalid::Offset)?;
    for (number, len) in parts.enumerate() {
        if offset < len {
            return if chunk <= len - offset { Ok((number, offset)) } else { Err(Invalid::Chunk) };
        }
        offset -= len;
    }
    Err(Invalid::Offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [&[u8]; 3] = [b"abc", b"d", b"efgh"];

    #[test]
    fn chunks_go_where_they_came_from() {
        let (mut number, mut places) = (1, Vec::new());
        while let Some((next, chunk)) = after(PARTS.into_iter(), number) {
            let lengths = PARTS.iter().map(|part| part.len());
            let place = place(lengths, next, chunk.len()).unwrap();
            assert_eq!(chunk, &PARTS[place.0][place.1..]);
            places.push(place);
            number = next;
        }
        assert_eq!((places, number), (vec![(0, 0), (1, 0), (2, 0)], 9));
        assert_eq!(after(PARTS.into_iter(), 2), Some((4, b"bc".as_slice())));
        assert_eq!(after(PARTS.into_iter(), 0), None);
        assert_eq!(after(PARTS.into_iter(), u64::MAX), None);
    }

    #[test]
    fn chunks_stay_inside_their_part() {
        let at = |number, chunk| place(PARTS.iter().map(|part| part.len()), number, chunk);
        assert_eq!(at(4, 3), Ok((0, 0)));
        assert_eq!(at(9, 1), Ok((2, 3)));
        assert_eq!(at(5, 4), Err(Invalid::Chunk));
        assert_eq!(at(10, 1), Err(Invalid::Offset));
        assert_eq!(
            (at(0, 0), at(1, 1), at(3, 5)),
            (Err(Invalid::Offset), Err(Invalid::Offset), Err(Invalid::Offset))
        );
        assert_eq!(at(u64::MAX, usize::MAX), Err(Invalid::Offset));
    }
}
