"""Statuses: which are good answers, and the others by name, since of a failed request Locust pushes
the exception's class alone. Redirects are not followed: they lead where the plan does not say."""

from collections.abc import Set as AbstractSet

from locust.contrib.fasthttp import LocustBadStatusCode, LocustUserAgent


class HTTP3xx(LocustBadStatusCode):
    """An answer with a status below 400 that was not expected."""


class HTTP4xx(LocustBadStatusCode):
    """An answer with a status of 400 to 499."""


class HTTP5xx(LocustBadStatusCode):
    """An answer with a status of 500 or above."""


def judge_statuses(expected: AbstractSet[int]) -> None:
    """Any other status of FastHttpUser is an exception that says which it was."""

    def verify(self: LocustUserAgent, status_code: int, url: str | None = None) -> None:
        if status_code in self.valid_response_codes:
            return
        kinds = {4: HTTP4xx, 5: HTTP5xx}
        raise kinds.get(status_code // 100, HTTP3xx)(url, code=status_code)

    LocustUserAgent._verify_status = verify  # type: ignore[method-assign]
    LocustUserAgent.valid_response_codes = frozenset(expected)
    LocustUserAgent.redirect_response_codes = frozenset()
