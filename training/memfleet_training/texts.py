"""Layout of what the readers read, as piece ids with the place of every piece in its text."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer

CONTEXT_PIECES = 40
TURN_PIECES = 120


@dataclass
class Segment:
    """Part of a sequence: where its pieces begin, and the characters of its text that each stands for."""

    first: int
    offsets: list[tuple[int, int]]

    def pieces(self, start: int, end: int) -> tuple[int, int] | None:
        """Range of pieces that overlap characters `start..end`; nothing where all were cut off."""
        inside = [i for i, (a, b) in enumerate(self.offsets) if a < end and b > start and b > a]
        return (self.first + inside[0], self.first + inside[-1] + 1) if inside else None


class SequenceBuilder:
    """Builder of sequences: an opening piece, then segments, each with a closing piece."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        ids = tokenizer.encode("a").ids
        self.opening, self.closing = ids[0], ids[-1]

    def pieces(self, text: str) -> set[int]:
        """Word pieces of a text."""
        return set(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def build(self, *parts: tuple[str, str, int, bool]) -> tuple[list[int], list[Segment]]:
        """Sequence of parts: head, text, pieces of the text at most, and whether its end is kept if it is longer."""
        ids = [self.opening]
        segments = []
        for head, text, most, keep_end in parts:
            if head:
                ids += self.tokenizer.encode(head, add_special_tokens=False).ids[:16]
            encoding = self.tokenizer.encode(text, add_special_tokens=False)
            pieces, offsets = encoding.ids, encoding.offsets
            if len(pieces) > most:
                pieces = pieces[-most:] if keep_end else pieces[:most]
                offsets = offsets[-most:] if keep_end else offsets[:most]
            segments.append(Segment(len(ids), offsets))
            ids += pieces
            ids.append(self.closing)
        return ids, segments
