//! The files, and what was read from them.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Error;

/// Where certificates lie, in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The certificate that this process shows, with those between it and its authority, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// The authorities that others are believed by; without any those of the operating system.
    pub authority: Option<PathBuf>,
}

/// What the files held at some moment.
#[derive(PartialEq, Eq)]
pub(crate) struct Contents {
    own: Option<(Vec<u8>, Vec<u8>)>,
    authority: Option<Vec<u8>>,
}

/// A certificate with those that vouch for it, and its key.
pub(crate) type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Files {
    pub(crate) fn read(&self) -> Result<Contents, Error> {
        let own = self.own.as_ref();
        let own = own.map(|(certificate, key)| Ok::<_, Error>((read(certificate)?, read(key)?)));
        let authority = self.authority.as_deref();
        Ok(Contents {
            own: own.transpose()?,
            authority: authority.map(read).transpose()?,
        })
    }

    /// The own certificate among `contents` and its key.
    pub(crate) fn pair(&self, contents: &Contents) -> Result<Option<Pair>, Error> {
        let (Some((certificate, key)), Some(held)) = (&self.own, &contents.own) else {
            return Ok(None);
        };
        let refused = |_| Error::Malformed {
            path: key.clone(),
            expected: "private key",
        };
        let secret = PrivateKeyDer::from_pem_slice(&held.1).map_err(refused)?;
        Ok(Some((certificates(certificate, &held.0)?, secret)))
    }

    /// The authorities among `contents`; absent where the operating system names them.
    pub(crate) fn authorities(&self, contents: &Contents) -> Result<Option<RootCertStore>, Error> {
        let (Some(path), Some(held)) = (&self.authority, &contents.authority) else {
            return Ok(None);
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path, held)? {
            roots.add(certificate).map_err(|error| Error::Authority {
                path: path.clone(),
                cause: error.to_string(),
            })?;
        }
        Ok(Some(roots))
    }
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    std::fs::read(path).map_err(|cause| Error::Unreadable {
        path: path.to_owned(),
        cause,
    })
}

fn certificates(path: &Path, held: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(held).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| Error::Malformed {
        path: path.to_owned(),
        expected: "certificate",
    })
}
