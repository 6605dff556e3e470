//! An authority of one's own, for tests.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::Files;

/// Signs certificates, and is believed by whoever has its file.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("keys can be made");
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key);
        let certificate = certificate.expect("an authority signs itself").pem();
        Self {
            issuer: Issuer::new(parameters, key),
            certificate,
        }
    }

    /// Writes its own certificate.
    pub fn write(&self, folder: &Path) -> PathBuf {
        write(folder, "authority.pem", &self.certificate)
    }

    /// Writes a certificate for these names, server and client alike, and its key; over those of before.
    pub fn issue(&self, folder: &Path, names: &[&str]) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().expect("keys can be made");
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let parameters = CertificateParams::new(names).expect("the names are names");
        let certificate = parameters.signed_by(&key, &self.issuer);
        let certificate = certificate.expect("the authority signs").pem();
        (
            write(folder, "certificate.pem", &certificate),
            write(folder, "key.pem", &key.serialize_pem()),
        )
    }

    /// All files of a process of these names.
    pub fn files(&self, folder: &Path, names: &[&str]) -> Files {
        Files {
            own: Some(self.issue(folder, names)),
            authority: Some(self.write(folder)),
        }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the folder can be written to");
    path
}
