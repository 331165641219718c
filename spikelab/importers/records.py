"""Run records from reports. A report's run is known by its content and its name, so that reading it
again finds the record that it has."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spikelab import paths
from spikelab.importers.report import Report
from spikelab.importers.sources import Source
from spikelab.judge import judge_run, judge_step
from spikelab.record import (
    IMPORTED,
    QUANTILES,
    Connections,
    Generator,
    Host,
    Latency,
    RunRecord,
    Step,
    StepGenerator,
    TargetRecord,
    read_record,
)
from spikelab.slo import Objective

_NO_TIME = "the report has no time: it was taken to end when its file was last changed"


@dataclass(frozen=True)
class Imported:
    """A report that was read, and where from. `digest` is its run's identity."""

    format: str
    source: Source
    report: Report
    digest: str

    @property
    def offered_rate(self) -> float | None:
        """What the file's name says, else the report."""
        return self.source.offered_rate or self.report.offered_rate


def digest_of(format_: str, source: Source, text: str) -> str:
    """12 hex digits. Variant, rate and repeat are part of it: equal reports of two repeats are two
    runs."""
    name = f"{format_}\0{source.variant}\0{source.offered_rate}\0{source.repeat}\0"
    return hashlib.sha256((name + text).encode()).hexdigest()[:12]


def find_record(imported: Imported) -> RunRecord | None:
    """The record that an earlier import made of it."""
    for path in sorted(paths.RESULTS.glob(f"*-{imported.digest}/run.json")):
        if (record := read_record(path.parent.name)) is not None:
            return record
    return None


def build_record(
    imported: Imported, objectives: Sequence[Objective], earlier: RunRecord | None
) -> RunRecord:
    """The record of an imported run. Without objectives it is inconclusive: nothing was asked.

    What no report says is null, or where the record must have a value empty: of the machine, the
    target and, but for Fortio, the URL and whether connections were kept alive. Goodput is of all
    good answers: percentiles do not count those above a limit.
    """
    source, report = imported.source, imported.report
    warnings = list(report.warnings)
    if report.started is None:
        warnings.append(_NO_TIME)
    length = timedelta(seconds=report.window_seconds + report.drain_seconds)
    started = _started(imported, length, earlier)
    step = _step(imported, started, started + length)
    if objectives:
        step.slo = [objective.text for objective in objectives]
        step.verdict = judge_step(step, objectives, tried=None)
    return RunRecord(
        testid=(
            earlier.testid
            if earlier
            else f"{started:%Y%m%dT%H%M%SZ}-{source.group}-{imported.digest}"
        ),
        plan=source.group,
        labels={IMPORTED: source.name},
        driver=imported.format,
        started=started,
        ended=started + length,
        valid=True,
        warnings=warnings,
        verdict=judge_run(True, [step]),
        experiment=earlier.experiment if earlier else None,
        target=TargetRecord(url=report.url, settings={}, effective={}, runtime=None),
        connections=Connections(policy=report.policy),
        steps=[step],
        generator=Generator(versions={imported.format: report.version} if report.version else {}),
        host=Host(kernel="", cpus=0, limits={}),
    )


def _started(imported: Imported, length: timedelta, earlier: RunRecord | None) -> datetime:
    if imported.report.started is not None:
        return imported.report.started.astimezone(UTC)
    if earlier:
        # A copied file is no other run.
        return earlier.started
    changed = imported.source.path.stat().st_mtime
    return datetime.fromtimestamp(round(changed, 3), UTC) - length


def _step(imported: Imported, started: datetime, ended: datetime) -> Step:
    report, rate = imported.report, imported.offered_rate
    name = "load" if rate is None else f"rate-{rate:.15g}"
    good = report.requests - report.failures
    return Step(
        name=name,
        phase=name,
        variant=imported.source.variant,
        repeat=imported.source.repeat,
        started=started,
        ended=ended,
        offered_rate=rate,
        started_rate=round(report.started_rate, 3),
        achieved_rate=round(report.achieved_rate, 3),
        goodput=round(good / report.window_seconds, 3) if report.window_seconds else None,
        requests=report.requests,
        completed=report.completed,
        dropped=report.dropped,
        failures=report.failures,
        errors=report.errors,
        response_bytes_mean=report.response_bytes_mean,
        latency_seconds=report.latency_seconds if good else Latency(),
        latency_mean_seconds=report.latency_mean_seconds if good else None,
        latency_with_failures_seconds=_with_failures(report),
        drain_seconds=report.drain_seconds,
        generator=StepGenerator(),
        verdict="inconclusive",
    )


def _with_failures(report: Report) -> Latency:
    """The printed percentiles, infinite (None) where more requests failed than lie above.

    With fewer failures the exact value is somewhat higher; a report does not hold it.
    """
    good = report.requests - report.failures
    printed = report.latency_seconds.model_dump()
    return Latency(
        **{
            key: printed[key] if math.ceil(round(quantile * report.requests, 6)) <= good else None
            for key, quantile in QUANTILES.items()
        }
    )
