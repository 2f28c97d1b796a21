//! Waiting, but not for ever.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// The result of a future; `None` if it takes too long. What is ready at once needs no timer. By reference: a future that
/// is an argument is there twice.
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
