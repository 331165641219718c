"""A real Prometheus that has recorded what a test says, some time ago."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.errors import LabError
from spikelab.stores import Prometheus
from tests.support.ports import free_ports

needs_prometheus = pytest.mark.skipif(
    not (paths.BIN / "prometheus").is_file(), reason="Prometheus is not built: ./lab up builds it"
)
# Long past what a store that starts waits for. At a whole minute: steps are aligned.
BEGUN = datetime.fromtimestamp(int(time.time() / 60 - 600) * 60, UTC)
_READY_SECONDS = 20
# A series by its name with its labels: its value at each second after BEGUN, None for no sample.
Recorded = Mapping[str, Callable[[int], float | None]]


def at(seconds: float) -> datetime:
    """A moment of what was recorded."""
    return BEGUN + timedelta(seconds=seconds)


@contextmanager
def past_prometheus(
    folder: Path, seconds: Sequence[int], recorded: Recorded
) -> Iterator[Prometheus]:
    """Prometheus with these series, each sampled at these seconds after BEGUN."""
    file = folder / "recorded.txt"
    samples = [
        # OpenMetrics has no space between labels.
        f"{series.replace(', ', ',')} {value} {BEGUN.timestamp() + second}"
        for series, value_at in recorded.items()
        for second in seconds
        if (value := value_at(second)) is not None
    ]
    file.write_text("\n".join([*samples, "# EOF\n"]))
    data, config = folder / "data", folder / "prometheus.yml"
    config.write_text("{}")
    promtool = [str(paths.BIN / "promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*promtool, str(file), str(data)], check=True, capture_output=True)
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [
            str(paths.BIN / "prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        found = Prometheus(f"http://127.0.0.1:{port}")
        _until_ready(found)
        yield found
    finally:
        server.terminate()
        server.wait()


def _until_ready(prometheus: Prometheus) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            prometheus.query("vector(1)")
        except (LabError, KeyError):
            assert time.monotonic() < deadline, "Prometheus does not start"
            time.sleep(0.1)
        else:
            return
