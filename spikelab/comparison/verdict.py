"""What is asked of a comparison: as a plan declares it, changed by the command line."""

# - The figures that comparisons know: how each is taken from a judged step, which way is
#   better.
# - The verdicts on B against A, from their paired runs.
# - The runs of a comparison: a plan's variants in turn, or identical arms.
# - The lab's own noise on this machine, from a comparison of identical arms (A/A).
# - What a comparison says, in a line.
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from spikelab import paths
from spikelab.comparison import pairing
from spikelab.comparison.pairing import (
    PHASE,
    Arm,
    Paired,
    Place,
    RunPair,
    interleaved,
    notes,
    pair_up,
    parse,
    primary_place,
    show,
)
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments import sweep
from spikelab.judge import with_drops
from spikelab.objectives import QUANTILES
from spikelab.plans.load import (
    changed,
    line_of,
    load_plan,
    mistake_at,
    plan_files,
    split_assignment,
)
from spikelab.plans.model import CompareBy, Plan, combinations
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
from spikelab.results.experiment import ExperimentState
from spikelab.results.run import Latency, Step, now
from spikelab.run import RunOptions, identity
from spikelab.statistics.pairs import (
    Answer,
    Comparison,
    Metric,
    Pair,
    advise,
    fewest_pairs,
    pairs_needed,
    require_pairs,
    smallest_difference,
)
from spikelab.statistics.pairs import compare as compare_of_pairs
from spikelab.units import parse_fraction, show_seconds

METRICS: tuple[MetricName, ...] = get_args(MetricName)


@dataclass(frozen=True)
class ComparisonQuestion:
    """How A and B are compared. `margin`: 0.05 for 5 %; `at`: where the primary metric decides.
    `at_asked`: that is a must; else names that nothing was swept by say nothing."""

    primary: MetricName = "p95"
    metrics: Sequence[MetricName] = ()
    margin: float = 0.05
    at: Place = field(default_factory=dict)
    at_asked: bool = True

    @classmethod
    def of(cls, by: CompareBy | None) -> "ComparisonQuestion":
        """As a plan declares it, or the defaults."""
        by = by or CompareBy()
        return cls(by.primary, by.metrics, parse_fraction(by.margin), by.at)

    @property
    def all_metrics(self) -> list[MetricName]:
        """The primary one first, each once."""
        return list(dict.fromkeys([self.primary, *self.metrics]))


@dataclass(frozen=True)
class QuestionOptions:
    """What the command line says; None, or empty: as the plan has it."""

    primary: str | None = None
    metrics: str | None = None
    margin: str | None = None
    at: Sequence[str] = ()

    def of(self, by: CompareBy | None) -> ComparisonQuestion:
        """The question of a plan with these changes. Raises UsageError naming the option."""
        question = ComparisonQuestion.of(by)
        if self.primary is not None:
            question = replace(question, primary=_metric("--primary", self.primary))
        if self.metrics is not None:
            names = [name.strip() for name in self.metrics.split(",") if name.strip()]
            question = replace(question, metrics=[_metric("--metrics", name) for name in names])
        if self.margin is not None:
            question = replace(question, margin=_margin(self.margin))
        if self.at:
            question = replace(question, at=parse(split_assignment(t, "--at") for t in self.at))
        return question

    def of_runs(self, plan: str) -> ComparisonQuestion:
        """The question of finished runs: as the ready plan of that name declares it."""
        by = None
        if plan in plan_files():
            by = load_plan(plan).compare
        return replace(self.of(by), at_asked=bool(self.at))


def _metric(option: str, name: str) -> MetricName:
    if name not in METRICS:
        raise UsageError(f"{option} {name}: there is no such metric{did_you_mean(name, METRICS)}")
    return name


def _margin(text: str) -> float:
    try:
        margin = parse_fraction(text)
    except ValueError as error:
        raise UsageError(f"--margin: {error}") from error
    if not 0 < margin < 1:
        raise UsageError(f"--margin {text}: must be above 0 and below 1, such as 5% or 0.05")
    return margin


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
        printed = step.latency_with_failures_seconds.model_dump()
        lacking = _lacking(printed, step)
        if key in lacking:
            return None
        for name in reversed(QUANTILES):
            if name in lacking:
                # The next higher one stands for it, as `with_drops` has it.
                higher = [each for each, q in QUANTILES.items() if q > QUANTILES[name]]
                printed[name] = printed[higher[0]] if higher else None
        value = with_drops(Latency(**printed), step.requests, step.dropped)[key]
        return math.inf if value is None else value

    return of


def _lacking(printed: Mapping[str, float | None], step: Step) -> set[str]:
    """Percentiles that are null though good answers reach them: an imported report may not print
    all. Null is infinite else."""
    good = step.requests - step.failures
    return {
        name
        for name, quantile in QUANTILES.items()
        if printed[name] is None and math.ceil(round(quantile * step.requests, 6)) <= good
    }


def _failures(step: Step) -> float | None:
    """Failed and dropped requests, of all that were due."""
    due = step.requests + step.dropped
    return (step.failures + step.dropped) / due if due else None


_SECONDS = "of all requests were faster; a failed one counts as infinite"

# Success is compared as the share that failed: 99.9 % and 99 % are ten times apart in that, and
# within any margin as shares that succeeded.
FIGURES: dict[MetricName, MetricDefinition] = {
    "p50": MetricDefinition(f"half {_SECONDS}", "lower", "s", _percentile("p50")),
    "p90": MetricDefinition(f"90 % {_SECONDS}", "lower", "s", _percentile("p90")),
    "p95": MetricDefinition(f"95 % {_SECONDS}", "lower", "s", _percentile("p95")),
    "p99": MetricDefinition(f"99 % {_SECONDS}", "lower", "s", _percentile("p99")),
    "p99.9": MetricDefinition(f"99.9 % {_SECONDS}", "lower", "s", _percentile("p99_9")),
    "mean": MetricDefinition(
        "latency of the good answers", "lower", "s", lambda step: step.latency_mean_seconds
    ),
    "success": MetricDefinition("share that failed or was dropped", "lower", "share", _failures),
    "throughput": MetricDefinition(
        "answers a second, drain included", "higher", "1/s", lambda step: step.achieved_rate
    ),
    "goodput": MetricDefinition(
        "good answers within the objectives a second", "higher", "1/s", lambda step: step.goodput
    ),
}


def compare(a: Arm, b: Arm, question: ComparisonQuestion) -> ComparisonRecord:
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
        summary=no_verdict(a, b),
    )
    if record.deciding:
        record.at = record.deciding.place
        record.verdict = record.deciding.verdict
        record.summary = summary(record)
    return record


def _side(arm: Arm) -> Side:
    return Side(
        name=arm.name,
        plan=arm.plan,
        experiment=arm.experiment,
        variant=arm.variant,
        runs=[record.testid for record in arm.records],
    )


def _side_by_side(paired: Sequence[Paired], question: ComparisonQuestion) -> list[Result]:
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


def _judged(paired: Sequence[Paired], question: ComparisonQuestion) -> list[Result]:
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
        Metric(label, FIGURES[name].better, question.margin) for label, _, name in enough
    )
    figures = {label: _judging_pairs(place, name) for label, place, name in enough}
    found = {each.metric.name: each for each in compare_of_pairs(primary, secondary, figures)}
    return [
        _result(place, name, found.get(label), question, primary=label == primary.name)
        for label, place, name in cells
    ]


def _label(place: Paired, metric: MetricName) -> str:
    where = show(place.place)
    return f"{metric} at {where}" if where else metric


def _judging_pairs(place: Paired, metric: MetricName) -> list[Pair]:
    return [_pair(pair, metric) for pair in place.pairs]


def _pair(pair: RunPair, metric: MetricName) -> Pair:
    """Both figures, or none: one alone says nothing of the other."""
    if pair.trouble or pair.a is None or pair.b is None:
        return None, None
    of = FIGURES[metric].of
    return of(pair.a.step), of(pair.b.step)


def _result(
    place: Paired,
    name: MetricName,
    answer: Comparison | None,
    question: ComparisonQuestion,
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
            result.advice = Advice(**asdict(advise(ratio, question.margin)))
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


def _kept(value: float) -> MetricValue:
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


def sides(plan: Plan, a: str | None, b: Sequence[str]) -> Plan:
    """The plan with only these variants, A first; as it is where none is named.

    Raises UsageError.
    """
    names = [variant.name for variant in plan.variants]
    for name in (*([a] if a else []), *b):
        if name not in names:
            cure = did_you_mean(name, names) if names else " (it has none)"
            raise UsageError(f"plan {plan.name} has no variant '{name}'{cure}")
    if len(names) < 2:
        raise UsageError(
            f"{paths.shown(plan.path)}: a comparison needs two variants; finished runs are "
            "compared with ./lab compare A B"
        )
    first = a or next((name for name in names if name not in b), None)
    if first is None:
        raise UsageError("--b: this names every variant: leave out the one that is A")
    chosen = [first, *(name for name in (b or names) if name != first)]
    if len(chosen) < 2:
        raise UsageError(f"--a {first} --b {first}: these are the same")
    return plan if chosen == names else _with_variants(plan, chosen)


def identical(plan: Plan, question: ComparisonQuestion) -> Plan:
    """The plan for an A/A comparison: its first variant, if any, twice as often. Where values are
    swept, those of the place that decides.

    Raises UsageError for too few repeats, and where it is not said which place decides.
    """
    deciding = _deciding(plan, question)
    sweep_of_place = {"values": {name: [deciding[name]] for name in _swept(plan)}}
    # The statistics speak of pairs of one place; the plan's own question would ask for variants.
    return _with_variants(
        plan,
        [variant.name for variant in plan.variants[:1]],
        compare=None,
        sweep=sweep_of_place,
        repeats=2 * plan.repeats,
    )


def _with_variants(plan: Plan, names: Sequence[str], **keys: Any) -> Plan:
    variants = [plan.variant(name) for name in names]
    keys["variants"] = [each.model_dump(exclude_defaults=True) for each in variants if each]
    if plan.sweep and plan.sweep.settings:
        # They are these variants by now.
        own = plan.sweep.model_dump(exclude={"settings"}, exclude_none=True)
        keys = {"sweep": own, **keys}
    return changed(plan, **keys)


def new_state(plan: Plan, options: RunOptions, question: ComparisonQuestion) -> ExperimentState:
    """A comparison's runs from the first on. Raises UsageError where they could not decide."""
    _deciding(plan, question)
    return sweep.new_state(plan, options, "comparison")


def _deciding(plan: Plan, question: ComparisonQuestion) -> Place:
    """The place of the primary metric, where enough pairs are planned. Raises UsageError."""
    try:
        require_pairs(plan.repeats)
    except UsageError as error:
        line, _ = line_of(plan.path, ["repeats"])
        raise mistake_at(plan.path, line, str(error)) from error
    return primary_place(_places(plan), question.at)


def _places(plan: Plan) -> list[Place]:
    judged = [phase.name for phase in plan.phases if phase.judged]
    phases = [{PHASE: name} for name in judged] if len(judged) > 1 else [{}]
    return [{**values, **phase} for values in combinations(_swept(plan)) for phase in phases]


def _swept(plan: Plan) -> Mapping[str, Sequence[Any]]:
    return plan.sweep.values if plan.sweep else {}


def answer(
    state: ExperimentState, plan: Plan, question: ComparisonQuestion
) -> list[ComparisonRecord]:
    """Each variant against the first. Raises UsageError where one has no run with figures."""
    names = [variant.name for variant in plan.variants]
    first, *others = (pairing.arm_of_state(state, name) for name in names)
    return [compare(first, other, question) for other in others]


def noise_answer(state: ExperimentState, question: ComparisonQuestion) -> ComparisonRecord:
    """Runs 1 and 2, 3 and 4 … of identical arms as pairs, every second one turned round."""
    arm = pairing.arm_of_state(state)
    a, b = (_half(arm, name, place) for place, name in enumerate("AB"))
    return with_noise(compare(a, b, question))


def _half(arm: Arm, name: str, which: int) -> Arm:
    """A, B, B, A, …: a drift in a line weighs on both alike."""
    samples = [
        replace(sample, repeat=(sample.repeat + 1) // 2)
        for sample in arm.samples
        if (sample.repeat // 2 % 2) == which
    ]
    return replace(arm, name=f"{arm.name}:{name}", samples=tuple(samples))


def kept_answer(records: Sequence[ComparisonRecord]) -> dict[str, Any]:
    """What the experiment's state says of its comparisons."""
    return {
        "comparisons": [record.comparison for record in records],
        "verdict": overall(records),
        "summaries": [record.summary for record in records],
    }


def with_noise(record: ComparisonRecord) -> ComparisonRecord:
    """Of identical arms: what the deviation of their log-ratios allows, by metric."""
    deciding = [result for result in record.results if result.place == record.at]
    noise = [_noise(result, record.margin) for result in deciding]
    return record.model_copy(update={"noise": noise, "summary": noise_sentence(record, noise)})


def _noise(result: Result, margin: float) -> Noise:
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
        smallest_difference=smallest_difference(deviation, pairs),
        pairs_needed=pairs_needed(deviation, margin),
    )


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


def noise_sentence(record: ComparisonRecord, found: Sequence[Noise]) -> str:
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


def figure(value: MetricValue, unit: MetricUnit) -> str:
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
