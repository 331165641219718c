"""What a step missed: one line for each objective, and for what judging asks besides them."""

from dataclasses import dataclass
from typing import Literal

from spikelab.judge import started_enough, with_drops
from spikelab.record import Step
from spikelab.report import words
from spikelab.slo import parse_objective
from spikelab.units import show_seconds

Result = Literal["met", "missed"]
RATE_HELD = "rate held"


@dataclass(frozen=True)
class Check:
    """One thing that a step had to do. `seen` says what it did."""

    name: str
    result: Result
    seen: str


def checks(step: Step) -> list[Check]:
    """Of an open loop whether its rate was held, and every objective of the step."""
    success = words.success(step) or 0.0
    latency = with_drops(step.latency_with_failures_seconds, step.requests, step.dropped)
    found = []
    for text in step.slo:
        objective = parse_objective(text)
        value = success if objective.key == "success" else latency[objective.key]
        met = objective.holds(success, latency)
        found.append(Check(text, "met" if met else "missed", _seen(objective.key, value)))
    if step.offered_rate is None:
        return found
    return [_rate_held(step, all(check.result == "met" for check in found)), *found]


def missed(step: Step) -> list[str]:
    """What a step missed, such as ``p95 < 250ms: 1.2 s``."""
    return [f"{each.name}: {each.seen}" for each in checks(step) if each.result == "missed"]


def _seen(key: str, value: float | None) -> str:
    if key == "success":
        return words.share(value)
    return "failures reach it" if value is None else show_seconds(value)


def _rate_held(step: Step, objectives_met: bool) -> Check:
    started = f"{words.rate(step.started_rate)} of {words.rate(step.offered_rate)}/s started"
    if not started_enough(step):
        return Check(RATE_HELD, "missed", f"only {started}")
    if step.verdict == "fail" and objectives_met:
        # Of all that judging asks for only the queue is left.
        late = show_seconds(step.drain_seconds)
        return Check(RATE_HELD, "missed", f"a queue was left: the last answer came {late} after it")
    return Check(RATE_HELD, "met", started)
