"""./lab up deletes old raw samples, but not beside a run."""

from pathlib import Path

import pytest

from spikelab import paths
from spikelab.cli import stack
from spikelab.stack import locks
from tests.support.http_server import Server


def test_raw_samples_are_not_deleted_beside_a_run(
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
