//! `umbel adopt`: a filter on a server that was restarted answers again, because the caller says that it has all keys.

use crate::amount::show_things;
use crate::cli::Adopt;
use crate::output::note;
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use crate::remote::{Address, Remote, is_remote};
use anyhow::{Result, bail};
use umbel::hash::Digest;

pub(crate) fn run(args: Adopt) -> Result<()> {
    if !is_remote(&args.filter) {
        bail!(
            "{}: expected a filter on a server, redis://host:port/0?key=name, found the name of a file; a filter in a file \
             needs no adoption",
            args.filter.display()
        );
    }
    let remote = Remote::open(&Address::of(&args.filter)?)?;
    let address = remote.address().clone();
    if remote.adopt()? {
        note(&format!("{address}: was complete already, on this server"));
    }
    let mut filler = Filler { remote, digests: Vec::new(), keys: 0 };
    if !args.whole {
        read(args.files, &args.records, &Progress::new(true), &mut filler)?;
    }
    filler.remote.complete()?;
    let keys = match args.whole {
        true => "as it is".to_owned(),
        false => format!("with {}", show_things(filler.keys, "key")),
    };
    note(&format!("{address}: adopted {keys}; it answers now"));
    Ok(())
}

struct Filler {
    remote: Remote,
    digests: Vec<Digest>,
    keys: u64,
}

impl Reader for Filler {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(self.remote.hasher(), &mut self.digests);
        self.remote.insert_and_look(&self.digests)?;
        self.keys += self.digests.len() as u64;
        Ok(true)
    }
}
