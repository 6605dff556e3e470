//! What every queue does, this one included.

use crate::server::fresh;

memfleet_ports::queue_conformance!(fresh);
