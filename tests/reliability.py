"""What the fault tests saw, and the table of docs/reliability.md made from it.

Each fault test ends with `saw(…)`, so only a test that passed has rows. After a whole run of them
`python -m tests.reliability` keeps its rows as tests/data/reliability.json and writes the table.
"""

import ast
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

from spikelab import paths
from spikelab.results.files import write_json, write_whole

TESTS = (
    "tests/compose/test_faults_stack.py",
    "tests/compose/test_faults_stores.py",
    "tests/compose/test_faults_target.py",
    "tests/stack/test_faults.py",
)
# Of its tests those that freeze the target are fault tests.
_HEADLINE_FACTS = "tests/stack/test_headline_facts.py"
KEPT = paths.ROOT / "tests" / "data" / "reliability.json"
PAGE = paths.ROOT / "docs" / "reliability.md"
_SEEN = paths.BUILD / "reliability.jsonl"
_BEGIN, _END = "<!-- table: python -m tests.reliability -->", "<!-- end of the table -->"
# What differs from run to run says nothing about the fault.
_PASSING = (
    (re.compile(r"\b\d{8}T\d{6}Z-[\w-]+-[0-9a-f]{4}\b"), "RUN"),
    (re.compile(r"https?://127\.0\.0\.1:\d+"), "URL"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    # What a driver said last before it was killed.
    (re.compile(r"\(killed\): .*? \(see"), "(killed) (see"),
    (re.compile(r"\(pid \d+\)"), "(pid N)"),
    (re.compile(r"spikelab-test-[\w-]+?-(?=[a-z])"), ""),
)


@dataclass(frozen=True)
class Row:
    """What one test saw of one fault."""

    test: str
    fault: str
    runtime: str
    component: str
    asked: str  # what the lab was doing, or was told to do
    outcome: str  # in the lab's own words, and counts
    recovered_seconds: float | None  # None: there was nothing to recover
    recovered_by: str
    run: str
    seen: str


def saw(
    fault: str,
    runtime: str,
    component: str,
    asked: str,
    outcome: str,
    *,
    recovered_seconds: float | None = None,
    recovered_by: str = "",
    record: Mapping[str, Any] | None = None,
) -> None:
    """Writes a row; the last line of a fault test, after all that it asserts.

    `record`: the run's that was going; None where none was begun.
    """
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    row = Row(
        test,
        fault,
        runtime,
        component,
        asked,
        _lasting(outcome),
        None if recovered_seconds is None else round(recovered_seconds, 1),
        recovered_by,
        _verdict(record),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    _SEEN.parent.mkdir(parents=True, exist_ok=True)
    with _SEEN.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def saw_on_host(
    fault: str,
    component: str,
    outcome: str,
    record: Mapping[str, Any],
    recovered_seconds: float | None = None,
) -> None:
    """A row of a fault in a run on the host, from which everything recovers by itself."""
    saw(
        fault,
        *("host", component, "run"),
        outcome,
        record=record,
        recovered_seconds=recovered_seconds,
        recovered_by="by itself",
    )


def seconds_until(condition: Callable[[], object], seconds: float, what: str) -> float:
    """Waits for a recovery and returns how long it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - begun


def fault_tests() -> set[str]:
    """Every test there is in the files of fault tests, without its parameters."""
    return {
        f"{file}::{node.name}"
        for file in (*TESTS, _HEADLINE_FACTS)
        for node in ast.parse((paths.ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and (file in TESTS or node.name.endswith("_froze"))
    }


def kept() -> dict[str, Any]:
    """The rows of the last whole run, and what it ran on."""
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def table(document: Mapping[str, Any]) -> str:
    """The part of the page between its two markers."""
    lines = [
        f"Taken {document['taken']} on {document['machine']}.",
        "",
        "| | fault | runtime | what came of it | recovered in | the run |",
        "|---|---|---|---|---|---|",
    ]
    for row in document["rows"]:
        what = (row["component"], row["fault"], row["runtime"])
        cells = (*what, row["outcome"], _recovery(row), row["run"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def page_with(text: str, part: str) -> str:
    """The page with another table. Raises ValueError where a marker is missing."""
    before, found, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (found and end):
        raise ValueError(f"{PAGE.name} lacks the markers {_BEGIN} and {_END}")
    return f"{before}{_BEGIN}\n\n{part}\n{_END}{after}"


def missing(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fault tests that have no row."""
    return sorted(fault_tests() - {row["test"].partition("[")[0] for row in rows})


def main() -> int:
    """Keeps the newest row of each test and what it is about; exit code 1 while a test has none."""
    newest = {(row["test"], row["fault"], row["component"]): row for row in _seen()}
    known = fault_tests()
    rows = [row for row in newest.values() if row["test"].partition("[")[0] in known]
    if absent := missing(rows):
        print(*(f"no row: {name}" for name in absent), sep="\n", file=sys.stderr)
        return 1
    rows.sort(key=lambda row: (row["runtime"], row["component"], row["fault"], row["test"]))
    write_json(KEPT, {"taken": date.today().isoformat(), "machine": _machine(), "rows": rows})
    page = PAGE.read_text(encoding="utf-8")
    write_whole(PAGE, page_with(page, table(kept())))
    print(f"{len(rows)} rows")
    return 0


def _seen() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _SEEN.read_text(encoding="utf-8").splitlines()]


def _recovery(row: Mapping[str, Any]) -> str:
    if row["recovered_seconds"] is None:
        return "–"
    return f"{row['recovered_seconds']} s, {row['recovered_by']}"


def _verdict(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "none begun"
    return f"valid: {record['verdict']}" if record["valid"] else "invalid: no verdict"


def _lasting(text: str) -> str:
    for pattern, name in _PASSING:
        text = pattern.sub(name, text)
    return " ".join(text.split())


def _machine() -> str:
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        for command in (
            ["docker", "version", "--format", "{{.Server.Version}}"],
            ["docker", "compose", "version", "--short"],
        )
    ]
    return f"{os.cpu_count()} CPUs, Linux {platform.release()}, Engine {said[0]}, Compose {said[1]}"


if __name__ == "__main__":
    sys.exit(main())
