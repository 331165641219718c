"""Interference: load on a run's target that is not the run's, and spoils it.

Other runs are known by their series in Prometheus. What the lab's own target served, and no run of
that Prometheus sent, shows in its own count of requests.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from spikelab.stores import SETTLE_SECONDS, Prometheus

# Somebody looks at a page, or takes a token; and runs differ by so much by themselves.
_FEW_REQUESTS = 10
_LITTLE = 0.01
_TOTAL = "loadtest:requests:total"


@dataclass(frozen=True)
class Interference:
    """`runs`: requests by testid that others sent meanwhile, as far as is known to the same target.
    `unsent`: how many more the target served than the run sent; None: it does not count them.
    `unanswered`: of the run's own, in whose place it may have served those of others."""

    sent: int
    unsent: int | None = None
    runs: Mapping[str, int] = field(default_factory=dict)
    unanswered: int = 0

    @property
    def reason(self) -> str | None:
        """Why the run is no valid measurement."""
        if self.unsent is None:
            if not self._much(sum(self.runs.values())):
                return None
            return f"{self._who} loaded the target as well: {sum(self.runs.values()):,} requests"
        if not self._much(self.unsent):
            return None
        return (
            f"{self._who or 'something that no testid names'} loaded the target as well: it served "
            f"{self.unsent:,} requests that this run did not send"
        )

    @property
    def warning(self) -> str | None:
        """What shared the machine, or the network, but as far as is known not the target."""
        if self.unsent is None or self.reason or not self._who:
            return None
        if self._much(self.unanswered):
            return (
                f"{self._who} ran at the same time, perhaps on this target: "
                f"{self.unanswered:,} requests of this run were not answered, and may hide others"
            )
        return f"{self._who} ran at the same time, on another target"

    @property
    def _who(self) -> str:
        return ", ".join(name or "a run without a testid" for name in sorted(self.runs))

    def _much(self, requests: int) -> bool:
        return requests > max(_FEW_REQUESTS, _LITTLE * self.sent)


def other_runs(
    prometheus: Prometheus, testid: str, started: datetime, ended: datetime, urls: Collection[str]
) -> dict[str, int]:
    """Requests by testid that Prometheus counted in this time of other runs, but for those whose
    series name another server than `urls`. Raises LabError.

    The first seconds are left out: what a run before did is counted until then.
    """
    begin = started + timedelta(seconds=SETTLE_SECONDS)
    if begin >= ended:
        return {}
    series = f'{_TOTAL}{{testid!="{testid}"}}'
    window = f"{int((ended - begin).total_seconds() * 1000)}ms"
    before = prometheus.query(f"sum by (testid, name) (last_over_time({series}[10s]))", begin)
    after = prometheus.query(f"sum by (testid, name) (max_over_time({series}[{window}]))", ended)
    servers = {urlsplit(url).netloc for url in urls}
    found: dict[str, int] = {}
    for labels, total in after.items():
        names, _, other = labels.rpartition("testid=")
        # Our scripts name a request by its path, k6 by itself by its whole URL.
        server = urlsplit(names.removeprefix("name=").rstrip(",")).netloc
        more = int(total - before.get(labels, 0))
        if more > 0 and (not server or server in servers):
            found[other] = found.get(other, 0) + more
    return found
