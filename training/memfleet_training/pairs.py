"""Pair reader: says of statements of two turns what the later one does to the earlier one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import RELATIONS, PairGroup, Scenario, Turn
from .encoder import Encoder
from .statements import speaker_head
from .texts import SequenceBuilder

PIECES = 96


@dataclass
class TurnPair:
    """Two turns as one sequence, with the statements of each and the relation of every pair of them."""

    ids: list[int]
    earlier: list[tuple[int, int]]
    later: list[tuple[int, int]]
    relations: dict[tuple[int, int], int] = field(default_factory=dict)
    listed: set[tuple[int, int]] = field(default_factory=set)
    source: tuple[int, int, int] = (0, 0, 0)


def turn_pair(builder: SequenceBuilder, earlier: Turn, later: Turn) -> TurnPair:
    """Sequence of two turns, the later one behind the time between them."""
    gap = gap_words(later.time - earlier.time)
    ids, (first, second) = builder.build(
        (speaker_head(earlier.speaker, earlier.assistant), earlier.text, PIECES, False),
        (f"{gap} {speaker_head(later.speaker, later.assistant)}", later.text, PIECES, False),
    )
    pair = TurnPair(ids, [], [])
    pair.earlier = [first.pieces(s.start, s.end) for s in earlier.statements]
    pair.later = [second.pieces(s.start, s.end) for s in later.statements]
    return pair


def gap_words(gap: timedelta) -> str:
    """Time between two turns in words."""
    minutes = gap.total_seconds() / 60
    for size, word in ((525600, "years"), (43200, "months"), (1440, "days"), (60, "hours")):
        if minutes >= size:
            return f"+{int(minutes // size)} {word}"
    return f"+{int(minutes)} minutes"


def pair_examples(
    scenarios: list[Scenario], builder: SequenceBuilder, *, others: float, seed: int = 7
) -> list[TurnPair]:
    """Turn pairs with a listed relation, those within one turn, and a share `others` of the rest."""
    chance = random.Random(seed)
    examples = []
    for number, scenario in enumerate(scenarios):
        by_turns: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
        for (a, i, b, j), relation in scenario.pairs.items():
            by_turns.setdefault((a, b), {})[i, j] = RELATIONS.index(relation)
        for later in range(len(scenario.turns)):
            for earlier in range(later + 1):
                known = by_turns.get((later, earlier), {})
                if not known and (later == earlier or chance.random() >= others):
                    continue
                pair = turn_pair(builder, scenario.turns[earlier], scenario.turns[later])
                pair.listed = set(known)
                for i, a in enumerate(pair.later):
                    for j, b in enumerate(pair.earlier):
                        if a and b and (later != earlier or i > j):
                            pair.relations[i, j] = known.get((i, j), 0)
                pair.source = (number, later, earlier)
                if pair.relations:
                    examples.append(pair)
    return examples


def group_examples(groups: list[PairGroup], builder: SequenceBuilder, *, foreign: bool = False, seed: int = 7) -> list[TurnPair]:
    """The earlier turn of each group beside each later one, of which one statement each is compared. With
    `foreign` each later turn also stands beside the earlier turn of another group of its writer and
    language, which it has nothing to do with: else that something ends would be told from the later turn alone."""
    chance = random.Random(seed)
    alike: dict[tuple[str, str], list[PairGroup]] = {}
    for group in groups:
        alike.setdefault((group.writer, group.language), []).append(group)
    examples = []
    for number, group in enumerate(groups):
        others = [other for other in alike[group.writer, group.language] if other is not group]
        pairs = [(group.earlier, relation, later) for relation, later in group.later]
        if foreign and others:
            pairs += [(moved(chance.choice(others).earlier, group.earlier.time), "none", later) for _, later in group.later]
        for place, (earlier, relation, later) in enumerate(pairs):
            pair = turn_pair(builder, earlier, later)
            if pair.later[0] and pair.earlier[0]:
                pair.relations = {(0, 0): RELATIONS.index(relation)}
                pair.listed = {(0, 0)}
                pair.source = (number, place, 0)
                examples.append(pair)
    return examples


def moved(turn: Turn, time: datetime) -> Turn:
    """The turn at another time."""
    return replace(turn, time=time)


class PairReader(nn.Module):
    """Encoder over two turns; the relation of two statements from the means of their pieces."""

    def __init__(self, encoder: Encoder, inner: int = 128) -> None:
        super().__init__()
        self.encoder = encoder
        self.widen = nn.Linear(4 * encoder.width, inner)
        self.relation = nn.Linear(inner, len(RELATIONS))
        self.dropout = nn.Dropout(0.1)
        self.unlisted_weight = 0.3

    def scores(self, examples: list[TurnPair]) -> tuple[Tensor, list[list[tuple[int, int]]]]:
        """Relation scores of all pairs of statements, example by example, and which pairs they are."""
        with torch.autocast("cpu", torch.bfloat16):
            states = self.encoder(*padded([e.ids for e in examples]))
        states = states.float()
        spans, keys = [], []
        firsts, seconds, rows = [], [], []
        for row, example in enumerate(examples):
            places: dict[tuple[str, int], int] = {}
            for side, statements in (("later", example.later), ("earlier", example.earlier)):
                for number, span in enumerate(statements):
                    if span:
                        places[side, number] = len(spans)
                        spans.append((row, *span))
            pairs = list(example.relations)
            keys.append(pairs)
            firsts += [places["later", i] for i, _ in pairs]
            seconds += [places["earlier", j] for _, j in pairs]
            rows += [row] * len(pairs)
        means = span_means(states, spans)
        a, b = means[firsts], means[seconds]
        features = torch.cat([states[:, 0][rows], a, b, a * b], dim=1)
        hidden = F.gelu(self.widen(self.dropout(features)))
        return self.relation(self.dropout(hidden)), keys

    def loss(self, examples: list[TurnPair]) -> Tensor:
        scores, keys = self.scores(examples)
        wanted, weights = [], []
        for example, pairs in zip(examples, keys):
            for pair in pairs:
                wanted.append(example.relations[pair])
                weights.append(1.0 if pair in example.listed else self.unlisted_weight)
        weight = torch.tensor(weights)
        losses = F.cross_entropy(scores, torch.tensor(wanted), reduction="none")
        return (losses * weight).sum() / weight.sum()

    @torch.no_grad()
    def read(self, examples: list[TurnPair]) -> list[dict[tuple[int, int], Tensor]]:
        """Relation probabilities of each pair of statements of each example."""
        self.eval()
        found: list[dict] = [{} for _ in examples]
        for batch in length_batches([len(e.ids) for e in examples], None):
            scores, keys = self.scores([examples[i] for i in batch])
            at = 0
            for place, pairs in zip(batch, keys):
                for pair in pairs:
                    found[place][pair] = scores[at].softmax(-1)
                    at += 1
        self.train()
        return found

