"""The bearer token of this process's users: TOKEN, what the file TOKEN_FILE holds, or one that the
target mints."""

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

from gevent.lock import Semaphore

_PATH = "/api/v1/auth/token"
_SECONDS_VALID = 86_400  # longer than a run
_TIMEOUT_SECONDS = 10.0


class TokenError(Exception):
    """No token, in one line."""


class Token:
    """Minted when the first user asks for it; the others wait for that, and get what it got."""

    def __init__(self) -> None:
        self._lock = Semaphore()
        self.forget()

    def forget(self, **_: Any) -> None:
        """The next run asks again: the target may have another key by then."""
        self._token = self._problem = ""
        try:
            self._token = _given()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is no text"
            self._problem = f"no token: TOKEN_FILE={os.environ['TOKEN_FILE']}: {reason}"

    def get(self, host: str) -> str:
        """The token. Raises TokenError."""
        if not self._token:
            with self._lock:
                if not self._token and not self._problem:
                    self._ask(host.rstrip("/"))
            if self._problem:
                raise TokenError(self._problem)
        return self._token

    def _ask(self, host: str) -> None:
        url = f"{host}{_PATH}?ttl={_SECONDS_VALID}"
        try:
            self._token = _mint(url)
        except (OSError, ValueError, KeyError, TypeError) as error:
            cure = "set TOKEN, or let the target mint tokens"
            self._problem = f"no token from POST {url}: {error}; {cure}"


def _given() -> str:
    # From a file where others could read the environment.
    file = os.environ.get("TOKEN_FILE")
    return os.environ.get("TOKEN") or (Path(file).read_text().strip() if file else "")


def _mint(url: str) -> str:
    # Without proxies, as the load itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, method="POST")
    with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
        return str(json.load(answer)["access_token"])
