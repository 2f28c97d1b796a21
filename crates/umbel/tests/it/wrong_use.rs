//! Bytes that are not the expected filter: an error that names the field, before the words are read.

use crate::files::Directory;
use crate::forge::{FLAGS, KERNELS, LENGTH, field, with};
use std::fs::{self, File};
use std::path::Path;
use umbel::any::AnyFilter;
use umbel::format::{OpenError, Opening, Saved};
use umbel::hash::{Murmur3, Portable, Xxh64};
use umbel::{BlockedBloomFilter, BloomFilter, InvalidBytes, Keyed, QuotientFilter, XorFilter};

type Filter = BloomFilter<u64>;

fn good() -> Vec<u8> {
    let mut filter = Filter::new(1_000, 0.01);
    filter.extend(0..1_000_u64);
    filter.to_bytes()
}

/// The error for a slice, which must equal that for a file and for a stream.
fn refused(directory: &Directory, bytes: &[u8]) -> InvalidBytes {
    let error = Filter::from_bytes(bytes).map(|_| ()).unwrap_err();
    let path = directory.path("refused");
    fs::write(&path, bytes).unwrap();
    for other in [Filter::load(&path).map(|_| ()), Filter::from_reader(bytes).map(|_| ())] {
        let other = other.unwrap_err();
        assert!(matches!(other, OpenError::Invalid(got) if got == error), "{other}, {error}");
        assert_eq!(other.to_string(), error.to_string());
    }
    error
}

#[test]
fn another_hash_key_seed_version_or_flag_is_named() {
    let (directory, good) = (Directory::new("wrong-use"), good());
    let forged = |at, value: &[u8]| refused(&directory, &with(&good, at, value));
    let version = |got| InvalidBytes::Version { expected: 1, got };
    assert_eq!(forged(8, &[2, 0]), version(2));
    assert_eq!(forged(8, &[0, 0]), version(0));
    assert_eq!(forged(10, &[2, 0]), InvalidBytes::Family { expected: 1, got: 2 });
    assert_eq!(forged(12, &[3, 0]), InvalidBytes::Hash { expected: 1, got: 3 });
    assert_eq!(forged(KERNELS, &[2, 0]), InvalidBytes::Kernels { got: 2 });
    assert_eq!(forged(16, &[3, 0]), InvalidBytes::Keys { expected: 1, got: 3 });
    for flag in 2..16 {
        let got = 1 << flag;
        assert_eq!(forged(FLAGS, &u16::to_le_bytes(got)), InvalidBytes::Flags { got });
    }
    // Fields that only other families use, and fields that follow from others.
    assert_eq!(forged(20, &[1]), InvalidBytes::Inconsistent);
    assert_eq!(forged(32, &[1]), InvalidBytes::Inconsistent);
    assert_eq!(forged(40, &[1]), InvalidBytes::Inconsistent);
    assert_eq!(forged(FLAGS, &[1]), InvalidBytes::Inconsistent);
    assert_eq!(forged(crate::forge::INSERTIONS, &[0]), InvalidBytes::Inconsistent);
    assert_eq!(forged(LENGTH, &[8]), InvalidBytes::Inconsistent);
    assert_eq!(forged(field(3), &[1]), InvalidBytes::Inconsistent);
}

#[test]
fn another_hasher_that_was_brought_is_refused() {
    let good = good();
    let open = |seed| Filter::from_bytes_with_hasher(&good, Portable::seeded(seed)).map(|_| ());
    assert_eq!(open(0), Ok(()));
    assert_eq!(open(1), Err(InvalidBytes::Hasher));
    let murmur = Murmur3::default();
    let murmur = BloomFilter::<u64, _>::from_bytes_with_hasher(&good, murmur).map(|_| ());
    assert_eq!(murmur, Err(InvalidBytes::Hash { expected: 3, got: 1 }));
    let keyed = Keyed::new([0; 16]);
    let keyed = BloomFilter::<u64, _>::from_bytes_with_hasher(&good, keyed).map(|_| ());
    assert_eq!(keyed, Err(InvalidBytes::Hash { expected: 2, got: 1 }));
    let strings = BloomFilter::<str>::from_bytes_with_hasher(&good, Portable::default());
    assert_eq!(strings.map(|_| ()), Err(InvalidBytes::Keys { expected: 3, got: 1 }));
    // A hash with a 32-bit seed, and a larger seed in the file.
    let xxh = BloomFilter::<u64, _>::with_hasher(10, 0.01, Xxh64::seeded(1 << 40)).to_bytes();
    assert!(BloomFilter::<u64, Xxh64>::from_bytes(&xxh).is_ok());
    let murmur = with(&xxh, 12, &[3, 0]);
    let error = BloomFilter::<u64, Murmur3>::from_bytes(&murmur).map(|_| ());
    assert_eq!(error, Err(InvalidBytes::Inconsistent));
}

#[test]
fn a_secret_that_does_not_go_with_its_check_value_is_refused() {
    let directory = Directory::new("forged-secret");
    let path = directory.path("secret.umbel");
    let keyed = Keyed::new([5; 16]);
    let filter = BloomFilter::<u64, Keyed>::with_hasher(10, 0.01, keyed);
    filter.save_with_secret(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let load = |bytes: &[u8]| BloomFilter::<u64, Keyed>::from_bytes(bytes).map(|_| ());
    assert_eq!(load(&bytes), Ok(()));
    assert_eq!(load(&with(&bytes, 40, &[6])), Err(InvalidBytes::Inconsistent));
    // The secret of the file differs from the given one.
    let forged = with(&bytes, 40, &[6]);
    let error = BloomFilter::<u64, _>::from_bytes_with_hasher(&forged, keyed).map(|_| ());
    assert_eq!(error, Err(InvalidBytes::Inconsistent));
}

#[test]
fn another_family_is_refused() {
    let bytes = good();
    let is = |result: Result<(), InvalidBytes>, expected| {
        assert_eq!(result, Err(InvalidBytes::Family { expected, got: 1 }));
    };
    is(BlockedBloomFilter::<u64>::from_bytes(&bytes).map(|_| ()), 2);
    is(QuotientFilter::<u64>::from_bytes(&bytes).map(|_| ()), 9);
    is(XorFilter::<u64>::from_bytes(&bytes).map(|_| ()), 10);
}

#[test]
fn foreign_files_are_refused_by_their_first_bytes() {
    let directory = Directory::new("foreign");
    let garbage: Vec<u8> =
        (0..1_u64 << 17).flat_map(|n| umbel_laws::split_mix(n).to_le_bytes()).collect();
    let elf = fs::read(std::env::current_exe().unwrap()).unwrap();
    let parquet =
        [&b"PAR1\x15\x40\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0"[..], &[0; 4_096], b"PAR1"];
    let gzip = [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], &garbage[..4_096]];
    let text = "umbel\n".repeat(100).into_bytes();
    let newlines = [b"umbel\0\n\0", &good()[8..]].concat();
    let foreign = [garbage.clone(), elf[..1 << 20].to_vec(), parquet.concat(), gzip.concat()];
    for bytes in foreign.into_iter().chain([text, newlines, vec![0; 1 << 20]]) {
        assert_eq!(refused(&directory, &bytes), InvalidBytes::Magic);
        assert_eq!(AnyFilter::from_bytes(&bytes).map(|_| ()), Err(InvalidBytes::Magic));
    }
    assert!(matches!(refused(&directory, b""), InvalidBytes::Length { expected: 192, got: 0 }));
}

/// Opens a path that is not a regular file in every way.
fn not_a_file(path: &Path) {
    let error = Filter::load(path).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile), "{}: {error}", path.display());
    let error = AnyFilter::load(path).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile), "{}: {error}", path.display());
}

#[cfg(unix)]
#[test]
fn directories_pipes_and_devices_are_refused() {
    let directory = Directory::new("devices");
    not_a_file(directory.path(".").as_path());
    not_a_file(Path::new("/dev/zero"));
    not_a_file(Path::new("/dev/null"));
    let pipe = directory.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    not_a_file(&pipe);
    let socket = directory.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    not_a_file(&socket);
    // Symbolic links to them give the same result.
    let link = directory.path("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    not_a_file(&link);
    let circle = directory.path("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    assert!(matches!(Filter::load(&circle), Err(OpenError::Io(_))));
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_process_is_no_filter() {
    // A file that reports a length of zero and fails when it is read.
    for path in ["/proc/self/mem", "/proc/self/maps", "/proc/self/status"] {
        let error = Filter::load(path).map(|_| ()).unwrap_err();
        let expected = matches!(
            error,
            OpenError::Io(_)
                | OpenError::Invalid(InvalidBytes::Length { .. } | InvalidBytes::Magic)
        );
        assert!(expected, "{path}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_of_holes_is_refused_by_its_length() {
    let directory = Directory::new("holes");
    let path = directory.path("holes");
    let good = good();
    // The largest size that the file system allows: 8 EiB where possible.
    for header in [&good[..], &[0; 512]] {
        fs::write(&path, header).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let sizes = [i64::MAX as u64, 1 << 60, 1 << 50, (16 << 40) - (1 << 20), 1 << 42, 1 << 33];
        let size = sizes.into_iter().find(|size| file.set_len(*size).is_ok()).unwrap();
        let expected = if header.len() == 512 {
            InvalidBytes::Magic
        } else {
            InvalidBytes::Length { expected: good.len() as u64, got: size }
        };
        for error in [Filter::load(&path).map(|_| ()), AnyFilter::load(&path).map(|_| ())] {
            let error = error.unwrap_err();
            assert!(matches!(error, OpenError::Invalid(got) if got == expected), "{size}: {error}");
        }
    }
    // Announced sizes, with and without the bytes, against the limit.
    let shape = umbel::bloom::Shape::with(1, (1 << 40) - 1, 7).unwrap();
    let mut header = with(&good, field(1), &shape.bits().to_le_bytes());
    header = with(&header, LENGTH, &(1_u64 << 37).to_le_bytes())[..192].to_vec();
    let blocks = (1_u64 << 37) / 8_192;
    let expected = 192 + (1 << 37) + blocks * 8;
    let error = Filter::from_reader(&header[..]).map(|_| ()).unwrap_err();
    let limit = 64 << 30;
    assert!(
        matches!(error, OpenError::TooLarge { bytes, limit: got } if bytes == expected && got == limit)
    );
    let generous = Opening::new().limit(u64::MAX);
    let error = generous.read::<Filter>(&header[..]).map(|_| ()).unwrap_err();
    let short = InvalidBytes::Length { expected, got: 192 };
    assert!(matches!(error, OpenError::Invalid(got) if got == short), "{error}");
    fs::write(&path, &header).unwrap();
    if File::options().write(true).open(&path).unwrap().set_len(expected).is_ok() {
        let error = Filter::load(&path).map(|_| ()).unwrap_err();
        assert!(matches!(error, OpenError::TooLarge { .. }), "{error}");
        // With unlimited room, the table of checksums causes the error.
        let error = generous.load::<Filter>(&path).map(|_| ()).unwrap_err();
        assert!(matches!(error, OpenError::Invalid(InvalidBytes::Table)), "{error}");
    }
}
