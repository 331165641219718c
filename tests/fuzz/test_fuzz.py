"""10,000 cases a parser, the same for the same seed: LAB_FUZZ_SEED and LAB_FUZZ_CASES change them.

`python -m bench.fuzz` goes on from here; what it finds lies in findings/ and is tried first.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import findings, oracle
from tests.fuzz.findings import read_findings
from tests.fuzz.oracle import Check
from tests.fuzz.parsers import FROM_VALID, PARSERS, Parser

CASES = int(os.environ.get("LAB_FUZZ_CASES", "10000"))
SEED = int(os.environ.get("LAB_FUZZ_SEED", "1"))

by_parser = pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)


@contextmanager
def tried(parser: Parser, check: Check, data: bytes, told: str) -> Iterator[bool]:
    """Whether it was taken. A finding is shown as what one can put into findings/."""
    try:
        yield check(data)
    except Exception as error:
        error.add_note(f"{parser.name}, {told}: {data!r}")
        raise


@by_parser
def test_valid_input_is_taken(parser: Parser) -> None:
    with parser.opened() as check:
        for data in parser.valid:
            with tried(parser, check, data, "valid") as taken:
                assert taken, data


@by_parser
def test_earlier_findings_give_figures_or_one_line(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle, "thorough", True)
    with parser.opened() as check:
        for name, data in read_findings(parser.name).items():
            with tried(parser, check, data, name):
                pass


@pytest.mark.timeout(600)
@by_parser
def test_damaged_input_gives_figures_or_one_line(parser: Parser) -> None:
    taken = 0
    with parser.opened() as check:
        for number in range(CASES):
            case = parser.case(Random(SEED * 10**9 + number))
            with tried(parser, check, case, f"case {number} of the seed {SEED}") as was_taken:
                taken += was_taken
        # After all that, what is valid is taken still.
        assert all(check(data) for data in parser.valid)
    print(f"{parser.name}: {CASES:,} cases with the seed {SEED}, {taken:,} taken")
    assert taken < CASES


def test_half_of_the_cases_are_of_valid_input() -> None:
    assert FROM_VALID >= 0.5


def test_findings_are_small_and_of_parsers_that_there_are() -> None:
    sizes = {file.stem: file.stat().st_size for file in findings.FOLDER.iterdir()}
    assert sum(sizes.values()) < 1_000_000
    # The last two are the target's own: TokenFuzzTest and HttpFuzzTest.
    assert set(sizes) <= {*PARSERS, "token", "http"}


def test_a_finding_that_is_added_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "FOLDER", tmp_path)
    found = {"b": "line\r\nü\0".encode(), "a": b"\xff\xfe"}
    findings.add_findings("run", {"b": found["b"]})
    findings.add_findings("run", {"a": found["a"]})
    assert read_findings("run") == found
    assert list(read_findings("run")) == ["a", "b"]


def test_a_case_follows_from_its_seed() -> None:
    parser = PARSERS["run"]
    assert parser.case(Random(7)) == parser.case(Random(7))


def test_a_case_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with PARSERS["run"].opened() as check:
        check(b"{}")
    assert not list(tmp_path.iterdir())
