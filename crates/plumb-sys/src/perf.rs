//! Counters of kernel events (perf_event_open): counting only, nothing is recorded.

use std::ffi::CStr;

use rustix::fd::{FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Opcode, Setter, ioctl, opcode};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// Hits of a tracepoint, by the number in its `id` file.
    Tracepoint(u64),
    /// Page faults served without I/O.
    MinorFaults,
    /// Page faults that had to wait for I/O.
    MajorFaults,
}

/// Counts events of all processes on one CPU.
#[derive(Debug)]
pub struct Counter(OwnedFd);

/// `struct perf_event_attr` of linux/perf_event.h in its first published form, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const ATTR_SIZE: u32 = 64;
/// Does not count until told to.
const DISABLED: u64 = 1;

impl Counter {
    /// Opens a counter of one CPU; it counts from [`Counter::enable`] on.
    ///
    /// # Errors
    /// EACCES or EPERM without CAP_PERFMON while `perf_event_paranoid` is above 0; ENOENT for an unknown
    /// tracepoint; EMFILE at the limit of open files; ENODEV for an offline CPU.
    ///
    /// # Panics
    /// When the CPU number does not fit 31 bits.
    pub fn open(kind: CounterKind, cpu: u32) -> Result<Self, Errno> {
        const SOFTWARE: u32 = 1;
        const TRACEPOINT: u32 = 2;
        const ALL_PROCESSES: libc::pid_t = -1;
        const NO_GROUP: libc::c_int = -1;
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        let (kind, config) = match kind {
            CounterKind::Tracepoint(number) => (TRACEPOINT, number),
            CounterKind::MinorFaults => (SOFTWARE, 5),
            CounterKind::MajorFaults => (SOFTWARE, 6),
        };
        let attr =
            PerfEventAttr { kind, size: ATTR_SIZE, config, flags: DISABLED, ..Default::default() };
        let cpu = libc::c_int::try_from(cpu).expect("a CPU number");
        // SAFETY: the kernel reads `attr`, whose size it is told, during the call.
        let code = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(&attr),
                ALL_PROCESSES,
                cpu,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        if code < 0 {
            return Err(last_errno());
        }
        let descriptor = i32::try_from(code).expect("a descriptor");
        // SAFETY: the kernel just made this descriptor, and nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Counts only events that a tracepoint filter lets through.
    ///
    /// # Errors
    /// EINVAL for a filter that names fields which the tracepoint does not have.
    ///
    /// # Panics
    /// When the filter is longer than 255 bytes.
    pub fn filter(&self, filter: &CStr) -> Result<(), Errno> {
        const SET_FILTER: Opcode = opcode::write::<*const libc::c_char>(b'$', 6);
        const LENGTH_MAX: usize = 256;
        let bytes = filter.to_bytes_with_nul();
        let mut text = [0; LENGTH_MAX];
        text[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: the opcode reads a string from the address that it is given.
        let request = unsafe { Setter::<SET_FILTER, [u8; LENGTH_MAX]>::new(text) };
        // SAFETY: the request owns the string, which ends in a zero byte.
        unsafe { ioctl(&self.0, request) }
    }

    /// Starts counting.
    ///
    /// # Errors
    /// None is known.
    pub fn enable(&self) -> Result<(), Errno> {
        const ENABLE: Opcode = opcode::none(b'$', 0);
        // SAFETY: the opcode takes no memory.
        let request = unsafe { NoArg::<ENABLE>::new() };
        // SAFETY: the request has no memory.
        unsafe { ioctl(&self.0, request) }
    }

    /// Stops counting.
    ///
    /// # Errors
    /// None is known.
    pub fn disable(&self) -> Result<(), Errno> {
        const DISABLE: Opcode = opcode::none(b'$', 1);
        // SAFETY: the opcode takes no memory.
        let request = unsafe { NoArg::<DISABLE>::new() };
        // SAFETY: the request has no memory.
        unsafe { ioctl(&self.0, request) }
    }

    /// Events so far.
    ///
    /// # Errors
    /// None is known.
    pub fn count(&self) -> Result<u64, Errno> {
        let mut bytes = [0; 8];
        match rustix::io::read(&self.0, &mut bytes)? {
            8 => Ok(u64::from_ne_bytes(bytes)),
            _ => Err(Errno::IO),
        }
    }
}

fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_layout_has_its_size() {
        assert_eq!(size_of::<PerfEventAttr>(), plumb_units::convert::index(ATTR_SIZE));
    }

    #[test]
    fn page_faults_of_this_machine_are_counted() {
        let counters: Result<Vec<Counter>, Errno> =
            allowed_cpus().map(|cpu| Counter::open(CounterKind::MinorFaults, cpu)).collect();
        let counters = match counters {
            Ok(counters) => counters,
            Err(errno) => {
                println!("skipped page_faults_of_this_machine_are_counted: {errno}");
                return;
            }
        };
        let count = || counters.iter().map(|c| c.count().expect("readable")).sum::<u64>();
        fault(64);
        assert_eq!(count(), 0, "not before it is enabled");
        counters.iter().for_each(|counter| counter.enable().expect("enabled"));
        fault(256);
        counters.iter().for_each(|counter| counter.disable().expect("disabled"));
        let counted = count();
        assert!(counted >= 256, "{counted}");
        fault(64);
        assert_eq!(count(), counted, "not after it is disabled");
        let cpu = allowed_cpus().next().expect("a CPU");
        assert!(Counter::open(CounterKind::Tracepoint(u64::MAX), cpu).is_err());
        let filter = counters[0].filter(c"nonsense == 1");
        assert_eq!(filter, Err(Errno::INVAL), "page faults have no filter");
    }

    fn allowed_cpus() -> impl Iterator<Item = u32> {
        let set = rustix::thread::sched_getaffinity(None).expect("our own affinity");
        (0..1024_u32).filter(move |cpu| set.is_set(plumb_units::convert::index(*cpu)))
    }

    /// Touches so many fresh pages.
    fn fault(pages: u64) {
        let bytes = pages * plumb_units::convert::to_u64(rustix::param::page_size());
        let placement = crate::memory::BufferPlacement::System;
        let mut block = crate::memory::Block::new(bytes, placement).expect("memory");
        block.touch();
    }
}
