"""Need encoder: places prompts near the remembered lines that a good reply needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import Scenario
from .encoder import Encoder
from .texts import CONTEXT_PIECES, SequenceBuilder

LINE_PIECES = 96
PROMPT_PIECES = 64
PROMPT_KINDS = ("explicit", "implicit", "rule", "none", "near", "missing")


@dataclass
class Line:
    """Remembered turn."""

    date: str
    speaker: str
    assistant: bool
    text: str


@dataclass
class Prompt:
    """Prompt with the turns before it; `needed` and `helpful` are places of lines."""

    kind: str
    text: str
    before: list[str]
    needed: set[int]
    helpful: set[int]


@dataclass
class Space:
    """Memory of a person and the prompts that meet it."""

    writer: str
    number: str
    language: str
    lines: list[Line] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)


def read_spaces(folder: Path) -> list[Space]:
    """Spaces of a part, by writer and number."""
    return [_space(path) for path in sorted(Path(folder).glob("*/*.txt"))]


def _space(path: Path) -> Space:
    space = Space(path.parent.name, "", "")
    before: list[str] = []
    for row in path.read_text(encoding="utf-8").splitlines():
        head, _, rest = row.partition(" ")
        if head == "##":
            space.number, space.language = (part.strip() for part in rest.split("|"))
        elif head == "m":
            date, speaker, text = re.match(r"(\S+) ([^:|]+): (.+)", rest).groups()
            space.lines.append(Line(date, speaker.lstrip("*"), speaker.startswith("*"), text))
        elif head == "c":
            before = [part.strip().lstrip("*") for part in rest.split(" ## ")]
        elif head == "p":
            kind, text, *fields = (part.strip() for part in rest.split("|"))
            named = {f[0]: {int(n) for n in f[1:].split()} for f in fields if f}
            space.prompts.append(
                Prompt(kind, text, before, named.get("+", set()), named.get("~", set()))
            )
            before = []
    return space


@dataclass
class SpaceExample:
    """Sequences of a space: lines first, then prompts; `needed[prompt][line]` is 1, ½ (helpful) or 0."""

    lines: list[list[int]]
    prompts: list[list[int]]
    needed: Tensor
    space: Space

    @property
    def ids(self) -> list[int]:
        """All pieces; their number bounds a batch."""
        return [piece for ids in self.lines + self.prompts for piece in ids]


def space_examples(spaces: list[Space], builder: SequenceBuilder) -> list[SpaceExample]:
    """One example for each space."""
    examples = []
    for space in spaces:
        lines = [line_sequence(builder, l.speaker, l.assistant, l.text) for l in space.lines]
        prompts = [prompt_sequence(builder, p.text, p.before) for p in space.prompts]
        needed = torch.zeros(len(prompts), len(lines))
        for row, prompt in enumerate(space.prompts):
            needed[row, list(prompt.helpful)] = 0.5
            needed[row, list(prompt.needed)] = 1.0
        examples.append(SpaceExample(lines, prompts, needed, space))
    return examples


def question_examples(scenarios: list[Scenario], builder: SequenceBuilder) -> list[SpaceExample]:
    """One example for each scenario with questions: its turns are the lines. Evidence is needed, and a
    turn whose value the question does not mean is helpful; what memory does not hold needs nothing."""
    examples = []
    for scenario in scenarios:
        if not scenario.questions:
            continue
        space = Space(scenario.writer, scenario.number, scenario.language)
        for turn in scenario.turns:
            date = turn.time.date().isoformat()
            space.lines.append(Line(date, turn.speaker, turn.assistant, turn.text))
        for question in scenario.questions:
            is_held = question.tense != "unknown"
            needed, helpful = (set(question.evidence), set(question.stale)) if is_held else (set(), set())
            kind = "explicit" if is_held else "missing"
            space.prompts.append(Prompt(kind, question.text, [], needed, helpful - needed))
        examples += space_examples([space], builder)
    return examples


def line_sequence(builder: SequenceBuilder, speaker: str, assistant: bool, text: str) -> list[int]:
    """Sequence of a remembered turn."""
    role = "assistant: " if assistant else ""
    return builder.build((f"passage: {role}", text, LINE_PIECES, False))[0]


def prompt_sequence(builder: SequenceBuilder, text: str, before: list[str]) -> list[int]:
    """Sequence of a prompt behind the turns before it."""
    parts = [("query:", text, PROMPT_PIECES, False)]
    if before:
        parts.append(("", " ".join(before), CONTEXT_PIECES, True))
    return builder.build(*parts)[0]


class NeedEncoder(nn.Module):
    """Encoder of prompts and lines; the score of a pair is a scaled cosine plus a term of the prompt alone."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.scale = nn.Parameter(torch.tensor(12.0))
        self.offset = nn.Linear(encoder.width, 1)
        nn.init.zeros_(self.offset.weight)
        nn.init.constant_(self.offset.bias, -9.0)

    def vectors(self, sequences: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Unit vectors, and the means that they are made of, of sequences, in batches by length."""
        places, means = [], []
        for batch in length_batches([len(s) for s in sequences], None):
            ids, lengths = padded([sequences[i] for i in batch])
            with torch.autocast("cpu", torch.bfloat16):
                states = self.encoder(ids, lengths)
            spans = [(row, 0, int(length)) for row, length in enumerate(lengths)]
            means.append(span_means(states.float(), spans))
            places += batch
        order = sorted(range(len(places)), key=lambda i: places[i])
        stacked = torch.cat(means)[order]
        return F.normalize(stacked, dim=-1), stacked

    def scores(self, lines: list[list[int]], prompts: list[list[int]]) -> Tensor:
        """Log odds that a line is needed, prompts × lines."""
        vectors, means = self.vectors(lines + prompts)
        count = len(lines)
        return self.scale * vectors[count:] @ vectors[:count].T + self.offset(means[count:])

    def loss(self, examples: list[SpaceExample]) -> Tensor:
        """Sum over spaces of the pairs' cross entropy, the prompts' (any line), and the ranking of needed lines."""
        scores = self.scores(
            [l for e in examples for l in e.lines], [p for e in examples for p in e.prompts]
        )
        wanted = torch.block_diag(*[e.needed for e in examples])
        pairs = F.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
        pairs = pairs.sum(1).mean()
        any_wanted = (wanted.max(1).values == 1).float()
        any_line = F.binary_cross_entropy_with_logits(torch.logsumexp(scores, 1), any_wanted)
        positive = wanted == 1
        rows = positive.any(1)
        ranking = -(torch.where(positive, scores.log_softmax(1), 0).sum(1) / positive.sum(1).clamp(min=1))
        return 0.3 * pairs + any_line + 0.5 * (ranking * rows).sum() / rows.sum().clamp(min=1)
