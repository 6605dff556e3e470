//! A NATS server with JetStream.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::home::Home;
use crate::server::Server;
use crate::supervisor::Recipe;
use crate::{fetch, port};

/// How long a server that is not ready yet is listened to.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server of its own data. Ends, and takes the data along, when it is dropped.
#[derive(Debug)]
pub struct Nats {
    server: Server,
    port: u16,
    monitoring: u16,
}

impl Nats {
    /// A new, empty server whose data lies under the folder. `configuration` is text of the server's own configuration file,
    /// such as `max_payload: 65536`; empty for its defaults.
    pub fn start(folder: &Path, configuration: &str) -> Result<Self> {
        Self::start_from(&fetch::nats()?, folder, configuration)
    }

    /// The same, from a program.
    pub fn start_from(program: &Path, folder: &Path, configuration: &str) -> Result<Self> {
        let home = Home::create(folder, "nats")?;
        let file = home.folder().join("nats.conf");
        fs::write(&file, configuration).with_context(|| file.display().to_string())?;
        let (port, monitoring) = (port::free()?, port::free()?);
        let recipe = Recipe {
            name: "NATS",
            // The server runs in another folder.
            program: std::path::absolute(program)?,
            arguments: arguments(&file, &home.data(), port, monitoring),
            end: "KILL",
        };
        Ok(Self {
            server: Server::start(home, recipe, &|_, _| is_ready(port, monitoring))?,
            port,
            monitoring,
        })
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The address of its HTTP monitoring: `/varz`, `/jsz`, `/healthz`.
    pub fn monitoring_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.monitoring)
    }

    /// The id of the process, while it runs.
    pub fn process(&self) -> Option<u32> {
        self.server.process()
    }

    /// Ends the server in order.
    pub fn stop(&mut self) -> Result<()> {
        self.server.stop()
    }

    /// Kills the server (SIGKILL).
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts on the same ports and data, after a stop if it runs.
    pub fn restart(&mut self) -> Result<()> {
        let (port, monitoring) = (self.port, self.monitoring);
        self.server.stop()?;
        self.server.start_again(&|_, _| is_ready(port, monitoring))
    }

    /// Stops the server and copies its data to a folder that is not there yet; it is not started again.
    pub fn copy_to(&mut self, folder: &Path) -> Result<()> {
        self.server.copy_to(folder)
    }

    /// Replaces the data by such a copy; the server is stopped for it and not started again.
    pub fn put_back(&mut self, folder: &Path) -> Result<()> {
        self.server.put_back(folder)
    }

    /// Stops the server where it is (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.server.pause()
    }

    /// Lets a paused server go on.
    pub fn resume(&self) -> Result<()> {
        self.server.resume()
    }
}

fn arguments(configuration: &Path, data: &Path, port: u16, monitoring: u16) -> Vec<OsString> {
    vec![
        "-c".into(),
        configuration.into(),
        "-js".into(),
        "-sd".into(),
        data.into(),
        "-a".into(),
        "127.0.0.1".into(),
        "-p".into(),
        port.to_string().into(),
        "-m".into(),
        monitoring.to_string().into(),
    ]
}

/// Clients are greeted, and JetStream has recovered what it stores.
fn is_ready(port: u16, monitoring: u16) -> bool {
    greets(port).unwrap_or(false) && is_healthy(monitoring).unwrap_or(false)
}

fn greets(port: u16) -> std::io::Result<bool> {
    let mut line = String::new();
    BufReader::new(connect(port)?).read_line(&mut line)?;
    Ok(line.starts_with("INFO ") && line.contains("\"jetstream\":true"))
}

fn is_healthy(monitoring: u16) -> std::io::Result<bool> {
    let mut connection = connect(monitoring)?;
    connection.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(says_ok(&answer))
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connection = TcpStream::connect_timeout(&address, PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

fn says_ok(answer: &str) -> bool {
    answer.split(' ').nth(1) == Some("200")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_the_status_of_the_answer() {
        assert!(says_ok("HTTP/1.0 200 OK\r\n\r\n{\"status\":\"ok\"}"));
        assert!(!says_ok("HTTP/1.0 503 Service Unavailable\r\n\r\n200 200"));
        assert!(!says_ok(""));
    }
}
