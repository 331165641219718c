"""`./lab import`: files become records and answers."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spikelab import paths
from spikelab.cli import imports
from spikelab.errors import UsageError
from spikelab.results.run import RunRecord

DATA = paths.ROOT / "tests" / "data"


SWEEP = DATA / "vegeta_sweep"


REPORT = """\
Requests      [total, rate, throughput]         {requests}, {rate}, {rate}
Duration      [total, attack, wait]             10.01s, 10s, 10ms
Latencies     [min, mean, 50, 90, 95, 99, max]  1ms, 2ms, 3ms, 4ms, {p95}, 1.5s, 2s
Bytes In      [total, mean]                     1000, 10.00
Bytes Out     [total, mean]                     0, 0.00
Success       [ratio]                           {percent:.2f}%
Status Codes  [code:count]                      200:{good}  503:{failed}
Error Set:
"""


# As vegeta printed it before it had a p90 and a throughput.
OLD = """\
Requests\t[total, rate]\t\t\t1200, 120.00
Duration\t[total, attack, wait]\t\t10.094965987s, 9.949883921s, 145.082066ms
Latencies\t[mean, 50, 95, 99, max]\t\t113.172398ms, 108.27ms, 140.18235ms, 247.77ms, 264.81ms
Bytes In\t[total, mean]\t\t\t3714690, 3095.57
Bytes Out\t[total, mean]\t\t\t0, 0.00
Success\t\t[ratio]\t\t\t\t100.00%
Status Codes\t[code:count]\t\t\t200:1200
Error Set:
"""


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    monkeypatch.setattr(paths, "RESULTS", folder)
    return folder


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "My Sweep"
    folder.mkdir()
    return folder


def report(
    rate: float = 100, success: float = 1.0, p95: str = "500ms", requests: int = 1000
) -> str:
    good = round(requests * success)
    figures = {"good": good, "failed": requests - good, "percent": good / requests * 100}
    return REPORT.format(requests=requests, rate=f"{rate:.2f}", p95=p95, **figures)


def put(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def judged(path: Path, *slo: str, format_name: str = "vegeta") -> dict[str, Any]:
    file = paths.RESULTS.parent / "answer.json"
    imports.run(format_name, path, slo, file)
    variants: dict[str, Any] = json.loads(file.read_bytes())["variants"]
    return variants


def refused(path: Path, *slo: str, format_name: str = "vegeta") -> str:
    with pytest.raises(UsageError) as error:
        imports.run(format_name, path, slo, None)
    assert "\n" not in str(error.value)
    assert not paths.RESULTS.exists() or not list(RunRecord.read_all())
    return str(error.value)


def answer(
    highest: float | None,
    lowest: float | None,
    inconclusive: tuple[float, ...] = (),
    not_reached: tuple[float, ...] = (),
) -> dict[str, Any]:
    return {
        "highest_passing_rate": highest,
        "lowest_failing_rate": lowest,
        "inconclusive": list(inconclusive),
        "not_reached": list(not_reached),
    }


@pytest.mark.parametrize("success", ["success>=0.999", "success >= 99.9%", " success>=99.9% "])
def test_the_published_sweep_holds_the_published_rates(success: str) -> None:
    assert judged(SWEEP, success) == {"off": answer(1000, None), "on": answer(800, 850)}


@pytest.mark.parametrize("p95", ["p95<1s", "p95 < 1000ms"])
def test_the_published_sweep_with_a_limit_on_latency(p95: str) -> None:
    assert judged(SWEEP, "success>=0.999", p95) == {
        "off": answer(800, 1000),
        "on": answer(600, 850, inconclusive=(800,)),
    }


def test_each_file_is_a_run_of_its_own_and_stays_one_when_it_is_imported_again() -> None:
    imports.run("vegeta", SWEEP, [], None)
    first = {record.testid: record for record in RunRecord.read_all()}
    assert len(first) == 17
    imports.run("vegeta", SWEEP, [], None)
    assert {record.testid: record for record in RunRecord.read_all()} == first
    assert {record.experiment for record in first.values()} == {
        next(iter(first.values())).experiment
    }
    record = next(r for r in first.values() if r.labels == {"imported": "on-0850-run1.txt"})
    step = record.steps[0]
    assert (record.driver, record.plan, record.valid) == ("vegeta", "vegeta-sweep", True)
    assert record.verdict == "inconclusive"  # nothing was asked
    assert (step.variant, step.repeat, step.offered_rate) == ("on", 1, 850)
    assert (step.started_rate, step.achieved_rate) == (850.01, 239.54)
    assert (step.requests, step.completed, step.failures) == (25500, 25500, 11376)
    assert step.errors.by_class() == {"http_5xx": 11376}
    assert step.errors.bodies == ["503 Service Unavailable"]
    assert step.latency_seconds.p95 == 3.353
    assert step.latency_with_failures_seconds.p50 == 1.306
    assert step.latency_with_failures_seconds.p95 is None
    assert (step.drain_seconds, step.response_bytes_mean) == (28.964, 633.59)
    assert (step.ended - step.started).total_seconds() == pytest.approx(58.964)


def test_an_slo_gives_its_verdict_to_runs_that_are_there(reports: Path) -> None:
    put(reports, {"a-100-run1.txt": report(), "a-200-run1.txt": report(200, success=0.5)})
    imports.run("vegeta", reports, [], None)
    judged(reports, "success>=99%")
    verdicts = {record.steps[0].offered_rate: record.verdict for record in RunRecord.read_all()}
    assert verdicts == {100: "pass", 200: "fail"}
    imports.run("vegeta", reports, [], None)
    assert verdicts == {r.steps[0].offered_rate: r.verdict for r in RunRecord.read_all()}


def test_equal_reports_of_two_repeats_are_two_runs_and_a_copied_file_none(reports: Path) -> None:
    put(reports, {"a-100-run1.txt": report(), "a-100-run2.txt": report()})
    imports.run("vegeta", reports, [], None)
    copy = reports.parent / "copy"
    copy.mkdir()
    put(copy, {"a-100-run1.txt": report(), "a-100-run3.txt": report()})
    os.utime(copy / "a-100-run1.txt", (1e9, 1e9))
    imports.run("vegeta", copy, [], None)
    assert sorted(record.steps[0].repeat for record in RunRecord.read_all()) == [1, 2, 3]


def test_a_folder_that_has_grown_stays_one_experiment(reports: Path) -> None:
    put(reports, {"a-100-run1.txt": report(), "a-100-run2.txt": report()})
    imports.run("vegeta", reports, [], None)
    put(reports, {"a-100-run3.txt": report()})
    imports.run("vegeta", reports, [], None)
    assert len({record.experiment for record in RunRecord.read_all()}) == 1


def test_a_single_report_is_a_run(reports: Path) -> None:
    put(reports, {"Result of today.txt": report()})
    imports.run("vegeta", reports / "Result of today.txt", [], None)
    (record,) = RunRecord.read_all()
    assert (record.plan, record.experiment) == ("result-of-today", None)
    assert (record.steps[0].variant, record.steps[0].offered_rate) == (None, None)


def test_rates_with_and_without_zeros_and_missing_repeats(reports: Path) -> None:
    put(
        reports,
        {
            "off-0850-run2.txt": report(850),
            "off-00900-run7.txt": report(900),
            "off-12.5-run1.txt": report(12.5),
            "layer-4-on-0850-run1.txt": report(850, success=0.5),
        },
    )
    found = judged(reports, "success>=0.999")
    assert found == {"layer-4-on": answer(None, 850), "off": answer(900, None)}


def test_a_rate_of_which_one_repeat_started_less_is_not_held(reports: Path) -> None:
    put(
        reports,
        {
            "a-100-run1.txt": report(98.0),
            "a-200-run1.txt": report(200),
            "a-200-run2.txt": report(195.9),
        },
    )
    assert judged(reports, "success>=0.999") == {"a": answer(100, None, not_reached=(200,))}


def test_a_report_in_which_nobody_answered_has_no_latency(reports: Path) -> None:
    put(reports, {"a-50-run1.txt": (DATA / "imports" / "vegeta_refused.txt").read_text()})
    assert judged(reports, "success>=1%") == {"a": answer(None, 50)}
    # A failed attempt took no time, and is still no quick answer.
    assert judged(reports, "p95<1s") == {"a": answer(None, 50)}


def test_more_failures_than_a_percentile_leaves_out_make_it_infinite(reports: Path) -> None:
    put(
        reports,
        {
            "a-100-run1.txt": report(100, success=0.95),
            "a-200-run1.txt": report(200, success=0.949),
        },
    )
    assert judged(reports, "p95<1s") == {"a": answer(100, 200)}


def test_unknown_files_are_named_and_left_out(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(reports, {"a-100-run1.txt": report(), "notes.md": "", "a-100.txt": "", ".DS_Store": ""})
    put(reports, {"a-0-run1.txt": report(), "a-100-run1.bin": ""})
    (reports / "old").mkdir()
    assert judged(reports, "success>=0.999") == {"a": answer(100, None)}
    said = capsys.readouterr().err
    assert "left out" in said
    assert "a-0-run1.txt, a-100-run1.bin, a-100.txt, notes.md, old" in said
    assert ".DS_Store" not in said


def test_of_a_run_s_text_and_json_the_exact_one_is_taken(reports: Path) -> None:
    for ending in ("txt", "json"):
        text = (DATA / "imports" / f"vegeta.{ending}").read_text()
        put(reports, {f"a-100-run1.{ending}": text})
    imports.run("vegeta", reports, [], None)
    (record,) = RunRecord.read_all()
    assert record.steps[0].latency_seconds.p95 == 0.012573778


def test_two_files_of_one_run_are_refused(reports: Path) -> None:
    put(reports, {"a-100-run1.txt": report(), "a-0100-run1.txt": report()})
    said = refused(reports)
    assert "a-0100-run1.txt and a-100-run1.txt are the same run: rename one" in said


def test_an_empty_folder_a_missing_one_and_an_unknown_format_are_refused(reports: Path) -> None:
    assert "there is no file named <variant>-<rate>-run<n>.txt in it" in refused(reports)
    assert "no such file or folder" in refused(reports / "away")
    assert "did you mean 'vegeta'?" in refused(reports, format_name="vegetta")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "this is no text report of vegeta"),
        ("{", "this is no JSON report of vegeta"),
        (report().replace("500ms", "fast"), "Latencies [95]: 'fast' is not a duration"),
        (report().replace("500ms", "1ms, 2ms"), "Latencies: 7 names, but 8 values"),
        (report().replace("1000, 100.00", "many, 100.00"), "'many' is not a whole number"),
        (report().replace("100.00%", "101%"), "'101%' is no percentage"),
        (report().replace("200:1000", "200=1000"), "Status Codes: '200=1000' is not like"),
        (report(requests=1).replace(" 1, 100", " 0, 100"), "there is no request in it"),
        (report() + report(), "it has two lines 'Requests'"),
    ],
)
def test_one_broken_report_keeps_all_of_a_folder_from_being_imported(
    reports: Path, text: str, wanted: str
) -> None:
    put(reports, {"a-100-run1.txt": report(), "b-100-run1.txt": text})
    said = refused(reports)
    assert "b-100-run1.txt: " in said
    assert wanted in said


def test_a_report_that_is_no_text_is_one_line(reports: Path) -> None:
    (reports / "a-100-run1.txt").write_bytes(b"\xff\xfe\x00")
    assert "a-100-run1.txt: this is no text in UTF-8" in refused(reports)


def test_a_percentile_that_a_report_lacks_is_named(reports: Path) -> None:
    put(reports, {"a-120-run1.txt": OLD})
    assert judged(reports, "p95<1s", "success>=0.999") == {"a": answer(120, None)}
    for record in RunRecord.read_all():
        (record.folder / "run.json").unlink()
    said = refused(reports, "p90<1s")
    assert "a-120-run1.txt: this report has no p90, which --slo 'p90<1s' asks for" in said
    assert "it has: p50, p95, p99" in said


def test_what_cannot_be_judged_is_refused(reports: Path) -> None:
    put(reports, {"report.txt": report()})
    assert "name the file <variant>" in refused(reports / "report.txt", "p95<1s")
    assert "is no objective" in refused(SWEEP, "fast")
    with pytest.raises(UsageError, match="add --slo"):
        imports.run("vegeta", SWEEP, [], reports / "answer.json")


@pytest.mark.parametrize(
    ("format_name", "file", "ending"),
    [
        ("k6", "k6_handle_summary.json", ".json"),
        ("locust", "locust_stats.csv", "_stats.csv"),
        ("fortio", "fortio.json", ".json"),
    ],
)
def test_other_formats_are_judged_alike(
    reports: Path, format_name: str, file: str, ending: str
) -> None:
    put(reports, {f"a-50-run1{ending}": (DATA / "imports" / file).read_text()})
    if format_name == "locust":
        put(reports, {"a-50-run1_failures.csv": "", "a-50-run1_stats_history.csv": ""})
    found = judged(reports, "p50<20ms", "success>=0.75", format_name=format_name)
    assert found == {"a": answer(50, None)}
    found = judged(reports, "p95<1s", format_name=format_name)
    assert found == {"a": answer(None, 50)}  # a tenth or more of each failed
    (record,) = RunRecord.read_all()
    assert RunRecord.model_validate(record.to_json()) == record


def test_the_import_command_s_exit_codes_and_output(tmp_path: Path) -> None:
    def lab(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "spikelab", "import", *words],
            cwd=paths.ROOT,
            env={**os.environ, "LAB_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    file = tmp_path / "answer.json"
    slo = ("--slo", "success>=0.999", "--slo", "p95<1s")
    done = lab("vegeta", str(SWEEP), *slo, "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "on: holds 600/s; fails at 850/s; inconclusive at 800/s" in done.stdout
    assert json.loads(file.read_bytes())["variants"]["off"] == answer(800, 1000)
    assert len(list((tmp_path / "home" / "results").glob("*/run.json"))) == 17
    printed = lab("vegeta", str(SWEEP), *slo, "--json", "-")
    assert json.loads(printed.stdout) == json.loads(file.read_bytes())
    assert "on: holds 600/s" in printed.stderr
    for words in (
        ("vegeta", str(tmp_path)),
        ("vegeta", str(SWEEP), "--slo", "p95"),
        ("vegeta", str(SWEEP), *slo, "--json", str(tmp_path)),
    ):
        wrong = lab(*words)
        assert wrong.returncode == 2
        assert wrong.stderr.splitlines()[-1].startswith("lab: ")
        assert "Traceback" not in wrong.stderr
