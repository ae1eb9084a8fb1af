//! What a pool's disks hold: superblocks, configuration, journal, logs, pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_tier::fuzz_format(bytes));
