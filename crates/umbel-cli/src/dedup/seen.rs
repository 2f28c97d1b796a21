//! Which records were seen before, and the moment when exact knowledge goes over to a filter.

use super::known::Known;
use super::limit;
use super::plan::{Plan, RATE, told};
use super::risk::{Planned, Risk};
use super::state::MARK;
use crate::amount::{show_bytes, show_count, show_rate, show_things};
use crate::cli::{Dedup, HashChoice};
use crate::exact::{Exact, Hashing, NoRoom};
use crate::output::warn;
use crate::reading::Batch;
use anyhow::{Error, Result, anyhow, bail};
use umbel::any::{AnyFilter, AnyHasher};
use umbel::blocked;
use umbel::hash::{Digest, Digester};

/// What happens when a set has no room for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    GoOver,
    /// The run ends, because this option says so.
    Fail(&'static str),
}

/// How much memory may be taken, and what happens then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    memory: u64,
    /// How many sets have such a limit.
    sets: u64,
    past: Past,
}

impl Limit {
    /// What the arguments say, with so many sets that share the memory.
    pub(super) fn of(args: &Dedup, sets: u64) -> Self {
        let past = match (args.exact, args.in_place) {
            (true, _) => Past::Fail("--exact"),
            (_, true) => Past::Fail("--in-place"),
            (false, false) => Past::GoOver,
        };
        let memory = match args.size.memory {
            Some(memory) => memory,
            None if args.exact => u64::MAX,
            None => limit::of_system(),
        };
        Self { memory: memory / sets, sets, past }
    }

    /// All memory that may be taken.
    pub(super) const fn memory(self) -> u64 {
        self.memory
    }

    /// The limit of all sets together, as it was given.
    fn shown(self) -> String {
        match self.sets {
            1 => show_bytes(self.memory),
            sets => {
                let all = show_bytes(self.memory.saturating_mul(sets));
                format!("{all} (shared by {sets} sets of lines)")
            }
        }
    }

    /// What a set may take. To go over to a filter, both must fit at the same time.
    pub(super) fn of_set(self) -> u64 {
        let keys = limit::for_keys(self.memory);
        match self.past {
            Past::Fail(_) => keys,
            Past::GoOver => keys / 3 * 2,
        }
    }
}

/// How keys become digests: of 128 bits, or of 64 for a filter that was one from the beginning.
#[derive(Clone, Copy)]
enum Digesting {
    Long(Hashing),
    Short(AnyHasher),
}

/// What was seen.
pub(super) struct Seen {
    pub(super) known: Known,
    pub(super) risk: Risk,
    digesting: Digesting,
    limit: Limit,
    /// The number of the record that was the first one to be looked up in a filter, if the run began exact.
    pub(super) over: Option<u64>,
    overfull: bool,
    warned: bool,
    /// Why no more records can be looked up.
    stopped: Option<Error>,
    digests: Vec<Digest>,
}

impl Seen {
    /// Nothing yet.
    pub(super) fn new(args: &Dedup, sets: u64) -> Result<Self> {
        let limit = Limit::of(args, sets);
        if args.asks_for_filter() {
            let hasher = match args.hash.unwrap_or(HashChoice::Keyed) {
                HashChoice::Keyed => crate::secret::fresh().with_id(MARK).into(),
                HashChoice::Portable => umbel::Portable::seeded(MARK).into(),
            };
            let filter = Plan::of(args)?.filter(hasher)?;
            return Ok(Self::of(Known::Filter(filter.into()), limit, args));
        }
        let exact = Exact::new(crate::secret::fresh(), limit.of_set());
        Ok(Self::of(Known::Exact(exact.into()), limit, args))
    }

    pub(super) fn of(known: Known, limit: Limit, args: &Dedup) -> Self {
        let digesting = match &known {
            Known::Exact(exact) => Digesting::Long(exact.hashing()),
            Known::Filter(filter) => Digesting::Short(*filter.hasher()),
            #[cfg(feature = "redis")]
            Known::Server(remote) => Digesting::Short(*remote.hasher()),
        };
        let mut planned = known.planned();
        // A filter is a little better than what was asked for, in whole lines of bits.
        if args.size.capacity.is_some() && planned.items.is_some() {
            planned.rate = planned.rate.max(args.size.rate.unwrap_or(RATE));
        }
        let risk = Risk::new(planned, known.held(), &known);
        Self {
            known,
            risk,
            digesting,
            limit,
            over: None,
            overfull: args.overfull,
            warned: false,
            stopped: None,
            digests: Vec::new(),
        }
    }

    /// The same without any key, and with the same digests.
    pub(super) fn empty_like(&self, args: &Dedup) -> Result<Self> {
        let known = match &self.known {
            Known::Exact(exact) => Known::Exact(exact.empty_like(self.limit.of_set()).into()),
            Known::Filter(filter) => {
                let Some(plan) = Plan::of_filter(filter) else {
                    bail!("a filter of another family")
                };
                Known::Filter(plan.filter(*filter.hasher())?.into())
            }
            #[cfg(feature = "redis")]
            Known::Server(_) => unreachable!("-d and --state do not go together"),
        };
        let digesting = self.digesting;
        Ok(Self { digesting, ..Self::of(known, self.limit, args) })
    }

    /// Whether it is exact.
    pub(super) const fn is_exact(&self) -> bool {
        matches!(self.known, Known::Exact(_))
    }

    /// The digests of all records of a batch, for [`insert`](Self::insert).
    pub(super) fn digest(&self, batch: &Batch<'_>, keys: &mut Vec<u128>) {
        keys.clear();
        match self.digesting {
            Digesting::Long(hashing) => batch.for_keys(|key| keys.push(hashing.digest(key))),
            Digesting::Short(hasher) => {
                batch.for_keys(|key| keys.push(hasher.digest(key).bits().into()))
            }
        }
    }

    /// Whether each record is seen for the first time, and for how many of them that is known. If those are not all, [`stopped`](Self::stopped) tells
    /// why.
    pub(super) fn insert(
        &mut self,
        keys: &[u128],
        first: u64,
        fresh: &mut [bool],
    ) -> Result<usize> {
        let mut at = 0;
        if let Known::Exact(exact) = &mut self.known {
            let Err((done, no_room)) = exact.insert_each(keys, fresh) else {
                return Ok(keys.len());
            };
            at = done;
            if let Err(error) = self.go_over(no_room, first + at as u64) {
                self.stopped = Some(error);
                return Ok(at);
            }
        }
        self.known.advance();
        let mut digests = std::mem::take(&mut self.digests);
        digests.clear();
        digests.extend(keys[at..].iter().map(|key| Digest::new(*key as u64)));
        let done = self.insert_into_filter(&digests, &mut fresh[at..]);
        self.digests = digests;
        Ok(at + done?)
    }

    /// Inserts pieces so small that the rate is looked at before it has become much higher.
    fn insert_into_filter(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<usize> {
        let mut at = 0;
        while at < digests.len() {
            let end = digests.len().min(at.saturating_add(self.risk.room()));
            self.known.insert(&digests[at..end], &mut fresh[at..end])?;
            let new = fresh[at..end].iter().filter(|fresh| **fresh).count();
            self.risk.add((end - at) as u64, new as u64, &self.known);
            at = end;
            if self.is_past_plan() {
                if self.risk.is_overfull() && !self.overfull {
                    self.stopped = Some(self.overfull());
                    break;
                }
                if !std::mem::replace(&mut self.warned, true) {
                    warn(&self.past_plan());
                }
            }
        }
        Ok(at)
    }

    /// All keys of a state are in: what was new so far is not new to this run.
    pub(super) fn loaded(&mut self, count: u64) {
        if !self.is_exact() {
            self.risk = Risk::new(*self.risk.planned(), count, &self.known);
        }
    }

    /// Why no more records can be looked up, once.
    pub(super) const fn stopped(&mut self) -> Option<Error> {
        self.stopped.take()
    }

    fn is_past_plan(&self) -> bool {
        // To ask a window means to read all of it, so the rate is asked first.
        self.risk.is_past_plan() && (!self.risk.planned().forgets || self.known.is_crowded())
    }

    fn past_plan(&self) -> String {
        let Planned { rate, items, .. } = *self.risk.planned();
        let rate = show_rate(rate);
        match items {
            Some(items) => format!(
                "more than the {} that the filter is planned for: its false positive rate is above {rate} now, and more new lines are \
                 taken for repeated ones; {}",
                show_things(items, "different line"),
                self.remedy()
            ),
            None => format!(
                "more lines within the window than -n: the false positive rate is above {rate}, and more new lines are taken for \
                 repeated ones; use a larger -n"
            ),
        }
    }

    fn overfull(&self) -> Error {
        let Planned { rate, items, .. } = *self.risk.planned();
        let holds = match items {
            Some(items) => format!(
                "planned for {}, it holds at least {}",
                show_things(items, "different line"),
                show_count(self.risk.holds())
            ),
            None => "more lines came within the window than -n".to_owned(),
        };
        anyhow!(
            "the filter is overfull: {holds}, and its false positive rate is {} instead of {}. {}. --overfull goes on, and \
             loses more and more new lines",
            show_rate(self.risk.rate()),
            show_rate(rate),
            capital(&self.remedy()),
        )
    }

    /// What to do when a filter has too many keys.
    fn remedy(&self) -> String {
        match self.over {
            Some(_) => "use a larger --memory".to_owned(),
            None if self.risk.planned().forgets => "use a larger -n".to_owned(),
            None => "use a larger -n, or none for an exact run".to_owned(),
        }
    }

    /// Goes over to a filter, if that is allowed, which has all keys that were seen.
    fn go_over(&mut self, no_room: NoRoom, record: u64) -> Result<()> {
        let Known::Exact(exact) = &self.known else { return Ok(()) };
        let (lines, taken) =
            (show_things(exact.len(), "different line"), show_bytes(exact.bytes()));
        let memory = self.limit.shown();
        if let Past::Fail(option) = self.limit.past {
            let full = match no_room {
                NoRoom::Limit => {
                    format!("all of the memory limit of {memory}; use a larger --memory")
                }
                NoRoom::Memory => format!("{taken}, and the system has no more memory to give"),
            };
            bail!(
                "record {}: {lines} have taken {full}, or leave {option} out: the run then goes over to a filter",
                show_count(record)
            );
        }
        let Some(hasher) = exact.hasher() else {
            bail!(
                "record {}: {lines} have taken the memory limit of {memory}, and a state that an earlier version began cannot go over to \
                 a filter; use a larger --memory, or begin another state",
                show_count(record)
            )
        };
        let shape;
        let mut filter = {
            let mut room = match no_room {
                _ if exact.len() == 0 => self.limit.memory,
                NoRoom::Limit => limit::for_keys(self.limit.memory).saturating_sub(exact.bytes()),
                NoRoom::Memory => exact.bytes() / 2,
            };
            loop {
                let plan = blocked::Shape::for_budget(room, RATE)
                    .map_err(|error| told(error, None, RATE))?;
                // A filter that is full from the beginning is of no use.
                if exact.len() > 0 && plan.items() / 5 * 4 < exact.len() {
                    bail!(
                        "record {}: {lines} have taken {taken}, and there is no memory for a filter of them; use a larger --memory",
                        show_count(record)
                    );
                }
                match Plan::Blocked(plan).filter(hasher.with_id(MARK).into()) {
                    Ok(filter) => {
                        shape = plan;
                        break filter;
                    }
                    // The kernel may give less than there seemed to be.
                    Err(_) if room > 1 << 20 => room /= 2,
                    Err(error) => return Err(error),
                }
            }
        };
        fill(&mut filter, exact.digests())?;
        let held = exact.len();
        self.known = Known::Filter(filter.into());
        let planned = Planned { rate: RATE, items: Some(shape.items()), forgets: false };
        self.risk = Risk::new(planned, held, &self.known);
        self.over = Some(record);
        let reached = match no_room {
            NoRoom::Limit => format!("the memory limit of {memory} is reached"),
            NoRoom::Memory => "the system has no more memory to give".to_owned(),
        };
        warn(&format!(
            "{reached}: from record {} on, a filter tells which lines are new. It has room for {}; until then it loses at most {} of \
             the new lines; --memory SIZE sets another limit, --exact ends instead",
            show_count(record),
            show_things(shape.items(), "different line"),
            show_rate(RATE),
        ));
        Ok(())
    }
}

/// Inserts the digests of a set into a filter.
fn fill(filter: &mut AnyFilter, digests: impl Iterator<Item = u128>) -> Result<()> {
    let mut digests = digests.map(|digest| Digest::new(digest as u64));
    let (mut some, mut fresh) = (Vec::with_capacity(4096), [false; 4096]);
    loop {
        some.clear();
        some.extend(digests.by_ref().take(4096));
        if some.is_empty() {
            return Ok(());
        }
        filter.insert_digests(&some, &mut fresh[..some.len()])?;
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
