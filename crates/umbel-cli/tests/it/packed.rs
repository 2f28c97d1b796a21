//! Packed inputs: what is read, what is refused, and what is cut off.

use crate::hostile::{gzip, zstd};
use crate::place::Place;

/// What the command of this name makes of the bytes, or nothing if there is no such command.
#[cfg(feature = "unpack")]
fn packed_by(place: &Place, command: &str, bytes: &str) -> Option<Vec<u8>> {
    let ran = place.write(".in", bytes).shell(&format!("{command} < .in > .out"));
    if ran.code != Some(0) {
        eprintln!("SKIPPED: {command}: {}", ran.err);
    }
    (ran.code == Some(0)).then(|| place.read(".out"))
}

#[cfg(feature = "unpack")]
#[test]
fn what_other_programs_pack_is_read() {
    let place = Place::new();
    let lines: String = (0..60_000).map(|n| format!("line {n}\n")).collect();
    let mut programs = 0;
    for command in [
        "gzip -c",
        "zstd -q -c",
        "pzstd -q -p 4 -c",
        "xz -c",
        "xz -9e -T2 --block-size=65536 -c",
        "xz -c --check=sha256",
        "bzip2 -c",
        "lz4 -q -c",
        "lz4 -q -c -B4 -BD",
        "lz4 -q -c --content-size -BX",
    ] {
        let Some(packed) = packed_by(&place, command, &lines) else { continue };
        programs += 1;
        place.write("list", &packed).umbel("dedup -q list").prints(&lines);
        // A truncated file is never a short one.
        for length in [packed.len() / 2, packed.len() - 1] {
            let ran = place.write("cut", &packed[..length]).umbel("build -o f cut");
            assert_eq!(ran.code, Some(2), "{command} {length}");
            assert!(ran.err.contains("is cut off: expected more of it"), "{command}: {}", ran.err);
        }
    }
    assert!(programs > 0, "there is a gzip at least");
    assert!(!place.names().contains(&"f".to_owned()));
}

#[test]
fn what_is_not_read_is_refused_with_the_command_that_unpacks_it() {
    let place = Place::new();
    let lzma = [&b"\x5d\0\0\x80\0"[..], &[0xff; 8], b"\0abc"].concat();
    for (bytes, format, command) in [
        (&b"\x1f\x9d\x90abc"[..], "compress (.Z)", "gzip -dc"),
        (b"PK\x03\x04abc", "zip", "unzip -p"),
        (b"PK\x05\x06\0\0", "zip", "unzip -p"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "7z", "7z x -so"),
        (b"LZIP\x01\x0c", "lzip", "lzip -dc"),
        (b"\x02\x21\x4c\x18abc", "legacy lz4", "lz4 -dc"),
        (b"\xff\x06\0\0sNaPpY\0", "framed snappy", "python3 -m snappy -d"),
        (&lzma, "lzma", "xz -dc --format=lzma"),
        (b"\x5d\0\0\x80\0\x05\0\0\0\0\0\0\0abc", "lzma", "xz -dc --format=lzma"),
    ] {
        let told = format!(
            "list: is packed in the format {format}, which umbel does not read; unpack it first, such as with {command} FILE | umbel ..."
        );
        place.write("list", bytes);
        place.umbel("build -o f list").fails(&told);
        place.umbel("dedup list").fails(&told);
        let ran = place.umbel_with("dedup", bytes);
        assert!(ran.err.starts_with("umbel: standard input: is packed in"), "{}", ran.err);
    }
    assert_eq!(place.names(), ["list"]);
    // Text that begins like one of them is text.
    for text in
        ["BZh\n", "BZh9 is a word\n", "PK\n", "7z\n", "LZIP\n", "]\n", "\u{1f}\n", "P*\n", "PK\x03"]
    {
        place.umbel_with("dedup", text).prints(text);
    }
}

#[cfg(not(feature = "unpack"))]
#[test]
fn formats_that_were_left_out_are_refused() {
    let place = Place::new();
    for (bytes, format) in [
        (&b"\xfd7zXZ\0\0"[..], "xz"),
        (b"BZh91AY&SY", "bzip2"),
        (b"BZh9\x17\x72\x45\x38\x50\x90", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ] {
        let ran = place.umbel_with("dedup", bytes);
        let told = format!(
            "is packed in the format {format}, which umbel does not read; unpack it first, such as with {format} -dc FILE"
        );
        ran.refuses(&told);
    }
}

#[test]
fn zstd_behind_a_skippable_frame_is_zstd() {
    let place = Place::new();
    let skippable = [&b"\x50\x2a\x4d\x18\x04\0\0\0"[..], b"size"].concat();
    place.umbel_with("dedup", [&skippable[..], &zstd(b"a\nb\na\n")].concat()).prints("a\nb\n");
    let twice = [&skippable[..], &zstd(b"a\nb"), &skippable, &zstd(b"c\na\n")].concat();
    place.umbel_with("dedup", &twice).prints("a\nbc\n");
    place.umbel_with("build -o f", &twice).prints("");
    place.umbel("check f --item a").prints("a\n");
    place.umbel_with("dedup", &skippable[..9]).fails(
        "standard input: expected the rest of a skippable frame of zstd or lz4, found the end of the file; get the whole file",
    );
    place.umbel_with("dedup", [&skippable[..], b"text\n"].concat()).fails(
        "standard input: expected a frame of zstd or lz4 after a skippable frame, found other bytes; get the file again",
    );
}

#[test]
fn zeros_behind_gzip_are_padding_and_other_bytes_are_an_error() {
    let place = Place::new();
    for zeros in [1, 512, 200_000] {
        let padded = [gzip(b"a\n"), gzip(b"b\n"), vec![0; zeros]].concat();
        place.umbel_with("dedup", padded).prints("a\nb\n");
    }
    for tail in [&b"text\n"[..], b"\0\0text\n", b"\x1f\x8c"] {
        let ran = place.umbel_with("dedup", [&gzip(b"a\n")[..], tail].concat());
        assert_eq!((ran.code, &*ran.out), (Some(2), "a\n"));
        assert!(
            ran.err.ends_with(
                "expected more gzip data or the end of the file after a whole gzip stream, found other bytes; \
                 remove them, or unpack the file first, with gzip -dc\n"
            ),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_tar_archive_is_refused_packed_or_not() {
    let place = Place::new();
    place.write("list.txt", "a\nb\n");
    if place.shell("tar cf t.tar list.txt").code != Some(0) {
        eprintln!("SKIPPED: there is no tar");
        return;
    }
    let tar = place.read("t.tar");
    place.write("t.tgz", gzip(&tar));
    for name in ["t.tar", "t.tgz"] {
        for verb in ["build -o f", "dedup", "dedup -z", "dedup --csv 1"] {
            place.umbel(&format!("{verb} {name}")).fails(&format!(
                "{name}: is a tar archive, whose file names are no records; unpack it first, with tar -xOf FILE | umbel ..."
            ));
        }
    }
}
