//! `memfleet completions`: what a shell needs to complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use super::exit::{Error, Exit};
use crate::output::Output;

/// Print the completions for a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &CompletionsArgs, output: &mut Output) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "memfleet", &mut script);
    output.text(String::from_utf8_lossy(&script).trim_end_matches('\n'))?;
    Ok(Exit::Done)
}
