"""Tables on the console: a run's result, runs side by side, lists."""

# - What a report says, the same in every format: verdict, tables, words. Figures are the
#   page's.
# - A capacity search on the console: its steps by rate, and the answer in a sentence.
# - A comparison on the console.
# - The phases of one run as a table: rate, latency, failures and CPU, a row a phase.
# - Predictions beside measurements, on the console: a row a run, and a run's own lines.
# - Tested rates as a table, a row a rate, and in a line what each variant holds.
# - A comparison as words and tables. It needs SciPy, so it is imported when there is one.
# - Tables of what was predicted of spikes, beside what was measured.
# - Tables of figures: what stands under a verdict, and everything in the end.
# - A capacity search's answer as words and a table.
# - The target's settings, those that differ between runs first, and its builds where they
#   differ.
# - A sweep's result on the console: which rates were held, or a row a run.
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from spikelab.comparison.pairing import show_place
from spikelab.comparison.verdict import called, figure, label
from spikelab.console import out
from spikelab.errors import LabError
from spikelab.experiments.sweep import (
    HeldRates,
    Outcome,
    Rates,
    answer,
    by_variant,
    only_rates_differ,
    outcome,
)
from spikelab.plans.estimate import estimate
from spikelab.plans.load import load_plan, plan_files
from spikelab.prediction.check import (
    PredictionCheck,
    as_predicted,
    checks,
    last_good_seconds,
    predicted_capacity,
    predicted_rates,
    rate_text,
    within,
)
from spikelab.report import words
from spikelab.report.words import curves, missed
from spikelab.results.comparison import ComparisonRecord, Noise, Result
from spikelab.results.experiment import (
    CapacityAnswer,
    CapacityStep,
    CellState,
    ExperimentState,
    OverloadAnswer,
)
from spikelab.results.lookup import Subject
from spikelab.results.run import (
    Connections,
    Resources,
    RunRecord,
    Scalar,
    Step,
    Totals,
    read_record,
    success_share,
)
from spikelab.settings import SettingValue, load_target_declaration
from spikelab.stack.base import ComponentStatus
from spikelab.units import (
    MISSING,
    show_cores,
    show_count,
    show_rate,
    show_seconds,
    show_success,
    show_value,
)

VERDICT_COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
_MOST_WAVES = 6


def show_results(records: Sequence[RunRecord]) -> None:
    """One column a run, so that several stand side by side; before it each run's phases."""
    for record in records:
        if len(record.steps) > 1:
            out.print(f"{_heading(record)}:")
            show_phases(record.steps)
    table = Table(show_header=len(records) > 1, box=None, pad_edge=False)
    table.add_column("")
    for record in records:
        table.add_column(_heading(record), overflow="fold")
    columns = [_figures(record) for record in records]
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(column.get(name, "") for column in columns))
    table.add_row("verdict", *(verdict_text(record) for record in records))
    out.print(table)


def _heading(record: RunRecord) -> str:
    variants = {step.variant for step in record.steps} - {None}
    return ", ".join(str(variant) for variant in variants) or record.testid


def verdict_text(record: RunRecord) -> Text:
    """Coloured, with the reasons of an invalid run."""
    verdict = Text(record.verdict, style=VERDICT_COLOURS[record.verdict])
    if record.reasons:
        verdict.append(f" (invalid: {'; '.join(record.reasons)})", style="default")
    return verdict


def _figures(record: RunRecord) -> dict[str, str]:
    figures: dict[str, str] = {}
    if len(record.steps) == 1:
        figures.update(_step_figures(record.steps[0]))
    waited = record.queue_wait_seconds
    if waited.max is not None:
        figures["worker-queue wait"] = (
            f"p50 {show_seconds(waited.p50)}, p99 {show_seconds(waited.p99)}, "
            f"max {show_seconds(waited.max)}"
        )
    figures.update(_connection_figures(record.connections))
    figures.update(prediction_figures(record))
    if record.generator.cpu is not None:
        memory = (record.generator.memory_bytes or 0) / 2**20
        limited = ", the limit of this run" if record.generator.limited else ""
        figures["driver"] = f"{record.generator.cpu:.2f} cores, {memory:,.0f} MiB{limited}"
    return figures


def _step_figures(step: Step) -> dict[str, str]:
    latency = step.latency_seconds
    good = step.good
    figures = {
        "requests": f"{step.requests:,} ({good:,} good, {step.failures:,} failed)",
        **_pace(step),
        "latency": ", ".join(
            f"{name} {show_seconds(value)}"
            for name, value in (
                ("p50", latency.p50),
                ("p95", latency.p95),
                ("p99", latency.p99),
                ("max", latency.max),
            )
        )
        if good
        else "no good answer",
        **_last(step, good),
    }
    outside = step.outside_server_share
    if outside is not None:
        figures["mean"] = (
            f"{show_seconds(step.latency_mean_seconds)}, of which the server's own timer saw "
            f"{show_seconds(step.server_mean_seconds)}: {outside:.0%} outside it"
        )
    if step.waves:
        figures["waves"] = _waves(step)
    errors = step.errors.by_class()
    if errors:
        figures["failures"] = ", ".join(f"{name} {count:,}" for name, count in errors.items())
    return figures


def _last(step: Step, good: int) -> dict[str, str]:
    """The last good answer where it is known; a timeout after it is none."""
    answered = last_good_seconds(step, good)
    if answered is not None:
        return {"last answer": f"after {show_seconds(answered)}"}
    return {"last user": f"done after {show_seconds(step.seconds)}"}


def _pace(step: Step) -> dict[str, str]:
    if step.start_spread_seconds is not None:
        return {"started within": show_seconds(step.start_spread_seconds)}
    offered = "" if step.offered_rate is None else f" of {step.offered_rate:,.6g} offered"
    return {
        "rate": f"{step.started_rate or 0:,.1f}/s started{offered}, "
        f"{step.achieved_rate or 0:,.1f}/s achieved",
        **({"dropped": f"{step.dropped:,}"} if step.dropped else {}),
    }


def _waves(step: Step) -> str:
    waves = step.waves or []
    shown = [f"{wave.answers:,} at {show_seconds(wave.at_seconds)}" for wave in waves[:_MOST_WAVES]]
    more = len(waves) - _MOST_WAVES
    return ", ".join(shown) + (f", … {more} more" if more > 0 else "")


def _connection_figures(connections: Connections) -> dict[str, str]:
    if connections.established_peak is None:
        return {}
    return {
        "connections": f"{connections.established_peak:,} established at most, "
        f"{_count(connections.predicted)} possible ({connections.policy})",
        "accept queue": f"{_count(connections.accept_queue_peak)} of "
        f"{_count(connections.accept_queue_limit)} at most when read, "
        f"{_count(connections.listen_overflows)} overflows",
    }


def _count(number: int | None) -> str:
    """Of a target that is not the lab's some of these are not known."""
    return "?" if number is None else f"{number:,}"


def show_runs(records: Sequence[RunRecord]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("testid", "plan", "variant", "requests", "failed", "p95", "verdict"):
        table.add_column(name, justify="right" if name in ("requests", "failed", "p95") else "left")
    for record in records:
        steps = record.steps
        table.add_row(
            record.testid,
            record.plan,
            ", ".join(sorted({step.variant for step in steps if step.variant})),
            f"{sum(step.requests for step in steps):,}",
            f"{sum(step.failures for step in steps):,}",
            show_seconds(steps[-1].latency_seconds.p95) if steps else "",
            verdict_text(record),
        )
    out.print(table)


def show_plans() -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    table.add_column("takes", no_wrap=True)
    table.add_column("what it does, and how to change it")
    for name in plan_files():
        plan = load_plan(name)
        table.add_row(name, str(estimate(plan)), plan.about)
        for preset, what in plan.presets.items():
            takes = str(estimate(load_plan(name, preset=preset)))
            table.add_row("", takes, f"--preset {preset}: {what.about}", style="dim")
        if plan.parameters:
            values = [f"{key}={show_value(p.default)}" for key, p in plan.parameters.items()]
            table.add_row("", "", f"--set {' '.join(values)}", style="dim")
    out.print(table)


def show_status(components: Sequence[ComponentStatus]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("component", "state", "address", ""):
        table.add_column(column)
    for each in components:
        colour = {"running": "green", "stopped": "dim"}.get(each.state, "red")
        table.add_row(each.name, Text(each.state, style=colour), each.address, each.detail)
    out.print(table)


Word = Literal[
    "passed",
    "failed",
    "inconclusive",
    "invalid",
    "better",
    "worse",
    "equivalent",
    "found",
    "no verdict",
]
# What a word means for the reader: it chooses the colour and the sign beside it.
SIGNS: dict[Word, tuple[str, str]] = {
    "passed": ("good", "✓"),
    "better": ("good", "✓"),
    "equivalent": ("good", "="),
    "found": ("good", "✓"),
    "failed": ("bad", "✗"),
    "worse": ("bad", "✗"),
    "invalid": ("bad", "!"),
    "inconclusive": ("open", "?"),
    "no verdict": ("open", "–"),
}


@dataclass(frozen=True)
class ReportTable:
    """`numbers`: columns that are written to the right. `note`: a sentence under it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class Content:
    """A whole report but its figures. Lists of words are paragraphs or items of a list."""

    title: str
    kind: str
    word: Word
    sentence: str
    about: Sequence[tuple[str, str]]
    key: Sequence[ReportTable]
    settings: Sequence[ReportTable]
    method: Sequence[str]
    machine: ReportTable
    limits: Sequence[str]
    raw: ReportTable
    warnings: Sequence[str] = field(default_factory=tuple)


_RESOURCES: dict[str, Callable[[Resources], str]] = {
    "CPU": lambda used: "" if used.cpu_share is None else f"{used.cpu_share:.0%}",
    "memory": lambda used: (
        "" if used.memory_bytes is None else f"{used.memory_bytes / 1e6:,.0f} MB"
    ),
    "open files": lambda used: "" if used.open_files is None else f"{used.open_files:,}",
    "workers": lambda used: (
        "" if used.worker_threads_share is None else f"{used.worker_threads_share:.0%}"
    ),
}


def show_capacity(answer: CapacityAnswer, records: Sequence[RunRecord]) -> None:
    """A row a step; of the resources those that were seen. `records`: of its runs."""
    shown = {
        name: text
        for name, text in _RESOURCES.items()
        if any(text(step.resources) for step in answer.steps)
    }
    table = Table(box=None, pad_edge=False)
    for name in (answer.parameter, "started/s", "good", "p50", "p95", "p99", *shown):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for step in sorted(answer.steps, key=lambda step: step.value):
        table.add_row(
            *_capacity_table_figures(step),
            *(text(step.resources) for text in shown.values()),
            _said(step),
        )
    out.print(table)
    out.print("; ".join([str(answer), *predicted_capacity(answer.parameter, records)]))
    if answer.overload:
        out.print(str(answer.overload))


def _capacity_table_figures(step: CapacityStep) -> list[str]:
    latency = step.latency_seconds
    return [
        f"{step.value:,.6g}",
        "" if step.started_rate is None else f"{step.started_rate:,.1f}",
        "" if step.success is None else f"{step.success:.4%}",
        *(show_seconds(seconds) for seconds in (latency.p50, latency.p95, latency.p99)),
    ]


def _said(step: CapacityStep) -> Text:
    said = Text(step.verdict, style=VERDICT_COLOURS[step.verdict])
    return said.append(f" ({step.why})", style="default") if step.why else said


_COLOURS = {"better": "green", "worse": "red", "equivalent": "green", "inconclusive": "yellow"}
_RIGHT = ("A", "B", "B / A", "95 % interval", "pairs")


def show_comparison(record: ComparisonRecord) -> None:
    """A row a metric and place, the primary one first; then what it means, in a line."""
    out.print(f"A  {record.a.name}\nB  {record.b.name}")
    places = any(result.place for result in record.results)
    judged = record.deciding is not None
    table = Table(box=None, pad_edge=False)
    names = [*(["at"] if places else []), "metric", "A", "B", "B / A"]
    names += ["95 % interval", "pairs", "verdict"] if judged else []
    for name in names:
        table.add_column(name, justify="right" if name in _RIGHT else "left")
    for result in record.results:
        cells = [*([show_place(result.place)] if places else []), *_cells(result)]
        table.add_row(*cells[: len(names)], *([_verdict(result)] if judged else []))
    out.print(table)
    for result in record.results:
        if result.reason:
            about = " ".join(filter(None, [label(result.metric), show_place(result.place)]))
            out.print(f"why        {about}: {result.reason}")
    for each in record.left_out:
        where = " ".join(filter(None, [show_place(each.place), f"#{each.repeat}"]))
        out.print(f"left out   {where}: {each.reason}")
    for note in record.notes:
        out.print(f"note       {note}")
    if record.noise:
        out.print(_noise(record.noise, record.margin))
    out.print(record.summary)


def _cells(result: Result) -> list[str]:
    name = label(result.metric) + (" (primary)" if result.primary else "")
    ratio = "" if result.ratio is None else f"{result.ratio:.3f}"
    interval = ""
    if result.low is not None and result.high is not None:
        interval = f"{result.low:.3f} to {result.high:.3f}"
    a, b = (figure(value, result.unit) for value in (result.a, result.b))
    return [name, a, b, ratio, interval, str(len(result.pairs))]


def _verdict(result: Result) -> Text:
    verdict = result.verdict or ""
    return Text(verdict, style=_COLOURS.get(verdict, "default"))


def _noise(noise: list[Noise], margin: float) -> Table:
    table = Table(box=None, pad_edge=False)
    needed = f"pairs for a margin of {margin * 100:.3g} %"
    for name in ("metric", "noise of a pair", "smallest difference seen", needed):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for each in noise:
        if each.log_deviation is None or each.smallest_difference is None:
            table.add_row(label(each.metric), each.reason or "", "", "")
            continue
        table.add_row(
            label(each.metric),
            f"{each.log_deviation:.2%}",
            f"{each.smallest_difference - 1:.2%}",
            "over 1,000" if each.pairs_needed is None else str(each.pairs_needed),
        )
    return table


# The stack's components that requests pass through, as their CPU is shown.
_IN_THE_PATH = ("target", "proxy", "redis")


def show_phases(steps: Sequence[Step]) -> None:
    """Latencies are of good answers, `outside` is the part of the mean that the target's own timer
    does not see; CPU is in cores."""
    components = [name for name in _IN_THE_PATH if any(name in s.component_cpu for s in steps)]
    table = Table(box=None, pad_edge=False)
    table.add_column("phase")
    for name in ("requests", "failed", "dropped", "offered/s", "started/s"):
        table.add_column(name, justify="right")
    for name in ("p50", "p99", "max", "mean", "outside"):
        table.add_column(name, justify="right")
    for name in (*components, "driver"):
        table.add_column(f"{name} CPU", justify="right")
    table.add_column("verdict")
    for step in steps:
        table.add_row(*_phase_table_cells(step, components))
    out.print(table)


def _phase_table_cells(step: Step, components: Sequence[str]) -> list[str]:
    latency, outside = step.latency_seconds, step.outside_server_share
    return [
        step.name,
        f"{step.requests:,}",
        f"{step.failures:,}",
        f"{step.dropped:,}",
        "" if step.offered_rate is None else f"{step.offered_rate:,.6g}",
        f"{step.started_rate or 0:,.1f}",
        *(show_seconds(v) for v in (latency.p50, latency.p99, latency.max)),
        show_seconds(step.latency_mean_seconds),
        "" if outside is None else f"{outside:.0%}",
        *(show_cores(step.component_cpu.get(name)) for name in components),
        show_cores(step.generator.cpu),
        step.verdict,
    ]


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
            record.variant, shown(values), *(show_check(c) for c in checks(record)), verdict
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


def shown(values: Mapping[str, Scalar]) -> str:
    """Settings by Tomcat's own names: accept-count 100."""
    return ", ".join(
        f"{name.removeprefix('TOMCAT_').lower().replace('_', '-')} {value}"
        for name, value in values.items()
    )


def show_check(check: PredictionCheck) -> Text:
    """Red where it is out of its tolerance."""
    return Text(check.text, style="red" if check.within is False else "default")


_RATE_TABLE_COLOURS: dict[Outcome, str] = {
    "held": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "not reached": "yellow",
}


def show_rates(
    variants: dict[str, Rates], answers: dict[str, HeldRates], predicted: Mapping[str, float]
) -> None:
    """Figures of several repeats stand side by side, in their order.

    `predicted`: requests/s by variant, of those that have a prediction.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("variant")
    for name in ("offered/s", "started/s", "achieved/s", "success", "p95"):
        table.add_column(name, justify="right")
    table.add_column("outcome")
    for variant, rates in variants.items():
        for rate, repeats in rates.items():
            table.add_row(variant, f"{rate:,.15g}", *_rate_table_cells(repeats))
    out.print(table)
    for variant, held in answers.items():
        out.print(f"{variant or 'it'}: {held_sentence(held, predicted.get(variant))}")


def _rate_table_cells(repeats: Sequence[Step]) -> list[str | Text]:
    def side_by_side(figure: Callable[[Step], str]) -> str:
        return " | ".join(figure(step) for step in repeats)

    found = outcome(repeats)
    return [
        side_by_side(lambda step: f"{step.started_rate or 0:,.1f}"),
        side_by_side(lambda step: f"{step.achieved_rate or 0:,.1f}"),
        side_by_side(_success),
        # As printed, which is what a reader has before them; objectives count failures as well.
        side_by_side(lambda step: show_seconds(step.latency_seconds.p95)),
        Text(found, style=_RATE_TABLE_COLOURS[found]),
    ]


def _success(step: Step) -> str:
    """Never rounded up to 100 %."""
    share = success_share(step.requests, step.failures, step.dropped) or 0.0
    return f"{int(share * 1e5) / 1e3:.6g}%"


def held_sentence(answer: HeldRates, predicted: float | None = None) -> str:
    """What a variant holds, and is predicted to: ``holds 600/s; fails at 850/s``."""
    highest, lowest = answer.highest_passing_rate, answer.lowest_failing_rate
    parts = [
        "holds no tested rate" if highest is None else f"holds {highest:,}/s",
        "no tested rate failed" if lowest is None else f"fails at {lowest:,}/s",
    ]
    for name, rates in (
        ("inconclusive", answer.inconclusive),
        ("not reached", answer.not_reached),
    ):
        if rates:
            parts.append(f"{name} at {', '.join(f'{rate:,}/s' for rate in rates)}")
    if predicted is not None:
        parts.append(rate_text(predicted))
    return "; ".join(parts)


def said(record: ComparisonRecord) -> tuple[Word, str, list[ReportTable]]:
    """Verdict, sentence, and a row a metric."""
    word: Word = record.verdict or "no verdict"
    sentence = record.summary.removeprefix(f"{word}: ")
    tables = [_metrics(record)]
    advice = _advice(record)
    if advice:
        tables.append(advice)
    if record.noise:
        tables.append(_compared_noise(record.noise, record.margin))
    return word, f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}.", tables


def _metrics(record: ComparisonRecord) -> ReportTable:
    a, b = called(record.a, record.b), called(record.b, record.a)
    columns = ("metric", a, b, "B / A", "95 % interval", "pairs", "verdict")
    rows = [
        (
            _named(result),
            figure(result.a, result.unit),
            figure(result.b, result.unit),
            MISSING if result.ratio is None else f"×{result.ratio:.3f}",
            MISSING if result.low is None else f"{result.low:.3f} to {result.high:.3f}",
            str(len(result.pairs)),
            result.verdict or MISSING,
        )
        for result in record.results
    ]
    note = (
        f"A is {record.a.name}, B is {record.b.name}. Figures are geometric means over the pairs."
    )
    return ReportTable("Metrics", columns, rows, frozenset({1, 2, 3, 4, 5}), note)


def _named(result: Result) -> str:
    name = " ".join(filter(None, [label(result.metric), show_place(result.place)]))
    return f"{name} (primary)" if result.primary else name


def _advice(record: ComparisonRecord) -> ReportTable | None:
    rows = [
        (
            _named(result),
            show_count(result.advice.pairs_needed) if result.advice.pairs_needed else "over 1,000",
            show_count(result.advice.more_pairs),
            f"{(result.advice.smallest_difference - 1) * 100:.3g} %",
        )
        for result in record.results
        if result.advice
    ]
    columns = ("metric", "pairs needed", "more than there are", "smallest difference seen")
    return (
        ReportTable("What more pairs would bring", columns, rows, frozenset({1, 2, 3}))
        if rows
        else None
    )


def _compared_noise(noise: list[Noise], margin: float) -> ReportTable:
    rows = [
        (
            label(each.metric),
            str(each.pairs),
            MISSING
            if each.smallest_difference is None
            else f"{(each.smallest_difference - 1) * 100:.3g} %",
            MISSING if each.pairs_needed is None else show_count(each.pairs_needed),
            each.reason or "",
        )
        for each in noise
    ]
    columns = ("metric", "pairs", "smallest difference", f"pairs for {margin * 100:.3g} %", "")
    return ReportTable(
        "This machine's own noise, from identical arms", columns, rows, frozenset({1, 2, 3})
    )


_TITLE = "Predicted and measured"
_WITHIN = {True: "yes", False: "no", None: MISSING}


def of_run(record: RunRecord) -> ReportTable | None:
    """A row a figure; None without a prediction."""
    rows = [
        (check.name, check.measured or MISSING, check.predicted, _WITHIN[check.within])
        for check in checks(record)
    ]
    return (
        ReportTable(_TITLE, ("", "measured", "predicted", "as predicted"), rows) if rows else None
    )


def of_runs(records: Sequence[RunRecord], most_rows: int) -> ReportTable | None:
    """A row a run; None where none has a prediction."""
    spikes = [record for record in records if checks(record)]
    if not spikes:
        return None
    repeats = any(record.steps[0].repeat > 1 for record in spikes)
    columns = ["run with", *(["repeat"] if repeats else []), "as predicted"]
    columns += [f"{check.name} (predicted)" for check in checks(spikes[0])]
    rows = [
        [
            words.run_of(record),
            *([str(record.steps[0].repeat)] if repeats else []),
            _WITHIN[within(record)],
            *(check.text for check in checks(record)),
        ]
        for record in spikes[:most_rows]
    ]
    return ReportTable(_TITLE, columns, rows)


def sentence(records: Sequence[RunRecord]) -> str:
    """Whether they came so; empty without a prediction."""
    spikes = [record for record in records if checks(record)]
    if len(spikes) > 1:
        return f" {as_predicted(spikes)}."
    wrong = [
        f"{each.name} {each.text}" for r in spikes for each in checks(r) if each.within is False
    ]
    if wrong:
        return f" Not as predicted: {'; '.join(wrong)}."
    return " It came as predicted." if spikes else ""


MOST_ROWS = 400
_MOST_BODIES = 10
_Row = Callable[[RunRecord, Step], str]
_COLUMNS: dict[str, _Row] = {
    "run": lambda record, step: record.testid,
    "step": words.cell_of,
    "repeat": lambda record, step: str(step.repeat),
    "verdict": lambda record, step: step.verdict if record.valid else "invalid",
    "offered/s": lambda record, step: show_rate(step.offered_rate),
    "started/s": lambda record, step: show_rate(step.started_rate),
    "achieved/s": lambda record, step: show_rate(step.achieved_rate),
    "goodput/s": lambda record, step: show_rate(step.goodput),
    "requests": lambda record, step: show_count(step.requests),
    "failed": lambda record, step: show_count(step.failures),
    "dropped": lambda record, step: show_count(step.dropped),
    "success": lambda record, step: show_success(step.success),
    "p50": lambda record, step: show_seconds(step.latency_seconds.p50),
    "p90": lambda record, step: show_seconds(step.latency_seconds.p90),
    "p95": lambda record, step: show_seconds(step.latency_seconds.p95),
    "p99": lambda record, step: show_seconds(step.latency_seconds.p99),
    "p99.9": lambda record, step: show_seconds(step.latency_seconds.p99_9),
    "max": lambda record, step: show_seconds(step.latency_seconds.max),
    "drain": lambda record, step: show_seconds(step.drain_seconds),
    "driver CPU": lambda record, step: show_cores(step.generator.cpu),
}
_TEXT_COLUMNS = 4


def raw(records: Sequence[RunRecord]) -> ReportTable:
    """Every judged step; columns in which nothing was measured are left out."""
    pairs = [(record, step) for record in records for step in record.steps]
    cells = {name: [of(*pair) for pair in pairs] for name, of in _COLUMNS.items()}
    kept = [
        name
        for place, name in enumerate(_COLUMNS)
        if place < _TEXT_COLUMNS or any(cell not in (MISSING, "0") for cell in cells[name])
    ]
    if all(step.repeat == 1 for _, step in pairs):
        kept.remove("repeat")
    note = "Latencies are of good answers. Rates are per second, CPU is in cores."
    if len(pairs) > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {len(pairs):,} steps; --format csv has all."
    numbers = frozenset(place for place, name in enumerate(kept) if name not in _texts())
    rows = list(zip(*(cells[name][:MOST_ROWS] for name in kept), strict=True))
    return ReportTable("Raw numbers", kept, rows, numbers, note)


def _texts() -> set[str]:
    return {"run", "step", "verdict"}


def run_key(record: RunRecord) -> list[ReportTable]:
    """A run's figures in short: its steps, and the server's side."""
    tables = [_steps(record)]
    server = _server(record)
    if server:
        tables.append(ReportTable("At the target", ("", ""), server))
    if told := of_run(record):
        tables.append(told)
    bodies = [(step.name, body) for step in record.steps for body in step.errors.bodies]
    if bodies:
        columns = ("step", "status and beginning")
        tables.append(ReportTable("Wrong answers, a sample", columns, bodies[:_MOST_BODIES]))
    return tables


def _steps(record: RunRecord) -> ReportTable:
    columns = (
        "step",
        "requests",
        "started/s",
        "success",
        "p50",
        "p95",
        "p99",
        "max",
        "verdict",
        "missed",
    )
    rows = [
        (
            step.name,
            show_count(step.requests),
            show_rate(step.started_rate),
            show_success(step.success),
            *(
                show_seconds(getattr(step.latency_seconds, key))
                for key in ("p50", "p95", "p99", "max")
            ),
            step.verdict,
            "; ".join(missed(step)) if step.verdict == "fail" else "",
        )
        for step in record.steps
    ]
    return ReportTable("Steps", columns, rows, frozenset(range(1, 8)))


def _server(record: RunRecord) -> list[tuple[str, str]]:
    held, waited = record.connections, record.queue_wait_seconds
    rows = []
    if held.established_peak is not None:
        rows.append(("connections established at most", show_count(held.established_peak)))
        rows.append(("connections the settings can hold", show_count(held.predicted)))
        rows.append(
            (
                "accept queue at most",
                f"{show_count(held.accept_queue_peak)} of {show_count(held.accept_queue_limit)}",
            )
        )
        rows.append(("connection attempts at a full queue", show_count(held.listen_overflows)))
    if waited.max is not None:
        rows.append(
            (
                "wait for a worker thread",
                f"p50 {show_seconds(waited.p50)}, p99 {show_seconds(waited.p99)}, "
                f"max {show_seconds(waited.max)}",
            )
        )
    return rows


def rates_key(records: Sequence[RunRecord]) -> ReportTable | None:
    """Rates and what became of each, repeats side by side; None where runs are no repeats."""
    found = curves(records)
    if found is None:
        return None
    rows = []
    for name, rates in found.rates.items():
        for rate, steps in rates.items():
            rows.append(
                (
                    name,
                    f"{rate:,.15g}",
                    _beside(show_rate(step.achieved_rate) for step in steps),
                    _beside(show_success(step.success) for step in steps),
                    _beside(show_seconds(step.latency_seconds.p95) for step in steps),
                    outcome(steps),
                )
            )
    columns = (found.of, "offered/s", "achieved/s", "success", "p95", "outcome")
    first = 0 if found.of else 1
    shown = [row[first:] for row in rows]
    numbers = frozenset(place - first for place in (1, 2, 3, 4))
    note = "Repeats of one rate stand side by side."
    return ReportTable("Rates", columns[first:], shown, numbers, note)


def cells_key(records: Sequence[RunRecord]) -> ReportTable | None:
    """Runs that are no repeats of rates: a row each; None where none has a judged step."""
    judged = [record for record in records if record.steps]
    if not judged:
        return None
    columns = ["run with", "repeat", "requests", "success", "p95", "last good answer"]
    columns += ["connections", "verdict"]
    rows = [_cell(record) for record in judged[:MOST_ROWS]]
    return ReportTable("Runs", columns, rows, frozenset(range(1, len(columns) - 1)))


def _cell(record: RunRecord) -> list[str]:
    totals = Totals.of(record.steps)
    step = record.steps[0]
    return [
        words.run_of(record),
        str(step.repeat),
        show_count(totals.requests),
        show_success(totals.success),
        show_seconds(totals.latency.p95),
        show_seconds(last_answer(record.steps)),
        show_count(record.connections.established_peak),
        record.verdict,
    ]


def last_answer(steps: Iterable[Step]) -> float | None:
    """The last good answer since its step's start, in seconds; None where that is not known."""
    known = (last_good_seconds(step, step.good) for step in steps)
    return max((seconds for seconds in known if seconds is not None), default=None)


def _beside(texts: Iterable[str]) -> str:
    return " | ".join(texts)


_WORDS: dict[str, Word] = {"found": "found"}


def capacity_of(subject: Subject) -> CapacityAnswer | None:
    """The answer so far; None where it is no search or has none yet."""
    if subject.kind != "capacity" or not subject.state or not subject.state.answer:
        return None
    try:
        return CapacityAnswer.model_validate(subject.state.answer)
    except ValidationError:
        return None


def searching(subject: Subject, answer: CapacityAnswer) -> tuple[RunRecord, ...]:
    """The runs of the search itself, without the overload after it."""
    steps = {step.testid for step in answer.steps}
    return tuple(record for record in subject.records if record.testid in steps)


def said_searched(
    answer: CapacityAnswer, records: Iterable[RunRecord]
) -> tuple[Word, str, list[ReportTable]]:
    """Verdict, sentence, and the steps."""
    sentence = "; ".join([str(answer), *predicted_capacity(answer.parameter, records)])
    if answer.overload:
        sentence += f". Overloaded: {answer.overload}"
    tables = [_searched_steps(answer)]
    if answer.overload:
        tables.append(_overload(answer.overload))
    return (
        _WORDS.get(answer.outcome, "inconclusive"),
        f"{sentence[:1].upper()}{sentence[1:]}.",
        tables,
    )


def _searched_steps(answer: CapacityAnswer) -> ReportTable:
    columns = (
        "step",
        "offered/s" if answer.parameter == "rate" else answer.parameter,
        "started/s",
        "achieved/s",
        "success",
        "p95",
        "p99",
        "verdict",
        "why",
    )
    rows = [
        (
            str(number),
            f"{step.value:,.6g}",
            show_rate(step.started_rate),
            show_rate(step.achieved_rate),
            show_success(step.success),
            show_seconds(step.latency_seconds.p95),
            show_seconds(step.latency_seconds.p99),
            step.verdict,
            step.why,
        )
        for number, step in enumerate(answer.steps, 1)
    ]
    return ReportTable("Steps", columns, rows, frozenset(range(7)))


def _overload(found: OverloadAnswer) -> ReportTable:
    back = "not seen" if found.recovery_seconds is None else f"{found.recovery_seconds:.0f} s"
    rows = [
        ("outcome", found.outcome),
        ("offered", f"{show_rate(found.rate)}/s, {found.factor:g} times the capacity"),
        ("good within the SLO", f"{show_rate(found.goodput)}/s"),
        ("refused at once", show_success(found.refused_share)),
        ("timed out or dropped", show_success(found.timed_out_share)),
        ("p95", show_seconds(found.latency_seconds.p95)),
        (f"recovered at {show_rate(found.recovery_rate)}/s after", back),
    ]
    return ReportTable("Overload", ("", ""), rows)


_Settings = Mapping[str, SettingValue]
_MOST_NAMED = 3


def settings(records: Sequence[RunRecord]) -> list[ReportTable]:
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


def _builds(records: Sequence[RunRecord]) -> list[ReportTable]:
    """What the target was built and started from, where that differs between the runs."""
    found: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        target = record.target
        files = ", ".join(file.partition("@")[0] for file in target.compose)
        build = (target.image or target.build or MISSING, files or MISSING)
        found.setdefault(build, []).append(record)
    if len(found) < 2:
        return []
    rows = [(_label(runs, list(found.values())), *build) for build, runs in found.items()]
    heads = ("variant", "image or build", "Compose files on top")
    return [ReportTable("Builds of the target that differ between the runs", heads, rows)]


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
) -> ReportTable:
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
    return ReportTable("Settings that differ between the runs", heads, rows)


def _alike(
    names: Sequence[str],
    groups: Sequence[tuple[_Settings, list[RunRecord]]],
    defaults: _Settings,
) -> list[ReportTable]:
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
    return [ReportTable(title, heads, changed, note=note)]


def _variants(records: Sequence[RunRecord]) -> list[str]:
    return list(dict.fromkeys(record.variant for record in records))


def _label(records: Sequence[RunRecord], groups: Sequence[Sequence[RunRecord]]) -> str:
    """Variant and swept values, else the runs where these are another group's as well."""
    own = _variants(records)
    place = _place(records, groups)
    alike = [
        runs for runs in groups if set(_variants(runs)) & set(own) and _place(runs, groups) == place
    ]
    return (
        _settings_named(records)
        if len(alike) > 1
        else " ".join(filter(None, [", ".join(own), place]))
    )


def _place(records: Sequence[RunRecord], groups: Sequence[Sequence[RunRecord]]) -> str:
    """``threads=100``: the values of which each group has one, and not all the same."""
    told = {}
    for name, value in records[0].values.items():
        seen = [{str(run.values.get(name)) for run in runs} for runs in groups]
        if all(len(each) == 1 for each in seen) and len(set().union(*seen)) > 1:
            told[name] = value
    return show_place(told)


def _settings_named(records: Sequence[RunRecord]) -> str:
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


_SWEEP_TABLE_FIGURES = ("requests", "failed", "p50", "p95", "p99")


def show_sweep(state: ExperimentState) -> None:
    """By rate where rates are all that differs; else a row a run, and spikes beside predictions."""
    records = list(state.records())
    if only_rates_differ(records):
        rates = by_variant(step for record in records for step in record.steps)
        show_rates(rates, answer(records).variants, predicted_rates(records))
    elif records:
        out.print(_sweep_table_cells(state))
        show_predictions(records)


def _sweep_table_cells(state: ExperimentState) -> Table:
    values = list(dict.fromkeys(name for cell in state.cells for name in cell.values))
    table = Table(box=None, pad_edge=False)
    for name in (*values, "variant"):
        table.add_column(name)
    for name in ("repeat", *_SWEEP_TABLE_FIGURES):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for cell in sorted(state.cells, key=_sweep_table_place):
        record = read_record(cell.testid) if cell.testid else None
        table.add_row(
            *(str(cell.values.get(name, "")) for name in values),
            cell.variant or "",
            str(cell.repeat),
            *(
                _sweep_table_figures(record)
                if record and record.steps
                else [""] * len(_SWEEP_TABLE_FIGURES)
            ),
            verdict_text(record) if record else Text("no valid run"),
        )
    return table


def _sweep_table_place(cell: CellState) -> tuple[object, ...]:
    """Runs of a kind stand together, whatever order they were run in."""
    return (tuple(cell.values.values()), cell.variant or "", cell.repeat)


def _sweep_table_figures(record: RunRecord) -> list[str]:
    totals = Totals.of(record.steps)
    latency = totals.latency
    return [
        f"{totals.requests:,}",
        f"{totals.failures:,}",
        *(show_seconds(seconds) for seconds in (latency.p50, latency.p95, latency.p99)),
    ]
