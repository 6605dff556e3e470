use std::convert::Infallible;

use memfleet_ports::access::Caller as Known;
use memfleet_ports::testing::{Callers, caller};
use tower::{ServiceExt, service_fn};

use super::*;

/// The caller that the service behind the layer sees, or the reason of the refusal.
async fn call(credential: Option<&str>) -> Result<String, String> {
    let echo = service_fn(async |request: Request<()>| {
        let admitted: &Admitted = request.extensions().get().unwrap();
        let response = Response::builder().header("x-caller", &admitted.caller.name);
        Ok::<_, Infallible>(response.body(Body::empty()).unwrap())
    });
    let callers = Callers::new([("first", caller("acme")), ("third", caller("other"))]);
    let mut request = Request::builder();
    if let Some(credential) = credential {
        request = request.header(AUTHORIZATION, credential);
    }
    let request = request.body(()).unwrap();
    let layer = AuthLayer(Public(Arc::new(callers)), |_, _, _| Ok(()));
    let response = layer.layer(echo).oneshot(request).await.unwrap();
    if let Some(name) = response.headers().get("x-caller") {
        return Ok(name.to_str().unwrap().to_owned());
    }
    let status = tonic::Status::from_header_map(response.headers()).unwrap();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
    Err(status::to_fault(&status).reason.into_owned())
}

#[tokio::test]
async fn a_credential_decides_the_caller() {
    assert_eq!(call(Some("Bearer first")).await, Ok("acme".into()));
    assert_eq!(call(Some("bearer third")).await, Ok("other".into()));
}

#[tokio::test]
async fn every_other_credential_is_refused_with_its_reason() {
    assert_eq!(call(None).await, Err("CREDENTIAL_MISSING".into()));
    for malformed in ["", "first", "Basic first"] {
        let refused = call(Some(malformed)).await;
        assert_eq!(refused, Err("CREDENTIAL_MALFORMED".into()), "{malformed}");
    }
    for unknown in ["Bearer ", "Bearer firs", "Bearer first second"] {
        let refused = call(Some(unknown)).await;
        assert_eq!(refused, Err("CREDENTIAL_UNKNOWN".into()), "{unknown}");
    }
}

#[tokio::test]
async fn a_call_takes_its_place_in_the_name_of_its_caller_and_only_once_that_is_known() {
    let callers = Callers::new([("first", caller("acme"))]);
    let enter: Enter = |_, tenant, credential| {
        let of = format!("{tenant}, {credential:?}");
        Err(tonic::Status::resource_exhausted(of))
    };
    let layer = AuthLayer(Public(Arc::new(callers)), enter);
    let ask = async |credential: &str| {
        let service = service_fn(
            async |_: Request<()>| -> Result<Response<Body>, Infallible> {
                unreachable!("there is no place")
            },
        );
        let request = Request::builder().header(AUTHORIZATION, credential);
        let response = layer
            .layer(service)
            .oneshot(request.body(()).unwrap())
            .await;
        tonic::Status::from_header_map(response.unwrap().headers()).unwrap()
    };
    let refusal = ask("Bearer first").await;
    assert_eq!(refusal.message(), "acme, Some(\"acme\")");
    assert_eq!(
        ask("Bearer second").await.code(),
        tonic::Code::Unauthenticated
    );
}

#[tokio::test]
async fn a_credential_that_an_open_node_does_not_look_at_is_answered_with_a_header() {
    let open = Known {
        proof: Proof::Open,
        ..caller("default")
    };
    let callers = Callers::new([("open", open), ("closed", caller("acme"))]);
    let layer = AuthLayer(Public(Arc::new(callers)), |_, _, _| Ok(()));
    let status = async |credential: &str| {
        let service =
            service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let request = Request::builder().header(AUTHORIZATION, credential);
        let request = request.body(()).unwrap();
        let response = layer.layer(service).oneshot(request).await.unwrap();
        let status = response.headers().get(CREDENTIAL_STATUS).cloned();
        status.map(|status| status.to_str().unwrap().to_owned())
    };
    assert_eq!(status("Bearer open").await.as_deref(), Some("ignored"));
    assert_eq!(status("Bearer closed").await, None);
}
