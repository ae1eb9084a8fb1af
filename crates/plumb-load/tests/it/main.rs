//! Whole runs through the library.
#![forbid(unsafe_code)]

mod runs;
mod watcher;
