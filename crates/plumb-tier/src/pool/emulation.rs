//! Pools whose disks take the time of other ones: files that behave like a model of a disk (19.1).

use std::path::{Path, PathBuf};

use plumb_io::stack::{DeviceModel, HddModel, SsdModel};
use plumb_units::Nanos;

use super::look::Look;
use crate::format::MediaType;

/// A model that disks of a pool can be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulated {
    /// Solid state: 30,107 writes and 66,667 reads of 4 KiB per second, 500 MB/s.
    SasSsd200,
    /// Rotating at 10,000 per minute, with a queue of 6: 147 random I/Os per second over the full stroke at depth 1.
    Sas10k300,
}

impl Emulated {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::SasSsd200, Self::Sas10k300];

    /// The reference profile's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SasSsd200 => "sas-ssd-200",
            Self::Sas10k300 => "sas-10k-300",
        }
    }

    /// The model of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Which disks of a pool behave like it.
    #[must_use]
    pub const fn media(self) -> MediaType {
        match self {
            Self::SasSsd200 => MediaType::Ssd,
            Self::Sas10k300 => MediaType::Hdd,
        }
    }

    /// A disk of `bytes`: a rotating one's heads have all of them under their stroke.
    fn model(self, bytes: u64) -> DeviceModel {
        match self {
            Self::SasSsd200 => DeviceModel::Ssd(SsdModel::sas_ssd_200()),
            Self::Sas10k300 => {
                DeviceModel::Hdd(HddModel::sas_10k_300().with_capacity(bytes.max(1)))
            }
        }
    }
}

/// A disk that answers as soon as what is beneath it does.
fn at_once() -> DeviceModel {
    DeviceModel::Ssd(SsdModel::new(1, vec![(4096, Nanos::ZERO, Nanos::ZERO)], u64::MAX))
}

/// A model for each of these disks of a pool, by its media.
pub(super) fn models(wanted: &[Emulated], look: &Look, disks: &[PathBuf]) -> Vec<DeviceModel> {
    let of = |path: &PathBuf| {
        let is_it = |own: &Path| own == path;
        let nth = look.disks.iter().position(|disk| disk.path.as_deref().is_some_and(is_it))?;
        let disk = look.config.disks.get(nth)?;
        let own = wanted.iter().find(|one| one.media() == disk.media)?;
        Some(own.model(disk.device_bytes))
    };
    disks.iter().map(|path| of(path).unwrap_or_else(at_once)).collect()
}
