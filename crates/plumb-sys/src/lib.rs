//! Every `unsafe` block of Plumb: rings, buffers, mappings, clocks, and the system calls that rustix
//! does not wrap.
//!
//! Only safe functions leave this crate: what the kernel may touch is owned by the type that hands it
//! to the kernel, so buffers and descriptors outlive every I/O.

pub mod aio;
pub mod allocations;
pub mod arena;
pub mod bus_error;
pub mod cache_lines;
mod call;
pub mod completions;
pub mod crc32c;
pub mod device;
pub mod fifo;
pub mod mapping;
pub mod memory;
pub mod monotonic;
pub mod nvme;
pub mod open_flags;
pub mod perf;
pub mod pool;
pub mod priority;
pub mod ring;
pub mod seccomp;
pub mod sleeps;
pub mod tsc;
pub mod words;
