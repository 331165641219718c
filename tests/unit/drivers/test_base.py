"""Every driver sorts failures into the classes that a record has."""

import re

from spikelab import paths
from spikelab.results.run import ERROR_CLASSES


def test_every_driver_sorts_failures_into_the_record_s_classes() -> None:
    locust = (paths.ROOT / "locust" / "lib" / "tally.py").read_text()
    listed = re.search(r"ERROR_CLASSES = \(([^)]*)\)", locust)
    assert listed
    assert tuple(re.findall(r'"(\w+)"', listed[1])) == ERROR_CLASSES
    k6 = (paths.K6 / "lib" / "attempt.js").read_text()
    assert set(re.findall(r"return '(\w+)'", k6)) == set(ERROR_CLASSES)
