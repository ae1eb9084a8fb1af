//! A queue's memory, as its specification says.

use plumb_sys::arena::{Arena, ArenaError};
use plumb_sys::memory::large_page_size;

use crate::{Errno, OpenQueueError, QueueFacts, QueueSpec};

/// Allocates and touches all buffers, from the calling thread.
pub(crate) fn arena(spec: &QueueSpec) -> Result<Arena, OpenQueueError> {
    Arena::new(spec.depth, &spec.regions, &spec.sources, spec.placement).map_err(arena_error)
}

/// The facts of `engine` that concern its memory.
pub(crate) fn facts(engine: &str, arena: &Arena) -> QueueFacts {
    let dropped = arena
        .unseparated()
        .map(|errno| format!("separated buffers (-bsp): no address space, {}", Errno::from(errno)));
    QueueFacts {
        engine: engine.to_owned(),
        dropped: dropped.into_iter().collect(),
        buffer_separation: arena.separation(),
        ..QueueFacts::default()
    }
}

/// The error that says which memory was refused and how to get it.
pub(crate) fn arena_error(error: ArenaError) -> OpenQueueError {
    let ArenaError { bytes, errno, large_pages } = error;
    let remedy = if large_pages {
        let page = large_page_size();
        format!(
            "large pages of {page} bytes are set aside by the administrator: add {} to \
             /proc/sys/vm/nr_hugepages (sysctl vm.nr_hugepages), or leave out -l",
            bytes.div_ceil(page)
        )
    } else {
        "use fewer or smaller requests (-o, -b, -t), or raise the limit on memory (ulimit -v, cgroup)"
            .to_owned()
    };
    OpenQueueError::Memory { bytes, reason: Errno::from(errno).to_string(), remedy }
}
