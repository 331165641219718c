"""What the lab reads of a run of k6."""

import json
from pathlib import Path
from typing import Any

from spikelab.drivers.k6 import read_bodies, read_summary
from spikelab.results.run import ERROR_CLASSES, Latency


def test_bodies_are_read_from_a_log_of_k6_and_nonsense_in_it_is_passed_over(
    tmp_path: Path,
) -> None:
    log = tmp_path / "k6.log"
    sample = r'time="x" level=info msg="spikelab-body {\"phase\":\"p\",\"status\":503,\"body\":%s}" source=console'  # noqa: E501
    lines = [sample % rf"\"busy \\\"{n}\\\"\"" for n in (1, 1, 2, 3, 4, 5, 6)]
    cut = 'level=info msg="spikelab-body {\\"phase\\":\\"p\\",\\"sta" source=console'
    log.write_text("\n".join([cut, "unrelated", *lines]))
    assert read_bodies(log) == {"p": [f'503: busy "{n}"' for n in (1, 2, 3, 4, 5)]}


def exported(**trends: dict[str, float]) -> dict[str, Any]:
    """What k6 exports of a phase `p`: ten requests, all good, with these trends."""
    nothing = {"count": 0, "avg": 0}
    metrics: dict[str, Any] = {
        "attempts{scenario:p}": {"count": 10},
        "attempt_started{scenario:p}": {"min": 1000, "max": 2000},
        "attempt_ended{scenario:p}": {"min": 1100, "max": 3000},
        "success{scenario:p}": {"passes": 10},
        "dropped_iterations{scenario:p}": {"count": 0},
        "answer_bytes{scenario:p}": nothing,
        **{f"failures{{scenario:p,class:{each}}}": nothing for each in ERROR_CLASSES},
        "failures{scenario:p,answered:true}": nothing,
        **{f"{name}{{scenario:p{tags}}}": trends[name] for name, tags in TRENDS.items()},
    }
    return {"setup_data": {"started_ms": 0}, "metrics": metrics}


TRENDS = {"http_req_duration": ",expected_response:true", "latency_with_failures": ""}


def test_each_percentile_of_a_summary_is_k6_s_own(tmp_path: Path) -> None:
    names = ("med", "p(90)", "p(95)", "p(99)", "p(99.9)", "max")
    good, all_of_them = (
        {"count": 10, "avg": 5, **{name: first + place for place, name in enumerate(names)}}
        for first in (100.0, 200.0)
    )
    file = tmp_path / "summary.json"
    document = exported(http_req_duration=good, latency_with_failures=all_of_them)
    file.write_text(json.dumps(document))
    (found,) = read_summary(file, {"p": 0})
    assert found.latency_seconds == Latency(
        p50=0.1, p90=0.101, p95=0.102, p99=0.103, p99_9=0.104, max=0.105
    )
    assert found.latency_with_failures_seconds == Latency(
        p50=0.2, p90=0.201, p95=0.202, p99=0.203, p99_9=0.204, max=0.205
    )
