"""The series that a record keeps of its run."""

from typing import Any

import pytest

from spikelab.series import LOAD, QUEUES, written


@pytest.mark.parametrize("signal", (*LOAD, *QUEUES), ids=lambda signal: signal.name)
def test_a_signal_is_read_for_one_run_without_a_variable_left(signal: Any) -> None:
    expression = written(signal, "20261121T010203Z-mine-0a1b", 2)
    assert "$" not in expression
    assert ('20261121T010203Z-mine-0a1b"' in expression) == (signal in LOAD)
