"""Plans: experiments as data (plans/*.yaml). What to run, on which settings, judged how."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.plan_file import first_mistake, read_mapping
from spikelab.slo import Objective, parse_objective
from spikelab.units import parse_duration

Scalar = str | int | float | bool


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _objective(text: str) -> str:
    parse_objective(text)
    return text


Duration = Annotated[str, AfterValidator(_duration)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Parameter(_Strict):
    """A value that `--set NAME=…` changes; `${NAME}` in the plan stands for it."""

    about: str
    default: Scalar
    minimum: float | None = None
    maximum: float | None = None


class Target(_Strict):
    """Where the load goes: without a url, the lab's own target with these settings."""

    url: str | None = None
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


class Phase(_Strict):
    """A stretch of load. `users`: so many at once, one request each; `duration` is the longest
    they may take to finish."""

    name: Annotated[str, Field(pattern="^[a-z0-9-]+$")]
    kind: Literal["users"]
    value: Annotated[int, Field(ge=1)]
    start: Duration = "0s"
    duration: Duration
    url: str | None = None


class Variant(_Strict):
    """Target settings that one side of a comparison runs with."""

    name: Annotated[str, Field(pattern="^[a-z0-9-]+$")]
    settings: dict[str, Scalar] = {}


class Plan(_Strict):
    """A whole plan. Rates are requests per second, durations carry their unit."""

    name: Annotated[str, Field(pattern="^[a-z0-9-]+$")]
    about: str
    driver: Literal["k6"] = "k6"
    script: Annotated[str, Field(pattern="^[a-z0-9-]+$")]
    parameters: dict[str, Parameter] = {}
    target: Target = Target()
    request: Request = Request()
    phases: Annotated[list[Phase], Field(min_length=1)]
    slo: list[Annotated[str, AfterValidator(_objective)]] = []
    variants: list[Variant] = []
    repeats: Annotated[int, Field(ge=1)] = 1
    sinks: list[Literal["prometheus", "influxdb"]] = ["prometheus"]

    @property
    def objectives(self) -> list[Objective]:
        return [parse_objective(text) for text in self.slo]

    @property
    def users(self) -> int:
        """The most virtual users at any one time."""
        return max(phase.value for phase in self.phases)


def plan_files() -> dict[str, Path]:
    """The ready plans by name."""
    return {path.stem: path for path in sorted(paths.PLANS.glob("*.yaml"))}


def load_plan(name: str, assignments: Iterable[str] = ()) -> Plan:
    """A plan by the name of a ready one or the path of a file, with `--set key=value` applied.

    Raises UsageError naming file, line, key and cure.
    """
    path = _find(name)
    data = read_mapping(path)
    parameters = _mapping(data.get("parameters"))
    values = {key: _mapping(spec).get("default") for key, spec in parameters.items()}
    for assignment in assignments:
        _assign(data, parameters, values, assignment)
    try:
        return Plan.model_validate(_substitute(data, values))
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


def _mapping(value: object) -> dict[str, Any]:
    """What is a mapping already; anything else is left for the validation to name."""
    return value if isinstance(value, dict) else {}


def split_assignment(text: str, option: str) -> tuple[str, str]:
    """``key`` and ``value`` of ``key=value``. Raises UsageError naming the option."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text}: write it as {option} key=value")
    return key.strip(), value.strip()


def _assign(
    data: dict[str, Any], parameters: dict[str, Any], values: dict[str, Any], assignment: str
) -> None:
    key, text = split_assignment(assignment, "--set")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"--set {assignment}: this is no YAML value") from error
    if key in parameters:
        values[key] = _in_range(key, value, _mapping(parameters[key]))
        return
    head, _, leaf = key.rpartition(".")
    if head not in ("target", "request") or leaf == "settings":
        known = [*parameters, "target.url", *(f"request.{k}" for k in Request.model_fields)]
        raise UsageError(f"--set {assignment}: unknown key '{key}'" + did_you_mean(key, known))
    data[head] = {**_mapping(data.get(head)), leaf: value}


def _in_range(key: str, value: Scalar, parameter: Mapping[str, Any]) -> Scalar:
    if isinstance(parameter.get("default"), int):
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"--set {key}={value}: must be a whole number")
        low, high = parameter.get("minimum", value), parameter.get("maximum", value)
        if not low <= value <= high:
            bound = f"at least {low:,}" if value < low else f"at most {high:,}"
            raise UsageError(f"--set {key}={value}: must be {bound}")
    return value


_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def _substitute(value: Any, values: Mapping[str, Any]) -> Any:
    """Replaces `${name}`: a lone placeholder keeps its parameter's type."""
    if isinstance(value, dict):
        return {key: _substitute(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, values) for item in value]
    if not isinstance(value, str):
        return value
    for name in _PLACEHOLDER.findall(value):
        if name not in values:
            raise UsageError(f"'${{{name}}}' names no parameter" + did_you_mean(name, values))
    lone = _PLACEHOLDER.fullmatch(value)
    if lone:
        return values[lone[1]]
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), value)
