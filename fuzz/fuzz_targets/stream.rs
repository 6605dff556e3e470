//! `memfleet_fuzz::stream`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memfleet_fuzz::stream(bytes));
