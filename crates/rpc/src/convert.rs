//! Messages to domain types and back. Domain to message is `From`; message to domain is [`Checked`], which finds every
//! violation before it gives up, so that one round trip is enough to mend a request.

mod admin;
mod answer;
mod assembly;
mod audit;
mod capture;
mod changes;
mod derivation;
mod derived;
mod embedding;
mod explanation;
mod fields;
mod filter;
mod graph;
mod ingestion;
mod injections;
mod knowledge;
mod maintenance;
mod names;
mod narrative;
mod page;
mod policies;
mod policy;
mod prompt;
mod reading;
mod rebuild;
mod recall;
mod record;
mod requests;
mod role;
mod space;
mod subject;
mod switching;
mod time;
mod tools;
mod turn;
mod words;

use memfleet_domain::{Fault, FaultKind};

pub(crate) use admin::named;
pub(crate) use audit::{RecordsOf, range};
pub use fields::Fields;
pub(crate) use maintenance::LettersOf;
pub use record::ImportMessage;

/// A message that becomes a domain value if all its fields are right.
pub trait Checked {
    /// What it becomes.
    type Value;

    /// The value; `None` only after a violation was added to `fields`.
    fn check(self, fields: &mut Fields) -> Option<Self::Value>;
}

/// Takes a request. The fault is `INVALID_ARGUMENT` and names each field at fault (the first 20) by its path in the proto.
pub fn accept<M: Checked>(request: M) -> Result<M::Value, Fault> {
    check(request, Fields::of_request())
}

/// Takes a request of another role. Sizes are not limited: they were at the gateway, which may ask for more than its callers.
pub fn relay<M: Checked>(request: M) -> Result<M::Value, Fault> {
    check(request, Fields::of_answer())
}

fn check<M: Checked>(request: M, mut fields: Fields) -> Result<M::Value, Fault> {
    let value = request.check(&mut fields);
    match (value, fields.into_fault()) {
        (_, Some(fault)) => Err(fault),
        (value, None) => {
            value.ok_or_else(|| Fault::internal("a request was refused without a reason"))
        }
    }
}

/// Takes an answer. Sizes are not limited: what a server holds was checked when it came. The fault is `INTERNAL`, for a
/// server that answers what its proto does not say.
pub fn understand<M: Checked>(answer: M) -> Result<M::Value, Fault> {
    let mut fields = Fields::of_answer();
    let value = answer.check(&mut fields);
    match (value, fields.into_fault()) {
        (Some(value), None) => Ok(value),
        (_, fault) => {
            let why = fault.map_or_else(String::new, |fault| format!(": {fault}"));
            let message = format!(
                "the server's answer is not understood{why}; are both sides of one version?"
            );
            Err(Fault::new(
                FaultKind::Internal,
                "ANSWER_NOT_UNDERSTOOD",
                message,
            ))
        }
    }
}

#[cfg(test)]
mod tests;
