//! The bytes of a `RESTORE` or a `LOADCHUNK` are refused, or give a filter that answers, accepts keys and
//! returns its bytes: headers and chunks of RedisBloom's chains and cuckoo filters, and streams of our own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_module::bloom::{Chain, Growth, Hashing};
use umbel_module::cuckoo::Cuckoo;
use umbel_module::membership::Membership;
use umbel_module::own::stream::Streamed;
use umbel_module::own::{OwnBloom, OwnCuckoo};

/// Larger filters are skipped: this target does not search for excessive memory.
const MOST: u64 = 1 << 22;

fn use_up(filter: &mut dyn Membership) {
    let keys: [&[u8]; 3] = [b"a", b"b", b""];
    let mut answers = [false; 3];
    if filter.put(&keys, &mut answers).is_ok() {
        filter.find(&keys, &mut answers);
        assert_eq!(answers, [true; 3], "what was added is found");
    }
    filter.about();
    filter.measure();
}

fn chain(header: &[u8], rest: &[u8]) {
    if Chain::bytes_of_header(header).is_ok_and(|bytes| bytes <= MOST)
        && let Ok(mut chain) = Chain::of_header(header, Hashing::Murmur64)
    {
        let number = rest.len() as u64 + 1 + rest.first().map_or(0, |byte| u64::from(*byte));
        let _ = chain.load_chunk(number, rest);
        // The next link of a valid header may be as large as the memory of the machine.
        let next = chain.links().last().map_or(0, |link| match chain.growth() {
            Growth::By(growth) => link.entries().saturating_mul(u64::from(growth)),
            Growth::None => 0,
        });
        if next <= MOST / 8 {
            use_up(&mut chain);
        }
        assert!(Chain::of_header(&chain.header(), Hashing::Murmur64).is_ok());
    }
}

fn cuckoo(header: &[u8], rest: &[u8]) {
    // The bytes are the buckets of the first table, and those of tables that are larger by at most this factor.
    let buckets = header.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let tables = header.get(24..32).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    if buckets.is_none_or(|buckets| buckets > 1 << 10) || tables.is_none_or(|tables| tables > 3) {
        return;
    }
    let expansion = header.get(36..38).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    if expansion > 8 {
        return;
    }
    let Ok(mut cuckoo) = Cuckoo::of_header(header) else { return };
    let _ = cuckoo.load_chunk(rest.len() as u64 + 1, rest);
    let place = cuckoo.place(b"a");
    let before = cuckoo.count(place);
    if cuckoo.add(place, 4).is_ok() {
        // As in RedisBloom, an item whose two buckets are the same one counts twice.
        assert!((before + 1..=before + 2).contains(&cuckoo.count(place)));
        assert!(cuckoo.contains(place) && cuckoo.remove(place));
    }
    cuckoo.compact();
    assert!(before == 0 || cuckoo.contains(place), "removing one of several leaves the others");
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    match choice % 4 {
        0 => {
            let at = (20 + 53 * (usize::from(*choice) / 4 % 4 + 1)).min(data.len());
            chain(&data[..at], &data[at..]);
        }
        1 => {
            let at = data.len().min(38);
            cuckoo(&data[..at], &data[at..]);
        }
        2 => {
            if let Ok(mut own) = OwnBloom::of(data)
                && let Some(filter) = own.ready_mut()
            {
                use_up(filter);
            }
        }
        _ => {
            if let Ok(mut own) = OwnCuckoo::of(data) {
                let digest = own.digest(b"a");
                if own.add(digest).is_ok() {
                    assert!(own.remove(digest));
                }
            }
        }
    }
});
