"""Tables of runs and their judged steps: a run's result, runs in a list, steps side by side, what
was predicted of them, and every number in the end."""

from collections.abc import Iterable, Sequence
from typing import Any

from spikelab.prediction.check import (
    checks,
    in_short,
    last_good_seconds,
    measured_count,
    rate_words,
    within,
)
from spikelab.report.steps import missed, name_of_run, name_of_step, undecided
from spikelab.report.tables import Column, Marked, Table, number, table, text
from spikelab.report.target_tables import differences
from spikelab.results.run import (
    Latency,
    LatencyBasis,
    LatencyParts,
    RunRecord,
    Step,
    Totals,
)
from spikelab.units import (
    MISSING,
    show_cores,
    show_count,
    show_percent,
    show_rate,
    show_seconds,
    show_success,
)

MOST_ROWS = 400
_MOST_BODIES = 10
_MOST_WAVES = 6
# The stack's components that requests pass through, as their CPU is shown.
_IN_THE_PATH = ("target", "proxy", "redis")


def _percentile(key: str) -> Column[Any]:
    def cell(of: Any) -> str:
        return show_seconds(getattr(of.latency_seconds, key))

    return number(key.replace("_", "."), cell)


# Of a step, of a run's totals or of a step of a search: whatever has the figure. Rates are per
# second, latencies those of good answers, the driver's lateness at its 99th percentile.
_FIGURES: dict[str, Column[Any]] = {
    column.name: column
    for column in (
        number("offered/s", lambda of: show_rate(of.offered_rate)),
        number("started/s", lambda of: show_rate(of.started_rate)),
        number("achieved/s", lambda of: show_rate(of.achieved_rate)),
        number("goodput/s", lambda of: show_rate(of.goodput)),
        number("requests", lambda of: show_count(of.requests)),
        number("failed", lambda of: show_count(of.failures)),
        number("dropped", lambda of: show_count(of.dropped)),
        number("success", lambda of: show_success(of.success)),
        *map(_percentile, Latency.model_fields),
        number("mean", lambda of: show_seconds(of.latency_mean_seconds)),
        number("outside", lambda of: show_percent(of.outside_server_share)),
        number("drain", lambda of: show_seconds(of.drain_seconds)),
        Column(
            "driver late",
            lambda of: show_seconds(of.lateness.p99) if of.lateness else MISSING,
            number=True,
            optional=True,
        ),
        number("driver CPU", lambda of: show_cores(of.generator.cpu)),
        text("verdict", lambda of: of.verdict),
    )
}


def figures(*names: str) -> list[Column[Any]]:
    """The columns of these figures."""
    return [_FIGURES[name] for name in names]


def verdict(record: RunRecord) -> str:
    """With the reasons of an invalid run."""
    reasons = "; ".join(record.reasons)
    return f"{record.verdict} (invalid: {reasons})" if reasons else record.verdict


def result(records: Sequence[RunRecord]) -> Table:
    """One column a run, so that several stand side by side."""
    columns = [_lines(record) for record in records]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    heads = ["", *map(name_in_result, records)] if len(records) > 1 else []
    whys = [_whys(record) for record in records]
    rows += [["verdict", *map(verdict, records)], *([["why", *whys]] if any(whys) else [])]
    return Table("Result", heads, rows)


def _whys(record: RunRecord) -> str:
    """Of the steps that did not pass."""
    named = len(record.steps) > 1
    whys = [(step.name, why) for step in record.steps if (why := _why(step))]
    return "; ".join(f"{name}: {why}" if named else why for name, why in whys)


def name_in_result(record: RunRecord) -> str:
    """Its variants, else its testid."""
    variants = {step.variant for step in record.steps} - {None}
    return ", ".join(str(variant) for variant in variants) or record.testid


_BASES: dict[LatencyBasis, str] = {
    "response time": "response time, from when a request was due or begun",
    "http_req_duration": "k6's http_req_duration, without connecting",
    "request": "the request's own time, from its beginning",
    "report": "as the report has it",
}


def _lines(record: RunRecord) -> dict[str, str]:
    lines: dict[str, str] = {}
    if len(record.steps) == 1:
        lines.update(_step_lines(record.steps[0]))
    if record.latency_basis != "response time":
        lines["latency is"] = _BASES[record.latency_basis]
    if waited := _waited(record):
        lines["worker-queue wait"] = waited
    held = record.connections
    if held.established_peak is not None:
        lines["connections"] = (
            f"{show_count(held.established_peak)} established at most, "
            f"{show_count(held.predicted)} possible ({held.policy})"
        )
        lines["accept queue"] = (
            f"{_accept_queue(record)} at most when read, "
            f"{show_count(held.listen_overflows)} overflows"
        )
    lines.update(_prediction_lines(record))
    if record.generator.cpu is not None:
        memory = (record.generator.memory_bytes or 0) / 2**20
        limited = ", the limit of this run" if record.generator.limited else ""
        lines["driver"] = f"{show_cores(record.generator.cpu)} cores, {memory:,.0f} MiB{limited}"
    return lines


def _step_lines(step: Step) -> dict[str, str]:
    lines = {
        "requests": f"{show_count(step.requests)} ({show_count(step.good)} good, "
        f"{show_count(step.failures)} failed)",
        **_pace(step),
        "latency": _percentiles(step.latency_seconds, "p50", "p95", "p99", "max")
        if step.good
        else "no good answer",
        **_last(step),
    }
    if step.http_req_duration_seconds:
        lines["http_req_duration"] = _percentiles(
            step.http_req_duration_seconds, "p50", "p95", "p99", "max"
        )
    if step.lateness:
        lines["driver late by"] = _percentiles(step.lateness, "p50", "p99", "max")
    outside = step.outside_server_share
    if outside is not None:
        lines["mean"] = (
            f"{show_seconds(step.latency_mean_seconds)}, of which the server's own timer saw "
            f"{show_seconds(step.server_mean_seconds)}: {show_percent(outside)} outside it"
        )
    if step.waves:
        waves = [
            f"{show_count(wave.answers)} at {show_seconds(wave.at_seconds)}" for wave in step.waves
        ]
        more = [f"… {len(waves) - _MOST_WAVES} more"] if len(waves) > _MOST_WAVES else []
        lines["waves"] = ", ".join([*waves[:_MOST_WAVES], *more])
    if errors := step.errors.by_class():
        lines["failures"] = ", ".join(f"{name} {show_count(n)}" for name, n in errors.items())
    return lines


def _pace(step: Step) -> dict[str, str]:
    if step.start_spread_seconds is not None:
        return {"started within": show_seconds(step.start_spread_seconds)}
    offered = "" if step.offered_rate is None else f" of {show_rate(step.offered_rate)} offered"
    return {
        "rate": f"{show_rate(step.started_rate)}/s started{offered}, "
        f"{show_rate(step.achieved_rate)}/s achieved",
        **({"dropped": show_count(step.dropped)} if step.dropped else {}),
    }


def _last(step: Step) -> dict[str, str]:
    """The last good answer where it is known; a timeout after it is none."""
    answered = last_good_seconds(step)
    if answered is not None:
        return {"last answer": f"after {show_seconds(answered)}"}
    return {"last user": f"done after {show_seconds(step.seconds)}"}


def _percentiles(of: object, *names: str) -> str:
    """``p50 1.2 ms, p99 3.4 ms``"""
    return ", ".join(f"{name} {show_seconds(getattr(of, name))}" for name in names)


def _waited(record: RunRecord) -> str:
    """For a worker thread; empty where that was not measured."""
    waited = record.queue_wait_seconds
    return "" if waited.max is None else _percentiles(waited, "p50", "p99", "max")


def _accept_queue(record: RunRecord) -> str:
    held = record.connections
    return f"{show_count(held.accept_queue_peak)} of {show_count(held.accept_queue_limit)}"


def _prediction_lines(record: RunRecord) -> dict[str, str]:
    """What was predicted, and whether it came so."""
    found = checks(record)
    if not found:
        return {}
    if record.predicted_rate is not None:
        achieved = max((step.achieved_rate or 0 for step in record.steps), default=0)
        said = f"{rate_words(record.predicted_rate)}, {show_rate(achieved)}/s achieved at most"
        return {"capacity": said, "as predicted": in_short(record)}
    established, good, last, failures, *others = found
    more = "".join(f", {each.name} {each.predicted}" for each in others)
    return {
        "predicted": f"{established.predicted} established, {good.predicted} good, "
        f"last answer after {last.predicted}, failures: {failures.predicted}{more}",
        "as predicted": in_short(record),
    }


def phases(steps: Sequence[Step]) -> Table:
    """`outside` is the part of the mean that the target's own timer does not see; CPU is in
    cores."""
    seen = [name for name in _IN_THE_PATH if any(name in step.component_cpu for step in steps)]
    columns = [
        text("phase", lambda step: step.name),
        *figures("requests", "failed", "dropped", "offered/s", "started/s"),
        *figures("p50", "p99", "max", "mean", "outside"),
        *map(_component_cpu, seen),
        *figures("driver late", "driver CPU", "verdict"),
    ]
    return table("Phases", columns, steps)


def parts(records: Sequence[RunRecord]) -> Table | None:
    """Of what the mean response time of each step consists; None where no step has parts. A part
    that none of them has is left out."""
    pairs = [(run, step) for run in records for step in run.steps if step.latency_parts_seconds]
    if not pairs:
        return None
    columns = [
        text("step", lambda pair: name_of_step(*pair)),
        *map(_part, LatencyParts.model_fields),
        _of_the_step(_FIGURES["mean"]),
    ]
    note = "Means of good answers: the parts add up to the last column. – is not known."
    return table("Parts of the response time", columns, pairs, note, MOST_ROWS)


_NANOSECOND = 1e-9


def _part(name: str) -> Column[tuple[RunRecord, Step]]:
    def cell(pair: tuple[RunRecord, Step]) -> str:
        seconds = getattr(pair[1].latency_parts_seconds, name)
        # A spike's users are never late: what is left of a difference is no time.
        return "0" if seconds is not None and seconds < _NANOSECOND else show_seconds(seconds)

    head = "TLS" if name == "tls" else name.replace("_", " ")
    return Column(head, cell, number=True, optional=True)


def _component_cpu(name: str) -> Column[Step]:
    return number(f"{name} CPU", lambda step: show_cores(step.component_cpu.get(name)))


def run_list(records: Sequence[RunRecord]) -> Table:
    """A row a run, of whatever plan."""
    columns = [
        text("testid", lambda run: run.testid),
        text("plan", lambda run: run.plan),
        text("variant", lambda run: ", ".join(sorted({s.variant for s in run.steps if s.variant}))),
        *map(of_all_steps, figures("requests", "failed", "p95")),
        text("verdict", verdict),
    ]
    return table("Runs", columns, records)


def of_all_steps(column: Column[Any]) -> Column[Any]:
    """A figure of a run over all of its steps: counts added up, latencies at their worst."""
    return number(column.name, lambda record: column.of(Totals.of(record.steps)))


def _why(step: Step) -> str:
    if step.verdict == "fail":
        return "; ".join(missed(step))
    return undecided(step) if step.verdict == "inconclusive" else ""


def one_run(record: RunRecord) -> list[Table]:
    """A run's figures in short: its steps, and the server's side."""
    columns = [
        text("step", lambda step: step.name),
        *figures("requests", "started/s", "success", "p50", "p95", "p99", "max"),
        *figures("driver late", "verdict"),
        text("why", _why),
    ]
    tables = [table("Steps", columns, record.steps, f"Latency is {_BASES[record.latency_basis]}.")]
    if its_parts := parts([record]):
        tables.append(its_parts)
    if server := _server(record):
        tables.append(Table("At the target", ("", ""), server))
    if predicted := _predicted_and_measured(record):
        tables.append(predicted)
    bodies = [(step.name, body) for step in record.steps for body in step.errors.bodies]
    if bodies:
        heads = ("step", "status and beginning")
        tables.append(Table("Wrong answers, a sample", heads, bodies[:_MOST_BODIES]))
    return tables


def _server(record: RunRecord) -> list[tuple[str, str]]:
    held, waited = record.connections, _waited(record)
    rows = []
    if held.established_peak is not None:
        rows = [
            ("connections established at most", show_count(held.established_peak)),
            ("connections the settings can hold", show_count(held.predicted)),
            ("accept queue at most", _accept_queue(record)),
            ("connection attempts at a full queue", show_count(held.listen_overflows)),
        ]
    return [*rows, ("wait for a worker thread", waited)] if waited else rows


def separate_runs(records: Sequence[RunRecord]) -> Table | None:
    """Runs that are no repeats of rates: a row each; None where none has a judged step."""
    judged = [record for record in records if record.steps]
    if not judged:
        return None
    columns = [
        text("run with", name_of_run),
        number("repeat", lambda record: str(record.steps[0].repeat)),
        *map(of_all_steps, figures("requests", "success", "p95")),
        number("last good answer", lambda record: show_seconds(last_answer(record.steps))),
        number("connections", lambda record: show_count(record.connections.established_peak)),
        text("verdict", lambda record: record.verdict),
    ]
    return table("Runs", columns, judged[:MOST_ROWS])


def last_answer(steps: Iterable[Step]) -> float | None:
    """The last good answer since its step's start, in seconds; None where that is not known."""
    known = map(last_good_seconds, steps)
    return max((seconds for seconds in known if seconds is not None), default=None)


_PREDICTED = "Predicted and measured"
_YES, _NO = Marked("yes", "good"), Marked("no", "bad")


def _came(within: bool | None) -> str:
    return MISSING if within is None else _YES if within else _NO


def _run_came(record: RunRecord) -> str:
    """With how many figures were measured, where some were not."""
    known, figures = measured_count(record)
    if not within(record) or known == figures:
        return _came(within(record))
    return Marked(f"yes ({known} of {figures} measured)", "good")


def _predicted_and_measured(record: RunRecord) -> Table | None:
    """Of one run a row a figure; None without a prediction."""
    columns = [
        text("", lambda check: check.name),
        text("measured", lambda check: check.measured or MISSING),
        text("predicted", lambda check: check.predicted),
        text("as predicted", lambda check: _came(check.within)),
    ]
    found = checks(record)
    return table(_PREDICTED, columns, found) if found else None


def predictions(records: Sequence[RunRecord]) -> Table | None:
    """A row a spike that has a prediction; None where none has."""
    spikes = [record for record in records if record.prediction and checks(record)]
    if not spikes:
        return None
    repeats = any(record.steps[0].repeat > 1 for record in spikes)
    columns = [
        text("run with", name_of_run),
        *([text("repeat", lambda record: str(record.steps[0].repeat))] if repeats else []),
        text("as predicted", _run_came),
        *_predicted_figures(spikes),
    ]
    return table(_PREDICTED, columns, spikes[:MOST_ROWS])


def predictions_by_difference(records: Sequence[RunRecord]) -> Table | None:
    """The same, each run named by the settings in which it differs from the others."""
    spikes = [record for record in records if record.prediction and checks(record)]
    if not spikes:
        return None
    differ = differences(spikes)
    columns = [
        text("variant", lambda record: record.variant),
        text("differs in", lambda record: differ[record.testid]),
        *_predicted_figures(spikes),
        text("as predicted", _run_came),
    ]
    return table(_PREDICTED, columns, spikes)


def _predicted_figures(spikes: Sequence[RunRecord]) -> list[Column[RunRecord]]:
    """Each figure as it was measured and, in brackets, predicted."""
    names = dict.fromkeys(check.name for record in spikes for check in checks(record))
    return [_predicted_figure(name) for name in names]


def _predicted_figure(name: str) -> Column[RunRecord]:
    def cell(record: RunRecord) -> str:
        for check in checks(record):
            if check.name == name:
                return Marked(check.text, "bad") if check.within is False else check.text
        return MISSING

    return text(f"{name} (predicted)", cell)


def raw(records: Sequence[RunRecord]) -> Table:
    """Every judged step; figures that no step has are left out."""
    pairs = [(record, step) for record in records for step in record.steps]
    repeats = any(step.repeat > 1 for _, step in pairs)
    shown = figures("offered/s", "started/s", "achieved/s", "goodput/s")
    shown += figures("requests", "failed", "dropped", "success")
    shown += figures("p50", "p90", "p95", "p99", "p99.9", "max", "drain")
    shown += figures("driver late", "driver CPU")
    columns = [
        text("run", lambda pair: pair[0].testid),
        text("step", lambda pair: name_of_step(*pair)),
        *([number("repeat", lambda pair: str(pair[1].repeat))] if repeats else []),
        text("verdict", lambda pair: pair[1].verdict if pair[0].valid else "invalid"),
        *map(_of_the_step, shown),
    ]
    bases = "; ".join(dict.fromkeys(_BASES[record.latency_basis] for record in records))
    note = (
        f"Latencies are of good answers ({bases}), the driver was late by so much at p99. Rates "
        "are per second, CPU is in cores."
    )
    if len(pairs) > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {len(pairs):,} steps; --format csv has all."
    return table("Raw numbers", columns, pairs, note, MOST_ROWS)


def _of_the_step(column: Column[Any]) -> Column[tuple[RunRecord, Step]]:
    return Column(column.name, lambda pair: column.of(pair[1]), column.number, optional=True)
