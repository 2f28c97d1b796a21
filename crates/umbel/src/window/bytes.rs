//! Saves and opens a window filter. An opened filter continues exactly like the saved one.

use super::shape::turn;
use super::{RawWindow, Shape, Window};
use crate::blocked;
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::storage::{Heap, Storage};
use core::time::Duration;

/// The number of the family in a header.
const FAMILY: u16 = 7;

/// The numbers of the kernels in a header, for a window of insertions and for a window of time:
/// bits of one line in each epoch.
const INSERTIONS: u16 = 7;
const TIME: u16 = 8;

/// The fields of a header besides the shape: the position of the hand, and the time.
#[derive(Debug)]
pub struct State {
    group: u64,
    epoch: u64,
    way: u64,
    /// Whether there is a current time, and its value.
    told: [u64; 2],
}

impl StoredCore for RawWindow {
    type Storage = Heap;
    type Plan = (Shape, State);

    const FAMILY: u16 = FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let (shape, hand) = (&self.shape, &self.hand);
        let (kernels, nanos) = match shape.window() {
            Window::Insertions(_) => (INSERTIONS, 0),
            Window::Time(time) => (TIME, time.as_nanos() as u64),
        };
        let fields = [
            shape.items(),
            shape.groups(),
            shape.probes().into(),
            shape.epochs().into(),
            nanos,
            hand.group as u64,
            hand.epoch as u64,
            hand.way,
            self.now.is_some().into(),
            self.now.unwrap_or(0),
        ];
        Header::new(FAMILY, kernels, mark, self.insertions, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.storage.words())
    }

    fn plan(header: &Header) -> Result<(Shape, State), InvalidBytes> {
        let [items, lines, probes, epochs, nanos, group, epoch, way, told, now] =
            header.fields()?;
        let window = match (header.kernels, nanos) {
            (INSERTIONS, 0) => Window::Insertions(items),
            (INSERTIONS, _) => return Err(InvalidBytes::Inconsistent),
            (TIME, _) => Window::Time(Duration::from_nanos(nanos)),
            (got, _) => return Err(InvalidBytes::Kernels { got }),
        };
        let (Ok(probes), Ok(epochs @ 2..)) = (u32::try_from(probes), u32::try_from(epochs)) else {
            return Err(InvalidBytes::Inconsistent);
        };
        let plan = blocked::Shape::with(turn(items, epochs), lines, 1, probes)?;
        let shape = Shape::of(window, items, epochs, plan)?;
        Ok((shape, State { group, epoch, way, told: [told, now] }))
    }

    fn words((shape, _): &(Shape, State)) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        (shape, State { group, epoch, way, told }): (Shape, State),
        header: &Header,
        take: &mut impl FnMut(u64) -> Result<Heap, E>,
    ) -> Result<Self, E> {
        let mut filter = Self::of_parts(shape, take(shape.words())?);
        let hand = filter.hand.at(group, epoch, way);
        filter.hand = hand.ok_or(InvalidBytes::Inconsistent)?;
        filter.insertions = header.insertions;
        filter.now = match told {
            [0, 0] => None,
            [1, now] => Some(now),
            _ => return Err(InvalidBytes::Inconsistent.into()),
        };
        Ok(filter)
    }
}
