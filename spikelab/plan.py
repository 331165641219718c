"""Plans: experiments as data (plans/*.yaml). What to run, on which settings, judged how."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.plan_file import first_mistake, read_mapping
from spikelab.slo import Objective, parse_objective
from spikelab.units import parse_duration, parse_whole_number

Scalar = str | int | float | bool


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _objective(text: str) -> str:
    parse_objective(text)
    return text


def _base_url(text: str) -> str:
    """Scheme, host and port of a server; the path belongs to the request."""
    try:
        parts = urlsplit(text)
        server = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        server = None
    if not server or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"'{text}' is no URL of a server such as http://127.0.0.1:8080")
    return text.rstrip("/")


Duration = Annotated[str, AfterValidator(_duration)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
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


class _Parameters(BaseModel):
    """A plan's parameters alone: they are needed before the rest can be read."""

    parameters: dict[str, Parameter]


class Target(_Strict):
    """Where the load goes: without a url, the lab's own target with these settings."""

    url: BaseUrl | None = None
    settings: dict[str, Scalar] = {}


def _below_an_hour(text: str) -> str:
    if not 0 < parse_duration(text) < 3600:
        raise ValueError("must be above 0 and below an hour")
    return text


class Request(_Strict):
    """The one request that a virtual user makes."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    path: Annotated[str, Field(pattern="^/")] = "/"
    headers: dict[str, str] = {}
    body: str | None = None
    timeout: Annotated[Duration, AfterValidator(_below_an_hour)] = "60s"
    keep_alive: bool = True


def _above_zero(text: str) -> str:
    if parse_duration(text) < 1:
        raise ValueError("must be a second or more")
    return text


class Phase(_Strict):
    """A stretch of load. `users`: so many at once, one request each; `duration` is the longest
    they may take to finish."""

    name: Name
    kind: Literal["users"]
    value: Annotated[int, Field(ge=1)]
    start: Duration = "0s"
    duration: Annotated[Duration, AfterValidator(_above_zero)]
    url: BaseUrl | None = None


class Variant(_Strict):
    """Target settings that one side of a comparison runs with."""

    name: Name
    settings: dict[str, Scalar] = {}


Named = TypeVar("Named", Phase, Variant)


def _script(name: str) -> str:
    known = [path.stem for path in sorted(paths.K6.glob("*.js"))]
    if name not in known:
        raise ValueError(f"there is no k6/{name}.js" + did_you_mean(name, known))
    return name


def _unique_names(items: list[Named]) -> list[Named]:
    names = [item.name for item in items]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the name '{name}' stands twice")
    return items


class Plan(_Strict):
    """A whole plan. Rates are requests per second, durations carry their unit."""

    name: Name
    about: str
    driver: Literal["k6"] = "k6"
    script: Annotated[Name, AfterValidator(_script)]
    parameters: dict[str, Parameter] = {}
    target: Target = Target()
    request: Request = Request()
    phases: Annotated[list[Phase], Field(min_length=1), AfterValidator(_unique_names)]
    slo: list[Annotated[str, AfterValidator(_objective)]] = []
    variants: Annotated[list[Variant], AfterValidator(_unique_names)] = []
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    sinks: list[Literal["prometheus", "influxdb"]] = ["prometheus"]

    @property
    def objectives(self) -> list[Objective]:
        return [parse_objective(text) for text in self.slo]

    @property
    def users(self) -> int:
        """Virtual users in all: phases may overlap, as each may take long to finish."""
        return sum(phase.value for phase in self.phases)

    @property
    def foreign_urls(self) -> set[str]:
        """Servers other than the lab's own target that the plan puts load on."""
        return {url for url in (self.target.url, *(p.url for p in self.phases)) if url}


def plan_files() -> dict[str, Path]:
    """The ready plans by name."""
    return {path.stem: path for path in sorted(paths.PLANS.glob("*.yaml"))}


def load_plan(name: str, assignments: Iterable[str] = ()) -> Plan:
    """A plan by the name of a ready one or the path of a file, with `--set key=value` applied.

    Raises UsageError naming file, line, key and cure.
    """
    path = _find(name)
    data = read_mapping(path)
    try:
        declared = _Parameters.model_validate({"parameters": data.get("parameters") or {}})
        parameters = declared.parameters
        values = {key: parameter.default for key, parameter in parameters.items()}
        for assignment in assignments:
            _assign(data, parameters, values, assignment)
        return Plan.model_validate(_substitute(data, values, paths.shown(path)))
    except ValidationError as error:
        raise first_mistake(error, Plan, path) from error


def _find(name: str) -> Path:
    ready = plan_files()
    if name in ready:
        return ready[name]
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or "/" in name:
        if path.is_file():
            return path.resolve()
        raise UsageError(f"there is no plan file '{name}'")
    raise UsageError(f"unknown plan '{name}'{did_you_mean(name, ready)}: see ./lab plans")


def split_assignment(text: str, option: str) -> tuple[str, str]:
    """``key`` and ``value`` of ``key=value``. Raises UsageError naming the option."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text}: write it as {option} key=value")
    return key.strip(), value.strip()


def _assign(
    data: dict[str, Any],
    parameters: Mapping[str, Parameter],
    values: dict[str, Scalar],
    assignment: str,
) -> None:
    key, text = split_assignment(assignment, "--set")
    if key in parameters:
        values[key] = _parameter_value(key, text, parameters[key])
        return
    head, _, leaf = key.rpartition(".")
    if head not in ("target", "request") or leaf == "settings":
        known = [*parameters, "target.url", *(f"request.{k}" for k in Request.model_fields)]
        raise UsageError(f"--set {assignment}: unknown key '{key}'" + did_you_mean(key, known))
    section = data.get(head)
    data[head] = {**(section if isinstance(section, dict) else {}), leaf: _yaml_value(text)}


def _yaml_value(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"--set: '{text[:60]}' is no value that YAML knows") from error


def _parameter_value(key: str, text: str, parameter: Parameter) -> Scalar:
    if isinstance(parameter.default, int) and not isinstance(parameter.default, bool):
        # YAML would read 12:30:00 as a number of seconds.
        number = parse_whole_number(text)
        value = text[:60] if number is None else number
    else:
        value = _yaml_value(text)
    try:
        parameter.check(f"--set {key}", value)
    except ValueError as error:
        raise UsageError(str(error)[:200]) from error
    return cast(Scalar, value)


_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def _substitute(value: Any, values: Mapping[str, Any], file: str) -> Any:
    """Replaces `${name}`: a lone placeholder keeps its parameter's type."""
    if isinstance(value, dict):
        return {key: _substitute(item, values, file) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, values, file) for item in value]
    if not isinstance(value, str):
        return value
    for name in _PLACEHOLDER.findall(value):
        if name not in values:
            raise UsageError(
                f"{file}: '${{{name}}}' names no parameter" + did_you_mean(name, values)
            )
    lone = _PLACEHOLDER.fullmatch(value)
    if lone:
        return values[lone[1]]
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), value)
