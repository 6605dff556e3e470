//! A hub on the loopback address, whose answers can be made to fail.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How answers are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// As a good server does, with ranges.
    Good,
    /// The first answers break off half-way; so many of them.
    Breaks(usize),
    /// Ranges are ignored.
    Whole,
}

/// A running server; it ends with the process.
pub struct Server {
    /// Its address, to be used as the hub.
    pub address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves files by the last part of their path.
    pub fn start(files: BTreeMap<String, Vec<u8>>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            let mut breaks = if let Manner::Breaks(count) = manner {
                count
            } else {
                0
            };
            for stream in listener.incoming().map_while(Result::ok) {
                // A client that goes away in the middle is none of the server's business.
                let _ = answer(stream, &files, manner, &mut breaks, &log);
            }
        });
        Self { address, requests }
    }

    /// What was asked for so far: file name and range, if one was given.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    manner: Manner,
    breaks: &mut usize,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let name = first
        .split(' ')
        .nth(1)
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or_default();
    let mut range = None;
    for line in lines {
        let line = line?.to_lowercase();
        if line.is_empty() {
            break;
        }
        range = range.or_else(|| {
            line.strip_prefix("range: bytes=")?
                .strip_suffix('-')?
                .parse::<usize>()
                .ok()
        });
    }
    let suffix = range
        .map(|from| format!(" from {from}"))
        .unwrap_or_default();
    log.lock().unwrap().push(format!("{name}{suffix}"));
    let Some(bytes) = files.get(name) else {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
    };
    let from = if manner == Manner::Whole {
        0
    } else {
        range.unwrap_or(0)
    };
    let body = &bytes[from..];
    let status = if from > 0 {
        format!(
            "206 Partial Content\r\ncontent-range: bytes {from}-{}/{}",
            bytes.len() - 1,
            bytes.len()
        )
    } else {
        "200 OK".to_owned()
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    let sent = if *breaks > 0 { length / 2 } else { length };
    *breaks = breaks.saturating_sub(1);
    stream.write_all(&body[..sent])
}
