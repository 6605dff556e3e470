//! Servers that do not let everybody in.

use std::time::Duration;

use memfleet_nats::{Auth, NatsQueue, Options, Tls};
use memfleet_ports::conformance::samples::{batch, instant, turn};
use memfleet_ports::queue::{Bounds, IngestQueue};
use memfleet_ports::store::StoreError;
use memfleet_tls::testing::Authority;

use crate::own::Server;
use crate::server::soon;

/// What the first call says, once the server is there.
async fn published(server: &Server, auth: Auth) -> Result<u64, StoreError> {
    let options = Options {
        servers: vec![format!("nats://127.0.0.1:{}", server.port)],
        auth,
        ..server.options()
    };
    told(options).await
}

async fn told(options: Options) -> Result<u64, StoreError> {
    let queue = NatsQueue::connect(options).await.unwrap();
    let told = batch("k", vec![turn("a", "x")]);
    let published = queue.publish(&told, instant(0), Bounds::NONE).await?;
    Ok(published.acceptance)
}

async fn is_up(server: &Server) {
    while std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Message to a caller with a wrong token. A server that is busy may not answer at first.
async fn refusal(server: &Server) -> String {
    loop {
        match published(server, Auth::Token("guessed".to_owned())).await {
            Err(StoreError::Unavailable(message)) if message.contains("no answer in time") => {}
            Err(StoreError::Unavailable(message)) => return message,
            other => panic!("expected to be refused, got {other:?}"),
        }
    }
}

#[tokio::test]
async fn whoever_has_no_token_is_told_that_the_server_is_not_available_and_why() {
    let mut server = Server::new(&["--auth", "opensesame"]);
    server.start();
    soon("the server", is_up(&server)).await;
    let message = soon("the refusal", refusal(&server)).await;
    assert!(
        message.to_lowercase().contains("authorization"),
        "{message}"
    );
    assert!(!message.contains("guessed"), "{message}");
    assert_eq!(
        published(&server, Auth::Token("opensesame".to_owned())).await,
        Ok(1)
    );
}

#[tokio::test]
async fn a_user_and_a_password_open_the_server() {
    let mut server = Server::new(&["--user", "ada", "--pass", "secret"]);
    server.start();
    soon("the server", is_up(&server)).await;
    let auth = Auth::User {
        name: "ada".to_owned(),
        password: "secret".to_owned(),
    };
    assert_eq!(published(&server, auth).await, Ok(1));
}

#[tokio::test]
async fn an_encrypted_server_is_believed_where_its_authority_is() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.issue(folder.path(), &["127.0.0.1"]);
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().unwrap());
    let mut server = Server::new(&["--tls", "--tlscert", certificate, "--tlskey", key]);
    server.start();
    soon("the server", is_up(&server)).await;
    let foreign = tempfile::tempdir().unwrap();
    let believing = |authorities| Options {
        servers: vec![format!("tls://127.0.0.1:{}", server.port)],
        tls: Tls {
            authorities: Some(authorities),
            ..Tls::default()
        },
        ..server.options()
    };
    let refused = told(believing(Authority::new().write(foreign.path()))).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    assert_eq!(told(believing(authority.write(folder.path()))).await, Ok(1));
}
