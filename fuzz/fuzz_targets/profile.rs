//! XML profiles.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_load::profile::xml::fuzz_profile(bytes));
