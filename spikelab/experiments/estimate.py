"""How long the rest of an experiment takes, from what its runs so far took."""

from collections.abc import Iterable


class TimeLeft:
    """Learns from each run how much longer than planned runs take here."""

    def __init__(self) -> None:
        self._extra_seconds: list[float] = []

    def took(self, planned: float, seconds: float) -> None:
        """A run that was planned so long took so long, all in all."""
        self._extra_seconds.append(seconds - planned)

    def seconds(self, planned: Iterable[float]) -> float:
        """How long runs take that are planned so long; as planned, before the first."""
        runs = list(planned)
        known = self._extra_seconds or [0.0]
        return max(0.0, sum(runs) + len(runs) * sum(known) / len(known))
