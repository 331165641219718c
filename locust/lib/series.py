"""What this process pushes with --otel, beside Locust's own series and under the run's testid."""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

_log = logging.getLogger("spikelab")


def _provider() -> "MeterProvider | None":
    """What Locust has set up; None without --otel."""
    try:
        from opentelemetry import metrics  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    except ImportError:
        return None
    provider = metrics.get_meter_provider()
    return provider if isinstance(provider, MeterProvider) else None


def rename(testid: str) -> None:
    """From here on this process's series carry the testid, and count from zero.

    The SDK has no call for it: it forgets what it counted when a reader is registered again, and
    takes other attributes in the way in which it gives a forked process its own.
    """
    provider = _provider()
    if provider is None:
        return
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415

    try:
        provider.force_flush()
    except Exception:  # the SDK's own; what the run before has not pushed is lost
        _log.exception("OpenTelemetry could not push what it had counted")
    consumer = provider._measurement_consumer
    # No greenlet gets a turn in between: a reader that is not registered cannot collect.
    for reader in provider._metric_readers:
        consumer.remove_metric_reader(reader)
        consumer.add_metric_reader(reader)
    provider._update_resource(Resource({"testid": testid}))


def response_times() -> Callable[[float, str], None]:
    """What takes the response time of a good answer, in seconds, and its phase."""
    provider = _provider()
    if provider is None:
        return lambda _seconds, _phase: None
    histogram = provider.get_meter("spikelab").create_histogram(
        "locust.response.time", unit="s", description="From when a request was due to its last byte"
    )
    return lambda seconds, phase: histogram.record(seconds, {"phase": phase})


def add_gauges(offered: Callable[[], tuple[str, float] | None], pending: Callable[[], int]) -> None:
    """lab_offered_rate, by phase, and lab_events_pending; the lab pushes the same for its runs."""
    provider = _provider()
    if provider is None:
        return
    from opentelemetry.metrics import Observation  # noqa: PLC0415

    def observe_offered(_: Any) -> Iterator[Observation]:
        now = offered()
        if now:
            yield Observation(now[1], {"phase": now[0]})

    def observe_pending(_: Any) -> Iterator[Observation]:
        yield Observation(pending())

    meter = provider.get_meter("spikelab")
    meter.create_observable_gauge(
        "lab_offered_rate", [observe_offered], description="Requests per second that are meant"
    )
    meter.create_observable_gauge(
        "lab_events_pending", [observe_pending], description="Phases that wait to be annotated"
    )
