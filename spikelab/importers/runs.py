"""Reports of other tools as runs: the files that are read, their records, and the sweep that a
folder of them is.

What a file is named, `<variant>-<rate>-run<n>`, says of which cell its run is. A report's run is
known by its content and its name, so that reading it again finds the record that it has.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spikelab import paths
from spikelab.console import warn
from spikelab.errors import UsageError, printable
from spikelab.experiments import sweep
from spikelab.importers.common import Format, Report, ReportError
from spikelab.judge import judge_report, judge_run
from spikelab.objectives import Objective, reached_by
from spikelab.results.experiment import CellState, ExperimentState
from spikelab.results.run import (
    IMPORTED,
    Connections,
    Generator,
    Host,
    Latency,
    RunRecord,
    Step,
    StepGenerator,
    TargetRecord,
    with_drops,
)

_NAMING = "<variant>-<rate>-run<n>"
# The variant is shown in tables and is a tag in InfluxDB: no brackets, no control characters.
_NAME = re.compile(
    r"(?P<variant>[\w .,+=@%-]*\w[\w .,+=@%-]*)-(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,6})?)"
    r"-run(?P<repeat>[0-9]{1,6})"
)
_LARGEST_BYTES = 64 * 2**20
_MOST_NAMED = 5
_LONGEST_MESSAGE = 400
_NO_TIME = "the report has no time: it was taken to end when its file was last changed"


@dataclass(frozen=True)
class ReportSource:
    """A file with one report. `offered_rate` (requests/s) and `variant` are None where its name
    does not say. `group`: the name of what its run is one of, for `plan`."""

    path: Path
    group: str
    variant: str | None = None
    offered_rate: float | None = None
    repeat: int = 1

    @property
    def name(self) -> str:
        # A name that is no UTF-8 can be opened, but not written.
        return self.path.name.encode(errors="replace").decode()

    def read(self) -> str:
        """Its text. Raises UsageError."""
        name = paths.shown(self.path)
        try:
            if self.path.stat().st_size > _LARGEST_BYTES:
                raise UsageError(f"{name}: this is too large for a report")
            return self.path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{name}: this is no text in UTF-8") from error


@dataclass(frozen=True)
class Imported:
    """A report that was read, and where from. `digest` is its run's identity."""

    format: str
    source: ReportSource
    report: Report
    digest: str

    @property
    def offered_rate(self) -> float | None:
        """What the file's name says, else the report."""
        return self.source.offered_rate or self.report.offered_rate


def import_reports(
    format_: Format, path: Path, objectives: Sequence[Objective]
) -> tuple[list[RunRecord], int]:
    """The runs of a file or a folder, judged where there are objectives; how many of them are new.

    A run that is there already stays, but takes the verdict of new objectives. Raises UsageError,
    and has then written nothing.
    """
    found = [_read(format_, source) for source in _find(path, format_)]
    for imported in found if objectives else []:
        _check_can_be_judged(imported, objectives)
    earlier = {imported.digest: find_record(imported) for imported in found}
    experiment = _experiment(found, earlier.values())
    records = []
    for imported in found:
        record = earlier[imported.digest]
        if record is None or objectives:
            record = build_record(imported, objectives, record)
            record.experiment = record.experiment or experiment
            record.save()
        records.append(record)
    _keep_together(records, objectives)
    return records, sum(record is None for record in earlier.values())


def _read(format_: Format, source: ReportSource) -> Imported:
    text = source.read()
    try:
        report = format_.parse(text)
    except ReportError as error:
        said = printable(str(error))[:_LONGEST_MESSAGE]
        raise UsageError(f"{paths.shown(source.path)}: {said}") from error
    return Imported(format_.name, source, report, digest_of(format_.name, source, text))


def _check_can_be_judged(imported: Imported, objectives: Sequence[Objective]) -> None:
    name = paths.shown(imported.source.path)
    if imported.source.variant is None:
        raise UsageError(f"{name}: --slo judges rates: name the file {_NAMING}")
    known = imported.report.latency_seconds.model_dump(exclude_none=True)
    for objective in objectives:
        if objective.key != "success" and objective.key not in known:
            has = ", ".join(key.replace("_", ".") for key in known if key != "max")
            raise UsageError(
                f"{name}: this report has no {objective.key.replace('_', '.')}, which "
                f"--slo '{objective.text}' asks for (it has: {has or 'none'})"
            )


def _experiment(found: Sequence[Imported], earlier: Iterable[RunRecord | None]) -> str | None:
    """What the runs of a folder have in common; a folder that has grown stays one experiment."""
    if len(found) < 2:
        return None
    for record in earlier:
        if record and record.experiment:
            return record.experiment
    together = hashlib.sha256("".join(each.digest for each in found).encode()).hexdigest()
    return f"{found[0].source.group}-{together[:12]}"


def _keep_together(records: Sequence[RunRecord], objectives: Sequence[Objective]) -> None:
    """The state of the sweep that a folder's runs are, so that a report of it can be made. Runs
    that are there already keep theirs, unless they are judged anew."""
    experiment = records[0].experiment
    if experiment is None or (ExperimentState.read(experiment) and not objectives):
        return
    cells = [
        CellState(
            values={} if step.offered_rate is None else {"rate": step.offered_rate},
            variant=step.variant,
            repeat=step.repeat,
            testid=record.testid,
        )
        for record in records
        for step in record.steps
    ]
    ExperimentState(
        experiment=experiment,
        kind="sweep",
        plan=records[0].plan,
        about="imported",
        digest=experiment.rpartition("-")[2],
        slo=[objective.text for objective in objectives],
        started=min(record.started for record in records),
        ended=max(record.ended or record.started for record in records),
        state="finished",
        order="imported",
        cells=cells,
        answer=sweep.answer(records).model_dump(),
    ).save()


def digest_of(format_: str, source: ReportSource, text: str) -> str:
    """12 hex digits. Variant, rate and repeat are part of it: equal reports of two repeats are two
    runs."""
    name = f"{format_}\0{source.variant}\0{source.offered_rate}\0{source.repeat}\0"
    return hashlib.sha256((name + text).encode()).hexdigest()[:12]


def find_record(imported: Imported) -> RunRecord | None:
    """The record that an earlier import made of it."""
    for path in sorted(paths.RESULTS.glob(f"*-{imported.digest}/run.json")):
        if (record := RunRecord.read(path.parent.name)) is not None:
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
        judgement = judge_report(step, objectives)
        step.verdict, step.why = judgement.verdict, judgement.why
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
        latency_basis="report",
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
    """The printed percentiles, infinite (None) where more requests failed or were dropped than
    lie above.

    With fewer failures the exact value is somewhat higher; a report does not hold it.
    """
    reached = reached_by(report.requests - report.failures, report.requests)
    printed = Latency(**report.latency_seconds.model_dump(include=reached))
    return with_drops(printed, report.requests, report.dropped) if report.dropped else printed


def _find(path: Path, format_: Format) -> list[ReportSource]:
    """The file, or the named files in the folder, in the order of variant, rate and repeat.

    Raises UsageError when there is none, or two of one run. Other files are named in a warning.
    """
    if path.is_file():
        return [_source(path, format_)]
    if not path.is_dir():
        raise UsageError(f"{path}: there is no such file or folder")
    found: dict[tuple[str | None, float | None, int], ReportSource] = {}
    unknown = []
    for each in _by_ending(path, format_):
        source = _source(each, format_)
        if source.variant is None:
            unknown.append(each.name)
            continue
        cell = (source.variant, source.offered_rate, source.repeat)
        other = found.setdefault(cell, source)
        if other is not source and _stem(other.path, format_) != _stem(each, format_):
            raise UsageError(
                f"{paths.shown(path)}: {other.name} and {source.name} are the same run: "
                "rename one or take it away"
            )
    unknown += _strangers(path, format_)
    if unknown:
        _warn_of(path, sorted(unknown))
    if not found:
        raise UsageError(
            f"{paths.shown(path)}: there is no file named {_NAMING}{format_.endings[-1]} in it"
        )
    return sorted(
        found.values(), key=lambda each: (each.variant or "", each.offered_rate or 0, each.repeat)
    )


def _by_ending(folder: Path, format_: Format) -> list[Path]:
    """The format's files, those with the best ending first: `setdefault` keeps these."""
    files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    return [
        each for ending in format_.endings for each in files if each.name.lower().endswith(ending)
    ]


def _strangers(folder: Path, format_: Format) -> list[str]:
    known = (*format_.endings, *format_.companions)
    return [
        each.name
        for each in folder.iterdir()
        if not each.name.startswith(".")
        and (each.is_dir() or not each.name.lower().endswith(known))
    ]


def _warn_of(folder: Path, names: Sequence[str]) -> None:
    more = len(names) - _MOST_NAMED
    warn(
        f"{paths.shown(folder)}: left out, as they are not named {_NAMING}: "
        f"{', '.join(names[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
    )


def _stem(path: Path, format_: Format) -> str:
    """The name without the format's ending."""
    lower = path.name.lower()
    ending = next((each for each in format_.endings if lower.endswith(each)), path.suffix)
    return path.name[: len(path.name) - len(ending)]


def _source(path: Path, format_: Format) -> ReportSource:
    match = _NAME.fullmatch(_stem(path, format_))
    if not match or not float(match["rate"]):
        return ReportSource(path, _slug(_stem(path, format_)) or format_.name)
    return ReportSource(
        path=path,
        group=_slug(path.resolve().parent.name) or format_.name,
        variant=match["variant"],
        offered_rate=float(match["rate"]),
        repeat=int(match["repeat"]),
    )


def _slug(name: str) -> str:
    """A name as plans have them."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
