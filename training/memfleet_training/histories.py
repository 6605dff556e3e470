"""Long conversations with all their changes: many turns about the same matters, hardly any of which ends another."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from .corpus import RELATIONS, Question, Scenario, Statement, Turn, begun, read_turn
from .pairs import TurnPair, changes_by_turns, turn_pair
from .texts import SequenceBuilder

# Earlier turns of its speaker that a turn is compared with, the most alike, and turn pairs that are read behind a question.
ALIKE_TURNS = 5
ASKED_PAIRS = 6
SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?…]+(?=\s|$)|[。！？]+|(?=\n)|$)")


def read_histories(folder: Path) -> list[Scenario]:
    """Conversations of `folder/*/*.txt`. Their statements are their sentences, of which only the changes are labelled."""
    histories: list[Scenario] = []
    for path in sorted(folder.glob("*/*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            head, _, rest = line.partition(" ")
            if head == "##":
                histories.append(begun(path, rest))
            elif head == "@":
                turn = read_turn(rest)
                turn.statements = [
                    Statement(found.start(), found.end(), "state", "me", False, False, None, None)
                    for found in SENTENCE.finditer(turn.text)
                ]
                histories[-1].turns.append(turn)
            elif head == ">":
                place, *quotes = (part.strip() for part in rest.split("|"))
                later, relation, earlier = place.split()
                turns = [int(later), int(earlier)]
                news, olds = (
                    stating(histories[-1].turns[at], quote) for at, quote in zip(turns, quotes, strict=True)
                )
                for i in news:
                    for j in olds:
                        histories[-1].pairs[turns[0], i, turns[1], j] = relation
            elif head == "?":
                histories[-1].questions.append(read_question(rest))
    return histories


def stating(turn: Turn, quote: str) -> list[int]:
    """Places of the statements of a turn that a quotation of it touches."""
    start = turn.text.index(quote.replace(" ⏎ ", "\n"))
    return [at for at, s in enumerate(turn.statements) if s.start < start + len(quote) and start < s.end]


def read_question(rest: str) -> Question:
    """Question with the turns that state its answer and those whose value is none."""
    asked_at, text, places = (part.strip() for part in rest.split("|"))
    named = dict(part.split("=") for part in places.split())
    evidence, stale = ([int(at) for at in named.get(name, "").split(",") if at] for name in "es")
    return Question("now", datetime.fromisoformat(asked_at), text, [], [], evidence, stale)


def history_examples(histories: list[Scenario], builder: SequenceBuilder) -> list[TurnPair]:
    """Each turn of a person beside the most alike of the earlier ones, those that it changes among them."""
    examples = []
    for history in histories:
        changes = changes_by_turns(history)
        words = WordWeights(builder, [turn.text for turn in history.turns])
        for later in range(len(history.turns)):
            near = sorted(said_before(history, later), key=lambda earlier: -words.likeness(later, earlier))
            changed = [earlier for earlier in near if (later, earlier) in changes]
            for earlier in {*near[:ALIKE_TURNS], *changed}:
                examples += labelled(history, builder, later, earlier, changes, changes)
    return examples


def asked_history_examples(histories: list[Scenario], builder: SequenceBuilder, seed: int = 17) -> list[TurnPair]:
    """Turn pairs of a person behind each question: first the change of its answer, then pairs with a turn that states
    an answer, then others that are about what it asks."""
    chance = random.Random(seed)
    examples = []
    for history in histories:
        changes = changes_by_turns(history)
        words = WordWeights(builder, [turn.text for turn in history.turns])
        for question in history.questions:
            told = {*question.evidence, *question.stale}
            asked = {pair: known for pair, known in changes.items() if told.issuperset(pair)}
            fit = [words.fit(question.text, at) for at in range(len(history.turns))]

            def order(pair: tuple[int, int]) -> tuple:
                return (pair not in asked, not told & set(pair), -sum(fit[at] for at in pair), chance.random())

            pairs = [(later, earlier) for later in range(len(fit)) for earlier in said_before(history, later)]
            for later, earlier in sorted(pairs, key=order)[:ASKED_PAIRS]:
                examples += labelled(history, builder, later, earlier, changes, asked, question.text)
    return examples


def said_before(history: Scenario, later: int) -> list[int]:
    """Earlier turns of the person who says a turn; none of an assistant."""
    turn = history.turns[later]
    return [at for at in range(later) if history.turns[at].speaker == turn.speaker and not turn.assistant]


def labelled(
    history: Scenario,
    builder: SequenceBuilder,
    later: int,
    earlier: int,
    changes: dict,
    asked: dict,
    question: str | None = None,
) -> list[TurnPair]:
    """Pair of two turns with those of its changes that are asked for. None where another turn between them changed the earlier one: whether the
    later one does so again is not labelled."""
    known = asked.get((later, earlier), {})
    if not known and any(b == earlier and a < later for a, b in changes):
        return []
    pair = turn_pair(builder, history.turns[earlier], history.turns[later], question)
    for i, a in enumerate(pair.later):
        for j, b in enumerate(pair.earlier):
            if a and b:
                pair.relations[i, j] = known.get((i, j), RELATIONS.index("none"))
    pair.listed = {key for key in known if key in pair.relations}
    pair.is_complete = True
    return [pair] if pair.relations else []


class WordWeights:
    """Word pieces of the turns of a conversation, which weigh the more the fewer turns have them."""

    def __init__(self, builder: SequenceBuilder, texts: Sequence[str]) -> None:
        self.builder = builder
        self.pieces = [builder.pieces(text) for text in texts]
        counts = Counter(piece for pieces in self.pieces for piece in pieces)
        self.weights = {piece: math.log((1 + len(texts)) / count) for piece, count in counts.items()}
        self.sizes = [self.weight(pieces) for pieces in self.pieces]

    def weight(self, pieces: set[int]) -> float:
        """Sum of the weights of pieces."""
        return sum(self.weights.get(piece, 0.0) for piece in pieces)

    def likeness(self, one: int, other: int) -> float:
        """Share of the weight that two turns have together."""
        shared = self.weight(self.pieces[one] & self.pieces[other])
        return shared / (1.0 + math.sqrt(self.sizes[one] * self.sizes[other]))

    def fit(self, text: str, turn: int) -> float:
        """Weight of the pieces of a text that a turn has."""
        return self.weight(self.builder.pieces(text) & self.pieces[turn])
