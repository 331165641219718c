"""What only raw samples tell: the waves in which a spike was answered, and what is missing."""

from collections.abc import Sequence
from statistics import median

from spikelab.record import Step, Wave
from spikelab.stores.influxdb import InfluxDB

# Answers of one wave are as far apart as their users' starts were, and a user whose start was late
# leaves a gap of that size. Between waves stays what the spread leaves of the service time.
_SMALLEST_GAP_SECONDS = 0.25
_LARGEST_GAP_SECONDS = 1.0


def good_answer_seconds(influxdb: InfluxDB, testid: str, step: Step) -> list[float]:
    """When a step's good answers came, in seconds since its start. Raises LabError when InfluxDB
    does not answer."""
    rows = influxdb.query(
        'SELECT "value" FROM "http_req_duration" WHERE '
        f"\"testid\" = '{testid}' AND \"scenario\" = '{step.phase}' "
        "AND \"expected_response\" = 'true'"
    )
    start = step.started.timestamp()
    return [row["time"] / 1000 - start for row in rows]


def missing_samples(influxdb: InfluxDB, testid: str, step: Step) -> int:
    """Requests of a step that InfluxDB does not have: k6 drops what it could not write."""
    rows = influxdb.query(
        'SELECT count("value") AS "stored" FROM "http_reqs" WHERE '
        f"\"testid\" = '{testid}' AND \"scenario\" = '{step.phase}'"
    )
    return max(0, step.requests - (rows[0]["stored"] if rows else 0))


def waves(answer_seconds: Sequence[float], start_spread_seconds: float) -> list[Wave]:
    """Groups times (seconds since the start) that no gap above the spread of the start separates.

    >>> waves([5.0, 5.1, 10.0], start_spread_seconds=0.1)
    [Wave(answers=2, at_seconds=5.05), Wave(answers=1, at_seconds=10.0)]
    """
    gap = min(start_spread_seconds + _SMALLEST_GAP_SECONDS, _LARGEST_GAP_SECONDS)
    groups: list[list[float]] = []
    for seconds in sorted(answer_seconds):
        if groups and seconds - groups[-1][-1] <= gap:
            groups[-1].append(seconds)
        else:
            groups.append([seconds])
    return [Wave(answers=len(group), at_seconds=round(median(group), 3)) for group in groups]
