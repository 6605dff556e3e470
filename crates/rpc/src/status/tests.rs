use std::time::Duration;

use proptest::prelude::*;
use tracing_subscriber::layer::SubscriberExt;

use super::*;
use crate::strategies;

/// What a client makes of the status after it went through HTTP headers.
fn received(fault: &Fault) -> Fault {
    let response = from_fault(fault).into_http::<tonic::body::Body>();
    to_fault(&Status::from_header_map(response.headers()).unwrap())
}

#[test]
fn every_kind_survives_with_all_it_says() {
    for kind in KINDS {
        let bare = Fault::new(kind, "SOME_REASON", "what happened");
        assert_eq!(received(&bare), bare);
        let mut full = bare
            .with("stored_hash", "ab")
            .with("given_hash", "cd")
            .retry_after(Duration::from_millis(1_500));
        full.fields = Fault::invalid("turns[3].speaker", "must not be empty").fields;
        assert_eq!(received(&full), full);
    }
}

#[test]
fn every_kind_has_a_code_of_its_own() {
    let codes: std::collections::BTreeSet<i32> =
        KINDS.iter().map(|kind| code(*kind).into()).collect();
    assert_eq!(codes.len(), KINDS.len());
}

#[test]
fn a_status_without_details_gets_a_reason() {
    let fault = to_fault(&Status::new(Code::Aborted, "a proxy gave up"));
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::Unavailable, "ABORTED")
    );
    let fault = to_fault(&Status::unimplemented(""));
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::FailedPrecondition, "UNIMPLEMENTED")
    );
}

#[test]
fn a_server_of_something_else_is_no_node() {
    for code in [Code::Unimplemented, Code::Unknown] {
        let said = "grpc-status header missing, mapped from HTTP status code 404";
        let fault = to_fault(&Status::new(code, said));
        assert_eq!(
            (fault.kind, fault.reason.as_ref()),
            (FaultKind::Unavailable, "CONNECTION_FAILED")
        );
        assert!(fault.message.contains("no gRPC server"), "{fault}");
    }
    let proxy = "grpc-status header missing, mapped from HTTP status code 403";
    let fault = to_fault(&Status::permission_denied(proxy));
    assert_eq!(fault.kind, FaultKind::PermissionDenied);
}

#[test]
fn answer_that_is_cut_off_may_be_asked_for_again() {
    for code in [Code::Unknown, Code::Internal] {
        let said = "h2 protocol error: error reading a body from connection";
        let fault = to_fault(&Status::new(code, said));
        assert_eq!(
            (fault.kind, fault.reason.as_ref()),
            (FaultKind::Unavailable, "CONNECTION_FAILED")
        );
    }
    let fault = to_fault(&Status::unknown("a proxy does not know"));
    assert_eq!(fault.kind, FaultKind::Internal);
}

#[test]
fn the_details_of_another_domain_are_not_ours() {
    let details = ErrorDetails::with_error_info("RATE_LIMITED", "proxy.example", []);
    let status = Status::with_error_details(Code::ResourceExhausted, "slow down", details);
    assert_eq!(to_fault(&status).reason, "RESOURCE_EXHAUSTED");
}

#[test]
fn the_worst_request_fits_the_headers_of_any_client() {
    let turn = crate::proto::NewTurn {
        metadata: (0..32)
            .map(|number| {
                (
                    format!("{number:02}{}", "\u{1F600}".repeat(15)),
                    "x".repeat(513),
                )
            })
            .collect(),
        ..Default::default()
    };
    let request = crate::proto::RememberRequest {
        turns: vec![turn; 1_000],
        ..Default::default()
    };
    let fault = crate::convert::accept(request).unwrap_err();
    let response = from_fault(&fault).into_http::<tonic::body::Body>();
    let bytes: usize = response
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum();
    assert!(bytes < 8_192, "{bytes}");
    assert_eq!(received(&fault).fields, fault.fields);
}

#[test]
fn a_cause_stays_here_and_the_request_is_named() {
    let registry = tracing_subscriber::registry().with(memfleet_trace::RequestIds);
    tracing::subscriber::with_default(registry, || {
        let call = tracing::info_span!("call", request_id = "r-7");
        let fault = Fault::internal("the store gave an unexpected answer").because("db:5432: gone");
        let told = call.in_scope(|| received(&fault));
        assert!(
            told.message.contains("r-7") && !told.message.contains("db:5432"),
            "{told}"
        );
        assert_eq!(told.cause, None);
    });
}

proptest! {
    #[test]
    fn any_fault_survives(fault in strategies::fault()) {
        prop_assert_eq!(received(&fault), fault);
    }
}
