//! An issuer of tokens: what signs them, and the server that publishes its keys.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::get;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

/// A private key for these tests alone, in PKCS #8: `openssl genpkey -algorithm RSA -outform DER`.
const RSA_KEY: &[u8] = include_bytes!("rsa.pk8");

/// Gives the signature of a message.
type Signing = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// What signs, and what is published of it.
pub struct Signer {
    pub id: String,
    algorithm: &'static str,
    sign: Signing,
    pub public: Value,
}

impl Signer {
    pub fn ed25519(id: &str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let x = BASE64.encode(pair.public_key());
        Self {
            id: id.to_owned(),
            algorithm: "EdDSA",
            sign: Box::new(move |message| pair.sign(message).as_ref().to_vec()),
            public: json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": id, "use": "sig" }),
        }
    }

    pub fn p256(id: &str) -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap();
        let point = &pair.public_key().as_ref()[1..];
        let (x, y) = (BASE64.encode(&point[..32]), BASE64.encode(&point[32..]));
        Self {
            id: id.to_owned(),
            algorithm: "ES256",
            sign: Box::new(move |message| pair.sign(&random, message).unwrap().as_ref().to_vec()),
            public: json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id }),
        }
    }

    pub fn rsa(id: &str) -> Self {
        let pair = RsaKeyPair::from_pkcs8(RSA_KEY).unwrap();
        let parts = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
        let (n, e) = (BASE64.encode(parts.n), BASE64.encode(parts.e));
        let sign = move |message: &[u8]| {
            let mut signature = vec![0; pair.public().modulus_len()];
            let random = SystemRandom::new();
            pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                .unwrap();
            signature
        };
        Self {
            id: id.to_owned(),
            algorithm: "RS256",
            sign: Box::new(sign),
            public: json!({ "kty": "RSA", "n": n, "e": e, "kid": id, "alg": "RS256" }),
        }
    }

    pub fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm, "typ": "JWT", "kid": self.id });
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = BASE64.encode((self.sign)(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

pub fn part(value: &Value) -> String {
    BASE64.encode(value.to_string())
}

/// What the issuer's server answers.
pub struct Served {
    keys: Mutex<Option<Value>>,
    pub asked: AtomicU32,
    /// While this is locked no key is answered.
    pub hold: tokio::sync::Mutex<()>,
    pub url: String,
}

impl Served {
    /// A server on a free port.
    pub async fn start(signers: &[&Signer]) -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served = Arc::new(Self {
            keys: Mutex::default(),
            asked: AtomicU32::new(0),
            hold: tokio::sync::Mutex::default(),
            url: format!("http://{}", listener.local_addr().unwrap()),
        });
        served.publish(signers);
        let routes = Router::new()
            .route("/keys", get(keys))
            .route("/moved", get(async || Redirect::temporary("/keys")))
            .route("/.well-known/openid-configuration", get(discovery))
            .with_state(served.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        served
    }

    pub fn publish(&self, signers: &[&Signer]) {
        let keys: Vec<_> = signers.iter().map(|signer| &signer.public).collect();
        // What others publish beside, and we do not use.
        let others = [
            json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "secret" }),
            json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA", "kid": "p384" }),
        ];
        let all: Vec<_> = keys.into_iter().chain(&others).collect();
        *self.keys.lock().unwrap() = Some(json!({ "keys": all }));
    }

    pub fn go_down(&self) {
        *self.keys.lock().unwrap() = None;
    }
}

async fn keys(State(served): State<Arc<Served>>) -> Result<String, StatusCode> {
    served.asked.fetch_add(1, Ordering::SeqCst);
    drop(served.hold.lock().await);
    let keys = served.keys.lock().unwrap();
    let keys = keys.as_ref().map(ToString::to_string);
    keys.ok_or(StatusCode::SERVICE_UNAVAILABLE)
}

async fn discovery(State(served): State<Arc<Served>>) -> String {
    let url = &served.url;
    json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }).to_string()
}

pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs().cast_signed()
}

/// Claims of a token that is good.
pub fn claims(served: &Served) -> Value {
    json!({
        "iss": served.url,
        "aud": ["another", "memfleet"],
        "sub": "backend-7",
        "exp": now() + 600,
        "nbf": now(),
        "tenant": "acme",
        "scope": "openid memfleet:read memfleet:write memfleet:space:support/*",
    })
}
