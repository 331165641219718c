"""What the lab reads of a run of k6."""

import json
from pathlib import Path
from typing import Any

import pytest

from spikelab.drivers.base import PhaseSummary
from spikelab.drivers.k6 import read_bodies, read_summary
from spikelab.results.run import ERROR_CLASSES, Latency, LatencyParts
from spikelab.statistics.distribution import Distribution


def test_bodies_are_read_from_a_log_of_k6_and_nonsense_in_it_is_passed_over(
    tmp_path: Path,
) -> None:
    log = tmp_path / "k6.log"
    sample = r'time="x" level=info msg="spikelab-body {\"phase\":\"p\",\"status\":503,\"body\":%s}" source=console'  # noqa: E501
    lines = [sample % rf"\"busy \\\"{n}\\\"\"" for n in (1, 1, 2, 3, 4, 5, 6)]
    cut = 'level=info msg="spikelab-body {\\"phase\\":\\"p\\",\\"sta" source=console'
    log.write_text("\n".join([cut, "unrelated", *lines]))
    assert read_bodies(log) == {"p": [f'503: busy "{n}"' for n in (1, 2, 3, 4, 5)]}


def summary(**trends: dict[str, Any]) -> dict[str, Any]:
    """What k6 says of a phase `p`: ten requests begun, nine good, one without an answer."""
    nothing = {"count": 0, "avg": 0}
    trend = {"count": 9, "avg": 0.0, "med": 0.0, "max": 0.0}
    trend |= {f"p({each})": 0.0 for each in (90, 95, 99, 99.9)}
    metrics: dict[str, Any] = {
        "attempts": {"count": 10},
        "attempt_started": {"min": 1000, "max": 2000},
        "attempt_ended": {"min": 1100, "max": 3000},
        "http_req_failed": {"fails": 9},
        "dropped_iterations": {"count": 0},
        "answer_bytes": nothing,
        "answers_after_end": {"count": 2},
        "response_time": {**trend, "avg": 8, "ranked": [6.0, 8.0, 10.0]},
        **{f"failures,class:{each}": nothing for each in ERROR_CLASSES},
        "failures,answered:true": nothing,
        **{f"http_req_{part},expected_response:true": trend for part in PARTS},
        **trends,
    }
    parts = {name.partition(","): value for name, value in metrics.items()}
    named = {f"{name}{{scenario:p{comma}{tags}}}": v for (name, comma, tags), v in parts.items()}
    return {"started_ms": 0, "ranks": [0, 0.5, 1], "metrics": named}


PARTS = ("duration", "blocked", "connecting", "tls_handshaking", "sending", "waiting")
MEANS_MS = {"duration": 4.0, "blocked": 3.0, "connecting": 1.0, "tls_handshaking": 1.5}
MEANS_MS |= {"sending": 0.5, "waiting": 3.0}


def read(tmp_path: Path, document: dict[str, Any]) -> PhaseSummary:
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(document))
    (found,) = read_summary(file, {"p": 0})
    return found


def test_the_distribution_is_k6_s_own_at_each_rank(tmp_path: Path) -> None:
    names = ("med", "p(90)", "p(95)", "p(99)", "p(99.9)", "max")
    own = {"count": 9, "avg": 5, **{name: 100.0 + place for place, name in enumerate(names)}}
    found = read(tmp_path, summary(**{"http_req_duration,expected_response:true": own}))
    assert found.latency == Distribution(9, (0, 0.5, 1), (0.006, 0.008, 0.01))
    assert (found.requests, found.failures, found.errors.other) == (10, 1, 1)
    assert (found.completed, found.completed_in_window) == (9, 7)
    assert found.http_req_duration_seconds == Latency(
        p50=0.1, p90=0.101, p95=0.102, p99=0.103, p99_9=0.104, max=0.105
    )


def test_the_parts_of_the_mean_add_up(tmp_path: Path) -> None:
    own = {
        f"http_req_{part},expected_response:true": {
            **{"count": 9, "med": 0, "max": 0, "avg": ms},
            **{f"p({each})": 0 for each in (90, 95, 99, 99.9)},
        }
        for part, ms in MEANS_MS.items()
    }
    found = read(tmp_path, summary(**own))
    parts = found.latency_parts_seconds
    assert parts == LatencyParts(
        lateness=0.001,
        waiting_for_connection=0.0005,
        connecting=0.001,
        tls=0.0015,
        sending=0.0005,
        waiting=0.003,
        receiving=0.0005,
    )
    assert sum(parts.model_dump().values()) == pytest.approx(found.latency_mean_seconds)


def test_after_a_drop_times_count_from_the_start_and_lateness_is_unknown(tmp_path: Path) -> None:
    due = {"count": 9, "avg": 500.0, "ranked": [100.0, 500.0, 900.0]}
    slow = {f"slow,objective:p95 < 1s,since:{each}": {"count": n} for each, n in SLOW.items()}
    document = summary(response_time_due=due, **slow)
    clean = read(tmp_path, document)
    assert (clean.latency_mean_seconds, clean.slow) == (0.5, {"p95 < 1s": 7})
    document["metrics"]["dropped_iterations{scenario:p}"]["count"] = 1
    found = read(tmp_path, document)
    assert (found.latency_mean_seconds, found.slow) == (0.008, {"p95 < 1s": 2})
    assert found.latency_parts_seconds is not None
    assert found.latency_parts_seconds.lateness is None


SLOW = {"start": 2, "due": 7}


def test_a_phase_without_a_good_answer_has_no_times(tmp_path: Path) -> None:
    empty = {"count": 0, "avg": 0, "ranked": [0, 0, 0]}
    document = summary(response_time=empty)
    document["metrics"]["http_req_failed{scenario:p}"]["fails"] = 0
    own = "http_req_duration{scenario:p,expected_response:true}"
    document["metrics"][own] = {"count": 0, "avg": 0}
    found = read(tmp_path, document)
    assert (found.latency, found.latency_mean_seconds) == (Distribution(), None)
    assert found.latency_parts_seconds is None
