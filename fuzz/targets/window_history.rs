//! Any history of a window filter, of insertions or of time, keeps the keys in the window, for any behaviour of
//! the clock. Batches, single calls and reloads agree. No bytes that it reads break it.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use umbel::window::{Shape, Window};
use umbel::{Portable, Saved, WindowBloomFilter};

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u16),
    InsertAt(u16, i16),
    Batch(Vec<u16>),
    Extend(Vec<u16>),
    Tell(u64),
    Reload,
    Clear,
}

#[derive(Arbitrary, Debug)]
struct Input {
    window: u8,
    time: Option<u16>,
    epochs: u8,
    history: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let (window, epochs) = (u64::from(input.window), u32::from(input.epochs % 8) + 2);
    let shape = match input.time {
        Some(time) => {
            let time = Duration::from_nanos(u64::from(time) + 1);
            Shape::for_time_in_epochs(time, window, 0.05, epochs)
        }
        None => Shape::for_rate_in_epochs(window, 0.05, epochs),
    };
    let empty = || WindowBloomFilter::<u16>::with(shape.unwrap(), Portable::default()).unwrap();
    let (mut one, mut many) = (empty(), empty());
    // Every insertion with its time.
    let mut log: Vec<(u16, Duration)> = Vec::new();
    let mut clock = 0_u64;
    for step in &input.history {
        let (told, now) = (one.now().is_some(), one.now().unwrap_or_default());
        match step {
            Step::Insert(key) => {
                assert_eq!(one.insert(key), !many.contains(key));
                many.extend([key]);
                log.push((*key, now));
            }
            Step::InsertAt(key, by) => {
                clock = clock.saturating_add_signed(i64::from(*by));
                let time = Duration::from_nanos(clock);
                let found = one.contains_at(key, time);
                assert_eq!(one.insert_at(key, time), !found);
                many.advance(time);
                assert_eq!(many.insert(key), !found);
                log.push((*key, one.now().unwrap()));
            }
            Step::Batch(keys) => {
                let mut fresh = vec![false; keys.len()];
                many.insert_batch(keys, &mut fresh);
                assert!(keys.iter().zip(fresh).all(|(key, fresh)| one.insert(key) == fresh));
                log.extend(keys.iter().map(|key| (*key, now)));
            }
            Step::Extend(keys) => {
                many.extend(keys);
                keys.iter().for_each(|key| _ = one.insert(key));
                log.extend(keys.iter().map(|key| (*key, now)));
            }
            Step::Tell(time) => {
                clock = *time;
                one.advance(Duration::from_nanos(clock));
                many.advance(Duration::from_nanos(clock));
                // Insertions before the first time count as insertions at that time.
                if !told {
                    log.iter_mut().for_each(|(_, when)| *when = one.now().unwrap());
                }
            }
            Step::Reload => one = WindowBloomFilter::from_bytes(&one.to_bytes()).unwrap(),
            Step::Clear => {
                one.clear();
                many.clear();
                log.clear();
            }
        }
        assert!(one == many);
        let now = one.now().unwrap_or_default();
        let most = match one.shape().window() {
            Window::Insertions(window) => window as usize,
            Window::Time(_) => usize::MAX,
        };
        for (key, when) in log.iter().rev().take(most) {
            let inside = match one.shape().window() {
                Window::Insertions(_) => true,
                Window::Time(time) => now <= *when + time,
            };
            assert!(!inside || one.contains(key), "a key of the window is lost");
        }
    }
});
