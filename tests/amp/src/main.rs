//! Holds a server to the cases of AMP, by its address: `cargo run -p memfleet-amp -- --server http://127.0.0.1:9460`. It writes into spaces of
//! its own, whose names begin with `amp-`, and forgets them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use memfleet_amp::{Case, Server, run_in, space_of};

/// Hold a server to the cases of AMP.
#[derive(Parser)]
struct Arguments {
    /// Its address.
    #[arg(long, env = "MEMFLEET_SERVER", default_value = "http://127.0.0.1:9460")]
    server: String,
    /// A key with the rights `read` and `write`, where it wants one.
    #[arg(long, env = "MEMFLEET_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// The authority to believe, a PEM file. Default: those of the operating system.
    #[arg(long, env = "MEMFLEET_CA")]
    ca: Option<PathBuf>,
    /// Files with cases, instead of those that are shipped.
    #[arg(long)]
    cases: Vec<PathBuf>,
    /// Leave the spaces that it wrote into, to look at.
    #[arg(long)]
    keep: bool,
    /// Only cases whose names have this in them.
    filter: Option<String>,
}

/// What ends a run that had nothing to do, as wrong arguments do: it would pass for good otherwise.
const NOTHING_TO_RUN: u8 = 2;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let cases = match chosen(cases(&arguments)?, arguments.filter.as_deref()) {
        Ok(cases) => cases,
        Err(problem) => {
            eprintln!("{problem}");
            return Ok(ExitCode::from(NOTHING_TO_RUN));
        }
    };
    let key = arguments.api_key.as_deref();
    let server = Server::connect(&arguments.server, key, arguments.ca.clone()).await?;
    let (mut passed, mut failed) = (0, 0);
    for case in cases {
        let space = space_of(&case);
        let ended = run_in(&space, &server, &case).await;
        if !arguments.keep
            && let Err(error) = server.forget(&space).await
        {
            eprintln!("{space} stays: {error:#}");
        }
        match ended {
            Ok(()) => passed += 1,
            Err(error) => {
                failed += 1;
                println!("{} (items {:?}): {error:#}\n", case.name, case.items);
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn cases(arguments: &Arguments) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for file in &arguments.cases {
        let name = || file.display().to_string();
        let json = std::fs::read_to_string(file).with_context(name)?;
        cases.extend(Case::read(&json).with_context(name)?);
    }
    if arguments.cases.is_empty() {
        cases = Case::shipped()?;
    }
    Ok(cases)
}

/// Those whose names have the filter in them; where there is none, what names there are.
fn chosen(mut cases: Vec<Case>, filter: Option<&str>) -> Result<Vec<Case>, String> {
    let filter = filter.unwrap_or_default();
    let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    let known = names.join("\n  ");
    cases.retain(|case| case.name.contains(filter));
    match cases.is_empty() {
        true => Err(format!(
            "no case has `{filter}` in its name; there are:\n  {known}"
        )),
        false => Ok(cases),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_no_case_has_is_told_with_those_that_there_are() {
        let all = || Case::shipped().unwrap();
        assert_eq!(chosen(all(), None).unwrap().len(), all().len());
        assert!(chosen(all(), Some("picture")).unwrap().len() < all().len());
        let problem = chosen(all(), Some("nosuchword")).unwrap_err();
        assert!(problem.contains("nosuchword") && problem.contains(&all()[0].name));
        assert!(chosen(Vec::new(), None).is_err());
    }
}
