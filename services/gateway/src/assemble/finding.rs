//! What may enter a prompt is searched for, in the time that there is, without what the running conversation holds (AMP sections G and K).

use memfleet_domain::assembly::Reason;
use memfleet_domain::ids::SessionId;
use memfleet_domain::policy::Exclusion;
use memfleet_domain::time::Timestamp;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::filter::TurnFilter;

/// Adds to a filter what must not come back: it is part of the search, so that what is kept out takes no other's place (AMP item 100).
pub fn exclude(
    filter: &mut TurnFilter,
    exclusion: &Exclusion,
    session: Option<&SessionId>,
    aliases: &[SessionId],
    now: Timestamp,
) {
    if exclusion.running_session {
        for session in session.into_iter().chain(aliases) {
            if !filter.excluded_sessions.contains(session) {
                filter.excluded_sessions.push(session.clone());
            }
        }
    }
    if exclusion.newer_than_seconds > 0 {
        let age = chrono::TimeDelta::seconds(exclusion.newer_than_seconds.into());
        let until = now - age;
        let known_at = filter.as_of.known_at.map_or(until, |at| at.min(until));
        filter.as_of.known_at = Some(known_at);
    }
}

/// What a failed search means for an assembly that goes on without memory; the fault where it is the caller's to mend.
pub fn without(fault: Fault) -> Result<(Reason, String), Fault> {
    match fault.kind {
        FaultKind::NotFound => Ok((Reason::NoMemory, fault.message)),
        FaultKind::Unavailable
        | FaultKind::DeadlineExceeded
        | FaultKind::ResourceExhausted
        | FaultKind::DataLoss
        | FaultKind::Internal => {
            tracing::warn!(reason = %fault.reason, "an assembly goes without memory: {fault}");
            let told = format!("memory: {}", fault.message);
            Ok((Reason::RetrievalUnavailable, told))
        }
        _ => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::new(name.to_owned()).unwrap()
    }

    #[test]
    fn the_running_session_and_its_aliases_are_excluded_once_and_only_explicitly_not() {
        let (current, alias) = (session("now"), session("before"));
        let mut filter = TurnFilter {
            excluded_sessions: vec![alias.clone()],
            ..TurnFilter::default()
        };
        let now = Timestamp::from_timestamp(1_000, 0).unwrap();
        let mut exclusion = Exclusion::default();
        let aliases = [alias.clone()];
        exclude(&mut filter, &exclusion, Some(&current), &aliases, now);
        assert_eq!(filter.excluded_sessions, [alias, current.clone()]);
        assert_eq!(filter.as_of.known_at, None);

        let mut filter = TurnFilter::default();
        (exclusion.running_session, exclusion.newer_than_seconds) = (false, 60);
        exclude(&mut filter, &exclusion, Some(&current), &[], now);
        assert!(filter.excluded_sessions.is_empty());
        assert_eq!(filter.as_of.known_at, Timestamp::from_timestamp(940, 0));
    }
}
