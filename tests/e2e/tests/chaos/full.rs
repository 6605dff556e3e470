//! A node whose disk is full for a while: a small one of its own, half of it taken.

use std::process::Command;

use anyhow::{Result, ensure};
use memfleet_domain::FaultKind;
use memfleet_e2e::{Journal, Node, call, up};

use crate::traffic::space;

/// Makes the disk and becomes the node. The names of the folder and of the program are given to it.
const BECOME: &str =
    r#"mount -t tmpfs -o size=48m none "$0" && head -c 24M /dev/zero > "$0/ballast" && exec "$@""#;

/// Requests after which the disk must have been full.
const MOST: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_refuses_and_loses_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk)?;
    let node = up(&disk.join("memory.db"))?;
    // A namespace of its own: the disk is of this process alone, and goes with it.
    let mut command = Command::new("unshare");
    command
        .args(["-r", "-m", "sh", "-c", BECOME])
        .arg(&disk)
        .arg(node.get_program());
    command.args(node.get_args()).current_dir(folder.path());
    for (name, value) in node.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let node = tokio::task::spawn_blocking(|| Node::of(command)).await??;
    let client = node.client().await?;
    let mut journal = Journal::new(&space(), "full");
    let refused = loop {
        match journal.send(&client, &call()).await {
            Ok(()) => ensure!(journal.acknowledged().len() < MOST, "the disk is not full"),
            Err(fault) => break fault,
        }
    };
    ensure!(refused.kind == FaultKind::ResourceExhausted, "{refused:?}");
    let inside = format!("/proc/{}/root{}/ballast", node.process(), disk.display());
    std::fs::remove_file(inside)?;
    let acknowledged = journal.acknowledged().len();
    let begun = std::time::Instant::now();
    while journal.acknowledged().len() < acknowledged + 20 {
        if let Err(fault) = journal.send(&client, &call()).await {
            ensure!(begun.elapsed().as_secs() < 60, "{fault}");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }
    journal.verify(&client).await?;
    Ok(())
}
