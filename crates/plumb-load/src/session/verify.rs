//! Verification of a session (`--verify`): its targets, its checks before and after the load.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_io::clock::Clock;
use plumb_io::verify::state::StateError;
use plumb_io::verify::{
    BUFFER, Checked, DEPTH, Kind, Pass, SECTOR, Space, Verification, VerifyQueue, check,
};
use plumb_io::{
    FileIndex, IoQueue, LaneSpec, OpenQueueError, Opener, QueueSpec, QueueUse, RegionSpec,
};
use plumb_units::{Bytes, Nanos, convert};

use super::files::{describe, failed};
use super::memory;
use super::observe::{Phase, Snapshot};
use super::span::{Session, SpanFailure};
use super::target::{self, OpenTarget, open_handle};
use crate::pattern::{Bounds, distribution};
use crate::plan::ThreadPlan;
use crate::profile::model::{Target, TimeSpan, WriteContent};
use crate::result::model::Failure;
use crate::result::verify::{VerifiedTarget, VerifyResult};

/// How often progress of a check is reported.
const REPORT: Nanos = Nanos::from_millis(200);

/// A run that cannot be verified.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum VerifyError {
    /// A target whose writes cannot carry what verification needs, or mix.
    #[error("'{path}' cannot be verified: {why}")]
    #[diagnostic(code(plumb::load::verify_target))]
    Target {
        path: String,
        why: String,
        #[help]
        remedy: String,
    },
    /// Known to the state file, and about to be made anew.
    #[error("'{path}' would be made anew (-c), and the state file knows what it holds")]
    #[diagnostic(
        code(plumb::load::verify_made),
        help("leave out -c, or name a new state file (--verify-state)")
    )]
    Made { path: String },
    /// Known to the state file, and not there any more.
    #[error(
        "'{path}' is gone, and the state file knows of writes to it: what was acknowledged is lost"
    )]
    #[diagnostic(
        code(plumb::load::verify_gone),
        help("bring it back, or name a new state file (--verify-state) to begin anew")
    )]
    Gone { path: String },
    /// What is known of the targets does not fit.
    #[error(
        "verification would take up to {} of memory, and {} are available for it",
        Bytes(*wanted).in_words(),
        Bytes(*available).in_words()
    )]
    #[diagnostic(
        code(plumb::load::verify_memory),
        help(
            "it takes 8 bytes per block that is written: choose larger blocks or strides (-b, -r, -s), \
             or a smaller part of the target (-f)"
        )
    )]
    Memory { wanted: u64, available: u64 },
    /// The queue of a check.
    #[error("cannot read '{path}' back: {reason}")]
    #[diagnostic(
        code(plumb::load::verify_check),
        help("check the target and the engine (--engine)")
    )]
    Check { path: String, reason: String },
}

/// The verification of all time spans.
#[derive(Debug)]
pub(super) struct Verified {
    verification: Arc<Verification>,
    /// By what makes two names the same file or device.
    spaces: Vec<(Identity, Arc<Space>)>,
}

/// The space of each target of a time span, and those of them that are new in the session.
type SpanSpaces = (Vec<Arc<Space>>, Vec<Arc<Space>>);

/// What makes two names one target: file system and inode, or the device; else the name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    File(u64, u64),
    Name(PathBuf),
}

impl Identity {
    fn of(path: &Path) -> Self {
        use std::os::unix::fs::FileTypeExt;
        match std::fs::metadata(path) {
            Ok(found) if found.file_type().is_block_device() => Self::File(u64::MAX, found.rdev()),
            Ok(found) => Self::File(found.dev(), found.ino()),
            Err(_) => Self::Name(path.into()),
        }
    }
}

/// The verification of one time span.
#[derive(Debug)]
pub(super) struct SpanVerify {
    verification: Arc<Verification>,
    /// By target.
    spaces: Vec<Arc<Space>>,
    /// Each space once, with what it had counted before this time span.
    started: Vec<(Arc<Space>, VerifiedTarget)>,
    /// Findings before this time span.
    known: usize,
    before: Option<Checked>,
    continues: bool,
}

impl SpanVerify {
    /// Whether the user ended the check before the load.
    pub(super) fn is_cut_short(&self) -> bool {
        self.before.is_some_and(|before| !before.complete)
    }

    /// Whether a mismatch ends the run.
    pub(super) fn stops(&self) -> bool {
        !self.continues
    }

    /// The verified queue of a thread.
    pub(super) fn queue<'a>(
        &'a self,
        queue: &'a mut dyn IoQueue,
        span: &TimeSpan,
        plan: &ThreadPlan,
        on_mismatch: &'a dyn Fn(),
    ) -> VerifyQueue<'a, dyn IoQueue + 'a> {
        let spaces = plan.handles.iter().map(|handle| Arc::clone(&self.spaces[handle.target]));
        let blocks = plan.targets.iter().map(|planned| span.targets[planned.index].block_size);
        let size = (plan.requests, blocks.max().unwrap_or(SECTOR));
        VerifyQueue::new(queue, &self.verification, spaces.collect(), size, Pass::Load, on_mismatch)
    }

    /// What has been found so far, if that ends the run.
    pub(super) fn failure(&self) -> Option<Failure> {
        let complaint = self.result().complaint().filter(|_| self.stops())?;
        let text = format!("{complaint}\nhelp: --on-error continue counts mismatches and goes on");
        Some(Failure::new("mismatch", text))
    }

    /// What it did and found so far.
    pub(super) fn result(&self) -> VerifyResult {
        let verification = &self.verification;
        let first = verification.findings().first();
        let targets = self.started.iter().map(|(space, before)| {
            let now = counts(space);
            let mut mismatches = now.mismatches;
            for (count, before) in mismatches.iter_mut().zip(before.mismatches) {
                *count -= before;
            }
            VerifiedTarget {
                written: now.written - before.written,
                checked: now.checked - before.checked,
                mismatches,
                ..now
            }
        });
        let recorded = self.started.iter().all(|(space, _)| !space.record_failed());
        VerifyResult {
            history: verification.history(),
            state: verification.state_path().map(|path| path.display().to_string()),
            follows_a_cut: verification.follows_a_cut(),
            targets: targets.collect(),
            before: self.before,
            after: None,
            first: first[self.known.min(first.len())..].to_vec(),
            state_failed: verification.state_failed() || !recorded,
        }
    }
}

/// What a space has counted.
fn counts(space: &Space) -> VerifiedTarget {
    VerifiedTarget {
        path: space.path().to_owned(),
        number: space.number(),
        block: space.block(),
        written: space.acknowledged(),
        checked: space.checked(),
        mismatches: Kind::ALL.map(|kind| space.mismatches(kind)),
        exhausted: space.is_exhausted(),
    }
}

impl<O: Opener, C: Clock> Session<'_, O, C> {
    /// Opens the state file, before anything is made or written.
    pub(super) fn begin_verification(&mut self) -> Result<(), SpanFailure> {
        let Some(options) = &self.options.verify else { return Ok(()) };
        let verification = match &options.state {
            None => Ok(Verification::new()),
            Some(path) => Verification::with_state(path),
        };
        let verification = verification.map_err(failed)?;
        for span in &self.profile.time_spans {
            for target in &span.targets {
                check_target(target, span, self.options.opens_no_target).map_err(failed)?;
                let path = target::resolve(&target.path).map_err(failed)?;
                if verification.misses(&path) {
                    return Err(failed(VerifyError::Gone { path: target.path.clone() }));
                }
                let is_made = target.file_size.is_some_and(|size| size > 0);
                if is_made && verification.knows(&path) {
                    return Err(failed(VerifyError::Made { path: target.path.clone() }));
                }
            }
        }
        self.verified = Some(Verified { verification: Arc::new(verification), spaces: Vec::new() });
        Ok(())
    }

    /// Brings all that is known to the medium.
    pub(super) fn end_verification(&mut self) -> Result<(), String> {
        let Some(verified) = self.verified.take() else { return Ok(()) };
        verified.verification.close().map_err(|error| describe(&error))
    }

    /// The spaces of a time span's targets, and the check of what is known of them.
    pub(super) fn verify_before(
        &mut self,
        span: &TimeSpan,
        targets: &[OpenTarget],
        place: (usize, usize),
    ) -> Result<Option<SpanVerify>, SpanFailure> {
        let Some(mut verified) = self.verified.take() else { return Ok(None) };
        let made = self.spaces(&mut verified, span, targets);
        let verification = Arc::clone(&verified.verification);
        self.verified = Some(verified);
        let (spaces, fresh) = made?;
        let mut started: Vec<(Arc<Space>, VerifiedTarget)> = Vec::new();
        for space in &spaces {
            if !started.iter().any(|(known, _)| Arc::ptr_eq(known, space)) {
                started.push((Arc::clone(space), counts(space)));
            }
        }
        let known = verification.findings().first().len();
        let continues = self.options.continue_on_error;
        let mut verify =
            SpanVerify { verification, spaces, started, known, before: None, continues };
        let remembered = fresh.into_iter().filter(|space| space.written_blocks() > 0).collect();
        let before = self.check_all(span, targets, &verify, remembered, (Pass::Before, place))?;
        self.tell_incomplete(before);
        verify.before = before;
        Ok(Some(verify))
    }

    /// Reads everything back, unless nothing was written since it was checked.
    pub(super) fn verify_after(
        &mut self,
        span: &TimeSpan,
        targets: &[OpenTarget],
        verify: &SpanVerify,
        place: (usize, usize),
    ) -> Result<VerifyResult, SpanFailure> {
        let has_written =
            |(space, before): &&(Arc<Space>, VerifiedTarget)| space.acknowledged() > before.written;
        let written = verify.started.iter().filter(has_written);
        let written: Vec<Arc<Space>> = written.map(|(space, _)| Arc::clone(space)).collect();
        let after = self.check_all(span, targets, verify, written, (Pass::After, place))?;
        self.tell_incomplete(after);
        Ok(VerifyResult { after, ..verify.result() })
    }

    /// Says what a check that the user ended has left out.
    fn tell_incomplete(&mut self, checked: Option<Checked>) {
        if let Some(checked) = checked.filter(|checked| !checked.complete) {
            self.observer.warning(&format!(
                "verification was ended early: {} of {} that are acknowledged were read back",
                Bytes(checked.bytes).in_words(),
                Bytes(checked.of_bytes).in_words()
            ));
        }
    }

    /// The space of each target, and those that are new in this session.
    fn spaces(
        &self,
        verified: &mut Verified,
        span: &TimeSpan,
        targets: &[OpenTarget],
    ) -> Result<SpanSpaces, SpanFailure> {
        let (mut spaces, mut fresh) = (Vec::new(), Vec::new());
        let precreated = self.profile.precreate.is_some();
        let mut anew: Vec<Identity> = Vec::new();
        for (asked, open) in span.targets.iter().zip(targets) {
            let identity = Identity::of(&open.path);
            let known = verified.spaces.iter().find(|(known, _)| *known == identity);
            let space = match known {
                Some((_, space)) => Arc::clone(space),
                None => {
                    let (used, block) = self.extent(&identity, open.size);
                    self.check_memory(verified, used, block)?;
                    let sizes = (open.size, used);
                    let space = verified.verification.space(&open.path, sizes, block);
                    let space = space.map_err(|error: StateError| failed(error))?;
                    verified.spaces.push((identity.clone(), Arc::clone(&space)));
                    fresh.push(Arc::clone(&space));
                    space
                }
            };
            let block = block_of(asked, open.size);
            if !block.is_multiple_of(space.block()) || space.size() != open.size {
                let why = format!(
                    "another time span uses it in blocks of {} and as {} bytes, this one in blocks of \
                     {block} and as {}",
                    space.block(),
                    space.size(),
                    open.size
                );
                let remedy = "give it one name, and one size (-c)".to_owned();
                return Err(failed(VerifyError::Target { path: asked.path.clone(), why, remedy }));
            }
            let is_made = asked.file_size.is_some_and(|size| size > 0) && !open.is_device;
            let is_kept = precreated && self.made.contains(&asked.path);
            if is_made && !is_kept && !anew.contains(&identity) {
                space.forget();
                anew.push(identity);
            }
            spaces.push(space);
        }
        Ok((spaces, fresh))
    }

    /// Bytes of a target that the session uses, and those of the largest blocks that every write to it covers
    /// whole.
    fn extent(&self, identity: &Identity, size: u64) -> (u64, u32) {
        let all = self.profile.time_spans.iter().flat_map(|span| &span.targets);
        let same = all.filter(|other| {
            target::resolve(&other.path).is_ok_and(|path| Identity::of(&path) == *identity)
        });
        same.fold((0, 0), |(used, block), target| {
            let end = if target.max_file_size == 0 { size } else { size.min(target.max_file_size) };
            (used.max(end), gcd32(block, block_of(target, size)))
        })
    }

    fn check_memory(&self, verified: &Verified, used: u64, block: u32) -> Result<(), SpanFailure> {
        let Some(available) = memory::of_system(self.tree) else { return Ok(()) };
        let others = verified.spaces.iter();
        let others = others.map(|(_, space)| Space::memory(space.used(), space.block()));
        let wanted = others.fold(Space::memory(used, block), u64::saturating_add);
        // The rest is for buffers and for everybody else.
        let available = available / 2;
        if wanted > available {
            return Err(failed(VerifyError::Memory { wanted, available }));
        }
        Ok(())
    }

    /// Reads all that is acknowledged in `spaces` back.
    fn check_all(
        &mut self,
        span: &TimeSpan,
        targets: &[OpenTarget],
        verify: &SpanVerify,
        spaces: Vec<Arc<Space>>,
        (pass, place): (Pass, (usize, usize)),
    ) -> Result<Option<Checked>, SpanFailure> {
        let mut all: Option<Checked> = None;
        for space in spaces {
            let same = |known: &Arc<Space>| Arc::ptr_eq(known, &space);
            let nth = verify.spaces.iter().position(same).expect("spaces are those of targets");
            let asked = &span.targets[nth];
            let read_only = Target { write_ratio: 0, ..asked.clone() };
            let file = open_handle(&read_only, &targets[nth]).map_err(failed)?;
            let lane = LaneSpec { first_slot: 0, slots: DEPTH, bytes: BUFFER };
            let spec = QueueSpec {
                depth: DEPTH,
                files: file.into_iter().collect(),
                regions: vec![RegionSpec { lanes: vec![lane] }],
                ..QueueSpec::default()
            };
            let began = self.clock.now();
            let mut reported = Nanos::ZERO;
            let (clock, observer) = (self.clock, &mut *self.observer);
            let mut go_on = |done: u64, total: u64| {
                let elapsed = clock.now().since(began);
                if elapsed.since(reported) >= REPORT || done >= total {
                    reported = elapsed;
                    observer.progress(&verifying(place, elapsed, done, total));
                }
                !observer.interrupted()
            };
            let user = CheckUse {
                verification: &verify.verification,
                space: &space,
                pass,
                go_on: &mut go_on,
            };
            let reason = |reason: String| VerifyError::Check { path: asked.path.clone(), reason };
            let outcome = self.opener.open(spec, user);
            let checked = outcome.map_err(|error: OpenQueueError| failed(error))?;
            let checked = checked.map_err(|errno| failed(reason(errno.to_string())))?;
            match &mut all {
                Some(all) => all.add(checked),
                None => all = Some(checked),
            }
        }
        Ok(all)
    }
}

/// A check on a queue of some type.
struct CheckUse<'a> {
    verification: &'a Verification,
    space: &'a Arc<Space>,
    pass: Pass,
    go_on: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl QueueUse for CheckUse<'_> {
    type Output = Result<Checked, plumb_io::Errno>;

    fn with<Q: IoQueue>(self, mut queue: Q) -> Self::Output {
        let queue: &mut dyn IoQueue = &mut queue;
        let spaces = vec![Arc::clone(self.space)];
        let size = (DEPTH, BUFFER);
        let mut queue = VerifyQueue::new(queue, self.verification, spaces, size, self.pass, &|| {});
        if !(self.go_on)(0, 0) {
            let of_bytes = self.space.written_blocks() * u64::from(self.space.block());
            return Ok(Checked { of_bytes, ..Checked::default() });
        }
        check(&mut queue, FileIndex(0), self.space, self.go_on)
    }
}

/// What no option asks for, but a profile or another program may.
fn check_target(target: &Target, span: &TimeSpan, keeps_nothing: bool) -> Result<(), VerifyError> {
    let refuse = |why: &str, remedy: &str| {
        let path = target.path.clone();
        Err(VerifyError::Target { path, why: why.to_owned(), remedy: remedy.to_owned() })
    };
    if keeps_nothing {
        return refuse("the engine keeps nothing", "use another engine, or leave out --verify");
    }
    if target.memory_mapped {
        let why = "it is memory mapped (-Sm): copies of several requests may mix within a sector";
        return refuse(why, "leave out -Sm");
    }
    if span.random_write_data || target.write_content != WriteContent::Sequential {
        return refuse("its writes have content of their own (-Z)", "leave out -Z");
    }
    let sector = u64::from(SECTOR);
    let lengths =
        [target.block_size.into(), target.alignment, target.base_file_offset, target.thread_stride];
    if lengths.iter().any(|length| !length.is_multiple_of(sector)) {
        let why = "its blocks or offsets are no whole sectors of 512 bytes";
        return refuse(why, "make -b, -r, -s, -B and -T multiples of 512");
    }
    Ok(())
}

/// Bytes of the largest blocks that every write to `target` covers whole.
fn block_of(target: &Target, size: u64) -> u32 {
    let mut block = gcd(target.block_size.into(), target.alignment);
    block = gcd(block, target.base_file_offset);
    block = gcd(block, target.thread_stride);
    if let (Some(wanted), Some(bounds)) = (&target.distribution, Bounds::new(target, size)) {
        for range in distribution::effective(wanted, &bounds).ranges {
            // Offsets are drawn modulo the range's length.
            let inside = gcd(range.offset, range.length);
            let with = gcd(block, inside);
            block = if with.is_multiple_of(SECTOR.into()) { with } else { SECTOR.into() };
        }
    }
    convert::low_u32(block)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn gcd32(a: u32, b: u32) -> u32 {
    convert::low_u32(gcd(a.into(), b.into()))
}

/// Progress of a check; the time left is what the pace so far says.
fn verifying(time_span: (usize, usize), elapsed: Nanos, done: u64, total: u64) -> Snapshot {
    let seconds = elapsed.as_secs_f64();
    let whole = if done > 0 { seconds * total as f64 / done as f64 } else { 0.0 };
    let whole = Nanos(convert::floor_u64(whole * 1e9));
    Snapshot {
        time_span,
        phase: Phase::Verifying { done, total },
        elapsed,
        total: whole,
        left: whole.since(elapsed),
        iops: 0.0,
        bytes_per_s: if seconds > 0.0 { done as f64 / seconds } else { 0.0 },
        latency: None,
        errors: 0,
    }
}
