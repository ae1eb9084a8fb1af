//! Results that are compared.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_study::record::fuzz_record(bytes));
