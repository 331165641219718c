"""Verdicts. Three-valued: pass, fail, inconclusive. A run that the stack or the generator spoiled
is invalid and decides nothing."""

from collections.abc import Sequence

from spikelab.drivers.summary import PhaseSummary
from spikelab.plan import Phase
from spikelab.record import Generator, Step, Verdict
from spikelab.slo import Objective

# Above this share of all cores the driver competes with itself: a late answer may be its own.
_LIMITED_SHARE_OF_CORES = 0.85


def generator_limited(cores_used: float | None, cpus: int) -> bool | None:
    """Whether the driver's CPU was the limit; None where it was not measured."""
    return None if cores_used is None else cores_used > _LIMITED_SHARE_OF_CORES * cpus


def spoiled(asked: Phase, happened: PhaseSummary) -> list[str]:
    """Why a phase is no valid measurement; empty when it is."""
    reasons = []
    if happened.requests < asked.value:
        reasons.append(f"{asked.name}: only {happened.requests:,} of {asked.value:,} users started")
    return reasons


def judge_step(
    objectives: Sequence[Objective],
    requests: int,
    failures: int,
    latency_seconds: dict[str, float | None],
    generator: Generator,
) -> Verdict:
    """A missed objective fails; with the generator at its limit nothing is decided."""
    if generator.limited or not requests:
        return "inconclusive"
    success = (requests - failures) / requests
    met = all(objective.holds(success, latency_seconds) for objective in objectives)
    return "pass" if met else "fail"


def judge_run(valid: bool, steps: Sequence[Step]) -> Verdict:
    """Fail when any step fails, pass when all pass."""
    verdicts = {step.verdict for step in steps}
    if not valid or not verdicts:
        return "inconclusive"
    if "fail" in verdicts:
        return "fail"
    return "inconclusive" if "inconclusive" in verdicts else "pass"
