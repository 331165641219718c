"""The order of a sweep's runs."""

from collections import Counter

import pytest

from spikelab.experiments.sweep import ORDERS, Order, cells_in_order, draw_seed
from spikelab.run import cell_name

RATES = {"rate": [200, 400]}


def names(order: Order, repeats: int = 2, seed: int = 1) -> list[str]:
    cells = cells_in_order(RATES, ["off", "on"], repeats, order, seed)
    return [cell_name(cell.values, cell.variant, cell.repeat) for cell in cells]


def test_abba_turns_the_variants_round_in_every_second_repeat() -> None:
    assert names("abba", repeats=3) == [
        "rate=200 off #1",
        "rate=200 on #1",
        "rate=400 off #1",
        "rate=400 on #1",
        "rate=200 on #2",
        "rate=200 off #2",
        "rate=400 on #2",
        "rate=400 off #2",
        "rate=200 off #3",
        "rate=200 on #3",
        "rate=400 off #3",
        "rate=400 on #3",
    ]


def test_as_written_is_the_same_in_every_repeat() -> None:
    assert names("as-written")[4:] == [
        "rate=200 off #2",
        "rate=200 on #2",
        "rate=400 off #2",
        "rate=400 on #2",
    ]


def test_blocks_are_whole_repeats_each_shuffled_by_the_seed() -> None:
    shuffled = names("blocks", repeats=20, seed=7)
    assert shuffled == names("blocks", repeats=20, seed=7)
    assert shuffled != names("blocks", repeats=20, seed=8)
    blocks = [shuffled[at : at + 4] for at in range(0, 80, 4)]
    for repeat, block in enumerate(blocks, 1):
        assert sorted(block) == sorted(
            f"rate={rate} {variant} #{repeat}" for rate in (200, 400) for variant in ("off", "on")
        )
    orders = {tuple(name.rpartition(" ")[0] for name in block) for block in blocks}
    assert len(orders) > 10


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_every_cell_once(order: Order) -> None:
    assert Counter(names(order, repeats=3)) == Counter(names("as-written", repeats=3))


def test_several_parameters_combine_and_without_any_the_variants_remain() -> None:
    grid = cells_in_order({"rate": [1, 2], "ms": [5, 6]}, [], 1, "abba", 0)
    assert [tuple(cell.values.values()) for cell in grid] == [(1, 5), (1, 6), (2, 5), (2, 6)]
    assert {cell.variant for cell in grid} == {None}
    plain = cells_in_order({}, ["a", "b"], 2, "abba", 0)
    assert [(cell.variant, cell.repeat) for cell in plain] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
        ("a", 2),
    ]


def test_a_drawn_seed_fits_into_a_number_that_every_reader_of_json_keeps() -> None:
    assert all(0 <= draw_seed() < 2**53 for _ in range(100))
