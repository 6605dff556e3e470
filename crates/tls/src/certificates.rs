//! What a process shows and believes, kept as current as the files.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::expiry::expiry;
use crate::files::{Contents, Pair};
use crate::{Error, Files};

/// Pause between two looks at the files.
const LOOK: Duration = Duration::from_secs(5);

/// HTTP/2, all that is spoken here.
const PROTOCOL: &[u8] = b"h2";

/// The certificates of a process. Cheap to clone; all clones change together.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    files: Files,
    current: RwLock<Current>,
}

struct Current {
    contents: Contents,
    terms: Terms,
}

/// What connections are made on.
#[derive(Clone)]
pub(crate) struct Terms {
    /// As a server of whoever calls; where there is an own certificate.
    pub anyone: Option<Arc<ServerConfig>>,
    /// As a server of callers with a certificate; where there is an authority as well.
    pub certified: Option<Arc<ServerConfig>>,
    /// As a client.
    pub client: Arc<ClientConfig>,
    /// When the own certificate ends, since 1970.
    expires: Option<Duration>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Tls").field(&self.0.files).finish()
    }
}

impl Tls {
    /// Reads the files. What they hold must be usable now.
    pub fn load(files: Files) -> Result<Self, Error> {
        let contents = files.read()?;
        let terms = Terms::new(&files, &contents)?;
        terms.record();
        let current = RwLock::new(Current { contents, terms });
        Ok(Self(Arc::new(Shared { files, current })))
    }

    /// Looks at the files for as long as it is polled.
    pub async fn watch(&self) {
        let mut reported = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let tls = self.clone();
            let looked = tokio::task::spawn_blocking(move || tls.reload()).await;
            let looked = looked.expect("looking does not panic");
            let trouble = looked.err().map(|error| error.to_string());
            if let Some(error) = trouble.as_ref().filter(|_| trouble != reported) {
                tracing::error!(error, "the certificates from before stay in use");
            }
            reported = trouble;
        }
    }

    /// Takes what the files hold now and says whether it is something new. What cannot be used changes nothing.
    pub fn reload(&self) -> Result<bool, Error> {
        let renewed = self.renew();
        if renewed.is_err() {
            metrics::counter!("memfleet_tls_reload_failures_total").increment(1);
        }
        self.terms().record();
        renewed
    }

    fn renew(&self) -> Result<bool, Error> {
        let contents = self.0.files.read()?;
        let current = self.0.current.read();
        if current.unwrap_or_else(PoisonError::into_inner).contents == contents {
            return Ok(false);
        }
        let terms = Terms::new(&self.0.files, &contents)?;
        let mut current = self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Current { contents, terms };
        tracing::info!("certificates were read again");
        Ok(true)
    }

    pub(crate) fn terms(&self) -> Terms {
        let current = self.0.current.read();
        current
            .unwrap_or_else(PoisonError::into_inner)
            .terms
            .clone()
    }
}

impl Terms {
    fn new(files: &Files, contents: &Contents) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pair = files.pair(contents)?;
        let authorities = files.authorities(contents)?.map(Arc::new);
        let refused = |cause| Error::Pair {
            path: files
                .own
                .as_ref()
                .map(|own| own.0.clone())
                .unwrap_or_default(),
            cause,
        };
        let serving = |verified: Option<&Arc<RootCertStore>>| match &pair {
            Some(pair) => server(&provider, pair, verified.cloned()).map(Some),
            None => Ok(None),
        };
        let certified = authorities.as_ref().map(|roots| serving(Some(roots)));
        Ok(Self {
            anyone: serving(None).map_err(refused)?,
            certified: certified.transpose().map_err(refused)?.flatten(),
            expires: pair.as_ref().and_then(|(chain, _)| expiry(chain.first()?)),
            client: client(
                &provider,
                authorities.map_or_else(system, Ok)?,
                pair.as_ref(),
            )
            .map_err(refused)?,
        })
    }

    fn record(&self) {
        if let Some(expires) = self.expires {
            metrics::gauge!("memfleet_tls_certificate_expires_timestamp_seconds")
                .set(expires.as_secs_f64());
        }
    }
}

/// A server that shows the certificate, and asks callers for one where they are to be `verified`.
fn server(
    provider: &Arc<CryptoProvider>,
    (chain, key): &Pair,
    verified: Option<Arc<RootCertStore>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match verified {
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
            let verifier = verifier.build();
            builder.with_client_cert_verifier(
                verifier.map_err(|error| rustls::Error::General(error.to_string()))?,
            )
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain.clone(), key.clone_key())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// A client that believes the authorities, and shows the certificate to whoever asks for it.
fn client(
    provider: &Arc<CryptoProvider>,
    authorities: Arc<RootCertStore>,
    pair: Option<&Pair>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(authorities);
    let mut config = match pair {
        Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// The authorities of the operating system; the variable `SSL_CERT_FILE` names others.
fn system() -> Result<Arc<RootCertStore>, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let causes: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(Error::NoAuthorities(causes.join(", ")));
    }
    Ok(Arc::new(roots))
}

#[cfg(test)]
mod tests;
