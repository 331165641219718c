"""Reading a /metrics page directly: what the target and the sockets say right now."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from spikelab.errors import LabError
from spikelab.http_client import client

Samples = dict[tuple[str, str], float]


def read_samples(url: str, label: str = "", timeout_seconds: float = 5.0) -> Samples:
    """(sample name, value of `label` or "") → value. Raises LabError when it does not answer."""
    try:
        response = client.get(url, timeout=timeout_seconds, headers={"Accept": "text/plain"})
        response.raise_for_status()
        families = text_string_to_metric_families(response.text)
        return {
            (sample.name, sample.labels.get(label, "")): sample.value
            for family in families
            for sample in family.samples
        }
    except (httpx.HTTPError, ValueError) as error:
        raise LabError(f"{url} does not answer ({type(error).__name__}): ./lab status") from error


def first(samples: Samples, name: str) -> float | None:
    """The first sample of that name, whatever its label."""
    return next((value for (each, _), value in samples.items() if each == name), None)
