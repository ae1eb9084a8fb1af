//! The second pass: the workload, left to right (spec 3.2). Not made with `-X`.

use super::Surroundings;
use super::cache::CacheFlags;
use super::error::{CommandLineError, visible};
use super::line::{Given, Scan};
use super::lists::{affinity, distribution};
use super::pass1::{DEFAULT_BLOCK_SIZE, First};
use super::table::Id;
use super::values::{
    At, Fault, atoi, base_and_length, event_name, mmap_flush, one_char, open_hints, positive,
    ring_batch, size, size_above_zero, throughput, trace, within, write_source,
};
use super::warnings::Warnings;
use crate::profile::error::ErrorClass;
use crate::profile::model::{
    BufferSeparation, EfficiencyOrder, GroupOrder, IoRing, ProcessorOrder, RawProfile, Target,
    TimeSpan, WriteContent,
};

/// How the second pass ends.
pub(super) enum Outcome {
    Usage,
    Version,
    Workload(Box<Workload>),
}

/// What the second pass read.
#[derive(Debug, Default)]
pub(super) struct Workload {
    profile: RawProfile,
    span: TimeSpan,
    target: Target,
    /// Bytes of a `b`.
    block: u64,
    cache: CacheFlags,
    order: Order,
    base_given: bool,
    max_offset_given: bool,
    efficiency_given: bool,
    /// The places of options that may turn out to have no effect.
    create_at: Option<usize>,
    thread_outstanding_at: Option<usize>,
    zero_buffers_at: Option<usize>,
    /// The last event of `-ye`.
    pub(super) signalled: Option<String>,
}

/// What `-r`, `-rs` and `-s` have said.
#[derive(Debug, Default)]
struct Order {
    random: bool,
    random_percent: bool,
    sequential: bool,
    /// Percent of random I/O.
    ratio: u32,
    alignment: Option<u64>,
}

/// Reads the options of the second pass, up to one that ends the program.
pub(super) fn read(
    scan: &Scan<'_>,
    first: &First<'_>,
    surroundings: &mut dyn Surroundings,
    warnings: &mut Warnings,
) -> Result<Outcome, CommandLineError> {
    let block = first.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
    let mut workload = Workload { block: block.into(), ..Workload::default() };
    workload.target.block_size = block;
    for given in &scan.options {
        match given.id {
            Id::Help => return Ok(Outcome::Usage),
            Id::Version => return Ok(Outcome::Version),
            Id::SignalStart | Id::SignalFinish | Id::WaitStart | Id::StopEvent => {
                workload.event(given, surroundings)?;
            }
            Id::SignalEvent => {
                let name = event_name(given.value).map_err(|fault| given.error(&fault))?;
                surroundings
                    .signal_event(name)
                    .map_err(|error| event_error(given, name, &error))?;
                workload.signalled = Some(name.to_owned());
            }
            id if id.is_plumbs() => {}
            _ => workload.option(given, warnings).map_err(|fault| given.error(&fault))?,
        }
    }
    Ok(Outcome::Workload(Box::new(workload)))
}

/// Events that cannot be created or found end the program with exit code 1 (spec 3.6).
fn event_error(given: &Given<'_>, name: &str, error: &std::io::Error) -> CommandLineError {
    let name = visible(name);
    let (what, help) = match given.id {
        Id::SignalEvent => (
            format!(": event '{name}' cannot be signalled: {error}"),
            "start the run that waits for it (-yr, -yp) first, and use its name",
        ),
        _ => (
            format!(": event '{name}' cannot be created: {error}"),
            match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    "choose another name, or remove what is in its place"
                }
                _ => {
                    "events are files in /dev/shm: choose another name, remove what is in its place, or have that \
                     folder made writable"
                }
            },
        ),
    };
    let mut error = given.error(&Fault::value(what, help).of(ErrorClass::Sync));
    error.exit_code = 1;
    error
}

impl Workload {
    /// The profile, with every target of the line.
    pub(super) fn into_profile(mut self, first: &First<'_>, targets: &[String]) -> RawProfile {
        self.cache.set(&mut self.target);
        self.target.random_ratio = self.order.ratio;
        self.target.alignment = self.order.alignment.unwrap_or(self.block);
        if self.zero_buffers_at.is_some() && self.target.write_content == WriteContent::Sequential {
            self.target.write_content = WriteContent::Zero;
        }
        let target = |path: &String| Target { path: path.clone(), ..self.target.clone() };
        self.span.targets = targets.iter().map(target).collect();
        self.span.buffer_separation = first.buffer_separation;
        self.profile.time_spans = vec![self.span];
        first.override_profile(&mut self.profile);
        self.profile
    }

    /// Warns of what was accepted but does nothing.
    pub(super) fn warn(&self, first: &First<'_>, targets: &[String], warnings: &mut Warnings) {
        let device = targets.iter().find(|path| is_device_number(path));
        if let (Some(at), Some(device)) = (self.create_at, device) {
            let device = visible(device);
            warnings
                .add(at, format!("-c creates no drive or partition: '{device}' stays as it is"));
        }
        if let Some(at) = self.thread_outstanding_at.filter(|_| self.span.thread_count == 0) {
            warnings.add(at, "-O has no effect without -F");
        }
        let shared = matches!(self.target.write_content, WriteContent::Random { .. });
        if let Some(at) = self.zero_buffers_at.filter(|_| shared) {
            warnings.add(at, "-Z has no effect beside -Z<size>");
        }
        if self.target.use_large_pages
            && first.buffer_separation == Some(BufferSeparation::PdeCacheLine)
        {
            let at = first.buffer_separation_at.unwrap_or_default();
            warnings.add(at, "-l takes precedence over -bsp for the I/O buffers");
        }
    }

    /// One option. Each of these functions hands on what it does not know.
    fn option(&mut self, given: &Given<'_>, warnings: &mut Warnings) -> Result<(), Fault> {
        let value = given.value;
        match given.id {
            Id::AffinityOrder => self.affinity_order(value),
            Id::BaseOffset => self.base_offset(value),
            Id::MaxOffset => self.max_offset(value),
            Id::DisableAllCache => {
                warnings.leftover(given, 0);
                self.cache.disable_all(given)
            }
            Id::Cache => self.cache.apply(given),
            Id::Random => self.random(value),
            Id::RandomPercent => {
                let percent = self.random_percent(value)?;
                self.order.ratio = checked(given, percent, warnings);
                Ok(())
            }
            Id::Sequential | Id::Interlocked => self.sequential(given),
            Id::ZeroBuffers => {
                self.zero_buffers_at = Some(given.index);
                Ok(())
            }
            Id::Trace => {
                let used = trace(value, self.profile.etw.get_or_insert_default())?;
                warnings.leftover(given, used);
                Ok(())
            }
            Id::Progress => {
                let dots = u32::try_from(int(given, warnings)).ok().filter(|&dots| dots > 0);
                self.profile.progress = dots.unwrap_or(65536);
                Ok(())
            }
            Id::UnknownEvent => {
                let help = "write -ys, -yf, -yr, -yp or -ye, and the name of an event";
                Err(Fault::option(": unknown kind of event", help))
            }
            Id::Unknown => Err(unknown(given)),
            _ => self.option_of_span(given, warnings),
        }
    }

    fn option_of_span(&mut self, given: &Given<'_>, warnings: &mut Warnings) -> Result<(), Fault> {
        let span = &mut self.span;
        let value = given.value;
        match given.id {
            Id::Affinity => span.affinity.extend(affinity(value)?),
            Id::IopsInterval => {
                span.calculate_iops_std_dev = true;
                if let Ok(interval @ 1..) = u32::try_from(int(given, warnings)) {
                    span.io_bucket_duration = interval;
                }
            }
            Id::Latency => span.measure_latency = switch(given, warnings),
            Id::NoAffinity => span.disable_affinity = switch(given, warnings),
            Id::CompletionRoutines => span.completion_routines = switch(given, warnings),
            Id::CompletionDepth => {
                span.completion_depth = Some(checked(given, within(value, 1..17)?, warnings));
            }
            Id::IoRing | Id::IoRingUnregistered => {
                let ring = span.io_ring.unwrap_or_default();
                let batch = ring_batch(value)?.unwrap_or(ring.batch);
                let registered_buffers = given.id == Id::IoRing;
                span.io_ring = Some(IoRing { batch, registered_buffers });
            }
            Id::RandomWriteData => span.random_write_data = true,
            _ => self.option_of_target(given, warnings)?,
        }
        Ok(())
    }

    fn option_of_target(
        &mut self,
        given: &Given<'_>,
        warnings: &mut Warnings,
    ) -> Result<(), Fault> {
        let Self { target, block, .. } = self;
        let value = given.value;
        match given.id {
            Id::Create => {
                target.file_size = Some(size(value, *block)?);
                self.create_at = Some(given.index);
            }
            Id::OpenHint => {
                let (sequential, random, temporary) = open_hints(value)?;
                target.sequential_scan |= sequential;
                target.random_access |= random;
                target.temporary_file |= temporary;
            }
            Id::Throughput => {
                target.throughput = throughput(value)?;
                let unit = usize::from(value.ends_with('i'));
                warnings.ignored(given, atoi(value).end..value.len() - unit);
            }
            Id::IoPriority => target.io_priority = checked(given, within(value, 1..4)?, warnings),
            Id::LargePages => target.use_large_pages = switch(given, warnings),
            Id::ParallelAsync => target.parallel_async = switch(given, warnings),
            Id::MmapFlush => target.flush = Some(mmap_flush(value)?),
            Id::Distribution => target.distribution = Some(distribution(value, *block)?),
            Id::ThreadStride => {
                target.thread_stride = size_above_zero(value, *block, "the thread stride")?;
            }
            Id::WritePercent => {
                if value.is_empty() {
                    return Err(Fault::value(" needs a percentage", "write {}0 for reads only"));
                }
                target.write_ratio = checked(given, within(value, 0..101)?, warnings);
            }
            Id::WriteSource => target.write_content = write_source(value, *block)?,
            _ => self.count(given, warnings)?,
        }
        Ok(())
    }

    /// Options with a number above 0; those of the first pass are done.
    fn count(&mut self, given: &Given<'_>, warnings: &mut Warnings) -> Result<(), Fault> {
        let Self { span, target, .. } = self;
        let field = match given.id {
            Id::PoolThreads => &mut span.thread_count,
            Id::BurstSize => &mut target.burst_size,
            Id::ThinkTime => &mut target.think_time,
            Id::Outstanding => &mut target.request_count,
            Id::ThreadOutstanding => {
                self.thread_outstanding_at = Some(given.index);
                &mut span.request_count
            }
            Id::Threads => &mut target.threads_per_file,
            _ => return Ok(()),
        };
        *field = checked(given, positive(given.value)?, warnings);
        Ok(())
    }

    /// `-B`: once, and with a length only if the maximum offset is still open.
    fn base_offset(&mut self, value: &str) -> Result<(), Fault> {
        if self.base_given {
            let help = "give one base offset: it holds for every target";
            return Err(Fault::option(" is given twice", help).of(ErrorClass::Duplicate));
        }
        let (base, length) = base_and_length(value, self.block)?;
        self.base_given = true;
        self.target.base_file_offset = base;
        if let Some(length) = length {
            self.set_max_offset(base + length)?;
        }
        Ok(())
    }

    /// `-f<size>`.
    fn max_offset(&mut self, value: &str) -> Result<(), Fault> {
        if value.is_empty() {
            let help = "write {}1G for a maximum offset, {}r, {}s or {}t for a hint";
            return Err(Fault::value(" needs a value", help));
        }
        let max = size(value, self.block)?;
        self.set_max_offset(max)
    }

    fn set_max_offset(&mut self, max: u64) -> Result<(), Fault> {
        if self.max_offset_given {
            let what = ": the maximum offset is given twice";
            let help = "-f and a length of -B both set it: leave one of them out";
            return Err(Fault::value(what, help).of(ErrorClass::Duplicate));
        }
        self.max_offset_given = true;
        self.target.max_file_size = max;
        Ok(())
    }

    /// `-r[<size>]`.
    fn random(&mut self, value: &str) -> Result<(), Fault> {
        let order = &mut self.order;
        let alignment = match value {
            "" => None,
            _ => Some(size_above_zero(value, self.block, "the alignment")?),
        };
        if order.sequential {
            return Err(sequential_and_random("-s"));
        }
        if order.random {
            // As in DISKSPD, which takes the alignment of a mixed workload for one of -s.
            let class = match order.ratio {
                100 => ErrorClass::Duplicate,
                _ => ErrorClass::SeqRandConflict,
            };
            return Err(Fault::option(" is given twice", "give one alignment").of(class));
        }
        order.random = true;
        order.alignment = alignment;
        if !order.random_percent {
            order.ratio = 100;
        }
        Ok(())
    }

    /// `-rs<pct>`.
    fn random_percent(&mut self, value: &str) -> Result<u32, Fault> {
        let order = &mut self.order;
        if value.is_empty() {
            return Err(Fault::value(" needs a percentage", "write 1..100, as in {}50"));
        }
        let percent = within(value, 1..101)?;
        if order.sequential {
            let what = " does not go with -s before it";
            let help =
                "give the stride of the sequential part with -r, which is also the alignment";
            return Err(Fault::option(what, help).of(ErrorClass::SeqRandConflict));
        }
        if order.random_percent && order.ratio != 100 {
            let help = "give one percentage";
            return Err(Fault::option(" is given twice", help).of(ErrorClass::Duplicate));
        }
        order.random_percent = true;
        Ok(percent)
    }

    /// `-s[i][<size>]`. A stride of 0 leaves no trace.
    fn sequential(&mut self, given: &Given<'_>) -> Result<(), Fault> {
        let order = &mut self.order;
        let stride = match given.value {
            "" => None,
            value => Some(size(value, self.block)?),
        };
        if order.random || order.random_percent {
            let random = if order.random { "-r" } else { "-rs" };
            return Err(sequential_and_random(random));
        }
        if order.sequential {
            let help = "give one stride";
            return Err(Fault::option(" is given twice", help).of(ErrorClass::Duplicate));
        }
        self.target.interlocked |= given.id == Id::Interlocked;
        order.sequential = stride != Some(0);
        order.alignment = stride.filter(|&stride| stride > 0);
        Ok(())
    }

    /// `-a[cspPeE]+` and `-aup` (spec 15.5).
    fn affinity_order(&mut self, letters: &str) -> Result<(), Fault> {
        let order = self.span.affinity_traversal.get_or_insert_default();
        let orders = "-ap, -aP, -ae, -aE and -aup exclude each other: give one of them, once";
        if let Some(rest) = letters.strip_prefix('u') {
            if rest != "p" {
                let help = "write -aup for no order between fast and slow processors";
                return Err(Fault::value(": only -aup is known after -au", help));
            }
            if self.efficiency_given {
                return Err(Fault::value(": there is an efficiency order already", orders));
            }
            self.efficiency_given = true;
            order.efficiency = EfficiencyOrder::Unordered;
            return Ok(());
        }
        for (start, letter) in letters.char_indices() {
            let efficiency = match letter {
                'c' => {
                    order.order = ProcessorOrder::CoreAware;
                    continue;
                }
                's' => {
                    order.group = GroupOrder::Span;
                    continue;
                }
                'p' => EfficiencyOrder::PFirst,
                'P' => EfficiencyOrder::FillPFirst,
                'e' => EfficiencyOrder::EFirst,
                'E' => EfficiencyOrder::FillEFirst,
                _ => {
                    let what = ": unexpected character among the letters of the order";
                    let help = "the letters are c, s and one of p, P, e, E; a list of processors is an \
                                option of its own, as in -ac -a0-3";
                    return Err(Fault::value(what, help).bytes(one_char(letters, start)));
                }
            };
            if self.efficiency_given {
                let fault = Fault::value(": there is an efficiency order already", orders);
                return Err(fault.bytes(one_char(letters, start)));
            }
            self.efficiency_given = true;
            order.efficiency = efficiency;
        }
        Ok(())
    }

    /// `-ys -yf -yr -yp`: the event is there from now on.
    fn event(
        &mut self,
        given: &Given<'_>,
        surroundings: &mut dyn Surroundings,
    ) -> Result<(), CommandLineError> {
        let name = event_name(given.value).map_err(|fault| given.error(&fault))?;
        surroundings.create_event(name).map_err(|error| event_error(given, name, &error))?;
        let events = &mut self.profile.synchronization;
        let field = match given.id {
            Id::SignalStart => &mut events.started_event,
            Id::SignalFinish => &mut events.finished_event,
            Id::WaitStart => &mut events.start_wait_event,
            _ => &mut events.stop_event,
        };
        *field = Some(name.to_owned());
        Ok(())
    }
}

/// A number by the rules of `atoi`; a warning tells of characters that are left over.
fn int(given: &Given<'_>, warnings: &mut Warnings) -> i32 {
    let int = atoi(given.value);
    warnings.leftover(given, int.end);
    int.value
}

/// A number that was found good; a warning tells of characters that are left over.
fn checked(given: &Given<'_>, number: u32, warnings: &mut Warnings) -> u32 {
    int(given, warnings);
    number
}

/// An option whose value is ignored.
fn switch(given: &Given<'_>, warnings: &mut Warnings) -> bool {
    warnings.leftover(given, 0);
    true
}

fn sequential_and_random(earlier: &str) -> Fault {
    let what = format!(" does not go with {earlier} before it");
    let help = "leave one of -s and -r out, or mix both with -rs";
    Fault::option(what, help).of(ErrorClass::SeqRandConflict)
}

fn unknown(given: &Given<'_>) -> Fault {
    let letter = given.name[1..].chars().next();
    let swapped = letter.and_then(|c| {
        let other = if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        let line = [format!("-{other}")];
        let row = super::short::read(&line, 0, 1).id.row()?;
        Some(format!("letters are case sensitive; -{other} is --{}", row.long))
    });
    let (what, help) = match letter {
        None => (" is no option", "a file of that name is given as ./-".to_owned()),
        Some(_) => {
            (": unknown option", swapped.unwrap_or_else(|| "--help lists all options".to_owned()))
        }
    };
    Fault { at: At::Option, ..Fault::option(what, help) }
}

/// Whether a target is named as a drive or partition is in DISKSPD (spec 3.9).
fn is_device_number(path: &str) -> bool {
    let drive = path.strip_prefix('#').is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    drive || matches!(path.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
}
