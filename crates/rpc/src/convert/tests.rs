//! Round trips, and the violations that a request can have.

mod round_trips;
mod violations;
