"""How many cases every parser has been given over all runs: tests/fuzz/cases.json."""

import fcntl
import json
from dataclasses import asdict, dataclass

from spikelab import paths
from spikelab.results.run import write_json

FILE = paths.ROOT / "tests" / "fuzz" / "cases.json"


@dataclass
class Cases:
    """`from_valid`: those of them that were made from valid input."""

    all: int = 0
    from_valid: int = 0


def read_cases() -> dict[str, Cases]:
    """By parser."""
    if not FILE.exists():
        return {}
    return {name: Cases(**each) for name, each in json.loads(FILE.read_text()).items()}


def count_cases(parser: str, new: Cases) -> Cases:
    """Adds a run's cases, also while another run does; returns those of all runs."""
    with (FILE.parent / "__init__.py").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = read_cases()
        before = known.get(parser, Cases())
        total = Cases(before.all + new.all, before.from_valid + new.from_valid)
        known[parser] = total
        write_json(FILE, {name: asdict(known[name]) for name in sorted(known)})
    return total
