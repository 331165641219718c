"""The ratio of two things that were measured in interleaved pairs, with its interval over runs."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from spikelab.statistics import CONFIDENCE


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of the pairs' B / A.

    `low` to `high` is its two-sided 95 % interval; `upper` is the one-sided 95 % bound.
    `log_deviation` is the standard deviation of the natural logarithms of the pairs' ratios.
    """

    mean: float
    low: float
    high: float
    upper: float
    pairs: int
    log_deviation: float

    @property
    def difference_p(self) -> float:
        """Two-sided p of "B equals A": at most 0.05 where the interval leaves 1 out."""
        log = abs(math.log(self.mean))
        return min(1.0, 2 * self._beyond(log)) if log else 1.0

    def equivalence_p(self, margin: float) -> float:
        """p of "they differ by more than the margin": at most 0.025 where the interval is inside.

        `margin`: 0.05 allows ratios from 1 / 1.05 to 1.05, so that swapping A and B changes
        nothing. The larger of two one-sided tests: Schuirmann, A comparison of the two one-sided
        tests procedure and the power approach, J. Pharmacokinet. Biopharm. 15 (1987).
        """
        return self._beyond(math.log1p(margin) - abs(math.log(self.mean)))

    def _beyond(self, log: float) -> float:
        """One-sided p of a distance from the mean, in logarithms."""
        error = self.log_deviation / math.sqrt(self.pairs)
        if not error:
            return 0.0 if log > 0 else 1.0
        return float(student.sf(log / error, self.pairs - 1))


def ratio_of(ratios: Sequence[float]) -> Ratio:
    """Paired t on log-ratios: the unit of replication is the pair, not the request.

    `ratios`: one B / A for each pair, at least two, positive and finite. Source: Student's paired
    test (Box, Hunter and Hunter, Statistics for Experimenters, 2nd ed., ch. 3) on logarithms, as
    Fleming and Wallace, How not to lie with statistics, CACM 29 (1986), ask of ratios.
    Raises ValueError.
    """
    if len(ratios) < 2 or not all(0 < ratio < math.inf for ratio in ratios):
        raise ValueError(f"no interval of {list(ratios)}: it needs two positive, finite ratios")
    logs = [math.log(ratio) for ratio in ratios]
    mean, deviation, freedom = statistics.fmean(logs), statistics.stdev(logs), len(logs) - 1
    error = deviation / math.sqrt(len(logs))
    two_sided = error * student.ppf((1 + CONFIDENCE) / 2, freedom)
    one_sided = error * student.ppf(CONFIDENCE, freedom)
    return Ratio(
        mean=math.exp(mean),
        low=math.exp(mean - two_sided),
        high=math.exp(mean + two_sided),
        upper=math.exp(mean + one_sided),
        pairs=len(logs),
        log_deviation=deviation,
    )
