//! The engine under a queue's promises, and pools on real files.
#![forbid(unsafe_code)]

mod allocations;
mod at_once;
mod bell;
mod conformance;
mod disks;
mod early_ends;
mod emulated;
mod linearizable;
mod pools;
mod scale;
mod scanning;
mod tiered;
mod verified;

use plumb_sys::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
