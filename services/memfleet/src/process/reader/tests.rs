//! The reader over pulled models.

use std::os::unix::fs::symlink;
use std::path::Path;

use memfleet_models::testing::{default_model, multilingual_model};
use memfleet_models::{DEFAULT_MODEL, ModelDirectory};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::turn_reader::TurnText;

use super::*;
use crate::config::Model;
use crate::models::ConfiguredModels;

/// The models of a folder, of which `multilingual` is configured beside the default one.
fn models(folder: &Path, multilingual: &str) -> Arc<ModelSet> {
    let config = Model {
        multilingual: multilingual.to_owned(),
        threads: 1,
        ..Model::default()
    };
    let models = ConfiguredModels {
        main: ModelDirectory::open(&folder.join(DEFAULT_MODEL)).unwrap(),
        multilingual: None,
    };
    Arc::new(ModelSet::open(&config, &models).unwrap())
}

/// A folder with links to these models.
fn folder_of(models: &[ModelDirectory]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for model in models {
        symlink(model.path(), folder.path().join(&model.manifest().name)).unwrap();
    }
    folder
}

fn turn(said: &str) -> TurnInContext {
    let turn = TurnText {
        speaker: "Ada".to_owned(),
        is_assistant: false,
        text: said.to_owned(),
    };
    TurnInContext {
        turn,
        previous: None,
    }
}

#[tokio::test]
async fn a_reader_whose_base_is_not_pulled_is_missing_until_it_is() {
    let folder = folder_of(&[default_model()]);
    let reader = ModelReader::new(models(folder.path(), ReaderModel::BASE), 10);
    let fault = reader.statements(Vec::new()).await.unwrap_err();
    assert_eq!(fault, missing_reader(ReaderModel::BASE));
    assert_eq!(
        (fault.kind, &*fault.reason),
        (FaultKind::FailedPrecondition, "READER_MISSING")
    );
    assert!(
        fault
            .message
            .contains("memfleet model pull multilingual-e5-small")
    );
    let base = multilingual_model();
    symlink(base.path(), folder.path().join(ReaderModel::BASE)).unwrap();
    let named = reader.statements(Vec::new()).await.unwrap();
    assert_eq!(named.reader, ReaderModel::NAME);
}

#[tokio::test]
async fn a_reader_whose_base_is_not_configured_is_missing() {
    let folder = folder_of(&[default_model(), multilingual_model()]);
    let reader = ModelReader::new(models(folder.path(), ""), 10);
    let fault = reader.statements(vec![turn("so")]).await.unwrap_err();
    assert_eq!(fault, missing_reader(ReaderModel::BASE));
}

#[tokio::test]
async fn the_reader_and_the_embedder_share_one_encoder() {
    let folder = folder_of(&[default_model(), multilingual_model()]);
    let models = models(folder.path(), ReaderModel::BASE);
    let reader = ModelReader::new(models.clone(), 10);
    let said = "I live in Lisbon. Where is the next bakery?";
    let statements = reader.statements(vec![turn(said)]).await.unwrap().answers;
    assert!(!statements[0].is_empty());
    let space = models.space_of(ReaderModel::BASE).await.unwrap();
    models
        .embed_query_in(&space, said.to_owned())
        .await
        .unwrap();
    let encoder = models.encoder_of(ReaderModel::BASE, ReaderModel::BASE_REVISION);
    let encoder = encoder.await.unwrap();
    // This one, that of the embedder, and that of the set: the reader has its layers.
    assert_eq!(Arc::strong_count(&encoder), 3);
}

#[tokio::test]
async fn a_base_of_another_revision_is_missing() {
    let folder = folder_of(&[default_model(), multilingual_model()]);
    let models = models(folder.path(), ReaderModel::BASE);
    let other = models.encoder_of(ReaderModel::BASE, "another").await;
    assert_eq!(other.err().unwrap().reason, "MODEL_MISSING");
    let known = memfleet_models::known(ReaderModel::BASE).unwrap();
    assert_eq!(known.revision, ReaderModel::BASE_REVISION);
}
