"""How often comparisons are wrong, and how often they find what is there, by simulation: each
design that the lab offers, with the functions that judge real runs.

No lab and no load is needed. The same seed gives the same figures.
"""

import math
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.random import Generator

from spikelab.statistics.pairs import (
    FIRST_ERROR,
    MOST_PAIRS,
    TOTAL_ERROR,
    Answer,
    Metric,
    Pair,
    compare,
    error_of,
    error_of_look,
    likely_deviation,
    pairs_needed,
    planned_looks,
    ratio_of,
)

MARGIN = 0.05
_METRIC = Metric("p95", better="lower", margin=MARGIN)
_ANSWERS: tuple[Answer, ...] = ("better", "worse", "equivalent", "inconclusive")


@dataclass(frozen=True)
class Arms:
    """A and B in interleaved pairs: B takes `change` times as long as A.

    `noise` is the standard deviation of a run's logarithm; both runs of a pair also share a
    minute of the machine, which varies three times as much. `tails`: degrees of freedom of a t
    distribution of the noise, scaled to the same deviation; None: normal. `order`: of the runs in
    time. `drift`: by how much each run is later than the one before, in a line; `walk`: the
    deviation of such a step at random. `failing`: the share of runs whose figure failures reach.
    """

    noise: float
    change: float = 1.0
    tails: int | None = None
    order: Literal["abba", "blocks", "as-written"] = "abba"
    drift: float = 0.0
    walk: float = 0.0
    failing: float = 0.0

    def pairs(self, number: int, random: Generator) -> list[Pair]:
        """Of one comparison, in their order."""
        minutes = random.normal(0, 3 * self.noise, number)
        steps = self.drift + random.normal(0, 1, (number, 2)) * self.walk
        time = steps.cumsum().reshape(number, 2)
        a_first = {
            "abba": np.arange(number) % 2 == 0,
            "blocks": random.random(number) < 0.5,
            "as-written": np.full(number, fill_value=True),
        }[self.order]
        a = minutes + self._runs(number, random) + np.where(a_first, time[:, 0], time[:, 1])
        b = minutes + self._runs(number, random) + np.where(a_first, time[:, 1], time[:, 0])
        a, b = np.exp(a), self.change * np.exp(b)
        for figures in (a, b):
            figures[random.random(number) < self.failing] = math.inf
        return list(zip(a.tolist(), b.tolist(), strict=True))

    def _runs(self, number: int, random: Generator) -> np.ndarray:
        if self.tails is None:
            return random.normal(0, self.noise, number)
        scale = math.sqrt((self.tails - 2) / self.tails)
        return self.noise * scale * random.standard_t(self.tails, number)


def verdict_of(pairs: list[Pair], error: float = FIRST_ERROR) -> Answer:
    return compare(_METRIC, [], {_METRIC.name: pairs}, error)[0].verdict


def verdicts(arms: Arms, pairs: int, comparisons: int, random: Generator) -> Counter[Answer]:
    """Of so many comparisons, each the first of its question."""
    return Counter(verdict_of(arms.pairs(pairs, random)) for _ in range(comparisons))


@dataclass
class Spent:
    """How many pairs procedures took, all together."""

    pairs: int = 0


def with_looks(arms: Arms, pairs: int, looks: int, random: Generator, spent: Spent) -> Answer:
    """A comparison with planned looks: the first verdict ends it."""
    planned = planned_looks(pairs, looks)
    everything = arms.pairs(pairs, random)
    verdict: Answer = "inconclusive"
    for look, seen in enumerate(planned):
        verdict = verdict_of(everything[:seen], error_of_look(FIRST_ERROR, planned, look))
        if verdict != "inconclusive":
            break
    spent.pairs += seen
    return verdict


def with_retries(
    arms: Arms,
    pairs: int,
    retries: int,
    random: Generator,
    error: Callable[[int], float] = error_of,
) -> Answer:
    """A new comparison after each inconclusive one, as a job does that tries exit code 3 again.
    `error`: of a comparison after so many."""
    for earlier in range(retries + 1):
        verdict = verdict_of(arms.pairs(pairs, random), error(earlier))
        if verdict != "inconclusive":
            return verdict
    return "inconclusive"


def two_sessions(between: float, within: float, pairs: int, random: Generator) -> Answer:
    """Identical arms, each in a session of its own, as if they had been taken in turn. Deviations
    of the logarithms: of sessions, and of the runs of one."""
    a, b = (random.normal(0, between) + random.normal(0, within, pairs) for _ in range(2))
    return verdict_of(list(zip(np.exp(a).tolist(), np.exp(b).tolist(), strict=True)))


def as_advised(arms: Arms, pairs: int, random: Generator) -> Answer | None:
    """The new comparison that an inconclusive one asks for; None where the first one decides."""
    first = arms.pairs(pairs, random)
    if verdict_of(first) != "inconclusive":
        return None
    needed = _asked_for(_rounded(first), pairs, error_of(1))
    return verdict_of(arms.pairs(needed, random), error_of(1))


def as_recommended(arms: Arms, pairs: int, random: Generator, spent: Spent) -> Answer:
    """Identical arms first, then a comparison with the pairs that their noise asks for."""
    pilot = replace(arms, change=1.0).pairs(pairs, random)
    needed = _asked_for(_rounded(pilot), pairs, FIRST_ERROR)
    spent.pairs += needed
    return verdict_of(arms.pairs(needed, random))


def _rounded(pairs: Sequence[Pair]) -> float:
    """The deviation of their log-ratios, up to three digits, so that few have to be reckoned."""
    deviation = ratio_of([b / a for a, b in pairs if a and b]).log_deviation
    digits = 2 - math.floor(math.log10(deviation))
    return math.ceil(deviation * 10.0**digits) / 10.0**digits


@cache
def _asked_for(deviation: float, pairs: int, error: float) -> int:
    """As the advice has it, which is no more than 1,000."""
    return pairs_needed(likely_deviation(deviation, pairs), MARGIN, error) or MOST_PAIRS


def several(
    arms: Arms, pairs: int, places: int, metrics: int, random: Generator
) -> tuple[bool, bool]:
    """Whether the primary metric, and whether any other one of a sweep, is better or worse.

    The metrics of a place share half of their variance, as percentiles of the same runs do.
    """
    figures: dict[str, list[Pair]] = {}
    for place in range(places):
        shared = np.array(arms.pairs(pairs, random))
        for metric in range(metrics):
            own = np.array(arms.pairs(pairs, random))
            mixed = np.exp((np.log(shared) + np.log(own)) / math.sqrt(2))
            figures[f"{place} {metric}"] = [(a, b) for a, b in mixed.tolist()]
    primary, *secondary = (Metric(name, better="lower", margin=MARGIN) for name in figures)
    first, *rest = (each.verdict for each in compare(primary, secondary, figures))
    different = ("better", "worse")
    return first in different, any(verdict in different for verdict in rest)


def rivals(arms: Arms, pairs: int, others: int, random: Generator) -> bool:
    """Whether any of several B, which share A's runs and the error, is better or worse."""
    a = random.normal(0, arms.noise, pairs)
    found = []
    for _ in range(others):
        b = random.normal(0, arms.noise, pairs)
        figures: list[Pair] = list(zip(np.exp(a).tolist(), np.exp(b).tolist(), strict=True))
        found.append(verdict_of(figures, FIRST_ERROR / others))
    return any(verdict in ("better", "worse") for verdict in found)


def _show(about: str, found: Counter[Answer], more: str = "") -> None:
    shares = (found[answer] / found.total() for answer in _ANSWERS)
    widths = (9, 8, 12, 14)
    cells = (f"{share:>{width}.1%}" for share, width in zip(shares, widths, strict=True))
    print(f"{about:<52}" + "".join(cells) + more, flush=True)


def _title(text: str) -> None:
    heads = zip(_ANSWERS, (9, 8, 12, 14), strict=True)
    print(f"\n{text:<52}" + "".join(f"{answer:>{width}}" for answer, width in heads))


def _plain(comparisons: int, random: Generator) -> None:
    for tails in (None, 3):
        _title(f"One look, {'normal noise' if tails is None else 'heavy tails'}")
        for noise, pairs, change in product((0.02, 0.03, 0.05), (6, 10, 16), (1.0, 1.05, 1.1)):
            found = verdicts(Arms(noise, change, tails), pairs, comparisons, random)
            _show(f"noise {noise:.0%}, {pairs} pairs, B ×{change:g}", found)


def _drifts(comparisons: int, random: Generator) -> None:
    _title("Identical arms on a machine that drifts, 8 pairs")
    for order, (about, drift, walk) in product(
        ("abba", "blocks", "as-written"),
        (("in a line, 2 % a run", 0.02, 0.0), ("at random, 2 % a run", 0.0, 0.02)),
    ):
        arms = Arms(0.02, order=order, drift=drift, walk=walk)  # type: ignore[arg-type]
        _show(f"{order}, {about}", verdicts(arms, 8, comparisons, random))


def _failing(comparisons: int, random: Generator) -> None:
    _title("Identical arms, failures reach a share of the runs")
    for share, pairs in product((0.05, 0.2, 0.5), (6, 10, 16)):
        arms = Arms(0.03, failing=share)
        _show(f"{share:.0%} of the runs, {pairs} pairs", verdicts(arms, pairs, comparisons, random))


def _looks(comparisons: int, random: Generator) -> None:
    # So noisy that none is equivalent, which would hide what is wrongly better or worse.
    _title("Planned looks at identical arms, noise 10 %")
    for pairs, looks in ((18, 1), (18, 2), (18, 3), (24, 4), (60, 10)):
        found = Counter(
            with_looks(Arms(0.1), pairs, looks, random, Spent()) for _ in range(comparisons)
        )
        _show(f"{looks} over {pairs} pairs", found)
    _title("Planned looks, noise 3 %")
    for (pairs, looks), change in product(
        ((18, 1), (18, 2), (18, 3), (24, 4), (60, 10)), (1.0, 1.05, 1.1)
    ):
        spent = Spent()
        arms = Arms(0.03, change)
        found = Counter(with_looks(arms, pairs, looks, random, spent) for _ in range(comparisons))
        _show(
            f"{looks} over {pairs} pairs, B ×{change:g}",
            found,
            f"   {spent.pairs / comparisons:.1f} pairs",
        )


def _retries(comparisons: int, random: Generator) -> None:
    # The whole 5 % may be spent here, so its share is to be seen closely.
    comparisons *= 5
    _title("A new comparison of 6 pairs until one decides")
    for noise, retries in product((0.03, 0.05, 0.1), (1, 10)):
        arms = Arms(noise)
        found = Counter(with_retries(arms, 6, retries, random) for _ in range(comparisons))
        _show(f"noise {noise:.0%}, up to {retries} more, B ×1", found)
    arms = Arms(0.03, 1 + MARGIN)
    found = Counter(with_retries(arms, 6, 10, random) for _ in range(comparisons))
    _show(f"noise 3%, up to 10 more, B ×{1 + MARGIN:g}", found)


def _recommended(comparisons: int, random: Generator) -> None:
    _title("The pairs that identical arms (8 pairs) ask for")
    for noise, change in product((0.02, 0.03, 0.05), (1.0, 1.025, 1.05, 1.1)):
        arms, spent = Arms(noise, change), Spent()
        found = Counter(as_recommended(arms, 8, random, spent) for _ in range(comparisons))
        _show(
            f"noise {noise:.0%}, B ×{change:g}", found, f"   {spent.pairs / comparisons:.0f} pairs"
        )


def _advised(comparisons: int, random: Generator) -> None:
    _title("The pairs that an inconclusive comparison (6) asks for")
    for change in (1.0, 1.025, 1.05, 1.1):
        arms, found = Arms(0.05, change), Counter[Answer]()
        while found.total() < comparisons:
            if (verdict := as_advised(arms, 6, random)) is not None:
                found[verdict] += 1
        _show(f"noise 5%, B ×{change:g}", found)


def _families(comparisons: int, random: Generator) -> None:
    print("\nIdentical arms, noise 10 %, better or worse       primary   any other")
    for places, metrics in ((1, 4), (5, 4), (10, 4)):
        found = [several(Arms(0.1), 8, places, metrics, random) for _ in range(comparisons)]
        first, rest = (sum(each) / comparisons for each in zip(*found, strict=True))
        about = f"{places} place{'s' * (places > 1)}, {metrics} metrics, 8 pairs"
        print(f"{about:<48}{first:>9.1%}{rest:>12.1%}", flush=True)
    for others in (2, 5):
        wrong = sum(rivals(Arms(0.1), 8, others, random) for _ in range(comparisons))
        print(f"{f'{others} variants against A':<48}{wrong / comparisons:>9.1%}", flush=True)


def _without_a_remedy(comparisons: int, random: Generator) -> None:
    """What the lab does not do, and why."""
    _title("Identical arms in two sessions, 8 pairs by number")
    found = Counter(two_sessions(0.03, 0.01, 8, random) for _ in range(comparisons))
    _show("3 % between sessions, 1 % within", found)
    _title("A new comparison of 6 pairs until one decides, 5 % each")
    for noise in (0.03, 0.05, 0.1):
        found = Counter(
            with_retries(Arms(noise), 6, 10, random, lambda _: TOTAL_ERROR)
            for _ in range(5 * comparisons)
        )
        _show(f"noise {noise:.0%}, up to 10 more", found)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=2000, help="of each row, default 2000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    for part in (_plain, _drifts, _failing, _looks, _retries, _families, _recommended):
        part(asked.comparisons, random)
    # Most of its comparisons decide, and do not count.
    _advised(asked.comparisons // 2, np.random.default_rng([asked.seed, 1]))
    _without_a_remedy(asked.comparisons, np.random.default_rng([asked.seed, 2]))


if __name__ == "__main__":
    main()
