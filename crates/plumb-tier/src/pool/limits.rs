//! Budgets and limits of one optimization: as somebody asks for them, in the line that hands them to the program that has
//! the pool, and what an engine is to keep to by them.
//!
//! What a program does not know it must not leave out, for then more would move than was asked for: it refuses the whole.

use plumb_units::{Bytes, Nanos};

use crate::engine::OptimizeSettings;
use crate::optimizer::PlanLimits;

/// The least rate that moves can go on with: a move goes piece by piece.
pub const RATE_LEAST: u64 = 64 << 10;
/// The most movers, and the largest share of the Performance tier that is kept free, in percent.
const MOVERS_MAX: u64 = 8;
const RESERVE_MAX: u64 = 50;
/// The largest of the small numbers.
const NUMBER_MAX: u64 = 0xffff_ffff;
/// So much of what is not understood is repeated, at most.
const QUOTED: usize = 40;

/// What is asked for; what is not is as by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptimizeLimits {
    /// Seconds that it may take.
    pub run_limit_s: Option<u32>,
    /// Extents under way at a time: 1 to 8.
    pub movers: Option<u32>,
    /// As fast as the limits allow, whatever requests take (option H of 10.5).
    pub normal_priority: bool,
    /// Bytes moved per second.
    pub max_rate: Option<u64>,
    /// I/Os of moves per second, on all disks together.
    pub max_iops: Option<u32>,
    /// Bytes moved in all: the movement budget.
    pub max_moved: Option<u64>,
    /// Bytes written to the Performance tier, those of all copies: the endurance budget.
    pub max_promoted: Option<u64>,
    /// Share of the Performance tier to keep free for new data, in percent: 0 to 50.
    pub reserve_percent: u8,
}

/// Why limits are none that an optimization can keep to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum LimitError {
    /// Nobody knows it.
    #[error("'{name}' is no limit that is known")]
    #[diagnostic(code(plumb::tier::unknown_limit), help("see plumb help space optimize"))]
    Unknown {
        /// As it was written.
        name: String,
    },
    /// It is beyond what can be.
    #[error("{name} cannot be '{value}': it must be {allowed}")]
    #[diagnostic(code(plumb::tier::limit_value), help("see plumb help space optimize"))]
    Value {
        /// Which.
        name: &'static str,
        /// As it was written.
        value: String,
        /// What can be.
        allowed: String,
    },
    /// Nothing moves within it.
    #[error("--{name} {} admits no move: an extent takes {}", Bytes(*bytes), Bytes(*least))]
    #[diagnostic(code(plumb::tier::budget_without_moves), help("nothing was done: allow {remedy}"))]
    NoMove {
        /// Which.
        name: &'static str,
        /// As it was given.
        bytes: u64,
        /// The least that helps.
        least: u64,
        /// That, and what it is for.
        remedy: String,
    },
    /// It is there twice.
    #[error("{name} is named twice")]
    #[diagnostic(code(plumb::tier::limit_twice), help("name it once"))]
    Twice {
        /// Which.
        name: &'static str,
    },
}

/// Limits that are numbers: their names, as the command line has them too, and between what they are.
const NUMBERS: [(&str, u64, u64); 7] = [
    ("run-limit", 1, NUMBER_MAX),
    ("movers", 1, MOVERS_MAX),
    ("max-rate", RATE_LEAST, u64::MAX),
    ("max-iops", 1, NUMBER_MAX),
    ("max-moved", 1, u64::MAX),
    ("max-promoted", 1, u64::MAX),
    ("reserve", 0, RESERVE_MAX),
];
const PRIORITY: &str = "priority";

/// What somebody else wrote, fit to be shown.
pub(super) fn quoted(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { '?' } else { c });
    plain.take(QUOTED).collect()
}

impl OptimizeLimits {
    /// In the order of [`NUMBERS`]; what is as by default is not named.
    fn numbers(&self) -> [Option<u64>; NUMBERS.len()] {
        [
            self.run_limit_s.map(u64::from),
            self.movers.map(u64::from),
            self.max_rate,
            self.max_iops.map(u64::from),
            self.max_moved,
            self.max_promoted,
            (self.reserve_percent > 0).then_some(self.reserve_percent.into()),
        ]
    }

    /// Whether all is as by default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an optimization can keep to them.
    ///
    /// # Errors
    /// The first that is beyond what can be.
    pub fn check(&self) -> Result<(), LimitError> {
        for ((name, least, most), value) in NUMBERS.into_iter().zip(self.numbers()) {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(beyond((name, least, most), &value.to_string()));
            }
        }
        Ok(())
    }

    /// Whether a budget admits a move on a virtual disk with extents of so many bytes and so many copies: one that does not would be
    /// kept to by doing nothing.
    ///
    /// # Errors
    /// The first that does not.
    pub fn admit_a_move(&self, extent_bytes: u64, copies: u8) -> Result<(), LimitError> {
        let written = extent_bytes.saturating_mul(copies.into());
        let in_copies = match copies {
            1 => "which one extent takes".to_owned(),
            copies => format!("which one extent in {copies} copies takes"),
        };
        let moved = "and twice that where the Performance tier is full: one extent goes down for one that goes up";
        let budgets = [
            ("max-moved", self.max_moved, extent_bytes, moved.to_owned()),
            ("max-promoted", self.max_promoted, written, in_copies),
        ];
        for (name, bytes, least, of) in budgets {
            if let Some(bytes) = bytes.filter(|bytes| *bytes < least) {
                let remedy = format!("{} at least, {of}", Bytes(least));
                return Err(LimitError::NoMove { name, bytes, least, remedy });
            }
        }
        Ok(())
    }

    /// A word for each that is not as by default, each after a blank.
    pub(super) fn words(&self) -> String {
        let mut out = String::new();
        for ((name, ..), value) in NUMBERS.into_iter().zip(self.numbers()) {
            if let Some(value) = value {
                out.push_str(&format!(" {name}={value}"));
            }
        }
        if self.normal_priority {
            out.push_str(&format!(" {PRIORITY}=normal"));
        }
        out
    }

    /// The same read back.
    pub(super) fn parse(words: &[&str]) -> Result<Self, LimitError> {
        let mut found: [Option<u64>; NUMBERS.len()] = [None; NUMBERS.len()];
        let mut priority = None;
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((*word, ""));
            if name == PRIORITY {
                let normal = match value {
                    "low" => false,
                    "normal" => true,
                    _ => {
                        let allowed = "low or normal".to_owned();
                        return Err(LimitError::Value {
                            name: PRIORITY,
                            value: quoted(value),
                            allowed,
                        });
                    }
                };
                if priority.replace(normal).is_some() {
                    return Err(LimitError::Twice { name: PRIORITY });
                }
                continue;
            }
            let known = NUMBERS.iter().position(|known| known.0 == name);
            let Some(nth) = known else { return Err(LimitError::Unknown { name: quoted(name) }) };
            let (name, least, most) = NUMBERS[nth];
            // Digits and nothing else: no sign, no unit.
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let number = value.parse().ok().filter(|_| digits);
            let number = number.filter(|number| (least..=most).contains(number));
            let number = number.ok_or_else(|| beyond((name, least, most), &quoted(value)))?;
            if found[nth].replace(number).is_some() {
                return Err(LimitError::Twice { name });
            }
        }
        let [run_limit, movers, max_rate, max_iops, max_moved, max_promoted, reserve] = found;
        let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        Ok(Self {
            run_limit_s: small(run_limit),
            movers: small(movers),
            normal_priority: priority.unwrap_or(false),
            max_rate,
            max_iops: small(max_iops),
            max_moved,
            max_promoted,
            reserve_percent: reserve.and_then(|share| u8::try_from(share).ok()).unwrap_or(0),
        })
    }

    /// What an engine keeps to by them, on a virtual disk with extents of so many bytes, so many copies and so many slots
    /// of its Performance tier that data may use. A trickle through the day has bounds of its own: a rate makes it slower, and
    /// not faster than its share of the disks' time.
    #[must_use]
    pub fn settings(
        &self,
        trickle: Option<OptimizeSettings>,
        (extent_bytes, copies): (u64, u8),
        performance_slots: u64,
    ) -> OptimizeSettings {
        let once = OptimizeSettings::default();
        let base = trickle.unwrap_or(once);
        let extents =
            |bytes: Option<u64>, each: u64| bytes.map_or(u64::MAX, |bytes| bytes / each.max(1));
        // What is worn out is every copy.
        let written = extent_bytes.saturating_mul(copies.into());
        let rate = self.max_rate.or(once.rate);
        OptimizeSettings {
            limits: PlanLimits {
                moved: extents(self.max_moved, extent_bytes),
                promoted: extents(self.max_promoted, written),
            },
            time: self.run_limit_s.map_or(base.time, |seconds| Nanos::from_secs(seconds.into())),
            movers: self.movers.unwrap_or(base.movers),
            rate: trickle.map_or(rate, |trickle| trickle.rate.min(rate)),
            gives_way: !self.normal_priority,
            ios: self.max_iops.map(u64::from),
            reserve: performance_slots.saturating_mul(self.reserve_percent.into()) / 100,
            ..base
        }
    }
}

fn beyond((name, least, most): (&'static str, u64, u64), value: &str) -> LimitError {
    let allowed = match most {
        u64::MAX => format!("{least} or more"),
        most => format!("{least} to {most}"),
    };
    LimitError::Value { name, value: value.to_owned(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> OptimizeLimits {
        OptimizeLimits {
            run_limit_s: Some(60),
            movers: Some(3),
            normal_priority: true,
            max_rate: Some(1 << 20),
            max_iops: Some(70),
            max_moved: Some(8 << 20),
            max_promoted: Some(u64::MAX),
            reserve_percent: 10,
        }
    }

    fn parsed(text: &str) -> Result<OptimizeLimits, LimitError> {
        OptimizeLimits::parse(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn what_is_written_is_read_back() {
        for limits in [
            OptimizeLimits::default(),
            all(),
            OptimizeLimits { max_rate: Some(RATE_LEAST), ..OptimizeLimits::default() },
            OptimizeLimits { normal_priority: false, reserve_percent: 0, ..all() },
        ] {
            assert_eq!(limits.check(), Ok(()));
            assert_eq!(parsed(&limits.words()), Ok(limits), "{}", limits.words());
        }
        assert_eq!(OptimizeLimits::default().words(), "");
        assert_eq!(parsed("priority=low"), Ok(OptimizeLimits::default()));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_its_name() {
        for (text, wanted) in [
            ("colour=7", "'colour' is no limit that is known"),
            ("movers=3 colour", "'colour' is no limit that is known"),
            ("=7", "'' is no limit that is known"),
            ("movers", "movers cannot be '': it must be 1 to 8"),
            ("movers=9", "movers cannot be '9': it must be 1 to 8"),
            ("movers=+3", "movers cannot be '+3': it must be 1 to 8"),
            ("max-rate=1M", "max-rate cannot be '1M': it must be 65536 or more"),
            ("max-rate=65535", "max-rate cannot be '65535': it must be 65536 or more"),
            ("run-limit=0", "run-limit cannot be '0': it must be 1 to 4294967295"),
            ("run-limit=4294967296", "run-limit cannot be '4294967296'"),
            ("max-moved=18446744073709551616", "max-moved cannot be '18446744073709551616'"),
            ("max-promoted=0", "max-promoted cannot be '0': it must be 1 or more"),
            ("max-iops=-1", "max-iops cannot be '-1'"),
            ("reserve=51", "reserve cannot be '51': it must be 0 to 50"),
            ("priority=high", "priority cannot be 'high': it must be low or normal"),
            ("movers=3 movers=3", "movers is named twice"),
            ("priority=low priority=low", "priority is named twice"),
        ] {
            let refused = parsed(text).expect_err(text).to_string();
            assert!(refused.starts_with(wanted), "{text}: {refused}");
        }
        let long = parsed(&format!("{}\u{1b}=1", "x".repeat(30))).expect_err("unknown").to_string();
        assert!(!long.contains('\u{1b}'), "{long}");
        let long = parsed(&"y".repeat(1000)).expect_err("unknown").to_string();
        assert!(long.len() < 100, "{long}");
    }

    #[test]
    fn limits_of_a_program_are_checked_like_those_of_a_line() {
        for (wrong, name) in [
            (OptimizeLimits { movers: Some(0), ..all() }, "movers"),
            (OptimizeLimits { max_rate: Some(RATE_LEAST - 1), ..all() }, "max-rate"),
            (OptimizeLimits { reserve_percent: 51, ..all() }, "reserve"),
        ] {
            let refused = wrong.check().expect_err(name).to_string();
            assert!(refused.starts_with(&format!("{name} cannot be")), "{refused}");
            assert!(parsed(&wrong.words()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_budget_below_an_extent_is_refused_with_the_least_that_helps() {
        const MIB: u64 = 1 << 20;
        let refused = |max_moved, max_promoted, copies| {
            let limits = OptimizeLimits { max_moved, max_promoted, ..OptimizeLimits::default() };
            limits.admit_a_move(MIB, copies).err()
        };
        assert_eq!(refused(None, None, 3), None);
        assert_eq!(refused(Some(MIB), Some(2 * MIB), 2), None);
        for (moved, promoted, copies, wanted) in [
            (Some(MIB - 1), None, 2, ("max-moved", MIB)),
            (None, Some(MIB), 2, ("max-promoted", 2 * MIB)),
            (None, Some(3 * MIB - 1), 3, ("max-promoted", 3 * MIB)),
        ] {
            let Some(LimitError::NoMove { name, least, .. }) = refused(moved, promoted, copies)
            else {
                panic!("{wanted:?} is let pass");
            };
            assert_eq!((name, least), wanted);
        }
    }

    #[test]
    fn settings_are_what_was_asked_for() {
        let settings = all().settings(None, (1 << 20, 2), 200);
        let wanted = OptimizeSettings {
            limits: PlanLimits { moved: 8, promoted: u64::MAX >> 21 },
            time: Nanos::from_secs(60),
            movers: 3,
            rate: Some(1 << 20),
            gives_way: false,
            ios: Some(70),
            reserve: 20,
            ..OptimizeSettings::default()
        };
        assert_eq!(settings, wanted);
        let none = OptimizeLimits::default();
        assert_eq!(none.settings(None, (1 << 20, 2), 200), OptimizeSettings::default());
        // A trickle stays one, within the limits.
        let trickle = OptimizeSettings::continuous(5 << 20);
        assert_eq!(none.settings(Some(trickle), (1 << 20, 2), 200), trickle);
        let within = all().settings(Some(trickle), (1 << 20, 2), 200);
        let (raised, window_hours) = (trickle.raised, trickle.window_hours);
        assert_eq!(within, OptimizeSettings { raised, window_hours, ..wanted });
        let fast = OptimizeLimits { max_rate: Some(6 << 20), ..none };
        assert_eq!(fast.settings(Some(trickle), (1 << 20, 2), 200), trickle, "and no faster");
    }
}
