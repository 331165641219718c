"""How often a question was looked at before: the comparisons in results/ that count, and the share
of false verdicts that is left for the next one.

A question is what two arms measure. Comparisons of it count while they are inconclusive, since who
asks until there is a verdict gets one; so does every comparison of runs that are looked at again.
"""

import hashlib
from collections.abc import Sequence

from spikelab.comparison.pairing import Arm, place_key
from spikelab.comparison.verdict import ComparisonQuestion, Look
from spikelab.results.comparison import ComparisonRecord
from spikelab.statistics.pairs import error_of, error_of_look


def look_at(
    a: Arm, b: Arm, question: ComparisonQuestion, planned: Sequence[int] = (), number: int = 0
) -> Look:
    """The look at A and B that is due now. `planned`: the looks of their comparison, of which this
    is number `number`, the first 0."""
    asked = question_of(a, b)
    known = _known(asked)
    rivals = max(a.rivals, b.rivals)
    again = next((record for record in known if _is_same(record, a, b, question)), None)
    if again is not None:
        # The same runs, asked the same: the verdict is the same too.
        next_error = error_of(len(again.earlier) + 1) / rivals
        error = 1 - again.confidence_level
        return Look(asked, error, next_error, tuple(again.earlier), tuple(again.looks))
    earlier = _counting(known, {*_runs(a), *_runs(b)})
    error = error_of(len(earlier)) / rivals
    next_error = error_of(len(earlier) + 1) / rivals
    if len(planned) > 1:
        error = error_of_look(error, planned, number)
    return Look(asked, error, next_error, earlier, tuple(planned) if len(planned) > 1 else ())


def question_of(a: Arm, b: Arm) -> str:
    """The same for A against B and B against A, whatever metric, place and margin are asked for."""
    sides = sorted(arm.digest or arm.name for arm in (a, b))
    return hashlib.sha256("\n".join(sides).encode()).hexdigest()[:16]


def _known(question: str) -> list[ComparisonRecord]:
    """The comparisons of a question that were judged, in time; the same runs asked the same again
    are no other look."""
    found: dict[object, ComparisonRecord] = {}
    for record in sorted(ComparisonRecord.read_all(), key=lambda each: each.created):
        if record.question == question and record.verdict and not record.noise:
            sides = frozenset((frozenset(record.a.runs), frozenset(record.b.runs)))
            asked = sides, record.primary, record.margin, place_key(record.at)
            found.setdefault(asked, record)
    return list(found.values())


def _counting(known: Sequence[ComparisonRecord], runs: set[str]) -> tuple[str, ...]:
    """Those since the last verdict, and all of runs that are judged once more."""
    undecided: list[str] = []
    for record in known:
        undecided = [*undecided, record.comparison] if record.verdict == "inconclusive" else []
    return tuple(
        record.comparison
        for record in known
        if record.comparison in undecided or runs & {*record.a.runs, *record.b.runs}
    )


def _is_same(record: ComparisonRecord, a: Arm, b: Arm, question: ComparisonQuestion) -> bool:
    at = set(place_key(question.at)) if question.at_asked else set()
    return (
        {frozenset(record.a.runs), frozenset(record.b.runs)} == {_runs(a), _runs(b)}
        and (record.primary, record.margin) == (question.primary, question.margin)
        and at <= set(place_key(record.at))
    )


def _runs(arm: Arm) -> frozenset[str]:
    return frozenset(record.testid for record in arm.records)
