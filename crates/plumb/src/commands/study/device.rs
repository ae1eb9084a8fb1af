//! What is measured: a simulated device from a file, and facts of a real one that must not change.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_study::study::{Device, SimulatedDevice};

/// A simulated device that cannot be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(in crate::commands) enum DeviceError {
    /// No file.
    #[error("cannot read the simulated device {}", path.display())]
    #[diagnostic(code(plumb::simulate::read), help("name a TOML file that exists"))]
    Read { path: PathBuf, source: io::Error },
    /// No device.
    #[error("{} describes no simulated device: {what}", path.display())]
    #[diagnostic(
        code(plumb::simulate::device),
        help("its keys are in the guide to sweeps, such as max-iops = 60000")
    )]
    Wrong { path: PathBuf, what: String },
}

/// Reads the description of a simulated device.
pub(in crate::commands) fn simulated(path: &Path) -> Result<Device, DeviceError> {
    let text = fs::read_to_string(path)
        .map_err(|source| DeviceError::Read { path: path.to_owned(), source })?;
    let device = SimulatedDevice::of_toml(&text)
        .map_err(|what| DeviceError::Wrong { path: path.to_owned(), what })?;
    Ok(Device::Simulated(
        serde_json::to_value(device).expect("a device is numbers with string keys"),
    ))
}

/// Facts that must be the same in all parts of a study.
pub(in crate::commands) fn critical(target: &Path, device: &Device) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    facts.insert("target".to_owned(), target.display().to_string());
    if let Device::Simulated(device) = device {
        facts.insert("simulated device".to_owned(), device.to_string());
        return facts;
    }
    let folder = target.parent().unwrap_or(Path::new("/"));
    let found = fs::metadata(target).or_else(|_| fs::metadata(folder));
    if let Ok(found) = found {
        let device = if found.rdev() == 0 { found.dev() } else { found.rdev() };
        facts.insert("device number".to_owned(), device.to_string());
    }
    if let Ok(text) = fs::read_to_string("/proc/cpuinfo") {
        let model = text.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.unwrap_or_default().trim_start_matches([' ', '\t', ':']);
        facts.insert("processor".to_owned(), model.to_owned());
    }
    facts
}
