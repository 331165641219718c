"""Load on GET /api/v1/authz/ping, which checks a bearer token: TOKEN, or one minted by the target.

By hand, 2,500 users in 10 s, each with 1.6 s between its requests, for 18 minutes:

    TOKEN=... locust -f locust/authz.py --headless -u 2500 -r 250 -t 18m -H http://127.0.0.1:8080

`--throughput 0` makes it a closed loop. A plan's phases, with LAB_PLAN=<file>, take the place of
-u, -r and -t; exit codes and further options are those of hello.py. No log shows the token.
"""

from typing import Any

from locust import events, task
from locust.argument_parser import LocustArgumentParser

from lib.session import begin
from lib.shape import PlanShape
from lib.token import Token, TokenError
from lib.user import LabUser

SESSION = begin("authz", path="/api/v1/authz/ping")
TOKEN = Token()


def _options(parser: LocustArgumentParser, **_: Any) -> None:
    parser.set_defaults(throughput=0.625)  # 1.6 s between a user's requests


events.init_command_line_parser.add_listener(_options)
events.test_start.add_listener(TOKEN.forget)


class Authz(LabUser):
    """Has its token checked again and again."""

    session = SESSION

    @task
    def ping(self) -> None:
        try:
            token = TOKEN.get(str(self.host))
        except TokenError as error:
            self.session.give_up(str(error))
        else:
            self.send(headers={"Authorization": f"Bearer {token}"})


if SESSION.plan.phases:

    class Phases(PlanShape):
        """The plan's phases."""

        session = SESSION
