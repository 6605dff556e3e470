//! How far a rebuild of derived memory has come.

use memfleet_domain::ids::SpaceId;
use memfleet_ports::knowledge::Rebuilding;

use super::{Checked, Fields};
use crate::proto;

impl Checked for proto::RebuildRequest {
    type Value = SpaceId;

    fn check(self, fields: &mut Fields) -> Option<SpaceId> {
        fields.name("space", self.space, SpaceId::new)
    }
}

impl Checked for proto::GetRebuildRequest {
    type Value = SpaceId;

    fn check(self, fields: &mut Fields) -> Option<SpaceId> {
        fields.name("space", self.space, SpaceId::new)
    }
}

impl From<Rebuilding> for proto::RebuildProgress {
    fn from(rebuilding: Rebuilding) -> Self {
        Self {
            reached: rebuilding.reached,
            goal: rebuilding.goal,
            staged: rebuilding.staged,
        }
    }
}

impl Checked for proto::RebuildProgress {
    type Value = Rebuilding;

    fn check(self, _: &mut Fields) -> Option<Rebuilding> {
        Some(Rebuilding {
            reached: self.reached,
            goal: self.goal,
            staged: self.staged,
        })
    }
}

impl From<Rebuilding> for proto::RebuildResponse {
    fn from(rebuilding: Rebuilding) -> Self {
        Self {
            progress: Some(rebuilding.into()),
        }
    }
}

impl Checked for proto::RebuildResponse {
    type Value = Rebuilding;

    fn check(self, fields: &mut Fields) -> Option<Rebuilding> {
        fields.message("progress", self.progress)
    }
}

impl From<Option<Rebuilding>> for proto::GetRebuildResponse {
    fn from(rebuilding: Option<Rebuilding>) -> Self {
        Self {
            progress: rebuilding.map(Into::into),
        }
    }
}

impl Checked for proto::GetRebuildResponse {
    type Value = Option<Rebuilding>;

    fn check(self, fields: &mut Fields) -> Option<Option<Rebuilding>> {
        Some(self.progress.and_then(|progress| progress.check(fields)))
    }
}
