"""Name reader: says of each piece of a turn whether it is part of a name, and of what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded
from .encoder import Encoder
from .statements import turn_sequence
from .texts import SequenceBuilder

NAME_KINDS = ("person", "place", "group", "thing")
# Classes of pieces: in no name, then for each kind the first piece of a name and any other.
CLASSES = 1 + 2 * len(NAME_KINDS)
MARK = re.compile(r"\[(person|place|group|thing):([^\[\]]+)\]")


@dataclass
class NamedTurn:
    """Turn with its names, as character ranges and places in `NAME_KINDS`."""

    language: str
    speaker: str
    assistant: bool
    text: str
    names: list[tuple[int, int, int]]


@dataclass
class NameExample:
    """Turn as pieces, with the class of each piece of its text."""

    ids: list[int]
    text_range: tuple[int, int]
    classes: list[int]
    turn: NamedTurn


def read_named_turns(folder: Path) -> list[NamedTurn]:
    """Turns of a part, by writer and file."""
    turns = []
    for path in sorted(Path(folder).glob("*/*.txt")):
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            language, speaker, marked = line.split(" | ", 2)
            text, names, at = "", [], 0
            for mark in MARK.finditer(marked):
                text += marked[at : mark.start()]
                names.append((len(text), len(text) + len(mark[2]), NAME_KINDS.index(mark[1])))
                text += mark[2]
                at = mark.end()
            text += marked[at:]
            turns.append(NamedTurn(language, speaker.lstrip("*"), speaker.startswith("*"), text, names))
    return turns


def name_examples(turns: list[NamedTurn], builder: SequenceBuilder) -> list[NameExample]:
    """One example for each turn."""
    examples = []
    for turn in turns:
        ids, segment = turn_sequence(builder, turn.speaker, turn.assistant, turn.text, None)
        classes = [0] * len(segment.offsets)
        for start, end, kind in turn.names:
            pieces = segment.pieces(start, end)
            if pieces:
                first, last = pieces[0] - segment.first, pieces[1] - segment.first
                classes[first] = 1 + 2 * kind
                classes[first + 1 : last] = [2 + 2 * kind] * (last - first - 1)
        examples.append(NameExample(ids, (segment.first, len(ids) - 1), classes, turn))
    return examples


class NameReader(nn.Module):
    """Linear head on the states of a turn's pieces."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.name = nn.Linear(encoder.width, CLASSES)
        self.dropout = nn.Dropout(0.1)

    def scores(self, examples: list[NameExample]) -> list[Tensor]:
        """Scores of the classes, for each example a row a piece."""
        with torch.autocast("cpu", torch.bfloat16):
            states = self.encoder(*padded([e.ids for e in examples]))
        scores = self.name(self.dropout(states.float()))
        return [scores[row, e.text_range[0] : e.text_range[1]] for row, e in enumerate(examples)]

    def loss(self, examples: list[NameExample]) -> Tensor:
        """Cross entropy of all pieces."""
        wanted = torch.tensor([c for e in examples for c in e.classes])
        return F.cross_entropy(torch.cat(self.scores(examples)), wanted)

    @torch.no_grad()
    def read(self, examples: list[NameExample]) -> dict[int, list[tuple[int, int, int]]]:
        """Names of each example as ranges of pieces and kinds."""
        self.eval()
        found = {}
        for batch in length_batches([len(e.ids) for e in examples], None):
            for place, scores in zip(batch, self.scores([examples[i] for i in batch])):
                found[place] = names_of(scores.argmax(-1).tolist())
        self.train()
        return found


def names_of(classes: list[int]) -> list[tuple[int, int, int]]:
    """Names of the classes of pieces: one begins with its first piece, or where the kind changes."""
    names: list[tuple[int, int, int]] = []
    for at, piece in enumerate(classes):
        kind = (piece - 1) // 2
        if piece == 0:
            continue
        goes_on = piece % 2 == 0 and names and names[-1][1] == at and names[-1][2] == kind
        if goes_on:
            names[-1] = (names[-1][0], at + 1, kind)
        else:
            names.append((at, at + 1, kind))
    return names
