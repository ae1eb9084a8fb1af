//! Kernel events of the whole machine, counted over the measurement (`-e`, spec 10.3, 11.4).
//!
//! Each counter is a perf event per processor that counts and records nothing. Load threads pay for
//! the tracepoints that they pass, and for nothing else; nothing can be lost.

use std::ffi::CStr;

use plumb_io::system_tree::SystemTree;
use plumb_io::topology::{Processor, Topology};
use plumb_sys::perf::{Counter, CounterKind};
use rustix::io::Errno;

use crate::profile::model::Etw;
use crate::result::model::TraceCounts;

/// Why events cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum TraceError {
    /// Linux has nothing of the kind.
    #[error("-e{class} has no counterpart on Linux")]
    #[diagnostic(
        code(plumb::trace::no_counterpart),
        help(
            "leave it out; there are PROCESS, THREAD, DISK_IO, MEMORY_PAGE_FAULTS, \
             MEMORY_HARD_FAULTS and NETWORK"
        )
    )]
    NoCounterpart {
        /// As on the command line.
        class: &'static str,
    },
    /// Tracepoints cannot be seen.
    #[error("-e{class} needs the kernel's tracepoints, and {folder} does not show them")]
    #[diagnostic(
        code(plumb::trace::no_tracefs),
        help(
            "mount them as root: mount -t tracefs tracefs /sys/kernel/tracing; only root sees them"
        )
    )]
    NoTracefs {
        /// As on the command line.
        class: &'static str,
        /// Where they were looked for.
        folder: &'static str,
    },
    /// This kernel lacks all tracepoints of a class.
    #[error("this kernel has none of the tracepoints of -e{class}, such as {tracepoint}")]
    #[diagnostic(code(plumb::trace::no_tracepoint), help("leave it out on this kernel"))]
    NoTracepoint {
        /// As on the command line.
        class: &'static str,
        /// One of them.
        tracepoint: &'static str,
    },
    /// The kernel lets only some count for the whole machine.
    #[error("-e{class} may not be counted: {source}")]
    #[diagnostic(
        code(plumb::trace::not_allowed),
        help(
            "it takes the capability CAP_PERFMON (root, or setcap cap_perfmon+ep on the program), or \
             a kernel.perf_event_paranoid of 0 or less"
        )
    )]
    NotAllowed {
        /// As on the command line.
        class: &'static str,
        /// What the kernel said.
        source: Errno,
    },
    /// There are more counters than files may be open.
    #[error("-e{class} needs {needed} open files, one per counter and processor: {source}")]
    #[diagnostic(code(plumb::trace::too_many_files), help("raise the limit: ulimit -n"))]
    TooManyFiles {
        /// As on the command line.
        class: &'static str,
        /// How many counters there are to be in all.
        needed: usize,
        /// What the kernel said.
        source: Errno,
    },
    /// Anything else that the kernel said.
    #[error("-e{class} cannot be counted: {source}")]
    #[diagnostic(code(plumb::trace::system), help("leave it out on this kernel"))]
    System {
        /// As on the command line.
        class: &'static str,
        /// What the kernel said.
        source: Errno,
    },
}

/// A class of events: the name of its option, the title of its results, its counters.
struct Class {
    option: &'static str,
    title: &'static str,
    counters: &'static [Source],
}

/// A counter: its name and where it comes from.
struct Source {
    name: &'static str,
    kind: SourceKind,
}

enum SourceKind {
    /// `system/event`, and a filter over its fields.
    Tracepoint(&'static str, Option<&'static CStr>),
    MinorFaults,
    MajorFaults,
}

const fn tracepoint(
    name: &'static str,
    event: &'static str,
    filter: Option<&'static CStr>,
) -> Source {
    Source { name, kind: SourceKind::Tracepoint(event, filter) }
}

/// Requests that a device has done. The flags of a request name a preflush first, then read or write.
const DISK_IO: Class = Class {
    option: "DISK_IO",
    title: "Disk I/O",
    counters: &[
        tracepoint("Read", "block/block_rq_complete", Some(c"rwbs ~ \"R*\"")),
        tracepoint("Write", "block/block_rq_complete", Some(c"rwbs ~ \"W*\" || rwbs ~ \"FW*\"")),
    ],
};

const HARD_FAULT: Source = Source { name: "Hard page fault", kind: SourceKind::MajorFaults };

/// Linux does not tell copies on write, fresh pages and pages in transition apart: all of them are
/// faults without I/O.
const PAGE_FAULTS: Class = Class {
    option: "MEMORY_PAGE_FAULTS",
    title: "Memory Page Faults",
    counters: &[Source { name: "Soft page fault", kind: SourceKind::MinorFaults }, HARD_FAULT],
};

const HARD_FAULTS: Class =
    Class { option: "MEMORY_HARD_FAULTS", title: "Memory Hard Faults", counters: &[HARD_FAULT] };

/// States: 1 established, 2 SYN sent, 3 SYN received, 7 closed, 10 listening; protocols: 6 TCP, 17 UDP.
/// Linux never connects again by itself.
const NETWORK: Class = Class {
    option: "NETWORK",
    title: "Network",
    counters: &[
        tracepoint(
            "Accept",
            "sock/inet_sock_set_state",
            Some(c"protocol == 6 && oldstate == 3 && newstate == 1"),
        ),
        tracepoint(
            "Connect",
            "sock/inet_sock_set_state",
            Some(c"protocol == 6 && oldstate == 2 && newstate == 1"),
        ),
        tracepoint(
            "Disconnect",
            "sock/inet_sock_set_state",
            Some(
                c"protocol == 6 && newstate == 7 && oldstate != 2 && oldstate != 3 && oldstate != 7 && oldstate != 10",
            ),
        ),
        tracepoint("Retransmit", "tcp/tcp_retransmit_skb", None),
        tracepoint("TCP/IP Send", "sock/sock_send_length", Some(c"protocol == 6 && ret > 0")),
        tracepoint("TCP/IP Receive", "sock/sock_recv_length", Some(c"protocol == 6 && ret > 0")),
        tracepoint("UDP/IP Send", "sock/sock_send_length", Some(c"protocol == 17 && ret > 0")),
        tracepoint("UDP/IP Receive", "sock/sock_recv_length", Some(c"protocol == 17 && ret > 0")),
    ],
};

/// 65536 is CLONE_THREAD. Older kernels do not say whether an exit was the last of its process.
const PROCESS: Class = Class {
    option: "PROCESS",
    title: "Process",
    counters: &[
        tracepoint("Start", "task/task_newtask", Some(c"!(clone_flags & 65536)")),
        tracepoint("End", "sched/sched_process_exit", Some(c"group_dead == 1")),
    ],
};

/// The first thread of a process counts as well.
const THREAD: Class = Class {
    option: "THREAD",
    title: "Thread",
    counters: &[
        tracepoint("Start", "task/task_newtask", None),
        tracepoint("End", "sched/sched_process_exit", None),
    ],
};

/// The classes that were asked for, in the order of spec 10.3.
fn classes(etw: &Etw) -> Result<Vec<&'static Class>, TraceError> {
    for (is_wanted, class) in [(etw.image_load, "IMAGE_LOAD"), (etw.registry, "REGISTRY")] {
        if is_wanted {
            return Err(TraceError::NoCounterpart { class });
        }
    }
    let wanted = [
        (etw.disk_io, &DISK_IO),
        (etw.memory_page_faults, &PAGE_FAULTS),
        (etw.memory_hard_faults && !etw.memory_page_faults, &HARD_FAULTS),
        (etw.network, &NETWORK),
        (etw.process, &PROCESS),
        (etw.thread, &THREAD),
    ];
    Ok(wanted.into_iter().filter_map(|(is_wanted, class)| is_wanted.then_some(class)).collect())
}

/// Whether every class that was asked for exists on Linux at all; needs no privilege.
///
/// # Errors
/// [`TraceError::NoCounterpart`].
pub fn check(etw: &Etw) -> Result<(), TraceError> {
    classes(etw).map(|_| ())
}

/// Counters that are open, and count between [`TraceSession::start`] and [`TraceSession::stop`].
#[derive(Debug)]
pub struct TraceSession {
    classes: Vec<(&'static str, Vec<OpenCounter>)>,
}

/// One counter over all processors.
#[derive(Debug)]
struct OpenCounter {
    /// As on the command line.
    class: &'static str,
    name: &'static str,
    by_cpu: Vec<Counter>,
}

impl TraceSession {
    /// Opens the counters of every class that was asked for, on all online processors. A counter that
    /// this kernel lacks is left out as long as its class has another.
    ///
    /// # Errors
    /// Classes without counterpart; tracepoints that cannot be seen; missing privilege, by the name of
    /// the capability.
    pub fn open(etw: &Etw, topology: &Topology, tree: &SystemTree) -> Result<Self, TraceError> {
        let cpus: Vec<u32> = topology.processors.iter().map(Processor::cpu).collect();
        let wanted = classes(etw)?;
        let needed = cpus.len() * wanted.iter().map(|class| class.counters.len()).sum::<usize>();
        let mut classes = Vec::new();
        for class in wanted {
            let mut counters = Vec::new();
            for source in class.counters {
                counters.extend(open(source, class.option, (&cpus, needed), tree)?);
            }
            if counters.is_empty() {
                let tracepoint = class.counters.iter().find_map(|source| match source.kind {
                    SourceKind::Tracepoint(event, _) => Some(event),
                    SourceKind::MinorFaults | SourceKind::MajorFaults => None,
                });
                let tracepoint = tracepoint.unwrap_or("page faults");
                return Err(TraceError::NoTracepoint { class: class.option, tracepoint });
            }
            classes.push((class.title, counters));
        }
        Ok(Self { classes })
    }

    /// Starts counting.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn start(&self) -> Result<(), TraceError> {
        self.each(Counter::enable)
    }

    /// Stops counting and adds up.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn stop(self) -> Result<TraceCounts, TraceError> {
        self.each(Counter::disable)?;
        let mut classes = Vec::new();
        for (title, counters) in &self.classes {
            let sums = counters.iter().map(|counter| {
                let counts = counter.by_cpu.iter().map(Counter::count);
                let sum =
                    counts.sum::<Result<u64, Errno>>().map_err(|errno| counter.error(errno))?;
                Ok((counter.name.to_owned(), sum))
            });
            classes.push(((*title).to_owned(), sums.collect::<Result<_, _>>()?));
        }
        Ok(TraceCounts { classes, lost: 0 })
    }

    /// Does something to every counter of every processor.
    fn each(&self, act: impl Fn(&Counter) -> Result<(), Errno>) -> Result<(), TraceError> {
        for counter in self.classes.iter().flat_map(|(_, counters)| counters) {
            counter.by_cpu.iter().try_for_each(&act).map_err(|errno| counter.error(errno))?;
        }
        Ok(())
    }
}

impl OpenCounter {
    fn error(&self, source: Errno) -> TraceError {
        TraceError::System { class: self.class, source }
    }
}

fn explain(source: Errno, class: &'static str, needed: usize) -> TraceError {
    match source {
        Errno::ACCESS | Errno::PERM => TraceError::NotAllowed { class, source },
        Errno::MFILE | Errno::NFILE => TraceError::TooManyFiles { class, needed, source },
        _ => TraceError::System { class, source },
    }
}

/// Opens a counter on all processors; `None` when this kernel lacks the tracepoint or a field of it.
/// `needed` is how many counters there are to be in all.
fn open(
    source: &Source,
    class: &'static str,
    (cpus, needed): (&[u32], usize),
    tree: &SystemTree,
) -> Result<Option<OpenCounter>, TraceError> {
    let (kind, filter) = match source.kind {
        SourceKind::MinorFaults => (CounterKind::MinorFaults, None),
        SourceKind::MajorFaults => (CounterKind::MajorFaults, None),
        SourceKind::Tracepoint(event, filter) => match tracepoint_number(event, class, tree)? {
            Some(number) => (CounterKind::Tracepoint(number), filter),
            None => return Ok(None),
        },
    };
    let mut by_cpu = Vec::with_capacity(cpus.len());
    for &cpu in cpus {
        let counter = match Counter::open(kind, cpu) {
            Ok(counter) => counter,
            // It went offline meanwhile, and nothing can happen on it.
            Err(Errno::NODEV) => continue,
            Err(errno) => return Err(explain(errno, class, needed)),
        };
        match filter.map_or(Ok(()), |filter| counter.filter(filter)) {
            Ok(()) => by_cpu.push(counter),
            Err(Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(explain(errno, class, needed)),
        }
    }
    Ok(Some(OpenCounter { class, name: source.name, by_cpu }))
}

/// The number of a tracepoint; `None` when this kernel lacks it.
fn tracepoint_number(
    event: &str,
    class: &'static str,
    tree: &SystemTree,
) -> Result<Option<u64>, TraceError> {
    const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let is_there = |folder: &&&str| !tree.names(format!("{folder}/events")).is_empty();
    let Some(folder) = FOLDERS.iter().find(is_there) else {
        return Err(TraceError::NoTracefs { class, folder: FOLDERS[0] });
    };
    Ok(tree.number(format!("{folder}/events/{event}/id")))
}

#[cfg(test)]
mod tests;
