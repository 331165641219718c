"""./lab test: what becomes of its arguments, and of the tests when it is stopped."""

import signal
import subprocess
import sys

import pytest

from spikelab import paths
from spikelab.errors import EXIT_INTERRUPTED

# main() of tests/run.py with another run(): it prints its arguments, or starts what would go on.
SCRIPT = """
import subprocess, sys
from tests import run
run.run = lambda fast, arguments: {body}
sys.argv = ["run", *sys.argv[1:]]
sys.exit(run.main())
"""


def started(body: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(body=body), *arguments],
        cwd=paths.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "fast", "for_pytest"),
    [
        (["--fast", "--", "-k", "plan"], True, ["-k", "plan"]),
        (["--", "--fast"], False, ["--fast"]),
        (["tests/unit", "-k", "plan"], False, ["tests/unit", "-k", "plan"]),
        (["--"], False, []),
    ],
)
def test_what_comes_after_two_dashes_is_for_pytest(
    arguments: list[str], fast: bool, for_pytest: list[str]
) -> None:
    said, _ = started("print(fast, arguments)", *arguments).communicate(timeout=60)
    assert said.strip() == f"{fast} {for_pytest}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_from_outside_ends_the_tests_too(number: signal.Signals) -> None:
    endless = "'import time; print(1, flush=True); time.sleep(600)'"
    process = started(f"subprocess.run([sys.executable, '-c', {endless}]).returncode")
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    process.send_signal(number)
    # Ends when nobody holds the pipe any longer: neither the script nor what it started.
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (EXIT_INTERRUPTED, "lab: interrupted\n")
