//! Cuts texts into the word pieces of a model.

mod compact;
mod unigram;

use std::fs;
use std::path::Path;

use tokenizers::TruncationParams;

use crate::error::Error;
use crate::tokens::{TextPiece, Tokens};
use unigram::Unigram;

/// How vocabularies write the piece that stands for what they lack.
const UNKNOWN: [&str; 2] = ["[UNK]", "<unk>"];

/// A loaded tokenizer.
pub struct ModelTokenizer {
    kind: Kind,
    max_tokens: usize,
    /// Piece that stands for what the vocabulary lacks.
    unknown: Option<u32>,
}

enum Kind {
    /// A file that [`compact_tokenizer`] made.
    Compact(Unigram),
    /// Any file in the Hugging Face format.
    Json(Box<tokenizers::Tokenizer>),
}

impl ModelTokenizer {
    /// Reads either form of file. Texts are cut to `max_tokens`, special pieces included.
    pub fn open(path: &Path, max_tokens: usize) -> Result<Self, Error> {
        let failed = |reason: String| unreadable(path, reason);
        let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let kind = if compact::is_compact(&bytes) {
            let read = compact::read(&bytes);
            Kind::Compact(read.map_err(|reason| failed(format!("{reason}; pull the model again")))?)
        } else {
            let read = from_json(&bytes, max_tokens);
            Kind::Json(Box::new(read.map_err(|error| failed(error.to_string()))?))
        };
        let unknown = match &kind {
            Kind::Compact(unigram) => Some(unigram.unknown()),
            Kind::Json(tokenizer) => UNKNOWN.iter().find_map(|it| tokenizer.token_to_id(it)),
        };
        Ok(Self {
            kind,
            max_tokens,
            unknown,
        })
    }

    /// Pieces of a text with their bytes, at most `most`, without special ones around them.
    pub fn pieces(&self, text: &str, most: usize) -> Result<Vec<TextPiece>, Error> {
        let tokenizer = match &self.kind {
            Kind::Compact(unigram) => return Ok(unigram.pieces(text, most)),
            Kind::Json(tokenizer) => tokenizer,
        };
        let encoding = tokenizer
            .encode(text, false)
            .map_err(|error| Error::Tokenise(error.to_string()))?;
        let pieces = encoding.get_ids().iter().zip(encoding.get_offsets());
        let pieces = pieces.map(|(&id, &(start, end))| TextPiece {
            id,
            bytes: start..end,
        });
        Ok(pieces.take(most).collect())
    }

    /// Pieces that stand before and behind every text.
    pub fn around(&self) -> Result<(u32, u32), Error> {
        let ids = match &self.kind {
            Kind::Compact(unigram) => return Ok(unigram.around()),
            Kind::Json(_) => self.tokenize("")?,
        };
        match ids.ids() {
            [begin, end] => Ok((*begin, *end)),
            _ => Err(Error::Tokenise(
                "no piece before or behind a text".to_owned(),
            )),
        }
    }

    /// The pieces of a text.
    pub fn tokenize(&self, text: &str) -> Result<Tokens, Error> {
        let tokenizer = match &self.kind {
            Kind::Compact(unigram) => {
                let tokens = unigram.tokenize(text, self.max_tokens);
                return Ok(tokens.with_unknown(self.unknown));
            }
            Kind::Json(tokenizer) => tokenizer,
        };
        let encoding = tokenizer
            .encode_fast(text, true)
            .map_err(|error| Error::Tokenise(error.to_string()))?;
        let tokens = Tokens::new(
            encoding.get_ids().to_vec(),
            encoding.get_special_tokens_mask(),
        );
        Ok(tokens.with_unknown(self.unknown))
    }
}

/// The compact form of a `tokenizer.json` of the XLM-RoBERTa family, which [`crate::Encoder`] opens
/// in its place: same pieces, loaded in milliseconds into a fiftieth of the memory. Nothing for
/// tokenizers of other kinds.
pub fn compact_tokenizer(json: &Path) -> Result<Option<Vec<u8>>, Error> {
    let failed = |reason: String| unreadable(json, reason);
    let bytes = fs::read(json).map_err(|error| failed(error.to_string()))?;
    compact::of_json(&bytes).map_err(failed)
}

fn unreadable(path: &Path, reason: String) -> Error {
    Error::Tokenizer {
        path: path.to_owned(),
        reason,
    }
}

fn from_json(bytes: &[u8], max_tokens: usize) -> Result<tokenizers::Tokenizer, tokenizers::Error> {
    let mut tokenizer = tokenizers::Tokenizer::from_bytes(bytes)?;
    let truncation = TruncationParams {
        max_length: max_tokens,
        ..TruncationParams::default()
    };
    tokenizer
        .with_padding(None)
        .with_truncation(Some(truncation))?;
    Ok(tokenizer)
}

#[cfg(test)]
mod tests;
