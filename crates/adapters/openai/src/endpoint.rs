//! Where the endpoint is, and what it is shown of us: nothing from the environment of the process.

use async_openai::config::Config;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

/// An address and a key.
#[derive(Debug)]
pub struct Endpoint {
    base_url: String,
    key: SecretString,
    authorization: Option<HeaderValue>,
}

impl Endpoint {
    /// A key that is no header is left out; the endpoint then says that it is missing.
    pub fn new(base_url: &str, key: Option<&SecretString>) -> Self {
        let key = key.cloned().unwrap_or_default();
        let bearer = format!("Bearer {}", key.expose_secret());
        let mut authorization = HeaderValue::from_str(&bearer).ok();
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            authorization: authorization.filter(|_| !key.expose_secret().is_empty()),
            key,
        }
    }
}

impl Config for Endpoint {
    fn headers(&self) -> HeaderMap {
        let authorization = self.authorization.clone().into_iter();
        authorization.map(|value| (AUTHORIZATION, value)).collect()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.base_url
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}
