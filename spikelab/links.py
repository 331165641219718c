"""Deep links into Grafana."""

from spikelab.record import RunRecord

# Room on both sides, so that the first and last moments are not cut off.
_MARGIN_MS = 2000


def dashboard_url(grafana: str, record: RunRecord, uid: str = "load-test") -> str:
    """The dashboard on exactly the run's time range and testid."""
    start = int(record.started.timestamp() * 1000) - _MARGIN_MS
    end = "now"
    if record.ended is not None:
        end = str(int(record.ended.timestamp() * 1000) + _MARGIN_MS)
    return f"{grafana}/d/{uid}?from={start}&to={end}&var-testid={record.testid}"
