//! Pools on the disks of this machine: which disks belong to which pool, how they are judged, opened,
//! started and changed. Everything here is control plane; the engine does the I/O.

mod answers;
mod asks;
mod behind;
mod chronicle;
mod devices;
mod emulation;
mod findings;
mod full;
mod fuzz;
mod health;
mod import;
mod jobs;
mod limits;
mod live;
mod look;
mod make;
mod open;
mod registry;
mod replace;
mod scans;
mod settings;
mod tiering;
mod way;

pub use asks::{
    Ask, Within, ask, ask_cancel, ask_offline, ask_online, ask_to_leave, ask_to_stay, ask_within,
    is_in_use, owner,
};
pub use behind::{Behind, behind};
pub use chronicle::{Chronicle, LoggedCounters, LoggedEvent, counters, events};
pub use devices::DeviceQueue;
pub use emulation::Emulated;
pub use findings::{
    Age, Findings, clear_failures, note_full, note_read_only, note_refused, note_start,
};
pub use full::full_below;
pub use fuzz::fuzz_files;
pub use health::{
    DiskFacts, Facts, Health, HealthStatus, Remedy, Verdict, VirtualDiskFacts, health, judge,
};
pub use import::import;
pub use jobs::{JobsTold, jobs_in_use};
pub use limits::{LimitError, OptimizeLimits, RATE_LEAST};
pub use live::{LiveError, LiveView, live};
pub use look::{DiskLook, DiskStanding, Look, look, look_within};
pub use make::{DiskWish, PoolWish, add_disk, destroy, make};
pub use open::{
    OpenPool, PoolError, open, open_by_word, open_to_read, open_to_unread_end, slot_plan,
};
pub use registry::{Claim, NAME_MAX, RegisteredPool, Registry, RegistryError, is_name};
pub use replace::{Leaving, Removal, find_disk, forget_removed, remove_disk, replace_disk, work};
pub use scans::{ScanError, Scanned, scan_in_use};
pub use settings::{PoolSettings, RETIRE_AFTER_MAX, TIME_OUT_RANGE};
pub use tiering::{
    REPORT_TEXT, TieringError, TieringKeeper, TieringStore, restore_tiering, unix_seconds,
};
pub use way::{GivesWay, open_given, wait_for_way};
