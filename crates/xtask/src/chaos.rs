//! `cargo xtask chaos`: the test of a fleet that is hurt, for longer than among the other tests.

use anyhow::{Context, Result, bail};

const MINUTES: &str = "10";

const NIGHTLY_MINUTES: &str = "40";

/// About what two cores that do nothing else come to in 15 minutes.
const NIGHTLY_KILLS: &str = "300";

/// The test, as arguments of `cargo test`.
pub const TEST: [&str; 4] = ["--test", "chaos", "--", "--nocapture"];

/// How long, and what is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chaos {
    minutes: String,
    /// Processes that are killed at least, however long that takes.
    kills: Option<String>,
    seed: Option<String>,
}

impl Chaos {
    /// The run of each night.
    pub fn nightly() -> Self {
        Self {
            minutes: NIGHTLY_MINUTES.to_owned(),
            kills: Some(NIGHTLY_KILLS.to_owned()),
            seed: None,
        }
    }

    /// From the words of the command line.
    pub fn read(words: &[String]) -> Result<Self> {
        let mut chaos = Self {
            minutes: MINUTES.to_owned(),
            kills: None,
            seed: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .with_context(|| format!("{word} takes a number"));
            match word.as_str() {
                "--minutes" => chaos.minutes = number::<f64>(word, value?)?,
                "--kills" => chaos.kills = Some(number::<usize>(word, value?)?),
                "--seed" => chaos.seed = Some(number::<u64>(word, value?)?),
                other => bail!("unknown argument {other}"),
            }
        }
        Ok(chaos)
    }

    /// The variables that it reads.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("CHAOS_MINUTES", self.minutes.clone())];
        variables.extend(self.kills.clone().map(|kills| ("CHAOS_KILLS", kills)));
        variables.extend(self.seed.clone().map(|seed| ("CHAOS_SEED", seed)));
        variables
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<String> {
    let read = value.parse::<T>().ok();
    read.with_context(|| format!("{word} takes a number, not `{value}`"))?;
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Chaos> {
        Chaos::read(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn what_is_not_said_is_drawn() {
        let chaos = read(&["--minutes", "0.5"]).unwrap();
        assert_eq!(chaos.variables(), [("CHAOS_MINUTES", "0.5".to_owned())]);
        let chaos = read(&["--seed", "7"]).unwrap();
        assert_eq!(chaos.variables()[1], ("CHAOS_SEED", "7".to_owned()));
        let chaos = read(&["--kills", "300"]).unwrap();
        assert_eq!(chaos.variables()[1], ("CHAOS_KILLS", "300".to_owned()));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (words, part) in [
            (vec!["--seed", "soon"], "`soon`"),
            (vec!["--minutes"], "--minutes"),
            (vec!["--kills", "0.5"], "`0.5`"),
            (vec!["--hours", "3"], "--hours"),
        ] {
            let told = read(&words).unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        }
    }
}
