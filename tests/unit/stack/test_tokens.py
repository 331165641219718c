"""The file in which a token reaches a driver."""

from pathlib import Path

import pytest

from spikelab import paths
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.host import HostRuntime


def test_a_token_is_handed_to_a_driver_as_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setenv("TOKEN", "secret")
    command = DockerRuntime().driver("k6", [], {}, "t")
    assert "secret" not in (*command.argv, *command.env.values())
    file = Path(command.env["TOKEN_FILE"])
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("secret", 0o600)

    monkeypatch.setenv("TOKEN", "")
    assert "TOKEN_FILE" not in DockerRuntime().driver("k6", [], {}, "t").env
    assert not file.exists()


def test_a_token_s_file_is_looked_for_in_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOKEN", raising=False)
    monkeypatch.setenv("TOKEN_FILE", "mine")
    monkeypatch.setattr(paths, "STATE", tmp_path)
    file = tmp_path / "mine"
    assert HostRuntime().driver("k6", [], {}, "t").env["TOKEN_FILE"] == str(file)
    # A container that needs it says that it is not there; no other driver fails of it.
    command = DockerRuntime().driver("k6", [], {}, "t")
    assert f"TOKEN_FILE={file}" in command.argv
    assert command.env["TOKEN_FILE"] == ""
    file.touch()
    assert DockerRuntime().driver("k6", [], {}, "t").env["TOKEN_FILE"] == str(file)
