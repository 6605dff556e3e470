//! The client's side of a connection, and what it means when there is none.

use std::io;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, Error as Refusal};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Tls;

impl Tls {
    /// Encrypts a connection to the server that must be `name`. The error says what an operator has to change.
    pub async fn connect(
        &self,
        connection: TcpStream,
        name: &str,
    ) -> io::Result<TlsStream<TcpStream>> {
        let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(self.terms().client);
        let agreed = connector.connect(server, connection).await;
        agreed.map_err(|error| explained(&error, name))
    }
}

fn explained(error: &io::Error, name: &str) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    let message = match cause {
        Some(Refusal::InvalidCertificate(cause)) => {
            format!("the certificate of {name} {}", distrust(cause))
        }
        Some(Refusal::InvalidMessage(_)) => format!("{name} does not speak TLS: use http://"),
        Some(Refusal::AlertReceived(alert)) => complaint(*alert, name),
        _ => format!("no encrypted connection to {name}: {error}"),
    };
    io::Error::new(error.kind(), message)
}

fn distrust(cause: &CertificateError) -> String {
    match cause {
        // The latter where an authority was made anew under its old name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "was signed by an authority that is not believed here: name that authority (`tls.client_ca`, for commands `--ca`)".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired: renew it".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is for another name: add this one to it".to_owned()
        }
        other => format!("is refused: {other}"),
    }
}

/// What the server has against us.
fn complaint(alert: AlertDescription, name: &str) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            format!("{name} asks for a certificate: set `tls.certificate` and `tls.key`")
        }
        other => format!("{name} refused the connection: {other:?}"),
    }
}
