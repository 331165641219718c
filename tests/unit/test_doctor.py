"""What ./lab doctor says of compose/.env's limits on a machine."""

from dataclasses import replace

import pytest
from dotenv import dotenv_values

from spikelab import paths
from spikelab.doctor import (
    CONTAINER_CHECKS,
    container_cpus,
    container_files,
    container_memory,
    container_processes,
    parse_size,
    run,
)
from spikelab.errors import UsageError
from spikelab.stack.engine import Engine

GIBIBYTE = 2**30


VALUES = {name: value for name, value in dotenv_values(paths.ENV_EXAMPLE).items() if value}


ENGINE = Engine(cpus=2, memory_bytes=8 * GIBIBYTE, open_files=20_000, system="Debian")


def test_the_defaults_fit_a_machine_of_two_cpus_and_eight_gibibytes() -> None:
    for check in (container_memory, container_cpus, container_processes, container_files):
        assert check(VALUES, ENGINE).state == "ok", check.__name__


@pytest.mark.parametrize(
    ("text", "size"),
    [("2g", 2 * GIBIBYTE), ("512m", 512 * 2**20), ("1.5GB", 3 * 2**29), ("8000000", 8_000_000)],
)
def test_a_size_is_read_as_compose_reads_it(text: str, size: int) -> None:
    assert parse_size("TARGET_MEMORY_LIMIT", text) == size


@pytest.mark.parametrize("text", ["", "2x", "-1g", "5m", "nan", "2 000m"])
def test_an_invalid_size_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"^TARGET_MEMORY_LIMIT=.* \(compose/\.env\)$"):
        parse_size("TARGET_MEMORY_LIMIT", text)


def test_a_memory_limit_above_the_machine_s_is_named() -> None:
    found = container_memory({**VALUES, "STORE_MEMORY_LIMIT": "9g"}, ENGINE)
    assert (found.state, found.found) == ("limits", "STORE_MEMORY_LIMIT=9g")
    assert "8.0 GiB" in found.limits


def test_target_and_driver_have_to_fit_together() -> None:
    found = container_memory(VALUES, replace(ENGINE, memory_bytes=5 * GIBIBYTE))
    assert found.state == "limits"
    assert found.found == "6.0 GiB for target and driver together"


@pytest.mark.parametrize(("limit", "state"), [("0", "ok"), ("1.5", "limits"), ("2.5", "missing")])
def test_a_limit_of_cpus_is_compared_with_the_machine_s(limit: str, state: str) -> None:
    assert container_cpus({**VALUES, "TARGET_CPU_LIMIT": limit}, ENGINE).state == state


@pytest.mark.parametrize("limit", ["x", "-1", "nan", "inf", "0.001"])
def test_an_invalid_number_of_cpus_is_named(limit: str) -> None:
    with pytest.raises(UsageError, match=f"^TARGET_CPU_LIMIT={limit}: "):
        container_cpus({**VALUES, "TARGET_CPU_LIMIT": limit}, ENGINE)


def test_a_process_limit_must_be_200_above_the_threads() -> None:
    assert container_processes({**VALUES, "TOMCAT_MAX_THREADS": "2000"}, ENGINE).state == "ok"
    found = container_processes({**VALUES, "TOMCAT_MAX_THREADS": "2001"}, ENGINE)
    assert found.state == "limits"
    cure = "TOMCAT_MAX_THREADS=2001 needs TARGET_PROCESS_LIMIT=2201, which is 2200 (compose/.env)"
    assert found.limits == cure


def test_open_files_that_the_engine_cannot_give_are_named() -> None:
    assert container_files({**VALUES, "OPEN_FILES": "20001"}, ENGINE).state == "missing"
    unseen = replace(ENGINE, open_files=None)
    assert container_files({**VALUES, "OPEN_FILES": "20001"}, unseen).state == "ok"


def test_without_an_engine_no_limit_of_a_container_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    run()
    said = capsys.readouterr().out
    assert "container engine" in said
    assert not [name for name in CONTAINER_CHECKS if name in said]
