//! Requests from outside to stop: SIGINT and SIGTERM, or Ctrl-C where there are no signals.

use std::fmt;
use std::future::Future;

/// Why a process stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Ctrl-C.
    Interrupt,
    /// A polite kill, as service managers send it.
    Terminate,
    /// The process asked itself.
    Requested,
    /// The essential task of this name ended.
    TaskEnded(&'static str),
}

impl fmt::Display for StopReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt => formatter.write_str("interrupt"),
            Self::Terminate => formatter.write_str("terminate"),
            Self::Requested => formatter.write_str("requested"),
            Self::TaskEnded(name) => write!(formatter, "task {name} ended"),
        }
    }
}

/// Where requests to stop come from; tests send their own.
pub trait Signals: Send {
    /// The next request. Never resolves when none comes.
    fn next(&mut self) -> impl Future<Output = StopReason> + Send;
}

/// The operating system's signals.
#[derive(Debug)]
pub struct SystemSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl SystemSignals {
    /// From here on signals no longer end the process by themselves.
    #[cfg(unix)]
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// From here on signals no longer end the process by themselves.
    #[cfg(not(unix))]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }
}

impl Signals for SystemSignals {
    #[cfg(unix)]
    async fn next(&mut self) -> StopReason {
        tokio::select! {
            _ = self.interrupt.recv() => StopReason::Interrupt,
            _ = self.terminate.recv() => StopReason::Terminate,
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> StopReason {
        match tokio::signal::ctrl_c().await {
            Ok(()) => StopReason::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
