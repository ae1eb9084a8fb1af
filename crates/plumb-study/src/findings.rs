//! The findings table: what a setting means for each device (method, 2.9).

use serde_json::{Value, json};

use crate::identities::{amplification, mib_per_s, per_device};

/// What is behind the target, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Layout {
    /// Devices that back the tested tier.
    pub devices: Option<f64>,
    /// Copies of each datum.
    pub copies: Option<f64>,
    /// Share of writes, 0…1.
    pub write_share: Option<f64>,
}

/// A row of the findings table. What needs something unknown is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// N.
    pub outstanding: f64,
    /// I/Os per second.
    pub iops: f64,
    /// MiB per second.
    pub mib_per_s: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_ms: f64,
    /// A: device operations per client operation.
    pub amplification: f64,
    /// N·A/S.
    pub depth_per_device: Option<f64>,
    /// X·A/S.
    pub iops_per_device: Option<f64>,
    /// B·A/S.
    pub mib_per_s_per_device: Option<f64>,
    /// B/S: as the clients see it.
    pub client_mib_per_s_per_device: Option<f64>,
}

impl Layout {
    /// The row of a setting.
    #[must_use]
    pub fn finding(
        &self,
        outstanding: f64,
        iops: f64,
        latency_ms: f64,
        block_bytes: Option<f64>,
    ) -> Finding {
        let factor = amplification(self.write_share.unwrap_or(0.0), self.copies.unwrap_or(1.0));
        let share = |quantity: f64| self.devices.map(|count| per_device(quantity, factor, count));
        let mib = block_bytes.map(|block| mib_per_s(iops, block));
        Finding {
            outstanding,
            iops,
            mib_per_s: mib,
            latency_ms,
            amplification: factor,
            depth_per_device: share(outstanding),
            iops_per_device: share(iops),
            mib_per_s_per_device: mib.and_then(share),
            client_mib_per_s_per_device: mib.zip(self.devices).map(|(mib, count)| mib / count),
        }
    }
}

impl Finding {
    /// As an object; null is what is not known.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "outstanding": self.outstanding,
            "iops": self.iops,
            "mib_per_s": self.mib_per_s,
            "latency_ms": self.latency_ms,
            "amplification": self.amplification,
            "depth_per_device": self.depth_per_device,
            "iops_per_device": self.iops_per_device,
            "mib_per_s_per_device": self.mib_per_s_per_device,
            "client_mib_per_s_per_device": self.client_mib_per_s_per_device,
        })
    }
}

/// Bytes that are missing where copies are stored (2.1, capacity): 0 when all fits.
///
/// Needed are the file in `copies` and max(5 % of that, 1 GiB) beside it; `exact` leaves that margin out,
/// which is what a document's own figures are checked with.
#[must_use]
pub fn bytes_short(file_bytes: u64, copies: u64, free_bytes: u64, exact: bool) -> u64 {
    const GIB: u64 = 1 << 30;
    let stored = file_bytes.saturating_mul(copies);
    let margin = if exact { 0 } else { (stored / 20).max(GIB) };
    stored.saturating_add(margin).saturating_sub(free_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knee::{self, Options, Policy};
    use crate::table;

    #[track_caller]
    fn near(found: Option<f64>, wanted: f64, tolerance: f64) {
        let found = found.expect("it is known");
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
    }

    /// The row of the published table 5, from the rows of the sweep.
    fn chosen(csv: &str, write_share: f64) -> Finding {
        let rows = table::read(csv, None).expect("a table").rows;
        let options = Options {
            threads: Some(1.0),
            policy: Policy::Throughput,
            block_bytes: Some(524_288.0),
            ..Options::default()
        };
        let knee = knee::find(&rows, &options);
        let o = knee.marks.expect("a knee").recommended;
        let setting = knee.settings.iter().find(|setting| setting.o == o).expect("tested");
        let layout =
            Layout { devices: Some(8.0), copies: Some(2.0), write_share: Some(write_share) };
        layout.finding(o as f64, setting.iops(), setting.latency_ms, options.block_bytes)
    }

    #[test]
    fn table_5_is_rebuilt() {
        let reads = chosen(include_str!("../tests/data/sequential-reads.csv"), 0.0);
        assert_eq!((reads.outstanding, reads.latency_ms, reads.amplification), (31.0, 10.689, 1.0));
        near(reads.mib_per_s, 1449.965, 1e-6);
        near(reads.mib_per_s_per_device, 181.245, 0.001);
        near(reads.depth_per_device, 3.875, 1e-12);
        let writes = chosen(include_str!("../tests/data/sequential-writes.csv"), 1.0);
        assert_eq!(
            (writes.outstanding, writes.latency_ms, writes.amplification),
            (15.0, 20.698, 2.0)
        );
        near(writes.mib_per_s_per_device, 90.583, 0.001);
        near(writes.client_mib_per_s_per_device, 45.291, 0.001);
        near(writes.depth_per_device, 3.75, 1e-12);
    }

    #[test]
    fn depths_per_device_of_random_tests() {
        let layout = Layout { devices: Some(8.0), copies: Some(2.0), write_share: Some(0.3) };
        let finding = layout.finding(128.0, 55_232.28, 2.051, None);
        near(finding.depth_per_device, 20.8, 1e-9);
        near(finding.iops_per_device, 8975.2, 0.1);
        assert_eq!(finding.mib_per_s, None);
        assert_eq!(Layout::default().finding(1.0, 1.0, 1.0, None).depth_per_device, None);
    }

    #[test]
    fn the_published_tier_is_short_by_4_gib() {
        let file = 64 << 30;
        assert_eq!(bytes_short(file, 2, 133_143_986_176, true), 4 << 30);
        assert_eq!(bytes_short(file, 2, 133_143_986_176, false), (4 << 30) + (file / 10));
        assert_eq!(bytes_short(file, 1, 133_143_986_176, false), 0);
        assert_eq!(bytes_short(1, 1, 1 << 30, false), 1);
    }
}
