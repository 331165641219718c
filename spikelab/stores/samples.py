"""What only raw samples tell: the waves in which a spike was answered."""

from collections.abc import Sequence
from statistics import median

from spikelab.record import Step, Wave
from spikelab.stores.influxdb import InfluxDB

# Answers closer together than this belong to one wave. Inside a wave they are milliseconds apart;
# between waves stays what the spread of the start leaves of the service time.
_GAP_SECONDS = 0.25


def step_waves(influxdb: InfluxDB, testid: str, step: Step) -> list[Wave]:
    """The waves of a step's good answers. Raises LabError when InfluxDB does not answer."""
    rows = influxdb.query(
        'SELECT "value" FROM "http_req_duration" WHERE '
        f"\"testid\" = '{testid}' AND \"scenario\" = '{step.phase}' "
        "AND \"expected_response\" = 'true'"
    )
    start = step.started.timestamp()
    return waves([row["time"] / 1000 - start for row in rows])


def waves(answer_seconds: Sequence[float]) -> list[Wave]:
    """Groups times (seconds since the start) that no gap of a quarter second separates.

    >>> waves([5.0, 5.1, 10.0])
    [Wave(answers=2, at_seconds=5.05), Wave(answers=1, at_seconds=10.0)]
    """
    groups: list[list[float]] = []
    for seconds in sorted(answer_seconds):
        if groups and seconds - groups[-1][-1] < _GAP_SECONDS:
            groups[-1].append(seconds)
        else:
            groups.append([seconds])
    return [Wave(answers=len(group), at_seconds=round(median(group), 3)) for group in groups]
