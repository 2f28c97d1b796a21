//! Waiting with a time limit.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// The result of a future; `None` after a time-out. A future that is ready at once needs no timer. The future
/// is passed by reference, because one that is passed by value takes its space twice.
#[inline]
pub(crate) async fn within<T>(
    time: Duration,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let mut timer = pin!(None);
    let result = poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        if timer.is_none() {
            timer.set(Some(sleep(time)));
        }
        let timer = timer.as_mut().as_pin_mut();
        timer.map_or(Poll::Pending, |timer| timer.poll(context).map(|()| None))
    });
    result.await
}
