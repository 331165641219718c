"""Durations, numbers with units and addresses, as plans and drivers write them, and the one form
in which the console and reports show each kind of figure."""

import re
from urllib.parse import urlsplit

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_LONGEST_SECONDS = 24 * 3600
# Go's time.Duration.String; both letters that look like µ are in use.
_GO_SECONDS = {**_SECONDS, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "\u03bcs": 1e-6}
_GO_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,20})?)(ns|us|µs|\u03bcs|ms|s|m|h)")
_LONGEST_GO_SECONDS = 1e9
# A figure that was not measured or is not known, wherever one is shown.
MISSING = "–"
# A latency percentile that failures reach.
INFINITE = "∞"


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``250ms``, ``5s``, ``1m30s``. Raises ValueError.

    >>> parse_duration("1m30s"), parse_duration("250ms")
    (90.0, 0.25)
    """
    if not text or _PART.sub("", text):
        raise ValueError(f"'{text}' is not a duration: write it like 250ms, 5s or 1m30s")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"'{text}' is longer than a day")
    return seconds


def parse_go_duration(text: str) -> float:
    """Seconds of a duration as Go's programs print it: ``1m0.5s``, ``85.1µs``, ``0s``.

    Raises ValueError.

    >>> parse_go_duration("1m0.5s"), parse_go_duration("250ns")
    (60.5, 2.5e-07)
    """
    if not text or _GO_PART.sub("", text):
        raise ValueError(f"'{text}' is not a duration such as 1.5ms or 1m0.5s")
    seconds = sum(float(number) * _GO_SECONDS[unit] for number, unit in _GO_PART.findall(text))
    if seconds > _LONGEST_GO_SECONDS:
        raise ValueError(f"'{text}' is longer than a run can be")
    return round(seconds, 9)


def parse_whole_number(text: str) -> int | None:
    """The number of plain digits, with a minus before them at most; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def show_value(value: object) -> str:
    """A value as `--set`, `--target-set` and environment variables have it.

    >>> show_value(True), show_value(200), show_value("local")
    ('true', '200', 'local')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_base_url(text: str) -> str:
    """Scheme, host and port of a server, without a path. Raises ValueError."""
    try:
        parts = urlsplit(text)
        server = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        server = None
    if not server or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"'{text}' is no URL of a server such as http://127.0.0.1:8080")
    return text.rstrip("/")


def parse_fraction(text: str) -> float:
    """A fraction from ``99.9%`` or ``0.999``. Raises ValueError.

    >>> parse_fraction("99.9%") == parse_fraction("0.999") == 0.999
    True
    """
    compact = text.strip()
    try:
        number = float(compact.removesuffix("%"))
    except ValueError as error:
        raise ValueError(f"'{text}' is no share: write it like 99.9% or 0.999") from error
    # Rounded, so that 99.9% and 0.999 are the same number.
    fraction = round(number / 100, 12) if compact.endswith("%") else number
    if not 0 <= fraction <= 1:
        raise ValueError(f"'{text}' is not a share between 0% and 100%")
    return fraction


def show_duration(seconds: float) -> str:
    """A time to wait, as exactly as a guess is.

    >>> show_duration(41), show_duration(2280), show_duration(9000)
    ('41 s', '38 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def show_seconds(seconds: float | None) -> str:
    """Three significant figures and a unit.

    >>> show_seconds(0.00123), show_seconds(5.0134), show_seconds(None)
    ('1.23 ms', '5.01 s', '–')
    """
    if seconds is None:
        return MISSING
    if seconds < 0.001:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def show_count(number: float | None) -> str:
    return MISSING if number is None else f"{number:,.0f}"


def show_rate(rate: float | None) -> str:
    """Four digits of a rate a second, without its unit.

    >>> show_rate(1234.5), show_rate(99.87), show_rate(40.0), show_rate(None)
    ('1,234', '99.9', '40', '–')
    """
    if rate is None:
        return MISSING
    return f"{rate:,.1f}".removesuffix(".0") if rate < 1000 else f"{rate:,.0f}"


def show_success(share: float | None) -> str:
    """A share of requests, never rounded up to 100 %.

    >>> show_success(1.0), show_success(0.99999999), show_success(0.5)
    ('100 %', '99.999 %', '50 %')
    """
    if share is None:
        return MISSING
    return f"{int(share * 1e5 + 1e-6) / 1e3:.5g} %" if share < 1 else "100 %"


def show_percent(share: float | None) -> str:
    """Three significant figures of any other share.

    >>> show_percent(0.42529), show_percent(0.05)
    ('42.5 %', '5 %')
    """
    return MISSING if share is None else f"{share * 100:.3g} %"


def show_cores(cores: float | None) -> str:
    """CPU in cores."""
    return MISSING if cores is None else f"{cores:.2f}"


def plural(number: int, one: str) -> str:
    """``1 run``, ``1,200 runs``"""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
