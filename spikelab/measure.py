"""A finished run's figures: its judged steps, what the target went through, what is incomplete.

A step is made from the summary of one phase, so several drivers' figures would be merged there.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Self

from spikelab import target
from spikelab.console import warn
from spikelab.drivers.base import PhaseSummary, Run
from spikelab.drivers.process import Usage
from spikelab.errors import LabError
from spikelab.history import write_phases
from spikelab.interference import Interference, other_runs
from spikelab.judge import generator_limited, judge_step, misses, spoiled
from spikelab.objectives import QUANTILES, Objective
from spikelab.plans.model import Phase, Plan
from spikelab.results.run import (
    Latency,
    LatencyBasis,
    Prediction,
    Rise,
    RunRecord,
    Step,
    StepGenerator,
    Wave,
)
from spikelab.signals import latency_histogram
from spikelab.stack.base import REPLICA
from spikelab.statistics.batches import FEWEST_BATCHES, batches_of, dependence, rise
from spikelab.statistics.distribution import Distribution
from spikelab.stores import InfluxDB, Prometheus, gaps, settle
from spikelab.target import ConnectionCapacity, RequestTimer, TargetView, fill_resources
from spikelab.units import parse_duration

TARGET_DIED = "the target died or was restarted during the run"


def died(record: RunRecord) -> bool:
    """Whether the target did in this run."""
    return TARGET_DIED in record.reasons


@dataclass(frozen=True)
class TargetBefore:
    """The target just before a run: its counts of overflows and of requests (None: it has none),
    when its process started, and its timer of requests, which is read from then on."""

    overflows: int = 0
    born: float | None = None
    timer: RequestTimer | None = None
    served: int | None = None

    @classmethod
    def of(cls, view: TargetView | None, plan: Plan) -> Self:
        if view is None:
            return cls()
        timer = RequestTimer(
            view, plan.request.path.partition("?")[0], list(map(str, plan.request.expect))
        )
        return cls(view.listen_overflows(), view.start_time(), timer, view.served())

    def served_since(self, view: TargetView | None) -> int | None:
        """Requests, until now; None where that is not known."""
        served = view.served() if view else None
        if view is None or self.served is None or served is None:
            return None
        return served - self.served if view.start_time() == self.born else None

    def stop(self) -> None:
        """The timer is not read any more."""
        if self.timer:
            self.timer.stop()


class RunFigures:
    """Fills in a record; `reasons` is why the run is no valid measurement."""

    def __init__(self, record: RunRecord, run: Run) -> None:
        self._record = record
        self._run = run
        self._plan = run.plan
        self._prometheus = run.prometheus
        self._influxdb = run.influxdb
        self._targets: list[Usage] = []
        self._happened: list[PhaseSummary] = []
        self.reasons: list[str] = []

    def fill_steps(
        self, happened: Sequence[PhaseSummary], driver: Usage, components: Mapping[str, Usage]
    ) -> None:
        """The steps, from the driver's summary and what the processes used."""
        self._targets = [
            usage
            for name, usage in components.items()
            if name == "target" or REPLICA.fullmatch(name)
        ]
        cell = self._run.cell
        self._happened = sorted(happened, key=lambda summary: summary.begun)
        self._record.latency_basis = latency_basis(happened)
        assert self._record.ended is not None
        settle(self._prometheus, self._record.ended)
        for phase, summary in zip(self._plan.phases, happened, strict=True):
            self.reasons += spoiled(phase, summary, self._plan.spike)
            if not phase.judged:
                continue
            step = build_step(phase, summary, self._plan, cell.variant, cell.repeat)
            with self._incomplete("the verdict takes neighbouring requests for independent"):
                fill_batches(step, phase, self._plan, self._record, self._prometheus)
            judge(step, phase, self._plan, driver, self._record.host.driver_cpus)
            step.component_cpu = _cores(components, step)
            self._record.steps.append(step)
        if self._influxdb:
            if owed := write_phases(self._record, self._influxdb):
                self._warn(
                    f"InfluxDB took no write: {owed} phases of this run are kept and written by "
                    "the next ./lab run or ./lab runs that finds it up"
                )
            if "influxdb" in self._record.sinks:
                with self._incomplete("this run's record lacks its waves"):
                    self._fill_samples(self._influxdb)

    def fill_target(
        self, view: TargetView | None, capacity: ConnectionCapacity | None, before: TargetBefore
    ) -> None:
        """The target's side, when the scrapes of the run's end are in."""
        record = self._record
        assert record.ended is not None
        if view is None:
            return
        settle(self._prometheus, record.ended)
        if before.timer:
            before.stop()
            self._fill_server_times(before.timer)
        if view.start_time() != before.born:
            self.reasons.append(TARGET_DIED)
        with self._incomplete("this run's record lacks some of the target's figures"):
            record.connections = target.connections(
                self._prometheus,
                record.started,
                record.ended,
                capacity,
                view.listen_overflows() - before.overflows,
                self._plan.request.keep_alive,
            )
            record.queue_wait_seconds = target.queue_wait(
                self._prometheus, record.started, record.ended, before.born
            )
            fill_resources(record.steps, self._prometheus, self._targets, record.host.target_cpus)

    def find_interference(self, happened: Sequence[PhaseSummary], served: int | None) -> None:
        """Other load on the target; `served`: how many requests it answered in this run."""
        record = self._record
        assert record.ended is not None
        sent = sum(phase.requests for phase in happened)
        with self._incomplete("nobody knows whether something else loaded the target"):
            runs = other_runs(
                self._prometheus, record.testid, record.started, record.ended, self._plan.urls
            )
            unsent = None if served is None else max(0, served - sent)
            unanswered = sent - sum(phase.completed for phase in happened)
            found = Interference(sent, unsent, runs, unanswered)
            if found.reason:
                self.reasons.append(found.reason)
            if found.warning:
                self._warn(found.warning)

    def note_gaps(self) -> None:
        """Warns of the time in which Prometheus recorded nothing."""
        record = self._record
        assert record.ended is not None
        began, ended = record.started.timestamp(), record.ended.timestamp()
        with self._incomplete("nobody knows whether its series have gaps"):
            for begin, end in gaps(self._prometheus, began, ended):
                self._warn(
                    f"Prometheus recorded nothing for {end - begin:.0f} s, from second "
                    f"{begin - began:.0f} of this run on: its series lack them, and what was "
                    "counted meanwhile shows after them"
                )

    def _fill_server_times(self, timer: RequestTimer) -> None:
        """By the target's own timer, from a phase's begin to the next one's."""
        steps = {step.phase: step for step in self._record.steps}
        for phases in neighbours(self._happened):
            if step := steps.get(phases.own.name):
                fill_server_times(step, phases, timer)

    def _fill_samples(self, influxdb: InfluxDB) -> None:
        for step in self._record.steps:
            missing = missing_samples(influxdb, self._record.testid, step)
            step.raw_samples_missing = missing
            if missing:
                self._warn(f"{step.name}: InfluxDB lacks {missing:,} of {step.requests:,} samples")
            elif self._plan.spike:
                seconds = good_answer_seconds(influxdb, self._record.testid, step)
                step.waves = waves(seconds, step.start_spread_seconds or 0.0)
                step.last_good_seconds = round(max(seconds), 3) if seconds else None
                step.workers_seen = _workers(self._record.prediction, step, seconds)

    def _warn(self, text: str) -> None:
        warn(text)
        self._record.warnings.append(text)

    @contextmanager
    def _incomplete(self, consequence: str) -> Iterator[None]:
        """A store that does not answer takes its own figures away, not the driver's."""
        try:
            yield
        except LabError as error:
            self._warn(f"{error}; {consequence}")


@dataclass(frozen=True)
class Neighbours:
    """A phase between those before and after it, as they happened."""

    before: PhaseSummary | None
    own: PhaseSummary
    after: PhaseSummary | None

    @property
    def overlap_seconds(self) -> float:
        """How long answers of one phase came while it was another's time."""
        early = _seconds_past(self.before, self.own) if self.before else 0.0
        return early + (_seconds_past(self.own, self.after) if self.after else 0.0)


def neighbours(phases: Sequence[PhaseSummary]) -> list[Neighbours]:
    """Each of the phases, in the order of their begin."""
    around = [None, *phases, None]
    return [Neighbours(*three) for three in zip(around, phases, around[2:], strict=False)]


def _seconds_past(one: PhaseSummary, following: PhaseSummary) -> float:
    return max(0.0, (one.ended - following.begun).total_seconds())


# Answers may come at another phase's time for this share of the step's.
_MOST_OVERLAP = 0.02


def fill_server_times(step: Step, phases: Neighbours, timer: RequestTimer) -> None:
    """How many good answers the target's own timer counted in the step, their mean, and how many of
    any kind it counted a second while they were begun."""
    begun = min(phases.own.begun, step.started)
    quiet = min(begun, phases.before.ended) if phases.before else datetime.min.replace(tzinfo=UTC)
    until = phases.after.begun if phases.after else datetime.max.replace(tzinfo=UTC)
    if counted := timer.between((quiet, begun), (min(until, step.ended), until)):
        mean = counted.good_mean_seconds
        step.server_mean_seconds = None if mean is None else round(mean, 9)
        if phases.overlap_seconds <= _MOST_OVERLAP * step.seconds:
            step.server_good = round(counted.good)
    end = step.ended - timedelta(seconds=step.drain_seconds)
    if step.offered_rate and (counted := timer.between((begun, begun), (end, end))):
        step.server_rate = _rate(round(counted.answered), counted.epoch_seconds)


def _cores(components: Mapping[str, Usage], step: Step) -> dict[str, float]:
    uses = {name: usage.between(step.started, step.ended) for name, usage in components.items()}
    return {name: round(use.cores, 3) for name, use in uses.items() if use}


def build_step(
    phase: Phase,
    happened: PhaseSummary,
    plan: Plan,
    variant: str | None,
    repeat: int,
) -> Step:
    """A phase's step, not judged yet. Its window is the time in which requests were to start: the
    phase, or of a spike the moment in which its users start. The rest is drain, but for the time
    that jitter took."""
    window = (happened.start_spread_seconds or 0.0) if plan.spike else phase.duration_seconds
    started = happened.started if plan.spike else happened.begun
    taken = max(window, (happened.ended - started).total_seconds())
    drain = max(0.0, taken - window - phase.jitter_seconds)
    length = window + drain
    counted = {name: value for name, value in happened if name in Step.model_fields}
    due = happened.requests + happened.dropped
    measured = {
        "latency_seconds": percentiles(happened.latency),
        "latency_with_failures_seconds": percentiles(happened.latency, due),
        "started": started,
        "ended": started + timedelta(seconds=taken),
        "started_rate": _rate(happened.requests, window),
        "achieved_rate": _rate(happened.completed, length),
        "goodput": _rate(_within_slo(happened), length if plan.spike else window),
        "completed_rate": None
        if happened.completed_in_window is None
        else _rate(happened.completed_in_window, window),
        "drain_seconds": round(drain, 3),
        "start_spread_seconds": happened.start_spread_seconds if plan.spike else None,
    }
    asked = {
        "phase": phase.name,
        "variant": variant,
        "repeat": repeat,
        "offered_rate": plan.offered_rate(phase),
        "end_rate": plan.end_rate(phase),
        "arrival": phase.arrival,
        "scheduled": plan.scheduled_requests(phase),
        "slo": plan.slo if phase.slo is None else phase.slo,
    }
    return Step(**{**counted, **measured, **asked}, verdict="inconclusive")


def latency_basis(happened: Iterable[PhaseSummary]) -> LatencyBasis:
    """Locust's own times, where a script of the user's sent requests without the lab's library."""
    own = any(each.latency.count and each.latency_parts_seconds is None for each in happened)
    return "request" if own else "response time"


def percentiles(latency: Distribution, of: int | None = None) -> Latency:
    """In seconds, of good answers, or of so many requests, those without one infinite (None)."""
    found = {key: latency.percentile_seconds(share, of) for key, share in QUANTILES.items()}
    finite = {key: round(s, 9) for key, s in found.items() if math.isfinite(s)}
    return Latency(**finite)


def judge(step: Step, phase: Phase, plan: Plan, driver: Usage, cpus: int) -> None:
    """Fills in the driver's health during the step, and the verdict."""
    use = driver.between(step.started, _window_end(step, phase, plan))
    if use is None:
        use = driver.overall()
    step.generator = StepGenerator(
        cpu=round(use.cores, 3) if use else None,
        waiting=round(use.waiting, 3) if use else None,
        limited=generator_limited(use, cpus, plan.driver),
    )
    objectives = plan.objectives_of(phase)
    step.misses = {each.text: misses(step, each) for each in objectives}
    judgement = judge_step(step, objectives)
    step.verdict, step.why = judgement.verdict, judgement.why


def fill_batches(
    step: Step, phase: Phase, plan: Plan, record: RunRecord, prometheus: Prometheus
) -> None:
    """How far the step's requests depend on their neighbours, and whether answers become slower,
    as Prometheus saw it, from when all users have begun. Nothing of a spike, which has no seconds,
    of a rate that ramps, whose misses and times rise by themselves, nor of less than five seconds.

    Raises LabError when Prometheus does not answer, or was away meanwhile: what it then counts at
    its return would look like neighbours.
    """
    ramp_up = math.ceil(parse_duration(phase.ramp_up or "0s"))
    seconds = int(phase.duration_seconds) - ramp_up
    if plan.spike or plan.slopes or seconds < FEWEST_BATCHES:
        return
    # A push is stored up to a second after the moment that it is of.
    begin = math.ceil(step.started.timestamp()) + 1 + ramp_up
    batches = StepBatches(prometheus, record.testid, phase.name, begin, seconds)
    asked = batches.requests()
    if step.due and (not any(asked) or gaps(prometheus, begin, begin + seconds - 1)):
        raise LabError(f"Prometheus has not recorded all of {step.name}")
    step.dependence = {
        each.text: round(dependence(batches.misses(each), asked), 3)
        for each in plan.objectives_of(phase)
    }
    if found := rise(batches.mean_seconds()):
        step.rise = Rise(first_seconds=found.first, last_seconds=found.last)


class StepBatches:
    """A step's requests in batches, by Prometheus' normalised series: of one length, one after the
    other. Series have a value each second: a batch may hold one more of them than another. Locust's
    name no phase where they cannot tell it."""

    def __init__(
        self, prometheus: Prometheus, testid: str, phase: str, begin: int, seconds: int
    ) -> None:
        """`begin`: of the first batch, in epoch seconds; `seconds`: of all of them."""
        self._prometheus = prometheus
        self._selector = f'testid="{testid}", phase=~"|{phase}"'
        count = batches_of(seconds)
        self._length_ms = seconds * 1000 // count
        self._ends_ms = [begin * 1000 + self._length_ms * (place + 1) for place in range(count)]

    def requests(self) -> list[float]:
        """That were due: answered, failed and dropped ones."""
        answered = self._sums("loadtest:requests:rate")
        return _added(answered, self._sums("loadtest:dropped:rate"))

    def misses(self, objective: Objective) -> list[float]:
        """Of this objective; slow ones by histogram, in which they are a bucket off."""
        failed = _added(self._sums("loadtest:failures:rate"), self._sums("loadtest:dropped:rate"))
        if objective.key == "success":
            return failed
        good = self._histogram()
        slow = f"histogram_count({good}) * (1 - histogram_fraction(0, {objective.limit}, {good}))"
        return _added(failed, self._values(slow))

    def mean_seconds(self) -> list[float]:
        """Of good answers; none where a batch has none."""
        values = self._values(f"histogram_avg({self._histogram()})")
        return values if all(values) else []

    def _histogram(self) -> str:
        return latency_histogram(f"{self._length_ms}ms", "", self._selector)

    def _sums(self, series: str) -> list[float]:
        window = f"{{{self._selector}}}[{self._length_ms}ms]"
        return self._values(f"sum(sum_over_time({series}{window}))")

    def _values(self, expression: str) -> list[float]:
        first, last = self._ends_ms[0] / 1000, self._ends_ms[-1] / 1000
        found = self._prometheus.values(expression, first, last, self._length_ms / 1000)
        values = (found.get(end // 1000, 0.0) for end in self._ends_ms)
        return [value if math.isfinite(value) else 0.0 for value in values]


def _added(*columns: Sequence[float]) -> list[float]:
    return [sum(values) for values in zip(*columns, strict=True)]


def _window_end(step: Step, phase: Phase, plan: Plan) -> datetime:
    if plan.spike:
        return step.ended
    return step.started + timedelta(seconds=phase.duration_seconds)


def _within_slo(happened: PhaseSummary) -> int:
    """Good answers but those above the loosest latency limit, which fewest are."""
    too_slow = min(happened.slow.values(), default=0)
    return happened.requests - happened.failures - too_slow


def _rate(count: int, seconds: float) -> float | None:
    return round(count / seconds, 3) if seconds > 0 else None


# Answers of one wave are as far apart as their users' starts were, and a user whose start was late
# leaves a gap of that size. Between waves stays what the spread leaves of the service time.
_SMALLEST_GAP_SECONDS = 0.25
_LARGEST_GAP_SECONDS = 1.0


def good_answer_seconds(influxdb: InfluxDB, testid: str, step: Step) -> list[float]:
    """When a step's good answers came, in seconds since its start. Raises LabError when InfluxDB
    does not answer."""
    rows = influxdb.query(
        'SELECT "value" FROM "http_req_duration" WHERE '
        f"\"testid\" = '{testid}' AND \"scenario\" = '{step.phase}' "
        "AND \"expected_response\" = 'true'"
    )
    start = step.started.timestamp()
    return [row["time"] / 1000 - start for row in rows]


def missing_samples(influxdb: InfluxDB, testid: str, step: Step) -> int:
    """Requests of a step that InfluxDB does not have: k6 drops what it could not write."""
    rows = influxdb.query(
        'SELECT count("value") AS "stored" FROM "http_reqs" WHERE '
        f"\"testid\" = '{testid}' AND \"scenario\" = '{step.phase}'"
    )
    return max(0, step.requests - (rows[0]["stored"] if rows else 0))


def waves(answer_seconds: Sequence[float], start_spread_seconds: float) -> list[Wave]:
    """Groups times (seconds since the start) that no gap above the spread of the start separates.

    >>> waves([5.0, 5.1, 10.0], start_spread_seconds=0.1)
    [Wave(answers=2, at_seconds=5.05), Wave(answers=1, at_seconds=10.0)]
    """
    gap = min(start_spread_seconds + _SMALLEST_GAP_SECONDS, _LARGEST_GAP_SECONDS)
    groups: list[list[float]] = []
    for seconds in sorted(answer_seconds):
        if groups and seconds - groups[-1][-1] <= gap:
            groups[-1].append(seconds)
        else:
            groups.append([seconds])
    return [Wave(answers=len(group), at_seconds=round(median(group), 3)) for group in groups]


def _workers(
    expected: Prediction | None, step: Step, answer_seconds: Sequence[float]
) -> int | None:
    if expected is None or expected.service_seconds is None:
        return None
    busy = expected.workers_busy_seconds or 0.0
    spread = step.start_spread_seconds or 0.0
    return workers_seen(answer_seconds, expected.service_seconds, spread, busy)


# Of a service time: users who begin within it have all begun to be served, or wait, before the
# second answer of any worker; a wave takes up to 8 % longer than the service time.
_LONGEST_START, _LONGEST_WAVE = 0.92, 1.08
# So many service times, in which all workers are busy, show how many there are.
_FEWEST_WAVES = 2


def workers_seen(
    answer_seconds: Sequence[float], service: float, spread: float, busy: float
) -> int | None:
    """How many workers answered, from the times of good answers since the start, of users who began
    over `spread` seconds: each worker has one answer before two service times are over. Where users
    begin over more than that, by the answers until `busy`, when the first worker is free; None
    where that is too soon.

    >>> workers_seen([5.0, 5.1, 10.0, 10.1, 10.2], 5, 0.1, 10)
    2
    """
    if spread <= _LONGEST_START * service:
        return sum(at < 2 * service for at in answer_seconds)
    begin = spread + _LONGEST_WAVE * service
    if busy - begin < _FEWEST_WAVES * service:
        return None
    return round(sum(begin <= at < busy for at in answer_seconds) * service / (busy - begin))
