//! The positions of the probes of a key inside a line: numbers that are part of the format.

/// The maximum number of probes in a line.
pub(crate) const MAX_LANES: u32 = 8;

/// Odd multipliers, one for each probe: the upper halves of the first sixteen outputs of SplitMix64
/// with seed 0 (Steele, Lea and Flood 2014, figure 16), with their lowest bit set.
const SALTS: [[u32; 8]; 2] = [
    [
        0xe220_a839,
        0x6e78_9e6b,
        0x06c4_5d19,
        0xf88b_b8a9,
        0x1b39_896b,
        0x53cb_9f0d,
        0x2c82_9abf,
        0xc584_133b,
    ],
    [
        0x3ee5_7891,
        0xf3b8_488d,
        0x657e_ecdd,
        0xc2d3_26e1,
        0x8621_a03f,
        0x8e1f_7555,
        0xb54e_0f17,
        0x84bb_3f97,
    ],
];

/// The multipliers of a split-block filter, one for each of its words of 32 bits (Parquet format,
/// `BloomFilter.md`, "Algorithm").
pub(crate) const SPLIT_SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// The probes of a key in one of its lines.
///
/// A line has two halves of 256 bits. Lanes 0 to 3 probe the first half and lanes 4 to 7 the
/// second, so that vectors of eight words can be gathered from each half and joined at a fixed
/// place. The top eight bits of x · salt, a product of 32 bits, select the bit that a lane probes
/// in its half.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Lanes {
    pub(super) salts: [u32; 8],
    /// 1 for a lane that probes, otherwise 0.
    pub(super) on: [u32; 8],
    /// 0 for a lane that probes, otherwise more than any position in a line.
    pub(super) off: [u32; 8],
    /// 31: the bits of a position that select a bit in a word of 32 bits.
    pub(super) in_word: [u32; 8],
    /// How many lanes probe the first half: lanes 0, 1, ...
    pub(super) first: u32,
    /// How many lanes probe the second half: lanes 4, 5, ...
    pub(super) second: u32,
    /// The larger of the two numbers.
    pub(super) steps: u32,
}

/// The positions of all probes of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Whether a key is in two lines.
    pub(crate) two: bool,
    /// The lanes of its first and of its second line.
    pub(crate) lanes: [Lanes; 2],
}

impl Places {
    /// For a key in two lines or in one, with this many probes in each, at most eight.
    #[inline(always)]
    pub(crate) const fn of(two: bool, probes: u32) -> &'static Self {
        &PLACES[two as usize][probes as usize % PLACES[0].len()]
    }
}

/// An odd probe is in the first half of the first line and in the second half of the second line.
/// If it were in the same half of both, one half of all bits would fill up faster than the other.
static PLACES: [[Places; 16]; 2] = {
    let none = Lanes {
        salts: [0; 8],
        on: [0; 8],
        off: [0; 8],
        in_word: [31; 8],
        first: 0,
        second: 0,
        steps: 0,
    };
    let one = Places { two: false, lanes: [none; 2] };
    let two = Places { two: true, lanes: [none; 2] };
    let mut all = [[one; 16], [two; 16]];
    let mut number = 0;
    while number < 2 * 2 * (MAX_LANES + 1) {
        let (two, line, probes) = (number as usize % 2, number as usize / 2 % 2, number / 4);
        let lanes = &mut all[two][probes as usize].lanes[line];
        lanes.salts = SALTS[line];
        (lanes.first, lanes.second) = split(line, probes);
        lanes.steps = probes.div_ceil(2);
        let mut lane = 0;
        while lane < 8 {
            let on = lane % 4 < if lane < 4 { lanes.first } else { lanes.second };
            lanes.on[lane as usize] = on as u32;
            lanes.off[lane as usize] = if on { 0 } else { 1 << 10 };
            lane += 1;
        }
        number += 1;
    }
    all
};

/// How many of the probes in a key's first (0) or second (1) line are in the first half of that
/// line, and how many in the second.
pub(crate) const fn split(line: usize, probes: u32) -> (u32, u32) {
    let (more, fewer) = (probes.div_ceil(2), probes / 2);
    if line == 0 { (more, fewer) } else { (fewer, more) }
}
