"""Statement reader: cuts a turn into statements and says of each its kind, owner, polarity, end and worth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import KINDS, OWNERS, Scenario
from .encoder import Encoder
from .texts import CONTEXT_PIECES, TURN_PIECES, SequenceBuilder

FLAGS = ("negated", "keep", "ends")


@dataclass
class TurnExample:
    """Turn with the turn before it as context, as pieces."""

    ids: list[int]
    text_range: tuple[int, int]
    starts: list[int]
    spans: list[tuple[int, int]]
    kinds: list[int]
    owners: list[int]
    flags: list[list[float]]
    language: str


def turn_examples(scenarios: list[Scenario], builder: SequenceBuilder) -> list[TurnExample]:
    """One example for each turn."""
    examples = []
    for scenario in scenarios:
        for place, turn in enumerate(scenario.turns):
            previous = scenario.turns[place - 1] if place else None
            ids, segment = turn_sequence(
                builder, turn.speaker, turn.assistant, turn.text,
                (previous.speaker, previous.assistant, previous.text) if previous else None,
            )  # fmt: skip
            example = TurnExample(
                ids, (segment.first, len(ids) - 1), [], [], [], [], [], scenario.language
            )
            for s in turn.statements:
                pieces = segment.pieces(s.start, s.end)
                if pieces is None:
                    continue
                example.starts.append(pieces[0])
                example.spans.append(pieces)
                example.kinds.append(KINDS.index(s.kind))
                example.owners.append(OWNERS.index(s.owner_class))
                example.flags.append(
                    [float(s.negated), float(s.keep), float(s.end_date is not None)]
                )
            if example.spans:
                examples.append(example)
    return examples


def turn_sequence(builder, speaker, assistant, text, previous):
    """Sequence of a turn behind the one before it, and the segment of the turn."""
    parts = []
    if previous:
        parts.append((speaker_head(*previous[:2]), previous[2], CONTEXT_PIECES, True))
    parts.append((speaker_head(speaker, assistant), text, TURN_PIECES, False))
    ids, segments = builder.build(*parts)
    return ids, segments[-1]


def speaker_head(speaker: str, assistant: bool) -> str:
    """Words before a turn: the role of an assistant, or the speaker's name."""
    return "assistant:" if assistant else f"{speaker}:"


class StatementReader(nn.Module):
    """Encoder with linear heads on pieces (does a statement start here) and on statements (the rest)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        width = encoder.width
        self.start = nn.Linear(width, 1)
        self.kind = nn.Linear(2 * width, len(KINDS))
        self.owner = nn.Linear(2 * width, len(OWNERS))
        self.flags = nn.Linear(2 * width, len(FLAGS))
        self.dropout = nn.Dropout(0.1)

    def states(self, examples: list[TurnExample]) -> Tensor:
        return self.encoder(*padded([e.ids for e in examples]))

    def heads(self, states: Tensor, spans: list[list[tuple[int, int]]]) -> tuple[Tensor, Tensor, Tensor]:
        """Kinds, owners and flags of statements, from the mean of their pieces and that of the turn's opening."""
        placed = [(row, a, b) for row, row_spans in enumerate(spans) for a, b in row_spans]
        openings = states[:, 0][[row for row, _, _ in placed]]
        rows = self.dropout(torch.cat([span_means(states, placed), openings], dim=1))
        return self.kind(rows), self.owner(rows), self.flags(rows)

    def loss(self, examples: list[TurnExample]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            states = self.states(examples)
        states = states.float()
        kinds, owners, flags = self.heads(states, [e.spans for e in examples])
        pieces, wanted = [], []
        for row, example in enumerate(examples):
            first, last = example.text_range
            pieces += [row * states.shape[1] + at for at in range(first, last)]
            marks = torch.zeros(last - first)
            marks[[s - first for s in example.starts]] = 1
            wanted.append(marks)
        chosen = states.flatten(0, 1)[pieces]
        starts = self.start(self.dropout(chosen)).squeeze(-1)
        target = torch.cat(wanted)
        return (
            F.cross_entropy(kinds, torch.tensor([k for e in examples for k in e.kinds]))
            + 0.7 * F.cross_entropy(owners, torch.tensor([o for e in examples for o in e.owners]))
            + len(FLAGS) * F.binary_cross_entropy_with_logits(flags, torch.tensor([f for e in examples for f in e.flags]))
            + F.binary_cross_entropy_with_logits(starts, target)
        )  # fmt: skip

    @torch.no_grad()
    def read(self, examples: list[TurnExample]) -> dict[int, tuple]:
        """Start, kind, owner and flag scores by example, with the spans as labelled."""
        self.eval()
        found = {}
        for batch in length_batches([len(e.ids) for e in examples], None):
            chosen = [examples[i] for i in batch]
            with torch.autocast("cpu", torch.bfloat16):
                states = self.states(chosen)
            states = states.float()
            kinds, owners, flags = self.heads(states, [e.spans for e in chosen])
            at = 0
            for row, place in enumerate(batch):
                e = examples[place]
                n = len(e.spans)
                first, last = e.text_range
                starts = self.start(states[row, first:last]).squeeze(-1).sigmoid()
                found[place] = (
                    starts, kinds[at : at + n].softmax(-1), owners[at : at + n].softmax(-1), flags[at : at + n].sigmoid(),
                )  # fmt: skip
                at += n
        self.train()
        return found
