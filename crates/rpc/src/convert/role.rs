//! Roles and trust labels.

use memfleet_domain::turn::{Role, Trust};

use super::Fields;
use crate::proto;

impl From<Role> for proto::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::System => Self::System,
            Role::Tool => Self::Tool,
        }
    }
}

impl From<Trust> for proto::Trust {
    fn from(trust: Trust) -> Self {
        match trust {
            Trust::User => Self::User,
            Trust::Assistant => Self::Assistant,
            Trust::Tool => Self::Tool,
            Trust::Web => Self::Web,
        }
    }
}

impl Fields {
    /// A role; unspecified is the user.
    pub(super) fn role(&mut self, field: &str, role: i32) -> Option<Role> {
        match proto::Role::try_from(role) {
            Ok(proto::Role::Unspecified | proto::Role::User) => Some(Role::User),
            Ok(proto::Role::Assistant) => Some(Role::Assistant),
            Ok(proto::Role::System) => Some(Role::System),
            Ok(proto::Role::Tool) => Some(Role::Tool),
            Err(_) => self.refuse(field, format!("{role} is not a role; see the enum Role")),
        }
    }

    /// A trust label; unspecified is the one of the role.
    pub(super) fn trust(&mut self, field: &str, trust: i32, role: Option<Role>) -> Option<Trust> {
        match proto::Trust::try_from(trust) {
            Ok(proto::Trust::Unspecified) => role.map(Trust::of_role),
            Ok(proto::Trust::User) => Some(Trust::User),
            Ok(proto::Trust::Assistant) => Some(Trust::Assistant),
            Ok(proto::Trust::Tool) => Some(Trust::Tool),
            Ok(proto::Trust::Web) => Some(Trust::Web),
            Err(_) => self.refuse(
                field,
                format!("{trust} is not a trust label; see the enum Trust"),
            ),
        }
    }
}
