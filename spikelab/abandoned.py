"""Records of runs whose lab was killed: nobody closed them, so the next command does."""

from spikelab.locks import going_run
from spikelab.record import all_records, now


def close_abandoned() -> None:
    """Closes open records while no run is going; they stay invalid."""
    if going_run():
        return
    for record in all_records():
        if record.ended is None:
            record.ended = now()
            record.reasons = ["the lab was killed during the run"]
            record.save()
