//! `memfleet_fuzz::patch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memfleet_fuzz::patch(bytes));
