//! The `plumb` command: reads the command line, calls the libraries, prints.
#![forbid(unsafe_code)]

fn main() {}
