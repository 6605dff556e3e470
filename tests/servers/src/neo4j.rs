//! A Neo4j server.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
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

/// A server of its own data, which lets everybody on this machine in. Ends, and takes the data along, when it is dropped.
#[derive(Debug)]
pub struct Neo4j {
    server: Server,
    bolt: u16,
    http: u16,
}

impl Neo4j {
    /// A new, empty server whose data lies under the folder.
    pub fn start(folder: &Path) -> Result<Self> {
        Self::start_from(&fetch::neo4j()?, folder)
    }

    /// The same, from a folder of libraries.
    pub fn start_from(libraries: &Path, folder: &Path) -> Result<Self> {
        let home = Home::create(folder, "neo4j")?;
        let (bolt, http) = (port::free()?, port::free()?);
        let configuration = home.folder().join("neo4j.conf");
        let text = configured(bolt, http);
        fs::write(&configuration, text).with_context(|| configuration.display().to_string())?;
        // The server runs in another folder.
        let libraries = std::path::absolute(libraries)?;
        home.reaches(&libraries)?;
        let recipe = Recipe {
            name: "Neo4j",
            program: fetch::java()?,
            arguments: arguments(&libraries, home.folder()),
            end: "KILL",
        };
        Ok(Self {
            server: Server::start(home, recipe, &|_, _| is_ready(bolt, http))?,
            bolt,
            http,
        })
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("bolt://127.0.0.1:{}", self.bolt)
    }

    /// The id of the process, while it runs.
    pub fn process(&self) -> Option<u32> {
        self.server.process()
    }

    /// Kills the server (SIGKILL). What was committed is on disk.
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts on the same ports and data, after a kill if it runs.
    pub fn restart(&mut self) -> Result<()> {
        let (bolt, http) = (self.bolt, self.http);
        // Java leaves alone a signal that was ignored when it started, as SIGINT is in the background.
        self.server.kill()?;
        self.server.start_again(&|_, _| is_ready(bolt, http))
    }

    /// Stops the process (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.server.pause()
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) -> Result<()> {
        self.server.resume()
    }
}

fn configured(bolt: u16, http: u16) -> String {
    [
        "server.default_listen_address=127.0.0.1".to_owned(),
        format!("server.bolt.listen_address=127.0.0.1:{bolt}"),
        format!("server.http.listen_address=127.0.0.1:{http}"),
        "server.https.enabled=false".to_owned(),
        "dbms.usage_report.enabled=false".to_owned(),
        "dbms.security.auth_enabled=false".to_owned(),
        "server.memory.heap.max_size=512m".to_owned(),
        "server.memory.pagecache.size=64m".to_owned(),
        String::new(),
    ]
    .join("\n")
}

fn arguments(libraries: &Path, home: &Path) -> Vec<OsString> {
    let of = |name: &str, path: &Path| {
        let mut argument = OsString::from(format!("--{name}="));
        argument.push(path);
        argument
    };
    vec![
        "-Xmx512m".into(),
        "-cp".into(),
        libraries.join("*").into(),
        "org.neo4j.server.CommunityEntryPoint".into(),
        of("home-dir", home),
        of("config-dir", home),
    ]
}

/// Its HTTP answers after its Bolt does.
fn is_ready(bolt: u16, http: u16) -> bool {
    connect(bolt).is_ok() && answers(http).unwrap_or(false)
}

fn answers(port: u16) -> std::io::Result<bool> {
    let mut connection = connect(port)?;
    connection.write_all(b"GET / HTTP/1.0\r\nAccept: application/json\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1) == Some("200"))
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connection = TcpStream::connect_timeout(&address, PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}
