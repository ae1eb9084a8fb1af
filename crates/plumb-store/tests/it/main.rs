//! The store as its users meet it.
#![forbid(unsafe_code)]

mod keeping;
mod processes;
mod runs;
