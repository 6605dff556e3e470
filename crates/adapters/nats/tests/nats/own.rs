//! A server of a test's own.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use memfleet_nats::Options;
use tempfile::TempDir;

/// A server that a test may start and kill.
pub struct Server {
    pub port: u16,
    files: TempDir,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Server {
    pub fn new(arguments: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            port: free.local_addr().unwrap().port(),
            files: tempfile::tempdir().unwrap(),
            arguments: arguments.iter().map(|&one| one.to_owned()).collect(),
            process: None,
        }
    }

    pub fn start(&mut self) {
        let program = std::env::var("MEMFLEET_TEST_NATS_SERVER").expect(
            "these tests stop and start a NATS server: run `cargo xtask test`, or name the nats-server program in MEMFLEET_TEST_NATS_SERVER",
        );
        let files = self.files.path().to_owned();
        let mut command = Command::new(program);
        command
            .args(["-js", "-a", "127.0.0.1", "-p"])
            .arg(self.port.to_string());
        command.arg("-sd").arg(files).args(&self.arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    /// Without a chance to write anything more.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn options(&self) -> Options {
        Options {
            servers: vec![format!("nats://someone:secret@127.0.0.1:{}", self.port)],
            request_timeout: Duration::from_secs(2),
            max_bytes: 64 << 20,
            ..Options::default()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
