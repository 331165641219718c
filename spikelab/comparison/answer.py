"""The verdicts on B against A, from their paired runs."""

import math
import statistics
from collections.abc import Sequence

from spikelab.comparison import sentences
from spikelab.comparison.arms import Arm
from spikelab.comparison.metrics import FIGURES
from spikelab.comparison.model import (
    Advice,
    ComparisonRecord,
    Figure,
    LeftOut,
    PairFigures,
    Result,
    Side,
)
from spikelab.comparison.pairs import Paired, RunPair, interleaved, notes, pair_up
from spikelab.comparison.places import primary_place, show
from spikelab.comparison.question import Question
from spikelab.plans.studies import MetricName
from spikelab.record import now
from spikelab.run import identity
from spikelab.statistics import Answer, power
from spikelab.statistics import comparison as judging


def compare(a: Arm, b: Arm, question: Question) -> ComparisonRecord:
    """B against A; side by side without a verdict where no place has more than one pair.

    Raises UsageError for too few pairs, and where it is not said which place decides.
    """
    paired = pair_up(a, b)
    judged = any(place.both > 1 for place in paired)
    results = _judged(paired, question) if judged else _side_by_side(paired, question)
    record = ComparisonRecord(
        comparison=identity("compare"),
        created=now(),
        plan=a.plan,
        primary=question.primary,
        margin=question.margin,
        a=_side(a),
        b=_side(b),
        interleaved=interleaved(a, b),
        notes=notes(a, b),
        results=results,
        left_out=[
            LeftOut(place=dict(place.place), repeat=pair.repeat, reason="; ".join(pair.trouble))
            for place in paired
            for pair in place.pairs
            if pair.trouble
        ],
        verdict=None,
        summary=sentences.no_verdict(a, b),
    )
    if record.deciding:
        record.at = record.deciding.place
        record.verdict = record.deciding.verdict
        record.summary = sentences.summary(record)
    return record


def _side(arm: Arm) -> Side:
    return Side(
        name=arm.name,
        plan=arm.plan,
        experiment=arm.experiment,
        variant=arm.variant,
        runs=[record.testid for record in arm.records],
    )


def _side_by_side(paired: Sequence[Paired], question: Question) -> list[Result]:
    """Figures and their ratio; one pair has no interval."""
    results = [_figures(place, name) for place in paired for name in question.all_metrics]
    for result in results:
        if len(result.pairs) == 1:
            result.ratio = _ratio(result.pairs[0])
    return results


def _ratio(pair: PairFigures) -> float | None:
    if not isinstance(pair.a, float) or not isinstance(pair.b, float) or not pair.a:
        return None
    return pair.b / pair.a


def _judged(paired: Sequence[Paired], question: Question) -> list[Result]:
    """The primary place and metric first; its pairs must be enough, those elsewhere need not."""
    places = [place.place for place in paired]
    at = question.at
    if not question.at_asked:
        at = {name: value for name, value in at.items() if any(name in place for place in places)}
    deciding = primary_place(places, at)
    first = next(place for place in paired if place.place is deciding)
    judging.require_pairs(len(first.pairs))
    cells = [
        (_label(place, name), place, name)
        for place in (first, *(each for each in paired if each is not first))
        for name in question.all_metrics
    ]
    enough = [cell for cell in cells if len(cell[1].pairs) >= judging.fewest_pairs()]
    primary, *secondary = (
        judging.Metric(label, FIGURES[name].better, question.margin) for label, _, name in enough
    )
    figures = {label: _judging_pairs(place, name) for label, place, name in enough}
    found = {each.metric.name: each for each in judging.compare(primary, secondary, figures)}
    return [
        _result(place, name, found.get(label), question, primary=label == primary.name)
        for label, place, name in cells
    ]


def _label(place: Paired, metric: MetricName) -> str:
    where = show(place.place)
    return f"{metric} at {where}" if where else metric


def _judging_pairs(place: Paired, metric: MetricName) -> list[judging.Pair]:
    return [_pair(pair, metric) for pair in place.pairs]


def _pair(pair: RunPair, metric: MetricName) -> judging.Pair:
    """Both figures, or none: one alone says nothing of the other."""
    if pair.trouble or pair.a is None or pair.b is None:
        return None, None
    of = FIGURES[metric].of
    return of(pair.a.step), of(pair.b.step)


def _result(
    place: Paired,
    name: MetricName,
    answer: judging.Comparison | None,
    question: Question,
    primary: bool,
) -> Result:
    result = _figures(place, name)
    result.primary = primary
    if answer is None:
        fewest = judging.fewest_pairs()
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
            advice = power.advise(ratio, question.margin)
            result.advice = Advice(
                pairs_needed=advice.pairs,
                more_pairs=advice.more_pairs,
                smallest_difference=advice.smallest_difference,
            )
    return result


def _figures(place: Paired, name: MetricName) -> Result:
    """The figures without any verdict."""
    figure = FIGURES[name]
    pairs = []
    for pair in place.pairs:
        a, b = _pair(pair, name)
        if pair.a and pair.b and a is not None and b is not None:
            runs = pair.a.record.testid, pair.b.record.testid
            pairs.append(
                PairFigures(
                    repeat=pair.repeat, a_run=runs[0], b_run=runs[1], a=_kept(a), b=_kept(b)
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


def _kept(value: float) -> Figure:
    return "infinite" if math.isinf(value) else float(value)


def _mean(figures: Sequence[Figure]) -> Figure:
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
