//! Why certificates cannot be used.

use std::io;
use std::path::PathBuf;

/// What is wrong with the files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not there, or not for this process.
    #[error("TLS: {} cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// A file holds something else.
    #[error("TLS: {} holds no {expected} in PEM", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
    /// Certificate and key are of different pairs, or of a kind that is not supported.
    #[error("TLS: the certificate {} cannot be used with its key: {cause}", path.display())]
    Pair {
        /// The file with the certificate.
        path: PathBuf,
        /// What is wrong with them.
        cause: rustls::Error,
    },
    /// A certificate of an authority is none.
    #[error("TLS: {} holds no authority that can be used: {cause}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// Nobody is believed.
    #[error(
        "TLS: the operating system has no authorities ({0}); name one in `tls.client_ca`, or a file of them in SSL_CERT_FILE"
    )]
    NoAuthorities(String),
}
