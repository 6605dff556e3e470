//! What every process of the fleet shares and no role should write again: configuration, telemetry, lifecycle, the gRPC
//! server shell, and [`run`], the one main. Knows no domain.

pub mod config;
pub mod lifecycle;
mod process;
pub mod server;
pub mod telemetry;

pub use process::run;

/// Any error, where only its message matters any more.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The message of an error and of everything that caused it.
pub fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
