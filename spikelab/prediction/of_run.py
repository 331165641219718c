"""The prediction of a run, from its plan, the target's effective settings and the kernel's limit.

Only of what the model knows: `/hello`, whose answer blocks a worker for a known time, on the lab's
own target with nothing in between.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from spikelab.plans.model import Plan
from spikelab.prediction.model import Server, Spike
from spikelab.prediction.predict import predict
from spikelab.record import Host, Prediction, RunRecord
from spikelab.target_view import Capacity
from spikelab.units import parse_duration, parse_whole_number

# Setting to its value, as the target exports them; None: unlimited.
Effective = Mapping[str, float | None]
_PATH = "/hello"
# Another build of the target may export others.
_NEEDED = {
    "TOMCAT_MAX_THREADS",
    "TOMCAT_MAX_CONNECTIONS",
    "TOMCAT_MAX_QUEUE_CAPACITY",
    "TOMCAT_MAX_KEEP_ALIVE_REQUESTS",
    "TOMCAT_KEEP_ALIVE_TIMEOUT",
}


def fill_prediction(record: RunRecord, plan: Plan, capacity: Capacity | None) -> None:
    """A record's prediction, or its predicted rate; neither where the model does not apply."""
    effective = record.target.effective
    service = service_seconds(plan, effective)
    if service is None or not _NEEDED.issubset(effective):
        return
    if all(phase.kind == "rate" for phase in plan.phases):
        record.predicted_rate = predicted_rate(effective, service)
    elif plan.spike and len(plan.phases) == 1 and capacity:
        record.prediction = _of_spike(plan, effective, capacity, service, record.host)


def service_seconds(plan: Plan, effective: Effective) -> float | None:
    """How long a request of the plan keeps a worker; None where that is not known."""
    parts = urlsplit(plan.request.path)
    if plan.urls or parts.path != _PATH:
        return None
    asked = parse_qs(parts.query).get("ms")
    milliseconds = parse_whole_number(asked[0]) if asked else effective.get("TARGET_HELLO_DELAY_MS")
    return None if milliseconds is None else milliseconds / 1000


def predicted_rate(effective: Effective, service: float) -> float | None:
    """Requests/s that keep all workers busy: threads / service time. None: no such limit."""
    threads = effective.get("TOMCAT_MAX_THREADS")
    return round(threads / service, 3) if threads is not None and service > 0 else None


def server_of(effective: Effective, accept_queue_limit: int) -> Server:
    """The target as the model sees it."""
    closes_each = effective["TOMCAT_MAX_KEEP_ALIVE_REQUESTS"] == 1
    return Server(
        threads=_whole(effective["TOMCAT_MAX_THREADS"]),
        max_connections=_whole(effective["TOMCAT_MAX_CONNECTIONS"]) or 1,
        accept_queue_limit=accept_queue_limit,
        idle_seconds=0.0 if closes_each else (effective["TOMCAT_KEEP_ALIVE_TIMEOUT"] or 0.0) / 1000,
        worker_queue_limit=_whole(effective["TOMCAT_MAX_QUEUE_CAPACITY"]),
    )


def _of_spike(
    plan: Plan, effective: Effective, capacity: Capacity, service: float, host: Host
) -> Prediction:
    linear = host.limits.get("tcp_syn_linear_timeouts")
    spike = Spike(
        users=plan.phases[0].users,
        service_seconds=service,
        timeout_seconds=parse_duration(plan.request.timeout),
        keep_alive=plan.request.keep_alive,
        # A kernel before 6.5 has no such setting.
        syn_linear_timeouts=linear if isinstance(linear, int) else 0,
    )
    return predict(server_of(effective, capacity.accept_queue_limit), spike)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
