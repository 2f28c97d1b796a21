//! Every filter at every size and rate: space, rate, and nanoseconds per key.

use crate::{
    Failure,
    args::{KeyKind, TableArgs},
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    registry::{Entry, Kind, Registry},
    report::{self, Columns},
    stats::median,
};
use serde::Serialize;

/// One filter at one size and rate. Times are nanoseconds per key, medians over the rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    family: &'static str,
    pub(crate) filter: &'static str,
    keys: &'static str,
    items: u64,
    target: f64,
    pub(crate) bits_per_key: f64,
    measured_rate: f64,
    build: Option<f64>,
    pub(crate) absent: Option<f64>,
    present: Option<f64>,
    pub(crate) batch_absent: Option<f64>,
    batch_present: Option<f64>,
    delete: Option<f64>,
    /// The share of present keys that were reported absent.
    forgotten: f64,
    /// The number of kept keys that were lost when the other half was deleted.
    lost: usize,
}

/// Measures one filter at one rate.
pub(crate) fn measure<K: Kind>(
    entry: &Entry,
    work: &Workload<K>,
    rate: f64,
    rounds: usize,
    batch: usize,
) -> Row {
    let mut lane = K::lane(entry, rate);
    let can = lane.can();
    let mut times: [Vec<f64>; 6] = Default::default();
    let [build, absent, present, batch_absent, batch_present, delete] = &mut times;
    let (mut hits, mut forgotten, mut lost) = (0, 0, 0);
    for _ in 0..rounds {
        build.push(lane.build(&work.keys).nanos);
        let pass = lane.look_up(&work.absent);
        absent.push(pass.nanos);
        hits += pass.hits;
        let pass = lane.look_up(&work.present);
        present.push(pass.nanos);
        forgotten += work.present.len() - pass.hits;
        if can.batches {
            batch_absent.push(lane.look_up_batch(&work.absent, batch).nanos);
            batch_present.push(lane.look_up_batch(&work.present, batch).nanos);
        }
        if can.removes {
            let (gone, kept) = work.present[..work.distinct].split_at(work.distinct / 2);
            delete.push(lane.remove(gone).nanos);
            lost += kept.len() - lane.look_up(kept).hits;
        }
    }
    let items = work.keys.len() as f64;
    let [build, absent, present, batch_absent, batch_present, delete] =
        times.map(|times| median(&times));
    Row {
        family: entry.family,
        filter: entry.name,
        keys: K::NAME,
        items: work.keys.len() as u64,
        target: entry.target(rate),
        bits_per_key: lane.heap() as f64 * 8.0 / items,
        measured_rate: hits as f64 / (rounds * work.absent.len()) as f64,
        build,
        absent,
        present,
        batch_absent,
        batch_present,
        delete,
        forgotten: forgotten as f64 / (rounds * work.present.len()) as f64,
        lost: lost / rounds,
    }
}

impl Row {
    fn columns(name: usize) -> Columns {
        Columns::new(&[
            "family",
            "filter",
            "keys",
            "items",
            "target",
            "bits/key",
            "rate",
            "build",
            "absent",
            "present",
            "b.absent",
            "b.present",
            "delete",
            "",
        ])
        .left(3)
        .widths(&[8, name, 7, 6, 8, 8, 8, 7, 7, 7, 8, 9, 7])
    }

    fn cells(&self) -> [String; 14] {
        let nanos = |time: Option<f64>| time.map_or_else(|| "-".into(), |t| format!("{t:.2}"));
        [
            self.family.into(),
            self.filter.into(),
            self.keys.into(),
            short(self.items),
            report::rate(self.target),
            format!("{:.2}", self.bits_per_key),
            report::rate(self.measured_rate),
            nanos(self.build),
            nanos(self.absent),
            nanos(self.present),
            nanos(self.batch_absent),
            nanos(self.batch_present),
            nanos(self.delete),
            match (self.forgotten, self.lost) {
                (0.0, 0) => String::new(),
                (0.0, lost) => format!("{lost} lost by deletes"),
                (share, lost) => format!("{:.2} % forgotten, {lost} lost", 100.0 * share),
            },
        ]
    }
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    machine: &'a Machine,
    rounds: usize,
    batch: usize,
    rows: Vec<Row>,
}

/// `umbel-bench table`.
pub(crate) fn run(args: TableArgs) -> Result<(), Failure> {
    let registry = Registry::all();
    let entries = registry.select(&args.filters);
    if entries.is_empty() {
        return Err("no filter is called so; `umbel-bench list` lists them".into());
    }
    let machine = &Machine::new(args.output.date.clone());
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or_default();
    let columns = Row::columns(width);
    if !args.output.json {
        report::line(&machine.summary())?;
        report::line("nanoseconds a key, medians; b. = in batches")?;
        report::line(&columns.header())?;
    }
    let mut rows = Vec::new();
    for keys in &args.keys {
        for items in &args.items {
            match keys {
                KeyKind::U64 => fill::<u64>(&args, &entries, *items, &columns, &mut rows)?,
                KeyKind::Bytes32 => {
                    fill::<[u8; 32]>(&args, &entries, *items, &columns, &mut rows)?;
                }
            }
        }
    }
    if args.output.json {
        let TableArgs { rounds, batch, .. } = args;
        report::json(&Report { mode: "table", machine, rounds, batch, rows })?;
    }
    Ok(())
}

/// Measures every entry at `items` keys of one kind.
fn fill<K: Kind>(
    args: &TableArgs,
    entries: &[&Entry],
    items: u64,
    columns: &Columns,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let work = Workload::<K>::new(items, Queries::USUAL);
    for entry in entries.iter().filter(|entry| items <= entry.most) {
        // A filter with a fixed rate does not use a list of rates.
        let rates = if entry.own_rate.is_some() { &args.rates[..1] } else { &args.rates[..] };
        for rate in rates {
            let row = measure(entry, &work, *rate, args.rounds, args.batch);
            if args.output.json {
                eprintln!("{} {} {} {}", row.filter, row.keys, short(row.items), row.target);
            } else {
                report::line(&columns.row(&row.cells()))?;
            }
            rows.push(row);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_the_filter_can_do_and_no_more() {
        let registry = Registry::all();
        let work = Workload::<u64>::new(1_000, Queries { least: 20_000, most: 20_000 });
        let ours = measure(registry.find("umbel bloom").unwrap(), &work, 0.01, 2, 100);
        assert!(ours.batch_absent.is_some() && ours.delete.is_none());
        assert_eq!((ours.forgotten, ours.lost), (0.0, 0));
        let quotient = measure(registry.find("qfilter (xxh3)").unwrap(), &work, 0.01, 2, 100);
        assert!(quotient.batch_absent.is_none() && quotient.delete.is_some());
        assert_eq!((quotient.forgotten, quotient.lost), (0.0, 0));
    }
}
