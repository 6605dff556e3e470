//! A program of our own that runs beside the servers, and like them ends with its handle or with whoever started it.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use crate::home::Home;
use crate::port;
use crate::server::Server;
use crate::supervisor::Recipe;

/// How one is run.
#[derive(Debug)]
pub struct Command<'a> {
    /// What it is called in messages, and its folder under the one given.
    pub name: &'static str,
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// More environment.
    pub environment: &'a [(&'a str, String)],
    /// What it logs when it is ready.
    pub ready: &'static str,
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    server: Server,
    ready: &'static str,
}

/// A port of loopback that nobody listens on, and that no outgoing connection gets.
pub fn free_port() -> Result<u16> {
    port::free()
}

impl Program {
    /// Starts it, and waits until it is ready. Its log lies in its folder.
    pub fn start(folder: &Path, command: &Command<'_>) -> Result<Self> {
        let home = Home::of_ours(folder, command.name)?;
        let environment = command.environment.iter();
        let variables = environment.map(|(name, value)| OsString::from(format!("{name}={value}")));
        let recipe = Recipe {
            name: command.name,
            program: "/usr/bin/env".into(),
            arguments: variables
                .chain([command.program.into()])
                .chain(command.arguments.iter().map(OsString::from))
                .collect(),
            end: "KILL",
        };
        let ready = command.ready;
        let server = Server::start(home, recipe, &|home, _| home.has_logged(ready))?;
        Ok(Self { server, ready })
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The id of its process, while it runs.
    pub fn process(&self) -> Option<u32> {
        self.server.process()
    }

    /// Whether it runs: one that was started may have ended by itself.
    pub fn is_alive(&mut self) -> Result<bool> {
        self.server.is_alive()
    }

    /// Ends it in order.
    pub fn stop(&mut self) -> Result<()> {
        self.server.stop()
    }

    /// Ends it without a chance to do anything.
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts it again as it was, if it does not run.
    pub fn restart(&mut self) -> Result<()> {
        if self.process().is_none() {
            self.server.forget_log()?;
        }
        let ready = self.ready;
        self.server.start_again(&|home, _| home.has_logged(ready))
    }

    /// Stops it where it is.
    pub fn pause(&self) -> Result<()> {
        self.server.pause()
    }

    /// Lets it go on.
    pub fn resume(&self) -> Result<()> {
        self.server.resume()
    }
}
