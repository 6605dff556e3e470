#!/usr/bin/env python3
"""Joins the meeting labels of the understanding corpus with the talk that they are about.

The labels (`crates/evaluation/data/understanding/meetings`, format in the README beside it) hold no words: the talk is
the training split of QMSum (https://github.com/Yale-LILY/QMSum, MIT licence). This program reads it from a checkout or,
without one, over HTTP at the commit that each file of labels names:

    git clone https://github.com/Yale-LILY/QMSum
    training/fetch_meetings.py --checkout QMSum
    training/fetch_meetings.py

It writes `target/meetings/PART/WRITER/NN.txt`: the heading of the labels, then

    @ place speaker: text           a turn, white space as single spaces
    - words | kind | owner | details   a clause; owner `me`, `us`, `you`, `person` or `it:thing`
    > 14.0 none 12.1                a pair of clauses (turn.place)

A turn whose text is not the labelled one (length or hash) is left out with its clauses, pairs and contexts. The program
says how many turns these are, and its status is then 1. It needs Python 3.9 and nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import urllib.request
from pathlib import Path

URL = "https://raw.githubusercontent.com/Yale-LILY/QMSum/{commit}/{meeting}"
TIMEOUT_SECONDS = 60
LABELS = Path("crates/evaluation/data/understanding/meetings")
OUT = Path("target/meetings")


class MeetingSource:
    """Meetings as lists of (speaker, text), from a checkout or over HTTP; each is read once."""

    def __init__(self, checkout: Path | None, url: str = URL) -> None:
        self.checkout = checkout
        self.url = url
        self.meetings: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def turns(self, meeting: str, commit: str) -> list[tuple[str, str]]:
        """Turns of a meeting, white space as single spaces."""
        key = (meeting, commit)
        if key not in self.meetings:
            transcript = json.loads(self._read(meeting, commit))["meeting_transcripts"]
            self.meetings[key] = [
                (" ".join(turn["speaker"].split()), " ".join(turn["content"].split()))
                for turn in transcript
            ]
        return self.meetings[key]

    def _read(self, meeting: str, commit: str) -> bytes:
        if self.checkout is not None:
            return (self.checkout / meeting).read_bytes()
        address = self.url.format(commit=commit, meeting=meeting)
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as reply:
                return reply.read()
        except OSError as error:
            raise SystemExit(f"{address}: {error}; clone the repository and name it with --checkout") from error


def join(labels: str, source: MeetingSource) -> tuple[str, int, int]:
    """Labels with their talk; the number of turns, and of those whose text is another one."""
    lines: list[str] = []
    turns: list[tuple[str, str]] = []
    matching: dict[str, str] = {}
    total = 0
    place = None
    for line in labels.splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "##":
            meeting, commit, _ = (field.strip() for field in rest.split("|"))
            turns = source.turns(meeting, commit.removeprefix("commit "))
            lines.append(line)
        elif mark == "@":
            place, characters, digest = rest.split()
            total += 1
            speaker, text = turns[int(place)] if int(place) < len(turns) else ("", "")
            if len(text) == int(characters) and hashed(text) == digest:
                matching[place] = text
                lines.append(f"@ {place} {speaker}: {text}")
        elif mark == "-" and place in matching:
            lines.append(clause(rest, matching[place]))
        elif mark == ">":
            lines.append(line)
    kept = (_matching(line, matching) for line in lines)
    return "".join(f"{line}\n" for line in kept if line), total, total - len(matching)


def hashed(text: str) -> str:
    """First 8 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def clause(rest: str, text: str) -> str:
    """Line of a clause: the words in place of their span."""
    span, kind, owner, *details = (field.strip() for field in rest.split("|"))
    start, end = map(int, span.split("-"))
    owner = "it:thing" if owner == "thing" else owner
    return "- " + " | ".join([text[start:end], kind, owner, *details])


def _matching(line: str, matching: dict[str, str]) -> str | None:
    """A line without what refers to a turn that is left out; none where nothing remains."""
    if line.startswith("> "):
        later, _, earlier = line[2:].split()
        turns = (later.partition(".")[0], earlier.partition(".")[0])
        return line if all(turn in matching for turn in turns) else None
    if line.startswith("- ") and line.count(" | ") == 3:
        head, _, details = line.rpartition(" | ")
        words = [
            word
            for word in details.split()
            if not word.startswith("ctx=") or word[4:].partition(".")[0] in matching
        ]
        return f"{head} | {' '.join(words)}" if words else head
    return line


def main(arguments: list[str]) -> int:
    """Joins every file of labels."""
    summary, _, _ = __doc__.partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--checkout", type=Path, help="folder of a clone of Yale-LILY/QMSum; default: HTTP")
    parser.add_argument("labels", type=Path, nargs="?", default=LABELS, help="folder of the labels: PART/WRITER/NN.txt")
    parser.add_argument("out", type=Path, nargs="?", default=OUT, help="folder of the joined files")
    options = parser.parse_args(arguments)
    source = MeetingSource(options.checkout)
    total = missed = 0
    files = sorted(options.labels.glob("*/*/*.txt"))
    for path in files:
        joined, turns, other = join(path.read_text(encoding="utf-8"), source)
        total += turns
        missed += other
        if other:
            print(f"{path}: {other} of {turns} turns have another text", file=sys.stderr)
        target = options.out / path.relative_to(options.labels)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(joined, encoding="utf-8")
    print(f"{len(files)} files, {total} turns, {missed} of which did not match and are left out")
    return 1 if missed or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
