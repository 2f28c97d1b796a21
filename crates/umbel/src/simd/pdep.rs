//! Rank and select: counts bits and finds the n-th one, with special instructions if the processor
//! has them.
//!
//! A single instruction (`pdep`) finds the n-th set bit of a word on Intel since Haswell and on AMD
//! since Zen 3. Older AMD processors implement it in microcode with up to hundreds of steps; they
//! and all other processors use the portable code.

use super::{Path, path};
use crate::parts::select::{Broadword, Ranked};

/// How a filter finds the n-th set bit. An unavailable way cannot be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranks {
    fast: bool,
}

impl Ranks {
    /// The choice of a filter that is created now.
    pub(crate) fn now() -> Self {
        Self { fast: path() != Path::Portable && is_fast() }
    }
}

/// Runs the operation in the way that the filter has selected.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn ranked<R: Ranked>(ranks: Ranks, work: R) -> R::Answer {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if ranks.fast {
        // SAFETY: `fast` is true only if `is_fast` was.
        return unsafe { x86::on_pdep(work) };
    }
    let _ = ranks;
    on_any(work)
}

/// Out of line, so that it takes no registers from the fast path.
#[inline(never)]
fn on_any<R: Ranked>(work: R) -> R::Answer {
    work.run(Broadword)
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn is_fast() -> bool {
    false
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86::is_fast;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use crate::parts::select::{Ranked, Select};
    use core::arch::x86_64::{__cpuid, _pdep_u64};

    /// Whether the processor has the instructions that [`on_pdep`] needs, in hardware.
    pub(super) fn is_fast() -> bool {
        #[cfg(feature = "std")]
        let has = std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt");
        #[cfg(not(feature = "std"))]
        let has = cfg!(all(
            target_feature = "bmi1",
            target_feature = "bmi2",
            target_feature = "lzcnt",
            target_feature = "popcnt"
        ));
        has && !is_microcoded(&vendor(), __cpuid(1).eax)
    }

    /// The vendor string of the processor.
    fn vendor() -> [u8; 12] {
        let answer = __cpuid(0);
        let mut name = [0; 12];
        for (part, register) in name.chunks_mut(4).zip([answer.ebx, answer.edx, answer.ecx]) {
            part.copy_from_slice(&register.to_le_bytes());
        }
        name
    }

    /// Whether `pdep` is microcoded: AMD before family 19h (Zen 3), and Hygon, which makes Zen 1.
    pub(super) fn is_microcoded(vendor: &[u8; 12], signature: u32) -> bool {
        let (base, extended) = (signature >> 8 & 15, signature >> 20 & 255);
        let family = if base == 15 { base + extended } else { base };
        vendor == b"HygonGenuine" || vendor == b"AuthenticAMD" && family < 0x19
    }

    /// The token of a processor with `pdep`.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Pdep(());

    impl Select for Pdep {
        #[inline(always)]
        #[allow(unsafe_code, reason = "an instruction that only some processors have")]
        fn nth_set(self, word: u64, n: u32) -> u64 {
            // SAFETY: a token exists only if the processor has the instructions.
            unsafe { _pdep_u64(1 << n, word) }
        }

        #[inline(always)]
        #[allow(unsafe_code, reason = "instructions that only some processors have")]
        fn apart<R: Ranked>(self, work: R) -> R::Answer {
            // SAFETY: a token exists only if the processor has the instructions.
            unsafe { on_pdep_apart(work) }
        }
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn on_pdep<R: Ranked>(work: R) -> R::Answer {
        work.run(Pdep(()))
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    fn on_pdep_apart<R: Ranked>(work: R) -> R::Answer {
        work.run(Pdep(()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn processors_that_run_pdep_as_a_program_are_known() {
            // Zen 1, Zen 2, Excavator, Zen 3, Zen 4; Hygon; Haswell.
            for (signature, slow) in [
                (0x0080_0f11, true),
                (0x0087_0f10, true),
                (0x0066_0f51, true),
                (0x00a2_0f10, false),
                (0x00a6_0f12, false),
            ] {
                assert_eq!(is_microcoded(b"AuthenticAMD", signature), slow, "{signature:x}");
            }
            assert!(is_microcoded(b"HygonGenuine", 0x0090_0f01));
            assert!(!is_microcoded(b"GenuineIntel", 0x0003_06c3));
        }
    }
}

/// Runs the operation in every way that this processor supports.
#[cfg(test)]
pub(crate) fn on_each_select<R: Ranked + Copy>(work: R) {
    for fast in [false, is_fast()] {
        ranked(Ranks { fast }, work);
    }
}
