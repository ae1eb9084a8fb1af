//! What is known of the devices behind a target: what the reading rules hold figures against (method, section 8).

use serde_json::Value;

use super::Setting;
use crate::reading::{Cache, Completion, Medium};

/// Devices behind a target, as far as the environment record and the user tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Behind {
    /// What they are made of; `None` where they are of both kinds.
    pub(crate) medium: Option<Medium>,
    /// Bytes per second that their links carry together; `None` where any of them is not told.
    pub(crate) link_bytes_per_s: Option<f64>,
    /// Whether the kernel takes any of them to have a cache that holds completed writes.
    pub(crate) writes_back: bool,
    /// Bytes of a cache of controller, array or device that the user knows of.
    pub(crate) cache_bytes: Option<u64>,
}

impl Behind {
    /// As the plan's environment record says; `cache_bytes` are declared.
    pub(crate) fn of(environment: Option<&Value>, cache_bytes: Option<u64>) -> Self {
        let list = |name: &str| {
            environment
                .and_then(|all| all["groups"][name].as_array())
                .map_or(&[][..], Vec::as_slice)
        };
        let devices = list("device");
        let rotating: Vec<Option<bool>> =
            devices.iter().map(|device| device["rotational"].as_bool()).collect();
        let medium = match rotating.as_slice() {
            [] => None,
            all if all.iter().all(|rotates| *rotates == Some(true)) => Some(Medium::Disk),
            all if all.iter().all(|rotates| *rotates == Some(false)) => Some(Medium::Flash),
            _ => None,
        };
        let links = devices
            .iter()
            .map(|device| link(device["link_speed"].as_str()?, device["link_width"].as_str()?));
        let links = links.sum::<Option<f64>>().filter(|rate| *rate > 0.0);
        let writes_back = list("queue").iter().any(|queue| queue["write_cache"] == "write back");
        Self { medium, link_bytes_per_s: links, writes_back, cache_bytes }
    }

    /// What a completed write means, write-through or not; `None` where the devices are not known to hold it back.
    pub(crate) fn completion(&self, is_through: bool) -> Option<Completion> {
        self.writes_back.then_some(match is_through {
            true => Completion::Durable,
            false => Completion::Volatile,
        })
    }

    /// The files of a setting against what may serve them (R12).
    pub(super) fn cache(&self, setting: &Setting) -> Cache {
        let files = setting.file_bytes.map(|bytes| bytes as f64 * f64::from(setting.files));
        Cache {
            file_bytes: files,
            page_cache_bytes: None,
            device_cache_bytes: self.cache_bytes.map(|bytes| bytes as f64),
        }
    }
}

/// Bytes per second of a PCI Express link such as `8.0 GT/s PCIe` with `4` lanes: transfers are bits, of which 8 of
/// 10 are data up to 5 GT/s and 128 of 130 above [PCI Express Base Specification].
fn link(speed: &str, width: &str) -> Option<f64> {
    let transfers: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let lanes: f64 = width.trim_start_matches('x').parse().ok()?;
    let share = if transfers <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    Some(transfers * 1e9 * share / 8.0 * lanes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_and_media() {
        assert_eq!(link("2.5 GT/s PCIe", "1"), Some(250e6));
        let third = link("8.0 GT/s PCIe", "4").expect("a rate");
        assert!((third / 3.938e9 - 1.0).abs() < 1e-3, "{third}");
        assert_eq!(link("Unknown", "4"), None);

        let device = |rotational: Option<bool>, speed: Option<&str>| json!({ "rotational": rotational, "link_speed": speed, "link_width": "4" });
        let behind = |devices: &[Value], cache: &str| {
            let record =
                json!({ "groups": { "device": devices, "queue": [{ "write_cache": cache }] } });
            Behind::of(Some(&record), None)
        };
        let flash = device(Some(false), Some("8.0 GT/s PCIe"));
        let two = behind(&[flash.clone(), flash.clone()], "write back");
        assert_eq!((two.medium, two.link_bytes_per_s), (Some(Medium::Flash), Some(2.0 * third)));
        let mixed = behind(&[flash, device(Some(true), None)], "write through");
        assert_eq!((mixed.medium, mixed.link_bytes_per_s), (None, None));
        assert_eq!(behind(&[device(Some(true), None)], "").medium, Some(Medium::Disk));
        assert_eq!(Behind::of(None, Some(7)), Behind { cache_bytes: Some(7), ..Behind::default() });

        assert_eq!(two.completion(true), Some(Completion::Durable));
        assert_eq!(two.completion(false), Some(Completion::Volatile));
        assert_eq!(mixed.completion(false), None);
        let setting = Setting { files: 2, file_bytes: Some(5), ..Setting::default() };
        assert_eq!(two.cache(&setting).file_bytes, Some(10.0));
    }
}
