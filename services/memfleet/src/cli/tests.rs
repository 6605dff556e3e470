//! The command line as users see it.

use clap::{Command, CommandFactory, Parser};

use super::Cli;

/// Every command with its path, itself first.
fn all(command: Command, path: &str) -> Vec<(String, Command)> {
    let path = format!("{path}{}", command.get_name());
    let inner = command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help")
        .cloned()
        .collect::<Vec<_>>();
    let below = inner
        .into_iter()
        .flat_map(|inner| all(inner, &format!("{path} ")));
    [(path.clone(), command)].into_iter().chain(below).collect()
}

#[test]
fn help_of_every_command() {
    let mut root = Cli::command().term_width(100);
    root.build();
    for (path, mut command) in all(root, "") {
        insta::assert_snapshot!(path.replace(' ', "_"), command.render_help());
    }
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_is_documented() {
    let documentation = include_str!("../../../../docs/cli.md");
    let mut root = Cli::command();
    root.build();
    for (path, command) in all(root, "") {
        if !command.has_subcommands() {
            assert!(
                documentation.contains(&format!("`{path}")),
                "docs/cli.md does not name `{path}`"
            );
        }
    }
}

#[test]
fn global_options_work_after_the_command() {
    let cli = Cli::try_parse_from(["memfleet", "status", "--json", "--timeout", "2s"]).unwrap();
    assert!(cli.global.prints_json());
    assert_eq!(cli.global.timeout.unwrap().get().as_secs(), 2);
}

#[test]
fn wrong_arguments_end_with_the_documented_code() {
    let error = Cli::try_parse_from(["memfleet", "recall"]).unwrap_err();
    assert_eq!(error.exit_code(), super::Exit::Usage as i32);
}

#[test]
fn what_is_wrong_with_a_command_line_is_said_on_one_line() {
    let error = Cli::try_parse_from(["memfleet", "recall", "--json", "where?"]).unwrap_err();
    let error = super::usage(&error);
    assert_eq!(error.exit(), super::Exit::Usage);
    let said = error.to_string();
    assert!(said.contains("--space") && !said.contains('\n'), "{said}");
    assert!(!said.starts_with("error"), "{said}");
}

#[test]
fn json_of_a_bench_may_go_to_a_file() {
    let cli = Cli::try_parse_from([
        "memfleet",
        "bench",
        "retrieval",
        "data.json",
        "--json",
        "out.json",
    ])
    .unwrap();
    assert!(!cli.global.prints_json());
    let cli =
        Cli::try_parse_from(["memfleet", "--json", "bench", "retrieval", "data.json"]).unwrap();
    assert!(cli.global.prints_json());
}

#[test]
fn json_takes_no_value_elsewhere() {
    let cli = Cli::try_parse_from([
        "memfleet",
        "recall",
        "--json",
        "where is Noor?",
        "--space",
        "demo",
    ])
    .unwrap();
    assert!(cli.global.prints_json());
}

#[test]
fn a_long_value_is_not_repeated_whole() {
    let long = "ä".repeat(300);
    let arguments = ["memfleet", "turns", "--space", "ada", "--session", &long];
    let error = Cli::try_parse_from(arguments).unwrap_err();
    let told = super::shortened(error).to_string();
    assert!(told.contains("at most 256 are allowed"), "{told}");
    assert!(told.contains(&format!("'{}…'", "ä".repeat(64))), "{told}");
    assert!(!told.contains(&"ä".repeat(65)), "{told}");
}
