"""The target's settings, those that differ between runs first, and its builds where they differ."""

from collections.abc import Mapping, Sequence

from spikelab.comparison.places import show as show_place
from spikelab.errors import LabError
from spikelab.record import RunRecord
from spikelab.report import words
from spikelab.report.content import Table
from spikelab.target_settings import Value, load_target_declaration

_Settings = Mapping[str, Value]
_MOST_NAMED = 3


def settings(records: Sequence[RunRecord]) -> list[Table]:
    """A table for each, where there is any. Imported runs have no settings."""
    groups = _groups(records)
    if not groups:
        return _builds(records)
    defaults = _defaults()
    names = list(dict.fromkeys(name for values, _ in groups for name in values))
    differing = [name for name in names if _differs(name, groups)]
    tables = [_differing(differing, groups, defaults)] if differing else []
    same = [name for name in names if name not in differing]
    return tables + _alike(same, groups, defaults) + _builds(records)


def _builds(records: Sequence[RunRecord]) -> list[Table]:
    """What the target was built and started from, where that differs between the runs."""
    found: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        target = record.target
        files = ", ".join(file.partition("@")[0] for file in target.compose)
        build = (target.image or target.build or words.NONE, files or words.NONE)
        found.setdefault(build, []).append(record)
    if len(found) < 2:
        return []
    rows = [(_label(runs, list(found.values())), *build) for build, runs in found.items()]
    heads = ("variant", "image or build", "Compose files on top")
    return [Table("Builds of the target that differ between the runs", heads, rows)]


def _groups(records: Sequence[RunRecord]) -> list[tuple[_Settings, list[RunRecord]]]:
    """The runs of each different settings."""
    found: list[tuple[_Settings, list[RunRecord]]] = []
    for record in records:
        asked = record.target.settings
        if asked:
            group = next((runs for values, runs in found if values == asked), None)
            if group is None:
                found.append((asked, [record]))
            else:
                group.append(record)
    return found


def _differs(name: str, groups: Sequence[tuple[_Settings, list[RunRecord]]]) -> bool:
    return len({str(values.get(name)) for values, _ in groups}) > 1


def _differing(
    names: Sequence[str],
    groups: Sequence[tuple[_Settings, list[RunRecord]]],
    defaults: _Settings,
) -> Table:
    runs = [records for _, records in groups]
    variants = [_variants(records) for records in runs]
    together = [variant for group in variants for variant in group]
    by_variant = len(together) == len(set(together))
    labels = (
        [", ".join(variant or "without" for variant in group) for group in variants]
        if by_variant
        else [_label(records, runs) for records in runs]
    )
    rows = [
        (label, *(_shown(values.get(name)) for name in names))
        for label, (values, _) in zip(labels, groups, strict=True)
    ]
    rows.append(("default", *(_shown(defaults.get(name)) for name in names)))
    heads = ("variant" if by_variant else "run", *names)
    return Table("Settings that differ between the runs", heads, rows)


def _alike(
    names: Sequence[str],
    groups: Sequence[tuple[_Settings, list[RunRecord]]],
    defaults: _Settings,
) -> list[Table]:
    changed, rest = [], []
    first = groups[0][0]
    for name in names:
        value, default = _shown(first.get(name)), _shown(defaults.get(name))
        if value == default:
            rest.append(f"{name}={value}")
        else:
            changed.append((name, value, default))
    if not changed and not rest:
        return []
    title = "Settings that are not the defaults" if changed else "Settings"
    heads = ("setting", "value", "default") if changed else ()
    note = f"At their defaults: {', '.join(rest)}." if rest else ""
    return [Table(title, heads, changed, note=note)]


def _variants(records: Sequence[RunRecord]) -> list[str]:
    return list(dict.fromkeys(map(words.variant_of, records)))


def _label(records: Sequence[RunRecord], groups: Sequence[Sequence[RunRecord]]) -> str:
    """Variant and swept values, else the runs where these are another group's as well."""
    own = _variants(records)
    place = _place(records, groups)
    alike = [
        runs for runs in groups if set(_variants(runs)) & set(own) and _place(runs, groups) == place
    ]
    return _named(records) if len(alike) > 1 else " ".join(filter(None, [", ".join(own), place]))


def _place(records: Sequence[RunRecord], groups: Sequence[Sequence[RunRecord]]) -> str:
    """``threads=100``: the values of which each group has one, and not all the same."""
    told = {}
    for name, value in records[0].values.items():
        seen = [{str(run.values.get(name)) for run in runs} for runs in groups]
        if all(len(each) == 1 for each in seen) and len(set().union(*seen)) > 1:
            told[name] = value
    return show_place(told)


def _named(records: Sequence[RunRecord]) -> str:
    more = len(records) - _MOST_NAMED
    names = ", ".join(record.testid for record in records[:_MOST_NAMED])
    return f"{names} and {more} more" if more > 0 else names


def _defaults() -> _Settings:
    try:
        return load_target_declaration().resolve()
    except LabError:
        return {}


def _shown(value: Value | None) -> str:
    if value is None:
        return words.NONE
    return str(value).lower() if isinstance(value, bool) else str(value)
