//! The folder of one server: its data and what it said. It goes with the server.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::account::Account;

/// How much of the end of a log goes into an error.
const TOLD_LINES: usize = 8;

/// Owned by whoever the server runs as.
#[derive(Debug)]
pub(crate) struct Home {
    folder: PathBuf,
    account: Option<Account>,
}

impl Home {
    /// A new folder of this name, for a server.
    pub(crate) fn create(within: &Path, name: &str) -> Result<Self> {
        Self::owned_by(Account::for_servers()?, within, name)
    }

    /// A new folder of this name, for what runs as we do.
    pub(crate) fn of_ours(within: &Path, name: &str) -> Result<Self> {
        Self::owned_by(None, within, name)
    }

    fn owned_by(account: Option<Account>, within: &Path, name: &str) -> Result<Self> {
        let within = fs::canonicalize(within).with_context(|| within.display().to_string())?;
        let folder = within.join(name);
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let home = Self { folder, account };
        if let Some(account) = &home.account {
            // Temporary folders are made for their owner alone; whoever passes through this one still cannot list it.
            let mode = fs::metadata(&within)?.permissions().mode();
            fs::set_permissions(&within, Permissions::from_mode(mode | 0o011))?;
            account.give(&home.folder)?;
            account.reaches(&home.folder)?;
        }
        Ok(home)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The file that the output of the server's programs is added to.
    pub(crate) fn log(&self) -> Result<File> {
        let path = self.log_path();
        let file = File::options().create(true).append(true).open(&path);
        file.with_context(|| path.display().to_string())
    }

    /// What the server said.
    pub(crate) fn logged(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Whether it said this.
    pub(crate) fn has_logged(&self, words: &str) -> bool {
        self.logged().contains(words)
    }

    /// Removes what it said.
    pub(crate) fn forget_log(&self) -> Result<()> {
        File::create(self.log_path()).map(drop)?;
        Ok(())
    }

    /// The end of what the server said.
    pub(crate) fn last_words(&self) -> String {
        last_lines(&self.logged())
    }

    /// A command that runs here, as the server's user, in plain English and without settings of the caller's own server.
    pub(crate) fn command(&self, program: &Path) -> Result<Command> {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("LC_ALL", "C");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if let Some(account) = &self.account {
            account.apply(&mut command);
        }
        self.reaches(program)?;
        Ok(command)
    }

    /// Fails where the server's user cannot get to the path.
    pub(crate) fn reaches(&self, path: &Path) -> Result<()> {
        match &self.account {
            Some(account) => account.reaches(path),
            None => Ok(()),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What is left lies in a temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_holds_the_end_of_the_log() {
        let log: Vec<String> = (0..20).map(|line| format!("line {line}\n")).collect();
        let told = last_lines(&log.join("\n"));
        assert!(
            told.starts_with("line 12\n") && told.ends_with("line 19"),
            "{told}"
        );
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn a_home_that_is_dropped_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path(), "server").unwrap();
        fs::write(home.folder().join("file"), "").unwrap();
        let path = home.folder().to_owned();
        drop(home);
        assert!(!path.exists());
    }

    #[test]
    fn two_servers_do_not_share_a_home() {
        let folder = tempfile::tempdir().unwrap();
        let first = Home::create(folder.path(), "server").unwrap();
        assert!(Home::create(folder.path(), "server").is_err());
        assert!(first.folder().exists());
    }
}
