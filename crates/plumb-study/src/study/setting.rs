//! One combination of parameters, and the command line that means it.

use std::collections::BTreeMap;

use plumb_load::profile::model::{CacheMode, TimeSpan, WriteContent};
use serde::{Deserialize, Serialize};

use super::best::Candidate;
use crate::split::Pair;

/// Where the next I/O goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// `-r`.
    Random,
    /// `-s`: only with one thread per file, or the threads overlap.
    Sequential,
    /// `-si`: the threads of a file share one position.
    Interlocked,
    /// `-s -T`: each thread has a stretch of its own.
    Apart,
}

impl Access {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Random, Self::Sequential, Self::Interlocked, Self::Apart];

    /// The word in plans and on command lines.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sequential => "sequential",
            Self::Interlocked => "interlocked",
            Self::Apart => "apart",
        }
    }

    /// The kind of a word, or of DISKSPD's option for it.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        match word {
            "r" => Some(Self::Random),
            "s" => Some(Self::Sequential),
            "si" => Some(Self::Interlocked),
            _ => Self::ALL.into_iter().find(|access| access.keyword() == word),
        }
    }
}

/// One combination of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// F: target files.
    pub files: u32,
    /// Bytes of each file; `None` leaves an existing file or device as it is.
    pub file_bytes: Option<u64>,
    /// t: threads per file.
    pub threads: u32,
    /// o: outstanding I/Os per thread.
    pub outstanding: u32,
    /// b: bytes per I/O.
    pub block_bytes: u64,
    /// w: percent of writes, 0…100.
    pub write_percent: u32,
    /// Where the next I/O goes.
    pub access: Access,
    /// What `-S` gets: `h`, `u`, `w`, `b`, …
    pub cache: String,
    /// I/Os per second in all, in an open loop; `None` keeps the queue full.
    pub rate: Option<u64>,
    /// Whether the latency of each I/O is measured (`-L`).
    pub latency: bool,
    /// Seconds before the measurement.
    pub warm_up_s: u32,
    /// Seconds of measurement, at most where it may end early.
    pub measured_s: u32,
    /// Seconds after it.
    pub cool_down_s: u32,
    /// Bytes of the buffer of random content that writes are taken from; 0 writes a pattern that compresses.
    pub write_source_bytes: u64,
    /// More options of `plumb run`, by long name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl Default for Setting {
    /// The published test: 8 KiB, random, 30 % writes, eight threads with 12 each, 64 GiB, `-Sh`.
    fn default() -> Self {
        Self {
            files: 1,
            file_bytes: None,
            threads: 8,
            outstanding: 12,
            block_bytes: 8192,
            write_percent: 30,
            access: Access::Random,
            cache: "h".to_owned(),
            rate: None,
            latency: true,
            warm_up_s: 10,
            measured_s: 60,
            cool_down_s: 0,
            write_source_bytes: 1 << 20,
            options: BTreeMap::new(),
        }
    }
}

impl Setting {
    /// The setting of a time span, by its first target; what a setting cannot say (rates, distributions, lists of
    /// processors) is left out. `None` without a target.
    #[must_use]
    pub fn of_time_span(span: &TimeSpan) -> Option<Self> {
        let target = span.targets.first()?;
        let cache = match (target.cache, target.write_through) {
            (CacheMode::NoOsCache, true) => "h",
            (CacheMode::NoOsCache, false) => "u",
            (CacheMode::NoLocalCache, _) => "r",
            (CacheMode::Cached, true) => "w",
            (CacheMode::Cached, false) => "b",
        };
        let access = match (target.random_ratio, target.interlocked, target.thread_stride) {
            (0, true, _) => Access::Interlocked,
            (0, false, 0) => Access::Sequential,
            (0, false, _) => Access::Apart,
            _ => Access::Random,
        };
        let write_source_bytes = match target.write_content {
            WriteContent::Random { size, .. } => size,
            WriteContent::Sequential | WriteContent::Zero => 0,
        };
        Some(Self {
            files: plumb_units::convert::to_u32(span.targets.len()),
            file_bytes: target.file_size,
            threads: target.threads_per_file,
            outstanding: target.request_count,
            block_bytes: target.block_size.into(),
            write_percent: target.write_ratio,
            access,
            cache: cache.to_owned(),
            rate: None,
            latency: span.measure_latency,
            warm_up_s: span.warmup,
            measured_s: span.duration,
            cool_down_s: span.cooldown,
            write_source_bytes,
            options: BTreeMap::new(),
        })
    }

    /// N: all outstanding I/Os.
    #[must_use]
    pub fn total_outstanding(&self) -> u64 {
        u64::from(self.files) * u64::from(self.threads) * u64::from(self.outstanding)
    }

    /// w as a share, 0…1.
    #[must_use]
    pub fn write_share(&self) -> f64 {
        f64::from(self.write_percent) / 100.0
    }

    /// Whether I/O goes past the page cache.
    #[must_use]
    pub fn bypasses_page_cache(&self) -> bool {
        self.cache.contains(['h', 'u'])
    }

    /// Seconds of warm-up, measurement and cool-down.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        f64::from(self.warm_up_s) + f64::from(self.measured_s) + f64::from(self.cool_down_s)
    }

    /// In a few letters: `t8 o12 b8K r w30`.
    #[must_use]
    pub fn short(&self) -> String {
        let files = if self.files > 1 { format!("F{} ", self.files) } else { String::new() };
        let access = match self.access {
            Access::Random => "r",
            Access::Sequential => "s",
            Access::Interlocked => "si",
            Access::Apart => "s-T",
        };
        let mut text = format!(
            "{files}t{} o{} b{} {access} w{}",
            self.threads,
            self.outstanding,
            size(self.block_bytes),
            self.write_percent
        );
        if let Some(rate) = self.rate {
            text.push_str(&format!(" rate{rate}"));
        }
        for (name, value) in &self.options {
            text.push_str(&format!(" {name}={value}"));
        }
        text
    }

    /// It as one of several among which the best is chosen.
    pub(super) fn candidate(&self, label: String, iops: Vec<f64>, cost: u64) -> Candidate {
        let files = u64::from(self.files);
        Candidate {
            label,
            iops,
            cost,
            pair: Pair { threads: self.threads.into(), o: self.outstanding.into() },
            files: self.files,
            file_bytes: self.file_bytes.map(|bytes| bytes * files),
        }
    }

    /// The same with what it does not say, where the settings beside it differ in that.
    #[must_use]
    pub fn name_among(&self, others: &[Self]) -> String {
        let mut text = self.short();
        let differs = |is_other: &dyn Fn(&Self) -> bool| others.iter().any(is_other);
        if let Some(bytes) = self.file_bytes
            && differs(&|other| other.file_bytes != self.file_bytes)
        {
            text.push_str(&format!(" size{}", size(bytes)));
        }
        if differs(&|other| other.cache != self.cache) {
            text.push_str(&format!(" S{}", self.cache));
        }
        if differs(&|other| other.latency != self.latency) && !self.latency {
            text.push_str(" no-L");
        }
        if differs(&|other| other.write_source_bytes != self.write_source_bytes) {
            text.push_str(&format!(" Z{}", size(self.write_source_bytes)));
        }
        if differs(&|other| {
            (other.warm_up_s, other.measured_s) != (self.warm_up_s, self.measured_s)
        }) {
            text.push_str(&format!(" W{} d{}", self.warm_up_s, self.measured_s));
        }
        text
    }

    /// The arguments of `plumb run` that mean it, without targets. `seed` is that of random offsets.
    #[must_use]
    pub fn arguments(&self, seed: u64) -> Vec<String> {
        let mut words = vec![
            format!("-b{}", size(self.block_bytes)),
            format!("-t{}", self.threads),
            format!("-o{}", self.outstanding),
            format!("-w{}", self.write_percent),
            format!("-W{}", self.warm_up_s),
            format!("-d{}", self.measured_s),
            format!("-C{}", self.cool_down_s),
            format!("-S{}", self.cache),
            format!("-z{}", seed % (1 << 32)),
            "-D1000".to_owned(),
        ];
        match self.access {
            Access::Random => words.push("-r".to_owned()),
            Access::Sequential => words.push("-s".to_owned()),
            Access::Interlocked => words.push("-si".to_owned()),
            Access::Apart => {
                words.push("-s".to_owned());
                if let Some(stride) = self.stride() {
                    words.push(format!("-T{}", size(stride)));
                }
            }
        }
        if self.write_source_bytes > 0 {
            words.push(format!("-Z{}", size(self.write_source_bytes.max(self.block_bytes))));
        }
        if self.latency {
            words.push("-L".to_owned());
        }
        if let Some(rate) = self.rate {
            words.push(format!("--rate={rate}"));
        }
        for (name, value) in &self.options {
            words.push(if value.is_empty() {
                format!("--{name}")
            } else {
                format!("--{name}={value}")
            });
        }
        words
    }

    /// Between the starts of threads that read apart: an equal part of the file, whole blocks.
    fn stride(&self) -> Option<u64> {
        let share = self.file_bytes? / u64::from(self.threads.max(1));
        Some((share / self.block_bytes.max(1) * self.block_bytes).max(self.block_bytes))
            .filter(|_| self.threads > 1)
    }
}

/// `8K`, `512K`, `64G`: the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let whole = |(shift, _): &&(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.iter().find(whole) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_command_line() {
        let setting = Setting { file_bytes: Some(64 << 30), ..Setting::default() };
        assert_eq!(
            setting.arguments(7).join(" "),
            "-b8K -t8 -o12 -w30 -W10 -d60 -C0 -Sh -z7 -D1000 -r -Z1M -L"
        );
        let apart = Setting {
            access: Access::Apart,
            threads: 3,
            write_percent: 0,
            block_bytes: 512 << 10,
            latency: false,
            rate: Some(500),
            options: [("engine".to_owned(), "aio".to_owned())].into(),
            file_bytes: Some(10 << 20),
            ..Setting::default()
        };
        assert_eq!(
            apart.arguments(1 << 32).join(" "),
            "-b512K -t3 -o12 -w0 -W10 -d60 -C0 -Sh -z0 -D1000 -s -T3M -Z1M --rate=500 --engine=aio"
        );
        assert_eq!(apart.short(), "t3 o12 b512K s-T w0 rate500 engine=aio");
        assert_eq!(setting.total_outstanding(), 96);
        assert_eq!(
            (size(1000), size(1 << 40), size(3 << 20)),
            ("1000".into(), "1T".into(), "3M".into())
        );
    }
}
