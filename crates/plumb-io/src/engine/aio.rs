//! Linux native AIO: asynchronous where io_uring is not to be had, and the I/O is direct.

use plumb_sys::aio::{AioContext, AioReservation};
use plumb_units::Nanos;
use rustix::fs::{OFlags, fcntl_getfl};

use super::buffers;
use crate::{
    Done, Errno, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts, QueueSpec, Slot, TargetFile,
};

/// I/O through an AIO context.
#[derive(Debug)]
pub struct AioQueue {
    context: AioContext,
    notes: Vec<String>,
}

impl AioQueue {
    /// Builds on a context that was had; `notes` say how the queue came to this engine.
    ///
    /// # Errors
    /// When memory is refused.
    pub(crate) fn open(
        reservation: AioReservation,
        spec: QueueSpec,
        mut notes: Vec<String>,
    ) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(&spec)?;
        notes.extend(spec.files.iter().filter(|file| blocks(file)).map(|file| {
            let path = file.path.display();
            format!(
                "asynchronous submission for {path}: buffered, so io_submit waits for the device"
            )
        }));
        let files = spec.files.into_iter().map(|file| file.descriptor).collect();
        Ok(Self { context: AioContext::new(reservation, arena, files), notes })
    }
}

/// Whether `io_submit` performs the file's I/O on the spot.
fn blocks(file: &TargetFile) -> bool {
    let direct = fcntl_getfl(&file.descriptor).is_ok_and(|flags| flags.contains(OFlags::DIRECT));
    file.mapping.is_none() && !direct
}

/// Tries for a context.
///
/// # Errors
/// Why AIO cannot be used here.
pub(crate) fn reserve(depth: u32) -> Result<AioReservation, String> {
    AioReservation::new(depth).map_err(|errno| obstacle(errno.into()))
}

/// The error of a forced engine that could not be had.
pub(crate) fn no_aio(reason: String) -> OpenQueueError {
    let remedy = "raise fs.aio-max-nr or use fewer requests (-o, -t), or choose --engine auto, uring \
                  or threads";
    OpenQueueError::Unavailable { engine: "aio".to_owned(), reason, remedy: remedy.to_owned() }
}

fn obstacle(errno: Errno) -> String {
    match rustix::io::Errno::from_raw_os_error(errno.0) {
        rustix::io::Errno::NOSYS => {
            "this kernel has no AIO, or a seccomp filter hides it (ENOSYS)".to_owned()
        }
        rustix::io::Errno::PERM => {
            "io_setup is forbidden (EPERM): a seccomp filter, as in containers".to_owned()
        }
        rustix::io::Errno::AGAIN => {
            let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap_or_default();
            let limit = limit.trim();
            format!("the system-wide limit on AIO requests is reached (fs.aio-max-nr = {limit})")
        }
        _ => format!("io_setup fails: {errno}"),
    }
}

impl IoQueue for AioQueue {
    #[inline]
    fn push(&mut self, op: Op) {
        self.context.push(&op.into());
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.context.submit_and_wait(wanted, timeout).map_err(Errno::from)
    }

    #[inline]
    fn look(&mut self) -> u32 {
        self.context.look()
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        self.context.pop().map(Done::from)
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.context.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        let mut facts = buffers::facts("aio", self.context.arena());
        if self.context.reads_ring() {
            facts.flags.push("user_space_reap".to_owned());
        }
        facts.dropped.extend_from_slice(&self.notes);
        facts
    }
}
