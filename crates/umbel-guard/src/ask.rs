//! Look-ups: the filter first, then the data set for keys that the filter cannot prove absent.

use crate::answer::{Answer, Reason, State, Suspicion};
use crate::data_set::DataSet;
use crate::epoch::Epoch;
use crate::error::{GuardError, Trouble};
use crate::guard::{Got, Inner};
use crate::kind::{Generation, Kind};
use crate::within::within;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// How often a look-up is repeated when the filter is replaced during it.
const TRIES: usize = 3;

impl<D: DataSet, K: Kind> Inner<D, K> {
    pub(crate) async fn ask(&self, key: &[u8]) -> Answer {
        let answer = self.ask_uncounted(key).await;
        match answer {
            Answer::Absent => self.counters.absent.one(),
            Answer::Maybe => self.counters.maybe.one(),
            Answer::Unknown(_) => self.counters.unknown.one(),
        }
        answer
    }

    async fn ask_uncounted(&self, key: &[u8]) -> Answer {
        for _ in 0..TRIES {
            let epoch = self.epoch.load();
            let (State::Active, Some(filter)) = (epoch.state, &epoch.current) else {
                return Answer::Unknown(epoch.reason());
            };
            let asking = filter.contains(filter.digest(key));
            match within(self.options.filter_timeout, pin!(asking)).await {
                Some(Ok(true)) => return Answer::Maybe,
                Some(Ok(false)) if !self.is_watched() => {
                    return Answer::Unknown(Reason::Unwatched);
                }
                // The trust may have ended since the filter answered, and a key may have been written that the
                // filter lacks.
                Some(Ok(false)) if std::ptr::eq(&**self.epoch.load(), &**epoch) => {
                    return Answer::Absent;
                }
                Some(Ok(false)) => {}
                Some(Err(trouble)) => return Answer::Unknown(self.doubt_filter(&trouble)),
                None => {
                    self.counters.timed_out.one();
                    return Answer::Unknown(Reason::TimedOut);
                }
            }
        }
        Answer::Unknown(Reason::Changing)
    }

    /// Handles a look-up that the filter did not answer.
    pub(crate) fn doubt_filter(&self, trouble: &Trouble) -> Reason {
        if let Trouble::Gone = trouble {
            self.suspect(Suspicion::Gone);
        }
        Reason::Unavailable
    }

    /// The value of a key that the filter has not proven absent.
    pub(crate) async fn get(&self, key: &[u8], answer: Answer) -> Got<D::Error> {
        let mut noted = None;
        if let (Answer::Maybe, Some(absences)) = (answer, &self.absences)
            && self.is_watched()
        {
            match absences.knows(key) {
                Ok(()) => {
                    self.counters.remembered.one();
                    return Ok(None);
                }
                Err(note) => noted = Some((absences, note)),
            }
        }
        let value = self.fetch(key, answer).await?;
        if value.is_none() && answer == Answer::Maybe {
            self.counters.false_positives.one();
            if let Some((absences, note)) = noted {
                absences.remember(key, note);
            }
        }
        Ok(value)
    }

    /// Queries the data set. Concurrent look-ups of the same key share one query (single-flight).
    async fn fetch(&self, key: &[u8], answer: Answer) -> Got<D::Error> {
        // Other guards of a fleet write keys during a look-up, and this guard does not see those writes.
        let alone = K::SHARED || !self.options.single_flight || self.doubts.has(key);
        let question = loop {
            if alone {
                break None;
            }
            match self.flights.find(key) {
                Err(question) => break Some(question),
                Ok(flight) => {
                    self.counters.joined.one();
                    if let Some(got) = flight.wait().await {
                        return got;
                    }
                }
            }
        };
        let (mut question, mut pilot) = (question, None);
        let mut asking = pin!(self.ask_set(key, answer));
        let got = poll_fn(|context| {
            let got = asking.as_mut().poll(context);
            if let (Poll::Pending, Some(question)) = (&got, question.take()) {
                pilot = self.flights.begin(question);
            }
            got
        });
        let got = got.await;
        if let Some(pilot) = pilot {
            pilot.land(&got);
        }
        got
    }

    async fn ask_set(&self, key: &[u8], answer: Answer) -> Got<D::Error> {
        let _permit = match answer {
            Answer::Unknown(_) => {
                let permit = within(self.options.set_timeout, pin!(self.passing.acquire())).await;
                let Some(Ok(permit)) = permit else {
                    self.counters.refused.one();
                    return Err(GuardError::Busy { limit: self.options.pass_through });
                };
                Some(permit)
            }
            _ => None,
        };
        self.counters.asked.one();
        match within(self.options.set_timeout, pin!(self.set.get(key))).await {
            Some(got) => got.map_err(|error| GuardError::DataSet(Arc::new(error))),
            None => Err(self.timed_out()),
        }
    }

    /// Whether a trusted filter lacks this key, which the data set has or just had.
    pub(crate) async fn missed(&self, epoch: &Epoch<K::Generation>, key: &[u8]) -> bool {
        let (State::Active, Some(filter)) = (epoch.state, &epoch.current) else { return false };
        let asking = filter.contains(filter.digest(key));
        let found = within(self.options.filter_timeout, pin!(asking)).await;
        matches!(found, Some(Ok(false))) && std::ptr::eq(&**self.epoch.load(), epoch)
    }
}
