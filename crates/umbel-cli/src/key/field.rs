//! Fields of a line, by their numbers.

use anyhow::{Error, Result, anyhow, bail};
use std::str::FromStr;

/// Fields that follow each other, counted from 1, or from the end: -1 is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    first: i64,
    last: i64,
}

impl Field {
    /// Whether it is one field, whatever the line is.
    pub(super) fn is_single(self) -> bool {
        self.first == self.last
    }
}

/// What `-k` is given: fields and ranges of fields, such as `1,3`, `2-4`, `2-` and `-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Vec<Field>);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(field).collect::<Option<_>>().map(Self).ok_or_else(|| {
            "expected fields such as 2, 1,3, 2-4, 2- or -1 (the last), counted from 1".to_owned()
        })
    }
}

/// `2`, `-1`, `2-4`, `2-` or `-3--1`.
fn field(text: &str) -> Option<Field> {
    let number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| plain && *number != 0)
    };
    let after_sign = usize::from(text.starts_with('-'));
    let dash = text.get(after_sign..)?.find('-').map(|at| at + after_sign);
    let (first, last) = match dash {
        None => (number(text)?, number(text)?),
        Some(dash) => match (&text[..dash], &text[dash + 1..]) {
            (first, "") => (number(first)?, -1),
            (first, last) => (number(first)?, number(last)?),
        },
    };
    let backwards = first > last && (first > 0) == (last > 0);
    (!backwards).then_some(Field { first, last })
}

/// Hands over the fields that are wanted, in the order in which they are wanted. Fields are counted and not kept: there may be as many
/// as bytes.
pub(super) fn find(
    content: &[u8],
    wanted: &[Field],
    between: Option<&[u8]>,
    take: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    match between {
        Some(between) => find_in(|| split(content, between), wanted, take),
        None => find_in(|| words(content), wanted, take),
    }
}

/// Hands over all fields.
pub(super) fn each(content: &[u8], between: Option<&[u8]>, take: &mut dyn FnMut(&[u8])) {
    match between {
        Some(between) => split(content, between).for_each(take),
        None => words(content).for_each(take),
    }
}

fn find_in<'a, I: Iterator<Item = &'a [u8]>>(
    fields: impl Fn() -> I,
    wanted: &[Field],
    take: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    for field in wanted {
        if field.is_single() {
            take(one_of(&fields, *field)?);
            continue;
        }
        let Field { first, last } = *field;
        let count = fields().count();
        let at = |number: i64| index(number, count).ok_or_else(|| missing(number, count));
        let (from, to) = (at(first)?, at(last)?);
        if from > to {
            bail!("field {first} is behind field {last} (the record has {count} fields)");
        }
        fields().skip(from).take(to - from + 1).for_each(&mut *take);
    }
    Ok(())
}

/// A field by its number, between these bytes or between blanks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleField<'b> {
    field: Field,
    between: Option<&'b [u8]>,
}

impl<'b> SingleField<'b> {
    pub(super) fn new(field: Field, between: Option<&'b [u8]>) -> Self {
        Self { field, between }
    }

    /// The part of the line that is the field.
    pub(crate) fn find<'a>(&self, content: &'a [u8]) -> Result<&'a [u8]> {
        match self.between {
            Some(between) => one_of(|| split(content, between), self.field),
            None => one_of(|| words(content), self.field),
        }
    }
}

fn one_of<'a, I: Iterator<Item = &'a [u8]>>(
    fields: impl Fn() -> I,
    field: Field,
) -> Result<&'a [u8]> {
    let number = field.first;
    // From the front it is found without counting the others.
    let at =
        if number > 0 { usize::try_from(number - 1).ok() } else { index(number, fields().count()) };
    at.and_then(|at| fields().nth(at)).ok_or_else(|| missing(number, fields().count()))
}

/// The place of a field, from 0, among so many.
fn index(number: i64, count: usize) -> Option<usize> {
    let from_end = i64::try_from(count).ok()?.checked_add(number);
    let at = if number > 0 { number.checked_sub(1) } else { from_end };
    at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < count)
}

fn missing(number: i64, count: usize) -> Error {
    let plural = if count == 1 { "" } else { "s" };
    anyhow!("there is no field {number} (the record has {count} field{plural})")
}

fn words(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

fn split<'a>(content: &'a [u8], between: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(content);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let found = match between {
            [byte] => memchr::memchr(*byte, bytes),
            _ => memchr::memmem::find(bytes, between),
        };
        match found {
            Some(at) => {
                rest = Some(&bytes[at + between.len()..]);
                Some(&bytes[..at])
            }
            None => rest.take(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_fields_are_read() {
        let span = |text: &str| {
            let span: Result<Span, String> = text.parse();
            span.map(|span| {
                span.0.iter().map(|field| (field.first, field.last)).collect::<Vec<_>>()
            })
        };
        assert_eq!(span("1").unwrap(), [(1, 1)]);
        assert_eq!(span("1,-2,3-5,7-").unwrap(), [(1, 1), (-2, -2), (3, 5), (7, -1)]);
        assert_eq!(span("-3--1,2--1").unwrap(), [(-3, -1), (2, -1)]);
        for bad in [
            "", "0", "1,", ",1", "x", "+1", "1-0", "3-2", "-1--2", "-", "--1", "1--", "1-2-3", "-0",
        ] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
