//! What runs on this machine.

use std::collections::HashSet;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The process and all that it started, itself or through others.
pub fn family(first: u32) -> HashSet<u32> {
    let mut family = HashSet::from([first]);
    loop {
        let before = family.len();
        let children = alive()
            .into_iter()
            .filter(|(_, parent)| family.contains(parent));
        let children: Vec<u32> = children.map(|(id, _)| id).collect();
        family.extend(children);
        if family.len() == before {
            return family;
        }
    }
}

/// Waits until none of the processes is alive.
pub fn await_end(of: &HashSet<u32>) {
    wait_until(|| alive().iter().all(|(id, _)| !of.contains(id)));
}

/// Waits until something happened that others do.
pub fn wait_until(happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "nothing happened"
        );
        sleep(Duration::from_millis(10));
    }
}

/// Ids with the ids of the parents. Dead ones that nobody has buried are left out.
fn alive() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").unwrap();
    let stats =
        entries.filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let id = stat.split(' ').next()?.parse().ok()?;
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            (state != "Z").then_some((id, parent))
        })
        .collect()
}
