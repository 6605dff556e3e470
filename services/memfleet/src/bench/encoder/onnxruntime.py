"""ONNX Runtime on the word pieces of a file, as often as a line comes in: `MODEL PIECES THREADS`.

MODEL is an ONNX file in 32-bit floats, PIECES a JSON list of lists of piece ids by length. Each line of the input
names a precision, `int8` or `fp32`; the answer is the seconds that all texts took. A first line says the version.
"""

import json
import os
import sys
import tempfile
import time

import numpy
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

model, pieces, threads = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3])
folder = tempfile.TemporaryDirectory()
small = os.path.join(folder.name, "int8.onnx")
quantize_dynamic(model, small, weight_type=QuantType.QInt8, per_channel=True)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


sessions = {"int8": session(small), "fp32": session(model)}


def seconds(session, size):
    names = [entry.name for entry in session.get_inputs()]
    begun = time.perf_counter()
    for first in range(0, len(pieces), size):
        batch = pieces[first : first + size]
        ids = numpy.zeros((len(batch), max(map(len, batch))), numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, text in enumerate(batch):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        session.run(None, {name: inputs[name] for name in names})
    return time.perf_counter() - begun


# The size of a batch that suits it best.
sizes = {name: min((4, 8, 16, 32), key=lambda size: seconds(it, size)) for name, it in sessions.items()}
print(onnxruntime.__version__, flush=True)
for line in sys.stdin:
    name = line.strip()
    print(seconds(sessions[name], sizes[name]), flush=True)
