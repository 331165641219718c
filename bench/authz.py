"""Authorization at full throttle: checks of an RS256 token against plain requests."""

import sys

from bench.k6_run import K6Load
from bench.pairs import pairs_parser
from bench.running_lab import running_lab
from bench.throttle import Throttle


def main() -> int:
    """Returns the exit code: 1 if an answer was wrong or the machine never steady."""
    parser = pairs_parser(__doc__)
    parser.add_argument("--users", type=int, default=50, help="default 50")
    asked = parser.parse_args()
    with running_lab() as endpoints:
        loads = {
            "hello": K6Load("steady.js", endpoints.target, "/hello?ms=0", "users", asked.users),
            "authz": K6Load(
                "authz.js", endpoints.target, "/api/v1/authz/ping", "users", asked.users
            ),
        }
        good = Throttle(loads, asked.seconds).measure(asked.pairs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
