//! Keys, quotas and usage.

use std::time::Duration;

use memfleet_domain::access::{Grant, Quota, Right, Rights, SpacePattern, Usage};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::admin::{Account, Issued, ModelUse, NewKey, Rotation};
use memfleet_ports::keys::Key;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::usage::Amount;

use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

impl From<Right> for proto::Right {
    fn from(right: Right) -> Self {
        match right {
            Right::Read => Self::Read,
            Right::Write => Self::Write,
            Right::Admin => Self::Admin,
        }
    }
}

impl Fields {
    fn rights(&mut self, rights: Vec<i32>) -> Option<Rights> {
        let rights = self.each("rights", rights, limits::RIGHTS, |fields, number| {
            match proto::Right::try_from(number) {
                Ok(proto::Right::Read) => Some(Right::Read),
                Ok(proto::Right::Write) => Some(Right::Write),
                Ok(proto::Right::Admin) => Some(Right::Admin),
                _ => fields.refuse("", format!("{number} is not a right; see the enum Right")),
            }
        });
        Some(self.some("rights", rights)?.into_iter().collect())
    }

    fn grant(&mut self, rights: Vec<i32>, spaces: Vec<String>) -> Option<Grant> {
        let rights = self.rights(rights);
        let spaces = self.names("spaces", spaces, limits::SPACES, SpacePattern::new);
        Some(Grant {
            rights: rights?,
            spaces: spaces?,
        })
    }

    /// A tenant; an empty name is the caller's own.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    pub(super) fn tenant(&mut self, name: String) -> Option<Option<TenantId>> {
        self.optional_name("tenant", name, TenantId::new)
    }

    fn key_id(&mut self, field: &str, text: &str) -> Option<KeyId> {
        self.id(field, text, "the id of a key")
    }
}

fn numbers(rights: Rights) -> Vec<i32> {
    rights
        .iter()
        .map(|right| proto::Right::from(right).into())
        .collect()
}

fn limit<N: PartialEq + From<u8>>(number: N) -> Option<N> {
    (number != N::from(0)).then_some(number)
}

impl From<Key> for proto::Key {
    fn from(key: Key) -> Self {
        Self {
            id: key.id.to_string(),
            tenant: key.tenant.into(),
            label: key.label,
            rights: numbers(key.grant.rights),
            spaces: key.grant.spaces.into_iter().map(Into::into).collect(),
            operator: key.is_operator,
            calls_per_minute: key.calls_per_minute.unwrap_or_default(),
            created_at: Some(time(key.created_at)),
            expires_at: key.expires_at.map(time),
            last_used_at: key.last_used_at.map(time),
            revoked_at: key.revoked_at.map(time),
            replaced_by: key.replaced_by.map(|id| id.to_string()).unwrap_or_default(),
        }
    }
}

impl Checked for proto::Key {
    type Value = Key;

    fn check(self, fields: &mut Fields) -> Option<Key> {
        let id = fields.key_id("id", &self.id);
        let tenant = fields.name("tenant", self.tenant, TenantId::new);
        let grant = fields.grant(self.rights, self.spaces);
        let created_at = fields.message("created_at", self.created_at);
        let expires_at = fields.optional_time("expires_at", self.expires_at);
        let last_used_at = fields.optional_time("last_used_at", self.last_used_at);
        let revoked_at = fields.optional_time("revoked_at", self.revoked_at);
        let replaced_by = match self.replaced_by.as_str() {
            "" => Some(None),
            id => fields.key_id("replaced_by", id).map(Some),
        };
        Some(Key {
            id: id?,
            tenant: tenant?,
            label: self.label,
            grant: grant?,
            is_operator: self.operator,
            calls_per_minute: limit(self.calls_per_minute),
            created_at: created_at?,
            expires_at: expires_at?,
            last_used_at: last_used_at?,
            revoked_at: revoked_at?,
            replaced_by: replaced_by?,
        })
    }
}

impl Checked for proto::CreateKeyRequest {
    type Value = NewKey;

    fn check(self, fields: &mut Fields) -> Option<NewKey> {
        let tenant = fields.tenant(self.tenant);
        let label = fields.text("label", self.label, limits::LABEL);
        let grant = fields.grant(self.rights, self.spaces);
        let expires_at = fields.optional_time("expires_at", self.expires_at);
        Some(NewKey {
            tenant: tenant?,
            label: label?,
            grant: grant?,
            is_operator: self.operator,
            calls_per_minute: limit(self.calls_per_minute),
            expires_at: expires_at?,
        })
    }
}

impl From<NewKey> for proto::CreateKeyRequest {
    fn from(key: NewKey) -> Self {
        Self {
            tenant: named(key.tenant),
            label: key.label,
            rights: numbers(key.grant.rights),
            spaces: key.grant.spaces.into_iter().map(Into::into).collect(),
            operator: key.is_operator,
            calls_per_minute: key.calls_per_minute.unwrap_or_default(),
            expires_at: key.expires_at.map(time),
        }
    }
}

/// A tenant on the wire.
pub(crate) fn named(tenant: Option<TenantId>) -> String {
    tenant.map(String::from).unwrap_or_default()
}

macro_rules! issued {
    ($($message:ident),*) => {$(
        impl From<Issued> for proto::$message {
            fn from(issued: Issued) -> Self {
                Self {
                    key: Some(issued.key.into()),
                    secret: issued.secret,
                }
            }
        }

        impl Checked for proto::$message {
            type Value = Issued;

            fn check(self, fields: &mut Fields) -> Option<Issued> {
                Some(Issued {
                    key: fields.message("key", self.key)?,
                    secret: self.secret,
                })
            }
        }
    )*};
}

issued!(CreateKeyResponse, RotateKeyResponse);

impl Checked for proto::ListKeysRequest {
    type Value = (Option<TenantId>, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tenant = fields.tenant(self.tenant);
        let page = fields.page(self.page_size, self.page_token);
        Some((tenant?, page?))
    }
}

impl From<Page<Key>> for proto::ListKeysResponse {
    fn from(page: Page<Key>) -> Self {
        let (keys, next_page_token) = parts(page);
        Self {
            keys,
            next_page_token,
        }
    }
}

impl Checked for proto::ListKeysResponse {
    type Value = Page<Key>;

    fn check(self, fields: &mut Fields) -> Option<Page<Key>> {
        Some(Page {
            items: fields.messages("keys", self.keys, usize::MAX)?,
            next: page_token(self.next_page_token),
        })
    }
}

impl Checked for proto::RevokeKeyRequest {
    type Value = (Option<TenantId>, KeyId);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tenant = fields.tenant(self.tenant);
        let id = fields.key_id("id", &self.id);
        Some((tenant?, id?))
    }
}

impl From<Key> for proto::RevokeKeyResponse {
    fn from(key: Key) -> Self {
        Self {
            key: Some(key.into()),
        }
    }
}

impl Checked for proto::RevokeKeyResponse {
    type Value = Key;

    fn check(self, fields: &mut Fields) -> Option<Key> {
        fields.message("key", self.key)
    }
}

impl From<Rotation> for proto::RotateKeyRequest {
    fn from(rotation: Rotation) -> Self {
        let grace = rotation.grace.map(|grace| prost_types::Duration {
            seconds: grace.as_secs().cast_signed(),
            nanos: grace.subsec_nanos().cast_signed(),
        });
        Self {
            tenant: named(rotation.tenant),
            id: rotation.id.to_string(),
            grace,
        }
    }
}

impl Checked for proto::RotateKeyRequest {
    type Value = Rotation;

    fn check(self, fields: &mut Fields) -> Option<Rotation> {
        let tenant = fields.tenant(self.tenant);
        let id = fields.key_id("id", &self.id);
        let grace = match self.grace.map(Duration::try_from) {
            None => Some(None),
            Some(Ok(grace)) if grace <= limits::GRACE => Some(Some(grace)),
            Some(_) => fields.refuse("grace", "must lie between 0 and 90 days"),
        };
        Some(Rotation {
            tenant: tenant?,
            id: id?,
            grace: grace?,
        })
    }
}

impl Checked for proto::ListTenantsRequest {
    type Value = PageRequest;

    fn check(self, fields: &mut Fields) -> Option<PageRequest> {
        fields.page(self.page_size, self.page_token)
    }
}

impl From<Page<TenantId>> for proto::ListTenantsResponse {
    fn from(page: Page<TenantId>) -> Self {
        let (tenants, next_page_token) = parts(page);
        Self {
            tenants,
            next_page_token,
        }
    }
}

impl Checked for proto::ListTenantsResponse {
    type Value = Page<TenantId>;

    fn check(self, fields: &mut Fields) -> Option<Page<TenantId>> {
        Some(Page {
            items: fields.names("tenants", self.tenants, usize::MAX, TenantId::new)?,
            next: page_token(self.next_page_token),
        })
    }
}

impl From<Quota> for proto::Quota {
    fn from(quota: Quota) -> Self {
        Self {
            calls_per_minute: quota.calls_per_minute.unwrap_or_default(),
            turns: quota.turns.unwrap_or_default(),
            spaces: quota.spaces.unwrap_or_default(),
        }
    }
}

impl Checked for proto::Quota {
    type Value = Quota;

    fn check(self, _: &mut Fields) -> Option<Quota> {
        Some(Quota {
            calls_per_minute: limit(self.calls_per_minute),
            turns: limit(self.turns),
            spaces: limit(self.spaces),
        })
    }
}

impl From<Account> for proto::Usage {
    fn from(account: Account) -> Self {
        Self {
            tenant: account.tenant.into(),
            spaces: account.usage.spaces,
            turns: account.usage.turns,
            bytes: account.usage.bytes,
            exchanges: account.usage.exchanges,
            injections: account.usage.injections,
            quota: Some(account.quota.into()),
            language_models: account
                .language_models
                .into_iter()
                .map(Into::into)
                .collect(),
        }
    }
}

impl Checked for proto::Usage {
    type Value = Account;

    fn check(self, fields: &mut Fields) -> Option<Account> {
        let tenant = fields.name("tenant", self.tenant, TenantId::new);
        let quota = fields.message_or_default("quota", self.quota);
        let language_models = fields.messages("language_models", self.language_models, usize::MAX);
        Some(Account {
            tenant: tenant?,
            usage: Usage {
                spaces: self.spaces,
                turns: self.turns,
                bytes: self.bytes,
                exchanges: self.exchanges,
                injections: self.injections,
            },
            quota: quota?,
            language_models: language_models?,
        })
    }
}

macro_rules! usage {
    ($($message:ident),*) => {$(
        impl From<Account> for proto::$message {
            fn from(account: Account) -> Self {
                Self {
                    usage: Some(account.into()),
                }
            }
        }

        impl Checked for proto::$message {
            type Value = Account;

            fn check(self, fields: &mut Fields) -> Option<Account> {
                fields.message("usage", self.usage)
            }
        }
    )*};
}

usage!(GetUsageResponse, SetQuotaResponse);

impl From<ModelUse> for proto::ModelUse {
    fn from(of: ModelUse) -> Self {
        Self {
            day: of.day.to_string(),
            calls: of.used.calls,
            tokens: of.used.tokens,
            micros: of.used.micros,
        }
    }
}

impl Checked for proto::ModelUse {
    type Value = ModelUse;

    fn check(self, fields: &mut Fields) -> Option<ModelUse> {
        let day = match self.day.parse() {
            Ok(day) => Some(day),
            Err(_) => fields.refuse("day", "must be a day such as `2026-01-31`"),
        };
        Some(ModelUse {
            day: day?,
            used: Amount {
                calls: self.calls,
                tokens: self.tokens,
                micros: self.micros,
            },
        })
    }
}

impl Checked for proto::GetUsageRequest {
    type Value = (Option<TenantId>, TimeRange);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tenant = fields.tenant(self.tenant);
        let time = fields.message_or_default("time", self.time);
        Some((tenant?, time?))
    }
}

impl Checked for proto::SetQuotaRequest {
    type Value = (TenantId, Quota);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tenant = fields.name("tenant", self.tenant, TenantId::new);
        let quota = fields.message_or_default("quota", self.quota);
        Some((tenant?, quota?))
    }
}
