//! `memfleet_fuzz::reply`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memfleet_fuzz::reply(bytes));
