use std::convert::Infallible;

use tower::{ServiceExt, service_fn};

use super::*;

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn keys() -> Keys {
    Keys::new([
        (tenant("acme"), KeyHash::of("first")),
        (tenant("acme"), KeyHash::of("second")),
        (tenant("other"), KeyHash::of("third")),
    ])
}

/// The tenant that the service behind the layer sees, or the reason of the refusal.
async fn call(keys: Keys, credential: Option<&str>) -> Result<TenantId, String> {
    let echo = service_fn(async |request: Request<()>| {
        let Caller(tenant) = request.extensions().get().cloned().unwrap();
        Ok::<_, Infallible>(
            Response::builder()
                .header("x-tenant", tenant.as_str())
                .body(Body::empty())
                .unwrap(),
        )
    });
    let mut request = Request::builder();
    if let Some(credential) = credential {
        request = request.header(AUTHORIZATION, credential);
    }
    let request = request.body(()).unwrap();
    let response = AuthLayer(keys).layer(echo).oneshot(request).await.unwrap();
    if let Some(name) = response.headers().get("x-tenant") {
        return Ok(tenant(name.to_str().unwrap()));
    }
    let status = tonic::Status::from_header_map(response.headers()).unwrap();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
    Err(status::to_fault(&status).reason.into_owned())
}

#[tokio::test]
async fn without_keys_every_call_is_of_the_default_tenant() {
    assert_eq!(call(Keys::default(), None).await, Ok(tenant("default")));
    assert_eq!(
        call(Keys::default(), Some("Bearer any")).await,
        Ok(tenant("default"))
    );
}

#[tokio::test]
async fn a_key_decides_the_tenant() {
    assert_eq!(call(keys(), Some("Bearer first")).await, Ok(tenant("acme")));
    assert_eq!(
        call(keys(), Some("bearer second")).await,
        Ok(tenant("acme"))
    );
    assert_eq!(
        call(keys(), Some("Bearer third")).await,
        Ok(tenant("other"))
    );
}

#[tokio::test]
async fn every_other_credential_is_refused_with_its_reason() {
    let refused = |credential| call(keys(), credential);
    assert_eq!(refused(None).await, Err("CREDENTIAL_MISSING".into()));
    for malformed in ["", "first", "Basic first"] {
        assert_eq!(
            refused(Some(malformed)).await,
            Err("CREDENTIAL_MALFORMED".into()),
            "{malformed}"
        );
    }
    for unknown in ["Bearer ", "Bearer firs", "Bearer first second"] {
        assert_eq!(
            refused(Some(unknown)).await,
            Err("CREDENTIAL_UNKNOWN".into()),
            "{unknown}"
        );
    }
}

#[test]
fn a_hash_reads_back_from_its_text() {
    let hash = KeyHash::of("first");
    assert_eq!(hash.to_string().parse(), Ok(hash));
    assert_eq!(hash.to_string().to_uppercase().parse(), Ok(hash));
    assert!("first".parse::<KeyHash>().is_err());
}
