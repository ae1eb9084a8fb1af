//! Tables of curves.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_study::table::fuzz_table(bytes));
