//! Snapshots of heat maps.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_tier::heat::fuzz_heat(bytes));
