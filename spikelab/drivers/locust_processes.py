"""How many processes Locust spreads its users over, by the user's own environment."""

import math
import os

from spikelab.units import parse_whole_number

LOCUST_PROCESSES = "LOCUST_PROCESSES"
# As Locust has it: one for each CPU.
_ALL_CPUS = "-1"


def locust_processes() -> float:
    """How many processes of Locust have users; infinite for as many as there are CPUs.

    What is no number Locust refuses itself.
    """
    text = os.environ.get(LOCUST_PROCESSES, "").strip()
    return math.inf if text == _ALL_CPUS else max(1, parse_whole_number(text) or 1)
