"""What processes use, read from real ones."""

import subprocess
import sys
import time
from datetime import UTC, datetime

import psutil
import pytest

from spikelab.drivers.process import Usage, UsageSample, use_between

BUSY = "import time\nend = time.time() + 2.5\nwhile time.time() < end: pass"


def test_a_busy_process_uses_about_a_core_and_an_idle_one_none() -> None:
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    idle = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2.5)"])
    usages = [Usage(lambda p=p: psutil.Process(p.pid)) for p in (busy, idle)]
    began = datetime.now(UTC)
    time.sleep(2.2)
    uses = [usage.between(began, datetime.now(UTC)) for usage in usages]
    for process, usage in zip((busy, idle), usages, strict=True):
        process.kill()
        process.wait()
        usage.stop()
    assert uses[0] and uses[1]
    # What it did not get of its core it waited for.
    assert uses[0].cores + uses[0].waiting == pytest.approx(1, abs=0.25)
    assert uses[1].cores < 0.2
    assert usages[0].memory_bytes > 1_000_000


def test_use_is_of_the_stretch_alone() -> None:
    samples = [
        UsageSample(t, cpu_seconds=max(0, t - 10), waited_seconds=0, memory_bytes=1)
        for t in range(20)
    ]
    before, after = use_between(samples, 2, 9), use_between(samples, 11, 19)
    assert before and before.cores == 0
    assert after and after.cores == 1
    assert use_between(samples, 5, 5.5) is None
