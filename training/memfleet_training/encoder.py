"""Encoder of the BERT family, read from a model folder of `memfleet model pull`, whose layers may be trained."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from tokenizers import Tokenizer
from torch import Tensor, nn

# Heads of attention of every base that `memfleet model pull` knows.
HEADS = 12
EPSILON = 1e-12
# While training: share of the outputs of sublayers that are dropped, and of pieces that are masked in pairs,
# which would be known by heart otherwise.
DROPPED = 26 / 256
MASKED = 0.1
MASK = "<mask>"
# Pieces up to this id are no words.
LAST_SPECIAL = 3

LINEARS = (
    "attention.self",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class Linear(nn.Module):
    """Linear map of a layer: `x W + b`."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight.T).contiguous())
        self.bias = nn.Parameter(torch.tensor(bias))

    def forward(self, states: Tensor) -> Tensor:
        return F.linear(states, self.weight, self.bias)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each added to its input and normalised."""

    def __init__(self, constants: dict[str, np.ndarray], index: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        prefix = f"encoder.layer.{index}."

        def linear(name: str) -> Linear:
            name = prefix + name
            weight = constants[f"{name}.weight"].astype(np.float32)
            weight = weight * constants[f"{name}.scales"].reshape(1, -1)
            weight = weight * constants[f"{name}.smoothing"].reshape(-1, 1)
            return Linear(weight, constants[f"{name}.bias"])

        def norm(name: str) -> nn.LayerNorm:
            weight = torch.tensor(constants[f"{prefix}{name}.LayerNorm.weight"])
            layer = nn.LayerNorm(weight.shape[0], eps=EPSILON)
            layer.weight.data = weight
            layer.bias.data = torch.tensor(constants[f"{prefix}{name}.LayerNorm.bias"])
            return layer

        self.attention, self.mixing, self.widening, self.narrowing = map(linear, LINEARS)
        self.mixing_norm = norm("attention.output")
        self.narrowing_norm = norm("output")

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = states.shape
        parts = self.attention(states).view(batch, length, self.heads, 3, -1)
        query, key, value = parts.permute(3, 0, 2, 1, 4)
        # Not `scaled_dot_product_attention`: its backward pass on CPUs takes twice the time of this.
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        context = scores.masked_fill(~mask, -1e4).softmax(-1).to(value.dtype) @ value
        context = context.transpose(1, 2).reshape(batch, length, width)
        states = self.mixing_norm(states + self.dropped(self.mixing(context)))
        narrowed = self.narrowing(F.gelu(self.widening(states)))
        return self.narrowing_norm(states + self.dropped(narrowed))

    def dropped(self, states: Tensor) -> Tensor:
        """States of which a share is zero while training. One random number serves eight of them: `F.dropout` draws one
        for each, which takes a fifth of the time of a step."""
        if not self.training:
            return states
        numbers = torch.empty(-(-states.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        is_kept = numbers.view(torch.uint8)[: states.numel()].view(states.shape) >= 256 * DROPPED
        return states * (is_kept / (1 - DROPPED)).to(states.dtype)


class Encoder(nn.Module):
    """Token states of texts. Word pieces and their positions stay as they are; layers may be trained."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = Path(folder)
        manifest = tomllib.loads((self.folder / "manifest.toml").read_text())
        self.name, self.revision = manifest["name"], manifest["revision"]
        self.width = manifest["dimensions"]
        model = onnx.load(self.folder / "model.onnx")
        constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        count = 1 + max(int(n.split(".")[2]) for n in constants if n.startswith("encoder.layer."))
        words = constants["embeddings.words"]
        self.register_buffer("words", torch.tensor(words))
        self.register_buffer("scales", torch.tensor(constants["embeddings.words.scales"]))
        self.register_buffer("positions", torch.tensor(constants["embeddings.positions"]))
        self.norm = nn.LayerNorm(self.width, eps=EPSILON).requires_grad_(False)
        self.norm.weight.data = torch.tensor(constants["embeddings.LayerNorm.weight"])
        self.norm.bias.data = torch.tensor(constants["embeddings.LayerNorm.bias"])
        self.layers = nn.ModuleList(EncoderLayer(constants, i, HEADS) for i in range(count))
        self.tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.mask = self.tokenizer.token_to_id(MASK)

    def forward(self, ids: Tensor, lengths: Tensor, *, mask_words: bool = False) -> Tensor:
        """States of padded sequences. With `mask_words` some pieces are masked while training."""
        if self.training and mask_words:
            is_masked = (torch.rand(ids.shape) < MASKED) & (ids > LAST_SPECIAL)
            ids = ids.masked_fill(is_masked, self.mask)
        states = self.words[ids].float() * self.scales[ids]
        states = self.norm(states + self.positions[: ids.shape[1]])
        mask = torch.arange(ids.shape[1])[None, :] < lengths[:, None]
        mask = mask[:, None, None, :]
        for layer in self.layers:
            states = layer(states, mask)
        return states
