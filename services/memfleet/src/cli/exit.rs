//! How a command ends: the exit codes of docs/cli.md, and the one line that says what went wrong and how to mend it.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use memfleet_domain::{Fault, FaultKind};
use memfleet_runtime::{BoxError, config, describe};
use serde_json::json;

/// The exit codes, as docs/cli.md lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Something broke: a defect, damaged data, a file that cannot be read or written.
    Failed = 1,
    /// The command line, the configuration or a field of the request is wrong; the same call will fail again.
    Usage = 2,
    /// What the command names does not exist.
    NotFound = 3,
    /// In conflict with what is there, or not confirmed.
    Refused = 4,
    /// No node answers, it is overloaded, or time ran out; a later try may work.
    Unavailable = 5,
    /// The API key is missing, unknown or does not allow this.
    Denied = 6,
    /// Ctrl-C stopped it; what it had is written. Shells report the same of a process that the
    /// signal ended.
    Interrupted = 130,
    /// SIGTERM stopped it; what it had is written. Shells report the same of a process that the
    /// signal ended.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<FaultKind> for Exit {
    fn from(kind: FaultKind) -> Self {
        match kind {
            FaultKind::InvalidArgument => Self::Usage,
            FaultKind::NotFound => Self::NotFound,
            FaultKind::AlreadyExists | FaultKind::FailedPrecondition => Self::Refused,
            FaultKind::ResourceExhausted | FaultKind::Unavailable | FaultKind::DeadlineExceeded => {
                Self::Unavailable
            }
            FaultKind::Unauthenticated | FaultKind::PermissionDenied => Self::Denied,
            FaultKind::DataLoss | FaultKind::Internal => Self::Failed,
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The node refused or could not.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] config::Error),
    /// An argument or an input file is wrong.
    #[error("{0}")]
    Usage(String),
    /// Not confirmed, or in conflict with what is there.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The answer cannot be printed.
    #[error("the answer cannot be written: {0}")]
    Output(#[from] io::Error),
    /// Anything else.
    #[error("{}", describe(&**.0))]
    Failed(#[from] BoxError),
}

impl Error {
    /// A file that cannot be read or written.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }

    /// The exit code. A reader that went away (`memfleet … | head`) has what it wanted.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Fault(fault) => fault.kind.into(),
            Self::Configuration(_) | Self::Usage(_) => Exit::Usage,
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::NotFound,
            Self::Refused(_) => Exit::Refused,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::File { .. } | Self::Output(_) | Self::Failed(_) => Exit::Failed,
        }
    }

    /// Says on standard error what went wrong, as one line, or as one JSON document.
    pub fn report(&self, json: bool) {
        if self.exit() == Exit::Done {
            return;
        }
        if json {
            eprintln!("{}", self.to_json());
        } else {
            eprintln!("error: {}", self.to_line());
        }
    }

    fn to_line(&self) -> String {
        let Self::Fault(fault) = self else {
            return self.to_string();
        };
        match hint(fault) {
            Some(hint) => format!("{fault} ({}); {hint}", fault.reason),
            None => format!("{fault} ({})", fault.reason),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let mut error = json!({ "code": self.exit() as u8, "message": self.to_string() });
        if let Self::Fault(fault) = self {
            error["reason"] = fault.reason.as_ref().into();
            error["fields"] = fault
                .fields
                .iter()
                .map(|violation| json!({ "field": violation.field, "description": violation.description }))
                .collect();
            error["metadata"] = json!(fault.metadata);
        }
        json!({ "error": error })
    }
}

/// What to do about a fault, where its message does not say it already.
fn hint(fault: &Fault) -> Option<String> {
    if fault.reason == "CONNECTION_FAILED" {
        return Some("start one with `memfleet up`, or name another with --server".to_owned());
    }
    Some(match fault.kind {
        FaultKind::NotFound if fault.message.starts_with("space") => {
            "`memfleet spaces` lists what is there".to_owned()
        }
        FaultKind::ResourceExhausted | FaultKind::Unavailable => match fault.retry_after {
            Some(wait) => {
                // To the full second: nobody waits by the nanosecond.
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                format!("try again in {}", config::HumanDuration::seconds(seconds))
            }
            None => "try again later".to_owned(),
        },
        FaultKind::DeadlineExceeded => "give it more time, for example --timeout 2m".to_owned(),
        FaultKind::Unauthenticated => "give a key with --api-key or MEMFLEET_API_KEY".to_owned(),
        FaultKind::Internal | FaultKind::DataLoss => "the log of the node says more".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let error = Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(error.exit(), Exit::Done);
    }

    #[test]
    fn faults_end_in_the_documented_codes() {
        let code = |fault: Fault| Error::from(fault).exit() as u8;
        assert_eq!(code(Fault::invalid("k", "must be at least 1")), 2);
        assert_eq!(code(Fault::not_found("space `ada`")), 3);
        assert_eq!(code(Fault::new(FaultKind::AlreadyExists, "X", "x")), 4);
        assert_eq!(code(Fault::deadline("the store")), 5);
        assert_eq!(code(Fault::new(FaultKind::PermissionDenied, "X", "x")), 6);
        assert_eq!(code(Fault::internal("x")), 1);
    }

    #[test]
    fn the_line_names_field_reason_and_fix() {
        let fault = Fault::new(
            FaultKind::ResourceExhausted,
            "QUEUE_FULL",
            "9 turns are waiting",
        )
        .retry_after(Duration::from_secs(2));
        assert_eq!(
            Error::from(fault).to_line(),
            "9 turns are waiting (QUEUE_FULL); try again in 2s"
        );
        let fault = Fault::invalid("k", "must be at least 1");
        assert_eq!(
            Error::from(fault).to_line(),
            "k: must be at least 1 (INVALID_FIELD)"
        );
    }

    #[test]
    fn a_node_that_is_not_there_can_be_started() {
        let fault = Fault::new(
            FaultKind::Unavailable,
            "CONNECTION_FAILED",
            "no memfleet node answers at http://[::1]:1",
        );
        let error = Error::from(fault);
        assert!(error.to_line().contains("`memfleet up`"));
        assert_eq!(error.exit(), Exit::Unavailable);
    }

    #[test]
    fn json_errors_carry_code_reason_and_fields() {
        let json = Error::from(Fault::invalid("k", "must be at least 1")).to_json();
        assert_eq!(json["error"]["code"], 2);
        assert_eq!(json["error"]["reason"], "INVALID_FIELD");
        assert_eq!(json["error"]["fields"][0]["field"], "k");
    }

    #[test]
    fn the_codes_are_those_of_the_documentation() {
        let documentation = include_str!("../../../../docs/cli.md");
        for exit in [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::NotFound,
            Exit::Refused,
            Exit::Unavailable,
            Exit::Denied,
            Exit::Interrupted,
            Exit::Terminated,
        ] {
            assert!(
                documentation.contains(&format!("| {} | `{exit:?}` |", exit as u8)),
                "{exit:?}"
            );
        }
    }
}
