//! A password, key or token: readable by the code that needs it, masked wherever it might be shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is shown in place of a secret.
const MASK: &str = "********";

/// A secret text. `Debug` and `Serialize` show a mask; only [`Secret::expose`] gives the text. As a default use an empty
/// one, or `Option<Secret>`: defaults travel through `Serialize`.
#[derive(Clone, Default)]
pub struct Secret(SecretString);

impl Secret {
    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { MASK }
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), formatter)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde's own message would quote the value.
        let text = String::deserialize(deserializer)
            .map_err(|_| D::Error::custom("invalid type, expected a secret as a string"))?;
        if text == MASK {
            return Err(D::Error::custom(
                "this is the mask shown in place of a secret, not the secret",
            ));
        }
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_in_debug_and_when_serialised() {
        let secret = Secret::from("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), format!("{MASK:?}"));
        assert_eq!(serde_json::to_string(&secret).unwrap(), format!("{MASK:?}"));
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn an_error_never_quotes_the_value() {
        let error = serde_json::from_str::<Secret>("424242").unwrap_err();
        assert!(!error.to_string().contains("424242"));
    }

    #[test]
    fn a_copied_mask_is_refused() {
        assert!(serde_json::from_str::<Secret>(&format!("{MASK:?}")).is_err());
    }
}
