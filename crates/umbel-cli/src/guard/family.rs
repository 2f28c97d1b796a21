//! The families that a guard can use, by the names that `umbel build --family` has.

use crate::cli::FamilyChoice;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use umbel_guard::Family;

/// A family that a guard can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guarding(FamilyChoice);

const ALL: [Guarding; 10] = [
    Guarding(FamilyChoice::Bloom),
    Guarding(FamilyChoice::Blocked),
    Guarding(FamilyChoice::Counting),
    Guarding(FamilyChoice::Scalable),
    Guarding(FamilyChoice::Cuckoo),
    Guarding(FamilyChoice::Quotient),
    Guarding(FamilyChoice::Xor),
    Guarding(FamilyChoice::Fuse),
    Guarding(FamilyChoice::Fuse4),
    Guarding(FamilyChoice::Ribbon),
];

impl Default for Guarding {
    fn default() -> Self {
        Self(FamilyChoice::Blocked)
    }
}

impl ValueEnum for Guarding {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = self.0.to_possible_value()?;
        // The name that it had in earlier versions.
        Some(if self.0 == FamilyChoice::Bloom { value.alias("classic") } else { value })
    }
}

impl Guarding {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The family with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }

    pub(super) fn family(self) -> Family {
        match self.0 {
            FamilyChoice::Bloom => Family::Classic,
            FamilyChoice::Counting => Family::Counting,
            FamilyChoice::Scalable => Family::Scalable,
            FamilyChoice::Cuckoo => Family::Cuckoo,
            FamilyChoice::Quotient => Family::Quotient,
            FamilyChoice::Xor => Family::Xor,
            FamilyChoice::Fuse => Family::Fuse,
            FamilyChoice::Fuse4 => Family::Fuse4,
            FamilyChoice::Ribbon => Family::Ribbon,
            // The two others are in no list of this module.
            FamilyChoice::Blocked | FamilyChoice::Split | FamilyChoice::BlockedCounting => {
                Family::Blocked
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_own_filter_and_a_name_that_is_read_back() {
        let mut families: Vec<String> = ALL.map(|one| format!("{:?}", one.family())).to_vec();
        families.sort();
        families.dedup();
        assert_eq!(families.len(), ALL.len());
        for one in ALL {
            assert_eq!(Guarding::named(&one.name()), Some(one));
        }
        assert_eq!(Guarding::named("classic"), Some(ALL[0]));
        for other in ["split", "blocked-counting", "Blocked", ""] {
            assert_eq!(Guarding::named(other), None, "{other}");
        }
    }
}
