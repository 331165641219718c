"""The user that every locustfile here starts from: sends the plan's request, at the plan's pace."""

import random
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from gevent.pool import Group
from locust import FastHttpUser
from locust.env import Environment

from lib import alarm
from lib.pace import Pace
from lib.session import Session
from lib.stretch import Stretch
from lib.timing import Timing

_FOREVER_SECONDS = 3600.0  # a user that waits is stopped at once


class LabUser(FastHttpUser):
    """One connection, one request at a time, but where requests come by chance: then each has a
    greenlet of its own. A locustfile gives it its `session` and a task."""

    abstract = True
    concurrency = 10_000  # no request waits for another
    session: ClassVar[Session]

    def __init__(self, environment: Environment) -> None:
        timeout = self.session.plan.timeout_seconds
        self.network_timeout = self.connection_timeout = timeout
        super().__init__(environment)
        self._pace = Pace()
        self._waited = False  # for the pace, and has not sent since
        self._stretch: Stretch | None = None  # that of its last request
        self._requests = Group()  # those that came by chance, under way
        self._ending = False

    def on_start(self) -> None:
        if self.session.stretch.spread_seconds:
            self.wait()

    def stop(self, force: bool = False) -> bool:
        """Called in a greenlet of its own; requests under way end first."""
        self._ending = True
        if not force:
            self._requests.join()
        return bool(super().stop(force))

    def wait_time(self) -> float:
        """Seconds to the next request: a constant pause in a closed loop. With a pace it sleeps
        itself until then, since it wakes up more exactly than Locust would."""
        session, stretch = self.session, self.session.stretch
        if session.gave_up or self._ending:
            return _FOREVER_SECONDS
        if stretch.period_seconds:
            self._waited = True
            now, period, since = time.perf_counter(), stretch.period_seconds, session.stretch_since
            if stretch.poisson:
                self._pace.draw(now, period, since)
            else:
                self._pace.wait(now, period, stretch.spread_seconds, since)
            alarm.sleep(self._pace.start)
            return _FOREVER_SECONDS if self._ending else 0.0
        self._pace = Pace()
        if self._stretch is None:
            return random.random() * stretch.spread_seconds
        return float(session.options.wait_seconds or 0)

    def send(self, path: str | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """Sends the plan's request, or one to another path; named by its path without a query.

        Returns its response, or nothing at once in a phase whose requests come by chance.
        """
        stretch = self.session.stretch
        first, self._stretch = stretch is not self._stretch, stretch
        pace, self._waited = (self._pace.due, self._pace.start) if self._waited else None, False
        context = {"stretch": stretch, "first": first}
        if stretch.poisson:
            self._requests.spawn(self._send, path, headers, context, pace)
            return None
        return self._send(path, headers, context, pace)

    def _send(
        self,
        path: str | None,
        headers: Mapping[str, str] | None,
        context: dict[str, Any],
        pace: tuple[float, float] | None,
    ) -> Any:
        """`pace`: when the request was due, and when its user was free for it."""
        plan, stretch = self.session.plan, context["stretch"]
        path = path or plan.path
        due, start = pace or (time.perf_counter(), None)
        timing = Timing(due if stretch.open_loop or start is None else start)
        timing.begin()
        # What the previous answer held up is the target's doing.
        late = None if start is None else max(0.0, timing.until - start)
        return self.client.request(
            plan.method_with_body if stretch.body is not None else plan.method,
            (stretch.url or "") + path,
            name=path.split("?")[0],
            data=plan.body if stretch.body is None else stretch.body,
            headers={
                **plan.headers,
                **(headers or {}),
                **({} if plan.keep_alive else {"Connection": "close"}),
            },
            context={**context, "timing": timing, "late": late},
        )
