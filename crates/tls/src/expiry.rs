//! When a certificate ends.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// From when on nobody believes it, as time since 1970.
pub(crate) fn expiry(certificate: &CertificateDer<'_>) -> Option<Duration> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate.validity;
    Some(validity.not_after.to_unix_duration())
}
