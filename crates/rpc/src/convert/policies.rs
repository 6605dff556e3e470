//! Policies and documents of a tenant.

use memfleet_domain::ids::{SettingName, SpaceId};
use memfleet_domain::policy::Policy;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::policies::{Listing, NewDocument, PolicyInForce, policy_key};
use memfleet_ports::settings::{BODY_LIMIT, Setting, SettingKey, SettingKind};

use super::page::{page_token, parts};
use super::time::time;
use super::words::number;
use super::{Checked, Fields};
use crate::proto;

fn text(space: Option<SpaceId>) -> String {
    space.map(String::from).unwrap_or_default()
}

/// The policy to set, of whom, and the version that it is to follow.
pub(crate) type NewPolicy = (Option<SpaceId>, Policy, Option<u32>);

impl From<NewPolicy> for proto::PutPolicyRequest {
    fn from((space, policy, expected_version): NewPolicy) -> Self {
        Self {
            space: text(space),
            policy: Some(policy.into()),
            expected_version,
        }
    }
}

impl Checked for proto::PutPolicyRequest {
    type Value = NewPolicy;

    fn check(self, fields: &mut Fields) -> Option<NewPolicy> {
        let space = fields.optional_name("space", self.space, SpaceId::new);
        let policy = fields.message("policy", self.policy);
        Some((space?, policy?, self.expected_version))
    }
}

/// Answers that are a version and nothing else.
macro_rules! versions {
    ($($message:ident)*) => {
        $(
            impl From<u32> for proto::$message {
                fn from(version: u32) -> Self {
                    Self { version }
                }
            }

            impl Checked for proto::$message {
                type Value = u32;

                fn check(self, _: &mut Fields) -> Option<u32> {
                    Some(self.version)
                }
            }
        )*
    };
}

versions! { PutPolicyResponse PutDocumentResponse RemoveDocumentResponse }

impl Checked for proto::GetPolicyRequest {
    type Value = Option<SpaceId>;

    fn check(self, fields: &mut Fields) -> Option<Option<SpaceId>> {
        fields.optional_name("space", self.space, SpaceId::new)
    }
}

impl From<PolicyInForce> for proto::GetPolicyResponse {
    fn from(policy: PolicyInForce) -> Self {
        Self {
            in_force: Some(policy.in_force.into()),
            of_node: Some(policy.of_node.into()),
            of_tenant: Some(policy.of_tenant.into()),
            tenant_version: policy.tenant_version,
            of_space: Some(policy.of_space.into()),
            space_version: policy.space_version,
        }
    }
}

impl Checked for proto::GetPolicyResponse {
    type Value = PolicyInForce;

    fn check(self, fields: &mut Fields) -> Option<PolicyInForce> {
        let in_force = fields.message_or_default("in_force", self.in_force);
        let of_node = fields.message_or_default("of_node", self.of_node);
        let of_tenant = fields.message_or_default("of_tenant", self.of_tenant);
        let of_space = fields.message_or_default("of_space", self.of_space);
        Some(PolicyInForce {
            in_force: in_force?,
            of_node: of_node?,
            of_tenant: of_tenant?,
            tenant_version: self.tenant_version,
            of_space: of_space?,
            space_version: self.space_version,
        })
    }
}

impl From<NewDocument> for proto::PutDocumentRequest {
    fn from(document: NewDocument) -> Self {
        Self {
            kind: proto::DocumentKind::from(document.kind).into(),
            name: document.name.into(),
            body: document.body,
            expected_version: document.expected,
        }
    }
}

impl Checked for proto::PutDocumentRequest {
    type Value = NewDocument;

    fn check(self, fields: &mut Fields) -> Option<NewDocument> {
        let kind = fields.word("kind", self.kind);
        let name = fields.name("name", self.name, SettingName::new);
        let body = fields.words("body", self.body, BODY_LIMIT);
        Some(NewDocument {
            kind: kind?,
            name: name?,
            body: body?,
            expected: self.expected_version,
        })
    }
}

impl Fields {
    /// Which document; every policy has the same name, so that it may be left out.
    fn document(
        &mut self,
        kind: i32,
        field: &str,
        name: String,
        space: String,
    ) -> Option<SettingKey> {
        let kind = self.word("kind", kind);
        let space = self.optional_name("space", space, SpaceId::new);
        let of_policies = || policy_key(None).name;
        let name = match kind {
            Some(SettingKind::Policy) if name.is_empty() => Some(of_policies()),
            _ => self.name(field, name, SettingName::new),
        };
        Some(SettingKey {
            kind: kind?,
            space: space?,
            name: name?,
        })
    }
}

impl From<(Listing, PageRequest)> for proto::ListDocumentsRequest {
    fn from((listing, page): (Listing, PageRequest)) -> Self {
        let (kind, history_of, space) = match listing {
            Listing::Present(kind) => (
                number::<proto::DocumentKind, _>(kind),
                String::new(),
                String::new(),
            ),
            Listing::History(key) => {
                let kind = number::<proto::DocumentKind, _>(Some(key.kind));
                (kind, key.name.into(), text(key.space))
            }
        };
        Self {
            kind,
            history_of,
            space,
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
        }
    }
}

impl Checked for proto::ListDocumentsRequest {
    type Value = (Listing, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let listing = if self.history_of.is_empty() {
            if !self.space.is_empty() {
                fields.refuse::<()>(
                    "space",
                    "is only for the history of a document: set `history_of`",
                );
            }
            fields
                .optional_word("kind", self.kind)
                .map(Listing::Present)
        } else {
            let key = fields.document(self.kind, "history_of", self.history_of, self.space);
            key.map(Listing::History)
        };
        let page = fields.page(self.page_size, self.page_token);
        Some((listing?, page?))
    }
}

impl From<Setting> for proto::Document {
    fn from(setting: Setting) -> Self {
        Self {
            kind: proto::DocumentKind::from(setting.key.kind).into(),
            name: setting.key.name.into(),
            space: text(setting.key.space),
            version: setting.version,
            body: setting.body.unwrap_or_default(),
            set_at: Some(time(setting.at)),
            set_by: setting.by,
        }
    }
}

impl Checked for proto::Document {
    type Value = Setting;

    fn check(self, fields: &mut Fields) -> Option<Setting> {
        let key = fields.document(self.kind, "name", self.name, self.space);
        let at = fields.message("set_at", self.set_at);
        Some(Setting {
            key: key?,
            version: self.version,
            body: (!self.body.is_empty()).then_some(self.body),
            by: self.set_by,
            at: at?,
        })
    }
}

impl From<Page<Setting>> for proto::ListDocumentsResponse {
    fn from(page: Page<Setting>) -> Self {
        let (documents, next_page_token) = parts(page);
        Self {
            documents,
            next_page_token,
        }
    }
}

impl Checked for proto::ListDocumentsResponse {
    type Value = Page<Setting>;

    fn check(self, fields: &mut Fields) -> Option<Page<Setting>> {
        let items = fields.messages("documents", self.documents, usize::MAX);
        Some(Page {
            items: items?,
            next: page_token(self.next_page_token),
        })
    }
}

impl From<(SettingKey, Option<u32>)> for proto::RemoveDocumentRequest {
    fn from((key, expected_version): (SettingKey, Option<u32>)) -> Self {
        Self {
            kind: proto::DocumentKind::from(key.kind).into(),
            name: key.name.into(),
            space: text(key.space),
            expected_version,
        }
    }
}

impl Checked for proto::RemoveDocumentRequest {
    type Value = (SettingKey, Option<u32>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let key = fields.document(self.kind, "name", self.name, self.space);
        Some((key?, self.expected_version))
    }
}
