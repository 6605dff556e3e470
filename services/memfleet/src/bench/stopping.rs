//! Ctrl-C and SIGTERM while something is measured: the first has it write what it has, the second
//! ends the process.

use std::io;
use std::sync::{Arc, OnceLock};

use memfleet_runtime::lifecycle::{Signals, StopReason, SystemSignals};
use tokio_util::sync::CancellationToken;

use crate::cli::Exit;

/// Request to stop, once there is one.
#[derive(Debug, Clone, Default)]
pub struct StopRequest {
    token: CancellationToken,
    exit: Arc<OnceLock<Exit>>,
}

impl StopRequest {
    /// Listens to the signals of the process, on the runtime that calls.
    pub fn listen() -> io::Result<Self> {
        let mut signals = SystemSignals::listen()?;
        let request = Self::default();
        let heard = request.clone();
        tokio::spawn(async move {
            let exit = exit(signals.next().await);
            eprintln!("stopping: what is measured is written; a second time ends it at once");
            heard.stop(exit);
            let exit = self::exit(signals.next().await);
            std::process::exit(exit as i32);
        });
        Ok(request)
    }

    fn stop(&self, exit: Exit) {
        self.exit.get_or_init(|| exit);
        self.token.cancel();
    }

    /// The exit code, where it was asked to stop.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.get().copied()
    }

    /// Does work until it is asked to stop; nothing where it was.
    pub async fn or_done<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.token.run_until_cancelled(work).await
    }
}

fn exit(reason: StopReason) -> Exit {
    match reason {
        StopReason::Interrupt => Exit::Interrupted,
        _ => Exit::Terminated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_is_asked_to_stop_is_left() {
        let request = StopRequest::default();
        assert_eq!(request.or_done(async { 7 }).await, Some(7));
        assert_eq!(request.exit(), None);
        request.stop(Exit::Terminated);
        request.stop(Exit::Interrupted);
        assert_eq!(request.or_done(std::future::pending::<()>()).await, None);
        assert_eq!(request.exit(), Some(Exit::Terminated));
    }
}
