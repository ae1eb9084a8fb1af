//! The profiles of `examples/profiles`: each is what it says, and could be run.

use std::fs;
use std::path::PathBuf;

use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{RawProfile, Target, WriteContent};
use plumb_load::profile::xml;

use crate::program::plumb;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/profiles")
}

fn read(name: &str) -> RawProfile {
    let text = fs::read_to_string(folder().join(name)).expect("the profile is there");
    xml::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn targets(name: &str) -> Vec<Target> {
    let profile = read(name);
    assert_eq!(profile.time_spans.len(), 1, "{name}");
    profile.time_spans[0].targets.clone()
}

#[test]
fn every_example_profile_is_valid_and_takes_its_target_from_the_command_line() {
    let mut seen = 0;
    for entry in fs::read_dir(folder()).expect("examples/profiles is there") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let mut profile = read(&name);
        let checked = profile.clone().check(Purpose::Print);
        let (_, warnings) = checked.unwrap_or_else(|broken| panic!("{name}: {broken:?}"));
        assert_eq!(warnings, [""; 0], "{name}");
        for target in profile.time_spans.iter_mut().flat_map(|span| &mut span.targets) {
            assert_eq!(target.path, "*1", "{name}");
            target.path = "data.dat".to_owned();
        }
        let checked = profile.check(Purpose::Run);
        assert!(checked.is_ok(), "{name}: {checked:?}");
        seen += 1;
    }
    assert!(seen >= 9, "{seen} profiles");
}

#[test]
fn vmfleet_profiles_have_vmfleets_parameters() {
    for name in ["vmfleet-peak.xml", "vmfleet-general.xml", "vmfleet-vdi.xml", "vmfleet-sql.xml"] {
        let profile = read(name);
        let span = &profile.time_spans[0];
        assert_eq!((span.warmup, span.duration, span.cooldown), (300, 60, 30), "{name}");
        assert!(span.measure_latency && span.calculate_iops_std_dev, "{name}");
        assert!(span.targets.iter().all(|target| target.write_through), "{name}");
    }
    let source = WriteContent::Random { size: 10 << 20, file: None };
    let vdi = targets("vmfleet-vdi.xml");
    let gist = |target: &Target| {
        (target.block_size, target.write_ratio, target.request_count, target.random_ratio)
    };
    assert_eq!(vdi.iter().map(gist).collect::<Vec<_>>(), [(32768, 100, 8, 20), (8192, 0, 8, 80)]);
    assert_eq!((vdi[0].max_file_size, vdi[1].max_file_size), (10 << 30, 8 << 30));
    assert_eq!(vdi[0].write_content, source);
    assert_eq!(vdi[1].write_content, WriteContent::Sequential);

    let sql = targets("vmfleet-sql.xml");
    assert_eq!(sql.iter().map(gist).collect::<Vec<_>>(), [(8192, 30, 32, 100), (32768, 100, 1, 0)]);
    assert_eq!((sql[0].base_file_offset, sql[1].max_file_size), (5 << 30, 5 << 30));
    assert_eq!((sql[0].throughput.value, sql[1].throughput.value), (1500, 300));
    assert_eq!((sql[0].threads_per_file, sql[1].threads_per_file), (4, 1));

    for (name, has_distribution) in [("vmfleet-peak.xml", false), ("vmfleet-general.xml", true)] {
        let [target] = &targets(name)[..] else { panic!("{name} has one target") };
        assert_eq!((target.block_size, target.request_count), (4096, 32), "{name}");
        assert_eq!(target.distribution.is_some(), has_distribution, "{name}");
    }
}

#[test]
fn named_profiles_are_listed_shown_and_run() {
    let list = plumb("profile list").succeeds_quietly().stdout;
    for name in ["oltp", "olap", "vmfleet-peak", "vmfleet-general", "vmfleet-vdi", "vmfleet-sql"] {
        assert!(list.contains(name), "{list}");
        let shown = plumb(&format!("profile show {name}")).succeeds_quietly().stdout;
        assert!(xml::read(&shown).is_ok(), "{name}");
        let words = plumb(&format!("profile explain {name}")).succeeds_quietly().stdout;
        assert!(words.contains("The target must exist") && words.contains("plumb run"), "{words}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("oltp.xml");
    fs::write(&profile, plumb("profile show OLTP").succeeds_quietly().stdout).expect("a file");
    let printed = plumb(&format!("run -Rp -X{} f.dat", profile.display())).succeeds_quietly();
    assert!(printed.stdout.contains("f.dat"), "{}", printed.stdout);
    let line = plumb("profile show oltp --command").succeeds_quietly().stdout;
    plumb(&format!("run -Rp {} f.dat", line.trim())).succeeds_quietly();
    let outcome = plumb("profile show vdi --command").ends_with(1);
    assert!(outcome.stderr.contains("plumb profile show vmfleet-vdi"), "{}", outcome.stderr);
    assert!(plumb("profile show web").ends_with(1).stderr.contains("`web`"));
    plumb("profile").ends_with(2);
}
