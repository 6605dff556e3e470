//! NATS, spoken to in its own words.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use memfleet_servers::{Nats, fetch};

use crate::processes::{await_end, family};

/// One connection.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(server: &Nats) -> std::io::Result<Self> {
        let url = server.url();
        let connection = TcpStream::connect(url.strip_prefix("nats://").unwrap())?;
        connection.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self(BufReader::new(connection)))
    }

    /// The line with which the server greets.
    fn greeting(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// The answer to a request; what else the server says is passed over.
    fn request(&mut self, subject: &str, payload: &str) -> String {
        let length = payload.len();
        let words = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB inbox 1\r\nPUB {subject} inbox {length}\r\n{payload}\r\n"
        );
        self.0.get_mut().write_all(words.as_bytes()).unwrap();
        loop {
            let line = self.greeting();
            assert!(!line.is_empty(), "the server hung up");
            if let Some(length) = line
                .strip_prefix("MSG ")
                .and_then(|line| line.trim().rsplit(' ').next())
            {
                let mut answer = vec![0; length.parse().unwrap()];
                self.0.read_exact(&mut answer).unwrap();
                return String::from_utf8(answer).unwrap();
            }
        }
    }
}

fn request(server: &Nats, subject: &str, payload: &str) -> String {
    let mut client = Client::connect(server).unwrap();
    client.greeting();
    client.request(subject, payload)
}

#[test]
fn what_was_acknowledged_survives_a_stop_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Nats::start(folder.path(), "").unwrap();
    let url = server.url();
    let created = request(
        &server,
        "$JS.API.STREAM.CREATE.kept",
        r#"{"name":"kept","subjects":["kept.>"],"storage":"file"}"#,
    );
    assert!(created.contains("\"name\":\"kept\""), "{created}");

    request(&server, "kept.a", "first");
    server.stop().unwrap();
    assert_eq!(server.process(), None);
    assert!(Client::connect(&server).is_err());
    server.restart().unwrap();

    request(&server, "kept.a", "second");
    let processes = family(server.process().unwrap());
    server.kill().unwrap();
    await_end(&processes);
    server.restart().unwrap();

    let about = request(&server, "$JS.API.STREAM.INFO.kept", "");
    assert!(about.contains("\"messages\":2"), "{about}");
    assert_eq!(server.url(), url);
}

#[test]
fn two_servers_with_their_own_settings_do_not_see_each_other() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = Nats::start(folders[0].path(), "max_payload: 4096").unwrap();
    let second = Nats::start(folders[1].path(), "").unwrap();
    assert_ne!(first.url(), second.url());
    let greeting = |server| Client::connect(server).unwrap().greeting();
    assert!(greeting(&first).contains("\"max_payload\":4096,"));
    assert!(greeting(&second).contains("\"max_payload\":1048576,"));
}

#[test]
fn a_paused_server_answers_after_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Nats::start(folder.path(), "").unwrap();
    server.pause().unwrap();
    let mut client = Client::connect(&server).unwrap();
    // That nothing happens cannot be awaited.
    let brief = Some(Duration::from_millis(200));
    client.0.get_ref().set_read_timeout(brief).unwrap();
    assert!(client.0.fill_buf().is_err());
    server.resume().unwrap();
    let long = Some(Duration::from_secs(10));
    client.0.get_ref().set_read_timeout(long).unwrap();
    assert!(client.greeting().starts_with("INFO "));
}

#[test]
fn a_dropped_server_leaves_nothing_even_if_it_was_paused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Nats::start(folder.path(), "").unwrap();
    let processes = family(server.process().unwrap());
    server.pause().unwrap();
    drop(server);
    await_end(&processes);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let error = Nats::start(folder.path(), "max_payload: many").unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("nats.conf:1"), "{error}");
}

#[test]
fn a_program_that_is_there_is_not_fetched_again() {
    let first = fetch::nats().unwrap();
    let begun = Instant::now();
    assert_eq!(fetch::nats().unwrap(), first);
    // No network is asked in this time, nor any package tool.
    assert!(begun.elapsed() < Duration::from_millis(100));
}
