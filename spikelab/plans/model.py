"""Plans: experiments as data (plans/*.yaml). What to run, on which settings, judged how."""

import math
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from spikelab import paths
from spikelab.errors import did_you_mean
from spikelab.plans.parameters import Parameter
from spikelab.plans.phases import Phase, Request, Target, in_order
from spikelab.plans.studies import CapacitySearch, CompareBy, Preset, Sweep, Variant
from spikelab.plans.values import PROXY_PREFIX, Duration, Name, Objectives, Strict
from spikelab.slo import Objective, parse_objective
from spikelab.units import parse_duration

DriverName = Literal["k6", "locust"]
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
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the name '{name}' stands twice")
    return items


def _scripts(driver: DriverName) -> list[str]:
    folder, pattern = {"k6": (paths.K6, "*.js"), "locust": (paths.LOCUST, "*.py")}[driver]
    return [path.stem for path in sorted(folder.glob(pattern))]


def _script(name: str, driver: DriverName) -> None:
    known = _scripts(driver)
    if name not in known:
        folder, suffix = ("k6", "js") if driver == "k6" else ("locust", "py")
        raise ValueError(f"there is no {folder}/{name}.{suffix}" + did_you_mean(name, known))


def _known_scripts(value: str | dict[DriverName, str]) -> str | dict[DriverName, str]:
    if isinstance(value, dict):
        for driver, name in value.items():
            _script(name, driver)
        if not value:
            raise ValueError("name a script, or one for each driver")
    elif value not in (*_scripts("k6"), *_scripts("locust")):
        _script(value, "k6")
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
    def _alternating_phases_fit(self) -> Self:
        durations = {phase.duration_seconds for phase in self.phases if phase.judged}
        if self.phase_order == "alternating" and len(durations) > 1:
            raise ValueError("phase_order: only phases of one duration can change places")
        return self

    @model_validator(mode="after")
    def _rates_have_their_users(self) -> Self:
        """As many as are under way when the longest latency objective is just met."""
        limits = [o.limit for o in self.objectives if o.key != "success"]
        seconds = max(1.0, *limits) if limits else _RATE_SECONDS_IN_FLIGHT
        for phase in self.phases:
            if phase.kind == "rate" and phase.most_users is None:
                highest = max(self._rates(phase))
                phase.most_users = max(_FEWEST_RATE_USERS, math.ceil(highest * seconds))
        return self

    @model_validator(mode="after")
    def _driver_can_do_it(self) -> Self:
        for phase in self.phases:
            if self.spike and phase.kind != "users":
                raise ValueError(f"phase {phase.name}: the script spike takes the kind users")
        if self.driver == "locust" and "influxdb" in (self.sinks or []):
            raise ValueError("sinks: Locust keeps no raw samples in influxdb; k6 does")
        return self

    @model_validator(mode="after")
    def _driver_has_a_script(self) -> Self:
        _script(self.script_of(self.driver), self.driver)
        return self

    def script_of(self, driver: DriverName) -> str:
        """The script that this driver runs. Raises ValueError where the plan has none for it."""
        if isinstance(self.script, str):
            return self.script
        if driver not in self.script:
            raise ValueError(f"the plan has no script for {driver}")
        return self.script[driver]

    @property
    def slopes(self) -> bool:
        """The rate goes in a line from the phase before to a phase's own."""
        return self.script_of(self.driver) == "ramp"

    @property
    def spike(self) -> bool:
        """All users at once and one request each: the phases have no window but their start."""
        return self.driver == "k6" and self.script_of("k6") == "spike"

    def offered_rate(self, phase: Phase) -> float | None:
        """Requests a second that a phase asks for, on average; None in a closed loop."""
        if phase.kind == "users":
            return None
        return sum(self._rates(phase)) / 2

    def _rates(self, phase: Phase) -> tuple[float, float]:
        """Where a phase's rate begins and ends."""
        if not self.slopes:
            return phase.value, phase.value
        place = [each.name for each in self.phases].index(phase.name)
        return self.phases[place - 1].value if place else 0, phase.value

    @property
    def objectives(self) -> list[Objective]:
        return [parse_objective(text) for text in self.slo]

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
