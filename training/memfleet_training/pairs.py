"""Pair reader: says of statements of two turns what the later one does to the earlier one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import RELATIONS, PairGroup, Question, Scenario, Turn
from .encoder import Encoder
from .statements import speaker_head
from .texts import SequenceBuilder

PIECES = 96
# Pieces of the question that two turns are read for.
QUESTION_PIECES = 48
CHANGES = ("ends", "corrects")
# Relations that leave the earlier statement as it is.
UNCHANGED = [at for at, name in enumerate(RELATIONS) if name not in CHANGES]


@dataclass
class TurnPair:
    """Two turns as one sequence, with the statements of each and the relation of every pair of them."""

    ids: list[int]
    earlier: list[tuple[int, int]]
    later: list[tuple[int, int]]
    relations: dict[tuple[int, int], int] = field(default_factory=dict)
    listed: set[tuple[int, int]] = field(default_factory=set)
    source: tuple[int, int, int] = (0, 0, 0)
    # All changes of the two turns are listed.
    is_complete: bool = False


def turn_pair(builder: SequenceBuilder, earlier: Turn, later: Turn, question: str | None = None) -> TurnPair:
    """Sequence of two turns, the later one behind the time between them. With a question before them only changes
    of what it asks about count."""
    gap = gap_words(later.time - earlier.time)
    asked = [("query:", question, QUESTION_PIECES, False)] if question else []
    ids, (*_, first, second) = builder.build(
        *asked,
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


def group_examples(groups: list[PairGroup], builder: SequenceBuilder) -> list[TurnPair]:
    """The earlier turn of each group beside each later one, of which one statement each is compared."""
    examples = []
    for number, group in enumerate(groups):
        for place, (relation, later) in enumerate(group.later):
            pair = turn_pair(builder, group.earlier, later)
            if pair.later[0] and pair.earlier[0]:
                pair.relations = {(0, 0): RELATIONS.index(relation)}
                pair.listed = {(0, 0)}
                pair.source = (number, place, 0)
                examples.append(pair)
    return examples


def unrelated_examples(
    scenarios: list[Scenario], groups: list[PairGroup], builder: SequenceBuilder, *, share: float, seed: int = 11
) -> list[TurnPair]:
    """Pairs in which nothing changes: a share of the turn pairs of scenarios without a listed relation, and
    each later turn of a group beside the earlier turn of another group, of the same language in four of five. Without these, that something ends
    would be told from the later turn alone."""
    chance = random.Random(seed)
    examples = []
    for scenario in scenarios:
        known = {(a, b) for a, _, b, _ in scenario.pairs}
        for later in range(len(scenario.turns)):
            for earlier in range(later):
                if (later, earlier) not in known and chance.random() < share:
                    examples.append(turn_pair(builder, scenario.turns[earlier], scenario.turns[later]))
    alike: dict[str, list[PairGroup]] = {}
    for group in groups:
        alike.setdefault(group.language, []).append(group)
    for group in groups:
        others = [other for other in alike[group.language] if other is not group]
        for _, later in group.later:
            pool = others if others and chance.random() < 0.8 else groups
            earlier = foreign_turn(group, chance.choice(pool))
            if earlier:
                examples.append(turn_pair(builder, earlier, later))
    for pair in examples:
        pair.relations = {(i, j): 0 for i, a in enumerate(pair.later) for j, b in enumerate(pair.earlier) if a and b}
    return [pair for pair in examples if pair.relations]


def asked_examples(
    scenarios: list[Scenario], builder: SequenceBuilder, *, most: int = 4, seed: int = 13
) -> list[TurnPair]:
    """Turn pairs of one speaker behind a question, at most so many of each: those that change what it asks about, and
    others in which nothing of that changes, those with other changes first. A fifth of the questions are also
    asked of another scenario, where nothing that they ask about stands."""
    chance = random.Random(seed)
    alike: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        alike.setdefault(scenario.language, []).append(scenario)
    examples = []
    for scenario in scenarios:
        changes = changes_by_turns(scenario)
        for question in scenario.questions:
            asked = {} if question.tense == "unknown" else asked_changes(scenario, question, changes)
            examples += pairs_for(scenario, question, asked, changes, builder, most, chance)
            others = alike[scenario.language]
            if chance.random() < 0.2 and len(others) > 1:
                other = chance.choice(others)
                if other is not scenario:
                    examples += pairs_for(other, question, {}, changes_by_turns(other), builder, 2, chance)
    return examples


def changes_by_turns(scenario: Scenario) -> dict[tuple[int, int], dict[tuple[int, int], int]]:
    """Changes of a scenario by the later and the earlier turn."""
    changes: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    for (a, i, b, j), relation in scenario.pairs.items():
        if relation in CHANGES and a != b:
            changes.setdefault((a, b), {})[i, j] = RELATIONS.index(relation)
    return changes


def asked_changes(scenario: Scenario, question: Question, changes: dict) -> dict[tuple[int, int], dict]:
    """Changes between turns that state answers, right or wrong: those of the statements with the answers, where any
    has one."""
    told = set(question.evidence) | set(question.stale)
    answers = [answer.lower() for answer in question.right + question.wrong]

    def says(turn: int, place: int) -> bool:
        statement = scenario.turns[turn].statements[place]
        text = scenario.turns[turn].text[statement.start : statement.end].lower()
        return any(answer in text for answer in answers)

    asked = {}
    for (a, b), of_turns in changes.items():
        if a in told and b in told:
            exact = {(i, j): r for (i, j), r in of_turns.items() if says(a, i) or says(b, j)}
            asked[a, b] = exact or of_turns
    return asked


def pairs_for(
    scenario: Scenario, question: Question, asked: dict, changes: dict, builder: SequenceBuilder, most: int, chance
) -> list[TurnPair]:
    """Turn pairs of one person behind a question, at most `most`."""
    turns = scenario.turns
    told = set(question.evidence) | set(question.stale)

    def order(pair: tuple[int, int]) -> tuple:
        is_told = bool(told & set(pair))
        return (pair not in asked, pair not in changes, not is_told, chance.random())

    pairs = [
        (later, earlier)
        for later in range(len(turns))
        for earlier in range(later)
        if not turns[later].assistant and turns[later].speaker == turns[earlier].speaker
    ]
    examples = []
    for later, earlier in sorted(pairs, key=order)[:most]:
        pair = turn_pair(builder, turns[earlier], turns[later], question.text)
        known = asked.get((later, earlier), {})
        for i, a in enumerate(pair.later):
            for j, b in enumerate(pair.earlier):
                if a and b:
                    pair.relations[i, j] = known.get((i, j), 0)
        pair.listed = set(known)
        if pair.relations:
            examples.append(pair)
    return examples


def foreign_turn(group: PairGroup, other: PairGroup) -> Turn | None:
    """Earlier turn of another group, said by the speaker and at the time of this one's: speaker and time
    must not tell that the two have nothing to do with each other. Nothing where it is the same group."""
    if other is group:
        return None
    own = group.earlier
    return replace(other.earlier, time=own.time, speaker=own.speaker, assistant=own.assistant)


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
            states = self.encoder(*padded([e.ids for e in examples]), mask_words=True)
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
        """Cross entropy of listed pairs; of others it is only known that nothing changes. A turn pair whose changes are
        all listed counts with the sum of its pairs, since one wrong change is enough to do harm."""
        scores, keys = self.scores(examples)
        wanted, is_listed = [], []
        for example, pairs in zip(examples, keys):
            for pair in pairs:
                wanted.append(example.relations[pair])
                is_listed.append(pair in example.listed)
        mask = torch.tensor(is_listed)
        weight = torch.where(mask, 1.0, self.unlisted_weight)
        listed = F.cross_entropy(scores, torch.tensor(wanted), reduction="none")
        others = scores.logsumexp(-1) - scores[:, UNCHANGED].logsumexp(-1)
        losses = torch.where(mask, listed, others)
        if all(example.is_complete for example in examples):
            return losses.sum() / len(examples)
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

