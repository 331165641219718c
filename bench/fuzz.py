"""Long fuzzing of one parser, guided by the coverage that Atheris (libFuzzer) measures.

Half of the cases and more are made from valid input (tests/fuzz/mutations.py), the rest from what
reached new code before. An input that is a finding, or new, goes to tests/fuzz/findings/. While
the file of `--pause-file` exists it waits.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from bench.fuzz_process import Cases, counted
from spikelab import paths
from spikelab.errors import LabError
from spikelab.stack.programs import ensure_packages
from tests.fuzz.findings import add_findings, file_of
from tests.fuzz.oracle import memory
from tests.fuzz.parsers import PARSERS, Parser

_LOCK = paths.REQUIREMENTS / "fuzz.lock"
# In the JVM: JUnit tests, without a guide.
_OF_THE_TARGET = {"token": "TokenFuzzTest", "http": "HttpFuzzTest"}
# Of a parser's findings: a small file of a repository.
_MOST_BYTES = 40_000
_MOST_FINDINGS = 60


def main() -> int:
    arguments = _arguments()
    ensure_packages(_LOCK, paths.VENV, "the packages of the fuzzers")
    begun = time.monotonic()
    if arguments.parser in _OF_THE_TARGET:
        code, cases = _run_java(arguments)
        _say(arguments, cases, begun)
        return code
    parser = PARSERS[arguments.parser]
    with tempfile.TemporaryDirectory(prefix="spikelab-fuzz-", dir=memory()) as name:
        folder = Path(name)
        code, cases = _run(arguments, folder)
        found = _keep(parser, sorted((folder / "found").glob("[!c]*")))
        _keep(parser, _small(parser, folder / "corpus"))
    _say(arguments, cases, begun)
    for finding in found:
        print(f"finding: {finding} in {file_of(parser.name).relative_to(paths.ROOT)}", flush=True)
    return 1 if code or found else 0


def _say(arguments: Namespace, cases: Cases, begun: float) -> None:
    print(
        f"{arguments.parser}: {cases.all:,} cases, {cases.from_valid / max(1, cases.all):.0%} of "
        f"them from valid input, in {time.monotonic() - begun:.0f} s with the seed "
        f"{arguments.seed}",
        flush=True,
    )


def _run_java(arguments: Namespace) -> tuple[int, Cases]:
    """A fuzz test of the target's own, which makes all its cases of valid input."""
    child = subprocess.Popen(
        [
            *("mvn", "--batch-mode", "--quiet", "test"),
            f"-DbuildDirectory={paths.BUILD / 'spring-tomcat-fuzz'}",
            f"-Dtest={_OF_THE_TARGET[arguments.parser]}",
            f"-Dfuzz.cases={arguments.cases}",
            f"-Dfuzz.seed={arguments.seed}",
        ],
        cwd=paths.TARGET,
        stdout=sys.stderr,
    )
    while child.poll() is None:
        _wait_while(arguments.pause_file, child)
        time.sleep(1)
    # Of one that stopped at a finding nobody knows how many it did.
    done = 0 if child.returncode else arguments.cases
    return child.returncode, Cases(done, done)


def _keep(parser: Parser, inputs: Sequence[Path]) -> list[str]:
    """Adds inputs to the parser's findings; returns their names there."""
    found = {each.name[:24]: each.read_bytes() for each in inputs}
    if found:
        add_findings(parser.name, found)
    return list(found)


def _small(parser: Parser, reached: Path) -> list[Path]:
    """Of the inputs that reached what no other did, the smallest, as far as there is room."""
    known = set(parser.findings)
    room = _MOST_BYTES - sum(map(len, known))
    places = _MOST_FINDINGS - len(known)
    chosen: list[Path] = []
    for path in sorted(reached.glob("*"), key=lambda each: each.stat().st_size):
        data = path.read_bytes()
        room -= len(data)
        if room < 0 or len(chosen) >= places:
            break
        if data not in known:
            chosen.append(path)
    return chosen


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--parser", required=True, choices=[*PARSERS, *_OF_THE_TARGET])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause-file", type=Path, help="the run waits while it exists")
    return parser.parse_args()


def _run(arguments: Namespace, folder: Path) -> tuple[int, Cases]:
    """The child's exit code and what it did; its findings lie in the folder."""
    numbers = [str(arguments.cases), str(arguments.seed)]
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.fuzz_process", arguments.parser, *numbers, str(folder)],
        cwd=paths.ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        while child.poll() is None:
            _wait_while(arguments.pause_file, child)
            time.sleep(1)
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
    return child.returncode, counted(folder)


def _wait_while(pause_file: Path | None, child: "subprocess.Popen[bytes]") -> None:
    if pause_file is None or not pause_file.exists():
        return
    child.send_signal(signal.SIGSTOP)
    while pause_file.exists():
        time.sleep(1)
    child.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"fuzz: {error}")
