"""Command line: `python -m memfleet_training train|evaluate`."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
import torch

from .candidates import candidate_figures, fit_candidates
from .data import CorpusPart
from .evaluation import line_figures, name_figures, need_figures, pair_figures, statement_figures, tense_figures
from .export import export_reader
from .histories import asked_history_examples, history_examples
from .names import name_examples
from .needs import space_examples
from .pairs import asked_examples, group_examples, pair_examples
from .reader import TASKS, Reader, train_reader, trained
from .reference import write_reference
from .statements import turn_examples
from .tenses import tense_examples
from .texts import SequenceBuilder


def main() -> None:
    """Reads the command line and runs it."""
    parser = argparse.ArgumentParser(prog="memfleet_training", description=__doc__)
    parser.add_argument("command", choices=("train", "evaluate"))
    parser.add_argument("--base", type=Path, required=True, help="folder of the base model, from `memfleet model pull`")
    parser.add_argument("--corpus", type=Path, default=Path("crates/evaluation/data/understanding"))
    parser.add_argument("--meetings", type=Path, help="folder that fetch_meetings.py wrote; without it meetings are left out")
    parser.add_argument("--out", type=Path, default=Path("target/reader"), help="checkpoint, weights and figures")
    parser.add_argument("--frozen", type=int, default=4, help="lower layers that stay those of the base")
    parser.add_argument("--passes", default="2.5,1.5,2,1,1,1,1,1,20,5", help="passes over turns, pairs of scenarios, groups of pairs, unrelated pairs, pairs behind questions, pairs of long conversations, memories, questions, named turns and lines")
    parser.add_argument("--scenarios", type=int, help="train on this many scenarios, without contrast sets and pairs: for learning curves")
    parser.add_argument("--init", type=Path, help="weights (`reader.pt`) to go on from; default: the base")
    parser.add_argument("--heads-only", action="store_true", help="leave all layers as they are")
    parser.add_argument("--rate", type=float, default=1e-4, help="highest learning rate of the encoder")
    parser.add_argument("--sample", type=int, help="evaluate on this many scenarios")
    parser.add_argument("--name", default="reader", help="name and version, which stand in the weights and with what they find (`reader-3`)")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    random.seed(options.seed)
    np.random.seed(options.seed)
    torch.manual_seed(options.seed)
    reader = Reader(options.base, options.frozen)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = options.out / "reader.pt"
    if options.command == "train":
        if options.init:
            reader.load_state_dict(torch.load(options.init), strict=False)
        if options.heads_only:
            reader.encoder.requires_grad_(False)
        train(reader, options)
        reader.encoder.layers[options.frozen :].requires_grad_(True)
        torch.save(trained(reader), weights)
        (options.out / "checkpoint.pt").unlink(missing_ok=True)
        export_reader(reader, options.out, options.name)
        write_reference(reader, options.out / "reference.json")
    else:
        reader.load_state_dict(torch.load(weights), strict=False)
    figures = evaluate(reader, options)
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


def train(reader: Reader, options: argparse.Namespace) -> None:
    """Trains on the `train` part, or goes on where a run before was stopped."""
    part = CorpusPart(options.corpus, "train", options.meetings, options.scenarios)
    builder = SequenceBuilder(reader.encoder.tokenizer)
    examples = part.examples(builder)
    print({task: len(found) for task, found in examples.items()}, flush=True)
    passes = dict(zip(TASKS, map(float, options.passes.split(",")), strict=True))
    checkpoint = options.out / "checkpoint.pt"
    train_reader(reader, examples, passes, seed=options.seed, rate=options.rate, checkpoint=checkpoint, start=f"{options.init or 'base'}, {options.frozen} layers frozen, heads only: {options.heads_only}")
    fit_candidates(reader.candidates, part.scenarios + part.histories, part.groups, builder)


def evaluate(reader: Reader, options: argparse.Namespace) -> dict:
    """Figures on the `test` part: scenarios, contrast sets, pairs, meetings and prompts apart."""
    builder = SequenceBuilder(reader.encoder.tokenizer)
    part = CorpusPart(options.corpus, "test", options.meetings)
    scenarios = part.scenarios
    if options.sample:
        scenarios = random.Random(1).sample(scenarios, options.sample)
    sets = {"scenarios": scenarios, "contrast": part.contrast, "meetings": part.meetings}
    figures = {
        name: {
            "statements": statement_figures(reader, turn_examples(talks, builder)),
            "pairs": pair_figures(reader, pair_examples(talks, builder, others=0.1)),
        }
        for name, talks in sets.items()
        if talks
    }
    if part.groups:
        figures["groups"] = pair_figures(reader, group_examples(part.groups, builder))
    figures["asked"] = pair_figures(reader, asked_examples(scenarios, builder))
    if part.histories:
        figures["histories"] = pair_figures(reader, history_examples(part.histories, builder))
        figures["asked of histories"] = pair_figures(reader, asked_history_examples(part.histories, builder))
    figures["candidates"] = {
        "scenarios": candidate_figures(reader.candidates, scenarios, builder),
        "histories": candidate_figures(reader.candidates, part.histories, builder),
    }
    figures["tenses"] = tense_figures(reader, tense_examples(scenarios, part.spaces, builder))
    if part.named:
        figures["names"] = name_figures(reader, name_examples(part.named, builder))
    for name, sentences in (("lines", part.lines(builder)), ("talks", part.talks(builder))):
        if sentences:
            figures[name] = line_figures(reader, sentences)
    if part.spaces:
        figures["needs"] = need_figures(reader, space_examples(part.spaces, builder))
    return figures


if __name__ == "__main__":
    main()
