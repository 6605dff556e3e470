//! What the servers have in common: started until ready, stopped, killed, paused, started again on the same data.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Pid;

use crate::home::Home;
use crate::supervisor::{Recipe, Supervised, until};

/// Does the process of this home answer?
pub(crate) type Ready<'a> = dyn Fn(&Home, Pid) -> bool + 'a;

/// One server. Fields are dropped in order: the server ends before its home goes.
#[derive(Debug)]
pub(crate) struct Server {
    running: Option<Supervised>,
    recipe: Recipe,
    home: Home,
}

impl Server {
    /// Gives the server once it is ready.
    pub(crate) fn start(home: Home, recipe: Recipe, ready: &Ready) -> Result<Self> {
        let mut server = Self {
            running: None,
            recipe,
            home,
        };
        server.start_again(ready)?;
        Ok(server)
    }

    /// Started on the data that is there; nothing happens where it runs already.
    pub(crate) fn start_again(&mut self, ready: &Ready) -> Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        let name = self.recipe.name;
        let mut running = Supervised::start(&self.home, &self.recipe)?;
        until(&format!("{name} does not answer"), || {
            if running.ended()? {
                bail!("{name} ended");
            }
            Ok(ready(&self.home, running.id()))
        })
        .with_context(|| {
            let program = self.recipe.program.display();
            format!("cannot start {program}:\n{}", self.home.last_words())
        })?;
        self.running = Some(running);
        Ok(())
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self) -> Result<()> {
        match self.running.as_mut() {
            Some(running) => running.stop()?,
            None => return Ok(()),
        }
        self.running = None;
        Ok(())
    }

    /// Stops it and copies its data.
    pub(crate) fn copy_to(&mut self, folder: &Path) -> Result<()> {
        self.stop()?;
        copy(&self.home.data(), folder)
    }

    /// Stops it and puts other data in the place of its own.
    pub(crate) fn put_back(&mut self, folder: &Path) -> Result<()> {
        self.stop()?;
        let data = self.home.data();
        std::fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
        copy(folder, &data)
    }

    /// Ends it without a chance to do anything.
    pub(crate) fn kill(&mut self) -> Result<()> {
        match self.running.as_mut() {
            Some(running) => running.kill()?,
            None => return Ok(()),
        }
        self.running = None;
        Ok(())
    }

    /// Does it run, whatever was asked of it?
    pub(crate) fn is_alive(&mut self) -> Result<bool> {
        let ended = self.running.as_mut().map(Supervised::ended).transpose()?;
        Ok(ended == Some(false))
    }

    pub(crate) fn pause(&self) -> Result<()> {
        self.supervised()?.pause().map(drop)
    }

    pub(crate) fn resume(&self) -> Result<()> {
        self.supervised()?.resume()
    }

    pub(crate) fn log(&self) -> String {
        self.home.logged()
    }

    pub(crate) fn forget_log(&self) -> Result<()> {
        self.home.forget_log()
    }

    fn supervised(&self) -> Result<&Supervised> {
        let running = self.running.as_ref();
        running.with_context(|| format!("{} does not run", self.recipe.name))
    }

    /// The id of the first process, while it runs.
    pub(crate) fn process(&self) -> Option<u32> {
        let running = self.running.as_ref()?;
        u32::try_from(running.id().as_raw_nonzero().get()).ok()
    }
}

/// A folder with its owners and rights.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(copied.success(), "{} could not be copied", from.display());
    Ok(())
}
