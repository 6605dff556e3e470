"""Batches of token sequences of similar length."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor

TOKENS_PER_BATCH = 1536


def length_batches(lengths: Sequence[int], seed: int | None) -> list[list[int]]:
    """Places of sequences in batches of at most `TOKENS_PER_BATCH` padded tokens; shuffled with a seed."""
    order = list(range(len(lengths)))
    chance = random.Random(seed)
    if seed is not None:
        chance.shuffle(order)
    # Sorting within pools keeps batches random and their padding small.
    pool = 2048 if seed is not None else len(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), pool):
        batch: list[int] = []
        for place in sorted(order[start : start + pool], key=lambda i: lengths[i]):
            if batch and lengths[place] * (len(batch) + 1) > TOKENS_PER_BATCH:
                batches.append(batch)
                batch = []
            batch.append(place)
        if batch:
            batches.append(batch)
    if seed is not None:
        chance.shuffle(batches)
    return batches


def padded(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Piece ids padded to one length, and lengths."""
    lengths = torch.tensor([len(s) for s in sequences])
    ids = torch.zeros(len(sequences), int(lengths.max()), dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
    return ids, lengths


def span_means(states: Tensor, spans: Sequence[tuple[int, int, int]]) -> Tensor:
    """Means of the rows `first..last` of sequences, given as (sequence, first, last).

    One product with a matrix of shares: slices one by one would each have a gradient of the size of all states.
    """
    batch, length, width = states.shape
    shares = torch.zeros(len(spans), batch * length)
    for number, (row, first, last) in enumerate(spans):
        shares[number, row * length + first : row * length + last] = 1 / (last - first)
    return shares @ states.reshape(batch * length, width)
