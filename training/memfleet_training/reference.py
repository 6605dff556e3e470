"""Answers of the training program to built-in texts, which `memfleet model verify` compares its own with."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import torch

from .batches import padded
from .corpus import Statement, Turn
from .needs import line_sequence, prompt_sequence
from .pairs import turn_pair
from .reader import Reader
from .statements import turn_sequence
from .texts import SequenceBuilder

SPEAKER = "Ada"
TURNS = (
    "I moved to Berlin last week, and I no longer live in Lisbon.",
    "Meine Schwester Grace arbeitet seit März in der Apotheke. Kannst du mir ein Rezept geben?",
    "Ya no como carne, desde enero soy vegetariano.",
    "我下个月要去东京出差，机票已经订好了。",
    "Мой кот Пиксель теперь живёт у брата.",
    "मेरी बेटी को मूंगफली से एलर्जी है।",
)
PAIRS = (
    ("I live in Lisbon.", "I moved to Berlin last week.", 30, None),
    ("I live in Lisbon.", "I moved to Berlin last week.", 30, "Which city do I live in?"),
    ("I live in Lisbon.", "I moved to Berlin last week.", 30, "What is my sister called?"),
    ("I live in Lisbon.", "My brother moved to Berlin last week.", 30, None),
    ("Trabajo en un banco.", "He dejado el banco, ahora doy clases.", 400, None),
    ("会议改到周三。", "会议又改回周二了。", 2, "会议在星期几？"),
    ("My sister is called Grace.", "We ate soup for dinner.", 3, None),
)
NEEDS = (
    ("Which city do I live in?", "I moved to Berlin last week."),
    ("Which city do I live in?", "Thanks, that helps."),
    ("Where did I live before Berlin?", "I live in Lisbon."),
    ("Write a birthday card for my daughter", "मेरी बेटी को मूंगफली से एलर्जी है।"),
    ("Was esse ich nicht mehr?", "Ya no como carne, desde enero soy vegetariano."),
    ("Flip a coin", "I moved to Berlin last week."),
)


@torch.no_grad()
def reference_answers(reader: Reader) -> dict[str, Any]:
    """Probabilities of the first statement of each turn, of the change of each pair, and of each need."""
    reader.eval()
    builder = SequenceBuilder(reader.encoder.tokenizer)
    return {
        "turns": [_turn(reader, builder, text) for text in TURNS],
        "pairs": [_pair(reader, builder, *pair) for pair in PAIRS],
        "needs": [_need(reader, builder, *need) for need in NEEDS],
    }


def write_reference(reader: Reader, path: Path) -> None:
    """Writes the answers as JSON."""
    text = json.dumps(reference_answers(reader), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _turn(reader: Reader, builder: SequenceBuilder, text: str) -> dict[str, Any]:
    ids, segment = turn_sequence(builder, SPEAKER, False, text, None)
    states = reader.encoder(*padded([ids]))
    last = len(ids) - 1
    starts = reader.statements.start(states[0, segment.first : last]).squeeze(-1).sigmoid()
    begins = [at for at in (starts > 0.5).nonzero().flatten().tolist() if at > 0]
    end = segment.first + begins[0] if begins else last
    kind, owner, flags = reader.statements.heads(states, [[(segment.first, end)]])
    return {
        "text": text,
        "statements": 1 + len(begins),
        "kind": _rounded(kind.softmax(-1).max()),
        "owner": _rounded(owner.softmax(-1).max()),
        "keep": _rounded(flags.sigmoid()[0, 1]),
    }


def _pair(
    reader: Reader, builder: SequenceBuilder, earlier: str, later: str, days: int, question: str | None
) -> dict[str, Any]:
    time = datetime(2026, 1, 1)

    def turn(text: str, time: datetime) -> Turn:
        whole = Statement(0, len(text), "state", "me", False, True, None, None)
        return Turn(time, SPEAKER, False, text, [whole])

    pair = turn_pair(builder, turn(earlier, time), turn(later, time + timedelta(days=days)), question)
    pair.relations = {(0, 0): 0}
    scores, _ = reader.pairs.scores([pair])
    probabilities = scores.softmax(-1)[0]
    return {
        "earlier": earlier,
        "later": later,
        "days": days,
        "question": question,
        "change": _rounded(probabilities[1] + probabilities[2]),
    }


def _need(reader: Reader, builder: SequenceBuilder, prompt: str, line: str) -> dict[str, Any]:
    lines = [line_sequence(builder, SPEAKER, False, line)]
    prompts = [prompt_sequence(builder, prompt, [])]
    need = reader.needs.scores(lines, prompts).sigmoid()[0, 0]
    means = reader.needs.vectors(prompts)[1]
    tense = reader.tenses.tense(means).softmax(-1)[0]
    return {
        "prompt": prompt,
        "line": line,
        "need": _rounded(need),
        "tense": [_rounded(value) for value in tense],
    }


def _rounded(value: torch.Tensor) -> float:
    return round(float(value), 4)
