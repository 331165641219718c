"""Reports of other tools: `./lab import` takes one or says in a line why not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spikelab.cli import imports
from spikelab.errors import UsageError
from spikelab.importers import FORMATS
from spikelab.importers.common import Format, ReportError
from spikelab.importers.runs import Imported, ReportSource, build_record, digest_of
from spikelab.objectives import parse_objective
from spikelab.results.run import RunRecord
from tests.fuzz.oracle import Check, clear, files, sampled, scratch

_OBJECTIVES = [parse_objective("success > 99%"), parse_objective("p95 < 1s")]
# The whole command, tables and files included, takes ten times as long as the parser.
_WHOLE_COMMAND = 32


@contextmanager
def check_reports(format_name: str, ending: str) -> Iterator[Check]:
    """Of files of that format."""
    format_ = FORMATS[format_name]
    with scratch() as results:
        inbox = results / "inbox"
        inbox.mkdir()
        path = inbox / f"on-0200-run1{ending}"
        path.touch()

        source = ReportSource(path, "group", "on", 200.0, 1)

        def check(data: bytes) -> bool:
            if sampled(data, _WHOLE_COMMAND):
                path.write_bytes(data)
                _import(format_, path, results)
            return _read(format_, source, data)

        yield check


def _read(format_: Format, source: ReportSource, data: bytes) -> bool:
    """The record that is made of it says the same when it is read again."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    try:
        report = format_.parse(text)
    except ReportError:
        return False
    imported = Imported(format_.name, source, report, digest_of(format_.name, source, text))
    record = build_record(imported, _OBJECTIVES, None)
    assert RunRecord.model_validate_json(record.model_dump_json(by_alias=True)) == record
    return True


def _import(format_: Format, path: Path, results: Path) -> None:
    before = files(results)
    try:
        imports.run(format_.name, path, [], None)
    except UsageError as error:
        clear(error, path.name)
        assert files(results) == before, "a refused report has left files behind"
        return
    (record,) = RunRecord.read_all()
    new = files(results).keys() - before.keys()
    assert new == {f"{record.testid}/run.json"}, new
    # Twice is once.
    imports.run(format_.name, path, [], None)
    assert list(RunRecord.read_all()) == [record]
    (record.folder / "run.json").unlink()
    record.folder.rmdir()
