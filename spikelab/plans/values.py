"""Kinds of values that stand in a plan, each checked when it is read."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from spikelab.runtime.addresses import TOPOLOGIES
from spikelab.slo import objective_text
from spikelab.units import parse_base_url, parse_duration

Scalar = str | int | float | bool
# Topologies in front of the lab's own target, as urls of a plan: `proxy:tunnel`.
PROXY_PREFIX = "proxy:"
# Scenarios of the drivers' own, which are no load.
_RESERVED_PHASES = "spikelab-"


def written(value: Scalar) -> str:
    """A value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duration(text: str) -> str:
    parse_duration(text)
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


def above_zero(text: str) -> str:
    """A duration above 0."""
    if parse_duration(text) <= 0:
        raise ValueError("must be above 0")
    return text


def a_second_or_more(text: str) -> str:
    """A duration that k6 takes for a phase."""
    if parse_duration(text) < 1:
        raise ValueError("must be a second or more")
    return text


def below_an_hour(text: str) -> str:
    """A duration that a failed request's infinity stays above."""
    if not 0 < parse_duration(text) < 3600:
        raise ValueError("must be above 0 and below an hour")
    return text


def _phase_name(name: str) -> str:
    if name.startswith(_RESERVED_PHASES):
        raise ValueError(f"names that begin with '{_RESERVED_PHASES}' are the lab's own")
    return name


Duration = Annotated[str, AfterValidator(_duration)]
Url = Annotated[str, AfterValidator(_url)]
LONGEST_NAME = 60
Name = Annotated[str, Field(pattern="^[a-z0-9-]+$", max_length=LONGEST_NAME)]
PhaseName = Annotated[Name, AfterValidator(_phase_name)]
Objectives = list[Annotated[str, AfterValidator(objective_text)]]


class Strict(BaseModel):
    """A part of a plan: a key that it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
