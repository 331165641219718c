"""S5, authorization under 2,500 users: by both drivers, with the article's own queries."""

import math
from datetime import datetime
from typing import Any

import pytest

from tests.support.lab import Lab

pytestmark = pytest.mark.crowded

USERS, PERIOD_SECONDS, SECONDS = 2500, 1.6, 20
# As published: requests a second, then milliseconds, microseconds and milliseconds.
QUERIES = """
sum(rate(ext_authz_requests_total[1m]))
histogram_quantile(0.99, sum(rate(ext_authz_request_duration_seconds_bucket[1m])) by (le)) * 1000
histogram_quantile(0.99, sum(rate(ext_authz_blacklist_cache_lookup_duration_seconds_bucket[1m])) by (le)) * 1000000
histogram_quantile(0.99, sum(rate(ext_authz_jwt_verify_duration_seconds_bucket[1m])) by (le)) * 1000
"""  # noqa: E501


@pytest.fixture(scope="module", params=["k6", "locust"])
def record(request: pytest.FixtureRequest, lab: Lab) -> dict[str, Any]:
    load = ("authz", "--set", f"duration={SECONDS}s", "--driver", request.param)
    return lab.run_unjudged(*load)


def test_2500_users_are_let_through(record: dict[str, Any]) -> None:
    assert record["valid"], record
    step = record["steps"][0]
    assert step["failures"] == 0
    # They start over 10 s, so five seconds' worth is missing, and late users ask less often.
    most = USERS * ((SECONDS - 5) / PERIOD_SECONDS + 1)
    assert 0.7 * most < step["requests"] <= most


def test_the_article_s_queries_return_data_as_they_stand(lab: Lab, record: dict[str, Any]) -> None:
    at = datetime.fromisoformat(record["ended"])
    rate, *percentiles = [lab.prometheus.value(query, at) for query in QUERIES.strip().split("\n")]
    assert rate is not None
    # Over the last minute, in which the whole run lies, and of the other driver's a part.
    runs = [each["steps"][0]["requests"] for each in lab.records() if each["plan"] == "authz"]
    assert 0.9 * runs[-1] < rate * 60 < 1.1 * sum(runs)
    for value in percentiles:
        assert value is not None
        assert math.isfinite(value)
        assert value > 0
    print(record["driver"], rate, *percentiles)


def test_a_timer_s_own_cost_is_stated(lab: Lab, record: dict[str, Any]) -> None:
    at = datetime.fromisoformat(record["ended"])
    cost = lab.prometheus.value("max(ext_authz_timer_cost_seconds)", at)
    assert cost is not None
    assert cost > 0


def test_the_server_s_own_mean_is_a_part_of_the_driver_s(record: dict[str, Any]) -> None:
    step = record["steps"][0]
    assert 0 < step["server_mean_seconds"] < step["latency_mean_seconds"]
