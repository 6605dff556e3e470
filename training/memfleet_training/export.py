"""Writer of the reader's weights, as the program loads them: upper layers in bytes, heads in floats."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from .encoder import EPSILON, HEADS as ATTENTION_HEADS
from .reader import HEADS, Reader

LINEARS = {
    "attention": "attention.self",
    "mixing": "attention.output.dense",
    "widening": "intermediate.dense",
    "narrowing": "output.dense",
}
NORMS = {"mixing_norm": "attention.output", "narrowing_norm": "output"}


def export_reader(reader: Reader, folder: Path, name: str) -> None:
    """Writes `reader.onnx`, whose layers stand under their numbers in the base."""
    base = onnx.load(reader.encoder.folder / "model.onnx", load_external_data=False)
    smoothings = {
        i.name: numpy_helper.to_array(i)
        for i in base.graph.initializer
        if i.name.endswith(".smoothing")
    }
    tensors = []

    def add(tensor_name: str, values: np.ndarray) -> None:
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), tensor_name))

    for index, layer in enumerate(reader.encoder.layers):
        if index < reader.frozen:
            continue
        prefix = f"encoder.layer.{index}."
        for part, linear_name in LINEARS.items():
            linear = getattr(layer, part)
            smoothing = smoothings[f"{prefix}{linear_name}.smoothing"]
            weight = linear.weight.detach().numpy().T / smoothing[:, None]
            scales = np.maximum(np.abs(weight).max(0) / 127, 1e-12).astype(np.float32)
            add(f"{prefix}{linear_name}.weight", np.rint(weight / scales).astype(np.int8))
            add(f"{prefix}{linear_name}.scales", scales)
            add(f"{prefix}{linear_name}.smoothing", smoothing)
            add(f"{prefix}{linear_name}.bias", linear.bias.detach().numpy())
        for part, norm_name in NORMS.items():
            norm = getattr(layer, part)
            add(f"{prefix}{norm_name}.LayerNorm.weight", norm.weight.detach().numpy())
            add(f"{prefix}{norm_name}.LayerNorm.bias", norm.bias.detach().numpy())
    for task in HEADS:
        for head_name, values in getattr(reader, task).named_parameters():
            if not head_name.startswith("encoder."):
                if not values.isfinite().all():
                    raise SystemExit(f"{task}.{head_name} is not finite")
                add(f"{task}.{head_name}", values.detach().numpy().reshape(-1))
    graph = helper.make_graph([], "reader", [], [], initializer=tensors)
    model = helper.make_model(graph, producer_name="memfleet")
    helper.set_model_props(
        model,
        {
            "memfleet.bert.layers": str(len(reader.encoder.layers) - reader.frozen),
            "memfleet.bert.heads": str(ATTENTION_HEADS),
            "memfleet.bert.epsilon": str(EPSILON),
            "memfleet.reader.name": name,
            "memfleet.reader.base": f"{reader.encoder.name} {reader.encoder.revision}",
        },
    )
    (folder / "reader.onnx").write_bytes(model.SerializeToString())
