"""Load on GET /hello: a closed loop of users, or users at a constant throughput.

By hand, 50 users in a closed loop for 30 s, or each at 2 requests a second:

    locust -f locust/hello.py --headless -u 50 -r 50 -t 30s -H http://127.0.0.1:8080 --otel
    locust -f locust/hello.py --headless -u 50 -r 50 -t 30s --throughput 2 --ms 100 --otel

A plan's phases, with LAB_PLAN=<file>, take the place of -u, -r and -t. The exit code is 0 when
the objectives (--slo) are met, 99 when one is missed. README.md has every option.
"""

from typing import Any

from locust import events, task
from locust.argument_parser import LocustArgumentParser

from lib.session import begin
from lib.shape import PlanShape
from lib.user import LabUser

SESSION = begin("hello")


def _options(parser: LocustArgumentParser, **_: Any) -> None:
    parser.add_argument(
        "--ms", default="", help="How long /hello takes, in milliseconds; the target's own if unset"
    )


events.init_command_line_parser.add_listener(_options)


class Hello(LabUser):
    """Asks for /hello again and again."""

    session = SESSION

    @task
    def hello(self) -> None:
        milliseconds = self.session.options.ms
        self.send(f"/hello?ms={milliseconds}" if milliseconds else None)


if SESSION.plan.phases:

    class Phases(PlanShape):
        """The plan's phases."""

        session = SESSION
