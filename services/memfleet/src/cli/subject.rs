//! One person in every space of the tenant, as `forget` and `export` take them.

use clap::Args;
use memfleet_domain::ids::Speaker;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::subject::Subject;

use super::exit::Error;
use super::values;

/// Who is meant.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "One person in all spaces")]
pub struct WhoseTurns {
    /// Every turn of this speaker, in all spaces; needs a key that reaches them all
    #[arg(long, value_name = "NAME", value_parser = values::speaker)]
    subject: Option<Speaker>,
    /// Another name of the same person; repeatable
    #[arg(long = "alias", value_name = "NAME", value_parser = values::speaker)]
    aliases: Vec<Speaker>,
}

impl WhoseTurns {
    /// The person, where one is named; then no condition may be set beside.
    pub fn subject(self, beside: &TurnFilter) -> Result<Option<Subject>, Error> {
        let Some(name) = self.subject else {
            return match self.aliases.as_slice() {
                [] => Ok(None),
                _ => Err(Error::Usage(
                    "--alias is another name of --subject: name one".to_owned(),
                )),
            };
        };
        if *beside != TurnFilter::default() {
            return Err(Error::Usage(
                "--subject means every turn of a person: leave out --turn, --session, --speaker, --after and the other \
                 conditions, or name one space with --space"
                    .to_owned(),
            ));
        }
        Ok(Some(Subject {
            name,
            aliases: self.aliases,
        }))
    }
}
