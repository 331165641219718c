"""Plans: experiments as data (plans/*.yaml). What to run, on which settings, judged how."""

import math
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from spikelab.plans import checks
from spikelab.plans.grid import variants_of
from spikelab.plans.mistakes import mistake
from spikelab.plans.parameters import Parameter, Preset
from spikelab.plans.phases import Phase, Request, Target, in_order
from spikelab.plans.scripts import (
    DriverName,
    Loop,
    known_scripts,
    require_script,
    script_facts,
)
from spikelab.plans.studies import CapacitySearch, CompareBy, Sweep, Variant
from spikelab.plans.values import PROXY_PREFIX, Duration, Name, Objectives, Strict
from spikelab.slo import Objective, parse_objective
from spikelab.units import parse_duration

Sink = Literal["prometheus", "influxdb"]
# Raw samples of more requests than these cost more than they tell.
_MOST_RAW_REQUESTS = 50_000
# A rate's users, where neither the plan nor a latency objective says: so many seconds of it may be
# on their way. k6/lib/executors.js has the same for runs by hand.
_RATE_SECONDS_IN_FLIGHT = 2.0
_FEWEST_RATE_USERS = 10

Named = TypeVar("Named", Phase, Variant)


def _unique_names(items: list[Named]) -> list[Named]:
    names = [item.name for item in items]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise mistake(f"the name '{name}' stands twice", place, "name")
    return items


def _known_scripts(value: str | dict[DriverName, str]) -> str | dict[DriverName, str]:
    if isinstance(value, dict):
        for driver, name in value.items():
            require_script(name, driver)
        if not value:
            raise ValueError("name a script, or one for each driver")
    elif value not in known_scripts("locust"):
        require_script(value, "k6")
    return value


class Plan(Strict):
    """A whole plan. Rates are requests per second, durations carry their unit."""

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
        checks.check_driver(self)
        checks.check_judged(self)
        checks.check_order(self)
        checks.check_settings(self)
        checks.check_studies(self)
        return self

    @model_validator(mode="after")
    def _a_grid_is_variants(self) -> Self:
        if self.sweep and self.sweep.settings:
            self.variants = variants_of(self.sweep.settings)
        checks.check_runs(self)
        return self

    @model_validator(mode="after")
    def _rates_have_their_users(self) -> Self:
        """As many as are under way when the longest latency objective is just met."""
        for phase in self.phases:
            if phase.kind == "rate" and phase.most_users is None:
                limits = [o.limit for o in self.objectives_of(phase) if o.key != "success"]
                seconds = max(1.0, *limits) if limits else _RATE_SECONDS_IN_FLIGHT
                highest = max(self._rates(phase))
                under_way = max(_FEWEST_RATE_USERS, math.ceil(highest * seconds))
                phase.most_users = under_way + math.ceil(highest * phase.jitter_seconds)
        return self

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
