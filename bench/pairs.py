"""Two things compared in interleaved pairs, so that a slow minute of the machine meets both."""

import math
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass

from scipy.stats import t as student

from spikelab.statistics.pairs import Ratio, ratio_of


@dataclass(frozen=True)
class PairSide:
    """One of the two: its name and what runs it once and returns its figure."""

    name: str
    run: Callable[[], float]


def pairs_parser(about: str | None) -> ArgumentParser:
    """With the options that every comparison has: `pairs` and `seconds`."""
    parser = ArgumentParser(description=about)
    parser.add_argument("--pairs", type=int, default=6, help="of each comparison, default 6")
    parser.add_argument("--seconds", type=float, default=20, help="of each run, default 20")
    return parser


def upper_bound(ratio: Ratio) -> float:
    """One-sided, 95 %."""
    error = ratio.log_deviation / math.sqrt(ratio.pairs)
    return ratio.mean * math.exp(error * float(student.ppf(0.95, ratio.pairs - 1)))


def compare(a: PairSide, b: PairSide, pairs: int, unit: str) -> Ratio:
    """Runs A and B in turn, their order changing with each pair, and prints what came of it."""
    print(f"{'pair':>4}  {'first':<12}{a.name:>12}{b.name:>12}{'ratio':>8}   ({unit})", flush=True)
    ratios = []
    for number in range(1, pairs + 1):
        order = (a, b) if number % 2 else (b, a)
        figures = {side.name: side.run() for side in order}
        ratios.append(figures[b.name] / figures[a.name])
        print(
            f"{number:>4}  {order[0].name:<12}{figures[a.name]:>12.1f}{figures[b.name]:>12.1f}"
            f"{ratios[-1]:>8.3f}",
            flush=True,
        )
    result = ratio_of(ratios)
    print(
        f"{b.name} / {a.name}: {result.mean:.3f}, 95 % interval {result.low:.3f} to "
        f"{result.high:.3f}, upper 95 % bound {upper_bound(result):.3f} ({pairs} pairs)",
        flush=True,
    )
    return result
