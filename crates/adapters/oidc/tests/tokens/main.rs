//! Tokens of an issuer that serves its keys over HTTP, as real ones do.
#![allow(clippy::unwrap_used, reason = "tests")]

mod issuer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use memfleet_domain::access::{Right, Rights};
use memfleet_domain::{Fault, FaultKind};
use memfleet_oidc::{Issuer, Options};
use memfleet_ports::access::{Caller, Proof, Tokens};
use ring::hmac;
use serde_json::{Value, json};

use crate::issuer::{Served, Signer, claims, now, part};

/// Signed with a secret.
fn symmetric(id: &str, secret: &[u8], claims: &Value) -> String {
    let header = json!({ "alg": "HS256", "kid": id });
    let message = format!("{}.{}", part(&header), part(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = BASE64.encode(hmac::sign(&key, message.as_bytes()));
    format!("{message}.{tag}")
}

/// An issuer that publishes these keys, and what believes its tokens.
async fn issuer(signers: &[&Signer]) -> (Arc<Served>, Issuer) {
    issuer_with(signers, Duration::from_mins(1)).await
}

/// The same, asked again after a pause.
async fn issuer_with(signers: &[&Signer], pause: Duration) -> (Arc<Served>, Issuer) {
    let served = Served::start(signers).await;
    let issuer = Issuer::new(Options {
        issuer: served.url.clone(),
        audience: "memfleet".to_owned(),
        jwks_url: None,
        tenant_claim: "tenant".to_owned(),
        scope_claim: "scope".to_owned(),
        pause,
    });
    (served, issuer)
}

fn changed(served: &Served, claim: &str, value: Value) -> Value {
    let mut claims = claims(served);
    claims[claim] = value;
    claims
}

fn reason(answer: Result<Caller, Fault>) -> String {
    let fault = answer.unwrap_err();
    fault.reason.into_owned()
}

#[tokio::test]
async fn a_token_of_each_kind_names_tenant_rights_and_spaces() {
    let signers = [
        Signer::ed25519("ed"),
        Signer::p256("ec"),
        Signer::rsa("rsa"),
    ];
    let (served, issuer) = issuer(&signers.iter().collect::<Vec<_>>()).await;
    for signer in &signers {
        let caller = issuer.verify(&signer.sign(&claims(&served))).await.unwrap();
        assert_eq!(
            (caller.tenant.as_str(), caller.name.as_str()),
            ("acme", "token:backend-7")
        );
        let expected = Rights::from_iter([Right::Read, Right::Write]);
        assert_eq!(caller.grant.rights, expected);
        assert!(caller.grant.reaches("support/1") && !caller.grant.reaches("sales"));
        assert!(!caller.is_operator);
        assert!(matches!(caller.proof, Proof::Until(end) if end.timestamp() > now()));
    }
    assert_eq!(served.asked.load(Ordering::SeqCst), 1, "fetched once");
}

#[tokio::test]
async fn scopes_may_be_a_list_and_without_ours_nothing_is_allowed() {
    let signer = Signer::ed25519("ed");
    let (served, issuer) = issuer(&[&signer]).await;
    let list = changed(&served, "scope", json!(["memfleet:admin", "email"]));
    let caller = issuer.verify(&signer.sign(&list)).await.unwrap();
    assert_eq!(caller.grant.rights, Rights::from_iter([Right::Admin]));
    assert!(caller.grant.is_everywhere());
    for none in [json!("openid"), json!(7), json!("memfleet:everything")] {
        let none = changed(&served, "scope", none);
        let caller = issuer.verify(&signer.sign(&none)).await.unwrap();
        assert!(caller.grant.rights.is_empty());
    }
    let unreadable = changed(
        &served,
        "scope",
        json!(["memfleet:read", "memfleet:space: "]),
    );
    let answer = issuer.verify(&signer.sign(&unreadable)).await;
    assert_eq!(reason(answer), "TOKEN_REFUSED");
}

#[tokio::test]
async fn a_token_for_others_of_others_or_of_another_time_is_refused() {
    let signer = Signer::ed25519("ed");
    let (served, issuer) = issuer(&[&signer]).await;
    for (claim, value, expected) in [
        ("aud", json!("another"), "TOKEN_REFUSED"),
        ("iss", json!("https://elsewhere.example"), "TOKEN_REFUSED"),
        ("nbf", json!(now() + 300), "TOKEN_REFUSED"),
        ("exp", json!(now() - 300), "CREDENTIAL_EXPIRED"),
        ("tenant", json!(""), "TOKEN_REFUSED"),
        ("tenant", json!(7), "TOKEN_REFUSED"),
    ] {
        let token = signer.sign(&changed(&served, claim, value.clone()));
        let answer = issuer.verify(&token).await;
        assert_eq!(reason(answer), expected, "{claim} {value}");
    }
    for missing in ["exp", "aud", "iss", "tenant"] {
        let mut claims = claims(&served);
        claims.as_object_mut().unwrap().remove(missing);
        let answer = issuer.verify(&signer.sign(&claims)).await;
        assert_eq!(reason(answer), "TOKEN_REFUSED", "{missing}");
    }
}

#[tokio::test]
async fn a_token_does_not_choose_how_it_is_verified() {
    let signer = Signer::ed25519("ed");
    let (served, issuer) = issuer(&[&signer]).await;
    let claims = claims(&served);
    let unsigned = json!({ "alg": "none", "kid": "ed" });
    let none = format!("{}.{}.", part(&unsigned), part(&claims));
    // The public key as the secret of a symmetric signature.
    let public = BASE64.decode(signer.public["x"].as_str().unwrap()).unwrap();
    let confused = symmetric("ed", &public, &claims);
    let published = symmetric("secret", b"secret", &claims);
    // Another key of the same kind and name.
    let forged = Signer::ed25519("ed").sign(&claims);
    let mut tampered = signer.sign(&claims);
    tampered.replace_range(tampered.len() - 6..tampered.len() - 4, "AA");
    for token in [
        none,
        confused,
        published,
        forged,
        tampered,
        "a.b.c".to_owned(),
    ] {
        let fault = issuer.verify(&token).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unauthenticated, "{fault}");
        assert!(!fault.message.contains(&token), "{fault}");
    }
}

/// Shorter than anybody would set.
const PAUSE: Duration = Duration::from_millis(50);

async fn until_believed(issuer: &Issuer, token: &str) {
    let believed = async {
        while issuer.verify(token).await.is_err() {
            tokio::time::sleep(PAUSE / 5).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), believed).await;
    waited.expect("the issuer is asked again after the pause");
}

#[tokio::test]
async fn guessed_keys_do_not_flood_the_issuer() {
    let signer = Signer::ed25519("known");
    let (served, issuer) = issuer(&[&signer]).await;
    issuer.verify(&signer.sign(&claims(&served))).await.unwrap();
    for guess in 0..20 {
        let guessed = Signer::ed25519(&guess.to_string());
        let answer = issuer.verify(&guessed.sign(&claims(&served))).await;
        assert_eq!(reason(answer), "TOKEN_REFUSED");
    }
    assert_eq!(served.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it_and_an_old_one_goes_when_it_is_gone() {
    let (old, new) = (Signer::ed25519("old"), Signer::ed25519("new"));
    let (served, issuer) = issuer_with(&[&old], PAUSE).await;
    let [old_token, new_token] = [&old, &new].map(|signer| signer.sign(&claims(&served)));
    issuer.verify(&old_token).await.unwrap();
    issuer.verify(&new_token).await.unwrap_err();
    served.publish(&[&new]);
    until_believed(&issuer, &new_token).await;
    let answer = issuer.verify(&old_token).await;
    assert_eq!(reason(answer), "TOKEN_REFUSED");
}

#[tokio::test]
async fn while_the_issuer_is_down_known_keys_go_on_and_others_may_be_tried_later() {
    let (known, unknown) = (Signer::ed25519("known"), Signer::ed25519("unknown"));
    let (served, issuer) = issuer_with(&[&known], PAUSE).await;
    served.go_down();
    let token = known.sign(&claims(&served));
    let fault = issuer.verify(&token).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::Unavailable, "ISSUER_UNAVAILABLE")
    );
    assert_eq!(fault.retry_after, Some(PAUSE));
    served.publish(&[&known]);
    until_believed(&issuer, &token).await;
    served.go_down();
    let asked = served.asked.load(Ordering::SeqCst);
    let other = unknown.sign(&claims(&served));
    while served.asked.load(Ordering::SeqCst) == asked {
        issuer.verify(&other).await.unwrap_err();
    }
    assert_eq!(reason(issuer.verify(&other).await), "ISSUER_UNAVAILABLE");
    issuer.verify(&token).await.unwrap();
}

#[tokio::test]
async fn callers_that_leave_end_no_fetch_and_those_that_wait_share_it() {
    let signer = Signer::ed25519("known");
    let (served, issuer) = issuer(&[&signer]).await;
    let issuer = Arc::new(issuer);
    let token = signer.sign(&claims(&served));
    let held = served.hold.lock().await;
    let asked = async {
        while served.asked.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        answer = issuer.verify(&token) => panic!("without keys: {answer:?}"),
        () = asked => {}
    }
    let waiting = (0..20).map(|_| {
        let (issuer, token) = (issuer.clone(), token.clone());
        tokio::spawn(async move { issuer.verify(&token).await })
    });
    let waiting: Vec<_> = waiting.collect();
    drop(held);
    for answer in waiting {
        answer.await.unwrap().unwrap();
    }
    assert_eq!(served.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_check_says_what_is_wrong_with_the_issuer() {
    let signer = Signer::ed25519("known");
    let (served, issuer) = issuer_with(&[&signer], PAUSE).await;
    served.go_down();
    let trouble = issuer.check().await.unwrap_err();
    assert!(trouble.message.contains("503"), "{}", trouble.message);
    served.publish(&[&signer]);
    until_believed(&issuer, &signer.sign(&claims(&served))).await;
    issuer.check().await.unwrap();
}

#[tokio::test]
async fn keys_are_not_looked_for_where_a_redirect_leads() {
    let signer = Signer::ed25519("one");
    let served = Served::start(&[&signer]).await;
    let issuer = Issuer::new(Options {
        issuer: served.url.clone(),
        audience: "memfleet".to_owned(),
        jwks_url: Some(format!("{}/moved", served.url)),
        tenant_claim: "tenant".to_owned(),
        scope_claim: "scope".to_owned(),
        pause: Duration::from_mins(1),
    });
    let fault = issuer.check().await.unwrap_err();
    assert!(fault.message.contains("redirects"), "{fault}");
    let token = signer.sign(&claims(&served));
    assert_eq!(reason(issuer.verify(&token).await), "ISSUER_UNAVAILABLE");
    assert_eq!(served.asked.load(Ordering::SeqCst), 0);
}
