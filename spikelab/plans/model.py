"""Plans: experiments as data (plans/*.yaml). What to run, on which settings, judged how.

A mistake that only the parts of a plan together make is at the key that makes it. What a driver's
script can run is read where the script itself says it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.objectives import Objective, parse_objective
from spikelab.plans.parameters import (
    PROXY_PREFIX,
    Amount,
    Duration,
    Name,
    Objectives,
    Parameter,
    PhaseName,
    Preset,
    Strict,
    Url,
    a_second_or_more,
    above_zero,
    below_an_hour,
    check_values,
    mistake,
)
from spikelab.plans.studies import (
    CapacitySearch,
    CompareBy,
    Sweep,
    Variant,
    check_settings,
    variants_of,
)
from spikelab.results.run import Scalar
from spikelab.units import parse_duration

Sink = Literal["prometheus", "influxdb"]
# Raw samples of more requests than these cost more than they tell.
_MOST_RAW_REQUESTS = 50_000
# A rate's users, where neither the plan nor a latency objective says: so many seconds of it may be
# on their way. k6/lib/executors.js has the same for runs by hand.
_RATE_SECONDS_IN_FLIGHT = 2.0
_FEWEST_RATE_USERS = 10
# Requests by chance: so many standard deviations more may be under way than the mean.
_RATE_DEVIATIONS = 4.0
# k6 draws how many of them come in each block of time, and a user waits for its moment for up to
# two blocks (k6/lib/poisson.js).
_BLOCK_SECONDS = 0.1
_MOST_BLOCKS = 3600


def _held_seconds(phase: "Phase") -> float:
    return 2 * max(_BLOCK_SECONDS, phase.duration_seconds / _MOST_BLOCKS)


class Phase(Strict):
    """A stretch of load. One that is not judged, such as a warm-up, is no step of the record.

    `rate`: an open loop of `value` requests a second. `users`: a closed loop of so many users; in a
    spike all at once and one request each, and `duration` is then the longest they may take.
    `jitter`: each request of a rate begins up to so much later than due, at random. `arrival`: a
    rate's requests come evenly, or as a Poisson process: `value` a second on average.
    """

    name: PhaseName
    kind: Literal["users", "rate"]
    value: Amount
    start: Duration | None = None
    duration: Annotated[Duration, AfterValidator(a_second_or_more)]
    url: Url | None = None
    ramp_up: Duration | None = None
    period: Annotated[Duration, AfterValidator(above_zero)] | None = None
    body_bytes: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    most_users: Annotated[int, Field(ge=1)] | None = None
    jitter: Duration | None = None
    arrival: Literal["constant", "poisson"] = "constant"
    slo: Objectives | None = None
    judged: bool = True

    @model_validator(mode="after")
    def _kind_and_keys_agree(self) -> Self:
        if self.kind == "users":
            if self.value != int(self.value):
                raise ValueError(f"value {self.value}: users are a whole number")
            self.value = int(self.value)
            if self.most_users or self.jitter or self.by_chance:
                raise ValueError("most_users, jitter and arrival belong to the kind rate")
            if parse_duration(self.ramp_up or "0s") > self.duration_seconds:
                raise ValueError("ramp_up is longer than the phase's duration")
        elif self.ramp_up or self.period:
            raise ValueError("ramp_up and period belong to the kind users")
        elif self.jitter_seconds > self.duration_seconds:
            raise ValueError("jitter is longer than the phase's duration")
        elif self.jitter_seconds and self.by_chance:
            raise ValueError("requests come by chance without jitter: leave it or arrival out")
        return self

    @property
    def start_seconds(self) -> float:
        """Since the start of the run; a plan has filled it in."""
        return parse_duration(self.start or "0s")

    @property
    def duration_seconds(self) -> float:
        return parse_duration(self.duration)

    @property
    def jitter_seconds(self) -> float:
        """How much later than due a request may start, at random."""
        return parse_duration(self.jitter or "0s")

    @property
    def by_chance(self) -> bool:
        """Its requests are a Poisson process, of which only the mean rate is known."""
        return self.arrival == "poisson"

    @property
    def users(self) -> int:
        """Virtual users that it may take."""
        return self.most_users or int(self.value)


Named = TypeVar("Named", Phase, Variant)


def _unique_names(items: list[Named]) -> list[Named]:
    names = [item.name for item in items]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise mistake(f"the name '{name}' stands twice", place, "name")
    return items


DriverName = Literal["k6", "locust"]


def _known_scripts(value: str | dict[DriverName, str]) -> str | dict[DriverName, str]:
    if isinstance(value, dict):
        for driver, name in value.items():
            require_script(name, driver)
        if not value:
            raise ValueError("name a script, or one for each driver")
    elif value not in known_scripts("locust"):
        require_script(value, "k6")
    return value


class Target(Strict):
    """Where the load goes: without a url, the lab's own target with these settings."""

    url: Url | None = None
    settings: dict[str, Scalar] = {}


def _known_status(value: int | str) -> int | str:
    if not re.fullmatch(r"[2-5](xx|\d\d)", str(value)):
        raise ValueError(f"{value} is neither a status nor a class of them: write 302 or 2xx")
    return value


Status = Annotated[int | str, AfterValidator(_known_status)]


class Request(Strict):
    """The one request that a virtual user makes. `expect`: the statuses of a good answer; a
    redirect is an answer, and is not followed."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    path: Annotated[str, Field(pattern="^/")] = "/"
    headers: dict[str, str] = {}
    body: str | None = None
    timeout: Annotated[Duration, AfterValidator(below_an_hour)] = "60s"
    keep_alive: bool = True
    expect: Annotated[list[Status], Field(min_length=1)] = ["2xx"]


def in_order(phases: list[Phase]) -> list[Phase]:
    """A phase without a start follows the one before it."""
    end = 0.0
    for phase in phases:
        if phase.start is None:
            phase.start = f"{round(end, 3):.10g}s"
        end = phase.start_seconds + phase.duration_seconds
    return phases


# How users of a phase go on: `once` is a request each, `ramp` a rate that changes evenly.
Loop = Literal["open", "closed", "once", "ramp"]


@dataclass(frozen=True)
class PlanSource:
    """What a plan was made from: the keys of its file, changed by the command line, before its
    parameters' `values` are filled in; `sinks` are those that the command line adds.

    `made`: the plans of other values, each checked once.
    """

    path: Path
    data: Mapping[str, Any]
    values: Mapping[str, Scalar]
    sinks: Sequence[str] = ()
    made: dict[str, "Plan"] = field(default_factory=dict, init=False, compare=False, repr=False)


class Plan(Strict):
    """A whole plan. Rates are requests per second, durations carry their unit."""

    _source: PlanSource | None = PrivateAttr(None)

    name: Name
    about: str
    driver: DriverName = "k6"
    script: Annotated[str | dict[DriverName, str], AfterValidator(_known_scripts)]
    parameters: dict[str, Parameter] = {}
    target: Target = Target()
    request: Request = Request()
    phases: Annotated[
        list[Phase],
        Field(min_length=1),
        AfterValidator(_unique_names),
        AfterValidator(in_order),
    ]
    phase_order: Literal["as-written", "alternating"] = "as-written"
    slo: Objectives = []
    variants: Annotated[list[Variant], AfterValidator(_unique_names)] = []
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    cool_down: Duration = "0s"
    sweep: Sweep | None = None
    capacity: CapacitySearch | None = None
    compare: CompareBy | None = None
    presets: dict[Name, Preset] = {}
    sinks: list[Sink] | None = None
    needs: list[Literal["redis"]] = []

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        check_driver(self)
        check_judged(self)
        check_order(self)
        check_settings(self.target.settings, "target", "settings")
        for place, variant in enumerate(self.variants):
            check_settings(variant.settings, "variants", place, "settings")
        if self.sweep:
            self.sweep.check_settings()
        self._check_studies()
        return self

    def _check_studies(self) -> None:
        """What is said of several runs speaks of what the plan has. Raises a mistake."""
        for place, variant in enumerate(self.variants):
            check_values(self.parameters, variant.set, "variants", place, "set")
        judged = [phase for phase in self.phases if phase.judged]
        if self.sweep:
            self.sweep.check(self.parameters, self.variants)
        if self.capacity:
            rates = all(phase.kind == "rate" for phase in judged)
            self.capacity.check(self.parameters, rates)
        if self.compare:
            if len(self.variants) == 1:
                text = "one variant is compared with nothing: give two, or none"
                raise mistake(text, "variants")
            swept = self.sweep.values if self.sweep else {}
            self.compare.check(self.parameters, swept, [phase.name for phase in judged])

    @model_validator(mode="after")
    def _a_grid_is_variants(self) -> Self:
        if self.sweep and self.sweep.settings:
            self.variants = variants_of(self.sweep.settings)
        check_runs(self)
        return self

    @model_validator(mode="after")
    def _rates_have_their_users(self) -> Self:
        """As many as are under way when the longest latency objective is just met."""
        for phase in self.phases:
            if phase.kind == "rate" and phase.most_users is None:
                limits = [o.limit for o in self.objectives_of(phase) if o.key != "success"]
                seconds = max(1.0, *limits) if limits else _RATE_SECONDS_IN_FLIGHT
                highest = max(self._rates(phase))
                seconds += _held_seconds(phase) if phase.by_chance else 0
                under_way = highest * seconds
                if phase.by_chance:
                    under_way += _RATE_DEVIATIONS * math.sqrt(under_way)
                phase.most_users = max(_FEWEST_RATE_USERS, math.ceil(under_way))
                phase.most_users += math.ceil(highest * phase.jitter_seconds)
        return self

    @property
    def source(self) -> PlanSource:
        """What it was made from, for the plans of other values."""
        assert self._source is not None
        return self._source

    @property
    def path(self) -> Path:
        """Its file."""
        return self.source.path

    def variant(self, name: str | None) -> Variant | None:
        """A variant by its name. Raises UsageError where the plan has none of that name."""
        if name is None:
            return None
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise UsageError(f"plan {self.name} has no variant '{name}'")

    def script_of(self, driver: DriverName) -> str:
        """The script that this driver runs. Raises ValueError where the plan has none for it."""
        if isinstance(self.script, str):
            return self.script
        if driver not in self.script:
            raise ValueError(f"the plan has no script for {driver}")
        return self.script[driver]

    @property
    def _loops(self) -> set[Loop]:
        script = script_facts(self.script_of(self.driver), self.driver)
        return {script.kinds[phase.kind] for phase in self.phases}

    @property
    def slopes(self) -> bool:
        """The rate goes in a line from the phase before to a phase's own."""
        return "ramp" in self._loops

    @property
    def spike(self) -> bool:
        """All users at once and one request each: the phases have no window but their start."""
        return "once" in self._loops

    def offered_rate(self, phase: Phase) -> float | None:
        """Requests a second that a phase asks for, on average; None in a closed loop."""
        if phase.kind == "users":
            return None
        return sum(self._rates(phase)) / 2

    def end_rate(self, phase: Phase) -> float | None:
        """Requests a second at the end of a phase that ramps; None where the rate stays."""
        return phase.value if self.slopes else None

    def scheduled_requests(self, phase: Phase) -> int | None:
        """How many a phase's schedule begins: k6's alone, as Locust's users wait for answers, and
        not where that is chance."""
        rate = self.offered_rate(phase)
        if rate is None or self.driver != "k6" or phase.by_chance:
            return None
        return int(rate * phase.duration_seconds)

    def _rates(self, phase: Phase) -> tuple[float, float]:
        """Where a phase's rate begins and ends."""
        if not self.slopes:
            return phase.value, phase.value
        in_time = sorted(self.phases, key=lambda each: each.start_seconds)
        place = [each.name for each in in_time].index(phase.name)
        return in_time[place - 1].value if place else 0, phase.value

    @property
    def objectives(self) -> list[Objective]:
        """Of the whole plan; `objectives_of` says which of them a phase is judged by."""
        return [parse_objective(text) for text in self.slo]

    def objectives_of(self, phase: Phase) -> list[Objective]:
        """What this phase is judged by: its own objectives, or the plan's."""
        return [parse_objective(text) for text in (self.slo if phase.slo is None else phase.slo)]

    @property
    def users(self) -> int:
        """The most virtual users at a time: a phase's last requests may outlive it."""
        timeout = parse_duration(self.request.timeout)

        def at(seconds: float) -> int:
            return sum(
                phase.users
                for phase in self.phases
                if phase.start_seconds
                <= seconds
                < phase.start_seconds + phase.duration_seconds + timeout
            )

        return max(at(phase.start_seconds) for phase in self.phases)

    @property
    def effective_sinks(self) -> list[Sink]:
        """The plan's, or Prometheus, and InfluxDB for a spike of few enough requests."""
        if self.sinks is not None:
            return self.sinks
        few = self.spike and sum(phase.users for phase in self.phases) <= _MOST_RAW_REQUESTS
        return ["prometheus", "influxdb"] if few else ["prometheus"]

    @property
    def urls(self) -> set[str]:
        """Every url that the plan names."""
        return {url for url in (self.target.url, *(phase.url for phase in self.phases)) if url}

    @property
    def foreign_urls(self) -> set[str]:
        """Servers other than the lab's own target that the plan puts load on."""
        return {url for url in self.urls if not url.startswith(PROXY_PREFIX)}

    @property
    def components(self) -> list[str]:
        """Optional components of the stack without which it cannot run."""
        return [*self.needs, *(["proxy"] if self.urls - self.foreign_urls else [])]

    def phases_of(self, repeat: int) -> list[Phase]:
        """The phases in the order of this repeat, which counts from 1."""
        if self.phase_order == "as-written" or repeat % 2:
            return self.phases
        judged = [phase for phase in self.phases if phase.judged]
        mirrored = {
            phase.name: other.model_copy(update={"start": phase.start})
            for phase, other in zip(judged, reversed(judged), strict=True)
        }
        return [mirrored.get(phase.name, phase) for phase in self.phases]


_MOST_RUNS = 10_000
# Locust changes its load once in this time (locust/lib/plan.py).
_LOCUST_CHANGE_SECONDS = 1.0


def check_driver(plan: Plan) -> None:
    """The driver and its script run these phases. Raises a mistake."""
    try:
        name = plan.script_of(plan.driver)
        require_script(name, plan.driver)
    except ValueError as error:
        raise mistake(str(error), "script") from error
    script = script_facts(name, plan.driver)
    for place, phase in enumerate(plan.phases):
        if phase.kind not in script.kinds:
            known = " and ".join(script.kinds)
            text = f"the script {name} takes the kind {known}, not {phase.kind}"
            raise mistake(text, "phases", place, "kind")
        if phase.by_chance and script.kinds[phase.kind] == "ramp":
            text = f"the script {name} changes its rate evenly: poisson is for a rate that stays"
            raise mistake(text, "phases", place, "arrival")
    if script.one_phase and len(plan.phases) > 1:
        text = f"the script {name} runs one phase: give the others to steady, or leave them out"
        raise mistake(text, "phases", 1)
    if plan.driver == "locust":
        _check_locust(plan)


def _check_locust(plan: Plan) -> None:
    if "influxdb" in (plan.sinks or []):
        raise mistake("Locust keeps no raw samples in influxdb; k6 does", "sinks")
    for place, phase in enumerate(plan.phases):
        if phase.jitter_seconds:
            text = "jitter is for k6: Locust spreads its users by itself; leave it out"
            raise mistake(text, "phases", place, "jitter")
    order = sorted(enumerate(plan.phases), key=lambda each: each[1].start_seconds)
    for (_, before), (place, after) in pairwise(order):
        gap = round(after.start_seconds - before.start_seconds - before.duration_seconds, 3)
        if gap < 0:
            text = f"Locust runs one phase at a time, and {before.name} has not ended by then"
            raise mistake(f"{text}: start it later, or take k6", "phases", place)
        if 0 < gap < _LOCUST_CHANGE_SECONDS:
            text = f"less than 1s after {before.name}, in which Locust changes its load once"
            raise mistake(f"{text}: start it with its end, or later", "phases", place)


def check_judged(plan: Plan) -> None:
    """Something is judged. Raises a mistake."""
    if not any(phase.judged for phase in plan.phases):
        raise mistake("no phase is judged: take judged: false out of one", "phases")


def check_order(plan: Plan) -> None:
    """Phases that change places are of one duration. Raises a mistake."""
    durations = {phase.duration_seconds for phase in plan.phases if phase.judged}
    if plan.phase_order == "alternating" and len(durations) > 1:
        raise mistake("only phases of one duration can change places", "phase_order")


def check_runs(plan: Plan) -> None:
    """They can be done, and listed. Raises a mistake."""
    swept = plan.sweep.values.values() if plan.sweep else ()
    runs = math.prod(map(len, swept)) * max(1, len(plan.variants)) * plan.repeats
    if runs > _MOST_RUNS:
        text = f"with variants and repeats {runs:,} runs: at most {_MOST_RUNS:,}"
        raise mistake(text, "sweep" if plan.sweep else "repeats")


_FOLDERS: dict[DriverName, tuple[Path, str]] = {
    "k6": (paths.K6, "js"),
    "locust": (paths.LOCUST, "py"),
}
# In the object that each script of k6/ gives to `prepare`.
_KINDS = re.compile(r"^ *kinds: \{([^}]*)\}", re.MULTILINE)
_KIND = re.compile(r"(\w+): '(open|closed|once|ramp)'")
_ONE_PHASE = re.compile(r"^ *one_phase: true", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """`kinds`: the kinds of phases that it runs, each with its loop."""

    kinds: Mapping[str, Loop]
    one_phase: bool = False


# Any script of locust/ runs what its library does.
_LOCUST = Script({"rate": "open", "users": "closed"})


def known_scripts(driver: DriverName) -> list[str]:
    folder, suffix = _FOLDERS[driver]
    return [path.stem for path in sorted(folder.glob(f"*.{suffix}"))]


def require_script(name: str, driver: DriverName) -> None:
    """Raises ValueError where the driver has no script of that name."""
    known = known_scripts(driver)
    if name not in known:
        folder, suffix = _FOLDERS[driver]
        raise ValueError(f"there is no {folder.name}/{name}.{suffix}" + did_you_mean(name, known))


@cache
def script_facts(name: str, driver: DriverName) -> Script:
    """What a script runs, read where the script itself says it."""
    if driver == "locust":
        return _LOCUST
    folder, suffix = _FOLDERS[driver]
    text = (folder / f"{name}.{suffix}").read_text(encoding="utf-8")
    kinds = _KINDS.search(text)
    found: dict[str, Loop] = dict(_KIND.findall(kinds[1])) if kinds else {}
    return Script(found, one_phase=_ONE_PHASE.search(text) is not None)
