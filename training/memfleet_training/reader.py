"""Reader: one encoder with the heads of statements, pairs, needs and tenses, trained together."""

from __future__ import annotations

import math
import random
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .batches import length_batches
from .candidates import CandidateHead
from .encoder import Encoder
from .lines import LineReader
from .names import NameReader
from .needs import NeedEncoder
from .pairs import PairReader
from .statements import StatementReader
from .tenses import TenseReader

CHECKPOINT_SECONDS = 180
TASKS = ("statements", "pairs", "groups", "unrelated", "asked", "histories", "needs", "tenses", "names", "lines")
# Heads whose weights are written: all tasks of pairs share one.
HEADS = ("statements", "pairs", "needs", "tenses", "names", "lines", "candidates")


class Reader(nn.Module):
    """Encoder whose upper layers serve all tasks. Its lower `frozen` layers are those of the base."""

    def __init__(self, folder: Path, frozen: int) -> None:
        super().__init__()
        self.encoder = Encoder(folder)
        self.frozen = frozen
        for layer in self.encoder.layers[:frozen]:
            layer.requires_grad_(False)
        self.statements = StatementReader(self.encoder)
        self.pairs = PairReader(self.encoder)
        self.needs = NeedEncoder(self.encoder)
        self.tenses = TenseReader(self.encoder)
        self.names = NameReader(self.encoder)
        self.lines = LineReader(self.encoder)
        self.candidates = CandidateHead(self.encoder)

    def head(self, task: str) -> nn.Module:
        """The head that learns from the examples of a task."""
        return self.pairs if task in ("groups", "unrelated", "asked", "histories") else getattr(self, task)


def joint_batches(
    examples: dict[str, list[Any]], passes: dict[str, float], seed: int
) -> list[tuple[str, list[int]]]:
    """Batches of all tasks in all their passes, in an order drawn by the seed. A part of a pass takes
    that part of its batches."""
    batches = []
    for task, task_examples in examples.items():
        lengths = [len(e.ids) for e in task_examples]
        for number in range(math.ceil(passes[task])):
            of_pass = length_batches(lengths, seed + number)
            share = min(1.0, passes[task] - number)
            batches += [(task, b) for b in of_pass[: round(share * len(of_pass))]]
    random.Random(seed).shuffle(batches)
    return batches


def train_reader(
    reader: Reader,
    examples: dict[str, list[Any]],
    passes: dict[str, float],
    *,
    seed: int = 7,
    rate: float,
    start: str = "base",
    checkpoint: Path | None = None,
) -> None:
    """Trains the upper layers and the heads by AdamW. Goes on from `checkpoint` if it is there, and
    refuses one of other examples, passes or seeds."""
    batches = joint_batches(examples, passes, seed)
    plan = {"examples": {t: len(e) for t, e in examples.items()}, "passes": passes, "seed": seed, "rate": rate, "start": start}
    if not batches:
        return
    layers = [p for p in reader.encoder.parameters() if p.requires_grad]
    heads = [p for n, p in reader.named_parameters() if p.requires_grad and not n.startswith(("encoder.", "candidates."))]
    groups = [{"params": layers, "lr": rate}, {"params": heads, "lr": 4 * rate}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, [rate, 4 * rate], total_steps=len(batches) + 1, pct_start=0.05
    )
    done = 0
    if checkpoint and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=False)
        if state["plan"] != plan:
            raise SystemExit(f"{checkpoint} is of {state['plan']}, not of {plan}: remove it, or name another --out")
        reader.load_state_dict(state["reader"], strict=False)
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
        done = state["done"]
        print(f"goes on from step {done}", flush=True)
    running: dict[str, float] = {}
    begun = saved = time.monotonic()
    reader.train()
    for number, (task, batch) in enumerate(batches):
        if number < done:
            continue
        torch.manual_seed(seed * 1_000_003 + number)
        loss = reader.head(task).loss([examples[task][i] for i in batch])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(layers + heads, 1.0)
        optimiser.step()
        schedule.step()
        running[task] = 0.97 * running.get(task, loss.item()) + 0.03 * loss.item()
        if number % 50 == 0:
            losses = " ".join(f"{t} {running[t]:.3f}" for t in TASKS if t in running)
            minutes = (time.monotonic() - begun) / 60
            print(f"step {number}/{len(batches)} {losses} {minutes:.1f} min", flush=True)
        if checkpoint and time.monotonic() - saved > CHECKPOINT_SECONDS:
            save(checkpoint, reader, optimiser, schedule, number + 1, plan)
            saved = time.monotonic()


def trained(reader: Reader) -> dict[str, torch.Tensor]:
    """Parameters that training changes, each once."""
    return {
        name: parameter.detach()
        for name, parameter in reader.named_parameters()
        if parameter.requires_grad
    }


def save(path: Path, reader: Reader, optimiser, schedule, done: int, plan: dict) -> None:
    """Writes a checkpoint so that a crash leaves the old or the new one."""
    state = dict(
        reader=trained(reader),
        optimiser=optimiser.state_dict(),
        schedule=schedule.state_dict(),
        done=done,
        plan=plan,
    )
    new = path.with_suffix(".new")
    torch.save(state, new)
    new.replace(path)
