//! `memfleet_fuzz::block`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memfleet_fuzz::block(bytes));
