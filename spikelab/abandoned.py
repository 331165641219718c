"""Records of runs whose lab was killed: nobody closed them, so the next command does."""

from datetime import UTC, datetime

from spikelab.events import mark_aborted
from spikelab.record import RunRecord, all_records
from spikelab.stores.influxdb import InfluxDB


def close_abandoned(influxdb_url: str | None) -> None:
    """Closes every open record and its phases. To be called only while no run is going."""
    for record in all_records():
        if record.ended is None:
            record.ended = _last_sign(record)
            record.reasons = ["the lab was killed during the run"]
            record.save()
            if influxdb_url:
                mark_aborted(InfluxDB(influxdb_url), record.testid, record.ended)


def _last_sign(record: RunRecord) -> datetime:
    """When the run last wrote a file."""
    written = max(path.stat().st_mtime for path in record.folder.iterdir())
    return datetime.fromtimestamp(written, UTC)
