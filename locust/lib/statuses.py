"""Wrong statuses by name: of a failed request Locust pushes the exception's class alone."""

from locust.contrib.fasthttp import LocustBadStatusCode, LocustUserAgent


class HTTP4xx(LocustBadStatusCode):
    """An answer with a status of 400 to 499, or another below 500 that was not expected."""


class HTTP5xx(LocustBadStatusCode):
    """An answer with a status of 500 or above."""


def name_wrong_statuses() -> None:
    """Gives a wrong status of FastHttpUser an exception that says which it was."""

    def verify(self: LocustUserAgent, status_code: int, url: str | None = None) -> None:
        if status_code not in self.valid_response_codes:
            raise (HTTP5xx if status_code >= 500 else HTTP4xx)(url, code=status_code)

    LocustUserAgent._verify_status = verify  # type: ignore[method-assign]
