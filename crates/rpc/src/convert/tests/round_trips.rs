//! What goes over the wire comes back equal.

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::TenantId;
use memfleet_ports::conformance::knowledge::{fact, statement};
use memfleet_ports::conformance::samples::{instant, turn};
use memfleet_ports::memory::PageRequest;
use proptest::prelude::*;
use prost::Message;

use crate::convert::{Checked, LettersOf, accept, understand};
use crate::proto::derived_memory::Kind;
use crate::{proto, strategies};

/// The message after a journey as bytes.
fn sent<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

fn answered<T, M>(value: &T) -> T
where
    T: Clone,
    M: Message + Default + From<T> + Checked<Value = T>,
{
    understand(sent(&M::from(value.clone()))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_remember(request in strategies::remember()) {
        let message = proto::RememberRequest::from(request.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(request));
    }

    #[test]
    fn of_recall(request in strategies::recall()) {
        let message = proto::RecallRequest::try_from(request.clone()).unwrap();
        prop_assert_eq!(accept(sent(&message)), Ok(request));
    }

    #[test]
    fn of_questions(request in strategies::question()) {
        let message = proto::AnswerRequest::try_from(request.clone()).unwrap();
        prop_assert_eq!(accept(sent(&message)), Ok(request));
    }

    #[test]
    fn of_answers(part in strategies::answer_part()) {
        prop_assert_eq!(&answered::<_, proto::AnswerResponse>(&part), &part);
    }

    #[test]
    fn of_assemble(request in strategies::assemble()) {
        let message = proto::AssembleRequest::try_from(request.clone()).unwrap();
        prop_assert_eq!(accept(sent(&message)), Ok(request));
    }

    #[test]
    fn of_gates(request in strategies::gate(), gated in strategies::gated()) {
        let message = proto::GateRequest::from(request.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(request));
        prop_assert_eq!(&answered::<_, proto::GateResponse>(&gated), &gated);
    }

    #[test]
    fn of_render(request in strategies::render()) {
        let message = proto::RenderRequest::from(request.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(request));
    }

    #[test]
    fn of_tools(
        asked in strategies::schema_request(),
        tools in strategies::tool_schemas(),
        call in strategies::tool_call(),
        result in strategies::tool_result(),
        close in strategies::close(),
        closed in strategies::closed(),
    ) {
        let message = proto::GetToolSchemaRequest::from(asked.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(asked));
        prop_assert_eq!(&answered::<_, proto::GetToolSchemaResponse>(&tools), &tools);
        let message = proto::ExecuteToolRequest::try_from(call.clone()).unwrap();
        prop_assert_eq!(accept(sent(&message)), Ok(call));
        prop_assert_eq!(&answered::<_, proto::ExecuteToolResponse>(&result), &result);
        let message = proto::CloseTurnRequest::from(close.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(close));
        prop_assert_eq!(&answered::<_, proto::CloseTurnResponse>(&closed), &closed);
    }

    #[test]
    fn of_captured_turns(
        request in strategies::record_turn(),
        recorded in strategies::recorded(),
    ) {
        let message = proto::RecordTurnRequest::from(request.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(request));
        prop_assert_eq!(&answered::<_, proto::RecordTurnResponse>(&recorded), &recorded);
    }

    #[test]
    fn of_forget(request in strategies::forget()) {
        let message = proto::ForgetRequest::try_from(request.clone()).unwrap();
        prop_assert_eq!(accept(sent(&message)), Ok(request));
    }

    #[test]
    fn of_forgetting_a_subject(
        request in strategies::subject_forget(),
        progress in strategies::progress(),
    ) {
        let message = proto::ForgetSubjectRequest::from(request.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(request.clone()));
        let message = proto::ExportSubjectRequest::from(request.subject.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(request.subject));
        prop_assert_eq!(&answered::<_, proto::ForgetSubjectResponse>(&progress), &progress);
    }

    #[test]
    fn of_filters(filter in strategies::filter()) {
        let message = proto::TurnFilter::try_from(filter.clone()).unwrap();
        prop_assert_eq!(accept(sent(&message)), Ok(filter));
    }

    #[test]
    fn of_turns(turn in strategies::turn()) {
        prop_assert_eq!(&answered::<_, proto::Turn>(&turn), &turn);
    }

    #[test]
    fn of_what_was_found(found in strategies::found()) {
        prop_assert_eq!(&answered::<_, proto::RecallResponse>(&found), &found);
    }

    #[test]
    fn of_what_was_assembled(assembled in strategies::assembled()) {
        prop_assert_eq!(&answered::<_, proto::AssembleResponse>(&assembled), &assembled);
    }

    #[test]
    fn of_policies(new in strategies::new_policy(), policy in strategies::policy_in_force()) {
        let message = proto::PutPolicyRequest::from(new.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(new));
        prop_assert_eq!(&answered::<_, proto::GetPolicyResponse>(&policy), &policy);
    }

    #[test]
    fn of_documents(
        new in strategies::new_document(),
        listing in strategies::listing(),
        removed in (strategies::key(), proptest::option::of(proptest::num::u32::ANY)),
        documents in strategies::page(strategies::document()),
    ) {
        let message = proto::PutDocumentRequest::from(new.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(new));
        let asked = (listing, PageRequest::default());
        let message = proto::ListDocumentsRequest::from(asked.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(asked));
        let message = proto::RemoveDocumentRequest::from(removed.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(removed));
        prop_assert_eq!(&answered::<_, proto::ListDocumentsResponse>(&documents), &documents);
    }

    #[test]
    fn of_past_injections(
        filter in strategies::injection_filter(),
        injection in strategies::past_injection(),
        injections in strategies::page(strategies::past_injection()),
    ) {
        let asked = (filter, PageRequest::default());
        let message = proto::ListInjectionsRequest::from(asked.clone());
        prop_assert_eq!(accept(sent(&message)), Ok(asked));
        prop_assert_eq!(&answered::<_, proto::GetInjectionResponse>(&injection), &injection);
        prop_assert_eq!(&answered::<_, proto::ListInjectionsResponse>(&injections), &injections);
    }

    #[test]
    fn of_receipts(receipt in strategies::receipt()) {
        prop_assert_eq!(&answered::<_, proto::RememberResponse>(&receipt), &receipt);
    }

    #[test]
    fn of_what_was_forgotten(receipt in strategies::forgotten()) {
        prop_assert_eq!(&answered::<_, proto::ForgetResponse>(&receipt), &receipt);
    }

    #[test]
    fn of_pages(
        turns in strategies::page(strategies::turn()),
        spaces in strategies::page(strategies::space()),
        sessions in strategies::page(strategies::session()),
    ) {
        prop_assert_eq!(&answered::<_, proto::ListResponse>(&turns), &turns);
        prop_assert_eq!(&answered::<_, proto::ListSpacesResponse>(&spaces), &spaces);
        prop_assert_eq!(&answered::<_, proto::ListSessionsResponse>(&sessions), &sessions);
    }

    #[test]
    fn of_records(record in strategies::record()) {
        prop_assert_eq!(&answered::<_, proto::ExportResponse>(&record), &record);
    }

    #[test]
    fn of_the_status(status in strategies::status()) {
        prop_assert_eq!(&answered::<_, proto::GetStatusResponse>(&status), &status);
    }

    #[test]
    fn of_dead_letters(page in strategies::page(strategies::dead_letter())) {
        let message = sent(&proto::ListDeadLettersResponse::from(page.clone()));
        let tenant = TenantId::new("default").unwrap();
        prop_assert_eq!(understand(LettersOf(&tenant, message)), Ok(page));
    }
}

#[test]
fn of_facts_with_a_clause_and_of_statements() {
    let turn = turn("1", "I live in Rome.");
    for fact in [
        fact(&turn, "Ada", "Rome", instant(10)),
        statement(&turn, "I live in Rome.", instant(10)),
    ] {
        let message = sent(&proto::DerivedMemory::from(fact.clone()));
        let read = understand(message.clone()).unwrap();
        let parts = |it: &Derivation| {
            let draft = it.fact().unwrap();
            (draft.clause.clone(), draft.statement, draft.claim.clone())
        };
        assert_eq!(parts(&read), parts(&fact));
        let Some(Kind::Fact(mut bare)) = message.kind else {
            panic!("it is a fact");
        };
        (bare.clause, bare.statement) = (None, None);
        let fault = understand(bare).unwrap_err();
        assert!(fault.message.contains("clause"), "{fault}");
    }
}
