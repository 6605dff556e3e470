//! The address of a service, which may hold a password: shown without it.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is shown in place of a password.
const MASK: &str = "********";

/// A URL. `Debug`, `Display` and `Serialize` mask the password in it; only [`ServiceUrl::expose`] gives all of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceUrl(String);

impl ServiceUrl {
    /// The URL with its password, for whoever connects.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What stands before the first colon, for example `postgres`.
    pub fn scheme(&self) -> &str {
        self.0.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// `scheme://user:password@host…`: where the password begins and ends.
    fn password(&self) -> Option<(usize, usize)> {
        let begin = self.0.find("://")? + 3;
        let authority = self.0[begin..].split(['/', '?', '#']).next()?;
        let end = authority.rfind('@')?;
        let colon = authority[..end].find(':')?;
        Some((begin + colon + 1, begin + end))
    }
}

impl From<&str> for ServiceUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl From<String> for ServiceUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.password() {
            Some((begin, end)) => {
                write!(formatter, "{}{MASK}{}", &self.0[..begin], &self.0[end..])
            }
            None => formatter.write_str(&self.0),
        }
    }
}

impl fmt::Debug for ServiceUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

impl Serialize for ServiceUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ServiceUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde's own message would quote the value.
        let text = String::deserialize(deserializer)
            .map_err(|_| D::Error::custom("invalid type, expected a URL as a string"))?;
        if text.contains(MASK) {
            return Err(D::Error::custom(
                "this holds the mask shown in place of a password, not the password",
            ));
        }
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("sqlite:memfleet.db", "sqlite:memfleet.db"),
            ("postgres://ada@db:5432/m", "postgres://ada@db:5432/m"),
            ("postgres://ada:s3cr@t@db/m", "postgres://ada:********@db/m"),
            ("nats://a:b@one:4222", "nats://a:********@one:4222"),
            ("postgres://db/m?x=a:b@c", "postgres://db/m?x=a:b@c"),
        ] {
            let url = ServiceUrl::from(url);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("\"{shown}\""));
            assert_eq!(serde_json::to_string(&url).unwrap(), format!("\"{shown}\""));
        }
    }

    #[test]
    fn the_mask_is_no_password() {
        let masked = serde_json::from_str::<ServiceUrl>("\"postgres://a:********@db\"");
        assert!(masked.unwrap_err().to_string().contains("mask"));
    }
}
