"""Predictions beside measurements, on the console: a row a run, and a run's own lines."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from spikelab.console import out
from spikelab.plans.values import Scalar
from spikelab.prediction.compare import Check, as_predicted, checks, rate_text, within
from spikelab.record import RunRecord
from spikelab.target_settings import load_target_declaration

_FIGURES = ("established", "good", "last answer", "failures")


def show_predictions(records: Sequence[RunRecord]) -> None:
    """One table over an experiment's spikes: what they differ in, and each figure as it was
    measured and, in brackets, predicted. Nothing where no run has a prediction."""
    spikes = [record for record in records if checks(record)]
    if not spikes:
        return
    table = Table(box=None, pad_edge=False)
    for name in ("variant", "differs in", *(f"{name} (predicted)" for name in _FIGURES)):
        table.add_column(name, overflow="fold")
    table.add_column("as predicted")
    for record, values in zip(spikes, differing(spikes), strict=True):
        verdict = Text("yes", style="green") if within(record) else Text("no", style="red")
        table.add_row(
            variant_of(record), shown(values), *(show_check(c) for c in checks(record)), verdict
        )
    out.print(table)
    out.print(as_predicted(spikes))


def prediction_figures(record: RunRecord) -> dict[str, str]:
    """A run's lines in its result: what was predicted, and whether it came so."""
    if record.predicted_rate is not None:
        achieved = max((step.achieved_rate or 0 for step in record.steps), default=0)
        return {
            "capacity": f"{rate_text(record.predicted_rate)}, {achieved:,.1f}/s achieved at most"
        }
    found = checks(record)
    if not found:
        return {}
    established, good, last, failures = found
    wrong = [check for check in found if check.within is False]
    said = ", ".join(f"{check.measured} {check.name}" for check in wrong)
    return {
        "predicted": f"{established.predicted} established, {good.predicted} good, "
        f"last answer after {last.predicted}, failures: {failures.predicted}",
        "as predicted": f"no: {said}" if wrong else "yes",
    }


def differing(records: Sequence[RunRecord]) -> list[dict[str, Scalar]]:
    """Of each spike, its users, connection policy, values and target settings that not all of them
    share; but for settings that merely follow another one."""
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
    return [
        {name: value for name, value in values.items() if name not in shared | follow}
        for values in all_of
    ]


def variant_of(record: RunRecord) -> str:
    """The name of the run's variant; empty where the plan has none."""
    return next((step.variant for step in record.steps if step.variant), "")


def shown(values: Mapping[str, Scalar]) -> str:
    """Settings by Tomcat's own names: accept-count 100."""
    return ", ".join(
        f"{name.removeprefix('TOMCAT_').lower().replace('_', '-')} {value}"
        for name, value in values.items()
    )


def show_check(check: Check) -> Text:
    """Red where it is out of its tolerance."""
    return Text(check.text, style="red" if check.within is False else "default")
