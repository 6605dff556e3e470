//! One person in every space of a tenant.

use memfleet_domain::ids::{SpaceId, Speaker};
use memfleet_ports::subject::{InSpace, Subject, SubjectForget, SubjectProgress, SubjectTotal};

use super::{Checked, Fields};
use crate::proto::forget_subject_response::Kind;
use crate::proto::subject_in_space::Outcome;
use crate::{limits, proto};

impl From<Subject> for proto::Subject {
    fn from(subject: Subject) -> Self {
        Self {
            name: subject.name.into(),
            aliases: subject.aliases.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::Subject {
    type Value = Subject;

    fn check(self, fields: &mut Fields) -> Option<Subject> {
        let name = fields.name("name", self.name, Speaker::new);
        // With the name they are the speakers of one filter.
        let aliases = fields.names("aliases", self.aliases, limits::VALUES - 1, Speaker::new);
        Some(Subject {
            name: name?,
            aliases: aliases?,
        })
    }
}

impl From<SubjectForget> for proto::ForgetSubjectRequest {
    fn from(request: SubjectForget) -> Self {
        Self {
            subject: Some(request.subject.into()),
            dry_run: request.dry_run,
        }
    }
}

impl Checked for proto::ForgetSubjectRequest {
    type Value = SubjectForget;

    fn check(self, fields: &mut Fields) -> Option<SubjectForget> {
        Some(SubjectForget {
            subject: fields.message("subject", self.subject)?,
            dry_run: self.dry_run,
        })
    }
}

impl From<Subject> for proto::ExportSubjectRequest {
    fn from(subject: Subject) -> Self {
        Self {
            subject: Some(subject.into()),
        }
    }
}

impl Checked for proto::ExportSubjectRequest {
    type Value = Subject;

    fn check(self, fields: &mut Fields) -> Option<Subject> {
        fields.message("subject", self.subject)
    }
}

impl From<SubjectProgress> for proto::ForgetSubjectResponse {
    fn from(progress: SubjectProgress) -> Self {
        let kind = match progress {
            SubjectProgress::Space(space, done) => Kind::Space(proto::SubjectInSpace {
                space: space.into(),
                outcome: Some(done.into()),
            }),
            SubjectProgress::Total(total) => Kind::Total(total.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl Checked for proto::ForgetSubjectResponse {
    type Value = SubjectProgress;

    fn check(self, fields: &mut Fields) -> Option<SubjectProgress> {
        match self.kind {
            Some(Kind::Space(space)) => fields
                .message("space", Some(space))
                .map(|(space, done)| SubjectProgress::Space(space, done)),
            Some(Kind::Total(total)) => Some(SubjectProgress::Total(total.into())),
            None => fields.refuse("", "must be a `space` or a `total`"),
        }
    }
}

impl From<InSpace> for Outcome {
    fn from(done: InSpace) -> Self {
        match done {
            InSpace::Forgotten(receipt) => Self::Receipt(receipt.into()),
            InSpace::Held { hold, turns } => Self::Held(proto::SubjectHeld {
                hold: Some(hold.into()),
                turns,
            }),
        }
    }
}

impl Checked for proto::SubjectInSpace {
    type Value = (SpaceId, InSpace);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let done = match self.outcome {
            Some(Outcome::Receipt(receipt)) => fields
                .message("receipt", Some(receipt))
                .map(InSpace::Forgotten),
            Some(Outcome::Held(held)) => fields.message("held", Some(held)),
            None => fields.refuse("receipt", "is required"),
        };
        Some((space?, done?))
    }
}

impl Checked for proto::SubjectHeld {
    type Value = InSpace;

    fn check(self, fields: &mut Fields) -> Option<InSpace> {
        Some(InSpace::Held {
            hold: fields.message("hold", self.hold)?,
            turns: self.turns,
        })
    }
}

impl From<SubjectTotal> for proto::SubjectTotal {
    fn from(total: SubjectTotal) -> Self {
        Self {
            spaces: total.spaces,
            changed_spaces: total.changed_spaces,
            turns: total.turns,
            sessions: total.sessions,
            passages: total.passages,
            undelivered: total.undelivered,
            unreadable: total.unreadable,
            held_spaces: total.held_spaces,
            held_turns: total.held_turns,
            dry_run: total.dry_run,
            dependents: Some(total.dependents.into()),
        }
    }
}

impl From<proto::SubjectTotal> for SubjectTotal {
    fn from(total: proto::SubjectTotal) -> Self {
        Self {
            spaces: total.spaces,
            changed_spaces: total.changed_spaces,
            turns: total.turns,
            sessions: total.sessions,
            passages: total.passages,
            undelivered: total.undelivered,
            unreadable: total.unreadable,
            held_spaces: total.held_spaces,
            held_turns: total.held_turns,
            dry_run: total.dry_run,
            dependents: total.dependents.unwrap_or_default().into(),
        }
    }
}
