"""The plan's phases as a load shape: how many users there are at any time."""

from typing import ClassVar

import gevent
from locust import LoadTestShape

from lib.plan import Phase
from lib.session import Session

_TICK_SECONDS = 1.0


class PlanShape(LoadTestShape):
    """One phase after the other; users without a phase stop, and the run ends with the last.

    A locustfile whose plan has phases makes a class of it with its `session`.
    """

    abstract = True
    session: ClassVar[Session]

    def __init__(self) -> None:
        super().__init__()
        self._load = (0, 1.0)

    def tick(self) -> tuple[int, float] | None:
        """Users and users per second; None when the run is over. Called every second."""
        if self._phase_now() is self.session.phase:
            self._sleep_to_a_boundary()
        phase = self._phase_now()
        if self.session.enter(phase):
            # Once: Locust starts anew on every change of it.
            self._load = self._load_of(phase) if phase else (0, self._at_once())
        if phase is None and self._is_over() and not self.get_current_user_count():
            self.session.finished = True
            return None
        return self._load

    def _load_of(self, phase: Phase) -> tuple[int, float]:
        users = self._users(phase)
        more = users - self.get_current_user_count()
        if phase.ramp_up_seconds and more > 0:
            return users, more / phase.ramp_up_seconds
        return users, self._at_once()

    def _users(self, phase: Phase) -> int:
        return phase.users(self.session.throughput or 1)

    def _at_once(self) -> int:
        """Users per second with which Locust starts or stops all of them."""
        return max(map(self._users, self.session.plan.phases))

    def _sleep_to_a_boundary(self) -> None:
        """Nothing changes before it, and Locust asks too seldom for phases that are exact."""
        now = self.get_run_time()
        times = [
            t for each in self.session.plan.phases for t in (each.start_seconds, each.end_seconds)
        ]
        until = min((at - now for at in times if at > now), default=_TICK_SECONDS)
        if until < _TICK_SECONDS:
            gevent.sleep(until)

    def _phase_now(self) -> Phase | None:
        now = self.get_run_time()
        phases = self.session.plan.phases
        return next((each for each in phases if each.start_seconds <= now < each.end_seconds), None)

    def _is_over(self) -> bool:
        return bool(self.get_run_time() >= self.session.plan.phases[-1].end_seconds)
