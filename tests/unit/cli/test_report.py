"""./lab report: where its formats go, and what is left when one of them cannot be made."""

import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spikelab import paths
from spikelab.cli import app
from spikelab.cli.output import say_report
from spikelab.report.formats import FORMATS
from spikelab.results.files import write_json, write_whole
from tests.support.records import plain_record, plain_step


@pytest.fixture(autouse=True)
def name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    record = plain_record(plain_step())
    record.save()
    return record.testid


def report(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["report", *arguments])


def test_a_format_that_cannot_be_made_keeps_no_other_from_being_written(
    name: str, tmp_path: Path
) -> None:
    # Its page cannot be written: a folder is in the way.
    (tmp_path / "here" / "report.html").mkdir(parents=True)
    done = report(name, "--format", "all", "--out", "here")
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert [line for line in done.stderr.splitlines() if line] == [
        "lab: no html: here/report.html: Is a directory"
    ]
    written = {path.name for path in (tmp_path / "here").iterdir() if path.is_file()}
    assert written == {file for each, file in FORMATS.items() if each != "html"}


@pytest.mark.parametrize("out", ["new/", "new/below/"])
def test_a_path_that_ends_like_a_folder_becomes_one(name: str, tmp_path: Path, out: str) -> None:
    assert report(name, "--format", "csv", "--out", out).exit_code == 0
    assert (tmp_path / out / "report.csv").is_file()


def test_a_file_is_not_taken_for_a_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    done = report(name, "--format", "csv", "--out", "file/")
    assert done.exit_code == 2
    assert "file/" in done.stderr
    assert (tmp_path / "file").read_text() == "kept"


def test_a_report_written_through_a_link_leaves_the_link(name: str, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.csv").symlink_to("far/report.csv")
    assert report(name, "--format", "csv", "--out", "link.csv").exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "far" / "report.csv").read_text().startswith("time,")


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    seen: list[str] = []
    for write in (lambda: write_whole(pipe, "text\n"), lambda: write_json(tmp_path / "link", {})):
        reader = threading.Thread(target=lambda: seen.append(pipe.read_text()), daemon=True)
        reader.start()
        write()
        reader.join(10)
    assert seen == ["text\n", "{}\n"]
    assert pipe.is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    write_json(tmp_path / "secret.json", {}, mode=0o600)
    assert (tmp_path / "secret.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("asked", "made"), [("none", False), ("", True)])
def test_the_report_at_the_end_of_a_command_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch, name: str, asked: str, made: bool
) -> None:
    monkeypatch.setenv("LAB_REPORT", asked)
    say_report(name)
    assert (paths.RESULTS / name / "report.html").exists() is made


def test_an_unknown_value_of_lab_report_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("LAB_REPORT", "off")
    say_report(name)
    assert "LAB_REPORT=off: unknown" in capsys.readouterr().err
    assert (paths.RESULTS / name / "report.html").exists()
