"""What earlier runs left undone because the lab or InfluxDB died: the next command does it."""

from datetime import UTC, datetime
from pathlib import Path

from spikelab.drivers.choice import DRIVERS
from spikelab.events import mark_aborted, write_kept
from spikelab.experiments.state import all_states
from spikelab.history import write_history
from spikelab.record import all_records
from spikelab.stores.influxdb import InfluxDB


def close_abandoned(influxdb_url: str | None) -> None:
    """Closes every open record and its phases, writes what was kept for later, and stops
    experiments that count as going. Without InfluxDB, what belongs there is kept.

    To be called only while no run is going.
    """
    influxdb = InfluxDB(influxdb_url) if influxdb_url else None
    if influxdb:
        write_kept(influxdb)
    for record in all_records():
        if record.ended is None:
            record.ended = _last_written(record.folder)
            record.reasons = ["the lab was killed during the run"]
            # A driver that ended after the lab may have left its users' headers.
            for driver in DRIVERS:
                driver.remove_secrets(record.folder)
            record.save()
            mark_aborted(influxdb, record, record.ended)
            write_history(record, influxdb)
    for state in all_states():
        if state.state == "going":
            state.state, state.reason = "stopped", "the lab was killed"
            state.ended = _last_written(state.folder)
            state.save()


def _last_written(folder: Path) -> datetime:
    """When the run, or the experiment, last wrote a file."""
    written = max(path.stat().st_mtime for path in folder.iterdir())
    return datetime.fromtimestamp(written, UTC)
