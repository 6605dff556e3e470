//! Fixed sentences and the vectors that the full-precision model gives them. They are computed when a model is
//! built and kept beside it, so that it can be verified later without the full-precision model.

use std::fs;
use std::path::Path;

use memfleet_encoder::Encoder;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Sentences of the kinds that memory is made of: chat, plans, facts, code, numbers, other scripts.
const SENTENCES: [&str; 24] = [
    "Nora: I finally sold the old bicycle, so the hallway looks twice as wide now.",
    "Could you remind me which dentist I liked, the one near the station or the other?",
    "We moved the quarterly review from Tuesday the 4th to Friday at half past nine.",
    "My sister is allergic to walnuts, but almonds are fine.",
    "The build fails because the linker cannot find libssl on the new image.",
    "fn total(items: &[Item]) -> u64 { items.iter().map(|item| item.cents).sum() }",
    "SELECT name, sum(hours) FROM shifts WHERE month = '2031-02' GROUP BY name;",
    "It is snowing again, so the match on Saturday is off.",
    "He keeps saying he will call the landlord about the broken heating, and he never does.",
    "Order 88-1204 shipped on 17 March, weight 3.4 kg, insured for 250 euros.",
    "I used to run every morning, then my knee started to hurt and I switched to swimming.",
    "The violin teacher says the left hand is fine, it is the bow arm that needs patience.",
    "Mi hermana vive en Oaxaca desde hace tres años y trabaja en una panadería.",
    "Wir haben den Zug verpasst, also kommen wir erst gegen Mitternacht an.",
    "京都の古い喫茶店で友達と三時間も話していました。",
    "Мы купили билеты в театр на субботу, первый ряд балкона.",
    "Set the retry limit to five and back off from 200 ms, doubling each time.",
    "Theo: the puppy chewed my passport. Yes, the one I need on Thursday.",
    "user_profile.settings.notifications[2].enabled is still true after the migration",
    "What did the doctor tell Priya about the blood test last autumn?",
    "The garden needs rain; the tomatoes are small this year and the basil gave up in July.",
    "Her thesis compares tidal energy in Brittany with small hydropower in the Alps.",
    "lol ok see u at 7 then, bring the blue tent pls",
    "Please cancel the gym membership before the end of the month, otherwise it renews for a year.",
];

/// What `reference.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reference {
    sentences: Vec<Sentence>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sentence {
    text: String,
    vector: Vec<f32>,
}

impl Reference {
    /// Encodes the fixed sentences.
    pub(crate) fn compute(encoder: &Encoder) -> Result<Self, Error> {
        let vectors = vectors(encoder, &SENTENCES)?;
        let sentence = |(text, vector): (&&str, Vec<f32>)| Sentence {
            text: (*text).to_owned(),
            vector,
        };
        Ok(Self {
            sentences: SENTENCES.iter().zip(vectors).map(sentence).collect(),
        })
    }

    /// Cosine of the encoder's vectors to these, one a sentence.
    pub(crate) fn cosines(&self, encoder: &Encoder) -> Result<Vec<f32>, Error> {
        let texts: Vec<&str> = self
            .sentences
            .iter()
            .map(|sentence| sentence.text.as_str())
            .collect();
        let vectors = vectors(encoder, &texts)?;
        let pairs = self.sentences.iter().zip(&vectors);
        Ok(pairs
            .map(|(sentence, vector)| dot(&sentence.vector, vector))
            .collect())
    }

    /// Reads `reference.json`.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(Error::file(path))?;
        serde_json::from_slice(&bytes).map_err(|error| Error::NotAModel {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Writes `reference.json`.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_vec(self).expect("strings and finite numbers have a JSON form");
        fs::write(path, json).map_err(Error::file(path))
    }
}

fn vectors(encoder: &Encoder, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
    let tokens = encoder.tokenize(texts)?;
    Ok(encoder
        .encode(&tokens)?
        .into_iter()
        .map(|encoding| encoding.sentence)
        .collect())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
