//! What a device holds, as it is looked at before the first write.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plumb_io::contents::fuzz_device(bytes));
