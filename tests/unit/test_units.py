"""Durations as Go writes them."""

import pytest

from spikelab.units import parse_go_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.2s", 1.2),
        ("350.1ms", 0.3501),
        ("1m0.5s", 60.5),
        ("1h2m3s", 3723.0),
        ("105.158µs", 0.000105158),
        ("105.158\u03bcs", 0.000105158),
        ("105.158us", 0.000105158),
        ("12ns", 1.2e-8),
        ("0s", 0.0),
    ],
)
def test_durations_of_go_are_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "s", "1.s", "-1s", "1s 2ms", "1d", "9" * 9 + "h"])
def test_an_invalid_duration_of_go_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is longer"):
        parse_go_duration(text)
