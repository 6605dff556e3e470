//! Holds a server to the cases of AMP, by its address: `cargo run -p memfleet-amp -- --server http://127.0.0.1:9460`. It writes into spaces of
//! its own, whose names begin with `amp-`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use memfleet_amp::{Case, Server, run};

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
    /// Only cases whose names have this in them.
    filter: Option<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let key = arguments.api_key.as_deref();
    let server = Server::connect(&arguments.server, key, arguments.ca.clone()).await?;
    let (mut passed, mut failed) = (0, 0);
    for case in cases(&arguments)? {
        match run(&server, &case).await {
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
    if let Some(filter) = &arguments.filter {
        cases.retain(|case| case.name.contains(filter.as_str()));
    }
    Ok(cases)
}
