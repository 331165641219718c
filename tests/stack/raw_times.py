"""A locustfile beside the one that is run: writes every request's time in seconds, as it was.

Locust's own percentiles are rounded, and those of locust/lib are what a test holds against these.
"""

import os
from pathlib import Path
from typing import Any

from locust import events

_FILE = Path(os.environ["RAW_TIMES"]).open("w", encoding="utf-8")  # noqa: SIM115  # until the end


@events.request.add_listener
def write(response_time: float, exception: BaseException | None, **_: Any) -> None:
    if exception is None:
        _FILE.write(f"{response_time / 1000!r}\n")


@events.quitting.add_listener
def close(**_: Any) -> None:
    _FILE.close()
