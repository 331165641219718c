"""The order of a sweep's runs: what drifts over the hours must not look like a difference."""

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Literal, get_args

from spikelab.experiments.state import CellState
from spikelab.plans.values import Scalar

Order = Literal["abba", "blocks", "as-written"]
ORDERS: tuple[Order, ...] = get_args(Order)
_SEED_BITS = 32


def draw_seed() -> int:
    """A seed where none is given; the experiment's state records it."""
    return secrets.randbits(_SEED_BITS)


def cells_in_order(
    values: Mapping[str, Sequence[Scalar]],
    variants: Sequence[str],
    repeats: int,
    order: Order,
    seed: int,
) -> list[CellState]:
    """Every combination of the values, with every variant, so many times; in each repeat, all.

    `abba`: values as written, variants in turn forwards and backwards, so that a drift in a line
    weighs on all alike (a counterbalanced order). `blocks`: each repeat shuffled as a whole by the
    seed (a randomised block design: Box, Hunter and Hunter, Statistics for Experimenters, ch. 4).
    `as-written`: always the same.
    """
    chance = random.Random(seed)
    return [
        cell
        for repeat in range(1, repeats + 1)
        for cell in _repeat(values, variants, repeat, order, chance)
    ]


def _repeat(
    values: Mapping[str, Sequence[Scalar]],
    variants: Sequence[str],
    repeat: int,
    order: Order,
    chance: random.Random,
) -> list[CellState]:
    backwards = order == "abba" and repeat % 2 == 0
    names: list[str | None] = list(reversed(variants) if backwards else variants) or [None]
    cells = [
        CellState(values=combination, variant=name, repeat=repeat)
        for combination in _combinations(values)
        for name in names
    ]
    if order == "blocks":
        chance.shuffle(cells)
    return cells


def _combinations(values: Mapping[str, Sequence[Scalar]]) -> Iterator[dict[str, Scalar]]:
    """The last parameter changes fastest; of no parameters there is one combination."""
    for chosen in product(*values.values()):
        yield dict(zip(values, chosen, strict=True))
