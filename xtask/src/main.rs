//! The project's own chores: `cargo xtask check` is the whole gate.
#![forbid(unsafe_code)]

fn main() {}
