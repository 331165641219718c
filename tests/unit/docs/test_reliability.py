"""The table of docs/reliability.md is what the fault tests saw."""

from typing import Any

import pytest

from tests import reliability


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return reliability.kept()


def test_the_page_has_the_table_of_the_rows_that_are_kept(document: dict[str, Any]) -> None:
    page = reliability.PAGE.read_text(encoding="utf-8")
    assert page == reliability.page_with(page, reliability.table(document)), (
        "docs/reliability.md: python -m tests.reliability writes it"
    )


def test_every_fault_test_has_its_row_and_every_row_its_test(document: dict[str, Any]) -> None:
    assert reliability.missing(document["rows"]) == []
    named = {row["test"].partition("[")[0] for row in document["rows"]}
    assert named == reliability.fault_tests()


def test_the_table_names_no_address_or_path_of_one_run(document: dict[str, Any]) -> None:
    table = reliability.table(document)
    assert "127.0.0.1" not in table
    assert "spikelab-test" not in table
    assert "/tmp" not in table
