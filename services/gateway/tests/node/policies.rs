//! How memory enters prompts, as its owner sets it: checked when it is put, in force everywhere soon, and never half.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::access::{Grant, Right, SpacePattern};
use memfleet_domain::assembly::{AuditMode, FailurePolicy, GateMode, Reason, Strategy};
use memfleet_domain::ids::{SettingName, SpaceId};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::{Policy, Settings};
use memfleet_domain::topic::{Topic, TopicAction};
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Gateway;
use memfleet_gateway::settings::SettingsCache;
use memfleet_ports::admin::Admin;
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly};
use memfleet_ports::audit::{AuditFilter, AuditKind};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::context::Context;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::policies::{Listing, NewDocument, Policies, policy_key};
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::settings::{self, Revised, SettingKey, SettingKind};
use memfleet_ports::testing::caller;
use tokio::sync::Notify;

use crate::administering::{administrator, call_by, with_operator};
use crate::roles::{Node, acme, recall, said, space};

/// A call that leaves all but the time that it may take to the policies.
fn plain(text: &str) -> AssembleRequest {
    let mut request = AssembleRequest::new(recall("ada", text, &[]).query);
    request.policy.failure.deadline_ms = Some(600_000);
    request.policy.gating.mode = Some(GateMode::Always);
    request.policy.gating.relevance = Some(0.0);
    request
}

async fn assembled(gateway: &Gateway) -> Assembled {
    let answer = gateway.assemble(&acme(), plain("greyhound")).await;
    answer.unwrap()
}

async fn put(gateway: &Gateway, policy: Policy) -> u32 {
    gateway
        .put_policy(&acme(), None, policy, None)
        .await
        .unwrap()
}

fn at_most(tokens: u32) -> Policy {
    let mut policy = Policy::default();
    policy.budget.max_tokens = Some(tokens);
    policy
}

fn name(text: &str) -> SettingName {
    SettingName::new(text).unwrap()
}

fn document(kind: SettingKind, called: &str, body: &str) -> NewDocument {
    NewDocument {
        kind,
        name: name(called),
        body: body.to_owned(),
        expected: None,
    }
}

fn template(called: &str, notice: &str) -> NewDocument {
    let body = format!("id = \"{called}\"\nversion = 1\nnotice = \"{notice}\"\n");
    document(SettingKind::Template, called, &body)
}

fn fields(fault: &Fault) -> Vec<&str> {
    fault.fields.iter().map(|it| it.field.as_str()).collect()
}

#[tokio::test]
async fn a_policy_is_refused_with_every_problem_at_its_field() {
    let acme = &acme();
    let node = Node::new().await;
    let mut wrong = Policy::default();
    wrong.budget.percent_of_window = Some(101.0);
    wrong.tools.rounds = Some(33);
    wrong.format.redactions = Some(vec!["fine".to_owned(), "(".to_owned()]);
    wrong.format.template = Some("missing".to_owned());
    let refused = node.gateway.put_policy(acme, None, wrong, None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, FaultKind::InvalidArgument);
    let expected = [
        "policy.budget.percent_of_window",
        "policy.tools.rounds",
        "policy.format.redactions[1]",
        "policy.format.template",
    ];
    assert_eq!(fields(&refused), expected);
    let policy = node.gateway.policy(acme, None).await.unwrap();
    assert_eq!(policy.tenant_version, 0);
    assert_eq!(policy.in_force, Settings::default().into());
}

fn topic(name: &str, action: TopicAction) -> Topic {
    Topic {
        name: name.to_owned(),
        action,
        description: format!("All about {name}."),
        examples: vec!["I have asthma.".to_owned(); 8],
    }
}

fn with_topics(topics: Vec<Topic>) -> Policy {
    Policy {
        topics: Some(topics),
        ..Policy::default()
    }
}

#[tokio::test]
async fn topics_are_checked_layered_by_name_and_not_for_a_call() {
    let acme = &acme();
    let node = Node::new().await;
    let gateway = &node.gateway;
    let mut wrong = topic("money", TopicAction::Tag);
    wrong.examples[7] = "x".repeat(513);
    let wrong = with_topics(vec![topic("health", TopicAction::LeaveOut), wrong]);
    let refused = gateway.put_policy(acme, None, wrong, None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, FaultKind::InvalidArgument);
    assert_eq!(fields(&refused), ["policy.topics[1].examples[7]"]);
    assert!(refused.fields[0].description.contains("shorten it"));

    let of_tenant = with_topics(vec![
        topic("health", TopicAction::LeaveOut),
        topic("money", TopicAction::Tag),
    ]);
    assert_eq!(put(gateway, of_tenant.clone()).await, 1);
    let of_space = with_topics(vec![topic("health", TopicAction::Tag)]);
    let place = Some(space("ada"));
    let set = gateway.put_policy(acme, place.clone(), of_space.clone(), None);
    assert_eq!(set.await.unwrap(), 1);
    let policy = gateway.policy(acme, place).await.unwrap();
    assert_eq!(
        (&policy.of_tenant, &policy.of_space),
        (&of_tenant, &of_space)
    );
    let in_force = [
        topic("money", TopicAction::Tag),
        topic("health", TopicAction::Tag),
    ];
    assert_eq!(policy.in_force.topics.as_deref(), Some(&in_force[..]));

    let mut request = plain("greyhound");
    request.policy = with_topics(Vec::new());
    let refused = gateway.assemble(acme, request).await.unwrap_err();
    assert_eq!(fields(&refused), ["policy.topics"]);
}

#[tokio::test]
async fn a_space_stands_over_its_tenant_and_redactions_add_up() {
    let acme = &acme();
    let node = Node::new().await;
    let told = vec![said("My greyhound has the code 4711 and the key sk-abc")];
    node.told("ada", told).await;
    let gateway = &node.gateway;
    let mut of_tenant = at_most(900);
    of_tenant.format.redactions = Some(vec!["sk-[a-z]+".to_owned()]);
    of_tenant.placing.strategies = Some(vec![Strategy::System]);
    let mut of_space = at_most(800);
    of_space.format.redactions = Some(vec!["[0-9]{4}".to_owned()]);
    assert_eq!(put(gateway, of_tenant.clone()).await, 1);
    let place = Some(space("ada"));
    let set = gateway.put_policy(acme, place.clone(), of_space.clone(), None);
    assert_eq!(set.await.unwrap(), 1);

    let policy = gateway.policy(acme, place).await.unwrap();
    let in_force = policy.in_force.settled();
    assert_eq!(in_force.budget.max_tokens, 800);
    assert_eq!(in_force.placing.strategies, [Strategy::System]);
    assert_eq!(in_force.format.redactions, ["sk-[a-z]+", "[0-9]{4}"]);
    assert_eq!((policy.of_space, policy.of_tenant), (of_space, of_tenant));
    let answer = assembled(gateway).await;
    assert!(
        answer
            .block
            .contains("code [redacted] and the key [redacted]")
    );
    assert_eq!(answer.budget.effective_tokens, 800);
    let versions = ["policy:space", "policy:tenant"].map(|it| answer.versions[it].as_str());
    assert_eq!(versions, ["1", "1"]);

    let mut call = plain("greyhound");
    call.policy.budget.max_tokens = Some(700);
    let answer = gateway.assemble(acme, call).await.unwrap();
    assert_eq!(answer.budget.effective_tokens, 700);
    assert!(answer.block.contains("[redacted]"));
}

/// Says what is written down in a space, or in all of the tenant.
pub async fn audit(gateway: &Gateway, name: Option<&str>, mode: AuditMode) {
    let mut policy = Policy::default();
    policy.audit.mode = Some(mode);
    let call = acme();
    let put = gateway.put_policy(&call, name.map(space), policy, None);
    put.await.unwrap();
}

#[tokio::test]
async fn redactions_of_every_space_count_whatever_their_order() {
    let node = Node::new().await;
    let told = vec![said("My greyhound has the code 4711")];
    node.told("ada", told).await;
    node.told("bea", vec![said("A greyhound sleeps")]).await;
    let mut of_ada = Policy::default();
    of_ada.format.redactions = Some(vec!["[0-9]{4}".to_owned()]);
    let call = acme();
    let set = node
        .gateway
        .put_policy(&call, Some(space("ada")), of_ada, None);
    set.await.unwrap();
    for spaces in [["ada", "bea"], ["bea", "ada"]] {
        let mut request = plain("greyhound");
        request.query.spaces = spaces.map(space).to_vec();
        let answer = node.gateway.assemble(&acme(), request).await.unwrap();
        assert!(
            answer.block.contains("the code [redacted]"),
            "{}",
            answer.block
        );
    }
}

#[tokio::test]
async fn what_is_written_down_of_several_spaces_is_what_all_of_them_allow() {
    let node = Node::new().await;
    node.told("ada", vec![said("A greyhound runs")]).await;
    node.told("bea", vec![said("A greyhound sleeps")]).await;
    audit(&node.gateway, Some("ada"), AuditMode::Off).await;
    let written = async |spaces: &[&str]| {
        let mut request = plain("greyhound");
        request.query.spaces = spaces.iter().map(|it| space(it)).collect();
        let answer = node.gateway.assemble(&acme(), request).await.unwrap();
        let id = answer.injection?;
        let kept = node.gateway.injections.get(&acme().tenant, id).await;
        Some(kept.unwrap().unwrap().block.is_some())
    };
    assert_eq!(written(&["ada"]).await, None);
    assert_eq!(written(&["bea"]).await, Some(true));
    for both in [["ada", "bea"], ["bea", "ada"]] {
        assert_eq!(written(&both).await, Some(false));
    }
}

#[tokio::test]
async fn a_call_does_not_say_what_is_written_down_of_it() {
    let node = Node::new().await;
    node.told("ada", vec![said("A greyhound runs")]).await;
    let mut request = plain("greyhound");
    request.policy.audit.mode = Some(AuditMode::Off);
    let refused = node.gateway.assemble(&acme(), request).await.unwrap_err();
    assert_eq!(refused.fields[0].field, "policy.audit");
}

/// As after a newer gateway put one, or before an older one is started.
#[tokio::test]
async fn without_a_policy_that_cannot_be_read_nothing_is_injected() {
    let node = Node::new().await;
    node.told("ada", vec![said("A greyhound runs")]).await;
    let key = policy_key(Some(space("ada")));
    let revised = Revised {
        body: Some(r#"{"format":{"redactions":["greyhound"],"of_tomorrow":1}}"#.to_owned()),
        by: "somebody".to_owned(),
        at: instant(0),
        expected: None,
    };
    let tenant = acme().tenant;
    let put = settings::Settings::put(&*node.store, &tenant, &key, &revised);
    put.await.unwrap();
    let mut request = plain("greyhound");
    request.policy.failure.policy = None;
    let answer = node
        .gateway
        .assemble(&acme(), request.clone())
        .await
        .unwrap();
    assert_eq!(answer.reason, Some(Reason::RetrievalUnavailable));
    assert!(
        answer.degraded[0].contains("of_tomorrow"),
        "{:?}",
        answer.degraded
    );
    request.policy.failure.policy = Some(FailurePolicy::Closed);
    let fault = node
        .gateway
        .assemble(&acme(), request.clone())
        .await
        .unwrap_err();
    assert_eq!(fault.reason, "POLICY_UNREADABLE");
    request.query.spaces = vec![space("bea")];
    let of_another = node.gateway.assemble(&acme(), request).await;
    assert_ne!(of_another.unwrap_err().reason, "POLICY_UNREADABLE");
}

/// A search that waits for a word.
struct Waiting {
    inner: Arc<dyn Retriever>,
    begun: Notify,
    go_on: Notify,
}

#[async_trait]
impl Retriever for Waiting {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        self.begun.notify_one();
        self.go_on.notified().await;
        self.inner.search(context, query).await
    }
}

#[tokio::test]
async fn amp_124_gateways_follow_within_three_seconds_and_calls_under_way_end_as_they_began() {
    let node = Node::new().await;
    node.told("ada", vec![said("Biscuit is a greyhound")]).await;
    put(&node.gateway, at_most(500)).await;
    let waiting = Arc::new(Waiting {
        inner: node.gateway.retriever.clone(),
        begun: Notify::new(),
        go_on: Notify::new(),
    });
    let mut other = node.gateway.clone();
    other.settings = Arc::new(SettingsCache::new(node.store.clone()));
    let mut slow = other.clone();
    slow.retriever = waiting.clone();
    let under_way = tokio::spawn(async move { assembled(&slow).await });
    waiting.begun.notified().await;

    assert_eq!(put(&node.gateway, at_most(0)).await, 2);
    let here = assembled(&node.gateway).await;
    assert_eq!(here.reason, Some(Reason::BudgetZero));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::time::resume();
    let there = assembled(&other).await;
    assert_eq!(there.reason, Some(Reason::BudgetZero));
    assert_eq!(there.versions["policy:tenant"], "2");

    waiting.go_on.notify_one();
    let began_before = under_way.await.unwrap();
    assert!(began_before.block.contains("greyhound"));
    assert_eq!(began_before.versions["policy:tenant"], "1");
    assert_eq!(began_before.budget.effective_tokens, 500);
}

#[tokio::test]
async fn of_two_who_change_the_same_version_one_is_refused() {
    let acme = &acme();
    let node = Node::new().await;
    let gateway = &node.gateway;
    let set = async |tokens, expected| {
        let put = gateway.put_policy(acme, None, at_most(tokens), expected);
        put.await.map_err(|fault| fault.reason)
    };
    assert_eq!(set(1, Some(0)).await, Ok(1));
    assert_eq!(set(2, Some(0)).await, Err("VERSION_STALE".into()));
    assert_eq!(set(2, Some(1)).await, Ok(2));
    // What is sent again finds its own version.
    assert_eq!(set(2, Some(1)).await, Ok(2));
    let remove = async |expected| {
        let removed = gateway.remove_document(acme, policy_key(None), expected);
        removed.await.map_err(|fault| fault.reason)
    };
    assert_eq!(remove(Some(1)).await, Err("VERSION_STALE".into()));
    assert_eq!(remove(Some(2)).await, Ok(3));
    let policy = gateway.policy(acme, None).await.unwrap();
    assert_eq!(policy.tenant_version, 3);
    assert_eq!(policy.in_force, Settings::default().into());
    assert_eq!(set(5, Some(policy.tenant_version)).await, Ok(4));
    let nothing = gateway.remove_document(acme, policy_key(Some(space("ada"))), None);
    assert_eq!(nothing.await.unwrap(), 0);
}

#[tokio::test]
async fn a_template_is_used_by_its_name_and_stays_while_a_policy_names_it() {
    let acme = &acme();
    let node = Node::new().await;
    node.told("ada", vec![said("Biscuit is a greyhound")]).await;
    let gateway = &node.gateway;
    let ours = template("ours", "What was said before.");
    gateway.put_document(acme, ours).await.unwrap();
    let mut policy = Policy::default();
    policy.format.template = Some("ours".to_owned());
    put(gateway, policy).await;
    let answer = assembled(gateway).await;
    assert!(answer.block.contains("What was said before."));
    assert_eq!(answer.versions["template"], "ours 1");

    let key = SettingKey {
        kind: SettingKind::Template,
        space: None,
        name: name("ours"),
    };
    let refused = gateway.remove_document(acme, key.clone(), None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, FaultKind::FailedPrecondition);
    assert_eq!(refused.reason, "TEMPLATE_IN_USE");
    put(gateway, Policy::default()).await;
    assert_eq!(gateway.remove_document(acme, key, None).await, Ok(2));
    assert_eq!(assembled(gateway).await.versions["template"], "turns 1");
}

#[tokio::test]
async fn documents_that_cannot_be_used_are_refused() {
    let acme = &acme();
    let node = Node::new().await;
    let cases = [
        (SettingKind::Template, "ours", "id = ", "body"),
        (
            SettingKind::Template,
            "ours",
            "id = \"ours\"\nversion = 0",
            "body",
        ),
        (
            SettingKind::Template,
            "ours",
            "id = \"other\"\nversion = 1",
            "name",
        ),
        (SettingKind::ModelProfile, "m", "{", "body"),
        (
            SettingKind::ModelProfile,
            "m",
            r#"{"name": "m", "windows": 1}"#,
            "body",
        ),
        (SettingKind::ModelProfile, "m", r#"{"name": "n"}"#, "name"),
        (
            SettingKind::ModelProfile,
            "m",
            r#"{"name": "m", "tokenizer": "none"}"#,
            "profile.tokenizer",
        ),
        (SettingKind::Exemplars, "de", "[[", "body"),
        (SettingKind::Policy, "policy", "{}", "kind"),
    ];
    for (kind, called, body, field) in cases {
        let put = node
            .gateway
            .put_document(acme, document(kind, called, body));
        assert_eq!(fields(&put.await.unwrap_err()), [field], "{body}");
    }
    let nothing = node
        .gateway
        .documents(acme, Listing::Present(None), PageRequest::default());
    assert!(nothing.await.unwrap().items.is_empty());
}

#[tokio::test]
async fn documents_are_listed_page_by_page_and_every_version_is_kept() {
    let acme = &acme();
    let node = Node::new().await;
    let gateway = &node.gateway;
    for notice in ["First.", "Second."] {
        let set = gateway.put_document(acme, template("ours", notice));
        set.await.unwrap();
    }
    for place in [None, Some(space("ada")), Some(space("Öl"))] {
        let set = gateway.put_policy(acme, place, at_most(5), None);
        set.await.unwrap();
    }
    let profile = r#"{"name": "small-*", "window_tokens": 8192}"#;
    let profile = document(SettingKind::ModelProfile, "small-*", profile);
    gateway.put_document(acme, profile).await.unwrap();
    let known = gateway.model_profiles(acme).await.unwrap();
    assert!(known.iter().any(|it: &ModelProfile| it.name == "small-*"));

    let mut listed = Vec::new();
    let mut page = PageRequest {
        limit: 2,
        after: None,
    };
    loop {
        let part = gateway.documents(acme, Listing::Present(None), page.clone());
        let part = part.await.unwrap();
        assert!(part.items.len() <= 2);
        listed.extend(part.items.into_iter().map(|it| it.key));
        page.after = part.next;
        if page.after.is_none() {
            break;
        }
    }
    let told: Vec<_> = listed
        .iter()
        .map(|key| (key.kind.name(), key.space.as_ref().map(SpaceId::as_str)))
        .collect();
    let expected = [
        ("model_profile", None),
        ("policy", None),
        ("policy", Some("ada")),
        ("policy", Some("Öl")),
        ("template", None),
    ];
    assert_eq!(told, expected);
    let history = Listing::History(listed.pop().unwrap());
    let history = gateway.documents(acme, history, PageRequest::default());
    let history = history.await.unwrap().items;
    let versions: Vec<_> = history.iter().map(|it| it.version).collect();
    assert_eq!(versions, [2, 1]);
    assert!(history[1].body.as_ref().unwrap().contains("First."));
    page.after = Some(memfleet_ports::ledger::PageToken("[1]".into()));
    let wrong = gateway.documents(acme, Listing::Present(None), page);
    assert_eq!(fields(&wrong.await.unwrap_err()), ["page_token"]);
}

#[tokio::test]
async fn documents_of_spaces_beyond_a_credential_are_not_listed() {
    let acme = &acme();
    let node = Node::new().await;
    for place in [None, Some(space("ada")), Some(space("bea"))] {
        let set = node.gateway.put_policy(acme, place, at_most(5), None);
        set.await.unwrap();
    }
    let mut some = caller("acme");
    some.grant = Grant {
        rights: [Right::Read].into_iter().collect(),
        spaces: vec![SpacePattern::new("ada").unwrap()],
    };
    let narrow = call_by(some);
    let listing = Listing::Present(Some(SettingKind::Policy));
    let listed = node
        .gateway
        .documents(&narrow, listing, PageRequest::default());
    let listed = listed.await.unwrap().items;
    let spaces: Vec<_> = listed.into_iter().map(|it| it.key.space).collect();
    assert_eq!(spaces, [None, Some(space("ada"))]);
}

#[tokio::test]
async fn what_administrators_change_is_in_the_audit_log_without_what_it_says() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    let gateway = &node.gateway;
    let mut policy = Policy::default();
    policy.format.redactions = Some(vec!["hush".to_owned()]);
    let set = gateway.put_policy(&acme, Some(space("ada")), policy, None);
    set.await.unwrap();
    let ours = template("ours", "hush");
    gateway.put_document(&acme, ours).await.unwrap();
    let key = policy_key(Some(space("ada")));
    gateway.remove_document(&acme, key, None).await.unwrap();
    let kinds = vec![
        AuditKind::PolicySet,
        AuditKind::DocumentSet,
        AuditKind::DocumentRemoved,
    ];
    let filter = AuditFilter {
        kinds,
        ..AuditFilter::default()
    };
    let records = gateway.audit(&acme, None, filter, PageRequest::default());
    let records = records.await.unwrap().items;
    let of = |kind| records.iter().find(|it| it.kind == kind).unwrap();
    assert_eq!(of(AuditKind::PolicySet).space, Some(space("ada")));
    assert_eq!(of(AuditKind::DocumentSet).detail["name"], "ours");
    assert_eq!(of(AuditKind::DocumentRemoved).detail["document"], "policy");
    let by = &acme.caller.as_ref().unwrap().name;
    assert!(records.iter().all(|record| record.caller == *by));
    assert!(!format!("{records:?}").contains("hush"));
    let listing = Listing::History(policy_key(Some(space("ada"))));
    let history = gateway.documents(&acme, listing, PageRequest::default());
    assert!(history.await.unwrap().items.iter().all(|it| it.by == *by));
}
