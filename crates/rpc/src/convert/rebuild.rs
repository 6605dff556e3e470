//! How far a rebuild of derived memory has come, and how the graph is.

use memfleet_domain::ids::SpaceId;
use memfleet_ports::knowledge::Rebuilding;
use memfleet_ports::ledger::PageToken;
use memfleet_ports::maintenance::GraphCheck;

use super::page::page_token;
use super::{Checked, Fields};
use crate::{limits, proto};

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

macro_rules! graph_checks {
    ($($request:ident => $response:ident;)*) => {
        $(
            impl Checked for proto::$request {
                type Value = (SpaceId, Option<PageToken>);

                fn check(self, fields: &mut Fields) -> Option<Self::Value> {
                    let space = fields.name("space", self.space, SpaceId::new);
                    let after = fields.text("page_token", self.page_token, limits::PAGE_TOKEN);
                    Some((space?, page_token(after?)))
                }
            }

            impl From<GraphCheck> for proto::$response {
                fn from(check: GraphCheck) -> Self {
                    Self {
                        next_page_token: check.next.as_ref().map(|it| it.0.clone()).unwrap_or_default(),
                        check: Some(check.into()),
                    }
                }
            }

            impl Checked for proto::$response {
                type Value = GraphCheck;

                fn check(self, fields: &mut Fields) -> Option<GraphCheck> {
                    let check = fields.message("check", self.check)?;
                    Some(GraphCheck { next: page_token(self.next_page_token), ..check })
                }
            }
        )*
    };
}

graph_checks! {
    VerifyGraphRequest => VerifyGraphResponse;
    RebuildGraphRequest => RebuildGraphResponse;
}

impl From<GraphCheck> for proto::GraphCheck {
    fn from(check: GraphCheck) -> Self {
        Self {
            compared: check.compared,
            missing: check.missing,
            different: check.different,
            surplus: check.surplus,
            behind: check.behind,
        }
    }
}

impl Checked for proto::GraphCheck {
    type Value = GraphCheck;

    fn check(self, _: &mut Fields) -> Option<GraphCheck> {
        Some(GraphCheck {
            compared: self.compared,
            missing: self.missing,
            different: self.different,
            surplus: self.surplus,
            behind: self.behind,
            next: None,
        })
    }
}
