//! Files over HTTP: resumed where an earlier attempt stopped, moved into place only when the hash
//! is right.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

use super::{Event, Progress};
use crate::error::Error;
use crate::hash;
use crate::registry::SourceFile;

/// A hub that does not answer must not hold up the next source for long.
const CONNECT: Duration = Duration::from_secs(5);
const FIRST_ANSWER: Duration = Duration::from_secs(15);
/// A transfer that stands still for this long is given up.
const STALL: Duration = Duration::from_secs(30);
/// How often a transfer that broke off is taken up again.
const ATTEMPTS: usize = 4;

/// Downloads files from their addresses into `folder`, which is made if need be.
pub(super) fn files(
    files: &[(String, &SourceFile)],
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let agent = agent();
    for (url, source) in files {
        let mut received = |bytes| {
            progress.event(Event::Received {
                file: &source.name,
                bytes,
                total: source.bytes,
            });
        };
        file(&agent, url, folder, source, &mut received)?;
    }
    Ok(())
}

/// A page of text.
pub(super) fn text(url: &str) -> Result<String, Error> {
    let failed = |error: ureq::Error| network(url, &error.to_string());
    let mut response = agent().get(url).call().map_err(failed)?;
    if response.status() != StatusCode::OK {
        let reason = format!("the server answered {}", response.status());
        return Err(network(url, &reason));
    }
    response.body_mut().read_to_string().map_err(failed)
}

/// A client that trusts what the operating system trusts.
fn agent() -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(FIRST_ANSWER))
        .timeout_per_read(Some(STALL))
        .http_status_as_error(false)
        .user_agent(concat!("memfleet/", env!("CARGO_PKG_VERSION")));
    config.build().new_agent()
}

/// Downloads a file into `folder`; `received` is told the bytes that are there.
fn file(
    agent: &Agent,
    url: &str,
    folder: &Path,
    file: &SourceFile,
    received: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let target = folder.join(&file.name);
    if target.exists() && hash::check(&target, &file.sha256).is_ok() {
        return Ok(());
    }
    let part = folder.join(format!("{}.part", file.name));
    complete(agent, url, &part, file.bytes, received)?;
    if let Err(error) = hash::check(&part, &file.sha256) {
        // A part with a wrong byte in it can never become right.
        fs::remove_file(&part).map_err(Error::file(&part))?;
        return Err(error);
    }
    fs::rename(&part, &target).map_err(Error::file(&target))
}

/// Transfers until the part has its size.
fn complete(
    agent: &Agent,
    url: &str,
    part: &Path,
    size: u64,
    received: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut present = 0;
    for _ in 0..ATTEMPTS {
        present = transfer(agent, url, part, size, received)?;
        if present == size {
            return Ok(());
        }
    }
    Err(Error::Truncated {
        url: shown(url),
        received: present,
        expected: size,
    })
}

/// One request for what is missing. Gives the size of the part afterwards, also when the connection broke.
fn transfer(
    agent: &Agent,
    url: &str,
    part: &Path,
    size: u64,
    received: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let mut present = fs::metadata(part).map_or(0, |metadata| metadata.len());
    if present == size {
        return Ok(present);
    }
    let mut request = agent.get(url);
    if (1..size).contains(&present) {
        request = request.header(header::RANGE, format!("bytes={present}-"));
    }
    let response = request
        .call()
        .map_err(|error| network(url, &error.to_string()))?;
    let mut options = OpenOptions::new();
    if continues_at(&response, present) {
        options.append(true);
    } else if response.status() == StatusCode::OK {
        present = 0;
        options.write(true).create(true).truncate(true);
    } else {
        return Err(network(
            url,
            &format!("the server answered {}", response.status()),
        ));
    }
    let mut output = options.open(part).map_err(Error::file(part))?;
    copy(response, &mut output, part, present, size, received)
}

/// True if the server sends exactly what is missing; one that ignores the range sends the whole file again.
fn continues_at<T>(response: &Response<T>, present: u64) -> bool {
    let range = response
        .headers()
        .get(header::CONTENT_RANGE)
        .and_then(|range| range.to_str().ok());
    response.status() == StatusCode::PARTIAL_CONTENT
        && range.is_some_and(|range| range.starts_with(&format!("bytes {present}-")))
}

fn copy(
    response: Response<ureq::Body>,
    output: &mut File,
    part: &Path,
    mut present: u64,
    size: u64,
    received: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let mut body = response
        .into_body()
        .into_with_config()
        .limit(u64::MAX)
        .reader();
    let mut block = vec![0; 1 << 16];
    received(present);
    while present < size {
        let count = match body.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // Broken off: the caller asks for the rest.
            Err(_) => break,
        };
        output
            .write_all(&block[..count])
            .map_err(Error::file(part))?;
        present += count as u64;
        received(present);
    }
    Ok(present)
}

/// An address without the name and password in it.
pub(super) fn shown(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return address.to_owned();
    };
    if url.username().is_empty() && url.password().is_none() {
        return address.to_owned();
    }
    let _cannot_have_any = url.set_username("").and_then(|()| url.set_password(None));
    url.to_string()
}

fn network(url: &str, reason: &str) -> Error {
    Error::Network {
        url: shown(url),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        let index = shown("https://ada:secret@index.test/simple/tiny/");
        assert_eq!(index, "https://index.test/simple/tiny/");
        assert_eq!(
            shown("https://index.test/simple"),
            "https://index.test/simple"
        );
        assert_eq!(shown("no address"), "no address");
    }
}
