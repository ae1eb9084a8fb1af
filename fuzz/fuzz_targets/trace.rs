//! Traces of host I/O, every format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_tier::trace::fuzz_trace(bytes));
