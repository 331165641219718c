"""Deep links into Grafana."""

from datetime import datetime

from spikelab.record import RunRecord

# Room on both sides, so that the first and last moments are not cut off.
_MARGIN_MS = 2000


def dashboard_url(grafana: str, record: RunRecord, uid: str = "load-test") -> str:
    """The dashboard on exactly the run's time range and testid."""
    shown = _range(record.started, record.ended)
    return f"{grafana}/d/{uid}?{shown}&var-testid={record.testid}"


def runs_url(grafana: str, plan: str, started: datetime, ended: datetime | None) -> str:
    """The list of a plan's runs of that time."""
    return f"{grafana}/d/runs?{_range(started, ended)}&var-plan={plan}"


def _range(started: datetime, ended: datetime | None) -> str:
    end = "now" if ended is None else str(int(ended.timestamp() * 1000) + _MARGIN_MS)
    return f"from={int(started.timestamp() * 1000) - _MARGIN_MS}&to={end}"
