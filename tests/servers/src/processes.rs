//! The machine's processes: PostgreSQL is many, and each is a group of its own, so that no single signal reaches all.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    /// As `ps` has it: `T` stopped, `Z` dead and not yet buried by its parent.
    state: char,
}

/// The processes that this one started and that are alive.
pub(crate) fn children(parent: Pid) -> Result<Vec<Pid>> {
    let parent = parent.as_raw_nonzero().get();
    let children = all()?
        .into_iter()
        .filter(|process| process.parent == parent && process.state != 'Z');
    Ok(children
        .filter_map(|process| Pid::from_raw(process.id))
        .collect())
}

/// Is the process stopped?
pub(crate) fn is_stopped(id: Pid) -> Result<bool> {
    Ok(state(id)?.is_none_or(|state| matches!(state, 'T' | 'Z')))
}

/// Has the process ended?
pub(crate) fn is_gone(id: Pid) -> Result<bool> {
    Ok(state(id)?.is_none_or(|state| state == 'Z'))
}

/// A process that has ended by now is no error.
pub(crate) fn signal(id: Pid, signal: Signal) -> Result<()> {
    match kill_process(id, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot signal process {id}")),
    }
}

fn state(id: Pid) -> Result<Option<char>> {
    if !has_files() {
        let id = id.as_raw_nonzero().get();
        let found = from_command()?.into_iter().find(|process| process.id == id);
        return Ok(found.map(|process| process.state));
    }
    let stat = fs::read_to_string(format!("/proc/{id}/stat"));
    Ok(stat
        .ok()
        .and_then(|stat| from_stat(&stat))
        .map(|process| process.state))
}

fn has_files() -> bool {
    Path::new("/proc/self/stat").exists()
}

fn all() -> Result<Vec<Process>> {
    if has_files() {
        from_files()
    } else {
        from_command()
    }
}

fn from_files() -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        // Processes end while they are listed, and much in there is no process.
        if let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) {
            processes.extend(from_stat(&stat));
        }
    }
    Ok(processes)
}

/// The name, which may hold anything, is in parentheses.
fn from_stat(stat: &str) -> Option<Process> {
    let id = stat.split(' ').next()?.parse().ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some(Process {
        id,
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
    })
}

fn from_command() -> Result<Vec<Process>> {
    let arguments = ["-A", "-o", "pid=,ppid=,stat="];
    let output = Command::new("ps").args(arguments).output().context("ps")?;
    if !output.status.success() {
        bail!("ps: {}", output.status);
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().filter_map(from_line).collect())
}

fn from_line(line: &str) -> Option<Process> {
    let mut fields = line.split_whitespace();
    Some(Process {
        id: fields.next()?.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        state: fields.next()?.chars().next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPED: Process = Process {
        id: 42,
        parent: 7,
        state: 'T',
    };

    #[test]
    fn a_name_may_look_like_fields() {
        assert_eq!(from_stat("42 (a) S 1 (b) T 7 42 42 0"), Some(STOPPED));
        assert_eq!(from_stat("cpu  1 2 3"), None);
    }

    #[test]
    fn lines_of_ps_are_read() {
        assert_eq!(from_line("   42     7 Ts"), Some(STOPPED));
        assert_eq!(from_line(""), None);
    }

    #[test]
    fn a_child_is_seen_until_it_ends() {
        let own = rustix::process::getpid();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = Pid::from_child(&child);
        assert!(children(own).unwrap().contains(&id));
        assert!(!is_gone(id).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(own).unwrap().contains(&id));
        assert!(is_gone(id).unwrap());
    }
}
