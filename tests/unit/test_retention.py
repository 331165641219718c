"""The age of raw samples, and when they are not deleted."""

from pathlib import Path

import pytest

from spikelab import paths
from spikelab.cli import stack
from spikelab.errors import UsageError
from spikelab.history import require_age
from spikelab.stack import locks
from tests.unit.http_server import Server


@pytest.mark.parametrize("text", ["0", "12h", "30d", "4w", "15250w", "99999d"])
def test_an_age(text: str) -> None:
    assert require_age(text) == text


@pytest.mark.parametrize("text", ["15251w", "99999w"])
def test_an_age_of_more_nanoseconds_than_influxdb_counts(text: str) -> None:
    with pytest.raises(UsageError, match=f"^INFLUXDB_RAW_RETENTION={text}: is more than the 292 y"):
        require_age(text)


@pytest.mark.parametrize("text", ["", "0d", "-1d", "30 days", "100000h", "1y"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError, match="must be an age"):
        require_age(text)


def test_nothing_is_deleted_beside_a_run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    server: Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(locks, "_LOCK", tmp_path / "run.lock")
    monkeypatch.setattr(paths, "STATE", tmp_path)
    server.text = '{"results": [{"statement_id": 0}]}'
    with locks.only_run():
        stack._forget(server.url, "30d")
        assert not server.requests
        assert "stay until the next ./lab up" in capsys.readouterr().err
        stack._forget(server.url, "0")
        assert capsys.readouterr().err == ""
    stack._forget(server.url, "30d")
    assert [each.path.split("?")[0] for each in server.requests] == ["/query"]
    assert capsys.readouterr().err == ""
