//! The compact form of a Unigram tokenizer: `MAGIC`, the length of a header, the header as JSON, a
//! score for every piece, and the transducer of the pieces, which ends with a checksum. Numbers are
//! little-endian.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::unigram::{SpecialPieces, Unigram};

/// First bytes of the form, with its version.
const MAGIC: &[u8] = b"memfleet pieces 1\n";

#[derive(Serialize, Deserialize)]
struct Header {
    pieces: usize,
    special: SpecialPieces,
}

/// True for bytes that begin as the compact form does.
pub(super) fn is_compact(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads the compact form; the error says what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<Unigram, String> {
    let cut_off = || "the file is cut off".to_owned();
    let bytes = bytes.strip_prefix(MAGIC).ok_or("not a compact tokenizer")?;
    let (length, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
    let header = rest.split_at_checked(u32::from_le_bytes(*length) as usize);
    let (header, rest) = header.ok_or_else(cut_off)?;
    let header: Header = serde_json::from_slice(header).map_err(|error| error.to_string())?;
    let scores = header.pieces.checked_mul(size_of::<f64>());
    let scores = scores.and_then(|bytes| rest.split_at_checked(bytes));
    let (scores, pieces) = scores.ok_or_else(cut_off)?;
    let pieces = fst::Map::new(pieces.to_vec()).map_err(|error| error.to_string())?;
    let checked = pieces.as_fst().verify();
    checked.map_err(|error| error.to_string())?;
    if pieces.len() != header.pieces {
        return Err("pieces and scores differ in number".to_owned());
    }
    let scores = scores.as_chunks().0.iter();
    let scores = scores.map(|&score| f64::from_le_bytes(score)).collect();
    Ok(Unigram::new(pieces, scores, header.special))
}

fn write(vocabulary: &[(String, f64)], special: SpecialPieces) -> Result<Vec<u8>, String> {
    let mut pieces: Vec<(&str, u64)> = vocabulary
        .iter()
        .zip(0..)
        .map(|((piece, _), id)| (piece.as_str(), id))
        .collect();
    pieces.sort_unstable();
    let pieces = fst::Map::from_iter(pieces).map_err(|error| error.to_string())?;
    let header = Header {
        pieces: vocabulary.len(),
        special,
    };
    let header = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    bytes.extend(vocabulary.iter().flat_map(|(_, score)| score.to_le_bytes()));
    bytes.extend(pieces.as_fst().as_bytes());
    Ok(bytes)
}

/// The parts of a `tokenizer.json` that have a say in how texts are cut.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Description {
    added_tokens: Vec<AddedToken>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    model: Value,
}

#[derive(Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the fields of the format"
)]
struct AddedToken {
    id: u32,
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
}

#[derive(Deserialize)]
struct Model {
    unk_id: u32,
    vocab: Vec<(String, f64)>,
    byte_fallback: bool,
}

/// The compact form of a `tokenizer.json`; nothing for one that does anything which
/// [`Unigram`] does not.
pub(super) fn of_json(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let description: Description =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let Some((begin, end)) = description.around() else {
        return Ok(None);
    };
    let model: Model =
        serde_json::from_value(description.model).map_err(|error| error.to_string())?;
    if model.byte_fallback || model.unk_id as usize >= model.vocab.len() {
        return Ok(None);
    }
    let verbatim = description.added_tokens.into_iter();
    let special = SpecialPieces {
        begin,
        end,
        unknown: model.unk_id,
        verbatim: verbatim.map(|token| (token.content, token.id)).collect(),
    };
    write(&model.vocab, special).map(Some)
}

impl Description {
    /// The pieces before and behind every text, if all steps are those of [`Unigram`].
    fn around(&self) -> Option<(u32, u32)> {
        let normalizer = json!({ "type": "Sequence", "normalizers": [
            { "type": "Nmt" },
            { "type": "NFKC" },
            { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " },
        ] });
        let pre_tokenizer = json!({
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true,
        });
        let is_plain = |token: &AddedToken| {
            let AddedToken {
                single_word,
                lstrip,
                rstrip,
                normalized,
                ..
            } = *token;
            !(single_word || lstrip || rstrip || normalized || token.content.is_empty())
        };
        let fits = self.normalizer == normalizer
            && self.pre_tokenizer == pre_tokenizer
            && self.model["type"] == "Unigram"
            && self.post_processor["type"] == "TemplateProcessing"
            && self.added_tokens.iter().all(is_plain);
        if !fits {
            return None;
        }
        let [begin, text, end] = self.post_processor["single"].as_array()?.as_slice() else {
            return None;
        };
        text["Sequence"].as_object()?;
        let piece = |step: &Value| {
            let name = step["SpecialToken"]["id"].as_str()?;
            let [id] = self.post_processor["special_tokens"][name]["ids"]
                .as_array()?
                .as_slice()
            else {
                return None;
            };
            u32::try_from(id.as_u64()?).ok()
        };
        Some((piece(begin)?, piece(end)?))
    }
}
