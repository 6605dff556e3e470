//! The same model in candle, as its own examples run it: floats, padded batches, mean over the mask.

use std::fs;
use std::path::Path;

use anyhow::{Error, Result};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use tokenizers::{PaddingParams, PaddingStrategy, Tokenizer, TruncationParams};

/// A loaded model.
pub struct Candle {
    model: BertModel,
    tokenizer: Tokenizer,
}

impl Candle {
    /// Reads a checkpoint directory.
    pub fn open(directory: &Path) -> Result<Self> {
        let config: Config = serde_json::from_slice(&fs::read(directory.join("config.json"))?)?;
        let weights = fs::read(directory.join("model.safetensors"))?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DTYPE, &Device::Cpu)?;
        let mut tokenizer = Tokenizer::from_file(directory.join("tokenizer.json")).map_err(Error::msg)?;
        let padding = PaddingParams { strategy: PaddingStrategy::BatchLongest, ..PaddingParams::default() };
        let truncation = TruncationParams { max_length: 256, ..TruncationParams::default() };
        tokenizer.with_padding(Some(padding)).with_truncation(Some(truncation)).map_err(Error::msg)?;
        Ok(Self { model: BertModel::load(weights, &config)?, tokenizer })
    }

    /// Sentence vectors of length 1.
    pub fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let encodings = self.tokenizer.encode_batch(texts.to_vec(), true).map_err(Error::msg)?;
        let rows = |of: fn(&tokenizers::Encoding) -> &[u32]| -> Result<Tensor> {
            let rows: candle_core::Result<Vec<_>> =
                encodings.iter().map(|encoding| Tensor::new(of(encoding), &Device::Cpu)).collect();
            Ok(Tensor::stack(&rows?, 0)?)
        };
        let ids = rows(tokenizers::Encoding::get_ids)?;
        let mask = rows(tokenizers::Encoding::get_attention_mask)?;
        let hidden = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sums = hidden.broadcast_mul(&mask)?.sum(1)?;
        let lengths = sums.sqr()?.sum_keepdim(1)?.sqrt()?;
        Ok(sums.broadcast_div(&lengths)?.to_vec2()?)
    }
}
