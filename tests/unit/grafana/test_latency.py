"""Which times the panels about latency show: their query over runs that are known."""

from pathlib import Path

import pytest

from grafana.src.signals import load
from tests.support.promtool import EVERYTHING, check_query, needs_promtool

pytestmark = needs_promtool

# Each second 10 answers, of 3 s by the driver's own duration; their users waited 6 s.
_OWN = "{{schema:0 sum:30 count:10 offset:2 buckets:[10]}}x60"
_WAITED = "{{schema:0 sum:60 count:10 offset:3 buckets:[10]}}x60"
LAB_RUN = {
    'loadtest:latency_seconds{testid="lab", driver="k6", phase="one", name="/hello"}': _OWN,
    'loadtest:response_time_seconds{testid="lab", driver="k6", phase="one"}': _WAITED,
}
BY_HAND = {
    'loadtest:latency_seconds{testid="hand", driver="k6", phase="one", name="/hello"}': _OWN,
}
# Locust's own series name no phase.
LOCUST = {
    'loadtest:latency_seconds{testid="lab", driver="locust", name="/hello"}': _OWN,
    'loadtest:response_time_seconds{testid="lab", driver="locust", phase="one"}': _WAITED,
}


@pytest.mark.parametrize(
    ("series", "chosen", "mean"),
    [
        (LAB_RUN, {}, {"k6": 6}),
        (BY_HAND, {}, {"k6": 3}),
        # Each run's own, of both as many answers.
        ({**LAB_RUN, **BY_HAND}, {}, {"k6": 4.5}),
        ({**LAB_RUN, **LOCUST}, {}, {"k6": 6, "locust": 6}),
        (LOCUST, {"$phase": "one"}, {"locust": 6}),
        # A response time names no request.
        (LAB_RUN, {"$name": "/hello"}, {"k6": 3}),
    ],
)
def test_panels_show_response_times_where_a_run_has_them(
    tmp_path: Path, series: dict[str, str], chosen: dict[str, str], mean: dict[str, float]
) -> None:
    wanted = {f'{{driver="{driver}"}}': seconds for driver, seconds in mean.items()}
    check_query(tmp_path, load.CLIENT_MEAN.query, series, wanted, {**EVERYTHING, **chosen})
