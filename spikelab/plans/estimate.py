"""How long a plan takes, all its runs together, before any of them."""

import math
import re
from dataclasses import dataclass

from spikelab.plans.load import plan_of
from spikelab.plans.model import Phase, Plan
from spikelab.plans.studies import CapacitySearch, Variant, combinations
from spikelab.settings import load_target_declaration
from spikelab.statistics.search import Observation, next_rate
from spikelab.units import parse_duration, show_duration

# What a run takes beside its load and its cool-down, on the host runtime: the target comes to rest
# or starts again (3 s), the driver starts, the last scrapes are waited for (3 s).
RUN_OVERHEAD_SECONDS = 6.0

_MILLISECONDS = re.compile(r"[?&]ms=(\d+)(&|$)")


@dataclass(frozen=True)
class Estimate:
    """`at_most`: nobody knows how long the answers take, so it is the longest they may."""

    seconds: float
    runs: int
    at_most: bool = False

    def __str__(self) -> str:
        return ("up to " if self.at_most else "") + show_duration(self.seconds)


def estimate(plan: Plan) -> Estimate:
    """Of the whole plan: its search for capacity, or every value of its sweep with every variant in
    every repeat. Raises UsageError for a value that makes no plan."""
    if plan.capacity is not None:
        return _of_search(plan, plan.capacity)
    variants: list[Variant | None] = [*plan.variants]
    cells = [
        run_estimate(plan_of(plan, values, variant), variant)
        for variant in variants or [None]
        for values in combinations(plan.sweep.values if plan.sweep else {})
    ]
    return Estimate(
        seconds=plan.repeats * sum(cell.seconds for cell in cells),
        runs=plan.repeats * len(cells),
        at_most=any(cell.at_most for cell in cells),
    )


def run_estimate(plan: Plan, variant: Variant | None = None) -> Estimate:
    """Of one run of the plan: its load, its cool-down, and what a run takes beside them."""
    ends = [_end_seconds(plan, phase, variant) for phase in plan.phases]
    at_most = any(known is None for _, known in ends)
    load = max(longest if known is None else known for longest, known in ends)
    seconds = load + parse_duration(plan.cool_down) + RUN_OVERHEAD_SECONDS
    return Estimate(seconds, runs=1, at_most=at_most)


def _end_seconds(plan: Plan, phase: Phase, variant: Variant | None) -> tuple[float, float | None]:
    """The latest end of a phase, and the expected one where that is known."""
    latest = phase.start_seconds + phase.duration_seconds
    if not plan.spike:
        return latest, latest
    waits = _spike_seconds(plan, phase, variant)
    return latest, None if waits is None else min(latest, phase.start_seconds + waits)


def _spike_seconds(plan: Plan, phase: Phase, variant: Variant | None) -> float | None:
    """Until every user of a spike on the lab's own /hello has its answer: so many waves of the
    worker threads. None for another target or path."""
    foreign = plan.foreign_urls or (variant is not None and variant.url is not None)
    if foreign or plan.request.path.partition("?")[0] != "/hello":
        return None
    own = variant.settings if variant else {}
    settings = load_target_declaration().resolve(plan.target.settings, own)
    given = _MILLISECONDS.search(plan.request.path)
    # Of any number of digits: too many are infinite, and the phase's own end comes first.
    delay_ms = float(given[1] if given else settings["TARGET_HELLO_DELAY_MS"])
    workers = int(settings["TOMCAT_MAX_THREADS"])
    waves = 1 if settings["TOMCAT_VIRTUAL_THREADS"] else math.ceil(phase.value / workers)
    return waves * delay_ms / 1000


def _of_search(plan: Plan, search: CapacitySearch) -> Estimate:
    """With a capacity in the middle between the first value and the highest."""
    runs = _expected_runs(search)
    seconds = runs * run_estimate(plan).seconds
    if search.overload:
        seconds += parse_duration(search.overload.duration) + RUN_OVERHEAD_SECONDS
        seconds += parse_duration(search.overload.recovery)
    return Estimate(seconds, runs + (1 if search.overload else 0))


def _expected_runs(asked: CapacitySearch) -> int:
    search = asked.search()
    capacity = math.sqrt(asked.first * asked.highest)
    steps: list[Observation] = []
    while (rate := next_rate(search, steps)) is not None:
        steps.append(Observation(rate, "pass" if rate <= capacity else "fail"))
    return len(steps)
