"""Examples of all tasks from the corpus."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from .corpus import PairGroup, Scenario, read_groups, read_meetings, read_part
from .histories import asked_history_examples, history_examples, read_histories
from .lines import LineExample, line_examples, talk_examples
from .names import NamedTurn, name_examples, read_named_turns
from .needs import Space, question_examples, read_spaces, space_examples
from .pairs import asked_examples, group_examples, pair_examples, unrelated_examples
from .statements import turn_examples
from .tenses import tense_examples
from .texts import SequenceBuilder

# Share of turn pairs of scenarios without a listed relation that are read.
UNRELATED_SHARE = 0.25


class CorpusPart:
    """Scenarios, groups of pairs, meetings and memories of `train` or `test`. Meetings are optional: their text is fetched."""

    def __init__(self, corpus: Path, part: str, meetings: Path | None, limit: int | None = None) -> None:
        scenarios = read_part(corpus / part)
        if limit:
            random.Random(limit).shuffle(scenarios)
            scenarios = scenarios[:limit]
        contrast = [] if limit else read_part(corpus / "contrast" / part)
        self.scenarios: list[Scenario] = scenarios
        self.contrast: list[Scenario] = contrast
        self.groups: list[PairGroup] = [] if limit else read_groups(corpus / "pairs" / part)
        self.named: list[NamedTurn] = read_named_turns(corpus / "names" / part)
        self.line_labels = corpus / "lines" / part
        self.talk_folder = corpus / "talks" / part
        self.meetings: list[Scenario] = read_meetings(meetings / part) if meetings else []
        self.histories: list[Scenario] = [] if limit else read_histories(corpus / "histories" / part)
        self.spaces: list[Space] = read_spaces(corpus / "needs" / part)

    def lines(self, builder: SequenceBuilder) -> list[LineExample]:
        """Judged sentences of the scenarios."""
        return line_examples(self.scenarios, self.line_labels, builder)

    def talks(self, builder: SequenceBuilder) -> list[LineExample]:
        """Judged sentences of long talks."""
        return talk_examples(self.talk_folder, builder)

    def examples(self, builder: SequenceBuilder) -> dict[str, list[Any]]:
        """Examples to train on, by task."""
        talks = self.scenarios + self.contrast + self.meetings
        return {
            "statements": turn_examples(talks, builder),
            "pairs": pair_examples(talks, builder, others=0),
            "groups": group_examples(self.groups, builder),
            "unrelated": unrelated_examples(talks, self.groups, builder, share=UNRELATED_SHARE),
            "asked": asked_examples(talks, builder),
            "histories": history_examples(self.histories, builder) + asked_history_examples(self.histories, builder),
            "needs": space_examples(self.spaces, builder) + question_examples(talks, builder),
            "tenses": tense_examples(talks, self.spaces, builder),
            "names": name_examples(self.named, builder),
            "lines": self.lines(builder) + self.talks(builder),
        }
