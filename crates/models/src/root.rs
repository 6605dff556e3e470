//! Where models are kept on this machine.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::Error;

/// `MEMFLEET_MODELS`, else `memfleet/models` in `XDG_CACHE_HOME`, else in `~/.cache`, on every system.
pub fn default_root() -> Result<PathBuf, Error> {
    root(|name| env::var_os(name)).ok_or(Error::NoRoot)
}

fn root(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("MEMFLEET_MODELS").or_else(|| {
        let cache =
            set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
        Some(cache.join("memfleet").join("models"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        root(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_most_particular_variable_wins() {
        let all = [
            ("HOME", "/h"),
            ("XDG_CACHE_HOME", "/c"),
            ("MEMFLEET_MODELS", "/m"),
        ];
        assert_eq!(with(&all), Some("/m".into()));
        assert_eq!(with(&all[..2]), Some("/c/memfleet/models".into()));
        assert_eq!(with(&all[..1]), Some("/h/.cache/memfleet/models".into()));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(
            with(&[("HOME", "/h"), ("MEMFLEET_MODELS", "")]),
            Some("/h/.cache/memfleet/models".into())
        );
    }
}
