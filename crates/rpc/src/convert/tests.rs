//! Round trips, and the violations that a request can have.

mod reading;
mod round_trips;
mod violations;
