//! Counters beside a run: devices, processors, pressure, memory and temperatures, once per second.

mod look;
mod recorder;
#[cfg(test)]
mod tests;

use plumb_units::Nanos;

use crate::block_stack::{BlockDevice, BlockStack};
use crate::nvme_log::{self, HealthLog};
use crate::system_tree::SystemTree;

pub use look::Look;
pub use recorder::Recorder;

/// What is looked at: found once, before the clock runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watched {
    /// Devices, those on top first.
    devices: Vec<BlockDevice>,
    /// Of each, whether the stack ends there: what it does is what a datum costs.
    bottom: Vec<bool>,
    /// (name, file with thousandths of a degree) of each sensor.
    sensors: Vec<(String, String)>,
    /// Files that count how often a processor was throttled.
    throttles: Vec<String>,
    /// Controllers of NVMe, which count how often they slowed themselves down.
    controllers: Vec<String>,
}

/// Sensors that are read at most: each is a file, and some are slow.
const SENSORS_MOST: usize = 24;
/// No stack of devices is deeper.
const DEPTH_MAX: usize = 8;

impl Watched {
    /// What lies under some targets: their devices, what those are made of, and the disks of partitions.
    #[must_use]
    pub fn under(tree: &SystemTree, stacks: &[BlockStack]) -> Self {
        let mut devices = Vec::new();
        for device in stacks.iter().flat_map(|stack| stack.devices.iter().chain(&stack.leaves)) {
            add(tree, device, 0, &mut devices);
        }
        let is_leaf =
            |device: &BlockDevice| stacks.iter().any(|stack| stack.leaves.contains(device));
        let bottom = devices.iter().map(is_leaf).collect();
        Self::of(tree, devices, bottom)
    }

    /// Every disk of the machine.
    #[must_use]
    pub fn all_disks(tree: &SystemTree) -> Self {
        let names = tree.names("/sys/block");
        let devices = names.iter().filter_map(|name| {
            let name = name.to_str()?;
            let has_size =
                tree.number(format!("/sys/block/{name}/size")).is_some_and(|size| size > 0);
            let number = tree.text(format!("/sys/block/{name}/dev"))?.parse().ok()?;
            BlockDevice::find(tree, number).filter(|_| has_size)
        });
        let devices: Vec<BlockDevice> = devices.collect();
        let bottom = vec![true; devices.len()];
        Self::of(tree, devices, bottom)
    }

    fn of(tree: &SystemTree, devices: Vec<BlockDevice>, bottom: Vec<bool>) -> Self {
        let mut controllers: Vec<String> = Vec::new();
        for name in devices.iter().filter_map(|device| nvme_log::controller(&device.name)) {
            if !controllers.contains(&name) {
                controllers.push(name);
            }
        }
        Self { devices, bottom, sensors: sensors(tree), throttles: throttles(tree), controllers }
    }

    /// How often the drives have slowed themselves down for heat, as they say. Each is sent a command for it, so it is
    /// asked before and after a recording, and not each second. `None` where none told.
    fn slowed(&self, tree: &SystemTree) -> Option<u64> {
        let told = self.controllers.iter().filter_map(|name| HealthLog::read(tree, name));
        told.map(|log| log.slowed).reduce(|a, b| a + b)
    }

    /// The kernel's names of the devices.
    pub fn device_names(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|device| device.name.as_str())
    }
}

fn add(tree: &SystemTree, device: &BlockDevice, depth: usize, found: &mut Vec<BlockDevice>) {
    if depth > DEPTH_MAX || found.contains(device) {
        return;
    }
    found.push(device.clone());
    if let Some(disk) = BlockDevice::find(tree, device.disk) {
        add(tree, &disk, depth + 1, found);
    }
    for below in device.slaves(tree) {
        add(tree, &below, depth + 1, found);
    }
}

fn sensors(tree: &SystemTree) -> Vec<(String, String)> {
    const FOLDER: &str = "/sys/class/hwmon";
    let mut sensors = Vec::new();
    for chip in tree.names(FOLDER) {
        let folder = format!("{FOLDER}/{}", chip.to_string_lossy());
        let name = tree.text(format!("{folder}/name")).unwrap_or_default();
        for file in tree.names(&folder) {
            let file = file.to_string_lossy().into_owned();
            let Some(sensor) = file.strip_suffix("_input").filter(|f| f.starts_with("temp")) else {
                continue;
            };
            let label = tree.text(format!("{folder}/{sensor}_label"));
            let label = label.unwrap_or_else(|| sensor.to_owned());
            sensors.push((format!("{name} {label}"), format!("{folder}/{file}")));
        }
    }
    sensors.truncate(SENSORS_MOST);
    sensors
}

fn throttles(tree: &SystemTree) -> Vec<String> {
    const FOLDER: &str = "/sys/devices/system/cpu";
    let files = tree.names(FOLDER).into_iter().filter_map(|name| {
        let file = format!("{FOLDER}/{}/thermal_throttle/core_throttle_count", name.to_str()?);
        tree.number(&file).map(|_| file)
    });
    files.collect()
}

/// What was seen, a second at a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// The kernel's names of the devices, those on top first.
    pub devices: Vec<String>,
    /// Of each device, whether the stack under the targets ends there.
    pub bottom: Vec<bool>,
    /// Numbers of the processors.
    pub processors: Vec<u32>,
    /// Names of the sensors.
    pub sensors: Vec<String>,
    /// Processor time of one look, on average; the look is ours.
    pub cost: Nanos,
    /// In order.
    pub seconds: Vec<Second>,
}

/// Rates and states of one interval. What the kernel does not tell is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Its end, since the recording began.
    pub end: Nanos,
    /// Of each device.
    pub devices: Vec<Option<DeviceRates>>,
    /// How busy each processor was, in percent.
    pub processors: Vec<f64>,
    /// Shares of time that something waited.
    pub pressure: Pressure,
    /// Bytes.
    pub memory: Memory,
    /// Degrees Celsius, of each sensor at the end.
    pub temperatures: Vec<Option<f64>>,
    /// How often processors were throttled; in the last interval also how often drives of NVMe slowed themselves down
    /// in the whole time.
    pub throttle_events: Option<u64>,
}

/// What a device did, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeviceRates {
    /// Reads completed.
    pub reads: f64,
    /// Writes completed.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// I/Os in flight, on average.
    pub in_flight: f64,
    /// Share of time with an I/O in flight, in percent.
    pub busy_percent: f64,
}

/// Pressure stall information: percent of the time that some, or all, tasks waited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// Some for a processor.
    pub cpu_some: Option<f64>,
    /// Some for I/O.
    pub io_some: Option<f64>,
    /// All for I/O.
    pub io_full: Option<f64>,
    /// Some for memory.
    pub memory_some: Option<f64>,
    /// All for memory.
    pub memory_full: Option<f64>,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// What programs could still take.
    pub available: Option<u64>,
    /// Written to, not yet to a device.
    pub dirty: Option<u64>,
    /// On its way to a device.
    pub writeback: Option<u64>,
}
