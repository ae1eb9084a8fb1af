//! The tools that are compared: their commands, and how many I/Os they say they did.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::cpu;
use super::target::{Kind, Target};
use crate::command;

/// What is read, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) kind: Kind,
    pub(super) path: &'a Path,
    pub(super) depth: u32,
    pub(super) seconds: u32,
}

impl<'a> Setting<'a> {
    pub(super) fn new(target: &'a Target, depth: u32, seconds: u32) -> Self {
        Self { kind: target.kind, path: &target.path, depth, seconds }
    }

    /// The same batch for every tool.
    pub(super) fn batch(&self) -> u32 {
        (self.depth / 4).clamp(1, 32)
    }
}

/// A run that got less of the processor says nothing: twice what the reading can be wrong by.
const LEAST: Duration = Duration::from_millis(40);

/// One run of a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// CPU time of the whole process, start-up taken off.
    pub(super) cpu_ns_per_io: f64,
    pub(super) iops: f64,
}

impl Sample {
    fn new(cpu: Duration, ios: f64, seconds: f64) -> Result<Self, String> {
        if ios <= 0.0 || seconds <= 0.0 {
            return Err(format!("{ios} I/Os in {seconds} s"));
        }
        Ok(Self { cpu_ns_per_io: cpu.as_secs_f64() * 1e9 / ios, iops: ios / seconds })
    }
}

/// A row of the tables.
pub(super) struct Tool {
    pub(super) name: &'static str,
    program: PathBuf,
    family: Family,
    /// CPU time of a run that does next to no I/O.
    start: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// `bound`: to a processor each, as DISKSPD binds its threads; the peers' go where the scheduler puts them.
    Plumb {
        latencies: bool,
        same_batch: bool,
        bound: bool,
    },
    Fio {
        tuned: bool,
        latencies: bool,
    },
    Tio {
        latencies: bool,
    },
}

/// Where the programs are; `None` leaves a family out.
pub(super) struct Programs {
    pub(super) plumb: PathBuf,
    pub(super) previous: Option<PathBuf>,
    pub(super) fio: Option<PathBuf>,
    pub(super) tio: Option<PathBuf>,
    /// See [`looks_up`].
    pub(super) tio_looks_up: bool,
}

impl Programs {
    /// The rows for a target, ours first.
    pub(super) fn tools(&self, kind: Kind) -> Vec<Tool> {
        let tool = |name, program: &Path, family| Tool {
            name,
            program: program.into(),
            family,
            start: None,
        };
        let plumb = |latencies, same_batch| Family::Plumb { latencies, same_batch, bound: true };
        let mut tools = vec![
            tool("plumb", &self.plumb, plumb(true, true)),
            tool("plumb, own batch", &self.plumb, plumb(true, false)),
            tool("plumb, no latencies", &self.plumb, plumb(false, true)),
        ];
        if kind.is_direct() {
            // A device's interrupt may come to another processor than the first, where DISKSPD's first thread is.
            let family = Family::Plumb { latencies: true, same_batch: true, bound: false };
            tools.push(tool("plumb -n", &self.plumb, family));
        }
        if let Some(previous) = &self.previous {
            tools.push(tool("plumb, previous", previous, plumb(true, true)));
        }
        // fio's io_uring engine has no empty operation, t/io_uring no engine without a kernel.
        if let Some(fio) = self.fio.as_ref().filter(|_| !kind.is_nop()) {
            let family = |tuned, latencies| Family::Fio { tuned, latencies };
            tools.push(tool("fio", fio, family(false, true)));
            tools.push(tool("fio tuned", fio, family(true, true)));
            tools.push(tool("fio tuned, no latencies", fio, family(true, false)));
        }
        let tio = self.tio.as_ref().filter(|_| match kind {
            Kind::Null => false,
            // Each against its like.
            Kind::Nop => !self.tio_looks_up,
            Kind::NopFile => self.tio_looks_up,
            _ => true,
        });
        if let Some(tio) = tio {
            tools.push(tool("t/io_uring", tio, Family::Tio { latencies: false }));
            tools.push(tool("t/io_uring -t1", tio, Family::Tio { latencies: true }));
        }
        tools
    }
}

impl Tool {
    /// Runs it once.
    ///
    /// # Errors
    /// When it cannot be run or does not say what it did.
    pub(super) fn sample(&mut self, setting: Setting<'_>) -> Result<Sample, String> {
        if let Family::Tio { .. } = self.family {
            return self.sample_lines(setting);
        }
        let start = match self.start {
            Some(start) => start,
            None => *self.start.insert(self.start_up(setting)?),
        };
        let (output, spent) = cpu::spent(&mut self.command(setting))?;
        let key = if self.is_plumb() { "io_count" } else { "total_ios" };
        let ios = number(&output, key).ok_or(format!("its output has no `{key}`"))?;
        let net = spent.saturating_sub(start);
        if net < LEAST {
            let (net, start) = (net.as_millis(), start.as_millis());
            return Err(format!(
                "{net} ms of CPU time beside {start} ms of start-up: too few to tell"
            ));
        }
        Sample::new(net, ios, f64::from(setting.seconds))
    }

    pub(super) fn is_fio(&self) -> bool {
        matches!(self.family, Family::Fio { .. })
    }

    fn is_plumb(&self) -> bool {
        matches!(self.family, Family::Plumb { .. })
    }

    /// Mean of five: read once before and once after, so that the unit of the reading matters less.
    fn start_up(&self, setting: Setting<'_>) -> Result<Duration, String> {
        const RUNS: u32 = 5;
        let before = cpu::of_children()?;
        for _ in 0..RUNS {
            let mut idle = self.idle_command(setting);
            idle.stdout(Stdio::null()).stderr(Stdio::null());
            let status = idle.status().map_err(|error| format!("cannot be run: {error}"))?;
            if !status.success() {
                return Err(format!("its start-up run: {status}"));
            }
        }
        Ok(cpu::of_children()?.saturating_sub(before) / RUNS)
    }

    /// The measured run.
    pub(super) fn command(&self, setting: Setting<'_>) -> Command {
        let mut command = match self.family {
            Family::Tio { .. } => self.tio_command(setting),
            Family::Plumb { .. } => self.plumb_command(setting, setting.seconds),
            Family::Fio { .. } => {
                let mut command = self.fio_command(setting);
                let runtime = format!("--runtime={}", setting.seconds);
                command.args(["--time_based=1", &runtime, "--io_size=900g"]);
                command
            }
        };
        if self.is_plumb() {
            command.arg(setting.path);
        }
        command
    }

    /// The same with next to no I/O.
    fn idle_command(&self, setting: Setting<'_>) -> Command {
        if self.is_plumb() {
            // A second without I/O would count threads that wait as start-up.
            let mut command = self.plumb_command(setting, 0);
            command.arg(setting.path);
            command
        } else {
            let mut command = self.fio_command(setting);
            command.arg("--number_ios=1");
            command
        }
    }

    fn plumb_command(&self, setting: Setting<'_>, seconds: u32) -> Command {
        let Family::Plumb { latencies, same_batch, bound } = self.family else {
            unreachable!("asked of our own rows only")
        };
        let mut command = Command::new(&self.program);
        let depth = format!("-o{}", setting.depth);
        let duration = format!("-d{seconds}");
        command.args(["run", "-b4096", &depth, "-t1", "-r", "-W0", &duration]);
        if latencies {
            command.arg("-L");
        }
        if !bound {
            command.arg("-n");
        }
        if same_batch {
            command.args(["--batch", &setting.batch().to_string()]);
        }
        match setting.kind {
            Kind::Null => command.args(["--engine", "null"]),
            Kind::Nop => command.args(["--engine", "nop"]),
            Kind::NopFile => command.args(["--engine", "nop-file"]),
            kind if kind.is_direct() => command.arg("-Su"),
            _ => &mut command,
        };
        command.arg("--json");
        command
    }

    fn fio_command(&self, setting: Setting<'_>) -> Command {
        let Family::Fio { tuned, latencies } = self.family else {
            unreachable!("asked of fio's rows only")
        };
        let is_null = setting.kind == Kind::Null;
        let (depth, batch) = (setting.depth, setting.batch());
        let direct = u32::from(setting.kind.is_direct());
        let mut command = Command::new(&self.program);
        command.args(["--name=j", "--rw=randread", "--bs=4096", "--invalidate=0"]);
        command.args([format!("--filename={}", setting.path.display())]);
        command.args([format!("--iodepth={depth}"), format!("--direct={direct}")]);
        if is_null {
            command.args(["--ioengine=null", "--size=1g"]);
        } else {
            command.arg("--ioengine=io_uring");
        }
        if tuned {
            command.arg("--norandommap=1");
            command.args([
                format!("--iodepth_batch_submit={batch}"),
                format!("--iodepth_batch_complete_min={batch}"),
                format!("--iodepth_batch_complete_max={depth}"),
            ]);
            if !is_null {
                command.args(["--fixedbufs=1", "--registerfiles=1", "--nonvectored=1"]);
            }
        }
        if !latencies {
            command.arg("--gtod_reduce=1");
        }
        command.arg("--output-format=json");
        command
    }

    fn tio_command(&self, setting: Setting<'_>) -> Command {
        let Family::Tio { latencies } = self.family else {
            unreachable!("asked of t/io_uring's rows only")
        };
        let (depth, batch) = (setting.depth, setting.batch());
        let direct = u32::from(setting.kind.is_direct());
        // It fills a block of output before it shows a line, unless told otherwise.
        let mut command = Command::new("stdbuf");
        command.arg("-oL").arg(&self.program);
        command.args(["-b4096".to_owned(), format!("-d{depth}"), format!("-s{batch}")]);
        command.args([format!("-c{batch}"), format!("-O{direct}"), "-p0".to_owned()]);
        command.args([format!("-r{}", setting.seconds + 3), format!("-t{}", u32::from(latencies))]);
        if setting.kind.is_nop() {
            command.arg("-N1");
        }
        command.arg(setting.path);
        command
    }

    /// It never prints a total, but a line a second: the CPU time between the first and the last wanted
    /// one, and the I/Os of the lines in between.
    fn sample_lines(&self, setting: Setting<'_>) -> Result<Sample, String> {
        let mut command = self.command(setting);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("stdbuf: {error}"))?;
        let outcome = Self::read_lines(&mut child, setting.seconds);
        // It may have ended by itself; waiting tells either way.
        let _ = child.kill();
        child.wait().map_err(|error| format!("cannot be waited for: {error}"))?;
        outcome
    }

    fn read_lines(child: &mut Child, seconds: u32) -> Result<Sample, String> {
        let output = child.stdout.take().ok_or("no output")?;
        let (mut ios, mut lines, mut first) = (0.0, 0, None);
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| error.to_string())?;
            let Some(rate) = rate(&line) else { continue };
            let now = cpu::of_threads(child.id())?;
            let Some(first) = first else {
                first = Some(now);
                continue;
            };
            ios += rate;
            lines += 1;
            if lines == seconds {
                return Sample::new(now.saturating_sub(first), ios, f64::from(lines));
            }
        }
        Err(format!("it showed {lines} seconds of {seconds}"))
    }
}

/// Whether this `t/io_uring` has the kernel look up a file and a buffer for its empty operations, as later ones do: then it opens what
/// it is given, and there is nothing of that name.
pub(super) fn looks_up(tio: &Path) -> bool {
    let mut command = Command::new(tio);
    command.args(["-N1", "-p0", "-d1", "-s1", "-c1", "-r1", "/nowhere/at/all"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| !status.success())
}

/// `IOPS=1.23M, BW=…` in I/Os.
fn rate(line: &str) -> Option<f64> {
    let (rate, _) = line.strip_prefix("IOPS=")?.split_once(',')?;
    let digits = rate.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &rate[digits.len()..] {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

/// The number after the first `"key":`.
pub(super) fn number(json: &str, key: &str) -> Option<f64> {
    let (_, rest) = json.split_once(&format!("\"{key}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// A program that was named, or that lies on `PATH`.
pub(super) fn locate(named: Option<&str>, program: &str) -> Result<PathBuf, String> {
    match named {
        Some(path) if Path::new(path).is_file() => Ok(path.into()),
        Some(path) => Err(format!("there is no file {path}")),
        None => command::find(program).ok_or(format!("{program} is not installed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: usize, kind: Kind, depth: u32, want: &str) {
        let programs = Programs {
            plumb: "plumb".into(),
            previous: None,
            fio: Some("fio".into()),
            tio: Some("tio".into()),
            tio_looks_up: kind == Kind::NopFile,
        };
        let setting = Setting { kind, path: Path::new("F"), depth, seconds: 2 };
        let command = programs.tools(kind)[program].command(setting);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        assert_eq!(words.join(" "), want);
    }

    #[test]
    fn commands_are_those_of_the_method() {
        check(0, Kind::Cached, 32, "plumb run -b4096 -o32 -t1 -r -W0 -d2 -L --batch 8 --json F");
        check(
            3,
            Kind::Loop,
            32,
            "plumb run -b4096 -o32 -t1 -r -W0 -d2 -L -n --batch 8 -Su --json F",
        );
        check(1, Kind::Ext4, 32, "plumb run -b4096 -o32 -t1 -r -W0 -d2 -L -Su --json F");
        check(
            2,
            Kind::Null,
            1,
            "plumb run -b4096 -o1 -t1 -r -W0 -d2 --batch 1 --engine null --json F",
        );
        check(
            4,
            Kind::Null,
            128,
            "fio --name=j --rw=randread --bs=4096 --invalidate=0 --filename=F --iodepth=128 \
             --direct=0 --ioengine=null --size=1g --norandommap=1 --iodepth_batch_submit=32 \
             --iodepth_batch_complete_min=32 --iodepth_batch_complete_max=128 \
             --output-format=json --time_based=1 --runtime=2 --io_size=900g",
        );
        check(3, Kind::Nop, 128, "stdbuf -oL tio -b4096 -d128 -s32 -c32 -O0 -p0 -r5 -t0 -N1 F");
        check(3, Kind::NopFile, 1, "stdbuf -oL tio -b4096 -d1 -s1 -c1 -O0 -p0 -r5 -t0 -N1 F");
        check(
            0,
            Kind::NopFile,
            1,
            "plumb run -b4096 -o1 -t1 -r -W0 -d2 -L --batch 1 --engine nop-file --json F",
        );
    }

    #[test]
    fn counts_are_read_as_the_tools_print_them() {
        assert_eq!(number("{\"a\": 1,\n \"io_count\": 476896,", "io_count"), Some(476_896.0));
        assert_eq!(number("\"total_ios\" : 12\n", "total_ios"), Some(12.0));
        assert_eq!(number("{}", "total_ios"), None);
        assert_eq!(rate("IOPS=327.99K, BW=1281MiB/s, IOS/call=8/8"), Some(327_990.0));
        assert_eq!(rate("IOPS=812, BW=3MiB/s, IOS/call=8/8"), Some(812.0));
        assert_eq!(rate("Maximum IOPS=675.90K"), None);
    }
}
