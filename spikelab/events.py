"""Phases that a driver left open or closed in good faith, when its run did not end well."""

from contextlib import suppress
from datetime import datetime

from spikelab.errors import LabError
from spikelab.stores.influxdb import InfluxDB


def mark_aborted(influxdb: InfluxDB, testid: str, ended: datetime) -> None:
    """Gives the run's phases their real end and the state `aborted`, by overwriting the points.

    Without an answer from InfluxDB they stay as they are: a run's end must not hang on it.
    """
    ended_ms = int(ended.timestamp() * 1000)
    with suppress(LabError):
        rows = influxdb.query(f"SELECT * FROM events WHERE testid = '{testid}'")
        lines = [
            f"events,driver={row['driver']},phase={row['phase']},testid={testid} "
            f'state="aborted",timeEnd={min(ended_ms, row["timeEnd"])}i {row["time"]}'
            for row in rows
        ]
        if lines:
            influxdb.write("\n".join(lines))
