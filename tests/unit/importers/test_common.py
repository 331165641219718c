"""Reports of every format: no other format takes one, and damage gives a record or one line."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spikelab.importers import FORMATS
from spikelab.importers.common import Report, ReportError
from spikelab.importers.runs import Imported, ReportSource, build_record
from tests.support.reports import DATA, text_of

FILES = {
    "vegeta.txt": "vegeta",
    "vegeta_refused.txt": "vegeta",
    "vegeta.json": "vegeta",
    "k6_summary_export.json": "k6",
    "k6_handle_summary.json": "k6",
    "k6_machine_readable.json": "k6",
    "locust_stats.csv": "locust",
    "fortio.json": "fortio",
}


@pytest.mark.parametrize("name", FILES)
def test_a_report_is_taken_by_its_own_format_alone(name: str) -> None:
    for other in set(FORMATS) - {FILES[name]}:
        with pytest.raises(ReportError):
            FORMATS[other].parse(text_of(name))


JUNK = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["-1", "0", "1e999", "NaN", "null", "[]", "{}", "N/A", "9" * 400, "%", ",", ":", "ns", '"']
    ),
)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, str]:
    """A real report with a stretch replaced, up to three times."""
    name = draw(st.sampled_from(sorted(FILES)))
    text = text_of(name)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(JUNK) + text[end:]
    return FILES[name], text


def takes(format_name: str, text: str) -> None:
    """A record, or a ReportError: nothing else."""
    try:
        report = FORMATS[format_name].parse(text)
    except ReportError as error:
        assert "\n" not in str(error)
        return
    assert isinstance(report, Report)
    source = ReportSource(DATA / "vegeta.txt", "sweep", "on", 100.0)
    record = build_record(Imported(format_name, source, report, "0" * 12), [], None)
    json.dumps(record.to_json(), allow_nan=False)


@settings(max_examples=600, deadline=None)
@given(mutations())
def test_a_mutated_report_is_a_record_or_one_line(mutated: tuple[str, str]) -> None:
    takes(*mutated)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutated_value_is_a_record_or_one_line(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(n for n in FILES if n.endswith(".json"))))
    document = json.loads(text_of(name))
    leaf = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([])
    )
    part: Any = document
    while True:
        key = data.draw(
            st.sampled_from(range(len(part)) if isinstance(part, list) else sorted(part))
        )
        if not isinstance(part[key], dict | list) or not part[key] or data.draw(st.booleans()):
            break
        part = part[key]
    part[key] = data.draw(leaf)
    takes(FILES[name], json.dumps(document))
