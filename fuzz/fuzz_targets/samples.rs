//! Samples of runs, series and histories.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_study::samples::fuzz_samples(bytes));
