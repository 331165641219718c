"""The user that every locustfile here starts from: sends the plan's request, at the plan's pace."""

import random
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from locust import FastHttpUser
from locust.env import Environment

from lib.pace import Pace
from lib.session import Session
from lib.stretch import Stretch
from lib.timing import Timing

_FOREVER_SECONDS = 3600.0  # a user that waits is stopped at once


class LabUser(FastHttpUser):
    """One connection, one request at a time. A locustfile gives it its `session` and a task."""

    abstract = True
    session: ClassVar[Session]

    def __init__(self, environment: Environment) -> None:
        timeout = self.session.plan.timeout_seconds
        self.network_timeout = self.connection_timeout = timeout
        super().__init__(environment)
        self._pace = Pace()
        self._waited = False  # for the pace, and has not sent since
        self._stretch: Stretch | None = None  # that of its last request

    def on_start(self) -> None:
        if self.session.stretch.spread_seconds:
            self.wait()

    def wait_time(self) -> float:
        """Seconds to the next request: by the pace, or a constant pause in a closed loop."""
        session, stretch = self.session, self.session.stretch
        if session.gave_up:
            return _FOREVER_SECONDS
        if stretch.period_seconds:
            self._waited = True
            period, spread = stretch.period_seconds, stretch.spread_seconds
            return self._pace.wait(time.perf_counter(), period, spread, session.stretch_since)
        self._pace = Pace()
        if self._stretch is None:
            return random.random() * stretch.spread_seconds
        return float(session.options.wait_seconds or 0)

    def send(self, path: str | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """Sends the plan's request, or one to another path; named by its path without a query."""
        plan, stretch = self.session.plan, self.session.stretch
        path = path or plan.path
        first, self._stretch = stretch is not self._stretch, stretch
        timing = Timing(self._pace.due if self._waited else time.perf_counter())
        timing.begin()
        # What the previous answer held up is the target's doing.
        late = max(0.0, timing.until - self._pace.start) if self._waited else None
        self._waited = False
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
            context={"stretch": stretch, "first": first, "timing": timing, "late": late},
        )
