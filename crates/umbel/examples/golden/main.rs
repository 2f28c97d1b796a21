//! Writes the missing golden files, and the table of all of them. An existing file is never changed: it is
//! read.
//!
//! `cargo run --release --example golden --all-features`

mod files;
#[allow(dead_code, reason = "tests use more of it")]
mod filters;

use files::{Hashing, Line, directory, visit_all};
use filters::{Sort, Visitor};
use std::fmt::Write;
use std::fs;
use umbel::any::AnyHasher;
use umbel::format::{Opening, Saved};

#[derive(Default)]
struct Writer {
    table: String,
    written: u32,
}

impl Visitor<[u8], AnyHasher, Hashing> for Writer {
    fn visit<S: Sort<[u8], AnyHasher>>(&mut self, hashing: &Hashing) {
        let Hashing { hasher, key, secret, .. } = *hashing;
        let name = hashing.name(S::NAME);
        let path = directory().join(&name);
        if !path.exists() {
            let filter = S::of(0..S::KEYS, hasher, key);
            let saved = if secret { filter.save_with_secret(&path) } else { filter.save(&path) };
            saved.unwrap_or_else(|error| panic!("{name}: {error}"));
            self.written += 1;
        }
        let filter: S::Filter = Opening::new().hasher(hasher).load(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        let line = Line::of(name, &bytes, S::KEYS, |number| S::has(&filter, number, key));
        writeln!(self.table, "{line}").unwrap();
    }
}

fn main() {
    fs::create_dir_all(directory()).unwrap();
    let mut writer = Writer::default();
    visit_all(&mut writer);
    fs::write(directory().join("table.txt"), &writer.table).unwrap();
    println!("{} files written, {} in the table", writer.written, writer.table.lines().count());
}
