//! `memfleet_fuzz::request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memfleet_fuzz::request(bytes));
