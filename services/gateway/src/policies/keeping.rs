//! Documents are kept in versions, each once the audit log has who sets it.

use memfleet_domain::Fault;
use memfleet_domain::ids::SettingName;
use memfleet_domain::model_profile::ModelProfile;
use memfleet_ports::audit::{AuditKind, AuditRecord};
use memfleet_ports::context::Context;
use memfleet_ports::settings::{Revised, SettingKey, SettingKind};

use super::checking;
use crate::Gateway;
use crate::access::record_of;

impl Gateway {
    /// Sets a model's profile; which version it is.
    pub(crate) async fn put_profile(
        &self,
        context: &Context,
        profile: &ModelProfile,
    ) -> Result<u32, Fault> {
        checking::profile(profile, &self.tokenizers)?;
        let name = SettingName::new(profile.name.clone())
            .map_err(|error| Fault::invalid("profile.name", error.to_string()))?;
        let key = SettingKey {
            kind: SettingKind::ModelProfile,
            space: None,
            name,
        };
        let body = serde_json::to_string(profile)
            .map_err(|error| Fault::internal(format!("a profile cannot be written: {error}")))?;
        self.put_setting(context, &key, Some(body), None).await
    }

    /// Writes the next version of a document of the caller's tenant, or removes it by one, once the audit log has it; which version it is.
    pub(super) async fn put_setting(
        &self,
        context: &Context,
        key: &SettingKey,
        body: Option<String>,
        expected: Option<u32>,
    ) -> Result<u32, Fault> {
        self.note_setting(context, key, body.is_none()).await?;
        let revised = Revised {
            body,
            by: context.caller_name().to_owned(),
            at: self.clock.now(),
            expected,
        };
        let put = self.settings.store().put(&context.tenant, key, &revised);
        let put = put.await?;
        self.settings.changed(&context.tenant);
        if put.changed {
            let space = key.space.as_ref().map(tracing::field::display);
            tracing::info!(kind = %key.kind, space, name = %key.name, version = put.version, "settings changed");
        }
        Ok(put.version)
    }

    /// A document is about to be set or removed.
    async fn note_setting(
        &self,
        context: &Context,
        key: &SettingKey,
        is_removal: bool,
    ) -> Result<(), Fault> {
        let kind = match key.kind {
            _ if is_removal => AuditKind::DocumentRemoved,
            SettingKind::Policy => AuditKind::PolicySet,
            _ => AuditKind::DocumentSet,
        };
        let detail = [("document", key.kind.name()), ("name", key.name.as_str())];
        let record = AuditRecord {
            space: key.space.clone(),
            detail: detail
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..record_of(context, kind, self.clock.now())
        };
        self.access.journal.before(record).await
    }
}
