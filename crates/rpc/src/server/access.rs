//! What each call needs: a right, and the spaces that it names. Every call of the public API goes through [`Admitted::permit`]
//! with its request, and a request without a line in this table does not compile.

use std::sync::Arc;

use memfleet_domain::access::Right;
use memfleet_domain::space::Space;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::access::{Authority, Caller};
use memfleet_ports::context::Context;
use memfleet_ports::ledger::Page;

use crate::proto;

/// What a request asks for.
pub(super) trait Access {
    /// Its method, as `Service.Method`.
    const METHOD: &'static str;
    /// What the caller needs.
    const RIGHT: Right;
    /// The spaces that the message names, or [`EVERY_SPACE`].
    fn spaces(&self) -> Vec<&str>;
}

/// Every space of the tenant, as a pattern: a credential reaches it that is for all spaces, and
/// none that is for some.
const EVERY_SPACE: &str = "*";

macro_rules! access {
    ($($request:ident: $method:literal, $right:ident, |$message:ident| $spaces:expr;)*) => {
        $(
            impl Access for proto::$request {
                const METHOD: &'static str = $method;
                const RIGHT: Right = Right::$right;

                fn spaces(&self) -> Vec<&str> {
                    let $message = self;
                    $spaces
                }
            }
        )*

        /// Every method and what it needs.
        #[cfg(test)]
        const TABLE: &[(&str, Right)] = &[$(($method, Right::$right)),*];
    };
}

access! {
    RememberRequest: "Memory.Remember", Write, |request| vec![request.space.as_str()];
    RecallRequest: "Memory.Recall", Read, |request| each(&request.spaces);
    AnswerRequest: "Memory.Answer", Read, |request| each(&request.spaces);
    GetRequest: "Memory.Get", Read, |request| vec![request.space.as_str()];
    ListRequest: "Memory.List", Read, |request| vec![request.space.as_str()];
    HistoryRequest: "Memory.History", Read, |request| vec![request.space.as_str()];
    ForgetRequest: "Memory.Forget", Write, |request| vec![request.space.as_str()];
    ForgetSubjectRequest: "Memory.ForgetSubject", Write, |_request| vec![EVERY_SPACE];
    WatchIngestionRequest: "Memory.WatchIngestion", Read, |request| vec![request.space.as_str()];
    ExportRequest: "Memory.Export", Read, |request| vec![request.space.as_str()];
    ExportSubjectRequest: "Memory.ExportSubject", Read, |_request| vec![EVERY_SPACE];
    ImportRequest: "Memory.Import", Write, |request| match &request.kind {
        Some(proto::import_request::Kind::Space(space)) => vec![space.as_str()],
        _ => Vec::new(),
    };
    AssembleRequest: "Assembly.Assemble", Read, |request| each(&request.spaces);
    GateRequest: "Assembly.Gate", Read, |request| each(&request.spaces);
    RenderRequest: "Assembly.Render", Read, |_request| Vec::new();
    CountTokensRequest: "Assembly.CountTokens", Read, |_request| Vec::new();
    ListModelProfilesRequest: "Assembly.ListModelProfiles", Read, |_request| Vec::new();
    PutModelProfileRequest: "Assembly.PutModelProfile", Admin, |_request| Vec::new();
    PutPolicyRequest: "Policies.PutPolicy", Admin, |request| vec![request.space.as_str()];
    GetPolicyRequest: "Policies.GetPolicy", Read, |request| vec![request.space.as_str()];
    PutDocumentRequest: "Policies.PutDocument", Admin, |_request| Vec::new();
    // Without a space the answer has only documents of those that the caller reaches.
    ListDocumentsRequest: "Policies.ListDocuments", Read, |request| vec![request.space.as_str()];
    RemoveDocumentRequest: "Policies.RemoveDocument", Admin, |request| vec![request.space.as_str()];
    // What the injection names is known once it is read: whoever answers decides.
    GetInjectionRequest: "Audit.GetInjection", Read, |_request| Vec::new();
    ListInjectionsRequest: "Audit.ListInjections", Read, |request| vec![request.space.as_str()];
    GetToolSchemaRequest: "Tools.GetToolSchema", Read, |_request| Vec::new();
    ExecuteToolRequest: "Tools.ExecuteTool", Read, |request| each(&request.spaces);
    CloseTurnRequest: "Tools.CloseTurn", Read, |_request| Vec::new();
    RecordTurnRequest: "Capture.RecordTurn", Write, |request| vec![request.space.as_str()];
    ListFactsRequest: "Knowledge.ListFacts", Read, |request| vec![request.space.as_str()];
    ListEpisodesRequest: "Knowledge.ListEpisodes", Read, |request| vec![request.space.as_str()];
    ListNarrativesRequest: "Knowledge.ListNarratives", Read, |request| vec![request.space.as_str()];
    GetNarrativeRequest: "Knowledge.GetNarrative", Read, |request| vec![request.space.as_str()];
    ProfileRequest: "Knowledge.Profile", Read, |request| vec![request.space.as_str()];
    TimelineRequest: "Knowledge.Timeline", Read, |request| vec![request.space.as_str()];
    ListEntitiesRequest: "Knowledge.ListEntities", Read, |request| vec![request.space.as_str()];
    NeighborsRequest: "Knowledge.Neighbors", Read, |request| vec![request.space.as_str()];
    PathsRequest: "Knowledge.Paths", Read, |request| vec![request.space.as_str()];
    GetEntityRequest: "Knowledge.GetEntity", Read, |request| vec![request.space.as_str()];
    MergeEntitiesRequest: "Knowledge.MergeEntities", Write, |request| vec![request.space.as_str()];
    SplitEntityRequest: "Knowledge.SplitEntity", Write, |request| vec![request.space.as_str()];
    GetVersionsRequest: "Knowledge.GetVersions", Read, |request| vec![request.space.as_str()];
    ListConflictsRequest: "Knowledge.ListConflicts", Read, |request| vec![request.space.as_str()];
    ListChangesRequest: "Knowledge.ListChanges", Read, |request| vec![request.space.as_str()];
    RevertRequest: "Knowledge.Revert", Write, |request| vec![request.space.as_str()];
    UpdateRequest: "Knowledge.Update", Write, |request| vec![request.space.as_str()];
    PutSpaceRequest: "Spaces.PutSpace", Write, |request| vec![request.space.as_str()];
    SetLegalHoldRequest: "Spaces.SetLegalHold", Admin, |request| vec![request.space.as_str()];
    // The answer names only those that the caller reaches.
    ListSpacesRequest: "Spaces.ListSpaces", Read, |_request| Vec::new();
    ListSessionsRequest: "Sessions.ListSessions", Read, |request| vec![request.space.as_str()];
    GetStatusRequest: "Maintenance.GetStatus", Read, |_request| Vec::new();
    ListDeadLettersRequest: "Maintenance.ListDeadLetters", Read, |request| vec![request.space.as_str()];
    ReplayDeadLettersRequest: "Maintenance.ReplayDeadLetters", Write, |request| vec![request.space.as_str()];
    RebuildRequest: "Maintenance.Rebuild", Write, |request| vec![request.space.as_str()];
    GetRebuildRequest: "Maintenance.GetRebuild", Read, |request| vec![request.space.as_str()];
    VerifyGraphRequest: "Maintenance.VerifyGraph", Read, |request| vec![request.space.as_str()];
    RebuildGraphRequest: "Maintenance.RebuildGraph", Write, |request| vec![request.space.as_str()];
    CreateKeyRequest: "Admin.CreateKey", Admin, |_request| Vec::new();
    ListKeysRequest: "Admin.ListKeys", Admin, |_request| Vec::new();
    RevokeKeyRequest: "Admin.RevokeKey", Admin, |_request| Vec::new();
    RotateKeyRequest: "Admin.RotateKey", Admin, |_request| Vec::new();
    ListTenantsRequest: "Admin.ListTenants", Admin, |_request| Vec::new();
    GetUsageRequest: "Admin.GetUsage", Admin, |_request| Vec::new();
    SetQuotaRequest: "Admin.SetQuota", Admin, |_request| Vec::new();
    ListAuditRequest: "Admin.ListAudit", Admin, |_request| Vec::new();
    SwitchModelRequest: "Admin.SwitchModel", Admin, |_request| Vec::new();
}

fn each(spaces: &[String]) -> Vec<&str> {
    spaces.iter().map(String::as_str).collect()
}

/// A caller that was let in, and who says what it may do; in the extensions of its request.
#[derive(Clone)]
pub(crate) struct Admitted {
    pub caller: Arc<Caller>,
    pub authority: Arc<dyn Authority>,
}

impl Admitted {
    /// Whether the caller may do what any message of a call does.
    pub(super) fn permit_method<M: Access>(&self, context: &Context) -> Result<(), Fault> {
        let grant = &self.caller.grant;
        // The right to manage a tenant is for all of it.
        let holds = M::RIGHT != Right::Admin || grant.is_everywhere();
        if grant.rights.contains(M::RIGHT) && holds {
            return Ok(());
        }
        if M::RIGHT == Right::Admin {
            self.authority
                .refused(&self.caller, &context.request_id, M::METHOD, M::RIGHT);
        }
        let (right, reason) = match M::RIGHT {
            Right::Read => ("read", "RIGHT_READ_MISSING"),
            Right::Write => ("write", "RIGHT_WRITE_MISSING"),
            Right::Admin => ("admin", "RIGHT_ADMIN_MISSING"),
        };
        let message = format!(
            "{} needs the right `{right}`, which this credential does not have: use another key",
            M::METHOD
        );
        Err(denied(reason, message).with("right", right))
    }

    /// Whether the caller may do this.
    pub(super) fn permit<M: Access>(&self, context: &Context, message: &M) -> Result<(), Fault> {
        self.permit_method::<M>(context)?;
        let grant = &self.caller.grant;
        // An empty name is another mistake, which is told of next.
        let mut named = message.spaces().into_iter();
        let beyond = named.find(|space| !space.is_empty() && !grant.reaches(space));
        match beyond {
            None => Ok(()),
            Some(space) => {
                let message = match space {
                    EVERY_SPACE => format!(
                        "{} is about every space of the tenant, and this credential reaches some: use a key without `spaces`",
                        M::METHOD
                    ),
                    space => format!("this credential does not reach the space `{space}`"),
                };
                Err(denied("SPACE_NOT_GRANTED", message).with("right", M::RIGHT.name()))
            }
        }
    }

    /// Whether the caller is still believed; for what comes later in a stream.
    pub(super) async fn renew(&self) -> Result<(), Fault> {
        self.authority.renew(&self.caller).await
    }

    /// The same for a message that counts as a call.
    pub(super) async fn again<M: Access>(
        &self,
        context: &Context,
        message: &M,
    ) -> Result<(), Fault> {
        self.renew().await?;
        self.authority.count(&self.caller).await?;
        self.permit(context, message)
    }

    /// What the caller reaches of a page of spaces.
    pub(super) fn reached(&self, mut page: Page<Space>) -> Page<Space> {
        page.items
            .retain(|space| self.caller.grant.reaches(space.id.as_str()));
        page
    }
}

fn denied(reason: &'static str, message: String) -> Fault {
    Fault::new(FaultKind::PermissionDenied, reason, message)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn the_table_has_every_method_of_the_public_api_that_has_a_message_of_its_own() {
        let files = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap().file;
        let services = files.iter().flat_map(|file| &file.service);
        let mut methods: Vec<_> = services
            .flat_map(|service| {
                let named = |method: &prost_types::MethodDescriptorProto| {
                    format!("{}.{}", service.name(), method.name())
                };
                service.method.iter().map(named)
            })
            .collect();
        // It takes the messages of `Remember`.
        methods.retain(|method| method != "Memory.RememberStream");
        methods.sort();
        let mut known: Vec<_> = TABLE
            .iter()
            .map(|(method, _)| (*method).to_owned())
            .collect();
        known.sort();
        assert_eq!(known, methods);
    }
}
