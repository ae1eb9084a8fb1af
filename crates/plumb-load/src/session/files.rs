//! Files of a time span: made, opened, and guarded against overwriting what is not ours.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use miette::Diagnostic;
use plumb_io::Opener;
use plumb_io::block_stack::BlockStack;
use plumb_io::block_trace::BlockTrace;
use plumb_io::clock::Clock;
use plumb_units::Nanos;

use super::alignment;
use super::create::{self, CreateError, Creation, Fill};
use super::guard::Guard;
use super::observe::{Phase, Snapshot};
use super::span::{Session, SpanFailure};
use super::support;
use super::target::{self, NO_TARGET_SIZE, OpenTarget};
use crate::plan::{Access, PlanOptions, plan};
use crate::profile::model::{Target, TimeSpan};
use crate::result::model::Failure;
use crate::tally::interval_log::IntervalLogWriter;
use crate::trace;

/// Where a file is or will be, however it is spelled.
fn place(path: &Path) -> PathBuf {
    let parent = path.parent().map(|parent| match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    });
    let made = || Some(parent?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(made).unwrap_or_else(|| path.to_owned())
}

impl<O: Opener, C: Clock> Session<'_, O, C> {
    /// Checks what can be checked before a file is made or written: kernel events that Linux lacks.
    pub(super) fn check_trace(&mut self) -> Result<(), SpanFailure> {
        let Some(etw) = &self.profile.etw else { return Ok(()) };
        for (is_asked, text) in [
            (etw.use_paged_memory, "-ep has no effect: counters need no buffers"),
            (etw.use_perf_timer, "-eq has no effect: events are counted, not timed"),
            (etw.use_system_timer, "-es has no effect: events are counted, not timed"),
            (etw.use_cycles_counter, "-ec has no effect: events are counted, not timed"),
        ] {
            if is_asked {
                self.observer.warning(text);
            }
        }
        trace::check(etw).map_err(failed)
    }

    /// Looks at everything that the profile would write to, before anything is made or written: a
    /// refusal finds all targets as they were. What cannot be opened is reported when its turn comes.
    pub(super) fn guard_all(&mut self) -> Result<(), SpanFailure> {
        if self.options.opens_no_target {
            return Ok(());
        }
        let profile = self.profile;
        for target in profile.time_spans.iter().flat_map(|span| &span.targets) {
            if self.opener.own_target(&target.path).is_some() {
                continue;
            }
            let makes = target.file_size.is_some_and(|size| size > 0) && is_made(target);
            if !makes && !Access::of(target).writes() {
                continue;
            }
            let Ok(path) = target::resolve(&target.path) else { continue };
            let Ok(file) = target::open_to_look(&path) else { continue };
            let guarded =
                self.guard.look(file.as_fd(), &path, self.options, self.tree, self.observer);
            guarded.map_err(SpanFailure::Refused)?;
        }
        Ok(())
    }

    /// Opens and checks what a run that makes files would only meet behind them: no hour is spent, and no
    /// content given up, for a run that cannot begin. Where none is made, all is found before anything happens.
    pub(super) fn check_before_making(&mut self) -> Result<(), SpanFailure> {
        let profile = self.profile;
        let all = || profile.time_spans.iter().flat_map(|span| &span.targets);
        let wants = |target: &&Target| target.file_size.is_some_and(|size| size > 0);
        let made: BTreeSet<PathBuf> = all()
            .filter(wants)
            .filter(|target| is_made(target) && self.opener.own_target(&target.path).is_none())
            .filter_map(|target| target::resolve(&target.path).ok())
            .map(|path| place(&path))
            .collect();
        if self.options.opens_no_target || made.is_empty() {
            return Ok(());
        }
        profile.time_spans.iter().try_for_each(|span| self.check_engine(span))?;
        self.options.truth.map_or(Ok(()), BlockTrace::check).map_err(failed)?;
        for target in all().filter(|target| self.opener.own_target(&target.path).is_none()) {
            let path = target::resolve(&target.path).map_err(failed)?;
            let open = if made.contains(&place(&path)) {
                target::to_be_made(&path, self.tree)
            } else {
                target::open(target, &path, self.tree).map_err(failed)?
            };
            support::check(target, &open).map_err(failed)?;
        }
        if profile.time_spans.iter().any(|span| span.calculate_iops_std_dev) {
            super::span::scratch(IntervalLogWriter::new())?;
        }
        Ok(())
    }

    /// Whether the engine can be had for every thread of a time span.
    fn check_engine(&self, span: &TimeSpan) -> Result<(), SpanFailure> {
        let open_loop = self.options.open_loop.is_some();
        let options =
            PlanOptions { batch: self.options.batch, open_loop, ..PlanOptions::default() };
        for thread in plan(span, options).threads {
            let targets = thread.targets.iter().map(|planned| &span.targets[planned.index]);
            let files = targets.filter(|target| self.opener.own_target(&target.path).is_none());
            let mapped: Vec<bool> = files.map(|target| target.memory_mapped).collect();
            if !mapped.is_empty() {
                let mapped_only = mapped.iter().all(|is_mapped| *is_mapped);
                self.opener.check(thread.mode(), mapped_only).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Makes the files that the profile wants before its first time span.
    pub(super) fn precreate(&mut self) -> Result<(), SpanFailure> {
        if self.options.opens_no_target {
            return Ok(());
        }
        for (name, size, fill) in create::precreate_list(self.profile) {
            self.create_file(&name, size, fill, (1, self.profile.time_spans.len()))?;
            self.made.push(name);
        }
        Ok(())
    }

    /// Makes the files of a time span that are not made already, then opens every target.
    pub(super) fn open_targets(
        &mut self,
        span: &TimeSpan,
        number: (usize, usize),
    ) -> Result<Vec<OpenTarget>, SpanFailure> {
        if self.options.opens_no_target {
            let none = span.targets.iter().map(|target| OpenTarget {
                path: (&target.path).into(),
                descriptor: None,
                size: target.file_size.filter(|size| *size > 0).unwrap_or(NO_TARGET_SIZE),
                is_device: false,
                stack: BlockStack::default(),
                is_own: false,
            });
            return Ok(none.collect());
        }
        let precreated = self.profile.precreate.is_some();
        for target in &span.targets {
            let Some(size) = target.file_size.filter(|size| *size > 0) else { continue };
            if precreated && self.made.contains(&target.path) {
                continue;
            }
            self.create_file(&target.path, size, Fill::of(&target.write_content), number)?;
        }
        let mut opened = Vec::with_capacity(span.targets.len());
        for target in &span.targets {
            if let Some(size) = self.opener.own_target(&target.path) {
                opened.push(self.open_own(target, size)?);
                continue;
            }
            let path = target::resolve(&target.path).map_err(failed)?;
            let open = target::open(target, &path, self.tree).map_err(failed)?;
            if Access::of(target).writes()
                && let Some(descriptor) = &open.descriptor
            {
                let guarded = self.guard.clear(
                    descriptor.as_fd(),
                    &path,
                    self.options,
                    self.tree,
                    self.observer,
                );
                guarded.map_err(SpanFailure::Refused)?;
            }
            support::check(target, &open).map_err(failed)?;
            if self.options.poll {
                support::check_poll(target, &open, self.tree).map_err(failed)?;
            }
            if let Some(descriptor) = &open.descriptor {
                alignment::check_alignment(target, descriptor.as_fd(), &path, open.is_device)
                    .map_err(failed)?;
            }
            alignment::check_ranges(target, &open).map_err(failed)?;
            for warning in support::warnings(target, &open, self.tree) {
                self.observer.warning(&warning);
            }
            opened.push(open);
        }
        Ok(opened)
    }

    /// A target of the opener's own: nothing of it can be made, looked at or overwritten by mistake.
    fn open_own(&mut self, target: &Target, size: u64) -> Result<OpenTarget, SpanFailure> {
        let open = target::own(target, size).map_err(failed)?;
        support::check(target, &open).map_err(failed)?;
        if self.options.poll {
            support::check_poll(target, &open, self.tree).map_err(failed)?;
        }
        for warning in support::warnings(target, &open, self.tree) {
            self.observer.warning(&warning);
        }
        Ok(open)
    }

    /// Makes one file, unless the target is a device, which cannot be made.
    fn create_file(
        &mut self,
        name: &str,
        size: u64,
        fill: Fill,
        number: (usize, usize),
    ) -> Result<(), SpanFailure> {
        let path = target::resolve(name).map_err(failed)?;
        if self.opener.own_target(name).is_some() || !can_be_made(&path) {
            // Devices are warned about when they are opened (D-18); the rest fails there.
            return Ok(());
        }
        self.observer.verbose(&format!("Creating file '{name}' of size {size}."));
        let opened = create::open_for_creation(&path).map_err(failed)?;
        let file = &opened.file;
        if !opened.is_new {
            let guarded =
                self.guard.clear(file.as_fd(), &path, self.options, self.tree, self.observer);
            guarded.map_err(SpanFailure::Refused)?;
        }
        let users = self.profile.time_spans.iter().flat_map(|span| &span.targets);
        for target in users.filter(|target| target.path == name) {
            let refused = target::check_direct(target, file.as_fd(), &path);
            refused.inspect_err(|_| opened.unmake(&path)).map_err(failed)?;
        }
        create::check_space(file.as_fd(), &path, size)
            .inspect_err(|_| opened.unmake(&path))
            .map_err(failed)?;
        self.guard.making(file.as_fd(), &path, self.tree, self.observer);
        let creation = Creation::default();
        let began = self.clock.now();
        let outcome = std::thread::scope(|scope| {
            let maker = scope.spawn(|| create::create(file.as_fd(), &path, size, fill, &creation));
            while !maker.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
                if self.observer.interrupted() {
                    creation.stop.store(true, Ordering::Relaxed);
                }
                let elapsed = self.clock.now().since(began);
                let done = creation.done.load(Ordering::Relaxed);
                self.observer.progress(&creating(number, elapsed, done, size));
            }
            maker.join().expect("file makers do not panic")
        });
        if outcome.is_err() {
            Guard::unmade(file.as_fd(), &path);
            opened.unmake(&path);
        }
        match outcome {
            Ok(()) => {}
            Err(CreateError::Interrupted { .. }) => return Err(SpanFailure::Interrupted),
            Err(error) => return Err(failed(error)),
        }
        self.guard.made(file.as_fd(), &path, self.tree);
        Ok(())
    }
}

/// Whether `-c` makes the target: no drive, no device, no folder.
pub(super) fn is_made(target: &Target) -> bool {
    target::resolve(&target.path).is_ok_and(|path| can_be_made(&path))
}

fn can_be_made(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// Progress of a creation; the time left is what the pace so far says.
fn creating(number: (usize, usize), elapsed: Nanos, done: u64, size: u64) -> Snapshot {
    let seconds = elapsed.as_secs_f64();
    let bytes_per_s = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
    let total = if done > 0 { seconds * size as f64 / done as f64 } else { 0.0 };
    let total = Nanos(plumb_units::convert::floor_u64(total * 1e9));
    Snapshot {
        time_span: number,
        phase: Phase::Creating { done, total: size },
        elapsed,
        total,
        left: total.since(elapsed),
        iops: 0.0,
        bytes_per_s,
        latency: None,
        errors: 0,
    }
}

/// An error with its causes and its remedy, as one text.
pub(super) fn describe(error: &dyn Diagnostic) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    if let Some(help) = error.help() {
        text.push_str("\nhelp: ");
        text.push_str(&help.to_string());
    }
    text
}

/// An error as results keep it; its class is the last word of its code.
pub(super) fn failure(error: &dyn Diagnostic) -> Failure {
    let code = error.code().map(|code| code.to_string()).unwrap_or_default();
    let class = code.rsplit("::").next().unwrap_or_default().replace('_', "-");
    Failure { class, text: describe(error) }
}

/// A fatal error of a time span.
#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
pub(super) fn failed(error: impl Diagnostic) -> SpanFailure {
    SpanFailure::Failed(failure(&error))
}
