"""Tables of figures: what stands under a verdict, and everything in the end."""

from collections.abc import Callable, Iterable, Sequence

from spikelab.held_rates import outcome
from spikelab.prediction.compare import last_good_seconds
from spikelab.record import RunRecord, Step
from spikelab.report import predictions, words
from spikelab.report.content import Table
from spikelab.report.curves import curves
from spikelab.report.missed import missed
from spikelab.totals import Totals

MOST_ROWS = 400
_MOST_BODIES = 10
_Row = Callable[[RunRecord, Step], str]
_COLUMNS: dict[str, _Row] = {
    "run": lambda record, step: record.testid,
    "step": words.cell_of,
    "repeat": lambda record, step: str(step.repeat),
    "verdict": lambda record, step: step.verdict if record.valid else "invalid",
    "offered/s": lambda record, step: words.rate(step.offered_rate),
    "started/s": lambda record, step: words.rate(step.started_rate),
    "achieved/s": lambda record, step: words.rate(step.achieved_rate),
    "goodput/s": lambda record, step: words.rate(step.goodput),
    "requests": lambda record, step: words.count(step.requests),
    "failed": lambda record, step: words.count(step.failures),
    "dropped": lambda record, step: words.count(step.dropped),
    "success": lambda record, step: words.share(words.success(step)),
    "p50": lambda record, step: words.seconds(step.latency_seconds.p50),
    "p90": lambda record, step: words.seconds(step.latency_seconds.p90),
    "p95": lambda record, step: words.seconds(step.latency_seconds.p95),
    "p99": lambda record, step: words.seconds(step.latency_seconds.p99),
    "p99.9": lambda record, step: words.seconds(step.latency_seconds.p99_9),
    "max": lambda record, step: words.seconds(step.latency_seconds.max),
    "drain": lambda record, step: words.seconds(step.drain_seconds),
    "driver CPU": lambda record, step: words.cores(step.generator.cpu),
}
_TEXT_COLUMNS = 4


def raw(records: Sequence[RunRecord]) -> Table:
    """Every judged step; columns in which nothing was measured are left out."""
    pairs = [(record, step) for record in records for step in record.steps]
    cells = {name: [of(*pair) for pair in pairs] for name, of in _COLUMNS.items()}
    kept = [
        name
        for place, name in enumerate(_COLUMNS)
        if place < _TEXT_COLUMNS or any(cell not in (words.NONE, "0") for cell in cells[name])
    ]
    if all(step.repeat == 1 for _, step in pairs):
        kept.remove("repeat")
    note = "Latencies are of good answers. Rates are per second, CPU is in cores."
    if len(pairs) > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {len(pairs):,} steps; --format csv has all."
    numbers = frozenset(place for place, name in enumerate(kept) if name not in _texts())
    rows = list(zip(*(cells[name][:MOST_ROWS] for name in kept), strict=True))
    return Table("Raw numbers", kept, rows, numbers, note)


def _texts() -> set[str]:
    return {"run", "step", "verdict"}


def run_key(record: RunRecord) -> list[Table]:
    """A run's figures in short: its steps, and the server's side."""
    tables = [_steps(record)]
    server = _server(record)
    if server:
        tables.append(Table("At the target", ("", ""), server))
    if told := predictions.of_run(record):
        tables.append(told)
    bodies = [(step.name, body) for step in record.steps for body in step.errors.bodies]
    if bodies:
        columns = ("step", "status and beginning")
        tables.append(Table("Wrong answers, a sample", columns, bodies[:_MOST_BODIES]))
    return tables


def _steps(record: RunRecord) -> Table:
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
            words.count(step.requests),
            words.rate(step.started_rate),
            words.share(words.success(step)),
            *(
                words.seconds(getattr(step.latency_seconds, key))
                for key in ("p50", "p95", "p99", "max")
            ),
            step.verdict,
            "; ".join(missed(step)) if step.verdict == "fail" else "",
        )
        for step in record.steps
    ]
    return Table("Steps", columns, rows, frozenset(range(1, 8)))


def _server(record: RunRecord) -> list[tuple[str, str]]:
    held, waited = record.connections, record.queue_wait_seconds
    rows = []
    if held.established_peak is not None:
        rows.append(("connections established at most", words.count(held.established_peak)))
        rows.append(("connections the settings can hold", words.count(held.predicted)))
        rows.append(
            (
                "accept queue at most",
                f"{words.count(held.accept_queue_peak)} of {words.count(held.accept_queue_limit)}",
            )
        )
        rows.append(("connection attempts at a full queue", words.count(held.listen_overflows)))
    if waited.max is not None:
        rows.append(
            (
                "wait for a worker thread",
                f"p50 {words.seconds(waited.p50)}, p99 {words.seconds(waited.p99)}, "
                f"max {words.seconds(waited.max)}",
            )
        )
    return rows


def rates_key(records: Sequence[RunRecord]) -> Table | None:
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
                    _beside(words.rate(step.achieved_rate) for step in steps),
                    _beside(words.share(words.success(step)) for step in steps),
                    _beside(words.seconds(step.latency_seconds.p95) for step in steps),
                    outcome(steps),
                )
            )
    columns = (found.of, "offered/s", "achieved/s", "success", "p95", "outcome")
    first = 0 if found.of else 1
    shown = [row[first:] for row in rows]
    numbers = frozenset(place - first for place in (1, 2, 3, 4))
    note = "Repeats of one rate stand side by side."
    return Table("Rates", columns[first:], shown, numbers, note)


def cells_key(records: Sequence[RunRecord]) -> Table | None:
    """Runs that are no repeats of rates: a row each; None where none has a judged step."""
    judged = [record for record in records if record.steps]
    if not judged:
        return None
    columns = ["run with", "repeat", "requests", "success", "p95", "last good answer"]
    columns += ["connections", "verdict"]
    rows = [_cell(record) for record in judged[:MOST_ROWS]]
    return Table("Runs", columns, rows, frozenset(range(1, len(columns) - 1)))


def _cell(record: RunRecord) -> list[str]:
    totals = Totals.of(record.steps)
    step = record.steps[0]
    return [
        words.run_of(record),
        str(step.repeat),
        words.count(totals.requests),
        words.share(totals.success),
        words.seconds(totals.latency.p95),
        words.seconds(last_answer(record.steps)),
        words.count(record.connections.established_peak),
        record.verdict,
    ]


def last_answer(steps: Iterable[Step]) -> float | None:
    """The last good answer since its step's start, in seconds; None where that is not known."""
    known = (last_good_seconds(step, step.requests - step.failures) for step in steps)
    return max((seconds for seconds in known if seconds is not None), default=None)


def _beside(texts: Iterable[str]) -> str:
    return " | ".join(texts)
