//! What holds throughput down (method, 2.12): the first rule that matches names it.

/// What was seen at the plateau. What was not looked at is `None` or empty, and matches nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Blocking checks or throttling during the run, in words.
    pub disturbances: Vec<String>,
    /// The ceiling, declared or by its shape, in words.
    pub cap: Option<String>,
    /// The busiest thread of Plumb's own, 0…1 of a processor.
    pub busiest_worker: Option<f64>,
    /// X·L/N − 1.
    pub residual: Option<f64>,
    /// What more threads bring at equal N, relative.
    pub gain_by_threads: Option<f64>,
    /// How busy each core was, 0…1.
    pub cores: Vec<f64>,
    /// How busy the device was, 0…1.
    pub device_busy: Option<f64>,
    /// Mean number of I/Os in flight at the devices.
    pub device_in_flight: Option<f64>,
    /// N·A: how many should be.
    pub expected_in_flight: Option<f64>,
    /// I/Os per second of each device of a target of several.
    pub device_rates: Vec<f64>,
}

/// What holds throughput down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// Something disturbed the run: nothing is attributed.
    Disturbed,
    /// A ceiling.
    Cap,
    /// The processor of this host, or the generator itself.
    Generator,
    /// One core that takes all interrupts or completions.
    SingleCore,
    /// The device.
    Device,
    /// Something that queues above the device.
    AboveDevice,
    /// One of several devices.
    Imbalance,
    /// The evidence does not say.
    NotDetermined,
}

impl Bottleneck {
    /// The number of its rule, from 1.
    #[must_use]
    pub fn rule(self) -> u32 {
        match self {
            Self::Disturbed => 1,
            Self::Cap => 2,
            Self::Generator => 3,
            Self::SingleCore => 4,
            Self::Device => 5,
            Self::AboveDevice => 6,
            Self::Imbalance => 7,
            Self::NotDetermined => 8,
        }
    }

    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Disturbed => "disturbed",
            Self::Cap => "cap",
            Self::Generator => "generator",
            Self::SingleCore => "single-core",
            Self::Device => "device",
            Self::AboveDevice => "above-device",
            Self::Imbalance => "imbalance",
            Self::NotDetermined => "not-determined",
        }
    }

    /// What it is, and what to do about it.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Disturbed => "the run was disturbed: nothing is attributed; run it again",
            Self::Cap => "a ceiling: more queue depth only adds waiting",
            Self::Generator => "the processor of this host: use more threads or larger blocks",
            Self::SingleCore => "one core does all the work: spread interrupts or set affinities",
            Self::Device => "the device is saturated",
            Self::AboveDevice => {
                "I/Os queue above the device: look at the scheduler, nr_requests, file-system locks \
                 and the network"
            }
            Self::Imbalance => "one device gets more than its share: look at the stripe",
            Self::NotDetermined => "not determined by what was seen",
        }
    }
}

/// A name with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// The first rule that matched.
    pub bottleneck: Bottleneck,
    /// Everything that was seen, in words, whatever matched.
    pub evidence: Vec<String>,
}

/// Names the bottleneck.
#[must_use]
pub fn attribute(seen: &Seen) -> Attribution {
    let share = seen
        .device_in_flight
        .zip(seen.expected_in_flight)
        .filter(|(_, expected)| *expected > 0.0)
        .map(|(found, expected)| found / expected);
    let core = pooled_core(&seen.cores);
    let imbalance = imbalance(&seen.device_rates);
    let is_generator = seen.busiest_worker.is_some_and(|busy| busy >= 0.95)
        || seen.residual.is_some_and(|residual| residual < -0.05)
        || seen.gain_by_threads.is_some_and(|gain| gain >= 0.05);
    let bottleneck = if !seen.disturbances.is_empty() {
        Bottleneck::Disturbed
    } else if seen.cap.is_some() {
        Bottleneck::Cap
    } else if is_generator {
        Bottleneck::Generator
    } else if core.is_some() {
        Bottleneck::SingleCore
    } else if seen.device_busy.is_some_and(|busy| busy >= 0.95)
        && share.is_some_and(|share| share >= FULL)
    {
        Bottleneck::Device
    } else if share.is_some_and(|share| share < EMPTY) {
        Bottleneck::AboveDevice
    } else if imbalance.is_some_and(|ratio| ratio > 1.5) {
        Bottleneck::Imbalance
    } else {
        Bottleneck::NotDetermined
    };
    Attribution { bottleneck, evidence: evidence(seen, share, core, imbalance) }
}

/// The device has "all" that should be in flight from this share on …
const FULL: f64 = 0.85;
/// … and far less below this.
const EMPTY: f64 = 0.5;

/// A core at 85 % or more while the median core is below 50 %: its number and both shares.
fn pooled_core(cores: &[f64]) -> Option<(usize, f64, f64)> {
    let middle = crate::stats::describe::median(cores);
    let (number, busiest) = cores.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (busiest >= 0.85 && middle < 0.50).then_some((number, busiest, middle))
}

/// Largest over median rate of several devices.
fn imbalance(rates: &[f64]) -> Option<f64> {
    let most = rates.iter().copied().fold(0.0, f64::max);
    let middle = crate::stats::describe::median(rates);
    (rates.len() > 1 && middle > 0.0).then(|| most / middle)
}

fn evidence(
    seen: &Seen,
    share: Option<f64>,
    core: Option<(usize, f64, f64)>,
    imbalance: Option<f64>,
) -> Vec<String> {
    let mut list: Vec<String> =
        seen.disturbances.iter().map(|d| format!("disturbed: {d}")).collect();
    list.extend(seen.cap.iter().map(|cap| format!("ceiling: {cap}")));
    let percent = |name: &str, value: Option<f64>| {
        value.map(|value| format!("{name}: {:.1} %", value * 100.0))
    };
    list.extend(percent("busiest thread of the generator", seen.busiest_worker));
    list.extend(percent("X·L/N − 1", seen.residual));
    list.extend(percent("gain by more threads at equal N", seen.gain_by_threads));
    list.extend(core.map(|(number, busiest, middle)| {
        format!(
            "core {number} is {:.0} % busy, the median core {:.0} %",
            busiest * 100.0,
            middle * 100.0
        )
    }));
    list.extend(percent("device busy", seen.device_busy));
    list.extend(percent("in flight at the device, of what should be", share));
    list.extend(imbalance.map(|ratio| format!("largest over median device rate: {ratio:.2}")));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seen: &Seen, wanted: Bottleneck) {
        let found = attribute(seen);
        assert_eq!(found.bottleneck, wanted, "{found:?}");
        assert!(!found.bottleneck.sentence().is_empty());
    }

    #[test]
    fn the_first_rule_that_matches_names_it() {
        let mut seen = Seen { device_rates: vec![100.0, 100.0, 180.0], ..Seen::default() };
        check(&Seen::default(), Bottleneck::NotDetermined);
        check(&seen, Bottleneck::Imbalance);
        seen.expected_in_flight = Some(64.0);
        seen.device_in_flight = Some(10.0);
        check(&seen, Bottleneck::AboveDevice);
        seen.device_in_flight = Some(62.0);
        check(&seen, Bottleneck::Imbalance);
        seen.device_busy = Some(1.0);
        check(&seen, Bottleneck::Device);
        seen.cores = vec![0.1, 0.9, 0.2, 0.1];
        check(&seen, Bottleneck::SingleCore);
        seen.residual = Some(-0.06);
        check(&seen, Bottleneck::Generator);
        seen.cap = Some("VM limit 1920".into());
        check(&seen, Bottleneck::Cap);
        seen.disturbances = vec!["scrub began".into()];
        check(&seen, Bottleneck::Disturbed);
        assert_eq!(attribute(&seen).evidence.len(), 7);
    }

    #[test]
    fn busy_alone_proves_nothing() {
        let busy = Seen { device_busy: Some(1.0), ..Seen::default() };
        check(&busy, Bottleneck::NotDetermined);
        // Published sample: one core at 38 % is far from it.
        let cores = vec![0.1283, 0.3838, 0.1202, 0.1355];
        check(&Seen { cores, ..Seen::default() }, Bottleneck::NotDetermined);
        check(&Seen { gain_by_threads: Some(0.05), ..Seen::default() }, Bottleneck::Generator);
        check(&Seen { busiest_worker: Some(0.96), ..Seen::default() }, Bottleneck::Generator);
    }

    #[test]
    fn rules_are_numbered_in_their_order() {
        let all = [
            Bottleneck::Disturbed,
            Bottleneck::Cap,
            Bottleneck::Generator,
            Bottleneck::SingleCore,
            Bottleneck::Device,
            Bottleneck::AboveDevice,
            Bottleneck::Imbalance,
            Bottleneck::NotDetermined,
        ];
        assert!(all.map(Bottleneck::rule).into_iter().eq(1..=8));
    }
}
