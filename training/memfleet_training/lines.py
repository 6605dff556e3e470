"""Line reader: says of a sentence of a turn whether it is a good line of its speaker's profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import Scenario
from .encoder import Encoder
from .statements import turn_sequence
from .texts import SequenceBuilder

# Said in earnest of the speaker, complete, worth knowing for months, and all three.
LABELS = ("said", "complete", "worth", "line")
MARK = re.compile(r"\[([scw-]+):([^\[\]]+)\]")


@dataclass
class LineExample:
    """Sentence of a turn, as a range of pieces behind the turn before it, with its labels."""

    ids: list[int]
    span: tuple[int, int]
    labels: list[float]


def line_examples(scenarios: list[Scenario], folder: Path, builder: SequenceBuilder) -> list[LineExample]:
    """Judged sentences of `folder/*/*.txt`, whose text stands in the scenarios."""
    by_number = {(s.writer, s.number): s for s in scenarios}
    examples = []
    for path in sorted(Path(folder).glob("*/*.txt")):
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            place, letters = (part.strip() for part in line.split("|"))
            writer, number, turn, span = place.split()
            scenario = by_number.get((writer, number))
            if scenario is None:
                continue
            start, end = map(int, span.split("-"))
            ids, segment = sequence(builder, scenario, int(turn))
            pieces = segment.pieces(start, end)
            if pieces:
                labels = [float(letter in letters) for letter in "scw"]
                examples.append(LineExample(ids, pieces, [*labels, float(all(labels))]))
    return examples


def talk_examples(folder: Path, builder: SequenceBuilder) -> list[LineExample]:
    """Judged sentences of the talks of `folder/*/*.txt`."""
    examples = []
    for path in sorted(Path(folder).glob("*/*.txt")):
        previous = None
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            if line.startswith("## "):
                previous = None
                continue
            speaker, marked = line.split(": ", 1)
            text, sentences = unmarked(marked.strip())
            turn = (speaker.lstrip("*"), speaker.startswith("*"), text)
            ids, segment = turn_sequence(builder, *turn, previous)
            previous = turn
            for start, end, letters in sentences:
                pieces = segment.pieces(start, end)
                if pieces:
                    labels = [float(letter in letters) for letter in "scw"]
                    examples.append(LineExample(ids, pieces, [*labels, float(all(labels))]))
    return examples


def unmarked(marked: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Text without its marks, and the sentences that they mark with their letters."""
    text, sentences, at = "", [], 0
    for mark in MARK.finditer(marked):
        text += marked[at : mark.start()]
        sentences.append((len(text), len(text) + len(mark[2]), mark[1]))
        text += mark[2]
        at = mark.end()
    return text + marked[at:], sentences


def sequence(builder: SequenceBuilder, scenario: Scenario, place: int):
    """Sequence of a turn of a scenario behind the one before it, and the segment of the turn."""
    turn = scenario.turns[place]
    before = scenario.turns[place - 1] if place else None
    previous = (before.speaker, before.assistant, before.text) if before else None
    return turn_sequence(builder, turn.speaker, turn.assistant, turn.text, previous)


class LineReader(nn.Module):
    """Linear head on the mean of a sentence's pieces and the state of the turn's opening."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.line = nn.Linear(2 * encoder.width, len(LABELS))
        self.dropout = nn.Dropout(0.1)

    def scores(self, examples: list[LineExample]) -> Tensor:
        """Scores of the labels, a row for each sentence."""
        with torch.autocast("cpu", torch.bfloat16):
            states = self.encoder(*padded([e.ids for e in examples]))
        states = states.float()
        means = span_means(states, [(row, *e.span) for row, e in enumerate(examples)])
        return self.line(self.dropout(torch.cat([means, states[:, 0]], dim=1)))

    def loss(self, examples: list[LineExample]) -> Tensor:
        """Binary cross entropy of the labels."""
        wanted = torch.tensor([e.labels for e in examples])
        return F.binary_cross_entropy_with_logits(self.scores(examples), wanted)

    @torch.no_grad()
    def read(self, examples: list[LineExample]) -> dict[int, Tensor]:
        """Probabilities of the labels by example."""
        self.eval()
        found = {}
        for batch in length_batches([len(e.ids) for e in examples], None):
            for place, row in zip(batch, self.scores([examples[i] for i in batch]).sigmoid()):
                found[place] = row
        self.train()
        return found
