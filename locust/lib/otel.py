"""What `locust --otel` needs to reach the lab's Prometheus, as environment variables.

Set before Locust reads them (it loads the locustfile first), and only where the user has not.
Each process has a service.instance.id of its own, made by the SDK after a fork as well, so that
workers do not write over each other: never set it.
"""

from collections.abc import MutableMapping
from functools import partialmethod
from urllib.parse import quote, unquote

_DEFAULTS = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram",  # noqa: E501
    "OTEL_METRIC_EXPORT_INTERVAL": "1000",  # ms; a minute is the SDK's own
    # Seconds a push may take, retries included; at the end of a run it is waited for.
    "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "2",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}


def set_defaults(environ: MutableMapping[str, str], testid: str) -> str:
    """Fills in what is not set; returns the testid that the series will carry."""
    prometheus = environ.get("PROMETHEUS_URL", "http://127.0.0.1:9090")
    environ.setdefault(
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", f"{prometheus}/api/v1/otlp/v1/metrics"
    )
    for name, value in _DEFAULTS.items():
        environ.setdefault(name, value)
    attributes = environ.setdefault(
        "OTEL_RESOURCE_ATTRIBUTES", f"testid={quote(testid, safe='')},driver=locust"
    )
    pairs = (pair.partition("=")[::2] for pair in attributes.split(","))
    return next((unquote(value) for key, value in pairs if key.strip() == "testid"), testid)


# Buckets per factor of two: 2 ** 3, each 9 % wide, as k6's. 160 of them reach from 0.1 ms to 100 s.
_SCALE = 3


def fix_bucket_width() -> None:
    """Starts histograms at the width at which they can stay.

    The SDK starts at the finest and merges buckets as values spread; each time it may move a
    count into the neighbour. What a second brought then has a bucket below zero, for which
    Prometheus discards that second's latency (seen with opentelemetry-sdk 1.45.1).
    """
    try:
        from opentelemetry.sdk.metrics.view import (  # noqa: PLC0415
            ExponentialBucketHistogramAggregation as Aggregation,
        )
    except ImportError:
        return  # Locust without its otel extra: nothing is pushed
    Aggregation.__init__ = partialmethod(  # type: ignore[method-assign, assignment]
        Aggregation.__init__, max_scale=_SCALE
    )
