//! What a token says of its bearer.

use chrono::DateTime;
use memfleet_domain::Fault;
use memfleet_domain::access::{Grant, Right, Rights, SpacePattern};
use memfleet_domain::ids::TenantId;
use memfleet_ports::access::{Caller, Proof};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Options, refused};

/// Before each of our scopes: the claim may hold others'.
const PREFIX: &str = "memfleet:";
/// Before the name of a space.
const SPACE: &str = "space:";

/// The claims of a token that was verified.
#[derive(Deserialize)]
pub struct Claims {
    exp: i64,
    #[serde(default)]
    sub: String,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Claims {
    /// Who that is.
    pub fn caller(self, options: &Options) -> Result<Caller, Fault> {
        let tenant = self.text(&options.tenant_claim);
        let tenant = tenant.and_then(|name| TenantId::new(name).ok());
        let tenant = tenant.ok_or_else(|| refused("names no tenant (`auth.jwt.tenant_claim`)"))?;
        let end = DateTime::from_timestamp(self.exp, 0);
        let end = end.ok_or_else(|| refused("has an end that is no time"))?;
        Ok(Caller {
            tenant,
            name: format!("token:{}", subject(&self.sub)),
            grant: grant(&self.scopes(&options.scope_claim))?,
            is_operator: false,
            calls_per_minute: None,
            proof: Proof::Until(end),
        })
    }

    fn text(&self, claim: &str) -> Option<&str> {
        match claim {
            "sub" => Some(&self.sub),
            claim => self.others.get(claim)?.as_str(),
        }
    }

    fn scopes(&self, claim: &str) -> Vec<&str> {
        match self.others.get(claim) {
            Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// Most characters of a subject that a log should hold.
const SUBJECT: usize = 128;
/// Hexadecimal digits of a hash that takes the place of the rest.
const DIGITS: usize = 32;

/// Name of a subject for logs: itself where that is short and printable, else its beginning and a hash of all of it, so that two subjects never
/// share a name.
fn subject(sub: &str) -> String {
    let visible: String = sub
        .chars()
        .filter(|character| !character.is_control())
        .collect();
    if visible == sub && visible.chars().count() <= SUBJECT {
        return visible;
    }
    let beginning: String = visible.chars().take(SUBJECT - DIGITS - 1).collect();
    let hash = blake3::hash(sub.as_bytes()).to_hex();
    format!("{beginning}~{}", &hash[..DIGITS])
}

/// Without any of our scopes nothing is allowed. A space that cannot be read must not widen the grant to all of them.
fn grant(scopes: &[&str]) -> Result<Grant, Fault> {
    let ours = scopes.iter().filter_map(|scope| scope.strip_prefix(PREFIX));
    let (mut rights, mut spaces) = (Vec::<Right>::new(), Vec::new());
    for scope in ours {
        match scope.strip_prefix(SPACE) {
            Some(space) => spaces.push(
                SpacePattern::new(space).map_err(|_| refused("names a space that is no name"))?,
            ),
            None => rights.extend(scope.parse::<Right>()),
        }
    }
    Ok(Grant {
        rights: Rights::from_iter(rights),
        spaces,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_subjects_have_names_of_their_own() {
        assert_eq!(subject("ada"), "ada");
        let [one, other] = ["1", "2"].map(|end| subject(&format!("{}{end}", "x".repeat(200))));
        assert_ne!(one, other);
        for name in [&one, &other] {
            assert_eq!(name.chars().count(), SUBJECT);
        }
        assert_eq!(subject(&"ü".repeat(128)), "ü".repeat(128));
        assert_ne!(subject("a\u{7}da"), subject("ada"));
        assert!(!subject("a\u{7}da").contains('\u{7}'));
    }
}
