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

    def tick(self) -> tuple[int, float] | None:
        """Users and users per second; None when the run is over. Called every second."""
        self._sleep_to_a_boundary()
        phase = self._phase_now()
        self.session.enter(phase)
        if phase:
            self.session.tell_workers(phase)
            return self._users(phase), self._at_once()
        if self._is_over() and not self.get_current_user_count():
            self.session.finished = True
            return None
        return 0, self._at_once()

    def _users(self, phase: Phase) -> int:
        return phase.users(self.session.throughput or 1)

    def _at_once(self) -> int:
        """Users per second that Locust starts or stops: always all of them."""
        return max(map(self._users, self.session.plan.phases))

    def _sleep_to_a_boundary(self) -> None:
        """Locust asks once a second: too seldom for phases that are exact."""
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
