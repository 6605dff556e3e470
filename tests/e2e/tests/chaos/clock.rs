//! A node whose clock steps forth and back by an hour.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use memfleet_e2e::{Journal, Node, call};
use memfleet_ports::memory::Memory;

use crate::traffic::{among, space};

/// Adds what a file says to the time of day, for one process.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long *offset;
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("CLOCK_OFFSET"), O_RDONLY);
    void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) offset = page;
}
int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME && offset) now->tv_sec += *offset;
    return failed;
}
"#;

/// In seconds.
const STEPS: [i64; 4] = [3600, 0, -3600, 0];

fn compiled(folder: &Path) -> Result<std::path::PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, SHIM)?;
    let mut compile = Command::new("cc");
    compile
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source);
    ensure!(compile.status()?.success(), "{compile:?}");
    Ok(library)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_loses_and_reorders_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (library, offset) = (compiled(folder.path())?, folder.path().join("offset"));
    // In place: the process has the file mapped.
    fs::write(&offset, 0_i64.to_ne_bytes())?;
    let step = |seconds: i64| -> Result<()> {
        use std::os::unix::fs::FileExt;
        let file = fs::File::options().write(true).open(&offset)?;
        Ok(file.write_all_at(&seconds.to_ne_bytes(), 0)?)
    };
    let (library, shown) = (library.display().to_string(), offset.display().to_string());
    let environment = [
        ("LD_PRELOAD", library.as_str()),
        ("CLOCK_OFFSET", shown.as_str()),
    ];
    let node = Node::launch(&folder.path().join("memory.db"), &environment)?;
    let client = node.client().await?;
    let mut journal = Journal::new(&space(), "clock");
    for seconds in STEPS {
        step(seconds)?;
        for _ in 0..20 {
            journal.send(&client, &call()).await?;
            let last = journal
                .acknowledged()
                .last()
                .expect("it was answered")
                .clone();
            let found = client
                .recall(&call(), among(&last.turns, &[&last], 10))
                .await?;
            ensure!(
                found.hits.len() == last.turns.len(),
                "{seconds} s: {found:?}"
            );
        }
    }
    let turns = journal.verify(&client).await?;
    ensure!(!turns.is_empty());
    Ok(())
}
