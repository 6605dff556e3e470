//! The servers of a whole run.

use memfleet_servers::{Durability, Environment, NATS_URL, NEO4J_URL, POSTGRES_URL};

use crate::processes::{await_end, family};

#[test]
fn a_run_gets_all_servers_and_ends_all() {
    let environment = Environment::start(|_| None, Durability::Process).unwrap();
    let value = |name| {
        let found = environment.variables().find(|(key, _)| *key == name);
        found.unwrap().1.to_str().unwrap().to_owned()
    };
    assert_eq!(value(POSTGRES_URL), environment.postgres().unwrap().url());
    assert_eq!(value(NATS_URL), environment.nats().unwrap().url());
    let mut processes = family(environment.postgres().unwrap().process().unwrap());
    processes.extend(family(environment.nats().unwrap().process().unwrap()));
    assert_eq!(value(NEO4J_URL), environment.neo4j().unwrap().url());
    processes.extend(family(environment.neo4j().unwrap().process().unwrap()));
    drop(environment);
    await_end(&processes);
}
