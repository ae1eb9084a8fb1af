//! Results of other runs, as `plumb convert` reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_load::convert::fuzz_result(bytes));
