//! Medians and quartiles, which are robust on a noisy machine.

use serde::Serialize;

/// The quartiles of a sample, interpolated linearly between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Quartiles {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Quartiles {
    /// The quartiles of `sample`, which must not be empty.
    pub(crate) fn of(sample: &[f64]) -> Self {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Self { low: at(0.25), median: at(0.5), high: at(0.75) }
    }

    /// The quartiles of `ours / peer`, round by round. A disturbance that slows a whole round cancels out of
    /// its ratio, so this differs from the ratio of two medians.
    pub(crate) fn of_ratios(ours: &[f64], peer: &[f64]) -> Self {
        assert_eq!(ours.len(), peer.len(), "each round measures both sides");
        let ratios: Vec<f64> = ours.iter().zip(peer).map(|(ours, peer)| ours / peer).collect();
        Self::of(&ratios)
    }
}

/// The median of `sample`, or `None` if it is empty.
pub(crate) fn median(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| Quartiles::of(sample).median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn quartiles_interpolate_between_neighbours() {
        let five = Quartiles::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(five, Quartiles { low: 2.0, median: 3.0, high: 4.0 });
        let four = Quartiles::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(four, Quartiles { low: 1.75, median: 2.5, high: 3.25 });
    }

    #[test]
    fn a_slow_round_cancels_out_of_the_ratios() {
        let ratios = Quartiles::of_ratios(&[5.0, 500.0, 6.0], &[10.0, 1000.0, 10.0]);
        assert_eq!(ratios, Quartiles { low: 0.5, median: 0.5, high: 0.55 });
    }
}
