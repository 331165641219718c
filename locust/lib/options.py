"""Options that every locustfile here has."""

from typing import Any

from locust.argument_parser import LocustArgumentParser


def add_options(parser: LocustArgumentParser, **_: Any) -> None:
    """Adds them to Locust's command line and web page."""
    group = parser.add_argument_group("Spikelab")
    group.add_argument(
        "--throughput",
        type=float,
        default=0,
        help="Requests a second of one user, whose start is spread; 0: a closed loop. Of a "
        "plan's rate, each user carries so much (1 if not set)",
    )
    group.add_argument(
        "--wait-seconds",
        type=float,
        default=0,
        help="Closed loop: pause between an answer and the user's next request",
    )
    group.add_argument(
        "--slo",
        default="",
        help="Objectives, separated by commas, instead of the plan's: 'success >= 99%%, "
        "p95 < 1s'. Exit code 99 if one is missed",
    )
