"""A grid of target settings as variants, one for each combination."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product

from spikelab.plans.mistakes import mistake
from spikelab.plans.studies import Variant
from spikelab.plans.values import LONGEST_NAME, Scalar

_MOST_VARIANTS = 1000


def variants_of(settings: Mapping[str, Sequence[Scalar]]) -> list[Variant]:
    """The grid's variants, the last setting changing fastest, named by what they set.

    `threads-200-connections-8192-accept-100`; by the values alone where that would be too long.
    """
    if not settings:
        return []
    count = math.prod(map(len, settings.values()))
    if count > _MOST_VARIANTS:
        raise mistake(f"{count:,} combinations: at most {_MOST_VARIANTS:,}", "sweep", "settings")
    chosen = [dict(zip(settings, each, strict=True)) for each in product(*settings.values())]
    shown = _short_names(list(settings))
    names = [_name(each, shown) for each in chosen]
    if max(map(len, names)) > LONGEST_NAME:
        names = [_name(each, {}) for each in chosen]
    if max(map(len, names)) > LONGEST_NAME:
        raise mistake("too many settings to name the variants by", "sweep", "settings")
    return [Variant(name=name, settings=each) for name, each in zip(names, chosen, strict=True)]


def _name(settings: Mapping[str, Scalar], shown: Mapping[str, str]) -> str:
    words = [f"{shown[name]}-{value}" if shown else f"{value}" for name, value in settings.items()]
    return re.sub("[^a-z0-9-]", "-", "-".join(words).lower())


def _short_names(settings: Sequence[str]) -> dict[str, str]:
    """Without what all have in common: TOMCAT_MAX_THREADS is `threads`, TOMCAT_ACCEPT_COUNT
    `accept`; in full where two would be the same."""
    short = {name: re.sub("^[A-Z]+_(M(AX|IN)_)?|_COUNT$", "", name) for name in settings}
    if len(set(short.values())) < len(short):
        short = {name: name for name in settings}
    return {name: each.lower().replace("_", "-") for name, each in short.items()}
