"""The prediction of a run, and whether what was measured is as predicted.

From the plan, the target's effective settings and the kernel's limit, before the run: a spike by
the model at every pace that a machine may have (docs/connections.md, section 8), a rate by threads
and service time. Only of what the model knows: `/hello`, whose answer blocks a worker for a known
time, on the lab's own target with nothing in between. After the run each figure is checked against
its tolerance.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from urllib.parse import parse_qs, urlsplit

from spikelab.plans.model import Plan
from spikelab.prediction.model import Outcome, Server, Spike, simulate
from spikelab.results.run import Host, Prediction, RunRecord, Step, Wave
from spikelab.target import ConnectionCapacity
from spikelab.units import parse_duration, parse_whole_number, plural, show_rate, show_seconds

# Setting to its value, as the target exports them; None: unlimited.
Effective = Mapping[str, float | None]
_PATH = "/hello"
# Another build of the target may export others.
_NEEDED = {
    "TOMCAT_MAX_THREADS",
    "TOMCAT_MAX_CONNECTIONS",
    "TOMCAT_MAX_QUEUE_CAPACITY",
    "TOMCAT_MAX_KEEP_ALIVE_REQUESTS",
    "TOMCAT_KEEP_ALIVE_TIMEOUT",
}
# What a wave of answers takes longer than the requests' own time, while hundreds of threads wake
# on few cores; with START_SECONDS it holds the ladder's runs (docs/connections.md, section 8).
PACES = (1.0, 1.02, 1.04, 1.06, 1.08)
# A burst that fills the accept queue comes back with the first retries, at 1, 2 and 3 s: only where
# the users are more than it holds.
START_SECONDS = 3.0
# An answer's own way where nobody tries again: connecting, and a server that has just been started.
_WAY_SECONDS = 0.25
# By how much the server's own timer may be above the service time besides, on a mean.
_OVERHEAD_SECONDS = 0.025
# Clocks that count in milliseconds.
_CLOCKS = 0.01
# Users who begin within this share of a service time are all at work, or wait, before the second
# answer of the first worker.
_LONGEST_START = 2 - PACES[-1]
# Else so many more users than workers must be there.
_CROWDED = 1.1
# Tomcat looks for connections that were idle too long once a second.
_IDLE_LATE_SECONDS = 1.0
# An accept queue that holds less than this share of the users loses so many of their SYNs, again
# and again, that it may not be full before the first answers: 1,204 of 1,223 were seen.
_SHORT_QUEUE_SHARE = 0.01
_SHORT_QUEUE_FILLED = 0.9
# A peak that lasts shorter may be over before all users are there, or between two scrapes.
_SEEN_SECONDS = 5.0
_MOST_WAVES = 100
# Failures of another kind than predicted: 3 resets of 10,000 users were seen whose cause we do not
# know (docs/connections.md, section 3).
STRAY_SHARE = 0.001


def fill_prediction(record: RunRecord, plan: Plan, capacity: ConnectionCapacity | None) -> None:
    """A record's prediction, or its predicted rate; neither where the model does not apply."""
    effective = record.target.effective
    service = service_seconds(plan, effective)
    if service is None or not _NEEDED.issubset(effective):
        return
    if all(phase.kind == "rate" for phase in plan.phases):
        record.predicted_rate = predicted_rate(effective, service)
    elif plan.spike and len(plan.phases) == 1 and capacity:
        record.prediction = _spike_prediction(plan, effective, capacity, service, record.host)


def service_seconds(plan: Plan, effective: Effective) -> float | None:
    """How long a request of the plan keeps a worker; None where that is not known."""
    parts = urlsplit(plan.request.path)
    if plan.urls or parts.path != _PATH:
        return None
    asked = parse_qs(parts.query).get("ms")
    milliseconds = parse_whole_number(asked[0]) if asked else effective.get("TARGET_HELLO_DELAY_MS")
    return None if milliseconds is None else milliseconds / 1000


def predicted_rate(effective: Effective, service: float) -> float | None:
    """Requests/s that keep all workers busy: threads / service time. None: no such limit."""
    threads = effective.get("TOMCAT_MAX_THREADS")
    return round(threads / service, 3) if threads is not None and service > 0 else None


def _spike_prediction(
    plan: Plan, effective: Effective, capacity: ConnectionCapacity, service: float, host: Host
) -> Prediction:
    linear = host.limits.get("tcp_syn_linear_timeouts")
    spike = Spike(
        users=plan.phases[0].users,
        service_seconds=service,
        timeout_seconds=parse_duration(plan.request.timeout),
        keep_alive=plan.request.keep_alive,
        # A kernel before 6.5 has no such setting.
        syn_linear_timeouts=linear if isinstance(linear, int) else 0,
    )
    return predict(server_of(effective, capacity.accept_queue_limit), spike)


def server_of(effective: Effective, accept_queue_limit: int) -> Server:
    """The target as the model sees it."""
    closes_each = effective["TOMCAT_MAX_KEEP_ALIVE_REQUESTS"] == 1
    return Server(
        threads=_whole(effective["TOMCAT_MAX_THREADS"]),
        max_connections=_whole(effective["TOMCAT_MAX_CONNECTIONS"]) or 1,
        accept_queue_limit=accept_queue_limit,
        idle_seconds=0.0 if closes_each else (effective["TOMCAT_KEEP_ALIVE_TIMEOUT"] or 0.0) / 1000,
        worker_queue_limit=_whole(effective["TOMCAT_MAX_QUEUE_CAPACITY"]),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def predict(server: Server, spike: Spike) -> Prediction:
    """Each figure as settings give it, from the least to the most that the tolerances allow."""
    nominal = simulate(server, spike)
    outcomes = [
        _outcome(server, spike, pace, half_open)
        for pace, half_open in product(PACES, (False, True))
    ]
    outcomes.append(nominal)
    least = nominal.established_peak
    if server.accept_queue_limit + 1 < _SHORT_QUEUE_SHARE * spike.users:
        least = int(_SHORT_QUEUE_FILLED * least)
        outcomes.append(simulate(server, replace(spike, users=least)))
    lasts = [o.last_answer_seconds for o in outcomes if o.last_answer_seconds is not None]
    goods = [outcome.good for outcome in outcomes]
    waves = nominal.waves if len(nominal.waves) <= _MOST_WAVES else []
    start = START_SECONDS if spike.users > server.accept_queue_limit + 1 else _WAY_SECONDS
    lasting = min(outcome.held_seconds for outcome in outcomes) >= _SEEN_SECONDS
    return Prediction(
        established_peak=nominal.established_peak,
        established_least=least if lasting else 0,
        established_most=min(spike.users, server.capacity),
        good=nominal.good,
        good_least=min(goods),
        good_most=max(goods),
        failed=spike.users - nominal.good,
        failure_classes=_classes(outcomes),
        waves=[Wave(answers=users, at_seconds=round(at, 3)) for at, users in waves],
        last_answer_seconds=_rounded(nominal.last_answer_seconds),
        last_answer_least_seconds=_rounded(min(lasts, default=None)),
        last_answer_most_seconds=_rounded(max(lasts) + start if lasts else None),
        service_seconds=spike.service_seconds,
        workers_least=_workers_least(outcomes, start, spike.service_seconds),
        workers_busy_seconds=_rounded(min(each.busy_seconds or 0.0 for each in outcomes)),
        workers_most=math.ceil(PACES[-1] * max(outcome.busy_peak for outcome in outcomes)),
    )


def _workers_least(outcomes: Sequence[Outcome], start: float, service: float) -> int:
    """How many are seen to answer where all workers are busy all the time; 0 where they need not
    be: users whose SYN comes again after others were answered may leave workers free."""
    enough = 1.0 if start <= _LONGEST_START * service else _CROWDED
    workers = min(each.busy_peak for each in outcomes)
    waits = all(
        each.waiting_peak and each.busy_peak + each.waiting_peak >= enough * each.busy_peak
        for each in outcomes
    )
    return math.ceil(workers / PACES[-1]) if waits else 0


def _outcome(server: Server, spike: Spike, pace: float, half_open: bool) -> Outcome:
    late = _IDLE_LATE_SECONDS if pace == PACES[-1] and server.idle_seconds else 0.0
    return simulate(
        replace(server, idle_seconds=server.idle_seconds + late),
        replace(spike, service_seconds=spike.service_seconds * pace),
        half_open,
    )


def _classes(outcomes: Sequence[Outcome]) -> list[str]:
    """In one of which each failed request should be: section 3."""
    classes = []
    if any(outcome.unanswered for outcome in outcomes):
        if any(outcome.outside for outcome in outcomes):
            classes.append("dial_timeout")
        classes.append("request_timeout")
    if any(outcome.rejected for outcome in outcomes):
        classes.append("other")
    return classes


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


@dataclass(frozen=True)
class PredictionCheck:
    """One figure: `within` is whether it is as predicted, None where it was not measured."""

    name: str
    predicted: str
    measured: str
    within: bool | None
    reason: str = ""

    @property
    def text(self) -> str:
        """``8,293 (8,293)``: measured, and in brackets predicted."""
        return f"{self.measured or 'unknown'} ({self.predicted})"


def checks(record: RunRecord) -> list[PredictionCheck]:
    """Of a run with a prediction and its one step, or with a predicted rate; else none."""
    if record.predicted_rate is not None and record.steps:
        return _rate_checks(record, record.predicted_rate)
    if record.prediction is None or len(record.steps) != 1:
        return []
    expected, step, peak = record.prediction, record.steps[0], record.connections.established_peak
    found = [
        _count("established", expected.established_least, peak, expected.established_most),
        _count("good", expected.good_least, step.good, expected.good_most),
        _last_answer(expected, step),
        _failures(expected, step),
    ]
    if expected.service_seconds is None:
        return found  # of a record from before these were predicted
    workers = _count("workers", expected.workers_least, step.workers_seen, expected.workers_most)
    return [*found, _service(expected.service_seconds, [step]), workers]


def _service(service: float, steps: Sequence[Step]) -> PredictionCheck:
    """The mean of good answers by the server's own timer, of all steps together."""
    timed = [
        (step.server_mean_seconds, step.good)
        for step in steps
        if step.server_mean_seconds is not None and step.good
    ]
    least, most = service * (1 - _CLOCKS), service * PACES[-1] + _OVERHEAD_SECONDS
    shown = f"{show_seconds(service)} to {show_seconds(most)}"
    if not timed:
        return PredictionCheck("service time", shown, "", None)
    mean = sum(mean * good for mean, good in timed) / sum(good for _, good in timed)
    return PredictionCheck("service time", shown, show_seconds(mean), least <= mean <= most)


def _rate_checks(record: RunRecord, rate: float) -> list[PredictionCheck]:
    """Of rates: what the server answered a second, and how long a request kept a worker."""
    threads = record.target.effective.get("TOMCAT_MAX_THREADS")
    service = threads / rate if threads else None
    return [
        _rate(record.steps, rate, service or 0.0),
        *([_service(service, record.steps)] if service else []),
    ]


def _rate(steps: Sequence[Step], rate: float, service: float) -> PredictionCheck:
    """As many as the workers can answer, where so many were asked for; never more, nor fewer than
    were asked for while workers are free. By the server's timer, which sees answers that nobody
    waits for any more."""
    seen = [step for step in steps if step.server_rate is not None and not step.generator.limited]
    fastest = max((step.server_rate or 0.0 for step in seen), default=0.0)
    least, most = rate / PACES[-1], rate * (1 + _CLOCKS)
    check = partial(
        PredictionCheck,
        "rate",
        f"{show_rate(least)} to {show_rate(most)}/s",
        f"{show_rate(fastest)}/s" if seen else "",
    )
    if fastest > most:
        return check(within=False, reason="more than the workers can answer")
    for step in seen:
        asked = min(least, step.started_rate or 0.0)
        if (step.server_rate or 0.0) < (1 - _first_answers(step, service)) * asked:
            slow = f"{show_rate(step.server_rate)}/s of {show_rate(step.started_rate)}/s asked for"
            return check(within=False, reason=f"{step.name}: {slow}")
    if any((step.offered_rate or 0.0) >= rate for step in seen):
        return check(within=True)
    missing = f"no step asked for {show_rate(rate)}/s" if seen else ""
    return check(within=None, reason=missing)


def _first_answers(step: Step, service: float) -> float:
    """The share of a step's window that is over before the first answer can come; and two readings
    of the timer, each up to a hundredth of a second off."""
    window = max(step.seconds - step.drain_seconds, 0.1)
    return min(1.0, (service * PACES[-1] + _WAY_SECONDS) / window + _CLOCKS)


def _count(name: str, least: int, measured: int | None, most: int) -> PredictionCheck:
    return PredictionCheck(
        name,
        f"{least:,}" if least == most else f"{least:,} to {most:,}",
        "" if measured is None else f"{measured:,}",
        None if measured is None else least <= measured <= most,
    )


def _failures(expected: Prediction, step: Step) -> PredictionCheck:
    counts = step.errors.by_class()
    strays = sum(n for name, n in counts.items() if name not in expected.failure_classes)
    return PredictionCheck(
        "failures",
        " or ".join(expected.failure_classes) or "none",
        ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none",
        strays <= STRAY_SHARE * step.requests,
    )


def _last_answer(expected: Prediction, step: Step) -> PredictionCheck:
    """Since the start of the users: of good answers alone, which raw samples tell where some
    failed."""
    least, most = expected.last_answer_least_seconds, expected.last_answer_most_seconds
    if most is not None and step.start_spread_seconds and expected.service_seconds is not None:
        # Users who begin later are answered later.
        most += step.start_spread_seconds
    shown = "no good answer" if least is None else f"{show_seconds(least)} to {show_seconds(most)}"
    measured = last_good_seconds(step)
    if measured is None or least is None or most is None:
        # Without raw samples the last answer of a run with failures is not known.
        return PredictionCheck("last answer", shown, "" if step.good else "no good answer", None)
    return PredictionCheck("last answer", shown, show_seconds(measured), least <= measured <= most)


def last_good_seconds(step: Step) -> float | None:
    """When the last good answer came, in seconds since the start; None where that is not known."""
    if step.last_good_seconds is not None:
        return step.last_good_seconds
    if step.good and not step.failures:
        return step.seconds
    return None


def within(record: RunRecord) -> bool | None:
    """Whether all that was measured is as predicted; None where nothing was."""
    known = [check.within for check in checks(record) if check.within is not None]
    return all(known) if known else None


def measured_count(record: RunRecord) -> tuple[int, int]:
    """How many of the predicted figures were measured, and how many there are."""
    found = checks(record)
    return sum(check.within is not None for check in found), len(found)


def in_short(record: RunRecord) -> str:
    """``yes: 3 of 4 figures measured, all within``; or what is not as predicted, or why nothing was
    measured; empty without a prediction."""
    found = checks(record)
    if not found:
        return ""
    wrong = [_wrong(check) for check in found if check.within is False]
    if wrong:
        return f"no: {', '.join(wrong)}"
    known, all_of_them = measured_count(record)
    missing = "".join(f" ({each.reason})" for each in found if each.within is None and each.reason)
    if not known:
        return f"unknown: none of {plural(all_of_them, 'figure')} measured{missing}"
    return f"yes: {known} of {plural(all_of_them, 'figure')} measured, all within{missing}"


def _wrong(check: PredictionCheck) -> str:
    return f"{check.name} {check.text}" + (f": {check.reason}" if check.reason else "")


def as_predicted(spikes: Sequence[RunRecord]) -> str:
    """How many of them came so, in words."""
    known, figures = map(sum, zip(*map(measured_count, spikes), strict=True))
    said = (
        f"{sum(within(spike) is True for spike in spikes)} of {len(spikes)} runs came as predicted"
    )
    return said if known == figures else f"{said} ({known} of {figures} figures measured)"


def predicted_rates(records: Iterable[RunRecord]) -> dict[str, float]:
    """Requests/s by variant (empty without one), where all of its runs have the same prediction."""
    found: dict[str, set[float]] = {}
    unknown = set()
    for record in records:
        for variant in {step.variant or "" for step in record.steps}:
            if record.predicted_rate is None:
                unknown.add(variant)
            else:
                found.setdefault(variant, set()).add(record.predicted_rate)
    return {
        variant: max(rates)
        for variant, rates in found.items()
        if len(rates) == 1 and variant not in unknown
    }


def predicted_capacity(
    parameter: str, held: float | None, failed: float | None, records: Iterable[RunRecord]
) -> list[str]:
    """Of a search over this parameter, in words; none where there is no prediction of it. `held`,
    `failed`: its highest value that passed, its lowest that failed."""
    rates = predicted_rates(records) if parameter == "rate" else {}
    return [rate_text(rate, held, failed) for rate in rates.values()]


def rate_text(rate: float, held: float | None, failed: float | None) -> str:
    """``400/s predicted from threads and service time: as predicted``, or why not, of the highest
    rate that passed and the lowest that failed. A short step passes with a short queue."""
    least, most = rate / PACES[-1], rate * PACES[-1]
    said = rate_words(rate)
    if held is not None and held > most:
        return f"{said}: not as predicted, more than {show_rate(most)}/s passed"
    if failed is not None and failed < least:
        return f"{said}: not as predicted, less than {show_rate(least)}/s failed"
    if failed is None and (held or 0.0) < least:
        return f"{said}: not reached"
    if failed is not None and failed > most and (held or 0.0) < least:
        # Whatever lies between: an answer that was found is narrower.
        return f"{said}: not tested near it"
    return f"{said}: as predicted"


def rate_words(rate: float) -> str:
    """``400/s predicted from threads and service time``"""
    return f"{rate:,.6g}/s predicted from threads and service time"
