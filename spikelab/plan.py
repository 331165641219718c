"""Plans: experiments as data (plans/*.yaml). What to run, on which settings, judged how."""

import math
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from spikelab import paths
from spikelab.errors import did_you_mean
from spikelab.runtime.addresses import TOPOLOGIES
from spikelab.slo import Objective, parse_objective
from spikelab.units import parse_base_url, parse_duration

Scalar = str | int | float | bool
DriverName = Literal["k6", "locust"]
Sink = Literal["prometheus", "influxdb"]
# Topologies in front of the lab's own target, as urls of a plan: `proxy:tunnel`.
PROXY_PREFIX = "proxy:"
# Raw samples of more requests than these cost more than they tell.
_MOST_RAW_REQUESTS = 50_000
# A rate's users, where neither the plan nor a latency objective says: so many seconds of it may be
# on their way. k6/lib/executors.js has the same for runs by hand.
_RATE_SECONDS_IN_FLIGHT = 2.0
_FEWEST_RATE_USERS = 10
# Scenarios of the drivers' own, which are no load.
_RESERVED_PHASES = "spikelab-"


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _objective(text: str) -> str:
    parse_objective(text)
    return text


def _url(text: str) -> str:
    """Scheme, host and port of a server, or one of the proxy's topologies."""
    if not text.startswith(PROXY_PREFIX):
        return parse_base_url(text)
    name = text.removeprefix(PROXY_PREFIX)
    if name not in TOPOLOGIES:
        known = ", ".join(PROXY_PREFIX + each for each in TOPOLOGIES)
        raise ValueError(f"'{text}' is no topology of the proxy (known: {known})")
    return text


def _above_zero(text: str) -> str:
    if parse_duration(text) <= 0:
        raise ValueError("must be above 0")
    return text


def _a_second_or_more(text: str) -> str:
    if parse_duration(text) < 1:
        raise ValueError("must be a second or more")
    return text


def _below_an_hour(text: str) -> str:
    if not 0 < parse_duration(text) < 3600:
        raise ValueError("must be above 0 and below an hour")
    return text


def _phase_name(name: str) -> str:
    if name.startswith(_RESERVED_PHASES):
        raise ValueError(f"names that begin with '{_RESERVED_PHASES}' are the lab's own")
    return name


Duration = Annotated[str, AfterValidator(_duration)]
Url = Annotated[str, AfterValidator(_url)]
Name = Annotated[str, Field(pattern="^[a-z0-9-]+$", max_length=60)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Parameter(_Strict):
    """A value that `--set NAME=…` changes; `${NAME}` in the plan stands for it."""

    about: str
    default: Scalar
    minimum: float | None = None
    maximum: float | None = None

    @model_validator(mode="after")
    def _default_is_in_range(self) -> Self:
        self.check("default", self.default)
        return self

    def check(self, name: str, value: object) -> None:
        """Raises ValueError when the value is of another type than the default, or out of range."""
        if isinstance(self.default, str | bool):
            if type(value) is not type(self.default):
                raise ValueError(f"{name}={value}: must be like {self.default}")
            return
        whole = isinstance(self.default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise ValueError(f"{name}={value}: must be a {'whole ' if whole else ''}number")
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"{name}={value}: must be at least {self.minimum:,g}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{name}={value}: must be at most {self.maximum:,g}")


class Parameters(BaseModel):
    """A plan's parameters alone: they are needed before the rest can be read."""

    parameters: dict[str, Parameter]


class Target(_Strict):
    """Where the load goes: without a url, the lab's own target with these settings."""

    url: Url | None = None
    settings: dict[str, Scalar] = {}


class Request(_Strict):
    """The one request that a virtual user makes."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    path: Annotated[str, Field(pattern="^/")] = "/"
    headers: dict[str, str] = {}
    body: str | None = None
    timeout: Annotated[Duration, AfterValidator(_below_an_hour)] = "60s"
    keep_alive: bool = True


class Phase(_Strict):
    """A stretch of load. One that is not judged, such as a warm-up, is no step of the record.

    `rate`: an open loop of `value` requests a second. `users`: a closed loop of so many users; in a
    spike all at once and one request each, and `duration` is then the longest they may take.
    """

    name: Annotated[Name, AfterValidator(_phase_name)]
    kind: Literal["users", "rate"]
    value: Annotated[int | float, Field(gt=0, le=1_000_000)]
    start: Duration | None = None
    duration: Annotated[Duration, AfterValidator(_a_second_or_more)]
    url: Url | None = None
    ramp_up: Duration | None = None
    period: Annotated[Duration, AfterValidator(_above_zero)] | None = None
    body_bytes: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    most_users: Annotated[int, Field(ge=1)] | None = None
    judged: bool = True

    @model_validator(mode="after")
    def _kind_and_keys_agree(self) -> Self:
        if self.kind == "users":
            if self.value != int(self.value):
                raise ValueError(f"value {self.value}: users are a whole number")
            self.value = int(self.value)
            if self.most_users:
                raise ValueError("most_users belongs to the kind rate")
            if parse_duration(self.ramp_up or "0s") > self.duration_seconds:
                raise ValueError("ramp_up is longer than the phase's duration")
        elif self.ramp_up or self.period:
            raise ValueError("ramp_up and period belong to the kind users")
        return self

    @property
    def start_seconds(self) -> float:
        """Since the start of the run; a plan has filled it in."""
        return parse_duration(self.start or "0s")

    @property
    def duration_seconds(self) -> float:
        return parse_duration(self.duration)

    @property
    def users(self) -> int:
        """Virtual users that it may take."""
        return self.most_users or int(self.value)


class Variant(_Strict):
    """Target settings that one side of a comparison runs with."""

    name: Name
    settings: dict[str, Scalar] = {}


Named = TypeVar("Named", Phase, Variant)


def _unique_names(items: list[Named]) -> list[Named]:
    names = [item.name for item in items]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the name '{name}' stands twice")
    return items


def _in_order(phases: list[Phase]) -> list[Phase]:
    """A phase without a start follows the one before it."""
    end = 0.0
    for phase in phases:
        if phase.start is None:
            phase.start = f"{round(end, 3):.10g}s"
        end = phase.start_seconds + phase.duration_seconds
    return phases


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


class Plan(_Strict):
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
        AfterValidator(_in_order),
    ]
    phase_order: Literal["as-written", "alternating"] = "as-written"
    slo: list[Annotated[str, AfterValidator(_objective)]] = []
    variants: Annotated[list[Variant], AfterValidator(_unique_names)] = []
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
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
