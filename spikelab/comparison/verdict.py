"""What the paired runs of A and B say about B: which figures are compared, the verdict on each and
its sentence.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from spikelab.comparison.pairing import (
    Arm,
    Paired,
    Place,
    RunPair,
    interleaved,
    latency_bases,
    no_verdict,
    notes,
    pair_up,
    primary_place,
    show_place,
)
from spikelab.errors import UsageError
from spikelab.objectives import reached_by
from spikelab.plans.studies import CompareBy
from spikelab.results.comparison import (
    Advice,
    ComparisonRecord,
    LeftOut,
    MetricName,
    MetricUnit,
    MetricValue,
    Noise,
    PairFigures,
    Result,
    Side,
)
from spikelab.results.run import Step, now
from spikelab.run import identity
from spikelab.statistics.pairs import (
    FIRST_ERROR,
    Answer,
    Comparison,
    Metric,
    Pair,
    advise,
    compare,
    error_of,
    fewest_pairs,
    likely_deviation,
    pairs_needed,
    require_pairs,
    smallest_difference,
)
from spikelab.units import INFINITE, MISSING, parse_fraction, show_percent, show_seconds


@dataclass(frozen=True)
class ComparisonQuestion:
    """How A and B are compared. `margin`: 0.05 for 5 %; `at`: where the primary metric decides.
    `at_asked`: that is a must; else names that nothing was swept by say nothing. `looks`: how often
    a verdict is looked for. `interleaved`: imported runs were taken in turn, the user says.
    `mixed_latency`: latencies that are not the same figure are compared all the same."""

    primary: MetricName = "p95"
    metrics: Sequence[MetricName] = ()
    margin: float = 0.05
    at: Place = field(default_factory=dict)
    at_asked: bool = True
    looks: int = 1
    interleaved: bool = False
    mixed_latency: bool = False

    @classmethod
    def of(cls, by: CompareBy | None) -> "ComparisonQuestion":
        """As a plan declares it, or the defaults."""
        by = by or CompareBy()
        return cls(by.primary, by.metrics, parse_fraction(by.margin), by.at, looks=by.looks)

    @property
    def all_metrics(self) -> list[MetricName]:
        """The primary one first, each once."""
        return list(dict.fromkeys([self.primary, *self.metrics]))


@dataclass(frozen=True)
class Look:
    """One look at a question. `error`: the share of false verdicts that it may have; `next_error`:
    that of a new comparison after it. `earlier`: comparisons that count as looks before it.
    `planned`: its comparison's looks, after so many pairs."""

    question: str | None = None
    error: float = FIRST_ERROR
    next_error: float = error_of(1)
    earlier: Sequence[str] = ()
    planned: Sequence[int] = ()


@dataclass(frozen=True)
class MetricDefinition:
    """One metric. `of` gives its value in `unit`: infinite where failures reach it, None where
    the record does not have it."""

    about: str
    better: Literal["lower", "higher"]
    unit: MetricUnit
    of: Callable[[Step], float | None]


def _percentile(key: str) -> Callable[[Step], float | None]:
    """A latency percentile with failures and drops as infinitely late, as objectives judge it."""

    def of(step: Step) -> float | None:
        seconds = getattr(step.latency_with_failures_seconds, key)
        if seconds is not None:
            return float(seconds)
        if key not in reached_by(step.good, step.requests + step.dropped):
            return math.inf
        # The slowest good answer has its rank; but a report may not print all percentiles.
        printed = getattr(step.latency_seconds, key) is not None
        return step.latency_seconds.max if printed else None

    return of


def _mean_latency(step: Step) -> float | None:
    """Infinite where no answer was good: without its pair such a run would flatter its side."""
    if step.latency_mean_seconds is None and not step.good:
        return math.inf
    return step.latency_mean_seconds


def _failures(step: Step) -> float | None:
    """Failed and dropped requests, of all that were due."""
    due = step.requests + step.dropped
    return (step.failures + step.dropped) / due if due else None


_SECONDS = "of all requests were faster; a failed one counts as infinite"

# Success is compared as the share that failed: 99.9 % and 99 % are ten times apart in that, and
# within any margin as shares that succeeded.
METRICS: dict[MetricName, MetricDefinition] = {
    "p50": MetricDefinition(f"half {_SECONDS}", "lower", "s", _percentile("p50")),
    "p90": MetricDefinition(f"90 % {_SECONDS}", "lower", "s", _percentile("p90")),
    "p95": MetricDefinition(f"95 % {_SECONDS}", "lower", "s", _percentile("p95")),
    "p99": MetricDefinition(f"99 % {_SECONDS}", "lower", "s", _percentile("p99")),
    "p99.9": MetricDefinition(f"99.9 % {_SECONDS}", "lower", "s", _percentile("p99_9")),
    "mean": MetricDefinition("latency of the good answers", "lower", "s", _mean_latency),
    "success": MetricDefinition("share that failed or was dropped", "lower", "share", _failures),
    "throughput": MetricDefinition(
        "answers a second of the load", "higher", "1/s", lambda step: step.completed_rate
    ),
    "goodput": MetricDefinition(
        "good answers within the objectives a second", "higher", "1/s", lambda step: step.goodput
    ),
}


# Where some run's answers within the window were not counted: of spikes, imports and older records.
_WITH_DRAIN = MetricDefinition(
    "answers a second, drain included", "higher", "1/s", lambda step: step.achieved_rate
)


def compare_arms(
    a: Arm, b: Arm, question: ComparisonQuestion, look: Look | None = None
) -> ComparisonRecord:
    """B against A; side by side where no verdict is due. `look`: the first one without it.

    Raises UsageError for too few pairs, where it is not said which place decides, and for latencies
    that are not the same figure.
    """
    look = look or Look()
    _require_one_latency(a, b, question)
    paired = pair_up(a, b)
    reason = no_verdict(a, b, paired, question.interleaved)
    results = _side_by_side(paired, question) if reason else _judged(paired, question, look)
    record = ComparisonRecord(
        comparison=identity("compare"),
        created=now(),
        plan=a.plan,
        primary=question.primary,
        margin=question.margin,
        a=_side(a),
        b=_side(b),
        interleaved=interleaved(a, b),
        notes=[*notes(a, b), *_notes(a, b, question, results)],
        results=results,
        left_out=[
            LeftOut(place=dict(place.place), repeat=pair.repeat, reason="; ".join(pair.trouble))
            for place in paired
            for pair in place.pairs
            if pair.trouble
        ],
        verdict=None,
        summary=f"no verdict: {reason}",
    )
    return record if reason else _decided(record, look)


def _decided(record: ComparisonRecord, look: Look) -> ComparisonRecord:
    """The record with its verdict, and with what this look was."""
    assert record.deciding is not None
    record.at = record.deciding.place
    record.verdict = record.deciding.verdict
    record.summary = summary(record)
    record.question, record.earlier = look.question, list(look.earlier)
    record.looks = list(look.planned)
    record.confidence_level = 1 - look.error
    if look.earlier:
        record.notes.append(
            f"look {len(look.earlier) + 1} at the same question, after {', '.join(look.earlier)}: "
            f"it may have {show_percent(look.error)} of false verdicts, so that all looks together "
            "stay below 5 %"
        )
    return record


def _require_one_latency(a: Arm, b: Arm, question: ComparisonQuestion) -> None:
    bases = latency_bases(a, b)
    of_latency = [name for name in question.all_metrics if METRICS[name].unit == "s"]
    if len(bases) > 1 and of_latency and not question.mixed_latency:
        raise UsageError(
            f"the latencies of these runs are not the same figure ({', '.join(bases)}): "
            f"--mixed-latency compares them even so, --primary and --metrics leave "
            f"{', '.join(of_latency)} out"
        )


def _notes(
    a: Arm, b: Arm, question: ComparisonQuestion, results: Sequence[Result]
) -> Iterator[str]:
    """What a reader has to know about the figures, a line each."""
    bases = latency_bases(a, b)
    if len(bases) > 1:
        yield f"the latencies are not the same figure: {', '.join(bases)}"
    if question.interleaved and interleaved(a, b) is None:
        yield "that A's and B's imported runs were taken in turn is said by --interleaved"
    if any(result.about == _WITH_DRAIN.about for result in results):
        yield "throughput includes the drain (achieved_rate): some run has no completed_rate"


def _side(arm: Arm) -> Side:
    return Side(
        name=arm.name,
        plan=arm.plan,
        experiment=arm.experiment,
        variant=arm.variant,
        runs=[record.testid for record in arm.records],
    )


def _side_by_side(paired: Sequence[Paired], question: ComparisonQuestion) -> list[Result]:
    """Figures and their ratio, without an interval."""
    results = [_figures(place, name) for place in paired for name in question.all_metrics]
    for result in results:
        if isinstance(result.a, float) and isinstance(result.b, float) and result.a:
            result.ratio = result.b / result.a
    return results


def _judged(paired: Sequence[Paired], question: ComparisonQuestion, look: Look) -> list[Result]:
    """The primary place and metric first; its pairs must be enough, those elsewhere need not."""
    places = [place.place for place in paired]
    at = question.at
    if not question.at_asked:
        at = {name: value for name, value in at.items() if any(name in place for place in places)}
    deciding = primary_place(places, at)
    first = next(place for place in paired if place.place is deciding)
    require_pairs(len(first.pairs))
    cells = [
        (_label(place, name), place, name)
        for place in (first, *(each for each in paired if each is not first))
        for name in question.all_metrics
    ]
    enough = [cell for cell in cells if len(cell[1].pairs) >= fewest_pairs()]
    primary, *secondary = (
        Metric(label, METRICS[name].better, question.margin) for label, _, name in enough
    )
    figures = {label: _judging_pairs(place, name) for label, place, name in enough}
    found = {each.metric.name: each for each in compare(primary, secondary, figures, look.error)}
    return [
        _result(place, name, found.get(label), question, look, primary=label == primary.name)
        for label, place, name in cells
    ]


def _label(place: Paired, metric: MetricName) -> str:
    where = show_place(place.place)
    return f"{metric} at {where}" if where else metric


def _judging_pairs(place: Paired, metric: MetricName) -> list[Pair]:
    definition = _definition(place, metric)
    return [_pair(pair, definition) for pair in place.pairs]


def _definition(place: Paired, metric: MetricName) -> MetricDefinition:
    """One for all pairs of a place: two formulas have no ratio."""
    steps = [run.step for pair in place.pairs for run in (pair.a, pair.b) if run]
    if metric == "throughput" and any(step.completed_rate is None for step in steps):
        return _WITH_DRAIN
    return METRICS[metric]


def _pair(pair: RunPair, metric: MetricDefinition) -> Pair:
    """Both figures, or none: one alone says nothing of the other."""
    if pair.trouble or pair.a is None or pair.b is None:
        return None, None
    return metric.of(pair.a.step), metric.of(pair.b.step)


def _result(
    place: Paired,
    name: MetricName,
    answer: Comparison | None,
    question: ComparisonQuestion,
    look: Look,
    primary: bool,
) -> Result:
    result = _figures(place, name)
    result.primary = primary
    if answer is None:
        fewest = fewest_pairs()
        result.verdict = "inconclusive"
        result.reason = f"only {len(place.pairs)} pairs: {fewest} are needed"
        return result
    result.verdict, result.reason = answer.verdict, answer.reason
    result.difference_p, result.equivalence_p = answer.difference_p, answer.equivalence_p
    ratio = answer.ratio
    if ratio is not None:
        result.ratio, result.low, result.high = ratio.mean, ratio.low, ratio.high
        result.log_deviation = ratio.log_deviation
        if answer.verdict == "inconclusive" and answer.reason is None:
            advice = advise(ratio, question.margin, look.error, look.next_error)
            result.advice = Advice(**asdict(advice))
    return result


def _figures(place: Paired, name: MetricName) -> Result:
    """The figures without any verdict."""
    figure = _definition(place, name)
    pairs = []
    for pair in place.pairs:
        a, b = _pair(pair, figure)
        if pair.a and pair.b and a is not None and b is not None:
            runs = pair.a.record.testid, pair.b.record.testid
            pairs.append(
                PairFigures(
                    repeat=pair.repeat,
                    a_run=runs[0],
                    b_run=runs[1],
                    a=_metric_value(a),
                    b=_metric_value(b),
                )
            )
    return Result(
        metric=name,
        about=figure.about,
        unit=figure.unit,
        better=figure.better,
        place=dict(place.place),
        pairs=pairs,
        a=_mean([pair.a for pair in pairs]),
        b=_mean([pair.b for pair in pairs]),
    )


def _metric_value(value: float) -> MetricValue:
    return "infinite" if math.isinf(value) else float(value)


def _mean(figures: Sequence[MetricValue]) -> MetricValue:
    """Geometric, so that the ratio of two is the mean ratio; zero or infinite if one figure is."""
    numbers = [figure for figure in figures if isinstance(figure, float)]
    if not figures:
        return None
    if len(numbers) < len(figures):
        return "infinite"
    return statistics.geometric_mean(numbers) if all(numbers) else 0.0


_WORST_FIRST: tuple[Answer, ...] = ("worse", "inconclusive", "equivalent", "better")


def overall(records: Sequence[ComparisonRecord]) -> Answer | None:
    """The worst of several comparisons; None where none was judged."""
    verdicts = {record.verdict for record in records}
    return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None)


def with_noise(record: ComparisonRecord, looks: int = 1) -> ComparisonRecord:
    """Of identical arms: what the deviation of their log-ratios allows, by metric. `looks`: of the
    comparison that is planned; its last one alone decides with the pairs needed."""
    deciding = [result for result in record.results if result.place == record.at]
    error = FIRST_ERROR / looks
    noise = [_noise(result, record.margin, error) for result in deciding]
    return record.model_copy(update={"noise": noise, "summary": noise_sentence(record, noise)})


def _noise(result: Result, margin: float, error: float) -> Noise:
    pairs, deviation = len(result.pairs), result.log_deviation
    if deviation is None:
        return Noise(
            metric=result.metric,
            pairs=pairs,
            log_deviation=None,
            smallest_difference=None,
            pairs_needed=None,
            reason=result.reason or "a figure is zero or infinite",
        )
    return Noise(
        metric=result.metric,
        pairs=pairs,
        log_deviation=deviation,
        smallest_difference=smallest_difference(deviation, pairs, error),
        pairs_needed=pairs_needed(likely_deviation(deviation, pairs), margin, error),
    )


def summary(record: ComparisonRecord) -> str:
    """The primary metric's verdict first; where it is none, what would bring one."""
    result = record.deciding
    assert result is not None
    place = show_place(result.place)
    about = f"{label(result.metric)} of {called(record.b, record.a)}"
    about += f" at {place}" if place else ""
    if result.ratio:
        about += f" is {result.times} that of {called(record.a, record.b)}"
    text = f"{result.verdict}: {about} ({result.grounds})"
    return text + _advice(result, record.margin)


def label(metric: MetricName) -> str:
    """What is compared: of `success` it is the share that failed."""
    return "failed" if metric == "success" else metric


def called(side: Side, other: Side) -> str:
    """As short as it is clear beside the other one."""
    return side.name if side.variant == other.variant else side.variant or side.name


def noise_sentence(record: ComparisonRecord, found: Sequence[Noise]) -> str:
    """The primary metric's noise, and whether the machine told identical arms apart."""
    first = found[0]
    said = {
        "equivalent": "identical arms were found equivalent",
        "inconclusive": "identical arms could not be told apart, nor shown to be equivalent",
        None: "identical arms have no ratio",
    }.get(record.verdict, f"identical arms were called {record.verdict}, which 1 in 25 may be")
    if first.log_deviation is None or first.smallest_difference is None:
        return f"{said}; {first.metric}: {first.reason}"
    needed = "more than 1,000" if first.pairs_needed is None else str(first.pairs_needed)
    return (
        f"{said}; noise of {first.metric}: {first.log_deviation:.2%} between the runs of a pair, "
        f"so {first.pairs} pairs see differences from {first.smallest_difference - 1:.1%} on, and "
        f"a margin of {record.margin:.3g} needs {needed} pairs"
    )


def figure(value: MetricValue, unit: MetricUnit) -> str:
    """A figure for a person: ``21.2 ms``, ``99.8/s``, ``0.05 %``; ``∞``, or ``–`` for none."""
    if value is None:
        return MISSING
    if value == "infinite":
        return INFINITE
    match unit:
        case "s":
            return show_seconds(value)
        case "1/s":
            return f"{value:,.5g}/s"
        case "share":
            return show_percent(value)


def _advice(result: Result, margin: float) -> str:
    advice = result.advice
    if advice is None:
        return ""
    seen = f"{len(result.pairs)} pairs would have shown a difference of "
    seen += f"{advice.smallest_difference - 1:.1%} (80 % chance)"
    if advice.pairs_needed is None:
        more = (
            "a new comparison would need more than 1,000 pairs: make the machine quieter or the "
            "runs longer"
        )
    else:
        more = (
            f"a new comparison with {advice.pairs_needed} pairs (repeats: {advice.pairs_needed}) "
            f"would decide at a margin of {margin * 100:.3g} %"
        )
    return f"; {more}; {seen}"
