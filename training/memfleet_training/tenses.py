"""Tense reader: says of a prompt which time it asks about."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import Scenario
from .encoder import Encoder
from .needs import Space, prompt_sequence
from .texts import SequenceBuilder

# What holds now, what held before, what held at a named time, and all values with their times.
TENSES = ("now", "before", "asof", "all")
# Prompts that need nothing from memory ask about no time; they count as `now`.
NEEDLESS = ("none", "near")


@dataclass
class TenseExample:
    """Prompt as pieces, and the place of its tense in `TENSES`."""

    ids: list[int]
    tense: int
    language: str


def tense_examples(scenarios: list[Scenario], spaces: list[Space], builder: SequenceBuilder) -> list[TenseExample]:
    """One example for each question of the scenarios and for each prompt of the spaces that needs nothing."""
    examples = [
        TenseExample(prompt_sequence(builder, q.text, []), TENSES.index(q.tense), scenario.language)
        for scenario in scenarios
        for q in scenario.questions
        if q.tense in TENSES
    ]
    for space in spaces:
        for prompt in space.prompts:
            if prompt.kind in NEEDLESS:
                ids = prompt_sequence(builder, prompt.text, prompt.before)
                examples.append(TenseExample(ids, 0, space.language))
    return examples


class TenseReader(nn.Module):
    """Linear head on the mean of a prompt's pieces, the state that its needs are told from."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.tense = nn.Linear(encoder.width, len(TENSES))
        self.dropout = nn.Dropout(0.1)

    def scores(self, examples: list[TenseExample]) -> Tensor:
        """Scores of the tenses, a row for each prompt."""
        ids, lengths = padded([e.ids for e in examples])
        with torch.autocast("cpu", torch.bfloat16):
            states = self.encoder(ids, lengths)
        means = span_means(states.float(), [(row, 0, int(length)) for row, length in enumerate(lengths)])
        return self.tense(self.dropout(means))

    def loss(self, examples: list[TenseExample]) -> Tensor:
        """Cross entropy."""
        return F.cross_entropy(self.scores(examples), torch.tensor([e.tense for e in examples]))

    @torch.no_grad()
    def read(self, examples: list[TenseExample]) -> dict[int, Tensor]:
        """Probabilities of the tenses by example."""
        self.eval()
        found = {}
        for batch in length_batches([len(e.ids) for e in examples], None):
            for place, row in zip(batch, self.scores([examples[i] for i in batch]).softmax(-1)):
                found[place] = row
        self.train()
        return found
