//! The `Policies` service: how memory enters the prompts of a tenant. What is put is checked as a whole (`checking`), so that no call fails by
//! what somebody set before, and kept once the audit log has it (`keeping`); every gateway follows by [`crate::settings`].

mod checking;
mod keeping;

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::ids::{SettingName, SpaceId};
use memfleet_domain::policy::Policy;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::context::Context;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::memory::PageRequest;
use memfleet_ports::policies::{Listing, NewDocument, Policies, PolicyInForce, policy_key};
use memfleet_ports::settings::{Setting, SettingKey, SettingKind};
use tracing::instrument;

use crate::Gateway;
use crate::access::reaches;
use crate::assemble::is_shipped_template;
use crate::settings::{self, TenantSettings, Versioned};

#[async_trait]
impl Policies for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn put_policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
        policy: Policy,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        checking::policy(&policy, &*self.present(context).await?)?;
        let body = serde_json::to_string(&policy)
            .map_err(|error| Fault::internal(format!("a policy cannot be written: {error}")))?;
        self.put_setting(context, &policy_key(space), Some(body), expected)
            .await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
    ) -> Result<PolicyInForce, Fault> {
        let of_tenant = self.stored_policy(context, None).await?;
        let of_space = match space {
            Some(space) => self.stored_policy(context, Some(space)).await?,
            None => Versioned::default(),
        };
        let of_node = self.policy.policy.clone();
        let policy = of_space.value.clone().over(of_tenant.value.clone());
        let policy = policy.over(of_node.clone());
        Ok(PolicyInForce {
            of_node,
            in_force: policy.settled().into(),
            of_tenant: of_tenant.value,
            tenant_version: of_tenant.version,
            of_space: of_space.value,
            space_version: of_space.version,
        })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, kind = %document.kind, name = %document.name))]
    async fn put_document(&self, context: &Context, document: NewDocument) -> Result<u32, Fault> {
        let NewDocument {
            kind, name, body, ..
        } = document;
        match kind {
            SettingKind::Policy => {
                let description = "is set by `Policies.PutPolicy`";
                return Err(Fault::invalid("kind", description));
            }
            SettingKind::Template => checking::template(&name, &body)?,
            SettingKind::ModelProfile => {
                checking::profile_document(&name, &body, &self.tokenizers)?;
            }
            SettingKind::Exemplars => checking::exemplars(&name, &body)?,
        }
        let key = SettingKey {
            kind,
            space: None,
            name,
        };
        self.put_setting(context, &key, Some(body), document.expected)
            .await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn documents(
        &self,
        context: &Context,
        listing: Listing,
        page: PageRequest,
    ) -> Result<Page<Setting>, Fault> {
        let store = self.settings.store();
        let kind = match listing {
            Listing::Present(kind) => kind,
            Listing::History(key) => {
                let history = store.history(&context.tenant, &key, page.limit, page.after.as_ref());
                return Ok(history.await?);
            }
        };
        let mut documents = store.current(&context.tenant).await?;
        documents.retain(|document| {
            let space = document.key.space.as_ref();
            kind.is_none_or(|kind| document.key.kind == kind)
                && space.is_none_or(|space| reaches(context, space))
        });
        part(documents, &page)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, kind = %key.kind, name = %key.name))]
    async fn remove_document(
        &self,
        context: &Context,
        key: SettingKey,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        if key.kind == SettingKind::Template {
            unused(key.name.as_str(), &*self.present(context).await?)?;
        }
        self.put_setting(context, &key, None, expected).await
    }
}

impl Gateway {
    /// What the tenant set, as it is now.
    async fn present(&self, context: &Context) -> Result<Arc<TenantSettings>, Fault> {
        self.settings.now(&context.tenant).await
    }

    /// The policy of a space itself; none where none is set.
    pub(crate) async fn policy_of(
        &self,
        context: &Context,
        space: &SpaceId,
    ) -> Result<Option<Policy>, Fault> {
        let stored = self.stored_policy(context, Some(space.clone())).await?;
        Ok(Some(stored.value).filter(|policy| *policy != Policy::default()))
    }

    /// The latest version of a policy. One that cannot be read says nothing, as in [`TenantSettings`].
    async fn stored_policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
    ) -> Result<Versioned<Policy>, Fault> {
        let key = policy_key(space);
        let history = self
            .settings
            .store()
            .history(&context.tenant, &key, 1, None);
        let latest = history.await?.items.into_iter().next();
        let Some(Setting { version, body, .. }) = latest else {
            return Ok(Versioned::default());
        };
        let value = body.and_then(|body| settings::policy(&body).ok());
        Ok(Versioned {
            version,
            value: value.unwrap_or_default(),
        })
    }
}

/// Whether no policy names a template that would be gone; without it, their calls would fail.
fn unused(template: &str, tenant: &TenantSettings) -> Result<(), Fault> {
    let names =
        |policy: &Versioned<Policy>| policy.value.format.template.as_deref() == Some(template);
    let user = tenant.policies.iter().find(|(_, policy)| names(policy));
    match user {
        Some((space, _)) if !is_shipped_template(template) => {
            let whose = match space {
                Some(space) => format!("the space `{space}`"),
                None => "the tenant".to_owned(),
            };
            let message = format!(
                "the policy of {whose} names the template `{template}`: set that to another one first"
            );
            Err(Fault::new(
                FaultKind::FailedPrecondition,
                "TEMPLATE_IN_USE",
                message,
            ))
        }
        _ => Ok(()),
    }
}

/// A part of all documents. A store may order names as its language does, so they are put into an order that their places have.
fn part(mut documents: Vec<Setting>, page: &PageRequest) -> Result<Page<Setting>, Fault> {
    documents.sort_by(|one, other| one.key.cmp(&other.key));
    let after = page.after.as_ref().map(place).transpose()?;
    let mut rest = documents
        .into_iter()
        .filter(|document| after.as_ref().is_none_or(|after| document.key > *after));
    let items: Vec<_> = rest.by_ref().take(page.limit as usize).collect();
    let is_last = rest.next().is_none();
    let next = items.last().filter(|_| !is_last);
    let next = next.map(|last| token(&last.key));
    Ok(Page { items, next })
}

/// The place of a document in their order.
fn token(key: &SettingKey) -> PageToken {
    let space = key.space.as_ref().map_or("", SpaceId::as_str);
    PageToken(serde_json::json!([key.kind.name(), space, key.name.as_str()]).to_string())
}

fn place(token: &PageToken) -> Result<SettingKey, Fault> {
    let read = || {
        let [kind, space, name] = serde_json::from_str::<[String; 3]>(&token.0).ok()?;
        let space = (!space.is_empty()).then(|| SpaceId::new(space));
        Some(SettingKey {
            kind: kind.parse().ok()?,
            space: space.transpose().ok()?,
            name: SettingName::new(name).ok()?,
        })
    };
    let description = "is not one that this listing gave";
    read().ok_or_else(|| Fault::invalid("page_token", description))
}
