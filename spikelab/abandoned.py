"""What earlier runs left undone because the lab or InfluxDB died: the next command does it."""

from datetime import UTC, datetime

from spikelab.events import mark_aborted, write_kept
from spikelab.history import write_history
from spikelab.record import RunRecord, all_records
from spikelab.stores.influxdb import InfluxDB


def close_abandoned(influxdb_url: str | None) -> None:
    """Closes every open record and its phases, and writes phases that were kept for later.

    To be called only while no run is going.
    """
    if influxdb_url:
        write_kept(InfluxDB(influxdb_url))
    for record in all_records():
        if record.ended is None:
            record.ended = _last_sign(record)
            record.reasons = ["the lab was killed during the run"]
            record.save()
            if influxdb_url:
                mark_aborted(InfluxDB(influxdb_url), record, record.ended)
                write_history(record, InfluxDB(influxdb_url))


def _last_sign(record: RunRecord) -> datetime:
    """When the run last wrote a file."""
    written = max(path.stat().st_mtime for path in record.folder.iterdir())
    return datetime.fromtimestamp(written, UTC)
