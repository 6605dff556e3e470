//! What logs hold of calls, of ours and of the libraries that we use.

use std::io::Write;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use memfleet_openai::Options;
use memfleet_openai::testing::Scripted;
use memfleet_ports::language_model::LanguageModel;
use tracing::Level;

use crate::setup::{Model, call, options, says, tenant};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged, at any level, of a call that says `whisper` and is answered by the script.
async fn logged(options: Options, scripted: Scripted) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let model = Model::playing(options, &[scripted]);
    let _reply = model.ask("whisper").await;
    if let Ok(pieces) = model.model.stream(&tenant(), &call("whisper")).await {
        pieces.for_each(|_| async {}).await;
    }
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn logs_hold_no_words_and_no_key() {
    for scripted in [
        says("murmur"),
        says(""),
        Scripted::Status(500, "murmur".to_owned(), None),
        Scripted::Status(401, "{\"error\":{\"message\":\"murmur\"}}".to_owned(), None),
        Scripted::Body(b"murmur".to_vec()),
        Scripted::Body(b"data: murmur\n\n".to_vec()),
        Scripted::Body(b"{\"choices\":\"murmur\"}".to_vec()),
        Scripted::Body(b"data: {\"choices\":\"murmur\"}\n\n".to_vec()),
        Scripted::Truncates("murmur murmur".to_owned()),
    ] {
        let mut options = options();
        options.key = Some("sk-secret".into());
        let log = logged(options, scripted.clone()).await;
        for secret in ["whisper", "murmur", "sk-secret"] {
            assert!(!log.contains(secret), "{scripted:?}: {log}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn words_are_logged_where_that_is_asked_for() {
    let mut options = options();
    options.trace_payloads = true;
    options.key = Some("sk-secret".into());
    let log = logged(options, says("murmur")).await;
    assert!(log.contains("whisper") && log.contains("murmur"), "{log}");
    assert!(!log.contains("sk-secret"), "{log}");
}
