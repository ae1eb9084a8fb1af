//! Published figures of a workload as parameters of a generator (spec 20).

use plumb_units::convert::to_u64;

use super::zipf::power_sums;

/// So many of the hottest extents are looked at each for itself; the others in groups whose ranks differ by a hundredth.
const ALONE: u32 = 4096;

/// Whether the hottest `first` and the hottest `tenth` of all extents can take such shares, whatever the law: none that is less hot
/// takes more than one that is hotter. Otherwise what bounds them.
pub(super) fn can_be(
    (first, one): (u32, f64),
    (tenth, ten): (u32, f64),
    all: u32,
) -> Result<(), String> {
    /// Shares are published in percent.
    const ROUNDING: f64 = 5e-3;
    if first >= tenth || tenth >= all {
        return Ok(());
    }
    let (first, tenth, all) = (f64::from(first), f64::from(tenth), f64::from(all));
    let most = (one * tenth / first).min(1.0);
    // The others of the top 10 % take as much each as the other 90 %, at least.
    let least = one + (1.0 - one) * (tenth - first) / (all - first);
    let bound = match ten {
        ten if ten > most + ROUNDING => format!("{:.1} % at most", 100.0 * most),
        ten if ten < least - ROUNDING => format!("{:.1} % at least", 100.0 * least),
        _ => return Ok(()),
    };
    Err(format!(
        "where the top 1 % take {:.1} %, the top 10 % take {bound}, and not {:.1} %",
        100.0 * one,
        100.0 * ten
    ))
}

/// Extents that take the same share of the I/O each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Class {
    /// How many.
    pub(super) extents: f64,
    /// Of all I/O, each.
    pub(super) share: f64,
}

/// The classes of a zipf law.
pub(super) fn zipf_classes(ranks: u32, theta: f64) -> Vec<Class> {
    let sum = power_sums(&[ranks], theta)[0];
    let law = |rank: f64| rank.powf(-theta) / sum;
    let mut classes: Vec<Class> = (1..=ranks.min(ALONE))
        .map(|rank| Class { extents: 1.0, share: law(f64::from(rank)) })
        .collect();
    let mut next = to_u64(classes.len()) + 1;
    while next <= u64::from(ranks) {
        let last = (next + next / 100).min(u64::from(ranks));
        let middle = f64::midpoint(next as f64, last as f64);
        classes.push(Class { extents: (last - next + 1) as f64, share: law(middle) });
        next = last + 1;
    }
    classes
}

/// I/Os of the whole load in the time within which half of all I/Os come to an extent again: a published median of the
/// re-reference interval is this over the rate. For I/Os that come by chance and independently of each other.
pub(super) fn ios_until_reused(classes: &[Class]) -> f64 {
    // Of an extent's I/Os 1 - exp(-share x ios) come that soon after its last one.
    let reused = |ios: f64| -> f64 {
        let within = |class: &Class| class.extents * class.share * -(-class.share * ios).exp_m1();
        classes.iter().map(within).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    while reused(high) < 0.5 && high < 1e18 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match reused(middle) < 0.5 {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_one_class_is_that_of_an_exponential_law() {
        let alike = [Class { extents: 1000.0, share: 1e-3 }];
        assert!((ios_until_reused(&alike) / (1000.0 * 2.0_f64.ln()) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn shares_of_no_law_are_refused_with_their_bound() {
        let refused = |one: f64, ten: f64| can_be((20, one), (200, ten), 2000).err();
        for (one, ten) in [(0.02, 0.2), (0.35, 0.7), (0.01, 0.1), (0.5, 1.0), (0.35, 0.41)] {
            assert_eq!(refused(one, ten), None, "{one} {ten}");
        }
        let most = refused(0.02, 0.7).unwrap_or_default();
        assert!(most.contains("take 2.0 %, the top 10 % take 20.0 % at most"), "{most}");
        let least = refused(0.35, 0.36).unwrap_or_default();
        assert!(least.contains("40.9 % at least, and not 36.0 %"), "{least}");
    }

    #[test]
    fn classes_of_a_zipf_law_are_the_law() {
        for (ranks, theta) in [(100, 0.99), (5000, 0.6), (200_000, 1.2)] {
            let classes = zipf_classes(ranks, theta);
            let extents: f64 = classes.iter().map(|class| class.extents).sum();
            let shares: f64 = classes.iter().map(|class| class.extents * class.share).sum();
            assert_eq!(extents, f64::from(ranks));
            assert!((shares - 1.0).abs() < 1e-4, "{ranks} {theta}: {shares}");
            let sum = power_sums(&[ranks], theta)[0];
            let each: Vec<Class> = (1..=ranks)
                .map(|rank| Class { extents: 1.0, share: f64::from(rank).powf(-theta) / sum })
                .collect();
            let (found, wanted) = (ios_until_reused(&classes), ios_until_reused(&each));
            assert!((found / wanted - 1.0).abs() < 1e-3, "{found}, not {wanted}");
        }
    }
}
