"""The lab's own writing of phases."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.drivers.k6 import read_bodies
from spikelab.history import Event, mark_aborted, write_events, write_kept
from spikelab.stores import InfluxDB
from tests.unit.records import plain_record

BEGUN = datetime(2026, 11, 21, 1, 2, 3, 250_000, tzinfo=UTC)
EVENT = Event(
    testid="20261121T010203Z-mine-0a1b",
    driver="k6",
    phase="steady",
    text="1,000 rate",
    kind="rate",
    begun=BEGUN,
    ended=BEGUN + timedelta(seconds=2),
    state="closed",
)


def test_a_phase_is_the_point_that_its_driver_wrote() -> None:
    assert EVENT.line() == (
        "events,driver=k6,phase=steady,testid=20261121T010203Z-mine-0a1b "
        'title="steady",text="1,000 rate",tags="k6,rate",state="closed",'
        "timeEnd=1795222925250i 1795222923250"
    )


def test_what_cannot_be_written_is_kept_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    (tmp_path / EVENT.testid).mkdir()
    nobody = InfluxDB("http://127.0.0.1:9")
    assert write_events(nobody, [EVENT]) == 1
    write_kept(nobody)
    assert (tmp_path / EVENT.testid / "events.lp").read_text() == EVENT.line() + "\n"


def test_bodies_are_read_from_a_log_of_k6_and_nonsense_in_it_is_passed_over(
    tmp_path: Path,
) -> None:
    log = tmp_path / "k6.log"
    sample = r'time="x" level=info msg="spikelab-body {\"phase\":\"p\",\"status\":503,\"body\":%s}" source=console'  # noqa: E501
    lines = [sample % rf"\"busy \\\"{n}\\\"\"" for n in (1, 1, 2, 3, 4, 5, 6)]
    cut = 'level=info msg="spikelab-body {\\"phase\\":\\"p\\",\\"sta" source=console'
    log.write_text("\n".join([cut, "unrelated", *lines]))
    assert read_bodies(log) == {"p": [f'503: busy "{n}"' for n in (1, 2, 3, 4, 5)]}


def test_phases_that_could_not_be_marked_aborted_wait_for_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cut the run off may have cut off InfluxDB as well."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    record = plain_record(ended=EVENT.ended)
    record.save()
    for influxdb in (None, InfluxDB("http://127.0.0.1:9")):
        mark_aborted(influxdb, record, EVENT.ended)
        assert (record.folder / "events.open").exists()
