//! The servers that tests talk to, kept running for `cargo test` in another shell.

use std::env;
use std::process::ExitCode;

use memfleet_servers::{Durability, Environment};

/// Starts them, prints the shell's commands that set the variables, and stays. Ctrl-C ends this process, and the servers end
/// with it.
pub fn hold(durability: Durability) -> ExitCode {
    let environment = match Environment::start(|name| env::var_os(name), durability) {
        Ok(environment) => environment,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    for (name, value) in environment.variables() {
        println!("export {name}={}", quoted(&value.to_string_lossy()));
    }
    eprintln!("the servers run until Ctrl-C");
    loop {
        std::thread::park();
    }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_any_value_as_it_is() {
        assert_eq!(quoted("/a b"), "'/a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
