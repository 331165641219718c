"""Places: where in an experiment two runs are comparable, such as ``rate=600``."""

from collections.abc import Iterable, Mapping, Sequence

from spikelab.errors import UsageError
from spikelab.plans.values import Scalar

# By name: swept parameters, and `phase` or `variant` where that alone tells two steps apart.
Place = Mapping[str, Scalar]
PHASE = "phase"
VARIANT = "variant"


def show(place: Place) -> str:
    """``rate=600 phase=steady``; empty for the only place there is."""
    return " ".join(f"{name}={_plain(value)}" for name, value in place.items())


def parse(assignments: Iterable[tuple[str, str]]) -> Place:
    """A place as a user writes it: numbers are numbers, whatever their form."""
    found: dict[str, Scalar] = {}
    for name, text in assignments:
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = text
    return found


def _plain(value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def key(place: Place) -> tuple[tuple[str, str], ...]:
    """What makes two places the same: 600 and 600.0 are."""
    return tuple(sorted((name, str(_plain(value))) for name, value in place.items()))


def primary_place(places: Sequence[Place], asked: Place) -> Place:
    """The one that decides. Raises UsageError listing what there is to choose from."""
    wanted = set(key(asked))
    matching = [place for place in places if wanted <= set(key(place))]
    if len(matching) == 1:
        return matching[0]
    choices = "; ".join(f"--at {_values(places, name)}" for name in _names(places))
    if not matching:
        raise UsageError(
            f"--at {show(asked)}: A and B were not both run there"
            + (f": {choices}" if choices else ": leave it out, nothing was swept")
        )
    raise UsageError(
        f"A and B were run at {len(matching)} places, and one of them must decide: {choices}"
        " (or compare.at in the plan)"
    )


def _names(places: Iterable[Place]) -> list[str]:
    return list(dict.fromkeys(name for place in places for name in place))


def _values(places: Iterable[Place], name: str) -> str:
    values = dict.fromkeys(str(_plain(place[name])) for place in places if name in place)
    return f"{name}={'|'.join(values)}"
