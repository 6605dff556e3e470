"""Candidate head: vectors of statements, whose products tell which earlier statements a later one may change."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import length_batches, padded, span_means
from .corpus import RELATIONS, PairGroup, Scenario, Turn
from .encoder import Encoder
from .pairs import CHANGES
from .statements import turn_sequence
from .texts import SequenceBuilder

DIMENSIONS = 64
PASSES = 8
RATE = 2e-3
# Share of the rate that is left after each pass.
COOLING = 0.75
CONVERSATIONS_A_STEP = 16
GROUPS_A_STEP = 24
# Statements of other conversations beside those of the one that a change is looked for in.
FOREIGN = 64


class CandidateHead(nn.Module):
    """A map of statements as later ones and one of statements as earlier ones, both to unit vectors."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.later = nn.Linear(encoder.width, DIMENSIONS)
        self.earlier = nn.Linear(encoder.width, DIMENSIONS)
        self.scale = nn.Parameter(torch.tensor(10.0))
        self.offset = nn.Parameter(torch.tensor(-4.0))
        self.dropout = nn.Dropout(0.1)

    def vectors(self, side: nn.Linear, means: Tensor) -> Tensor:
        """Unit vectors of statements from the means of their pieces."""
        return F.normalize(side(self.dropout(F.normalize(means, dim=-1))), dim=-1)

    def scores(self, later: Tensor, earlier: Tensor) -> Tensor:
        """Log odds that a later statement changes an earlier one, later × earlier, from the means of their pieces."""
        return self.scale * self.vectors(self.later, later) @ self.vectors(self.earlier, earlier).T + self.offset


@dataclass
class Change:
    """Later statement of a conversation beside all earlier ones of its speaker, some of which it changes."""

    later: Tensor
    earlier: Tensor
    is_changed: Tensor


class StatementMeans:
    """Means of the pieces of statements, as the encoder reads their turns now."""

    def __init__(self, encoder: Encoder, builder: SequenceBuilder) -> None:
        self.encoder = encoder
        self.builder = builder
        self.sequences: list[tuple[list[int], list[tuple[int, int]]]] = []
        self.means: list[Tensor] = []

    def add(self, turn: Turn, previous: Turn | None) -> int:
        """Takes a turn up and says its place."""
        before = (previous.speaker, previous.assistant, previous.text) if previous else None
        ids, segment = turn_sequence(self.builder, turn.speaker, turn.assistant, turn.text, before)
        # A statement beyond what is read keeps its place by the opening of the sequence.
        spans = [segment.pieces(s.start, s.end) or (0, 1) for s in turn.statements]
        self.sequences.append((ids, spans))
        return len(self.sequences) - 1

    @torch.no_grad()
    def read(self) -> None:
        """Reads all turns."""
        self.means = [torch.empty(0)] * len(self.sequences)
        for batch in length_batches([len(ids) for ids, _ in self.sequences], None):
            with torch.autocast("cpu", torch.bfloat16):
                states = self.encoder(*padded([self.sequences[at][0] for at in batch]))
            states = states.float()
            for row, at in enumerate(batch):
                spans = self.sequences[at][1]
                self.means[at] = span_means(states[row : row + 1], [(0, *span) for span in spans])


def fit_candidates(
    head: CandidateHead, scenarios: list[Scenario], groups: list[PairGroup], builder: SequenceBuilder, seed: int = 7
) -> None:
    """Trains the head alone on finished states: in conversations the changed statements against all others of the
    speaker and some of other conversations, in groups against the earlier statements of other groups and against
    later ones that change nothing."""
    head.encoder.eval()
    means = StatementMeans(head.encoder, builder)
    of_scenarios = [conversation(scenario, means) for scenario in scenarios]
    of_groups = [(means.add(group.earlier, None), [means.add(turn, None) for _, turn in group.later]) for group in groups]
    means.read()
    changes = [c for s, places in zip(scenarios, of_scenarios) for c in conversation_changes(s, [means.means[p] for p in places])]
    read_groups = [
        (means.means[earlier][0], torch.stack([means.means[p][0] for p in later]), [RELATIONS.index(r) for r, _ in group.later])
        for group, (earlier, later) in zip(groups, of_groups)
    ]
    chance = random.Random(seed)
    torch.manual_seed(seed)
    head.train()
    parameters = [p for name, p in head.named_parameters() if not name.startswith("encoder.")]
    optimiser = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01)
    for number in range(PASSES):
        chance.shuffle(changes)
        total = 0.0
        steps = range(0, len(changes), CONVERSATIONS_A_STEP)
        for start in steps:
            loss = change_loss(head, changes[start : start + CONVERSATIONS_A_STEP], chance)
            if read_groups:
                of_step = chance.sample(read_groups, min(GROUPS_A_STEP, len(read_groups)))
                loss = loss + 0.5 * group_loss(head, of_step)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item()
        for group in optimiser.param_groups:
            group["lr"] *= COOLING
        print(f"candidates, pass {number + 1}/{PASSES}: {total / max(1, len(steps)):.3f}", flush=True)
    head.eval()


def conversation(scenario: Scenario, means: StatementMeans) -> list[int]:
    """Takes up the turns of a conversation."""
    before = [None, *scenario.turns]
    return [means.add(turn, previous) for turn, previous in zip(scenario.turns, before)]


def conversation_changes(scenario: Scenario, means: Sequence[Tensor]) -> list[Change]:
    """Statements of a conversation that change others of their speaker."""
    changed: dict[tuple[int, int], set[tuple[int, int]]] = {}
    alike: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for (a, i, b, j), relation in scenario.pairs.items():
        if relation in CHANGES:
            changed.setdefault((a, i), set()).add((b, j))
        elif relation != "none":
            alike.setdefault((a, i), set()).add((b, j))
    found = []
    for (a, i), old in changed.items():
        # One that is added to or said again is neither.
        left_out = alike.get((a, i), set()) - old
        pool = [
            (b, j) for b in earlier_turns(scenario, a) for j in range(len(means[b])) if (b, j) not in left_out
        ]
        is_changed = torch.tensor([place in old for place in pool])
        if is_changed.any():
            found.append(Change(means[a][i], torch.stack([means[b][j] for b, j in pool]), is_changed))
    return found


def earlier_turns(scenario: Scenario, later: int) -> list[int]:
    """Turns of the speaker of a turn before it."""
    turn = scenario.turns[later]
    turns = enumerate(scenario.turns[:later])
    return [at for at, it in turns if it.speaker == turn.speaker and it.assistant == turn.assistant]


def change_loss(head: CandidateHead, changes: list[Change], chance: random.Random) -> Tensor:
    """Cross entropy of the changed statements against the others of their conversation and some of others."""
    counts = [len(change.earlier) for change in changes]
    scores = head.scores(
        torch.stack([change.later for change in changes]), torch.cat([change.earlier for change in changes])
    )
    losses, end = [], 0
    for row, (change, count) in enumerate(zip(changes, counts)):
        own = scores[row, end : end + count]
        end += count
        foreign = scores[row, chance.sample(range(scores.shape[1]), min(FOREIGN, scores.shape[1]))]
        # Some of these may be of the own conversation, so that they weigh less.
        everything = torch.logsumexp(torch.cat([own, foreign - 1.0]), 0)
        losses.append(everything - torch.logsumexp(own[change.is_changed], 0))
    return torch.stack(losses).mean()


def group_loss(head: CandidateHead, groups: list[tuple[Tensor, Tensor, list[int]]]) -> Tensor:
    """Cross entropy of the earlier statement of a change against those of other groups, and whether each later one of a
    group changes its own."""
    own = torch.tensor([row for row, (_, later, _) in enumerate(groups) for _ in later])
    relations = torch.tensor([relation for _, _, of_group in groups for relation in of_group])
    changes = torch.isin(relations, torch.tensor([RELATIONS.index(name) for name in CHANGES]))
    scores = head.scores(torch.cat([later for _, later, _ in groups]), torch.stack([earlier for earlier, _, _ in groups]))
    is_told = changes | (relations == RELATIONS.index("none"))
    own_scores = scores[torch.arange(len(own)), own]
    # The mean of no rows is no number.
    loss = scores.new_zeros(())
    if is_told.any():
        loss = loss + 0.5 * F.binary_cross_entropy_with_logits(own_scores[is_told], changes[is_told].float())
    if changes.any():
        loss = loss + F.cross_entropy(scores[changes], own[changes])
    return loss


@torch.no_grad()
def candidate_figures(head: CandidateHead, scenarios: list[Scenario], builder: SequenceBuilder) -> dict[str, float]:
    """Share of the turns changed by a later one of their speaker that are among so many best candidates of it."""
    means = StatementMeans(head.encoder, builder)
    places = [conversation(scenario, means) for scenario in scenarios]
    means.read()
    ranks = []
    for scenario, of_scenario in zip(scenarios, places):
        of_turns = [means.means[place] for place in of_scenario]
        changed = {(a, b) for (a, _, b, _), relation in scenario.pairs.items() if relation in CHANGES and a != b}
        for later, earlier in changed:
            pool = [at for at in earlier_turns(scenario, later) if len(of_turns[at])]
            best = {at: float(head.scores(of_turns[later], of_turns[at]).max()) for at in pool}
            if earlier in best:
                ranks.append(1 + sum(score > best[earlier] for score in best.values()))
    figures = {"changes": float(len(ranks))}
    for most in (1, 2, 4, 8, 16):
        figures[f"among {most}"] = sum(rank <= most for rank in ranks) / max(1, len(ranks))
    return figures
