//! Arguments that choose turns, shared by every command that reads or forgets.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::Role;
use memfleet_ports::filter::TurnFilter;

use super::values;

/// Which turns are meant. Every condition must hold.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which turns")]
pub struct Selection {
    /// Only this turn; repeatable
    #[arg(long = "turn", value_name = "ID")]
    turns: Vec<TurnId>,
    /// Only this session; repeatable
    #[arg(long = "session", value_name = "SESSION", value_parser = values::session)]
    sessions: Vec<SessionId>,
    /// Only this speaker; repeatable
    #[arg(long = "speaker", value_name = "NAME", value_parser = values::speaker)]
    speakers: Vec<Speaker>,
    /// Only this role; repeatable
    #[arg(long = "role", value_name = "ROLE", value_parser = values::role())]
    roles: Vec<Role>,
    /// Only turns at or after this instant: a date, a date-time (UTC or RFC 3339), or how long ago (`7d`)
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    after: Option<Timestamp>,
    /// Only turns before this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    before: Option<Timestamp>,
    /// Only turns with this label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = values::label)]
    labels: Vec<(String, String)>,
}

/// What a read leaves out, and as of when it reads.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which turns")]
pub struct View {
    /// Not this session; repeatable
    #[arg(long = "not-session", value_name = "SESSION", value_parser = values::session)]
    excluded_sessions: Vec<SessionId>,
    /// Memory as it was known at this instant (by recorded time)
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    as_of: Option<Timestamp>,
    /// Only what had happened by this instant (by event time)
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    happened_by: Option<Timestamp>,
    /// Replaced turns too
    #[arg(long)]
    include_replaced: bool,
}

impl Selection {
    /// The filter that these arguments mean.
    pub fn filter(self) -> TurnFilter {
        TurnFilter {
            turns: self.turns,
            sessions: self.sessions,
            speakers: self.speakers,
            roles: self.roles,
            time: TimeRange {
                start: self.after,
                end: self.before,
            },
            metadata: self.labels,
            ..TurnFilter::default()
        }
    }

    /// The filter that these arguments and a view mean together.
    pub fn seen(self, view: View) -> TurnFilter {
        TurnFilter {
            excluded_sessions: view.excluded_sessions,
            as_of: AsOf {
                known_at: view.as_of,
                happened_by: view.happened_by,
            },
            include_replaced: view.include_replaced,
            ..self.filter()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        view: View,
    }

    fn filter(arguments: &[&str]) -> TurnFilter {
        let line = Line::try_parse_from([&["recall"], arguments].concat()).unwrap();
        line.selection.seen(line.view)
    }

    #[test]
    fn no_argument_means_every_turn() {
        assert_eq!(filter(&[]), TurnFilter::default());
    }

    #[test]
    fn every_argument_becomes_a_condition() {
        let filter = filter(&[
            "--session",
            "s1",
            "--session",
            "s2",
            "--not-session",
            "s3",
            "--speaker",
            "Noor",
            "--role",
            "tool",
            "--after",
            "2025-01-01",
            "--before",
            "2025-02-01",
            "--label",
            "a=b",
            "--as-of",
            "2025-03-01",
        ]);
        assert_eq!(filter.sessions.len(), 2);
        assert_eq!(filter.excluded_sessions[0].as_str(), "s3");
        assert_eq!(filter.speakers[0].as_str(), "Noor");
        assert_eq!(filter.roles, [Role::Tool]);
        assert!(filter.time.start < filter.time.end);
        assert_eq!(filter.metadata, [("a".to_owned(), "b".to_owned())]);
        assert!(filter.as_of.known_at.is_some() && filter.as_of.happened_by.is_none());
    }
}
