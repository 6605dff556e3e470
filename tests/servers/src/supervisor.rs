//! A server process that cannot outlive us: a small shell stands between, holds the other end of a pipe, and ends the server
//! when the pipe closes. The kernel closes it for us even when we are killed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

use crate::home::Home;
use crate::processes;

const SCRIPT: &str = include_str!("supervise.sh");

/// How often a condition is looked at again.
const GLANCE: Duration = Duration::from_millis(10);

/// How long a process may take to do what it was told, on a machine that is busy with builds.
const OBEDIENCE: Duration = Duration::from_mins(3);

/// What to run.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// The server, in messages.
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Ends the server at once and leaves nothing of it in memory: a name that `kill` knows.
    pub(crate) end: &'static str,
}

/// A server that runs, or ran.
#[derive(Debug)]
pub(crate) struct Supervised {
    shell: Child,
    /// Never written to. `Child::wait` would close it if the child kept it.
    lifeline: Option<ChildStdin>,
    server: Pid,
}

impl Supervised {
    pub(crate) fn start(home: &Home, recipe: &Recipe) -> Result<Self> {
        home.reaches(&recipe.program)?;
        let mut shell = home
            .command(Path::new("/bin/sh"))?
            .args(["-c", SCRIPT, "supervise", recipe.end])
            .arg(&recipe.program)
            .args(&recipe.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(home.log()?)
            // Ctrl-C in a terminal is for us; the server follows.
            .process_group(0)
            .spawn()
            .context("cannot run /bin/sh")?;
        let lifeline = shell.stdin.take();
        let output = shell.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let id = line.trim().parse().ok().and_then(Pid::from_raw);
        let server = id.with_context(|| format!("{} was not started", recipe.name))?;
        Ok(Self {
            shell,
            lifeline,
            server,
        })
    }

    /// The server's process.
    pub(crate) fn id(&self) -> Pid {
        self.server
    }

    /// Has the server ended?
    pub(crate) fn ended(&mut self) -> Result<bool> {
        Ok(self.shell.try_wait()?.is_some())
    }

    /// Ends the server in order, paused or not.
    pub(crate) fn stop(&mut self) -> Result<()> {
        if !self.ended()? {
            self.resume()?;
            processes::signal(self.server, Signal::INT)?;
        }
        self.await_end()
    }

    /// Stops every process of the server where it is.
    pub(crate) fn pause(&self) -> Result<Vec<Pid>> {
        processes::signal(self.server, Signal::STOP)?;
        // A process that still runs may start others.
        until("the server does not pause", || {
            processes::is_stopped(self.server)
        })?;
        let children = processes::children(self.server)?;
        for child in &children {
            processes::signal(*child, Signal::STOP)?;
        }
        for child in &children {
            until("the server does not pause", || {
                processes::is_stopped(*child)
            })?;
        }
        Ok(children)
    }

    /// Lets every process of the server go on.
    pub(crate) fn resume(&self) -> Result<()> {
        for child in processes::children(self.server)? {
            processes::signal(child, Signal::CONT)?;
        }
        processes::signal(self.server, Signal::CONT)
    }

    /// Kills every process of the server in one moment, as a power cut would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let children = self.pause()?;
        for child in &children {
            processes::signal(*child, Signal::KILL)?;
        }
        processes::signal(self.server, Signal::KILL)?;
        self.await_end()?;
        for child in &children {
            until("the server does not die", || processes::is_gone(*child))?;
        }
        Ok(())
    }

    fn await_end(&mut self) -> Result<()> {
        until("the server does not end", || self.ended())
    }
}

impl Drop for Supervised {
    /// The way of those who are killed: the shell ends the server and its folder.
    fn drop(&mut self) {
        // A paused server hears nothing; one that ended cannot be resumed.
        if matches!(self.shell.try_wait(), Ok(None)) {
            let _ = self.resume();
        }
        self.lifeline = None;
        let _ = self.shell.wait();
    }
}

/// Waits for what other processes do.
pub(crate) fn until(otherwise: &str, mut happened: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !happened()? {
        if begun.elapsed() > OBEDIENCE {
            bail!("{otherwise} within {OBEDIENCE:?}");
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}
