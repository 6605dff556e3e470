//! The cache, without a network.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn with(root: bool, variables: &[(&str, &str)]) -> Option<PathBuf> {
    folder(root, |name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.into())
    })
}

#[test]
fn the_most_particular_variable_names_the_folder() {
    let all = [
        ("HOME", "/h"),
        ("XDG_CACHE_HOME", "/c"),
        ("MEMFLEET_SERVERS_CACHE", "/s"),
    ];
    assert_eq!(with(false, &all), Some("/s".into()));
    assert_eq!(with(false, &all[..2]), Some("/c/memfleet/servers".into()));
    assert_eq!(
        with(false, &all[..1]),
        Some("/h/.cache/memfleet/servers".into())
    );
    assert_eq!(with(false, &[("HOME", "")]), None);
}

#[test]
fn the_cache_of_root_is_not_in_its_closed_home() {
    let home = [("HOME", "/root"), ("XDG_CACHE_HOME", "/root/.cache")];
    assert_eq!(
        with(true, &home),
        Some("/var/cache/memfleet/servers".into())
    );
    let named = [("MEMFLEET_SERVERS_CACHE", "/s")];
    assert_eq!(with(true, &named), Some("/s".into()));
}

#[test]
fn a_program_is_fetched_once_even_by_two_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let fetches = AtomicUsize::new(0);
    let fetch = || {
        let made = Cache::at(folder.path()).get_or_make("server-1", |place| {
            fetches.fetch_add(1, Ordering::SeqCst);
            Ok(fs::write(place.join("program"), "run")?)
        });
        assert!(made.unwrap().join("program").exists());
    };
    std::thread::scope(|scope| {
        scope.spawn(fetch);
        scope.spawn(fetch);
    });
    fetch();
    assert_eq!(fetches.load(Ordering::SeqCst), 1);
}

#[test]
fn what_was_fetched_in_part_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let failed = cache.get_or_make("server-1", |place| {
        fs::write(place.join("half"), "")?;
        anyhow::bail!("the line is cut")
    });
    let error = format!("{:#}", failed.unwrap_err());
    assert_eq!(error, "cannot fetch server-1: the line is cut");
    assert_eq!(cache.get("server-1"), None);
    let place = cache.get_or_make("server-1", |_| Ok(())).unwrap();
    assert!(!place.join("half").exists());
}

#[test]
fn others_may_run_what_the_owner_may() {
    let folder = tempfile::tempdir().unwrap();
    let place = Cache::at(folder.path()).get_or_make("server-1", |place| {
        for (name, mode) in [("program", 0o700), ("file", 0o600)] {
            fs::write(place.join(name), "")?;
            fs::set_permissions(place.join(name), Permissions::from_mode(mode))?;
        }
        Ok(fs::set_permissions(place, Permissions::from_mode(0o700))?)
    });
    let place = place.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o755);
    assert_eq!(mode(&place.join("program")), 0o755);
    assert_eq!(mode(&place.join("file")), 0o644);
}
