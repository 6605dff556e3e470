//! The `Admin` service: keys, quotas, usage, the audit log. The right `admin` was asked for before a call comes here; what takes an
//! operator is decided here.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{Days, NaiveDate, TimeDelta};
use memfleet_domain::access::{Quota, Right};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::access::{Authority, Proof, default_tenant};
use memfleet_ports::admin::{
    Account, Admin, Issued, ModelChange, ModelChangeStatus, ModelUse, NewKey, Rotation,
};
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditRecord};
use memfleet_ports::context::Context;
use memfleet_ports::keys::{Key, KeyRing};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::model_switch::{OrderGiver, SwitchGoal, SwitchOrder};
use tracing::instrument;

use crate::Gateway;
use crate::access::{new_secret, record_of};

/// How long an old secret goes on where nobody says.
const GRACE: Duration = Duration::from_hours(24);

/// Days of usage where nobody says from when, the last one included …
const DAYS: u64 = 30;

/// … and at most.
const MOST_DAYS: i64 = 366;

#[async_trait]
impl Admin for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn create_key(&self, context: &Context, new: NewKey) -> Result<Issued, Fault> {
        let tenant = self.whose(context, new.tenant.clone(), "Admin.CreateKey")?;
        let now = self.clock.now();
        check(&new, &tenant, now)?;
        if new.is_operator {
            self.operator(context, "Admin.CreateKey")?;
        } else {
            self.refuse_lockout(context).await?;
        }
        let (secret, hash) = new_secret();
        let key = Key {
            id: KeyId::of(&hash),
            tenant,
            label: new.label,
            grant: new.grant,
            is_operator: new.is_operator,
            calls_per_minute: new.calls_per_minute,
            created_at: now,
            expires_at: new.expires_at,
            last_used_at: None,
            revoked_at: None,
            replaced_by: None,
        };
        let created = self.about_key(context, AuditKind::KeyCreated, &key.tenant, key.id);
        self.keyring().add(&key, &hash, &created).await?;
        self.access.read_anew();
        tracing::info!(key = %key.id, tenant = %key.tenant, "key made");
        Ok(Issued { key, secret })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn keys(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        page: PageRequest,
    ) -> Result<Page<Key>, Fault> {
        let tenant = self.whose(context, tenant, "Admin.ListKeys")?;
        let keys = self
            .keyring()
            .list(&tenant, page.limit, page.after.as_ref());
        Ok(keys.await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, key = %id))]
    async fn revoke_key(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        id: KeyId,
    ) -> Result<Key, Fault> {
        let method = "Admin.RevokeKey";
        let tenant = self.whose(context, tenant, method)?;
        self.own_key(context, &tenant, id, method).await?;
        let records = self.about_key(context, AuditKind::KeyRevoked, &tenant, id);
        let revoked = self
            .keyring()
            .revoke(&tenant, id, self.clock.now(), &records);
        let revoked = revoked.await?.ok_or_else(|| no_key(id, &tenant))?;
        self.access.read_anew();
        tracing::info!(of = %revoked.tenant, "key revoked");
        Ok(revoked)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, key = %rotation.id))]
    async fn rotate_key(&self, context: &Context, rotation: Rotation) -> Result<Issued, Fault> {
        let method = "Admin.RotateKey";
        let tenant = self.whose(context, rotation.tenant, method)?;
        let old = self.own_key(context, &tenant, rotation.id, method).await?;
        let now = self.clock.now();
        let (secret, hash) = new_secret();
        let lifetime = old.expires_at.map(|end| end - old.created_at);
        let key = Key {
            id: KeyId::of(&hash),
            created_at: now,
            expires_at: lifetime.map(|lifetime| now + lifetime),
            last_used_at: None,
            revoked_at: None,
            replaced_by: None,
            ..old
        };
        let until = now + rotation.grace.unwrap_or(GRACE);
        let mut records = self.about_key(context, AuditKind::KeyRotated, &tenant, rotation.id);
        for record in &mut records {
            let next = ("next".to_owned(), key.id.to_string());
            record.detail = [next].into();
        }
        let keyring = self.keyring();
        let rotated = keyring.rotate(rotation.id, until, &key, &hash, &records);
        if !rotated.await? {
            let message = format!(
                "the key {} is revoked or was rotated before: make a new one",
                rotation.id
            );
            let reason = "KEY_NOT_ROTATABLE";
            return Err(Fault::new(FaultKind::FailedPrecondition, reason, message));
        }
        self.access.read_anew();
        tracing::info!(of = %key.tenant, next = %key.id, "key rotated");
        Ok(Issued { key, secret })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn tenants(&self, context: &Context, page: PageRequest) -> Result<Page<TenantId>, Fault> {
        self.operator(context, "Admin.ListTenants")?;
        let catalog = &self.access.sources.tenants;
        Ok(catalog.tenants(page.limit, page.after.as_ref()).await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn account(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        time: TimeRange,
    ) -> Result<Account, Fault> {
        let tenant = self.whose(context, tenant, "Admin.GetUsage")?;
        let days = days(time, self.clock.now())?;
        let used = self.usage.used_between(&tenant, days).await?;
        let used = used.into_iter().map(|(day, used)| ModelUse { day, used });
        let catalog = &self.access.sources.tenants;
        Ok(Account {
            language_models: used.collect(),
            usage: self.access.usage(&tenant).await?,
            quota: catalog.quota(&tenant).await?,
            tenant,
        })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn set_quota(
        &self,
        context: &Context,
        tenant: &TenantId,
        quota: Quota,
    ) -> Result<Account, Fault> {
        self.operator(context, "Admin.SetQuota")?;
        let mut set = record_of(context, AuditKind::QuotaSet, self.clock.now());
        set.tenant = tenant.clone();
        let limits = [
            ("calls_per_minute", quota.calls_per_minute.map(u64::from)),
            ("turns", quota.turns),
            ("spaces", quota.spaces),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(name, limit)| Some((name.to_owned(), limit?.to_string())));
        set.detail = limits.collect();
        let records = self.access.journal.beside(set);
        let catalog = &self.access.sources.tenants;
        catalog.put_quota(tenant, &quota, &records).await?;
        self.access.read_anew();
        self.account(context, Some(tenant.clone()), TimeRange::default())
            .await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn audit(
        &self,
        context: &Context,
        tenant: Option<TenantId>,
        filter: AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditRecord>, Fault> {
        let tenant = self.whose(context, tenant, "Admin.ListAudit")?;
        let Some(log) = &self.access.sources.log else {
            let message = "no audit log is kept: set `audit.enabled`";
            let reason = "AUDIT_OFF";
            return Err(Fault::new(FaultKind::FailedPrecondition, reason, message));
        };
        let records = log.list(&tenant, &filter, page.limit, page.after.as_ref());
        Ok(records.await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn switch_model(
        &self,
        context: &Context,
        change: Option<ModelChange>,
    ) -> Result<Option<ModelChangeStatus>, Fault> {
        self.operator(context, "Admin.SwitchModel")?;
        let known = self.switches.order().await?;
        let order = match change {
            None => known,
            Some(change) => {
                let order = self.switch_order(known, change).await?;
                let mut begun = record_of(context, AuditKind::ModelSwitchBegun, self.clock.now());
                begun.detail = switch_detail(&order);
                self.access.journal.before(begun).await?;
                self.switches.set_order(&order).await?;
                tracing::info!(target = %order.target, goal = ?order.goal, drops = order.drops, "the embedding model is to change");
                Some(order)
            }
        };
        let Some(order) = order else {
            return Ok(None);
        };
        let progress = self.switches.progress(&order).await?;
        Ok(Some(ModelChangeStatus { order, progress }))
    }
}

impl Gateway {
    /// The order that a change of the model is under from now on.
    async fn switch_order(
        &self,
        known: Option<SwitchOrder>,
        change: ModelChange,
    ) -> Result<SwitchOrder, Fault> {
        let is_everywhere = matches!(change, ModelChange::ServeEverywhere(_));
        let (model, goal) = match change {
            ModelChange::Compare(model) => (model, SwitchGoal::Compare),
            ModelChange::Serve(model) | ModelChange::ServeEverywhere(model) => {
                (model, SwitchGoal::Serve)
            }
            ModelChange::RollBack => (None, SwitchGoal::RollBack),
            ModelChange::Drop => {
                let known = known.ok_or_else(no_change)?;
                return self.drop_order(known).await;
            }
        };
        // Who names no model has seen what the comparison says of this one.
        let forced = goal == SwitchGoal::Serve && model.is_none();
        // A change that goes on, or back, is for the same spaces.
        let goes_on = model.is_none() && known.as_ref().is_some_and(|it| it.every_language);
        let known_target = known.map(|order| order.target);
        let target = match model {
            Some(model) => self.embedder.space_of(&model).await?,
            None => known_target.clone().ok_or_else(no_change)?,
        };
        let order = SwitchOrder {
            target,
            goal,
            drops: false,
            forced,
            every_language: is_everywhere || goes_on,
            giver: OrderGiver::Operator,
        };
        if known_target.is_some_and(|known| known != order.target) {
            let beside = self.switches.progress(&order).await?.beside;
            if beside > 0 {
                let message = format!(
                    "{beside} spaces still have the vectors of two models: remove those that searches do not use (`memfleet model switch --drop`), or give up the change under way first (`memfleet model switch --roll-back`)"
                );
                return Err(precondition("MODEL_CHANGE_UNDER_WAY", message));
            }
        }
        Ok(order)
    }

    /// The same change, which removes what searches do not use. Refused while it is not through.
    async fn drop_order(&self, known: SwitchOrder) -> Result<SwitchOrder, Fault> {
        let progress = self.switches.progress(&known).await?;
        let waiting = match known.goal {
            SwitchGoal::Serve => progress.spaces - progress.serving.min(progress.spaces),
            // Each space goes back before its other vectors are removed, and has time for that.
            SwitchGoal::RollBack => 0,
            SwitchGoal::Compare => {
                let message = "searches use neither model for good yet: `memfleet model switch --cut-over` or `--roll-back` first";
                return Err(precondition("MODEL_CHANGE_UNDER_WAY", message.to_owned()));
            }
        };
        if waiting > 0 {
            let message = format!(
                "{waiting} spaces are not there yet: wait for them (`memfleet model switch --status`), or give the change up first (`--roll-back`)"
            );
            return Err(precondition("MODEL_CHANGE_UNDER_WAY", message));
        }
        Ok(SwitchOrder {
            drops: true,
            ..known
        })
    }

    fn keyring(&self) -> &dyn KeyRing {
        &*self.access.sources.keys
    }

    /// The tenant that a call is about.
    fn whose(
        &self,
        context: &Context,
        named: Option<TenantId>,
        method: &str,
    ) -> Result<TenantId, Fault> {
        match named {
            Some(other) if other != context.tenant => {
                self.operator(context, method)?;
                Ok(other)
            }
            _ => Ok(context.tenant.clone()),
        }
    }

    /// Refuses everybody else.
    fn operator(&self, context: &Context, method: &str) -> Result<(), Fault> {
        match &context.caller {
            Some(caller) if caller.is_operator => return Ok(()),
            Some(caller) => {
                let name = &context.request_id;
                self.access.refused(caller, name, method, Right::Admin);
            }
            None => {}
        }
        let message = format!("{method} for this takes an operator's key");
        let reason = "RIGHT_OPERATOR_MISSING";
        let fault = Fault::new(FaultKind::PermissionDenied, reason, message);
        Err(fault.with("right", "operator"))
    }

    /// A key that the caller may replace or revoke: an operator's is only an operator's to touch.
    async fn own_key(
        &self,
        context: &Context,
        tenant: &TenantId,
        id: KeyId,
        method: &str,
    ) -> Result<Key, Fault> {
        let key = self.keyring().get(tenant, id).await?;
        let key = key.ok_or_else(|| no_key(id, tenant))?;
        if key.is_operator {
            self.operator(context, method)?;
        }
        Ok(key)
    }

    /// With the first key nobody is an operator any more who has none.
    async fn refuse_lockout(&self, context: &Context) -> Result<(), Fault> {
        let caller = context.caller.as_ref();
        let is_open = caller.is_some_and(|caller| caller.proof == Proof::Open);
        if is_open && !self.keyring().has_any().await? {
            let message = "from the first key on every call needs one, so it must be an operator's: `memfleet key create --operator NAME`";
            let reason = "FIRST_KEY_NOT_OPERATOR";
            return Err(Fault::new(FaultKind::FailedPrecondition, reason, message));
        }
        Ok(())
    }

    fn about_key(
        &self,
        context: &Context,
        kind: AuditKind,
        tenant: &TenantId,
        id: KeyId,
    ) -> Vec<AuditRecord> {
        let record = AuditRecord {
            tenant: tenant.clone(),
            key: Some(id),
            ..record_of(context, kind, self.clock.now())
        };
        self.access.journal.beside(record)
    }
}

/// The days that any of a time is in.
fn days(time: TimeRange, now: Timestamp) -> Result<RangeInclusive<NaiveDate>, Fault> {
    // The end is not in it.
    let end = time.end.map(|end| end - TimeDelta::microseconds(1));
    let last = end.unwrap_or(now).date_naive();
    let first = match time.start {
        Some(start) => start.date_naive(),
        None => last - Days::new(DAYS - 1),
    };
    if (last - first).num_days() >= MOST_DAYS {
        let description = format!("must not have more than {MOST_DAYS} days");
        return Err(Fault::invalid("time", description));
    }
    Ok(first..=last)
}

fn check(new: &NewKey, tenant: &TenantId, now: Timestamp) -> Result<(), Fault> {
    let is_admin = new.grant.rights.contains(Right::Admin);
    if is_admin && !new.grant.is_everywhere() {
        let description = "must be empty with the right `admin`, which holds for the whole tenant";
        return Err(Fault::invalid("spaces", description));
    }
    if new.is_operator && (!is_admin || *tenant != default_tenant()) {
        let description = "needs the right `admin` and the tenant `default`";
        return Err(Fault::invalid("operator", description));
    }
    if new.expires_at.is_some_and(|end| end <= now) {
        return Err(Fault::invalid("expires_at", "must be later than now"));
    }
    Ok(())
}

fn no_key(id: KeyId, tenant: &TenantId) -> Fault {
    Fault::not_found(format_args!("key {id} of the tenant `{tenant}`"))
}

/// The order as an audit record has it.
fn switch_detail(order: &SwitchOrder) -> BTreeMap<String, String> {
    let goal = match order.goal {
        SwitchGoal::Compare => "compare",
        SwitchGoal::Serve => "serve",
        SwitchGoal::RollBack => "roll_back",
    };
    let detail = [
        ("model", order.target.model.clone()),
        ("goal", goal.to_owned()),
        ("drops", order.drops.to_string()),
        ("forced", order.forced.to_string()),
        ("every_language", order.every_language.to_string()),
    ];
    let named = detail.into_iter().map(|(name, it)| (name.to_owned(), it));
    named.collect()
}

fn no_change() -> Fault {
    let message = "no change of the model was asked for: name one";
    precondition("NO_MODEL_CHANGE", message.to_owned())
}

fn precondition(reason: &'static str, message: String) -> Fault {
    Fault::new(FaultKind::FailedPrecondition, reason, message)
}
