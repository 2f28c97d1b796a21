//! What each data set refuses, verifies and remembers, so that no existing key is reported absent.

mod on_postgres;
mod on_redb;
mod on_redis;
mod on_sqlite;

use crate::faulty::SECRET;
use std::path::Path;
use umbel_guard::{Answer, DataSet, Guard, Local, Outcome, Stamp, State};

/// A guard with files in `folder` and without a background task.
async fn guard<D: DataSet>(set: D, folder: &Path) -> Guard<D, Local> {
    let builder = Guard::builder(set, Local::cuckoo(0.001).secret(SECRET))
        .folder(folder)
        .without_background();
    builder.start().await.unwrap()
}

/// A guard without files, with an active filter.
async fn active<D: DataSet>(set: D) -> Guard<D, Local> {
    let builder = Guard::builder(set, Local::cuckoo(0.001).secret(SECRET)).without_background();
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    assert_eq!(guard.state(), State::Active);
    guard
}

/// A write was refused, and the set reports that it did not happen.
fn not_done<D: DataSet, T: std::fmt::Debug>(set: &D, refused: Result<T, D::Error>) -> D::Error {
    let error = refused.expect_err("it is refused");
    assert_eq!(set.outcome(&error), Outcome::NotDone, "{error}");
    error
}

/// Two values in front of the same rows: the one that began last may write, the other one may not.
async fn stamps_decide<D: DataSet>(one: &D, two: &D) {
    assert_eq!(one.identity().await.unwrap(), two.identity().await.unwrap());
    assert!(one.begin(7).await.unwrap());
    let before = one.stamp().await.unwrap().unwrap().mark;
    let by = |incarnation, mark| Stamp { incarnation, mark: before + mark };
    one.put_marked(b"1", b"10", by(7, 5).into()).await.unwrap();
    assert_eq!(two.stamp().await.unwrap(), Some(by(7, 5)));
    // Another guard starts. The mark stays.
    assert!(two.begin(8).await.unwrap());
    assert_eq!(one.stamp().await.unwrap(), Some(by(8, 5)));
    let put = one.put_marked(b"2", b"20", by(7, 6).into()).await.unwrap_err();
    assert_eq!(one.outcome(&put), Outcome::Superseded, "{put}");
    let put = one.put_marked(b"1", b"11", by(7, 6).into()).await.unwrap_err();
    assert_eq!(one.outcome(&put), Outcome::Superseded, "{put}");
    let delete = one.delete_marked(b"1", by(7, 7).into()).await.unwrap_err();
    assert_eq!(one.outcome(&delete), Outcome::Superseded, "{delete}");
    assert_eq!(one.get(b"1").await.unwrap().as_deref(), Some(&b"10"[..]));
    assert_eq!(one.get(b"2").await.unwrap(), None);
    assert_eq!(one.stamp().await.unwrap(), Some(by(8, 5)), "nothing was written");
    // A mark never decreases.
    two.put_marked(b"2", b"20", by(8, 4).into()).await.unwrap();
    assert_eq!(one.stamp().await.unwrap(), Some(by(8, 5)));
    assert!(two.delete_marked(b"2", by(8, 9).into()).await.unwrap());
    assert!(!two.delete_marked(b"2", by(8, 10).into()).await.unwrap());
    assert_eq!(one.stamp().await.unwrap(), Some(by(8, 10)));
    assert!(two.delete_marked(b"1", by(8, 11).into()).await.unwrap());
}

/// A copy of the data is made at mark 3 and gets one write through another folder, while the first folder
/// continues to mark 8. Then the copy is restored, as in a failback.
async fn failback_is_noticed<D: DataSet>(
    place: &Path,
    open: impl Fn(&Path) -> D,
    copy: impl Fn(&Path, &Path),
) {
    let [data, standby, first, second] =
        ["data", "standby", "first", "second"].map(|name| place.join(name));
    let one = guard(open(&data), &first).await;
    one.rebuild().await.unwrap();
    for key in ["1", "2", "3"] {
        one.put(key.as_bytes(), b"").await.unwrap();
    }
    one.close().await.unwrap();
    drop(one);
    copy(&data, &standby);
    let one = guard(open(&data), &first).await;
    assert_eq!(one.state(), State::Active, "an ordinary restart");
    for key in ["4", "5", "6", "7", "8"] {
        one.put(key.as_bytes(), b"").await.unwrap();
    }
    one.close().await.unwrap();
    drop(one);
    let other = guard(open(&standby), &second).await;
    other.put(b"written to the copy", b"").await.unwrap();
    other.close().await.unwrap();
    drop(other);
    copy(&standby, &data);
    let one = guard(open(&data), &first).await;
    assert_ne!(one.contains(b"written to the copy").await, Answer::Absent);
    assert_eq!(one.state(), State::Empty);
    one.rebuild().await.unwrap();
    assert_eq!(one.contains(b"written to the copy").await, Answer::Maybe);
}
