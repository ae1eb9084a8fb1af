//! The queue to a pool's real disks: a ring, or threads that make plain calls where the kernel has none. A ring has a bell: the read
//! of an event that it waits for beside the disks.

use plumb_io::clock::StampClock;
use plumb_io::engine::{SyncQueue, ThreadsQueue, UringOptions, UringQueue, probe_ring};
use plumb_io::exclusive::OtherNames;
use plumb_io::stack::{DeviceModel, EmulatedQueue, OverlayQueue};
use plumb_io::{
    Bell, Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind,
    OpenQueueError, QueueFacts, QueueSpec, RegionSpec, Slot, TargetFile,
};
use plumb_units::Nanos;
use plumb_units::convert::to_u32;

use crate::io::SlotPlan;

/// All disks of a pool on one queue of the calling thread.
#[expect(clippy::large_enum_variant, reason = "there is one per pool")]
#[derive(Debug)]
pub enum DeviceQueue {
    /// `io_uring`.
    Ring(BelledRing),
    /// Calls on other threads.
    Threads(ThreadsQueue),
    /// One call at a time.
    Calls(SyncQueue),
    /// Either of them, as slow as models of disks.
    Emulated(Box<EmulatedQueue<DeviceQueue, StampClock>>),
    /// Any of them, whose files stay as they are.
    Unchanging(Box<OverlayQueue<DeviceQueue>>),
    /// Any of them, with claims on other names of its disks.
    Held(HeldQueue),
}

/// A queue that nobody else reaches the disks of by their other names.
#[derive(Debug)]
pub struct HeldQueue {
    queue: Box<DeviceQueue>,
    #[expect(dead_code, reason = "claims work by being kept")]
    names: OtherNames,
}

impl DeviceQueue {
    /// Opens the best queue that this kernel has, with `plan`'s slots and buffers.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(plan: &SlotPlan, files: Vec<TargetFile>) -> Result<Self, OpenQueueError> {
        Self::open_spec(spec(plan, files))
    }

    fn open_spec(spec: QueueSpec) -> Result<Self, OpenQueueError> {
        match probe_ring() {
            Ok(()) => Ok(Self::Ring(BelledRing::open(spec)?)),
            Err(_) => Ok(Self::Threads(ThreadsQueue::growing(spec)?)),
        }
    }

    /// The same files, each of which answers when its model would.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open_emulated(
        plan: &SlotPlan,
        files: Vec<TargetFile>,
        models: Vec<DeviceModel>,
    ) -> Result<Self, OpenQueueError> {
        let (clock, _) = StampClock::new();
        // What it has finished is seen by looks alone: whoever waits, waits for the models.
        let queue = Self::open_spec(QueueSpec { measures_latency: true, ..spec(plan, files) })?;
        Ok(Self::Emulated(Box::new(EmulatedQueue::new(queue, plan.depth(), models, clock))))
    }

    /// Around a queue with `plan`'s slots: nothing is written any more.
    #[must_use]
    pub fn unchanging(plan: &SlotPlan, queue: Self) -> Self {
        Self::Unchanging(Box::new(OverlayQueue::new(queue, plan.depth())))
    }

    /// With claims on other names of its disks, which it keeps.
    #[must_use]
    pub fn holding(self, names: OtherNames) -> Self {
        if names.is_empty() {
            return self;
        }
        Self::Held(HeldQueue { queue: Box::new(self), names })
    }

    /// One call at a time, whatever the kernel has.
    ///
    /// # Errors
    /// When memory is refused.
    pub(super) fn calls(plan: &SlotPlan, files: Vec<TargetFile>) -> Result<Self, OpenQueueError> {
        Ok(Self::Calls(SyncQueue::open(spec(plan, files))?))
    }
}

fn spec(plan: &SlotPlan, files: Vec<TargetFile>) -> QueueSpec {
    let regions = vec![RegionSpec { lanes: plan.lanes() }];
    QueueSpec { depth: plan.depth(), files, regions, ..QueueSpec::default() }
}

macro_rules! either {
    ($self:ident, $queue:ident => $call:expr) => {
        match $self {
            Self::Ring($queue) => $call,
            Self::Threads($queue) => $call,
            Self::Calls($queue) => $call,
            Self::Emulated($queue) => $call,
            Self::Unchanging($queue) => $call,
            Self::Held(HeldQueue { queue: $queue, .. }) => $call,
        }
    };
}

impl IoQueue for DeviceQueue {
    #[inline]
    fn push(&mut self, op: Op) {
        either!(self, queue => queue.push(op));
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        either!(self, queue => queue.submit_and_wait(wanted, timeout))
    }

    #[inline]
    fn look(&mut self) -> u32 {
        either!(self, queue => queue.look())
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        either!(self, queue => queue.pop())
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        either!(self, queue => queue.buffer_mut(slot, lane))
    }

    fn facts(&self) -> QueueFacts {
        either!(self, queue => queue.facts())
    }
}

impl FlushQueue for DeviceQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        either!(self, queue => queue.push_flush(file, slot));
    }

    fn bell(&self) -> Option<Bell> {
        either!(self, queue => queue.bell())
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        either!(self, queue => queue.file_bytes(file))
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        either!(self, queue => queue.leads_there(file))
    }

    fn time(&self) -> Nanos {
        either!(self, queue => queue.time())
    }
}

/// A ring with one file, slot and buffer more than its disks need: those of its bell.
#[derive(Debug)]
pub struct BelledRing {
    ring: UringQueue,
    /// With the I/O that waits for it.
    bell: Option<(Bell, Op)>,
    /// That I/O is under way.
    armed: bool,
}

/// Bytes of an event.
const EVENT_BYTES: u32 = 8;
const BELL_LANE_BYTES: u32 = 4096;

impl BelledRing {
    fn open(mut spec: QueueSpec) -> Result<Self, OpenQueueError> {
        // A disk that hangs may keep as many workers as it has I/Os; flushes of the others must not wait for one (section 18).
        let options = UringOptions::default().with_worker_each();
        // Without a descriptor left for it there is none: whoever waits looks by itself then.
        let bell =
            Bell::new().and_then(|bell| Ok((rustix::io::fcntl_dupfd_cloexec(&bell, 0)?, bell)));
        let Ok((descriptor, bell)) = bell else {
            let ring = UringQueue::open(spec, options)?;
            return Ok(Self { ring, bell: None, armed: false });
        };
        let slot = spec.depth;
        let lanes = spec.regions.iter().map(|region| region.lanes.len()).sum();
        let op = Op {
            kind: OpKind::Read,
            file: FileIndex(to_u32(spec.files.len())),
            slot: Slot(slot),
            len: EVENT_BYTES,
            offset: 0,
            memory: Memory::Lane(LaneIndex(to_u32(lanes))),
        };
        let lane = LaneSpec { first_slot: slot, slots: 1, bytes: BELL_LANE_BYTES };
        spec.regions.push(RegionSpec { lanes: vec![lane] });
        spec.depth += 1;
        let (path, size) = ("bell".into(), 0);
        spec.files.push(TargetFile { descriptor, path, size, priority: None, mapping: None });
        let ring = UringQueue::open(spec, options)?;
        Ok(Self { ring, bell: Some((bell, op)), armed: false })
    }
}

impl IoQueue for BelledRing {
    #[inline]
    fn push(&mut self, op: Op) {
        self.ring.push(op);
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        if let (Some((_, op)), false) = (&self.bell, self.armed) {
            self.ring.push(*op);
            self.armed = true;
        }
        self.ring.submit_and_wait(wanted, timeout)
    }

    /// The bell may be among those counted.
    #[inline]
    fn look(&mut self) -> u32 {
        self.ring.look()
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        loop {
            let done = self.ring.pop()?;
            match &self.bell {
                // An event that cannot be read would only be asked for over and over.
                Some((_, op)) if op.slot == done.slot => self.armed = done.result < 0,
                _ => return Some(done),
            }
        }
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.ring.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.ring.facts()
    }
}

impl FlushQueue for BelledRing {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        self.ring.push_flush(file, slot);
    }

    fn bell(&self) -> Option<Bell> {
        self.bell.as_ref().map(|(bell, _)| bell.clone())
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.ring.file_bytes(file)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        self.ring.leads_there(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::{Duration, Instant};

    use plumb_io::stack::SsdModel;

    use super::*;
    use crate::io::TIME_OUT;

    fn disk(descriptor: std::os::fd::OwnedFd) -> TargetFile {
        let (path, size) = ("disk".into(), 1 << 20);
        TargetFile { descriptor, path, size, priority: None, mapping: None }
    }

    fn read(file: u32, slot: u32) -> Op {
        let (kind, memory) = (OpKind::Read, Memory::Lane(LaneIndex(0)));
        Op { kind, file: FileIndex(file), slot: Slot(slot), len: 4096, offset: 0, memory }
    }

    /// What ends beneath a model that is done is seen at once, whatever other models have under way: by whoever waits, and
    /// by looks where calls only submit.
    #[test]
    fn an_emulated_disk_is_no_later_than_its_model_and_what_is_beneath_it() {
        const OTHER: Nanos = Nanos::from_secs(3);
        let test = "an_emulated_disk_is_no_later_than_its_model_and_what_is_beneath_it";
        if let Err(why) = probe_ring() {
            println!("skipped {test}: {why}");
            return;
        }
        let model = |time| DeviceModel::Ssd(SsdModel::new(8, vec![(4096, time, time)], u64::MAX));
        for waits in [true, false] {
            let plan = SlotPlan {
                data_slots: 4,
                data_bytes: 4096,
                control_bytes: 4096,
                files: 2,
                time_out: TIME_OUT,
            };
            let file = tempfile::tempfile().expect("a file");
            file.set_len(1 << 20).expect("room");
            let (reader, mut writer) = std::io::pipe().expect("a pipe");
            let files = vec![disk(reader.into()), disk(file.into())];
            let models = vec![model(Nanos::ZERO), model(OTHER)];
            let mut queue = DeviceQueue::open_emulated(&plan, files, models).expect("a queue");
            // A pipe without content is a disk that takes longer than its model.
            queue.push(read(0, 0));
            queue.push(read(1, 1));
            queue.submit_and_wait(0, Nanos::ZERO).expect("taken");
            assert_eq!(queue.look(), 0);
            let began = Instant::now();
            let other = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                writer.write_all(b"plumb").expect("the reader is open");
            });
            if waits {
                queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
            } else {
                queue.push(read(1, 2));
                queue.submit_and_wait(0, Nanos::ZERO).expect("taken");
            }
            while queue.look() == 0 && began.elapsed() < OTHER.into() {}
            assert!(began.elapsed() < Duration::from_secs(2), "{waits}: {:?}", began.elapsed());
            assert_eq!(queue.pop(), Some(Done { slot: Slot(0), result: 5 }), "{waits}");
            other.join().expect("it wrote");
        }
    }

    /// A wait for a disk that has nothing to say ends when somebody rings, every time, and the disks' own
    /// I/O goes on beside it.
    #[test]
    fn a_bell_ends_a_wait() {
        let plan = SlotPlan {
            data_slots: 4,
            data_bytes: 4096,
            control_bytes: 4096,
            files: 1,
            time_out: TIME_OUT,
        };
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("room");
        let (path, size) = ("disk".into(), 1 << 20);
        let file =
            TargetFile { descriptor: file.into(), path, size, priority: None, mapping: None };
        let mut queue = DeviceQueue::open(&plan, vec![file]).expect("a queue");
        let Some(bell) = queue.bell() else {
            println!("skipped a_bell_ends_a_wait: no io_uring");
            return;
        };
        for turn in 0..3_u8 {
            let ringer = bell.clone();
            let other = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                ringer.ring();
            });
            let began = Instant::now();
            queue.submit_and_wait(1, Nanos::from_secs(20)).expect("taken");
            assert!(began.elapsed() < Duration::from_secs(10), "it slept on");
            queue.look();
            assert_eq!(queue.pop(), None, "a bell is no I/O of the issuer's");
            other.join().expect("it rang");
            let (kind, memory) = (OpKind::Write, Memory::Lane(LaneIndex(0)));
            queue.buffer_mut(Slot(0), LaneIndex(0)).fill(turn);
            queue.push(Op {
                kind,
                file: FileIndex(0),
                slot: Slot(0),
                len: 4096,
                offset: 0,
                memory,
            });
            queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
            queue.look();
            assert_eq!(queue.pop(), Some(Done { slot: Slot(0), result: 4096 }));
        }
        // One that was rung while nobody waited ends the next wait.
        queue.submit_and_wait(0, Nanos::ZERO).expect("taken");
        bell.ring();
        let began = Instant::now();
        queue.submit_and_wait(1, Nanos::from_secs(20)).expect("taken");
        assert!(began.elapsed() < Duration::from_secs(10), "it slept on");
    }
}
