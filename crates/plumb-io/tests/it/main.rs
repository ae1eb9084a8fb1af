//! Every queue keeps the promises of `IoQueue`, the ladder takes the best engine that runs, and no
//! queue allocates while it works.
#![forbid(unsafe_code)]

mod allocations;
mod conformance;
mod drive;
mod exclusive;
mod files;
mod flushes;
mod in_flight;
mod ladder;
mod memory;
mod recording;

use plumb_sys::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
