//! What is kept beside pools: their list, pins, curves, wishes, events, counters.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_tier::pool::fuzz_files(bytes));
