//! Command lines of the load generator: tokens separated by newlines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_load::profile::flags::fuzz_command_line(bytes));
