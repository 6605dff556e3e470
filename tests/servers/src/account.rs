//! Who the servers run as. PostgreSQL refuses root, so root starts servers as somebody without rights.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

const USERS: &str = "/etc/passwd";

/// In this order: a `postgres` may own a real database.
const CANDIDATES: [&str; 2] = ["nobody", "postgres"];

/// A user that root becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    user: u32,
    group: u32,
}

impl Account {
    /// `None` for anybody but root: they start servers as themselves.
    pub(crate) fn for_servers() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string(USERS).context(USERS)?;
        let found = CANDIDATES.iter().find_map(|name| find(&users, name));
        let missing =
            "PostgreSQL refuses root: run the tests as another user, or add a user `postgres`";
        found.map(Some).context(missing)
    }

    /// Makes the command run as this user.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    /// Makes the user the owner of a folder.
    pub(crate) fn give(&self, folder: &Path) -> Result<()> {
        chown(folder, Some(self.user), Some(self.group))
            .with_context(|| format!("cannot give {} to {}", folder.display(), self.name))
    }

    /// Fails, and names the folder, where the user cannot get to the path.
    pub(crate) fn reaches(&self, path: &Path) -> Result<()> {
        for folder in path.ancestors() {
            let about = fs::metadata(folder).with_context(|| folder.display().to_string())?;
            let needed = match about.uid() == self.user {
                true => 0o100,
                false => 0o001,
            };
            if about.mode() & needed == 0 {
                let name = &self.name;
                bail!(
                    "{} is closed to the user {name}, who runs the servers for root",
                    folder.display()
                );
            }
        }
        Ok(())
    }
}

fn find(users: &str, name: &str) -> Option<Account> {
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == name)?;
    Some(Account {
        name: name.to_owned(),
        user: fields.get(2)?.parse().ok()?,
        group: fields.get(3)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "root:x:0:0:root:/root:/bin/bash\n\
        nobody-else:x:7:7::/:/bin/sh\n\
        nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n\
        broken:x\n";

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let nobody = find(SOME, "nobody").unwrap();
        assert_eq!((nobody.user, nobody.group), (65534, 65533));
        assert_eq!(find(SOME, "postgres"), None);
    }

    #[test]
    fn a_line_without_numbers_is_no_user() {
        assert_eq!(find(SOME, "broken"), None);
    }

    #[test]
    fn a_closed_folder_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let stranger = Account {
            name: "stranger".to_owned(),
            user: u32::MAX - 7,
            group: u32::MAX - 7,
        };
        let error = stranger.reaches(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(&folder.path().display().to_string()),
            "{error}"
        );
        assert!(stranger.reaches(Path::new("/")).is_ok());
    }
}
