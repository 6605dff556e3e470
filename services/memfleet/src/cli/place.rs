//! The space or the tenant that a command is about. Both are options; earlier versions took them as
//! the first argument, which still works.

use clap::Args;
use memfleet_domain::ids::{SpaceId, TenantId};

use super::values;

/// A space.
#[derive(Debug, Args)]
pub struct InSpace {
    /// The space
    #[arg(long, value_name = "SPACE", value_parser = values::space, required_unless_present = "first")]
    space: Option<SpaceId>,
    #[arg(hide = true, value_name = "SPACE", value_parser = values::space, conflicts_with = "space")]
    first: Option<SpaceId>,
}

impl InSpace {
    /// Its name.
    pub fn name(&self) -> &SpaceId {
        one(self.space.as_ref(), self.first.as_ref())
    }
}

/// A tenant.
#[derive(Debug, Args)]
pub struct OfTenant {
    /// The tenant
    #[arg(long, value_name = "TENANT", value_parser = values::tenant, required_unless_present = "first")]
    tenant: Option<TenantId>,
    #[arg(hide = true, value_name = "TENANT", value_parser = values::tenant, conflicts_with = "tenant")]
    first: Option<TenantId>,
}

impl OfTenant {
    /// Its name.
    pub fn name(&self) -> &TenantId {
        one(self.tenant.as_ref(), self.first.as_ref())
    }
}

fn one<'a, T>(option: Option<&'a T>, first: Option<&'a T>) -> &'a T {
    option.or(first).expect("the parser takes one of both")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        space: InSpace,
    }

    #[test]
    fn a_space_is_an_option_or_as_in_earlier_versions_the_first_argument() {
        for arguments in [&["x", "--space", "ada"][..], &["x", "ada"]] {
            let line = Line::try_parse_from(arguments).unwrap();
            assert_eq!(line.space.name().as_str(), "ada");
        }
        for arguments in [&["x"][..], &["x", "ada", "--space", "bob"]] {
            assert!(Line::try_parse_from(arguments).is_err());
        }
    }
}
