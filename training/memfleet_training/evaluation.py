"""Figures of a reader on the test part: each head alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import torch

from .corpus import KINDS, OWNERS
from .lines import LABELS, LineExample
from .names import NAME_KINDS, NameExample, names_of
from .needs import SpaceExample
from .pairs import TurnPair
from .reader import Reader
from .statements import FLAGS, TurnExample
from .tenses import TENSES, TenseExample

CHANGES = (1, 2)
LINE_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
THRESHOLDS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)


def agreement(pairs: Sequence[tuple[Any, Any]]) -> tuple[float, float]:
    """Share of equal pairs, and Cohen's kappa."""
    count = len(pairs)
    same = sum(a == b for a, b in pairs) / count
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(left[k] * right[k] for k in left) / count / count
    return same, (same - chance) / (1 - chance) if chance < 1 else 1.0


def area_under_curve(rows: Sequence[tuple[bool, float]]) -> float:
    """Chance that a true row has a higher score than a false one."""
    below = above = found = 0
    for is_true, _ in sorted(rows, key=lambda row: row[1]):
        if is_true:
            above += below
            found += 1
        else:
            below += 1
    return above / max(1, found * below)


def statement_figures(reader: Reader, examples: list[TurnExample]) -> dict[str, Any]:
    """Starts (precision, recall), and agreement on kinds, owners and flags of labelled statements."""
    kinds, owners = [], []
    flags: list[list[tuple[int, int]]] = [[] for _ in FLAGS]
    right = wrong = missed = 0
    for place, (starts, kind, owner, flag) in reader.statements.read(examples).items():
        example = examples[place]
        kinds += zip(example.kinds, kind.argmax(-1).tolist())
        owners += zip(example.owners, owner.argmax(-1).tolist())
        for number in range(len(FLAGS)):
            wanted = [int(row[number]) for row in example.flags]
            flags[number] += zip(wanted, (flag[:, number] > 0.5).int().tolist())
        first = example.text_range[0]
        found = {first} | {first + at for at in (starts > 0.5).nonzero().flatten().tolist()}
        wanted_starts = set(example.starts)
        right += len(found & wanted_starts)
        wrong += len(found - wanted_starts)
        missed += len(wanted_starts - found)
    return {
        "statements": len(kinds),
        "start": {"precision": right / (right + wrong), "recall": right / (right + missed)},
        "kind": _labelled(kinds, KINDS),
        "owner": _labelled(owners, OWNERS),
        **{name: _binary(rows) for name, rows in zip(FLAGS, flags)},
    }


def pair_figures(reader: Reader, examples: list[TurnPair]) -> dict[str, Any]:
    """Agreement on listed relations, and what thresholds of *ends or corrects* find and claim wrongly."""
    listed, unlisted = [], []
    for example, read in zip(examples, reader.pairs.read(examples)):
        for pair, probabilities in read.items():
            if pair in example.listed:
                listed.append((example.relations[pair], probabilities))
            else:
                unlisted.append(float(probabilities[1] + probabilities[2]))
    changes = [(a in CHANGES, float(p[1] + p[2])) for a, p in listed]
    same, kappa = agreement([(a, int(p.argmax())) for a, p in listed])
    figures: dict[str, Any] = {
        "listed": len(listed),
        "unlisted": len(unlisted),
        "relation": {"same": same, "kappa": kappa},
        "change_area_under_curve": area_under_curve(changes),
        "thresholds": [],
    }
    for threshold in THRESHOLDS:
        found = sum(a and p > threshold for a, p in changes)
        false = sum(not a and p > threshold for a, p in changes)
        stray = sum(p > threshold for p in unlisted)
        figures["thresholds"].append(
            {
                "above": threshold,
                "recall": found / max(1, sum(a for a, _ in changes)),
                "precision": found / max(1, found + false),
                "false_of_listed": false / max(1, sum(not a for a, _ in changes)),
                "false_of_unlisted": stray / max(1, len(unlisted)),
            }
        )
    return figures


def tense_figures(reader: Reader, examples: list[TenseExample]) -> dict[str, Any]:
    """Agreement on the tenses of prompts."""
    read = reader.tenses.read(examples)
    rows = [(e.tense, int(read[place].argmax())) for place, e in enumerate(examples)]
    return {"prompts": len(rows), **_labelled(rows, TENSES)}


def name_figures(reader: Reader, examples: list[NameExample]) -> dict[str, Any]:
    """Names that are found with the same pieces, with the kind and without it."""
    read = reader.names.read(examples)
    rows = [(set(names_of(e.classes)), set(read[place])) for place, e in enumerate(examples)]
    spans = [({n[:2] for n in wanted}, {n[:2] for n in found}) for wanted, found in rows]
    kinds = {
        name: [tuple({n for n in side if n[2] == kind} for side in row) for row in rows]
        for kind, name in enumerate(NAME_KINDS)
    }
    return {
        "turns": len(examples),
        "with_kind": _found(rows),
        "without_kind": _found(spans),
        "kinds": {name: _found(found) for name, found in kinds.items()},
    }


def line_figures(reader: Reader, examples: list[LineExample]) -> dict[str, Any]:
    """Agreement on the labels of sentences, and what thresholds of a good line take and how many of these are right."""
    read = reader.lines.read(examples)
    rows = [(e.labels, read[place].tolist()) for place, e in enumerate(examples)]
    figures: dict[str, Any] = {"sentences": len(rows)}
    for number, name in enumerate(LABELS):
        pairs = [(int(a[number]), int(b[number] > 0.5)) for a, b in rows]
        areas = area_under_curve([(bool(a[number]), b[number]) for a, b in rows])
        figures[name] = {**_binary(pairs), "area_under_curve": areas}
    good = sum(a[-1] for a, _ in rows)
    figures["thresholds"] = []
    for threshold in LINE_THRESHOLDS:
        taken = [a[-1] for a, b in rows if b[-1] > threshold]
        figures["thresholds"].append(
            {"above": threshold, "precision": sum(taken) / max(1, len(taken)), "recall": sum(taken) / max(1, good)}
        )
    return figures


def _found(rows: Sequence[tuple[set, set]]) -> dict[str, float]:
    """Names that were labelled, and precision and recall of those that were found."""
    right = sum(len(wanted & found) for wanted, found in rows)
    wanted, found = (sum(len(row[side]) for row in rows) for side in (0, 1))
    return {"count": wanted, "precision": right / max(1, found), "recall": right / max(1, wanted)}


@torch.no_grad()
def need_figures(reader: Reader, examples: list[SpaceExample]) -> dict[str, Any]:
    """How well the best line tells need, and where the first needed line stands."""
    reader.needs.eval()
    rows, places = [], defaultdict(list)
    for example in examples:
        scores = reader.needs.scores(example.lines, example.prompts)
        for prompt, row in zip(example.space.prompts, scores):
            rows.append((prompt.kind, bool(prompt.needed), float(row.max())))
            if prompt.needed:
                order = row.argsort(descending=True).tolist()
                places[prompt.kind].append(min(order.index(line) for line in prompt.needed))
    needed = sorted(score for _, is_needed, score in rows if is_needed)
    figures: dict[str, Any] = {
        "prompts": len(rows),
        "area_under_curve": area_under_curve([(n, s) for _, n, s in rows]),
        "first_needed": {
            kind: {f"top_{top}": sum(p < top for p in found) / len(found) for top in (1, 3, 10)}
            for kind, found in places.items()
        },
        "missed": [],
    }
    for missed in (0.02, 0.04, 0.08, 0.15):
        threshold = needed[int(missed * len(needed))]
        needless = {
            kind: sum(s >= threshold for k, _, s in rows if k == kind) / sum(k == kind for k, _, _ in rows)
            for kind in ("none", "near", "missing")
        }
        figures["missed"].append({"share": missed, "log_odds": threshold, "needless": needless})
    return figures


def _labelled(pairs: list[tuple[int, int]], names: Sequence[str]) -> dict[str, Any]:
    same, kappa = agreement(pairs)
    classes = {}
    for number, name in enumerate(names):
        right = sum(a == b == number for a, b in pairs)
        labelled, said = (sum(p[side] == number for p in pairs) for side in (0, 1))
        if labelled:
            classes[name] = {
                "count": labelled, "precision": right / max(1, said), "recall": right / labelled
            }  # fmt: skip
    return {"same": same, "kappa": kappa, "classes": classes}


def _binary(pairs: list[tuple[int, int]]) -> dict[str, float]:
    right = sum(a == b == 1 for a, b in pairs)
    return {
        "kappa": agreement(pairs)[1],
        "precision": right / max(1, sum(b for _, b in pairs)),
        "recall": right / max(1, sum(a for a, _ in pairs)),
    }
