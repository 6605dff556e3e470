use super::*;

fn peers(addresses: &[&str]) -> Peers {
    let replica = |address: &&str| Arc::new(Replica::new(address.parse().unwrap(), None));
    Peers(Arc::new(Shared {
        names: "http://role:9460".parse().unwrap(),
        tls: None,
        replicas: RwLock::new(addresses.iter().map(replica).collect()),
        known: tokio::sync::watch::Sender::new(true),
        turn: AtomicUsize::new(0),
        watch: OnceLock::new(),
    }))
}

const THREE: [&str; 3] = ["10.0.0.1:9460", "10.0.0.2:9460", "10.0.0.3:9460"];

fn first(replicas: Result<Vec<Arc<Replica>>, Fault>) -> String {
    replicas.unwrap()[0].address().to_string()
}

#[test]
fn a_url_names_one_or_more_hosts() {
    let names = |url: &str| url.parse::<Names>().map(|names| names.to_string());
    assert_eq!(names("http://a:1").unwrap(), "http://a:1");
    assert_eq!(names("https://a:1").unwrap(), "https://a:1");
    assert_eq!(
        names("http://a:1, http://[::1]:2").unwrap(),
        "http://a:1,http://::1:2"
    );
    for malformed in [
        "",
        "a:1",
        "http://a",
        "ftp://a:1",
        "http://a:1,https://b:1",
        "http://a:1,",
        "http://a:1,b",
    ] {
        let fault = names(malformed).unwrap_err();
        assert!(fault.message.contains("http://host:port"), "{malformed}");
    }
}

#[tokio::test]
async fn a_key_stays_at_its_replica_while_others_come_and_go() {
    let (all, fewer) = (peers(&THREE), peers(&THREE[..2]));
    let mut used = std::collections::BTreeSet::new();
    for key in 0..200 {
        let at = first(all.ranked(&key));
        assert_eq!(first(all.ranked(&key)), at, "the same each time");
        if at != THREE[2] {
            assert_eq!(
                first(fewer.ranked(&key)),
                at,
                "only the keys of one that left move"
            );
        }
        used.insert(at);
    }
    assert_eq!(used.len(), 3);
}

#[tokio::test]
async fn one_that_does_not_answer_comes_last() {
    let peers = peers(&THREE);
    let before = peers.ranked(&"key").unwrap();
    before[0].failed();
    let after = peers.ranked(&"key").unwrap();
    let addresses = |replicas: &[Arc<Replica>]| {
        let addresses = replicas.iter().map(|replica| replica.address());
        addresses.collect::<Vec<_>>()
    };
    let rotated = [before[1].clone(), before[2].clone(), before[0].clone()];
    assert_eq!(addresses(&after), addresses(&rotated));
}

#[tokio::test]
async fn the_one_with_the_fewest_calls_is_asked_first() {
    let peers = peers(&THREE);
    let busy = peers.least_busy().unwrap();
    let _calls = [busy[0].begin(), busy[1].begin(), busy[1].begin()];
    for _ in 0..6 {
        assert_eq!(first(peers.least_busy()), busy[2].address().to_string());
    }
}

#[tokio::test]
async fn without_a_replica_the_fault_says_where_none_is() {
    let fault = peers(&[]).least_busy().unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable);
    assert!(fault.to_string().contains("http://role:9460"), "{fault}");
    assert!(!fault.message.contains("role:9460"), "{fault}");
}
