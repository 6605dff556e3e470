"""Reader of the understanding corpus (`crates/evaluation/data/understanding`, format in its README)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

KINDS = (
    "state", "event", "plan", "wish", "question", "quote", "hearsay", "instruction", "passing", "small",
    "general",
)  # fmt: skip
OWNERS = ("me", "us", "you", "person", "thing")
RELATIONS = ("none", "ends", "corrects", "adds", "restates")


@dataclass
class Statement:
    """Clause of a turn: its place in the text, in characters, and its labels."""

    start: int
    end: int
    kind: str
    owner: str
    negated: bool
    keep: bool
    start_date: str | None
    end_date: str | None

    @property
    def owner_class(self) -> str:
        """Class of the owner: `me`, `us`, `you`, another `person` or a `thing`."""
        if self.owner in ("me", "us", "you"):
            return self.owner
        return "thing" if self.owner.startswith("it:") else "person"


@dataclass
class Turn:
    """Turn of a conversation with its statements in order."""

    time: datetime
    speaker: str
    assistant: bool
    text: str
    statements: list[Statement] = field(default_factory=list)


@dataclass
class Question:
    """Question about a scenario; `evidence` and `stale` are places of turns."""

    tense: str
    asked_at: datetime
    text: str
    right: list[str]
    wrong: list[str]
    evidence: list[int]
    stale: list[int]


@dataclass
class Scenario:
    """Conversation with labelled statements, pairs and questions."""

    writer: str
    number: str
    language: str
    kind: str
    turns: list[Turn] = field(default_factory=list)
    pairs: dict[tuple[int, int, int, int], str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)


UNITS = {"min": 1, "h": 60, "d": 1_440, "w": 10_080, "mo": 43_200, "y": 525_600}


@dataclass
class PairGroup:
    """Earlier turn with one statement, and later turns that might follow it, each with its relation."""

    writer: str
    number: str
    language: str
    earlier: Turn | None = None
    later: list[tuple[str, Turn]] = field(default_factory=list)


def read_groups(folder: Path) -> list[PairGroup]:
    """Groups of pairs of a part, by writer and number."""
    groups: list[PairGroup] = []
    for path in sorted(Path(folder).glob("*/*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            head, _, rest = line.partition(" ")
            if head == "##":
                number, language = (part.strip() for part in rest.split("|"))
                groups.append(PairGroup(path.parent.name, number, language))
            elif head == "<":
                groups[-1].earlier = _marked_turn(rest)
            elif head == ">":
                relation, gap, said = rest.split(" ", 2)
                count, unit = re.match(r"\+(\d+)([a-z]+)$", gap).groups()
                time = groups[-1].earlier.time + timedelta(minutes=int(count) * UNITS[unit])
                groups[-1].later.append((relation, _marked_turn(f"{time:%Y-%m-%dT%H:%M} {said}")))
    return groups


def _marked_turn(rest: str) -> Turn:
    """Turn with the one statement that stands in double brackets."""
    turn = read_turn(rest)
    before, _, behind = turn.text.partition("[[")
    span, _, after = behind.partition("]]")
    turn.text = before + span + after
    turn.statements.append(Statement(len(before), len(before) + len(span), "state", "me", False, False, None, None))
    return turn


def read_part(folder: Path) -> list[Scenario]:
    """Scenarios of a part (`train` or `test`), by writer and number."""
    scenarios: list[Scenario] = []
    for path in sorted(Path(folder).glob("*/*.txt")):
        scenarios.extend(read_file(path))
    return scenarios


def read_file(path: Path) -> list[Scenario]:
    """Scenarios of one file."""
    scenarios: list[Scenario] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        head, _, rest = line.partition(" ")
        if head == "##":
            scenarios.append(begun(path, rest))
        elif head == "@":
            scenarios[-1].turns.append(read_turn(rest))
        elif head == "-":
            turn = scenarios[-1].turns[-1]
            turn.statements.append(_statement(rest, turn))
        elif head == ">":
            words = rest.split()
            later, earlier = _place(words[0]), _place(words[2])
            scenarios[-1].pairs[later + earlier] = words[1]
        elif head == "?":
            scenarios[-1].questions.append(_question(rest))
    return scenarios


def begun(path: Path, heading: str) -> Scenario:
    """Scenario of a heading, without turns."""
    number, language, kind = (part.strip() for part in heading.split("|"))
    return Scenario(path.parent.name, number, language, kind)


def read_turn(rest: str) -> Turn:
    found = re.match(r"(\S+) ([^:|]{1,60}): (.+)$", rest)
    speaker = found[2].strip()
    text = found[3].strip().replace(" ⏎ ", "\n")
    return Turn(datetime.fromisoformat(found[1]), speaker.lstrip("*"), speaker.startswith("*"), text)


def _statement(rest: str, turn: Turn) -> Statement:
    span, kind, owner, *details = (part.strip() for part in rest.split("|"))
    span = span.replace(" ⏎ ", "\n")
    cursor = turn.statements[-1].end if turn.statements else 0
    start = turn.text.find(span, cursor)
    if start < 0:
        start = turn.text.find(span)
    words = details[0].split() if details else []
    dates = dict(word.split("=") for word in words if "=" in word)
    return Statement(
        start, start + len(span), kind, owner, "neg" in words, "keep" in words,
        dates.get("from"), dates.get("until"),
    )  # fmt: skip


def _place(word: str) -> tuple[int, int]:
    turn, statement = word.split(".")
    return int(turn), int(statement)


def _question(rest: str) -> Question:
    parts = [part.strip() for part in rest.split("|")] + [""] * 6

    def strings(part: str) -> list[str]:
        return [word.strip() for word in part[1:].split(" ; ")] if part else []

    def numbers(name: str) -> list[int]:
        found = re.search(name + r"=([\d,]+)", parts[5])
        return [int(word) for word in found[1].split(",") if word] if found else []

    return Question(
        parts[0], datetime.fromisoformat(parts[1]), parts[2], strings(parts[3]), strings(parts[4]),
        numbers("e"), numbers("s"),
    )  # fmt: skip


def read_meetings(folder: Path) -> list[Scenario]:
    """Pieces of real meetings (`folder/*/*.txt`), a minute a turn; they hold no questions."""
    scenarios = []
    for path in sorted(Path(folder).glob("*/*.txt")):
        scenario = Scenario(path.parent.name, path.stem, "en", "meeting")
        places: dict[int, int] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            head, _, rest = line.partition(" ")
            if head == "@":
                number, speaker, text = re.match(r"(\d+) ([^:|]{1,60}): (.+)$", rest).groups()
                places[int(number)] = len(scenario.turns)
                time = datetime(2024, 3, 1, 9) + timedelta(minutes=int(number) // 10)
                scenario.turns.append(Turn(time, speaker.strip(), False, text.strip()))
            elif head == "-":
                turn = scenario.turns[-1]
                turn.statements.append(_statement(rest, turn))
            elif head == ">":
                words = rest.split()
                (a, i), (b, j) = _place(words[0]), _place(words[2])
                scenario.pairs[places[a], i, places[b], j] = words[1]
        scenarios.append(scenario)
    return scenarios
