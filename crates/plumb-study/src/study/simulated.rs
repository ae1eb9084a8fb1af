//! A simulated device in virtual time: the truth that studies are scored against, and a way to try a plan
//! before it takes a day.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::perform::{Due, Perform, Performance, Performed, says_enough};
use super::random::Random;
use super::{Access, Setting};
use crate::stats::describe::mean;

/// A device: how it serves, and what disturbs it. Every key may be left out of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SimulatedDevice {
    /// Seed of its noise.
    pub seed: u64,
    /// Most random operations per second, without a limit by bytes.
    pub max_iops: f64,
    /// Most bytes per second, in MiB.
    pub max_mib_per_s: f64,
    /// Mean latency of one small I/O on the idle device, in microseconds.
    pub latency_us: f64,
    /// How sharp the corner of the service curve is: 1 is a hyperbola, 20 nearly min(N/L₀, X_max).
    pub sharpness: f64,
    /// What a write costs, a read being 1.
    pub write_cost: f64,
    /// What a sequential operation costs, a random one being 1.
    pub sequential_cost: f64,
    /// Most operations per second of one thread; 0: no limit.
    pub thread_iops: f64,
    /// Change of throughput for each doubling of the threads beyond eight, relative.
    pub per_doubling_of_threads: f64,
    /// Threads that serve best, all files together: each one more costs some throughput; 0: however many …
    pub best_threads: u32,
    /// … by this much, relative, as they get into each other's way …
    pub thread_loss: f64,
    /// … and never more than this in all.
    pub thread_loss_most: f64,
    /// Gain of throughput for each doubling of the files, relative.
    pub per_doubling_of_files: f64,
    /// Change of throughput for each doubling of the outstanding I/Os beyond twice the corner, relative.
    pub beyond: f64,
    /// A ceiling in operations per second; 0: none.
    pub cap_iops: f64,
    /// What the measurement of latency costs, relative.
    pub latency_cost: f64,
    /// SD of ln X between runs.
    pub noise: f64,
    /// SD of ln X between seconds of a run …
    pub ripple: f64,
    /// … and the correlation of neighbouring ones.
    pub ripple_correlation: f64,
    /// Change of ln X per hour.
    pub drift_per_hour: f64,
    /// Relative gain at the start of each run, until caches have filled …
    pub burst: f64,
    /// … with this time constant in seconds.
    pub burst_s: f64,
    /// A stall each so many seconds of virtual time; 0: none …
    pub stall_every_s: f64,
    /// … and how long it lasts, in seconds.
    pub stall_s: f64,
    /// One run of so many is slow for a reason of its own; 0: none …
    pub slow_run_every: u32,
    /// … by this much, relative.
    pub slow_run: f64,
    /// Copies of each written datum that its devices are seen to make; 0: nobody sees them.
    pub copies: u32,
    /// Real milliseconds that each simulated run takes, to be watched or interrupted.
    pub real_ms_per_run: u64,
}

impl Default for SimulatedDevice {
    fn default() -> Self {
        Self {
            seed: 1,
            max_iops: 60_000.0,
            max_mib_per_s: 2000.0,
            latency_us: 500.0,
            sharpness: 4.0,
            write_cost: 1.5,
            sequential_cost: 1.0,
            thread_iops: 0.0,
            per_doubling_of_threads: 0.0,
            best_threads: 0,
            thread_loss: 0.0,
            thread_loss_most: 0.9,
            per_doubling_of_files: 0.0,
            beyond: 0.0,
            cap_iops: 0.0,
            latency_cost: 0.03,
            noise: 0.003,
            ripple: 0.01,
            ripple_correlation: 0.3,
            drift_per_hour: 0.0,
            burst: 0.0,
            burst_s: 5.0,
            stall_every_s: 0.0,
            stall_s: 0.2,
            slow_run_every: 0,
            slow_run: 0.0,
            copies: 0,
            real_ms_per_run: 0,
        }
    }
}

impl SimulatedDevice {
    /// Reads its description.
    ///
    /// # Errors
    /// It is no TOML, has an unknown key, or a value that no device has; which.
    pub fn of_toml(text: &str) -> Result<Self, String> {
        let device: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, value, low, high) in [
            ("max-iops", device.max_iops, 1.0, 1e12),
            ("max-mib-per-s", device.max_mib_per_s, 0.01, 1e9),
            ("latency-us", device.latency_us, 0.001, 1e9),
            ("sharpness", device.sharpness, 0.5, 100.0),
            ("write-cost", device.write_cost, 0.01, 1000.0),
            ("sequential-cost", device.sequential_cost, 0.001, 1000.0),
            ("latency-cost", device.latency_cost, 0.0, 0.9),
            ("noise", device.noise, 0.0, 1.0),
            ("ripple", device.ripple, 0.0, 1.0),
            ("ripple-correlation", device.ripple_correlation, 0.0, 0.99),
            ("per-doubling-of-threads", device.per_doubling_of_threads, -0.9, 10.0),
            ("thread-loss", device.thread_loss, 0.0, 0.9),
            ("thread-loss-most", device.thread_loss_most, 0.0, 0.9),
            ("per-doubling-of-files", device.per_doubling_of_files, -0.9, 10.0),
            ("beyond", device.beyond, -0.9, 1.0),
            ("slow-run", device.slow_run, 0.0, 0.99),
            ("burst", device.burst, 0.0, 100.0),
            ("burst-s", device.burst_s, 0.0, 1e6),
            ("thread-iops", device.thread_iops, 0.0, 1e12),
            ("cap-iops", device.cap_iops, 0.0, 1e12),
            ("drift-per-hour", device.drift_per_hour, -100.0, 100.0),
            ("stall-every-s", device.stall_every_s, 0.0, 1e9),
            ("stall-s", device.stall_s, 0.0, 1e6),
        ] {
            if !(low..=high).contains(&value) {
                return Err(format!("{name} is {low} to {high}, not {value}"));
            }
        }
        Ok(device)
    }

    /// I/Os per second without noise, drift or stalls, and the mean latency in seconds.
    #[must_use]
    pub fn truth(&self, setting: &Setting) -> (f64, f64) {
        let outstanding = f64_of(setting.total_outstanding());
        let block = f64_of(setting.block_bytes);
        let share = setting.write_share();
        let cost = (1.0 - share) + share * self.write_cost;
        let is_random = setting.access == Access::Random;
        let cost = if is_random { cost } else { cost * self.sequential_cost };
        let bytes_per_s = self.max_mib_per_s * f64::from(1 << 20) / cost.sqrt();
        let top = (self.max_iops / cost).min(bytes_per_s / block);
        let alone_s = self.latency_us * 1e-6 * cost.sqrt() + block / bytes_per_s;
        let doublings = |count: u32, from: u32| f64::from(count.max(from)) / f64::from(from);
        let threads = setting.threads.saturating_mul(setting.files);
        let mut top = top
            * (1.0 + self.per_doubling_of_threads).powf(doublings(threads, 8).log2())
            * (1.0 + self.per_doubling_of_files).powf(doublings(setting.files, 1).log2());
        // They wait for each other, which takes time of each I/O, few or many.
        let left = self.share_left(threads);
        let alone_s = alone_s / left;
        top *= left;
        if self.thread_iops > 0.0 {
            top = top.min(self.thread_iops * f64::from(threads));
        }
        let corner = top * alone_s;
        let p = self.sharpness;
        let mut rate = top * (1.0 + (corner / outstanding).powf(p)).powf(-1.0 / p);
        if outstanding > 2.0 * corner {
            rate *= (1.0 + self.beyond).powf((outstanding / (2.0 * corner)).log2());
        }
        if self.cap_iops > 0.0 {
            rate = rate.min(self.cap_iops);
        }
        if setting.latency {
            rate *= 1.0 - self.latency_cost;
        }
        if let Some(wanted) = setting.rate.map(f64_of).filter(|wanted| *wanted < rate) {
            // As a queue with one server: the closer to the limit, the longer it gets.
            return (wanted, alone_s / (1.0 - wanted / rate).max(0.001));
        }
        (rate, outstanding / rate)
    }
}

impl SimulatedDevice {
    /// What so many threads leave of the throughput that the best number of them has.
    fn share_left(&self, threads: u32) -> f64 {
        let more = match self.best_threads {
            0 => 0,
            best => threads.saturating_sub(best),
        };
        (1.0 - self.thread_loss).powf(f64::from(more)).max(1.0 - self.thread_loss_most)
    }

    /// I/Os of a setting that are at the device on average: all of them, unless a ceiling above it or the
    /// generator's threads hold the rest.
    fn at_device(&self, setting: &Setting) -> f64 {
        let outstanding = f64_of(setting.total_outstanding());
        let (rate, latency_s) = self.truth(setting);
        if setting.rate.is_some() {
            return rate * latency_s;
        }
        let alone = Setting { files: 1, threads: 1, outstanding: 1, ..setting.clone() };
        let free = Self { cap_iops: 0.0, thread_iops: 0.0, ..self.clone() };
        if rate >= 0.999 * free.truth(setting).0 {
            return outstanding;
        }
        (rate * free.truth(&alone).1).min(outstanding)
    }
}

fn f64_of(value: u64) -> f64 {
    value as f64
}

/// A device with its clock.
#[derive(Debug, Clone)]
pub struct Simulation {
    device: SimulatedDevice,
    now_s: f64,
}

/// Seconds between two runs.
const START_UP_S: f64 = 1.0;

impl Simulation {
    /// At virtual second 0.
    #[must_use]
    pub fn new(device: SimulatedDevice) -> Self {
        Self { device, now_s: 0.0 }
    }

    /// I/Os per second of each second of a run of that number which starts at `start_s`.
    fn seconds(&self, due: Due, start_s: f64, truth: f64) -> Vec<f64> {
        let device = &self.device;
        let setting = &due.order.setting;
        let mut random = Random::new(device.seed, due.run.into());
        let mut level = truth.ln() + device.noise * random.normal();
        if device.slow_run_every > 0 && due.run.is_multiple_of(device.slow_run_every) {
            level += (1.0 - device.slow_run).ln();
        }
        let innovation = (1.0 - device.ripple_correlation.powi(2)).sqrt();
        let mut ripple = random.normal();
        let mut series = Vec::new();
        let mut latencies = Vec::new();
        for second in 0..setting.measured_s {
            let since_start = f64::from(setting.warm_up_s + second);
            let at = start_s + since_start;
            let mut ln = level + device.ripple * ripple + device.drift_per_hour * at / 3600.0;
            ln += (device.burst * (-since_start / device.burst_s.max(0.01)).exp()).ln_1p();
            let capped =
                if device.cap_iops > 0.0 { ln.exp().min(device.cap_iops) } else { ln.exp() };
            let stalled = if device.stall_every_s > 0.0 {
                let before = (at / device.stall_every_s).floor();
                let after = ((at + 1.0) / device.stall_every_s).floor();
                ((after - before) * device.stall_s).min(0.95)
            } else {
                0.0
            };
            let rate = capped * (1.0 - stalled);
            series.push(rate);
            latencies.push(1.0 / rate);
            ripple = device.ripple_correlation * ripple + innovation * random.normal();
            // Looked at each five seconds, as on a real target.
            if due.early_end && series.len().is_multiple_of(5) && says_enough(&series, &latencies) {
                break;
            }
        }
        series
    }
}

impl Perform for Simulation {
    fn resume_at(&mut self, seconds: f64) {
        self.now_s = seconds;
    }

    fn rest(&mut self, seconds: f64) {
        self.now_s += seconds;
    }

    fn perform(&mut self, due: Due) -> Performed {
        if self.device.real_ms_per_run > 0 {
            std::thread::sleep(std::time::Duration::from_millis(self.device.real_ms_per_run));
        }
        let setting = &due.order.setting;
        let started_s = self.now_s;
        let (truth, latency_s) = self.device.truth(setting);
        let series = self.seconds(due, started_s + START_UP_S, truth);
        let measured = series.len() as f64;
        self.now_s +=
            START_UP_S + f64::from(setting.warm_up_s) + measured + f64::from(setting.cool_down_s);
        let rate = mean(&series);
        let in_flight = if setting.rate.is_some() {
            truth * latency_s
        } else {
            f64_of(setting.total_outstanding())
        };
        // What is in flight at both ends keeps X·L a little below N.
        let mean_s = in_flight / rate * (1.0 - 1e-4);
        Performed {
            started_s,
            ended_s: self.now_s,
            ended: None,
            outcome: Performance::Result(Box::new(result(setting, &series, mean_s, &self.device))),
            command: Vec::new(),
            counters: None,
        }
    }
}

/// The parts of a JSON result that the study reads.
fn result(setting: &Setting, series: &[f64], mean_s: f64, device: &SimulatedDevice) -> Value {
    let rate = mean(series);
    let seconds = series.len() as f64;
    let count = plumb_units::convert::floor_u64(rate * seconds);
    let writes = plumb_units::convert::floor_u64(count as f64 * setting.write_share());
    let block = f64_of(setting.block_bytes);
    let ns = |factor: f64| mean_s * 1e9 * factor;
    // Latencies of a device that works evenly are about lognormal; a stall is what stands beyond.
    let stall_ns = if device.stall_every_s > 0.0 { device.stall_s * 1e9 } else { 0.0 };
    let share = if device.stall_every_s > 0.0 { 1.0 / device.stall_every_s } else { 0.0 };
    let tail = |factor: f64, above: f64| {
        let in_stalls = setting.total_outstanding() as f64 / rate.max(1.0) * share;
        if in_stalls > above { ns(factor).max(stall_ns) } else { ns(factor) }
    };
    let latency = setting.latency.then(|| {
        json!({
            "mean": ns(1.0),
            "p50": ns(0.92),
            "p90": ns(1.35),
            "p95": ns(1.55),
            "p99": tail(2.0, 0.01),
            "p99_9": tail(2.9, 0.001),
            "p99_99": tail(4.0, 0.0001),
            "p99_999": tail(5.3, 0.00001),
        })
    });
    // Arrivals at random: the share of time with one in flight or more.
    let in_flight = device.at_device(setting);
    let busy = -(-in_flight).exp_m1() * 100.0;
    let share = setting.write_share();
    let end_ns = |second: usize| (second as u64 + 1) * 1_000_000_000;
    let counters: Vec<Value> = series
        .iter()
        .enumerate()
        .map(|(second, iops)| {
            let (reads, writes) = (iops * (1.0 - share), iops * share);
            let rates = json!({
                "reads_per_s": reads, "writes_per_s": writes, "in_flight": in_flight, "busy_percent": busy,
            });
            let copies = f64::from(device.copies) * writes;
            let below = json!({
                "reads_per_s": reads, "writes_per_s": copies,
                "read_bytes_per_s": reads * block, "written_bytes_per_s": copies * block,
            });
            let mut devices = vec![rates];
            devices.extend((device.copies > 0).then_some(below));
            json!({ "end_ns": end_ns(second), "devices": devices })
        })
        .collect();
    let mut devices = vec![json!({ "name": "simulated" })];
    devices.extend((device.copies > 0).then(|| json!({ "name": "copies", "is_bottom": true })));
    let cells: Vec<Value> = series
        .iter()
        .enumerate()
        .map(|(second, iops)| {
            // As many are in flight in each second as on average.
            let mean = setting.latency.then(|| ns(1.0) * rate / iops);
            let total = json!({ "iops_per_s": iops, "latency_ns": { "mean": mean } });
            json!({ "end_ns": end_ns(second), "total": total })
        })
        .collect();
    let side = |count: u64| {
        json!({
            "io_count": count,
            "iops_per_s": count as f64 / seconds,
            "bytes_per_s": count as f64 / seconds * block,
            "mib_per_s": count as f64 / seconds * block / f64::from(1 << 20),
            "errors": 0,
            "latency_ns": if count > 0 { latency.clone() } else { None },
        })
    };
    let mut total = side(count);
    total["iops_per_s"] = rate.into();
    total["bytes_per_s"] = (rate * block).into();
    json!({
        "simulated": true,
        "interrupted": false,
        "time_spans": [{
            "state": "measured",
            "elapsed_ns": seconds * 1e9,
            "total": total,
            "read": side(count - writes),
            "write": side(writes),
            "cpu": { "mean": { "usage_percent": (rate / 20_000.0).min(95.0) }, "processors": [{}] },
            "intervals": { "interval_ns": 1_000_000_000_u64, "series": cells },
            "counters": { "devices": devices, "series": counters },
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Order, Purpose};

    #[test]
    fn a_result_has_what_plots_are_drawn_of() {
        let setting = Setting { measured_s: 10, write_percent: 30, ..Setting::default() };
        let order = Order {
            step: "sweep".to_owned(),
            purpose: Purpose::Measure,
            repetition: 1,
            setting: setting.clone(),
        };
        let mut simulation = Simulation::new(SimulatedDevice::default());
        let due = Due { run: 1, seed: 1, order: &order, early_end: false };
        let Performance::Result(result) = simulation.perform(due).outcome else {
            panic!("it measures")
        };
        let span = &result["time_spans"][0];
        let (mut seconds, mut in_flight) = (Vec::new(), Vec::new());
        for interval in span["intervals"]["series"].as_array().expect("a list") {
            seconds.push(interval["end_ns"].as_u64().expect("a time") / 1_000_000_000);
            let total = &interval["total"];
            let mean_s = total["latency_ns"]["mean"].as_f64().expect("a latency") / 1e9;
            in_flight.push(mean_s * total["iops_per_s"].as_f64().expect("a rate"));
        }
        assert_eq!(seconds, (1..=10).collect::<Vec<_>>());
        let all = f64_of(setting.total_outstanding());
        assert!(in_flight.iter().all(|n| (n / all - 1.0).abs() < 0.001), "{in_flight:?}");
        let counted = span["counters"]["series"].as_array().expect("a list");
        let ends = counted.iter().map(|row| row["end_ns"].as_u64().expect("a time"));
        assert!(ends.map(|end| end / 1_000_000_000).eq(1..=10));
        let bytes = |side: &str| span[side]["bytes_per_s"].as_f64().expect("a rate");
        let parts = bytes("read") + bytes("write");
        assert!(bytes("write") > 0.0 && (parts / bytes("total") - 1.0).abs() < 0.001, "{parts}");
    }
}
