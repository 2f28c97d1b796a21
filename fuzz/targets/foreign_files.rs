//! Formats with a frame that the fuzzer does not guess: the frame is added around any bytes. Files of Redis and
//! payloads of `DUMP` with their checksums switched off, footers of Parquet and of RocksDB with correct
//! lengths, streams of gzip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel_foreign::{dcso, parquet, rdb, rocksdb};

fuzz_target!(|data: &[u8]| {
    let file = [b"REDIS0011", data, &[255, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    if let Ok(entries) = rdb::read(&file) {
        for entry in &entries {
            let dump = rdb::write_dump(&entry.value, 11);
            let again = rdb::read_dump(&dump).expect("what was written is read");
            assert_eq!(again.contains(data), entry.value.contains(data));
            assert_eq!(rdb::write_dump(&again, 11), dump);
        }
    }
    // The types of RedisBloom and of valkey-bloom.
    for id in [0x3016_e5a2_89be_f804_u64, 0x6e5a_2899_f96d_ac01] {
        let id = [&[0x81], &id.to_be_bytes()[..]].concat();
        let dump = [&[7], &id[..], data, &[0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        if let Ok(value) = rdb::read_dump(&dump) {
            let _ = value.contains(data);
        }
    }
    let length = (data.len() as u32).to_le_bytes();
    let blocks = [0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
    let file = [b"PAR1", &blocks[..], &[7; 32], data, &length, b"PAR1"].concat();
    for column in parquet::columns(&file).unwrap_or_default() {
        if let Ok(filter) = parquet::read::<[u8]>(&file, &column) {
            let _ = filter.contains(data);
        }
    }
    let footer =
        [&[1, 0x3e, 0, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &length, &[0; 24], &[6, 0, 0, 0]];
    let sst =
        [data, &[0; 5], &footer.concat()[..], &0x88e2_41b7_85f4_cff7_u64.to_le_bytes()].concat();
    if let Ok(Some(block)) = rocksdb::find(&sst) {
        let _ = rocksdb::read(&sst[block]);
    }
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0][..], data].concat();
    let _ = dcso::read::<[u8]>(&gzip);
});
