"""Which CPUs driver and target get: whole cores, none shared, none that is not there."""

from collections.abc import Callable

import pytest

from spikelab.errors import UsageError
from spikelab.machine import Cores, chosen_cores, cpu_list, parse_cpu_list, separate_cores


def one_thread(cpu: int) -> tuple[int, int]:
    return 0, cpu


def threads(cores: int) -> Callable[[int], tuple[int, int]]:
    """One socket whose CPUs n and n + cores are one core."""
    return lambda cpu: (0, cpu % cores)


def test_four_cores_are_halved() -> None:
    assert separate_cores(range(4), one_thread) == Cores(driver=(0, 1), target=(2, 3))


def test_threads_of_one_core_stay_together() -> None:
    assert separate_cores(range(4), threads(2)) == Cores(driver=(0, 2), target=(1, 3))
    assert separate_cores(range(12), threads(6)) == Cores(
        driver=(0, 1, 2, 6, 7, 8), target=(3, 4, 5, 9, 10, 11)
    )


def test_the_odd_core_is_nobodys() -> None:
    assert separate_cores(range(5), one_thread) == Cores(driver=(0, 1), target=(3, 4))


def test_two_sockets_are_the_two_halves() -> None:
    chosen = separate_cores(range(8), lambda cpu: (cpu % 2, cpu))
    assert chosen == Cores(driver=(0, 2, 4, 6), target=(1, 3, 5, 7))


def test_only_cpus_that_may_be_used_are_given_away() -> None:
    assert separate_cores({2, 3, 6, 7}, one_thread) == Cores(driver=(2, 3), target=(6, 7))


@pytest.mark.parametrize(("cpus", "cores"), [(2, 2), (3, 3), (4, 1)])
def test_too_few_cores_are_shared(cpus: int, cores: int) -> None:
    assert separate_cores(range(cpus), threads(cores)) is None


def test_settings_decide_for_every_run_and_none_switches_off() -> None:
    asked = {"DRIVER_CPUS": "0", "TARGET_CPUS": "1"}
    assert chosen_cores(asked, {0, 1}, separate=False) == Cores(driver=(0,), target=(1,))
    assert chosen_cores({}, range(8), separate=False) is None
    assert chosen_cores({}, range(8), separate=True) is not None
    assert chosen_cores({"TARGET_CPUS": "none"}, range(8), separate=True) is None


@pytest.mark.parametrize(
    ("driver", "target", "message"),
    [
        ("0-", "1", "DRIVER_CPUS=0-: write CPU numbers such as 0-2,5, or none"),
        ("0", "1-0", "TARGET_CPUS=1-0: write CPU numbers"),
        ("0", "²", "TARGET_CPUS=²: write CPU numbers"),
        ("0", "1,7", "TARGET_CPUS=1,7: there is no CPU 7 to be used here, only 0-3"),
        ("0-999999", "1", "there is no CPU 4 to be used here"),
        ("0-2", "2-3", "DRIVER_CPUS and TARGET_CPUS share CPU 2"),
        ("0", "", "DRIVER_CPUS=0: set TARGET_CPUS as well"),
        ("none", "1", "TARGET_CPUS=1: set DRIVER_CPUS as well"),
    ],
)
def test_a_wrong_setting_is_one_line(driver: str, target: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        chosen_cores({"DRIVER_CPUS": driver, "TARGET_CPUS": target}, range(4), separate=True)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_where_nothing_can_be_bound_a_setting_says_so_and_nothing_is_chosen() -> None:
    assert chosen_cores({}, (), separate=True) is None
    with pytest.raises(UsageError, match="binds no process to CPUs"):
        chosen_cores({"DRIVER_CPUS": "0", "TARGET_CPUS": "1"}, (), separate=False)


def test_lists_are_read_as_they_are_written() -> None:
    for text in ("0", "0-2,5", "3,5-6"):
        assert cpu_list(parse_cpu_list(text)) == text
