"""Reports of every kind, from records of real runs."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from spikelab import paths
from spikelab.cli import imports
from spikelab.report.formats import FORMATS, rendered, write_report
from spikelab.results.experiment import CellState, ExperimentState
from spikelab.results.lookup import find
from spikelab.results.run import RunRecord
from tests.support.report_results import (
    ALL,
    CAPACITY,
    COMPARISON,
    DATA,
    GRID,
    POOLS,
    SPIKE,
    STEPS,
    SWEEP,
    fill,
)

MOST_BYTES = 1_500_000


FIGURES = {
    SPIKE: ["Latency over time", "Rates and failures over time", "Queues over time"],
    STEPS: ["Latency over time", "Rates and failures over time", "Queues over time"],
    POOLS: ["Success by run", "p95 by run"],
    GRID: ["Connections, predicted and measured", "Good answers, predicted and measured"],
    CAPACITY: ["Steps of the search", "p95 over the achieved rate"],
    COMPARISON: ["Ratios and their intervals", "Pairs of runs"],
    SWEEP: [
        "Success over the achieved rate",
        "p95 over the achieved rate",
        "Throughput over the achieved rate",
    ],
}


SAID = {
    SPIKE: "181 of 250 users got a good answer",
    STEPS: "1 of 3 steps did not pass: high",
    POOLS: "Of 2 runs 2 passed",
    GRID: "12 of 12 runs came as predicted.",
    CAPACITY: "Holds 117 to 122 requests/s",
    COMPARISON: "P50 of b is ×1.09 that of a",
    SWEEP: "Off holds 800/s; fails at 1,000/s. On holds 600/s; fails at 850/s; "
    "inconclusive at 800/s",
}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return fill(monkeypatch, tmp_path / "results")


def page_of(name: str) -> str:
    path = write_report(name)
    assert path == paths.RESULTS / name / "report.html"
    assert path.stat().st_size < MOST_BYTES
    return path.read_text()


@pytest.mark.parametrize("name", ALL)
def test_the_verdict_comes_first_then_the_figures_of_its_kind(results: Path, name: str) -> None:
    page = page_of(name)
    body = page[page.index("<body>") :]
    assert SAID[name] in body
    assert body.index(SAID[name]) < body.index("<svg")
    titles = re.findall(r"<figcaption><h2>(.*?)</h2>", body)
    assert set(FIGURES[name]) <= set(titles)
    heads = ["Key figures", "Method", "Machine", "Limits", "Raw numbers"]
    assert sorted(heads, key=body.index) == heads
    assert body.index("<svg") < body.index("Key figures")


@pytest.mark.parametrize("name", ALL)
def test_a_page_needs_nothing_beside_it_and_its_ids_are_its_own(results: Path, name: str) -> None:
    page = page_of(name)
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", page)
    ids = re.findall(r"\bid=\"([^\"]+)\"", page)
    assert len(ids) == len(set(ids))
    for used in re.findall(r"(?:href=\"#|url\(#)([^\")]+)", page):
        assert used in ids
    for drawn in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert 'role="img"' in drawn
        assert re.search(r"<title id=.*?>.+?</title><desc id=.*?>.+?</desc>", drawn)


def test_the_same_records_give_the_same_page(results: Path) -> None:
    assert page_of(SWEEP) == page_of(SWEEP)


def test_a_sweep_has_a_curve_for_each_variant(results: Path) -> None:
    drawn = re.findall(r"<svg.*?</svg>", page_of(SWEEP), re.DOTALL)
    for figure in drawn[:3]:
        assert ">off<" in figure
        assert ">on<" in figure
        # Rates that were not reached are named beside their points.
        assert ">850<" in figure
    assert ">success&gt;=0.999<" in drawn[0]
    assert ">1 s<" in drawn[1]


def test_what_records_hold_is_text_and_never_markup(results: Path) -> None:
    evil = "<img src=x onerror=alert(1)>|`*_$\\frac$"
    record = RunRecord.read(STEPS)
    assert record
    record.steps[0].errors.bodies = [f"500 {evil}"]
    record.steps[0].errors.http_5xx = 1
    record.labels = {"note": evil}
    record.warnings = [evil]
    record.save()
    page = page_of(STEPS)
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 3
    summary = rendered(find(STEPS), "md")
    assert "<img" not in summary
    assert r"&gt;\|\`\*\_$\\frac$" in summary


def test_a_run_that_is_no_result_says_so_and_why(results: Path) -> None:
    record = RunRecord.read(STEPS)
    assert record
    record.valid, record.reasons, record.verdict = False, ["the target died"], "inconclusive"
    record.save()
    page = page_of(STEPS)
    assert "It decides nothing: the target died." in page
    assert "<svg" not in page
    suite = ElementTree.fromstring(rendered(find(STEPS), "junit"))[0]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert rendered(find(STEPS), "csv").count("\n") == 1


def test_a_run_without_a_series_is_still_drawn(results: Path) -> None:
    (results / STEPS / "series.json").unlink()
    assert "Latency by percentile" in page_of(STEPS)


def test_a_sweep_of_200_runs_stays_small(results: Path) -> None:
    template = RunRecord.read("20261121T122533Z-two-pools-8c97")
    assert template
    cells = []
    for number in range(200):
        record = RunRecord.model_validate(template.to_json())
        record.testid = f"20261121T1300{number:04}Z-many-0000"
        record.values = {"rate": 10 * (number // 8 + 1)}
        step = record.steps[0]
        step.variant, step.repeat = ("a", "b")[number % 2], number % 8 // 2 + 1
        step.offered_rate = step.achieved_rate = step.started_rate = 10.0 * (number // 8 + 1)
        record.save()
        cell = CellState(values=record.values, variant=step.variant, testid=record.testid)
        cells.append(cell.model_copy(update={"repeat": step.repeat}))
    state = ExperimentState(
        experiment="many", kind="sweep", plan="many", digest="d", started=template.started
    )
    state.cells = cells
    state.save()
    assert page_of("many").count('scope="row"') > 200
    assert rendered(find("many"), "csv").count("\n") == 201


def test_what_is_not_done_stands_in_the_limits(results: Path) -> None:
    path = results / SWEEP / "experiment.json"
    state = json.loads(path.read_text())
    state["state"], state["reason"] = "stopped", "the disk is full"
    state["cells"][3]["testid"] = None
    path.write_text(json.dumps(state))
    page = page_of(SWEEP)
    assert "It is not finished (stopped: the disk is full)." in page
    assert "1 of 17 runs are not done." in page


# Markdown, CSV and JUnit.


@pytest.mark.parametrize("name", ALL)
def test_the_markdown_says_the_verdict_and_its_tables_are_whole(results: Path, name: str) -> None:
    text = rendered(find(name), "md")
    assert SAID[name].replace("_", r"\_") in text.split("\n\n")[1]
    assert len(text) < 100_000
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(rendered(find(name), "csv"))))


def test_the_csv_has_a_row_a_run_in_order_of_time(results: Path) -> None:
    found = rows(COMPARISON)
    assert len(found) == 12
    assert [row["time"] for row in found] == sorted(row["time"] for row in found)
    record = RunRecord.read(found[0]["run"])
    assert record
    step = record.steps[0]
    assert float(found[0]["latency_p95_seconds"]) == pytest.approx(step.latency_seconds.p95)
    assert float(found[0]["achieved_rate"]) == step.achieved_rate
    assert {row["variant"] for row in found} == {"a", "b"}


def test_the_columns_that_the_docs_have_otava_read_are_numbers(results: Path) -> None:
    """As its importer (0.8) reads them: every cell of a metric goes through float()."""
    docs = (paths.ROOT / "docs" / "report.md").read_text()
    settings = yaml.safe_load(re.findall(r"```yaml\n(tests:.*?)```", docs, re.DOTALL)[0])
    (test,) = settings["tests"].values()
    for row in rows(COMPARISON):
        assert row[test["time_column"]].endswith("+00:00")
        assert set(test["attributes"]) <= set(row)
        for metric in test["metrics"].values():
            float(row[metric["column"]])


def test_labels_reach_the_csv_and_no_cell_is_a_formula(results: Path) -> None:
    record = RunRecord.read(STEPS)
    assert record
    record.labels = {"commit": "=1+1", "branch": "main"}
    record.save()
    (row,) = rows(STEPS)
    assert (row["commit"], row["branch"]) == ("'=1+1", "main")


def cases(name: str) -> dict[str, Any]:
    suite = ElementTree.fromstring(rendered(find(name), "junit"))[0]
    found = {case.get("name"): case for case in suite.findall("testcase")}
    assert len(found) == int(suite.get("tests") or 0), "names are unique"
    return {str(key): [child.tag for child in case] for key, case in found.items()}


def test_junit_has_a_case_for_each_objective_of_each_step(results: Path) -> None:
    found = cases(STEPS)
    assert len(found) == 9
    assert found["low: p95 < 250ms"] == []
    assert found["high: p95 < 250ms"] == found["high: rate held"] == ["failure"]
    assert len(cases(SWEEP)) == 51


def test_junit_skips_what_decided_nothing(results: Path) -> None:
    record = RunRecord.read(STEPS)
    assert record
    record.steps[1].verdict, record.steps[1].generator.limited = "inconclusive", True
    record.save()
    assert cases(STEPS)["high: p95 < 250ms"] == ["skipped"]


def test_junit_has_the_answer_of_a_comparison_and_of_a_search(results: Path) -> None:
    assert list(cases(COMPARISON).values()) == [["failure"]]
    assert list(cases(CAPACITY).values()) == [["system-out"]]


def test_an_import_judged_anew_is_reported_anew(results: Path) -> None:
    assert SAID[SWEEP] in page_of(SWEEP)
    imports.run("vegeta", DATA / "vegeta_sweep", ["success>=0.999"], None)
    page = page_of(SWEEP)
    assert "Off holds 1,000/s; no tested rate failed. On holds 800/s; fails at 850/s" in page


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_something_of_every_kind(results: Path, name: str) -> None:
    for each in ALL:
        assert rendered(find(each), name).strip()
