//! The samples of README.md, run as they stand and without pauses: only the node's address is another.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use memfleet_e2e::{Node, binary};
use memfleet_servers::fetch;

const ADDRESS: &str = "127.0.0.1:9460";

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The one fenced block of a language that has these words in it.
fn block(language: &str, words: &str) -> Result<String> {
    let readme = std::fs::read_to_string(checkout().join("README.md"))?;
    let fence = format!("```{language}\n");
    let mut blocks = readme.split(&fence).skip(1);
    let found = blocks.find_map(|rest| {
        let (block, _) = rest.split_once("```")?;
        block.contains(words).then(|| block.to_owned())
    });
    found.with_context(|| format!("README.md has no {language} block with `{words}`"))
}

/// A node as the quick start has it, and the folder that it runs in.
fn node() -> Result<(Node, tempfile::TempDir)> {
    let up = block("sh", "memfleet up")?;
    ensure!(
        up.trim() == "memfleet up",
        "Node::launch does not run `{up}`"
    );
    let folder = tempfile::tempdir()?;
    let node = Node::launch(&folder.path().join("memfleet.db"), &[])?;
    Ok((node, folder))
}

/// Pastes lines into a shell in `folder`.
fn paste(lines: &str, node: &Node, folder: &Path, tools: &Path) -> Result<Output> {
    let address = node.url().replace("http://", "");
    let path = std::env::var("PATH")?;
    let program = binary()?;
    let own = program.parent().context("a program is in a folder")?;
    let output = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c"])
        .arg(lines.replace(ADDRESS, &address))
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{}:{path}", own.display(), tools.display()),
        )
        .env("MEMFLEET_SERVER", node.url())
        .env_remove("MEMFLEET_API_KEY")
        .output()?;
    ensure!(output.status.success(), "{lines}\n{output:?}");
    Ok(output)
}

#[test]
fn the_client_of_the_quick_start_answers_at_once() -> Result<()> {
    let (node, folder) = node()?;
    let lines = block("sh", "memfleet remember")?;
    let output = paste(&lines, &node, folder.path(), folder.path())?;
    let said = String::from_utf8(output.stdout)?;
    for wrong in ["does not hold the answer", "incomplete:"] {
        ensure!(!said.contains(wrong), "{wrong}\n{said}");
    }
    ensure!(
        said.contains(" [1]"),
        "it is answered with its turn\n{said}"
    );
    // The profile, the story and the graph have it too, besides the hit and the block.
    ensure!(said.matches("Lisbon").count() >= 6, "{said}");
    Ok(())
}

#[test]
fn the_calls_by_grpcurl_work() -> Result<()> {
    let (node, folder) = node()?;
    let lines = block("sh", "grpcurl -plaintext")?;
    let grpcurl = fetch::grpcurl()?;
    let tools = grpcurl.parent().context("a program is in a folder")?;
    let output = paste(&lines, &node, folder.path(), tools)?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(
        said.contains("\"token\"") && said.contains("Pixel likes tuna."),
        "{said}"
    );
    Ok(())
}

#[test]
fn the_client_in_python_reads_what_it_wrote() -> Result<()> {
    let (node, folder) = node()?;
    std::os::unix::fs::symlink(checkout().join("proto"), folder.path().join("proto"))?;
    let (made, sample) = (
        block("sh", "grpc_tools.protoc")?,
        block("python", "import grpc")?,
    );
    let lines = format!("{made}\npython - <<'END'\n{sample}\nEND\n");
    let output = paste(&lines, &node, folder.path(), folder.path())?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(
        said.contains("Ada My sister Grace visits in June."),
        "{said}"
    );
    Ok(())
}
