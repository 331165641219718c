"""The user that every locustfile here starts from: sends the plan's request, at the plan's pace."""

import time
from typing import Any, ClassVar

from locust import FastHttpUser
from locust.env import Environment

from lib.pace import Pace
from lib.session import Session


class LabUser(FastHttpUser):
    """One connection, one request at a time. A locustfile gives it its `session` and a task."""

    abstract = True
    session: ClassVar[Session]

    def __init__(self, environment: Environment) -> None:
        timeout = self.session.plan.timeout_seconds
        self.network_timeout = self.connection_timeout = timeout
        super().__init__(environment)
        self._pace = Pace()

    def on_start(self) -> None:
        if self.session.period_seconds:
            self.wait()

    def wait_time(self) -> float:
        """Seconds to the next request: by the pace, or a constant pause in a closed loop."""
        period = self.session.period_seconds
        if period:
            return self._pace.wait(time.perf_counter(), period)
        return float(self.session.options.wait_seconds or 0)

    def send(self, path: str | None = None, **options: Any) -> Any:
        """Sends the plan's request, or one to another path; named by its path without a query."""
        plan, stretch = self.session.plan, self.session.stretch
        path = path or plan.path
        headers = dict(plan.headers) if plan.keep_alive else {**plan.headers, "Connection": "close"}
        return self.client.request(
            plan.method,
            (stretch.url or "") + path,
            name=path.split("?")[0],
            data=plan.body,
            headers=headers,
            context={"phase": stretch.name},
            **options,
        )
