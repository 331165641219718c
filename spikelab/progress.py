"""A run while it goes: a bar with phase, rate and failures; plain lines without a terminal."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from spikelab.console import err, say
from spikelab.exposition import first, read_samples
from spikelab.plans.model import Plan
from spikelab.stores.prometheus import Prometheus

_PLAIN_SECONDS = 5


class RunProgress:
    """Reads the normalised series, so every driver looks the same."""

    def __init__(
        self, testid: str, plan: Plan, prometheus: Prometheus, sockets_url: str | None
    ) -> None:
        self._testid = testid
        self._spike_users = plan.users if plan.spike else None
        self._seconds = max(phase.start_seconds + phase.duration_seconds for phase in plan.phases)
        self._began = monotonic()
        self._prometheus = prometheus
        self._sockets_url = sockets_url
        self._next_line = monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
        )
        self._task = self._bar.add_task(
            plan.phases[0].name, total=self._spike_users or self._seconds, text=""
        )

    def __enter__(self) -> Self:
        if err.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if err.is_terminal:
            self._bar.stop()

    def tick(self, phase: str) -> None:
        """Shows the state in this phase. Raises LabError when a store does not answer."""
        answered, failed, rate = self._counts()
        connections = self._connections()
        of = f" of {self._spike_users:,}" if self._spike_users else ""
        text = f"{answered:,.0f}{of} done, {rate:,.0f}/s, {failed:,.0f} failed"
        if connections is not None:
            text += f", {connections:,.0f} connections"
        if err.is_terminal:
            done = answered if self._spike_users else monotonic() - self._began
            self._bar.update(self._task, description=phase, completed=done, text=text)
        elif monotonic() >= self._next_line:
            self._next_line = monotonic() + _PLAIN_SECONDS
            say(f"{phase}: {text}")

    def _counts(self) -> tuple[float, float, float]:
        run = f'{{testid="{self._testid}"}}'
        parts = {
            "answered": f"sum(loadtest:requests:total{run})",
            "failed": f"sum(loadtest:failures:total{run})",
            "rate": f"sum(loadtest:requests:rate{run})",
        }
        values = self._prometheus.query(
            " or ".join(f'label_replace({e}, "is", "{n}", "", "")' for n, e in parts.items())
        )
        return tuple(values.get(f"is={name}", 0.0) for name in parts)  # type: ignore[return-value]

    def _connections(self) -> float | None:
        if self._sockets_url is None:
            return None
        return first(read_samples(self._sockets_url, "port"), "sockets_established")
