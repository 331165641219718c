"""Two things compared in interleaved pairs, so that a slow minute of the machine meets both."""

import math
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
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


# Two runs in a row that differ by less are of a system that is warm.
_STEADY = 0.05
_MOST_WARM_UPS = 8


def warm_up(sides: Sequence[PairSide]) -> bool:
    """Runs the sides in turn until the last two figures of each agree within 5 %.

    Caches, connections and the JVM's compiler make the first runs slower than all later ones.
    Returns whether they came to agree: where something else loads the machine they may not.
    """
    last = [side.run() for side in sides]
    for number in range(2, _MOST_WARM_UPS + 1):
        figures = [side.run() for side in sides]
        ratios = [new / old for new, old in zip(figures, last, strict=True)]
        if all(abs(math.log(ratio)) <= math.log1p(_STEADY) for ratio in ratios):
            print(f"warm after {number} runs of each", flush=True)
            return True
        last = figures
    print(f"not steady: after {_MOST_WARM_UPS} runs of each, two still differ by over 5 %")
    return False


# Of the rate tried before, and how often less is tried.
_LESS = 0.8
_MOST_PROBES = 12


def carried_rate(wanted: int, starts: Callable[[int], bool]) -> int:
    """The highest rate that this machine carries, of the one wanted and ever lower ones.

    `starts` says whether a short run started a rate. One that is lower than wanted is taken one
    step lower still: a long run meets more than a short one. Raises RuntimeError where none does.
    """
    rate = wanted
    for _ in range(_MOST_PROBES):
        if starts(rate):
            return rate if rate == wanted else _lower(rate)
        print(f"this machine does not carry {rate:,} requests/s", flush=True)
        rate = _lower(rate)
    raise RuntimeError(f"not even {rate:,} requests/s were started: is the target up?")


def _lower(rate: int) -> int:
    """To two digits, as a person would give it."""
    lower = rate * _LESS
    digits = 10 ** max(0, math.floor(math.log10(lower)) - 1)
    return max(1, int(lower // digits * digits))


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
    show(unit, a.name, b.name, result)
    return result


def show(figure: str, a: str, b: str, ratio: Ratio) -> None:
    """Prints how B's figure is to A's."""
    print(
        f"{b} / {a}: {ratio.mean:.3f}, 95 % interval {ratio.low:.3f} to {ratio.high:.3f}, "
        f"upper 95 % bound {upper_bound(ratio):.3f} ({ratio.pairs} pairs; {figure})",
        flush=True,
    )
