"""What a comparison says, in a line."""

from collections.abc import Sequence

from spikelab.comparison.arms import Arm
from spikelab.comparison.metrics import Unit
from spikelab.comparison.model import ComparisonRecord, Figure, Noise, Result, Side
from spikelab.comparison.places import show
from spikelab.plans.studies import MetricName
from spikelab.units import show_seconds


def summary(record: ComparisonRecord) -> str:
    """The primary metric's verdict first; where it is none, what would bring one."""
    result = record.deciding
    assert result is not None
    place = show(result.place)
    about = f"{label(result.metric)} of {called(record.b, record.a)}"
    about += f" at {place}" if place else ""
    if result.ratio:
        about += f" is {_times(result)} that of {called(record.a, record.b)}"
    text = f"{result.verdict}: {about} ({_grounds(result)})"
    return text + _advice(result, record.margin)


def label(metric: MetricName) -> str:
    """What is compared: of `success` it is the share that failed."""
    return "failed" if metric == "success" else metric


def called(side: Side, other: Side) -> str:
    """As short as it is clear beside the other one."""
    return side.name if side.variant == other.variant else side.variant or side.name


def confidence(result: Result) -> str:
    """A verdict with its grounds, as a run's history keeps it.

    ``worse (×1.10, 1.08–1.12, 6 pairs)``
    """
    if result.ratio is None:
        if result.verdict == "inconclusive" and result.reason:
            return f"inconclusive ({result.reason})"
        return f"{result.verdict} (by order alone, {len(result.pairs)} pairs)"
    return f"{result.verdict} ({_times(result)}, {_grounds(result)})"


def _times(result: Result) -> str:
    return f"×{result.ratio:.{_digits(result)}f}"


def _grounds(result: Result) -> str:
    pairs = f"{len(result.pairs)} pairs"
    if result.low is None or result.high is None:
        return result.reason or pairs
    digits = _digits(result)
    reason = f"; {result.reason}" if result.reason else ""
    return f"{result.low:.{digits}f}–{result.high:.{digits}f}, {pairs}{reason}"


def no_verdict(a: Arm, b: Arm) -> str:
    """Why two runs are only set side by side."""
    what = "two single runs" if a.single and b.single else "one run a side at each place"
    return (
        f"no verdict: {what} cannot tell a difference from the machine's own changes from run to "
        "run; ./lab compare PLAN runs its variants in turn, six times each or more"
    )


def noise(record: ComparisonRecord, found: Sequence[Noise]) -> str:
    """The primary metric's noise, and whether the machine told identical arms apart."""
    first = found[0]
    said = {
        "equivalent": "identical arms were found equivalent",
        "inconclusive": "identical arms could not be told apart, nor shown to be equivalent",
        None: "identical arms have no ratio",
    }.get(record.verdict, f"identical arms were called {record.verdict}, which 1 in 20 may be")
    if first.log_deviation is None or first.smallest_difference is None:
        return f"{said}; {first.metric}: {first.reason}"
    needed = "more than 1,000" if first.pairs_needed is None else str(first.pairs_needed)
    return (
        f"{said}; noise of {first.metric}: {first.log_deviation:.2%} between the runs of a pair, "
        f"so {first.pairs} pairs see differences from {first.smallest_difference - 1:.1%} on, and "
        f"a margin of {record.margin:.3g} needs {needed} pairs"
    )


def figure(value: Figure, unit: Unit) -> str:
    """A figure for a person: ``21.2 ms``, ``99.8/s``, ``0.05 %``; ``∞``, or empty for none."""
    if value is None:
        return ""
    if value == "infinite":
        return "∞"
    match unit:
        case "s":
            return show_seconds(value)
        case "1/s":
            return f"{value:,.5g}/s"
        case "share":
            return f"{value * 100:.3g} %"


def _digits(result: Result) -> int:
    """Enough that the ends of a narrow interval differ."""
    wide = result.low is None or result.high is None or result.high - result.low >= 0.01
    return 2 if wide else 3


def _advice(result: Result, margin: float) -> str:
    advice = result.advice
    if advice is None:
        return ""
    seen = f"{len(result.pairs)} pairs would have shown a difference of "
    seen += f"{advice.smallest_difference - 1:.1%} (80 % chance)"
    if advice.more_pairs is None:
        more = "more than 1,000 pairs would be needed: make the machine quieter or the runs longer"
    elif advice.more_pairs:
        more = (
            f"{advice.more_pairs} more repeats, {advice.pairs_needed} in all, would decide at a "
            f"margin of {margin * 100:.3g} %"
        )
    else:
        more = "there were enough pairs, and luck failed: compare once more"
    return f"; {more}; {seen}"
