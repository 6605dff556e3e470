//! Where a request works: one space of one tenant. Nothing in memfleet reads or writes without it.

use serde::{Deserialize, Serialize};

use crate::ids::{SpaceId, TenantId};

/// One space of one tenant. The tenant comes from the credential, the space from the request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// Whose data.
    pub tenant: TenantId,
    /// Which memory.
    pub space: SpaceId,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.tenant, self.space)
    }
}
