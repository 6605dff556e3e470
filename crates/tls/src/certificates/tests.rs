use super::*;
use crate::testing::Authority;

#[test]
fn a_new_pair_is_taken_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let tls = Tls::load(authority.files(folder.path(), &["localhost"])).unwrap();
    let in_use = || tls.terms().anyone.unwrap();
    assert!(!tls.reload().unwrap(), "nothing has changed");

    let before = in_use();
    let (_, key) = authority.issue(folder.path(), &["localhost"]);
    assert!(tls.reload().unwrap());
    let renewed = in_use();
    assert!(!Arc::ptr_eq(&before, &renewed));

    let own = std::fs::read_to_string(&key).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (_, foreign) = authority.issue(other.path(), &["localhost"]);
    std::fs::copy(foreign, &key).unwrap();
    let refused = tls.reload().unwrap_err().to_string();
    assert!(
        refused.contains("certificate.pem cannot be used with its key"),
        "{refused}"
    );
    assert!(Arc::ptr_eq(&renewed, &in_use()));

    std::fs::remove_file(&key).unwrap();
    let refused = tls.reload().unwrap_err().to_string();
    assert!(refused.contains("key.pem cannot be read"), "{refused}");
    std::fs::write(&key, own).unwrap();
    assert!(!tls.reload().unwrap(), "the pair in use is back");
}

#[test]
fn what_cannot_be_used_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let files = Authority::new().files(folder.path(), &["localhost"]);
    let (certificate, key) = files.own.clone().unwrap();
    for (file, expected) in [
        (certificate, "holds no certificate"),
        (key, "holds no private key"),
        (files.authority.clone().unwrap(), "holds no certificate"),
    ] {
        let held = std::fs::read(&file).unwrap();
        std::fs::write(&file, "nothing of the kind").unwrap();
        let refused = Tls::load(files.clone()).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
        assert!(refused.contains(&*file.to_string_lossy()), "{refused}");
        std::fs::write(&file, held).unwrap();
    }
}

#[test]
fn the_end_of_a_certificate_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::load(Authority::new().files(folder.path(), &["localhost"])).unwrap();
    // What the test's authority signs ends with the year 4095.
    let end = Duration::from_hours(18_636_144);
    assert_eq!(tls.terms().expires, Some(end));
}
