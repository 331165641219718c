"""Tables of what the target was run with: its settings, those that differ between runs first, and
its builds where they differ."""

from collections.abc import Mapping, Sequence

from spikelab.comparison.pairing import show_place
from spikelab.errors import LabError
from spikelab.report.tables import Table
from spikelab.results.run import RunRecord, Scalar
from spikelab.settings import SettingValue, load_target_declaration
from spikelab.units import MISSING, show_value

_Settings = Mapping[str, SettingValue]
_Group = tuple[_Settings, list[RunRecord]]
_MOST_NAMED = 3


def target_tables(records: Sequence[RunRecord]) -> list[Table]:
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
        build = (target.image or target.build or MISSING, files or MISSING)
        found.setdefault(build, []).append(record)
    if len(found) < 2:
        return []
    rows = [(_name(runs, list(found.values())), *build) for build, runs in found.items()]
    heads = ("variant", "image or build", "Compose files on top")
    return [Table("Builds of the target that differ between the runs", heads, rows)]


def _groups(records: Sequence[RunRecord]) -> list[_Group]:
    """The runs of each different settings."""
    found: dict[frozenset[tuple[str, SettingValue]], _Group] = {}
    for record in records:
        asked = record.target.settings
        if asked:
            found.setdefault(frozenset(asked.items()), (asked, []))[1].append(record)
    return list(found.values())


def _differs(name: str, groups: Sequence[_Group]) -> bool:
    return len({str(values.get(name)) for values, _ in groups}) > 1


def _differing(
    names: Sequence[str],
    groups: Sequence[_Group],
    defaults: _Settings,
) -> Table:
    runs = [records for _, records in groups]
    variants = [_variants(records) for records in runs]
    together = [variant for group in variants for variant in group]
    by_variant = len(together) == len(set(together))
    labels = (
        [", ".join(variant or "without" for variant in group) for group in variants]
        if by_variant
        else [_name(records, runs) for records in runs]
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
    groups: Sequence[_Group],
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
    return list(dict.fromkeys(record.variant for record in records))


def _name(records: Sequence[RunRecord], groups: Sequence[Sequence[RunRecord]]) -> str:
    """Variant and swept values, else the runs where these are another group's as well."""
    own = _variants(records)
    values = _values(records, groups)
    alike = [
        runs
        for runs in groups
        if set(_variants(runs)) & set(own) and _values(runs, groups) == values
    ]
    return _testids(records) if len(alike) > 1 else " ".join(filter(None, [", ".join(own), values]))


def _values(records: Sequence[RunRecord], groups: Sequence[Sequence[RunRecord]]) -> str:
    """``threads=100``: the values of which each group has one, and not all the same."""
    shared = {}
    for name, value in records[0].values.items():
        seen = [{str(run.values.get(name)) for run in runs} for runs in groups]
        if all(len(each) == 1 for each in seen) and len(set().union(*seen)) > 1:
            shared[name] = value
    return show_place(shared)


def _testids(records: Sequence[RunRecord]) -> str:
    more = len(records) - _MOST_NAMED
    names = ", ".join(record.testid for record in records[:_MOST_NAMED])
    return f"{names} and {more} more" if more > 0 else names


def _defaults() -> _Settings:
    try:
        return load_target_declaration().resolve()
    except LabError:
        return {}


def _shown(value: SettingValue | None) -> str:
    return MISSING if value is None else show_value(value)


def differences(records: Sequence[RunRecord]) -> dict[str, str]:
    """Of each spike, by its testid: its users, connection policy, values and target settings that
    not all of them share, but for settings that merely follow another one. Settings have Tomcat's
    own names: ``accept-count 100``."""
    follow = {name for name, each in load_target_declaration().settings.items() if each.at_most}
    all_of: list[dict[str, Scalar]] = [
        {
            "users": record.steps[0].requests,
            "connections": record.connections.policy,
            **record.values,
            **record.target.settings,
        }
        for record in records
    ]
    names = dict.fromkeys(name for values in all_of for name in values)
    shared = {name for name in names if len({str(values.get(name)) for values in all_of}) == 1}
    return {
        record.testid: ", ".join(
            f"{name.removeprefix('TOMCAT_').lower().replace('_', '-')} {value}"
            for name, value in values.items()
            if name not in shared | follow
        )
        for record, values in zip(records, all_of, strict=True)
    }
