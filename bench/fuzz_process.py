"""The process in which libFuzzer runs, which it also ends: `bench/fuzz.py` starts it."""

import hashlib
import mmap
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

_LARGEST_BYTES = 64 * 1024
_COUNTERS = struct.Struct("<QQ")
_FILE = "counters"
# What is guided by: the code that reads, not what draws.
_INSTRUMENTED = [
    *("spikelab.plans", "spikelab.importers", "spikelab.results", "spikelab.series"),
    *("spikelab.units", "spikelab.objectives", "spikelab.comparison", "spikelab.history"),
]


@dataclass
class Cases:
    """What a run has done; `from_valid`: those that were made from valid input."""

    all: int = 0
    from_valid: int = 0


def counted(folder: Path) -> Cases:
    """How many cases the process has done, whatever became of it."""
    file = folder / _FILE
    return Cases(*_COUNTERS.unpack(file.read_bytes())) if file.exists() else Cases()


def _run(name: str, cases: int, seed: int, folder: Path) -> None:
    """Never returns. Inputs that are findings are left in the folder, new ones in its corpus."""
    import atheris  # noqa: PLC0415

    with atheris.instrument_imports(include=_INSTRUMENTED):
        from tests.fuzz.parsers import FROM_VALID, PARSERS  # noqa: PLC0415

    parser = PARSERS[name]
    for part, inputs in (("corpus", parser.findings), ("valid", parser.valid)):
        (folder / part).mkdir()
        for number, data in enumerate(inputs):
            (folder / part / str(number)).write_bytes(data)
    (folder / "found").mkdir()
    (folder / _FILE).write_bytes(bytes(_COUNTERS.size))
    options = {
        "runs": cases,
        "seed": seed,
        # The oracle looks for hangs, by CPU time.
        "timeout": 10**6,
        "report_slow_units": 10**6,
        "max_len": _LARGEST_BYTES,
    }
    with (
        parser.opened() as check,
        (folder / _FILE).open("r+b") as file,
        mmap.mmap(file.fileno(), _COUNTERS.size) as counters,
    ):
        done = Cases()

        def one(data: bytes) -> None:
            done.all += 1
            counters[:] = _COUNTERS.pack(done.all, done.from_valid)
            try:
                check(data)
            except Exception:
                # Atheris ends the process without saying with which input.
                name = f"finding-{hashlib.sha256(data).hexdigest()[:12]}"
                (folder / "found" / name).write_bytes(data)
                raise

        def mutated(data: bytes, largest: int, seed: int) -> bytes:
            random = Random(seed)
            if random.random() < FROM_VALID:
                done.from_valid += 1
                data = random.choice(parser.valid)
            elif random.random() < 0.5:
                return bytes(atheris.Mutate(data, largest))
            return parser.mutate(data, random)[:largest]

        atheris.Setup(
            [
                "fuzz",
                *(f"-{option}={value}" for option, value in options.items()),
                f"-artifact_prefix={folder}/found/",
                "-rss_limit_mb=4096",
                "-verbosity=0",
                str(folder / "corpus"),
                str(folder / "valid"),
            ],
            one,
            custom_mutator=mutated,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    _run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
