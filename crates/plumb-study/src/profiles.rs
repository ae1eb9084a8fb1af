//! Named profiles: the workloads of the method (2.4, 2.8) and those of VMFleet, ready to run.

use plumb_load::profile::model::RawProfile;
use plumb_load::profile::xml;

use crate::study::Setting;

/// A workload with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedProfile {
    /// What it is called.
    pub name: &'static str,
    /// The load in a line.
    pub title: &'static str,
    /// Where it comes from.
    pub origin: &'static str,
    /// What it is for, what it asks of the target, and what is the user's to change.
    pub purpose: &'static str,
    /// Bytes that its target must have.
    pub target_bytes_min: u64,
    /// The same as arguments of `plumb run` without a target, one set per time span; none where a command
    /// line cannot say it.
    pub arguments: &'static [&'static str],
    /// The profile as XML; `*1` stands for the target.
    pub xml: &'static str,
}

const GIB: u64 = 1 << 30;

/// Every named profile, in the order they are listed.
pub const PROFILES: [NamedProfile; 6] = [
    NamedProfile {
        name: "oltp",
        title: "8 KiB random, 30 % writes, 8 threads of 12",
        origin: "Test Storage Spaces Performance Using Synthetic Workloads, pre-test 1",
        purpose: "Transactions: many small I/Os at random places. Throughput and latency at one load; the \
                  load that suits your storage is found by a sweep of the queue depth. The file should be \
                  larger than every cache on the way; 64 GiB in the source.",
        target_bytes_min: GIB,
        arguments: &["-W300 -d600 -b8K -r -w30 -t8 -o12 -Z1M -Sh -L -D"],
        xml: include_str!("../../../examples/profiles/baseline-oltp.xml"),
    },
    NamedProfile {
        name: "olap",
        title: "512 KiB sequential, reads and then writes, one thread",
        origin: "Test Storage Spaces Performance Using Synthetic Workloads, sequential tests",
        purpose: "Analysis and backup: one long stream. Two time spans, 32 reads and then 16 writes \
                  outstanding; a sweep finds how many your storage needs. What is in the file is \
                  overwritten.",
        target_bytes_min: GIB,
        arguments: &[
            "-W300 -d600 -b512K -s -w0 -t1 -o32 -Z1M -Sh -L -D",
            "-W300 -d600 -b512K -s -w100 -t1 -o16 -Z1M -Sh -L -D",
        ],
        xml: include_str!("../../../examples/profiles/baseline-olap.xml"),
    },
    NamedProfile {
        name: "vmfleet-peak",
        title: "4 KiB random reads of 5 GiB, 32 outstanding",
        origin: "VMFleet 2.1, Peak",
        purpose: "What the storage gives at most when it need not look far: a small working set. A figure \
                  to compare machines by, none to expect from an application. Block size and write ratio \
                  are the user's to choose.",
        target_bytes_min: 5 * GIB,
        arguments: &["-W300 -d60 -C30 -b4K -r -w0 -t1 -o32 -f5G -Z10M -Suw -L -D1000 -z0 -Rxml"],
        xml: include_str!("../../../examples/profiles/vmfleet-peak.xml"),
    },
    NamedProfile {
        name: "vmfleet-general",
        title: "4 KiB random, 30 % writes, 95 % of it on 5 % of the data",
        origin: "VMFleet 2.1, General",
        purpose: "A virtual machine of no particular kind: most I/O goes to a small part of its data, so \
                  tiers and caches matter. Block size and write ratio are the user's to choose.",
        target_bytes_min: GIB,
        arguments: &[
            "-W300 -d60 -C30 -b4K -r -rdpct95/5:4/10 -w30 -t1 -o32 -Z10M -Suw -L -D1000 -z0 -Rxml",
        ],
        xml: include_str!("../../../examples/profiles/vmfleet-general.xml"),
    },
    NamedProfile {
        name: "vmfleet-vdi",
        title: "32 KiB writes and 8 KiB reads, 6 per second each",
        origin: "VMFleet 2.1, VDI",
        purpose: "One virtual desktop: little load, and it is latency that its user notices. Run as many at \
                  once as desktops are planned. Only the durations may be changed.",
        target_bytes_min: 10 * GIB,
        arguments: &[],
        xml: include_str!("../../../examples/profiles/vmfleet-vdi.xml"),
    },
    NamedProfile {
        name: "vmfleet-sql",
        title: "8 KiB transactions at 1500 per second and thread beside a log at 300",
        origin: "VMFleet 2.1, SQL",
        purpose: "A database: transactions beyond the first 5 GiB and a log in them, both at a fixed rate, \
                  so that what is compared is latency and CPU. Only the durations may be changed.",
        target_bytes_min: 6 * GIB,
        arguments: &[],
        xml: include_str!("../../../examples/profiles/vmfleet-sql.xml"),
    },
];

impl NamedProfile {
    /// The profile of that name; VMFleet's are known without their prefix too. Case does not matter.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_lowercase();
        PROFILES.iter().find(|profile| {
            profile.name == name || profile.name.strip_prefix("vmfleet-") == Some(name.as_str())
        })
    }

    /// One of ours.
    ///
    /// # Panics
    /// There is none of that name.
    pub(crate) fn named(name: &str) -> &'static Self {
        Self::find(name).unwrap_or_else(|| panic!("no profile is called {name}"))
    }

    /// What studies vary of it: a setting per time span, by its first target. Its file is as large as it is.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let profile = self.profile();
        profile.time_spans.iter().filter_map(Setting::of_time_span).collect()
    }

    /// The workload, with `*1` in the target's place.
    ///
    /// # Panics
    /// Never: a test reads each of them.
    #[must_use]
    pub fn profile(&self) -> RawProfile {
        xml::read(self.xml).expect("a profile of ours can be read")
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io;

    use plumb_load::profile::flags::{self, Parsed, Surroundings};
    use plumb_load::profile::json::normalised;
    use serde_json::Value;

    use super::*;

    /// No event, no file.
    struct Nowhere;

    impl Surroundings for Nowhere {
        fn create_event(&mut self, _: &str) -> io::Result<()> {
            unreachable!("no profile has events")
        }
        fn signal_event(&mut self, _: &str) -> io::Result<()> {
            unreachable!("no profile has events")
        }
        fn read_profile(&mut self, _: &str) -> io::Result<Vec<u8>> {
            unreachable!("no profile names another")
        }
        fn uptime_millis(&mut self) -> u64 {
            0
        }
    }

    fn of_line(line: &str) -> Value {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match flags::parse(&words, &mut Nowhere).expect("it is taken") {
            Parsed::Run(invocation) => normalised(&invocation.profile),
            _ => panic!("`{line}` is a run"),
        }
    }

    #[test]
    fn command_lines_say_what_the_profiles_say() {
        let mut seen = 0;
        for named in PROFILES {
            let mut profile = named.profile();
            for target in profile.time_spans.iter_mut().flat_map(|span| &mut span.targets) {
                target.path = "f".to_owned();
            }
            let whole = normalised(&profile);
            let spans = whole["TimeSpans"].as_array().expect("time spans");
            if !named.arguments.is_empty() {
                assert_eq!(spans.len(), named.arguments.len(), "{}", named.name);
            }
            for (span, line) in spans.iter().zip(named.arguments) {
                let said = of_line(&format!("{line} f"));
                assert_eq!(said["TimeSpans"][0], *span, "{}", named.name);
                assert_eq!(said["ResultFormat"], whole["ResultFormat"], "{}", named.name);
                seen += 1;
            }
        }
        assert_eq!(seen, 5);
    }

    #[test]
    fn a_setting_of_a_profile_is_the_profile() {
        for (name, spans) in [("oltp", 1), ("olap", 2)] {
            let named = NamedProfile::named(name);
            let settings = named.settings();
            assert_eq!(settings.len(), spans);
            for (setting, line) in settings.iter().zip(named.arguments) {
                let seed = u64::from(named.profile().time_spans[0].rand_seed);
                let said = of_line(&format!("{} f", setting.arguments(seed).join(" ")));
                assert_eq!(said, of_line(&format!("{line} f")), "{name}");
            }
        }
    }

    #[test]
    fn profiles_are_found_by_their_names() {
        for named in PROFILES {
            assert_eq!(NamedProfile::find(named.name).map(|found| found.name), Some(named.name));
            let targets = named.profile().time_spans.iter().flat_map(|s| s.targets.clone()).count();
            assert!(targets >= 1 && named.target_bytes_min >= GIB, "{}", named.name);
        }
        assert_eq!(NamedProfile::find("Peak").map(|found| found.name), Some("vmfleet-peak"));
        assert_eq!(NamedProfile::find("web"), None);
    }
}
