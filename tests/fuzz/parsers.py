"""Every parser that is fuzzed: what it reads, what is valid there, how that is damaged."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random

import yaml

from spikelab import paths
from tests.fuzz.findings import read_findings
from tests.fuzz.mutations import Mutation, mutate_bytes, mutate_lines, mutate_tree
from tests.fuzz.oracle import Check, no_hang
from tests.fuzz.plans import check_plans
from tests.fuzz.records import SEEDS, check_records
from tests.fuzz.reports import check_reports

_SEED_PLANS = paths.ROOT / "tests" / "fuzz" / "seeds"
_REPORTS = paths.ROOT / "tests" / "data" / "imports"
_LARGEST_BYTES = 64 * 1024
# Of the cases that are made from valid input: at least half are to be.
FROM_VALID = 0.6


@dataclass(frozen=True)
class Parser:
    """`check` opens its oracle; `valid` are inputs that are taken; `mutations` the likely ones."""

    name: str
    check: Callable[[], AbstractContextManager[Check]]
    valid: Sequence[bytes]
    mutations: Sequence[Mutation]

    @contextmanager
    def opened(self) -> Iterator[Check]:
        """Its oracle, ready for cases."""
        with self.check() as check, no_hang(check) as limited:
            yield limited

    @cached_property
    def findings(self) -> list[bytes]:
        return list(read_findings(self.name).values())

    def case(self, random: Random) -> bytes:
        """A case of valid input or, less often, of a finding."""
        valid = random.random() < FROM_VALID or not self.findings
        return self.mutate(random.choice(self.valid if valid else self.findings), random)

    def mutate(self, data: bytes, random: Random) -> bytes:
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            mutation = random.choice(self.mutations)
            data = mutation(data, self.valid, random)
        return data[:_LARGEST_BYTES]


_TEXT: Sequence[Mutation] = (mutate_lines, mutate_lines, mutate_bytes)
_JSON: Sequence[Mutation] = (*[mutate_tree] * 4, mutate_lines, mutate_bytes)


def _reports(name: str, format_name: str, ending: str, *files: str) -> Parser:
    valid = [(_REPORTS / file).read_bytes() for file in files]
    mutations = _JSON if ending == ".json" else _TEXT
    return Parser(name, partial(check_reports, format_name, ending), valid, mutations)


def _records(name: str) -> Parser:
    file = f"{name}.json"
    valid = [seed.read(file) for seed in SEEDS[file]]
    return Parser(name, partial(check_records, file), valid, _JSON)


def _plans() -> Parser:
    """Small ones, as PyYAML takes a millisecond for a kilobyte; as YAML, and as the JSON that is
    YAML too, whose parts can be changed."""
    texts = [path.read_bytes() for path in sorted(_SEED_PLANS.glob("*.yaml"))]
    trees = [json.dumps(yaml.safe_load(text)).encode() for text in texts]
    return Parser("plans", check_plans, [*texts, *trees], (mutate_tree, *_TEXT))


def _all() -> Iterator[Parser]:
    yield _plans()
    yield _reports("vegeta-text", "vegeta", ".txt", "vegeta.txt", "vegeta_refused.txt")
    yield _reports("vegeta-json", "vegeta", ".json", "vegeta.json")
    summaries = ("k6_summary_export", "k6_handle_summary", "k6_machine_readable")
    yield _reports("k6", "k6", ".json", *(f"{name}.json" for name in summaries))
    yield _reports("locust", "locust", "_stats.csv", "locust_stats.csv")
    yield _reports("fortio", "fortio", ".json", "fortio.json")
    for name in ("run", "experiment", "series", "comparison"):
        yield _records(name)


PARSERS = {parser.name: parser for parser in _all()}
